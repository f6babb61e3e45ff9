"""How often does the search miss a narrow band of a predicted number that a random search (which keeps laws) reaches?

    TDCE_DATA=... python benchmarks/bands.py [--tables months,...] [--models ridge,...] [--rows 60] [--seed 0]
    python benchmarks/bands.py --docs          writes the table of docs/models.md from the results

Two tables with laws (tests/lawful.py) get a number to predict; german's is the amount of the credit, adult's the hours
of work. Each person gets a band of each width, a share of the range of that number in the table, placed uniformly at
random within what a first random search reaches for this person, away from the present prediction. A second random
search draws as many rows: each takes over a random subset of the features that may change from a random row of the
table; then followers are computed, and all values are put on the grid.

`solvable`: the second search has a row in the band, or our answer is valid; `missed`: solvable, but ours is not valid.
`random`: the share of the solvable ones that the random search misses. `untrue`: lines whose note does not state the
model's prediction for the returned row, or that are further from the band than the person was.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import lawful
from docs_tables import put

import tdce
from tdce.schema import FeasibleSet

WIDTHS = (0.002, 0.01, 0.05)  # shares of the range of what is predicted
MODELS: dict[str, Callable[[], Any]] = {
    "ridge": lambda: Ridge(),
    "boosting": lambda: HistGradientBoostingRegressor(max_iter=100, random_state=0),
    "forest": lambda: RandomForestRegressor(50, min_samples_leaf=3, random_state=0),
}
LEARNED_ROWS = 3_000
HEAD = ("table", "model", "width", "people", "solvable", "missed", "random", "untrue", "seconds")


def months() -> tuple[pd.DataFrame, str]:
    """What a customer will spend next year, from a table in which paid = months x price."""
    frame, rng = lawful.months(0).frame.drop(columns="label"), np.random.default_rng(0)
    spending = 0.1 * frame.total_paid + 6 * frame.price - 40 * frame.complaints + 20 * frame.rating
    spending += (
        150 * (frame.contract != "monthly") + 5 * frame.price * (frame.rating > 7) + rng.normal(0, 60, len(frame))
    )
    return frame.assign(spending=spending.round(2)), "spending"


def instalment() -> tuple[pd.DataFrame, str]:
    """A score, from a table in which amount, rate and term fix the instalment."""
    frame, rng = lawful.instalment(0).frame.drop(columns="label"), np.random.default_rng(0)
    score = 700 - 400 * frame.instalment / frame.income - 25 * frame.defaults - 2 * frame.rate
    score += 15 * (frame.purpose == "home") - 0.001 * frame.amount + rng.normal(0, 10, len(frame))
    return frame.assign(score=score.round(1)), "score"


def real(name: str, label: str) -> Callable[[], tuple[pd.DataFrame, str]]:
    def load() -> tuple[pd.DataFrame, str]:
        data = tdce.load(name)
        frame = data.frame.drop(columns=data.label)
        return frame.sample(min(len(frame), LEARNED_ROWS), random_state=0).reset_index(drop=True), label

    return load


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, str]]] = {
    "months": months, "instalment": instalment, "german": real("german", "credit_amount"),
    "adult": real("adult", "hours_per_week"),
}  # fmt: skip


def learn(frame: pd.DataFrame, label: str, model: str) -> tdce.Explainer:
    """A small explainer of a model of scikit-learn."""
    words, numbers = (
        make_column_selector(**each) for each in ({"dtype_exclude": "number"}, {"dtype_include": "number"})
    )
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words), (StandardScaler(), numbers)
    )
    features = frame.drop(columns=label)
    made = make_pipeline(encode, MODELS[model]()).fit(features, frame[label])
    explainer = tdce.Explainer(model=made, hidden=64, steps=400, progress="silent")
    return explainer.fit(features, favourable=tdce.Range(low=float(frame[label].median())))


class RandomSearch:
    """What a person reaches by taking over random features of random rows."""

    def __init__(self, explainer: tdce.Explainer, frame: pd.DataFrame, rows: pd.DataFrame, draws: int) -> None:
        self.encoder, self.draws = explainer.fitted.encoder, draws
        self.feasible, self.model = FeasibleSet.of(self.encoder, rows), explainer.fitted.model
        self.known = self.encoder.read(frame)

    def scores(self, row: int, rng: np.random.Generator) -> np.ndarray:
        """(draws,) what the model says of rows that this one may become."""
        one = self.feasible.take(np.full(self.draws, row))
        taken = rng.random((self.draws, self.known.shape[1])) < rng.random((self.draws, 1))
        raw = np.where(taken & ~one.frozen, self.known[rng.integers(len(self.known), size=self.draws)], one.own)
        raw = one.constraints.follow(raw, one.own)
        return np.asarray(self.model.score(one.snap(self.encoder.embed(raw).float()))[:, 0])


def measure(name: str, model: str, rows: int, draws: int, seed: int) -> list[list[object]]:
    """Lines of the result, one per width."""
    frame, label = TABLES[name]()
    explainer = learn(frame, label, model)
    people = frame.drop(columns=label).sample(rows, random_state=1 + seed)
    search = RandomSearch(explainer, frame.drop(columns=label), people, draws)
    before = np.asarray(explainer.fitted.model.score(search.feasible.own)[:, 0])
    reached = [search.scores(r, np.random.default_rng([2 * seed, r])) for r in range(rows)]
    again = [search.scores(r, np.random.default_rng([2 * seed + 1, r])) for r in range(rows)]
    lines = []
    for share in WIDTHS:
        width, rng = share * float(frame[label].max() - frame[label].min()), np.random.default_rng(2 + seed)
        low = np.array([place_band(reached[r], before[r], width, rng) for r in range(rows)])
        bands = [tdce.Range(float(each), float(each + width)) for each in low]
        began = time.process_time()
        found = explainer.explain(people, target=bands)
        seconds = time.process_time() - began
        valid = found.explanation.status[:, 0] == "valid"
        by_chance = np.array([((each >= a) & (each <= a + width)).any() for each, a in zip(again, low, strict=True)])
        solvable = valid | by_chance
        lines.append([
            name, model, share, rows, int(solvable.sum()), int((solvable & ~valid).sum()),
            int((solvable & ~by_chance).sum()), untrue(explainer, found, low, low + width), round(seconds, 1),
        ])  # fmt: skip
        print(*lines[-1], sep=" | ", flush=True)
    return lines


def place_band(reached: np.ndarray, before: float, width: float, rng: np.random.Generator) -> float:
    """The lower end of a band within what a person reaches that does not hold what the model says of them now."""
    for _ in range(1_000):
        low = rng.uniform(reached.min(), max(reached.min(), reached.max() - width))
        if not low - width / 2 <= before <= low + 1.5 * width:
            return float(low)
    return float(before + width)


def untrue(explainer: tdce.Explainer, found: tdce.Answer, low: np.ndarray, high: np.ndarray) -> int:
    """How many lines say what is not so."""
    said = found.explanation
    scores = np.asarray(explainer.fitted.model.score(said.raw[:, 0])[:, 0])
    before = np.asarray(explainer.fitted.model.score(said.own)[:, 0])
    wrong = np.abs(scores - said.score_after[:, 0]) > 1e-5 * np.abs(scores).clip(min=1)
    off, was_off = (np.maximum(0, np.maximum(low - each, each - high)) for each in (scores, before))
    wrong |= (off > was_off + 1e-9) | ((off == 0) != np.isin(said.status[:, 0], ["valid", "already"]))
    for i, notes in enumerate(said.notes[:, 0]):
        for note in notes:
            values = note.values or {}
            if note.key.startswith(("only_", "nothing_")):
                wrong[i] |= abs(values["before"] - before[i]) > 1e-5 * max(1, abs(before[i]))
                wrong[i] |= note.key.startswith("nothing_") == bool(off[i] < was_off[i])
            if note.key.startswith("only_"):
                wrong[i] |= abs(values["after"] - scores[i]) > 1e-5 * max(1, abs(scores[i]))
                wrong[i] |= ("raises" in note.key) != bool(scores[i] > before[i])
    return int(wrong.sum())


def write_docs(results: Path, page: Path) -> None:
    table = pd.read_csv(results)
    lines = [
        "| table | model | " + " | ".join(f"band of {100 * width:g} %" for width in WIDTHS) + " |",
        "|---" * 5 + "|",
    ]

    def cell(part: pd.DataFrame) -> str:
        return f"{part['missed'].sum()} of {part['solvable'].sum()}"

    for (name, model), part in table.groupby(["table", "model"], sort=False):
        each = [cell(part[part["width"] == width]) for width in WIDTHS]
        lines.append(f"| {name} | {model} | " + " | ".join(each) + " |")
    lines.append("| all | | " + " | ".join(cell(table[table["width"] == width]) for width in WIDTHS) + " |")
    put(page, bands="\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--draws", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0, help="of the people and of their bands")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/bands.csv"))
    given = parser.parse_args()
    if given.docs:
        write_docs(given.out, Path("docs/models.md"))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines = []
    for name in given.tables.split(","):
        for model in given.models.split(","):
            lines += measure(name, model, given.rows, given.draws, given.seed)
            pd.DataFrame(lines, columns=HEAD).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
