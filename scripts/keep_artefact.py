"""Keep an artefact of today's format for the tests of later versions, with what its model says of a few rows.

    python scripts/keep_artefact.py

Writes tests/golden/artefacts/format-N.tdce and format-N.csv. Run it when the format has changed, and before a release.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import tdce
from tdce.diffusion import SamplingPlan
from tdce.explainer.sealed_file import FORMAT

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "golden" / "artefacts"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    plans = tdce.TrainingPlans(sampling=SamplingPlan(256, 256, 10))
    explainer = tdce.Explainer(hidden=8, steps=60, plans=plans, progress="silent")
    explainer.fit(table(300, seed=0), label="decision", favourable="yes", immutable=["age"])
    explainer.save(FOLDER / f"format-{FORMAT}.tdce")
    rows = table(12, seed=1).drop(columns="decision")
    rows.assign(yes=explainer.predict_proba(rows)["yes"]).to_csv(FOLDER / f"format-{FORMAT}.csv", index=False)


def table(rows: int, seed: int) -> pd.DataFrame:
    """Whole numbers, decimals and categories; the label follows a rule."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": draw.integers(10, 90, rows),
            "debt": draw.gamma(2.0, 10.0, rows).round(2),
            "housing": draw.choice(["rent", "own", "free"], rows),
            "age": draw.integers(18, 80, rows),
        }
    )
    return frame.assign(decision=np.where(frame["income"] - frame["debt"] > 30, "yes", "no"))


if __name__ == "__main__":
    main()
