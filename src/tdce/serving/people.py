"""The people whom the studio shows: synthetic ones of the diffusion model, or the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats, round_scores
from tdce.explainer import Explainer, Fitted
from tdce.models import Goals, Oracle, resolve_goals
from tdce.serving.json_rows import records
from tdce.serving.lines import cells_of

SYNTHETIC = 200


@dataclass(frozen=True, eq=False)
class People:
    """Each with what the model says."""

    source: str
    values: list[dict[str, Any]]
    prediction: list[Any]
    score: list[float]
    met: list[bool]

    @classmethod
    def of(cls, explainer: Explainer, rows: pd.DataFrame | None) -> People:
        fitted = explainer.fitted
        if rows is None:
            raw = fitted.synthetic[
                np.linspace(0, len(fitted.synthetic) - 1, min(SYNTHETIC, len(fitted.synthetic))).astype(int)
            ]
            rows, source = fitted.encoder.write(raw, pd.DataFrame(index=range(len(raw)))), "synthetic"
        else:
            raw, source = fitted.encoder.read(rows), "rows"
        said = Oracle(fitted.model).score(raw)
        goals = _favourable(fitted, raw)
        output, predicted = fitted.outputs[0], round_scores(said)
        labels = (
            [output.classes[k] for k in output.group(predicted).tolist()]
            if output.classes
            else predicted[:, 0].tolist()
        )
        shown = round_scores(goals.shown(said)) if goals else predicted.amax(dim=1)
        met = goals.met(said).tolist() if goals else [False] * len(raw)
        return cls(source, records(rows), cells_of(labels), shown.tolist(), met)

    def __len__(self) -> int:
        return len(self.values)

    def page(self, first: int, count: int, met: bool | None) -> dict[str, Any]:
        """Some of them; with `met` only those for whom the model says what is favourable, or does not."""
        numbers = [i for i in range(len(self)) if met is None or self.met[i] == met]
        return {
            "source": self.source,
            "total": len(numbers),
            "people": [self.person(i) for i in numbers[first : first + count]],
        }

    def person(self, i: int) -> dict[str, Any]:
        return {"number": i, "values": self.values[i], "prediction": self.prediction[i], "score": self.score[i],
                "met": self.met[i]}  # fmt: skip


def _favourable(fitted: Fitted, raw: Floats) -> Goals | None:
    """What people hope for, if that was said."""
    if fitted.favourable is None:
        return None
    return resolve_goals(
        None, None, fitted.favourable, fitted.outputs, len(raw), lambda: Oracle(fitted.model).score(raw)
    )  # fmt: skip
