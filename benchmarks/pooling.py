"""What pooled figures (`exact=False`, the default) keep out of an artefact, and what they cost, for docs/privacy.md.

    python benchmarks/pooling.py [--seeds 5] [--cost-seeds 1] [--rows 30] [--out results/pooling.csv]

`few`: german cut to four coarse columns, half of the rows learned; the share of synthetic rows that equal a learned
row, minus the share of the other half that do, in points; the same for learned rows that fewer than five people share.
`kept`: the numbers and categories in an artefact of german, and of 200 rows of it, that one person has, or fewer than
five. `cost`: the classifier on test rows, and answers to refused test rows, with each data set's own schema, adult with
1,000 training rows; the plausibility is that by the exact explainer, for both. Results are written as they are
measured; those in the file are not measured again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from docs_tables import put

import tdce
from tdce._core import Floats, Progress
from tdce.diffusion.synthetic import classes_to_draw, draw_synthetic, row_bytes, rows_of_few
from tdce.metrics import gower, sparsity
from tdce.schema import Categorical, Numeric
from tdce.schema.columns.numeric import FittedNumeric
from tdce.schema.columns.pooling import people_with

COLUMNS = ["part", "data", "exact", "seed", "metric", "value"]
Line = tuple[str, bool, str, float]  # data, exact, metric, value
COARSE = ["housing", "job", "savings", "checking_account"]
TITLES = {
    "few": {"equal": "equal a learned row, points", "equal_few": "one that fewer than five share, points"},
    "kept": {"values": "values kept", "one": "one person's", "few": "of fewer than five"},
    "cost": {
        "accuracy": "accuracy", "validity": "validity", "features": "features", "gower": "Gower",
        "plausibility": "plausibility", "outside": "rows with a value outside",
    },
}  # fmt: skip
ADULT_ROWS = 1_000


def few(seed: int, rows: int) -> Iterator[Line]:
    data = tdce.load("german", seed=seed)
    frame = data.frame[[*COARSE, data.label]].sample(frac=1, random_state=seed)
    learned, other = frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]
    fitted = fit(learned, data.label, seed, exact=True).fitted  # of these columns the same is learned either way
    people, held = fitted.encoder.read(learned), fitted.encoder.read(other)
    y = classes_to_draw(fitted.y, seed)
    redrawn = draw_synthetic(fitted.encoder, fitted.diffusion, y, seed, Progress("silent"), people=people)
    for exact, synthetic in ((True, fitted.synthetic), (False, redrawn)):
        for metric, known in {"equal": set(row_bytes(people)), "equal_few": rows_of_few(people)}.items():
            yield "german, four columns", exact, metric, 100 * (share(synthetic, known) - share(held, known))


def kept(seed: int, rows: int) -> Iterator[Line]:
    data = tdce.load("german", seed=seed)
    for name, frame in {"german": data.frame, "german, 200 rows": data.frame.sample(200, random_state=seed)}.items():
        for exact in (True, False):
            explainer = fit(frame, data.label, seed, exact, steps=1)  # the networks do not matter here
            people = np.concatenate(list(kept_people(explainer, frame)))
            yield name, exact, "values", float(len(people))
            yield name, exact, "one", float((people == 1).sum())
            yield name, exact, "few", float(((people > 0) & (people < 5)).sum())


def cost(seed: int, rows: int) -> Iterator[Line]:
    for name in ("german", "adult"):
        data = tdce.load(name, seed=seed)
        train, test = data.part("train"), data.part("test")
        train = train if name == "german" else train.sample(ADULT_ROWS, random_state=seed)
        judge = None
        for exact in (True, False):
            explainer = tdce.Explainer(seed=seed, exact=exact, progress="silent")
            explainer.fit(train, label=data.label, favourable=data.favourable, schema=data.schema)
            judge = judge or explainer
            refused = test[judge.predict(test) != data.favourable].head(rows).drop(columns=data.label)
            answer = explainer.explain(refused)
            found = answer.to_frame()
            valid = (found["status"] == "valid").to_numpy()
            raw, raw_cf = (judge.fitted.encoder.read(frame[list(refused)][valid]) for frame in (refused, found))
            numeric = np.array([isinstance(column, Numeric) for column in explainer.schema])
            values = {
                "accuracy": (explainer.predict(test) == test[data.label]).mean(),
                "validity": valid.sum() / (found["status"] != "already").sum(),
                "features": sparsity(raw, raw_cf),
                "gower": gower(raw, raw_cf, numeric, judge.fitted.raw),
                "plausibility": judge.plausibility(found[list(refused)][valid]).mean(),
                "outside": found["note"].str.contains("range learned|rare").mean(),
            }
            yield from ((name, exact, metric, float(value)) for metric, value in values.items())


def fit(frame: pd.DataFrame, label: str, seed: int, exact: bool, steps: int = 1600) -> tdce.Explainer:
    return tdce.Explainer(seed=seed, exact=exact, steps=steps, progress="silent").fit(frame, label=label)


def share(raw: Floats, known: set[bytes]) -> float:
    return float(np.mean([row in known for row in row_bytes(raw)]))


def kept_people(explainer: tdce.Explainer, frame: pd.DataFrame) -> Iterator[Floats]:
    """How many people have each value that is kept of a column: categories, or ends, levels and quantiles."""
    encoder = explainer.fitted.encoder
    for learned, values in zip(encoder.columns, encoder.read(frame).T, strict=True):
        column = learned.column
        if isinstance(learned, FittedNumeric):
            assert isinstance(column, Numeric)
            known = np.unique([column.low, column.high, *(column.levels or ()), *column.marks, *learned.scale.raw])
        else:
            known = np.arange(len(column.categories) if isinstance(column, Categorical) else 0, dtype=np.float64)
        yield people_with(known, values)


def markdown(found: pd.DataFrame, part: str) -> str:
    titles, decimals = TITLES[part], {"few": 1, "kept": 0, "cost": 3}[part]
    lines = [f"| data | `exact` | {' | '.join(titles.values())} |", "|---" * (2 + len(titles)) + "|"]
    of_part = found[found["part"] == part]
    for (data, exact), group in of_part.groupby(["data", "exact"], sort=False):
        values = [group.loc[group["metric"] == metric, "value"] for metric in titles]
        cells = [f"{v.mean():.{decimals}f}{f' ± {v.std():.{decimals}f}' if len(v) > 1 else ''}" for v in values]
        lines.append(f"| {data} | {'yes' if exact else 'no'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    found = pd.read_csv(results)
    put(page, **{f"pooling_{part}": markdown(found, part) for part in TITLES})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cost-seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("results/pooling.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out, Path("docs/privacy.md"))
        return
    torch.set_num_threads(1)
    found = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    runs = [(kept, 1), (few, asked.seeds), (cost, asked.cost_seeds)]
    for measure, seed in ((measure, seed) for measure, seeds in runs for seed in range(seeds)):
        part = measure.__name__
        if not ((found["part"] == part) & (found["seed"] == seed)).any():
            lines = [(part, data, exact, seed, *rest) for data, exact, *rest in measure(seed, asked.rows)]
            new = pd.DataFrame(lines, columns=COLUMNS)
            found = pd.concat([found, new]) if len(found) else new
            found.to_csv(asked.out, index=False)
    print(*(markdown(found, part) for part in TITLES), sep="\n\n")


if __name__ == "__main__":
    main()
