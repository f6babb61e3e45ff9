"""RecourseBench's adult and random forest, rebuilt: its published results compared with ours.

    python benchmarks/recourse_bench.py [--cache results/fitted/recourse_bench] [--out results/recourse_bench.csv]
    python benchmarks/recourse_bench.py --docs          writes the table of docs/models.md from the results

RecourseBench (github.com/charmlab/recourse_bench, MIT) publishes results of recourse methods by others on 50 refused
test rows of adult. Its table is UCI's complete rows as codes, which our copy gives; numbers are scaled to 0 to 1,
categories are flags, a fifth of the rows is for tests, and the model is scikit-learn's random forest. With the same
seeds the model is the same: it refuses as many test rows, the same 50 are drawn, and where a published answer changes a
single number, the model accepts it and its distance to the five nearest training rows is the published one.
`recourse_bench_published.csv` has these figures: a line for each method that finished, and the answers of `cols` with a
single change. Our answers are computed each time; the model is kept in the cache.
"""

from __future__ import annotations

import argparse
import pickle
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from sklearn.ensemble import RandomForestClassifier

import tdce
from tdce._core import Flags, Floats

PUBLISHED = Path(__file__).with_name("recourse_bench_published.csv")
LABEL, ELIGIBLE, PEOPLE, NEIGHBOURS = "Label", 7061, 50, 5
FIRST = (416, 28465, 27017, 30989, 23469)  # of the people who were drawn
FLAGS = ("Sex", "NativeCountry")
NUMBERS = ("Age", "EducationNumber", "CapitalGain", "CapitalLoss", "HoursPerWeek")
WORDS = ("WorkClass", "EducationLevel", "MaritalStatus", "Occupation", "Relationship")
IMMUTABLE = ("Sex", "Age")
LEVELS = {1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 6: 2, 7: 2, 8: 2, 9: 3, 10: 4, 11: 8, 12: 9, 13: 5, 14: 6, 15: 10, 16: 7}
ASKED: dict[str, dict[str, float]] = {
    "search, closeness 1, safety 0": {"closeness": 1, "safety": 0},
    "search, closeness 1": {"closeness": 1},
    "search": {},
}
METRICS = ("validity", "l0", "l1", "l2", "linf", "type", "immutable", "knn")


def codes(column: pd.Series[Any]) -> Any:
    """1, 2, ... in alphabetical order."""
    return column.astype(str).astype("category").cat.codes.to_numpy() + 1


def table() -> pd.DataFrame:
    """Their table: whole numbers, categories as codes, the label 1 above 50,000 dollars."""
    f = tdce.load("adult").frame.dropna().reset_index(drop=True)
    columns = {
        "Sex": np.where(f["sex"] == "Male", 1, 2),
        "Age": f["age"],
        "NativeCountry": np.where(f["native_country"] == "United-States", 1, 2),
        "WorkClass": codes(f["workclass"]),
        "EducationNumber": f["education_num"],
        "EducationLevel": f["education_num"].map(LEVELS),
        "MaritalStatus": codes(f["marital_status"]),
        "Occupation": codes(f["occupation"]),
        "Relationship": codes(f["relationship"]),
        "CapitalGain": f["capital_gain"],
        "CapitalLoss": f["capital_loss"],
        "HoursPerWeek": f["hours_per_week"],
        LABEL: f["income"].astype(str).str.startswith(">"),
    }
    return pd.DataFrame(columns).astype("int64")


@dataclass(frozen=True)
class Bench:
    cache: Path

    @cached_property
    def table(self) -> pd.DataFrame:
        return table()

    @cached_property
    def bounds(self) -> tuple[pd.Series[Any], pd.Series[Any]]:
        return self.table.min(), self.table.max()

    def matrix(self, rows: pd.DataFrame) -> Floats:
        """(n, 51) as their model takes it."""
        low, high = self.bounds
        parts = []
        for name in self.table.columns.drop(LABEL):
            own = rows[name].to_numpy(dtype=float)[:, None]
            if name in WORDS:
                parts.append((own == np.sort(self.table[name].unique())).astype(float))
            else:
                parts.append((own - low[name]) / (high[name] - low[name]))
        return np.concatenate(parts, axis=1)

    @cached_property
    def split(self) -> tuple[Any, Any]:
        """Positions of training and test rows, in their order."""
        order = np.random.RandomState(0).permutation(len(self.table))
        cut = int(np.ceil(0.2 * len(order)))
        return order[cut:], order[:cut]

    @cached_property
    def model(self) -> RandomForestClassifier:
        path = self.cache / "forest.pickle"
        if not path.exists():
            train = self.table.iloc[self.split[0]]
            forest = RandomForestClassifier(100, random_state=0).fit(self.matrix(train), train[LABEL])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps(forest))
        forest = pickle.loads(path.read_bytes())  # our own file
        assert isinstance(forest, RandomForestClassifier)
        return forest

    @cached_property
    def eligible(self) -> pd.DataFrame:
        """The test rows that the model refuses."""
        test = self.table.iloc[self.split[1]]
        return test[self.model.predict(self.matrix(test)) != 1]

    @cached_property
    def people(self) -> pd.DataFrame:
        return self.eligible.sample(PEOPLE, random_state=0).drop(columns=LABEL)

    @cached_property
    def reference(self) -> torch.Tensor:
        return torch.from_numpy(self.matrix(self.table.iloc[self.split[0]])).float()

    def nearness(self, matrix: Floats) -> Floats:
        """(n,) the mean distance to the nearest training rows."""
        apart = torch.cdist(torch.from_numpy(matrix).float(), self.reference)
        return apart.topk(NEIGHBOURS, largest=False).values.mean(dim=1).numpy()

    def measure(self, rows: pd.DataFrame, there: Flags) -> dict[str, float]:
        """Their metrics of the answers, which all but `validity` count those that are there only."""
        own, answers = self.matrix(self.people)[there], self.matrix(rows[there])
        apart, kept = np.abs(answers - own), rows[there][list(IMMUTABLE)].to_numpy()
        known = np.all([rows[there][name].isin(self.table[name]) for name in (*WORDS, *FLAGS)], axis=0)
        valid = np.zeros(len(rows), dtype=bool)
        valid[there] = self.model.predict(answers) == 1
        return {
            "validity": float(valid.mean()),
            "l0": float((~np.isclose(apart, 0)).sum(axis=1).mean()),
            "l1": float(apart.sum(axis=1).mean()),
            "l2": float(np.linalg.norm(apart, axis=1).mean()),
            "linf": float(apart.max(axis=1).mean()),
            "type": float((~known).mean()),
            "immutable": float((kept != self.people[there][list(IMMUTABLE)].to_numpy()).any(axis=1).mean()),
            "knn": float(self.nearness(answers).mean()),
        }

    def check(self) -> int:
        """That the model and the people are theirs; how many of the published single changes are found again."""
        assert len(self.eligible) == ELIGIBLE, f"{len(self.eligible)} are refused, published are {ELIGIBLE}"
        assert tuple(self.people.index[: len(FIRST)]) == FIRST, "other people were drawn"
        return sum(self.finds(single) for single in published(single=True).itertuples())

    def finds(self, single: Any) -> bool:
        """Whether one whole number of the person, changed by the published distance, is accepted, and as near to the
        training rows as published."""
        low, high = self.bounds
        for name in (each for each in NUMBERS if each not in IMMUTABLE):
            row = self.people.loc[[int(single.person)]].copy()
            value = row[name].iloc[0] + single.changed * (high[name] - low[name])
            if abs(value - round(value)) < 0.01 and value <= high[name]:
                row[name] = round(value)
                matrix = self.matrix(row)
                if self.model.predict(matrix)[0] == 1 and abs(self.nearness(matrix)[0] - single.knn) < 1e-5:
                    return True
        return False

    @cached_property
    def explainer(self) -> tdce.Explainer:
        train = self.words(self.table.iloc[self.split[0]])
        explainer = tdce.Explainer(model=Forest(self), progress="silent")
        schema = tdce.Schema.infer(train, LABEL, roles=False)
        return explainer.fit(train, label=LABEL, favourable="1", schema=schema, immutable=list(IMMUTABLE))

    def words(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Categories, and the label, as words."""
        return rows.astype({name: str for name in (*FLAGS, *WORDS, LABEL) if name in rows})

    def ours(self, **asked: float) -> dict[str, float]:
        frame = self.explainer.explain(self.words(self.people), **asked).to_frame()
        answers = frame[self.people.columns].astype("int64").set_axis(self.people.index)
        return self.measure(answers, (frame["status"] != "infeasible").to_numpy())


class Forest:
    """Their model on rows with words."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.classes_ = bench, np.array(["0", "1"])

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        return np.asarray(self.bench.model.predict_proba(self.bench.matrix(frame.astype(float))), dtype=float)


def published(single: bool) -> pd.DataFrame:
    """The published answers with a single change, or the published lines."""
    rows = pd.read_csv(PUBLISHED)
    return rows[rows["person"].notna() == single]


def markdown(rows: pd.DataFrame) -> str:
    lines = [f"| method | {' | '.join(METRICS)} |", "|---" * (1 + len(METRICS)) + "|"]
    for row in rows.sort_values("l1", kind="stable").to_dict("records"):
        lines.append(f"| {row['method']} | {' | '.join(f'{row[name]:.3f}' for name in METRICS)} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, recourse_bench=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path("results/fitted/recourse_bench"))
    parser.add_argument("--out", type=Path, default=Path("results/recourse_bench.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        return write_docs(asked.out, Path("docs/models.md"))
    torch.set_num_threads(1)
    bench = Bench(asked.cache)
    print(f"{bench.check()} of {len(published(single=True))} published single changes found again", flush=True)
    rows = published(single=False)[["method", *METRICS]]
    for name, asked_for in ASKED.items():
        ours = pd.DataFrame([{"method": name, **bench.ours(**asked_for)}])
        rows = pd.concat([rows, ours], ignore_index=True).round(5)
        rows.to_csv(asked.out, index=False)
    print(markdown(rows))


if __name__ == "__main__":
    main()
