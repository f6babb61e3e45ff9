"""Does the search miss answers that exist, and do its nearest answers cost too much? Compares with every feasible row.

    TDCE_DATA=... python benchmarks/enumeration.py [--data german,...] [--rows 30] [--out results/enumeration.csv]
    python benchmarks/enumeration.py --docs          writes the table of docs/method.md from the results

Only some features of each refused row may change, few enough to try all combinations of their values (at most 20,000).
`solvable`: the model accepts one of them by the method's margin; `missed`: solvable, but `explain` finds none. Among
the rows with an answer at closeness 1 without a wanted safety, `dearer`: the share whose cost is more than 1.10 times
that of the cheapest combination; `worst`: the largest such ratio. Models: logistic regression, gradient boosting, a
random forest (scikit-learn) and our own classifier; three sets of free features per table, the last one too large for
the search to enumerate by itself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from docs_tables import put
from lawful import TABLES

import tdce
from tdce.methods import measure_distance
from tdce.methods.candidates import MIN_MARGIN
from tdce.models import Goals, Oracle
from tdce.schema import FeasibleSet, Numeric

MODELS = {
    "logistic": lambda: LogisticRegression(max_iter=1000),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=60, random_state=0),
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
    "own": lambda: None,
}
FREE = {
    "german": (
        ("checking_account", "savings", "instalment_rate", "housing"),
        ("duration_months", "instalment_rate"),
        ("duration_months", "instalment_rate", "checking_account", "savings", "housing"),
    ),
    "months": (
        ("contract", "rating", "complaints"),
        ("months", "rating"),
        ("months", "rating", "contract", "complaints"),
    ),
    "conditional range": (("claims", "deductible"), ("car_power", "claims"), ("car_power", "claims", "deductible")),
}
MAX_POINTS = 20_000
DEARER = 1.10
HEAD = ("data", "model", "free", "people", "solvable", "missed", "false", "dearer", "worst")


def load(name: str) -> tuple[pd.DataFrame, str, object]:
    if name in TABLES:
        return TABLES[name](0).frame, "label", "yes"
    data = tdce.load(name)
    return data.frame, data.label, data.favourable


def fit(
    frame: pd.DataFrame, label: str, favourable: object, model: str, schema: tdce.Schema | None = None
) -> tdce.Explainer:
    estimator = MODELS[model]()
    if estimator is not None:
        words, numbers = (
            make_column_selector(**each) for each in ({"dtype_exclude": "number"}, {"dtype_include": "number"})
        )
        encode = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words), (StandardScaler(), numbers)
        )
        estimator = make_pipeline(encode, estimator).fit(frame.drop(columns=label), frame[label])
    explainer = tdce.Explainer(model=estimator, progress="silent")
    schema = schema or tdce.Schema.infer(frame, label, roles=False)
    return explainer.fit(frame, label=label, favourable=favourable, schema=schema)


def combinations(feasible: FeasibleSet, free: list[int]) -> np.ndarray | None:
    """(m, features) every feasible row besides the one row itself; None if there are too many."""
    own, values, points = feasible.own[0], [], 1
    for i in free:
        column = feasible.columns[i].column
        if isinstance(column, Numeric):
            grid = (
                np.array(column.levels)
                if column.levels
                else np.arange(column.low, column.high + column.step / 2, column.step)
            )
            each = column.round(grid)
        else:
            each = np.arange(column.weights - column.missing, dtype=float)
        values.append(np.union1d(each, own[[i]]))
        points *= len(values[-1])
    if points > MAX_POINTS:
        return None
    mesh = np.stack([each.ravel() for each in np.meshgrid(*values, indexing="ij")], axis=1)
    rows = np.tile(own, (len(mesh), 1))
    rows[:, free] = mesh
    rows = feasible.encoder.laws.follow(rows, np.tile(own, (len(rows), 1)))
    each = feasible.take(np.zeros(len(rows), dtype=np.int64))
    changed = ~((rows == own) | (np.isnan(rows) & np.isnan(own))).all(axis=1)
    return rows[each.contains(rows) & changed]


def measure(
    name: str, model: str, explainer: tdce.Explainer, refused: pd.DataFrame, free: tuple[str, ...]
) -> list[object]:
    names, fitted = explainer.schema.names, explainer.fitted
    fixed = [each for each in names if each not in free]
    found = explainer.explain(refused, immutable=fixed, closeness=1, safety=0)
    feasible = FeasibleSet.of(fitted.encoder, refused, fixed)
    people = solvable = missed = false = 0
    ratios = []
    for r in range(len(refused)):
        one = feasible.take(np.array([r]))
        rows = combinations(one, [names.index(each) for each in free])
        if rows is None:
            continue
        people += 1
        goals = Goals.all(found.goals.goal(r), len(rows))
        decision = Oracle(fitted.model).decide_alone(rows, goals)
        good = rows[(decision.met & (decision.margin >= MIN_MARGIN)).numpy()]
        valid = found.explanation.status[r, 0] == "valid"
        solvable += len(good) > 0
        missed += len(good) > 0 and not valid
        false += len(good) == 0 and valid
        if len(good) and valid:
            cost = measure_distance(fitted.task(), one.x.expand(len(good), -1), good[:, None], {})[:, 0]
            ratios.append(found.explanation.distance[r, 0] / cost.min())
    dearer = float(np.mean(np.array(ratios) > DEARER)) if ratios else 0.0
    return [name, model, "+".join(free), people, solvable, missed, false, dearer, max(ratios, default=1.0)]


def markdown(rows: pd.DataFrame) -> str:
    lines = ["| table | model | people | with a way | missed | false | dearer | worst |", "|---" * 8 + "|"]
    for (data, model), part in [*rows.groupby(["data", "model"], sort=False), (("all", ""), rows)]:
        people, solvable, missed, false = (part[name].sum() for name in ("people", "solvable", "missed", "false"))
        dearer = (part["dearer"] * part["solvable"]).sum() / max(1, solvable)
        figures = f"{people} | {solvable} | {missed} | {false} | {100 * dearer:.1f} % | {part['worst'].max():.2f}"
        lines.append(f"| {data} | {model} | {figures} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, enumeration=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(FREE))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("results/enumeration.csv"))
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    if given.docs:
        return write_docs(given.out, Path("docs/method.md"))
    torch.set_num_threads(1)
    lines = []
    for name in given.data.split(","):
        frame, label, favourable = load(name)
        for model in given.models.split(","):
            explainer = fit(frame, label, favourable, model)
            rows = frame.drop(columns=label)
            refused = rows[(explainer.predict(rows) != favourable).to_numpy()]
            for free in FREE[name]:
                lines.append(measure(name, model, explainer, refused.head(given.rows), free))
                print(*lines[-1], sep=" | ", flush=True)
            pd.DataFrame(lines, columns=HEAD).round(4).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
