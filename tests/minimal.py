"""Random questions, and a judge who tries every subset of an answer's changes; for tests and benchmarks/minimal.py."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import lawful
import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import tdce
from tdce._core import Noise, same
from tdce.methods.candidates import BAND_SHARE, MIN_MARGIN, MIN_WORTH
from tdce.methods.objective import Objective, feature_costs, safety_shortfall
from tdce.methods.protocol import Query
from tdce.methods.question import DEFAULT_SAFETY
from tdce.methods.search import DiffusionSearch
from tdce.schema import FeasibleSet, Schema

TOLERANCE = 1e-5  # of an objective, which is computed with 24 binary digits
MOST_CHANGES = 14  # of which all subsets are tried
ROWS = 240
WORDS = make_column_selector(dtype_exclude="number")
NUMBERS = make_column_selector(dtype_include="number")

# Tables and models


def numbers(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Whole and broken, even and skewed; some with gaps, some with a number that stands for a state."""
    columns = {}
    for i in range(count):
        values = [
            lambda: rng.integers(0, 12, ROWS).astype(float), lambda: rng.normal(50, 15, ROWS).round(2),
            lambda: rng.lognormal(3, 0.8, ROWS).round(1), lambda: rng.uniform(-1, 1, ROWS),
        ][rng.integers(4)]()  # fmt: skip
        if rng.random() < 0.2:
            values[rng.random(ROWS) < 0.15] = np.nan
        elif rng.random() < 0.2:
            values = np.where(rng.random(ROWS) < 0.2, 999.0, values)
        columns[f"n{i}"] = values
    return columns


def categories(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Two to five values each, some of them missing."""
    columns = {}
    for i in range(count):
        values = rng.choice(list("abcde")[: rng.integers(2, 6)], ROWS).astype(object)
        if rng.random() < 0.2:
            values[rng.random(ROWS) < 0.1] = np.nan  # which older versions of scikit-learn tell from None
        columns[f"c{i}"] = values
    return columns


def random_table(kind: str, rng: np.random.Generator) -> tuple[pd.DataFrame, Any]:
    """A table with a label, and the causes that the user states."""
    if kind in lawful.TABLES:
        table = lawful.TABLES[kind](int(rng.integers(1000)), rows=ROWS)
        return table.frame, table.causes
    count = int(rng.integers(3, 7)) if kind != "wide" else 9
    columns = {
        "numbers": lambda: numbers(rng, count),
        "categories": lambda: categories(rng, count),
        "mixed": lambda: numbers(rng, (count + 1) // 2) | categories(rng, count // 2),
        "wide": lambda: numbers(rng, 5) | categories(rng, 4),
    }[kind]()
    frame = pd.DataFrame(columns)
    score = Interactions(frame, rng).odds(frame) + rng.normal(0, 0.5, ROWS)
    return frame.assign(label=np.where(score > np.quantile(score, 0.6), "yes", "no")), None


class Interactions:
    """A function of the columns with products and steps, so that changes help only together, or hinder each other."""

    def __init__(self, frame: pd.DataFrame, rng: np.random.Generator) -> None:
        self.columns = [name for name in frame if name != "label"]
        self.centre = {c: frame[c].median() for c in self.columns if pd.api.types.is_numeric_dtype(frame[c])}
        self.scale = {c: max(1e-9, (frame[c] - self.centre[c]).abs().median()) for c in self.centre}
        self.effect = {
            c: dict(zip([*sorted(set(frame[c].dropna())), None], rng.normal(0, 1, 99), strict=False))
            for c in self.columns
            if c not in self.centre
        }
        size = len(self.columns)
        self.weight, self.pairs = rng.normal(0, 0.7, size), rng.normal(0, 1.0, (size, size))
        self.step = rng.normal(0, 1.0, size)
        self.border = float(np.quantile(self.odds(frame), 0.6))

    def parts(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, columns) every value as a number, most of them from -1 to 1."""
        each = []
        for c in self.columns:
            if c in self.centre:
                z = (pd.to_numeric(frame[c]).to_numpy(dtype=float) - self.centre[c]) / (3 * self.scale[c])
                each.append(np.nan_to_num(z, nan=0.5).clip(-2, 2))
            else:
                values = [None if pd.isna(v) else v for v in frame[c].tolist()]
                each.append(np.array([self.effect[c].get(v, 0.0) for v in values]))
        return np.stack(each, axis=1)

    def odds(self, frame: pd.DataFrame) -> np.ndarray:
        z = self.parts(frame)
        return z @ self.weight + ((z @ self.pairs) * z).sum(axis=1) + (z > 0.4) @ self.step

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        """The probability of a yes."""
        return 1 / (1 + np.exp(-(self.odds(frame) - self.border)))


def own(frame: pd.DataFrame, rng: np.random.Generator) -> None:
    """Our own classifier, which the explainer trains."""


def logistic(frame: pd.DataFrame, rng: np.random.Generator) -> Any:
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    model = make_pipeline(make_column_transformer((words, WORDS), (numbers, NUMBERS)), LogisticRegression())
    return model.fit(frame.drop(columns="label"), frame["label"])


def boosting(frame: pd.DataFrame, rng: np.random.Generator) -> Any:
    words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(
        make_column_transformer((words, WORDS), remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=25, min_samples_leaf=8, random_state=0),
    )
    return model.fit(frame.drop(columns="label"), frame["label"])


TABLES = ("numbers", "categories", "mixed", "wide", *lawful.TABLES)
MODELS: dict[str, Callable[[pd.DataFrame, np.random.Generator], Any]] = {
    "own": own, "logistic": logistic, "boosting": boosting, "function": Interactions,
}  # fmt: skip
TARGETS = (tdce.AtLeast("yes", 0.65), tdce.Between("yes", 0.55, 0.7), tdce.Between("yes", 0.6, 0.61))
CLOSENESS = (0.0, 0.5, 0.75, 1.0)


def fit(table: str, model: str, laws: bool, seed: int) -> tuple[tdce.Explainer, pd.DataFrame]:
    """A small explainer of a random table, and the rows that its model refuses."""
    rng = np.random.default_rng([seed, TABLES.index(table), list(MODELS).index(model), laws])
    frame, causes = random_table(table, rng)
    made = MODELS[model](frame, rng)
    schema = Schema.infer(frame, "label", roles=False)
    schema = schema if laws else schema.without_laws()
    explainer = tdce.Explainer(model=made, hidden=16, steps=40, seed=seed, progress="silent")
    explainer.fit(frame, label="label", favourable="yes", schema=schema, causes=causes if laws else None)
    rows = frame.drop(columns="label")
    return explainer, rows[(explainer.predict(rows) != "yes").to_numpy()]


def random_question(features: list[str], rng: np.random.Generator) -> dict[str, Any]:
    """Arguments of `explain`."""
    asked = {
        "n": int(rng.choice([1, 3, 5])), "closeness": float(rng.choice(CLOSENESS)),
        "safety": float(rng.choice([0.0, 0.9])), "seed": int(rng.integers(100)),
    }  # fmt: skip
    if rng.random() < 0.4:
        asked["immutable"] = rng.choice(features, int(rng.integers(1, 3)), replace=False).tolist()
    if rng.random() < 0.2:
        asked["costs"] = {str(rng.choice(features)): float(rng.choice([0.0, 0.3, 4.0]))}
    if rng.random() < 0.2:
        asked["rules"] = ["at most 3 changes"]
    if rng.random() < 0.2:
        asked["target"] = TARGETS[rng.integers(len(TARGETS))]
    return asked


# The judge


@dataclass
class Verdict:
    """What was tried, and the faults that were found, in words."""

    lines: int = 0  # valid ones, without repeated ones
    most_changes: int = 0
    subsets: int = 0
    faults: dict[str, list[str]] = field(default_factory=dict)

    def add(self, other: "Verdict") -> None:
        self.lines, self.subsets = self.lines + other.lines, self.subsets + other.subsets
        self.most_changes = max(self.most_changes, other.most_changes)
        for kind, faults in other.faults.items():
            self.faults.setdefault(kind, []).extend(faults)

    def fault(self, kind: str, text: str) -> None:
        self.faults.setdefault(kind, []).append(text)


class Judge:
    """Values rows as the search does: on the grid, with every law kept, by the real model, with the same noise."""

    def __init__(self, explainer: tdce.Explainer, answer: tdce.Answer, lenient: bool = False) -> None:
        """A change must be worth a little of the objective, or good for safety; with `lenient`, one that is worth
        nearly nothing is not needless either."""
        question, fitted = answer.question, explainer.fitted
        self.found, self.lenient = answer.explanation, lenient
        self.feasible = FeasibleSet.of(fitted.encoder, answer.rows, question.immutable, question.rules)
        self.task, goals = fitted.task(self.feasible.immutable), answer.goals
        decision = self.task.oracle.decide_alone(self.feasible.own, goals)
        wanted = DEFAULT_SAFETY if question.safety is None else question.safety
        closeness = DiffusionSearch().closeness if question.closeness is None else question.closeness
        self.query = Query(
            self.feasible.x, decision, goals, self.feasible.encoded_bounds(), closeness, question.n, wanted,
            feature_costs(fitted.encoder, question.costs),
        )  # fmt: skip
        noise = Noise(self.feasible.x, question.seed, 0)
        self.objective = Objective(self.task, self.query, noise, goals.target_class(decision.score))
        self.decided = np.array([name not in fitted.encoder.schema.followers for name in fitted.encoder.schema.names])

    def snap(self, raw: np.ndarray, row: int) -> np.ndarray:
        """(m, features) values for a row as they would be returned, what follows computed anew."""
        own = self.feasible.take(np.full(len(raw), row))
        return own.snap(self.task.encoder.embed(own.constraints.follow(raw, own.own)).float())

    def value(self, raw: np.ndarray, row: int) -> pd.DataFrame:
        """What rows (m, features) are worth as answers to a row."""
        at, x = torch.full((len(raw),), row), self.task.encoder.embed(raw).float()
        goals = self.query.goals.take(at)
        decision = self.task.oracle.decide_alone(raw, goals)
        cost, energy = self.objective.cost(x, at), self.objective.energy(x, at)
        lacks = safety_shortfall(self.task, self.query, x, decision.margin, at)
        least = np.minimum(MIN_MARGIN, BAND_SHARE * goals.width.numpy())
        return pd.DataFrame({
            "met": decision.met.numpy(), "accepted": decision.met.numpy() & (decision.margin.numpy() >= least),
            "margin": decision.margin.numpy(),
            "cost": cost.numpy(), "energy": energy.numpy(), "lacks": lacks.numpy(),
            "total": self.objective.total(cost, energy, self.query.closeness, lacks).numpy(),
        })  # fmt: skip

    def judge(self) -> Verdict:
        verdict = Verdict()
        for row in range(len(self.found.raw)):
            lines = [j for j, status in enumerate(self.found.status[row]) if status == "valid"]
            if lines:
                self._judge_row(row, lines, verdict)
        return verdict

    def _judge_row(self, row: int, lines: list[int], verdict: Verdict) -> None:
        raw, own = self.found.raw[row], self.found.own[row]
        first = [j for j in lines if not any(same(raw[j], raw[i]).all() for i in range(j))]
        notes = [{note.key: note.values for note in each} for each in self.found.notes[row]]
        if first != list(range(len(first))):
            verdict.fault("merged", f"row {row}: options {first} of {lines} are new")
        if len(first) < len(raw):
            key = "options_alike" if len(first) == 1 else "options_few"
            expected = {"options": len(raw), "different": len(first)}
            if any(each.get(key) != expected for each in notes):
                verdict.fault("noted", f"row {row}: {notes}")
        changed = ~same(raw, own) & self.decided
        value = self.value(raw, row)
        for j in first:
            verdict.lines += 1
            verdict.most_changes = max(verdict.most_changes, int(changed[j].sum()))
            for fault in self._needless(row, raw[j], changed[j], value.iloc[j], verdict):
                verdict.fault("needless", f"row {row}, option {j}: {fault}")
        for i, j in combinations(first, 2):
            for less, more in ((i, j), (j, i)):
                contains = (changed[less] <= changed[more]).all() and changed[less].sum() < changed[more].sum()
                contains = contains and same(raw[less], raw[more])[changed[less]].all()
                as_good = value["total"][less] <= value["total"][more] + TOLERANCE
                as_good = as_good and value["lacks"][less] <= value["lacks"][more]
                if contains and as_good and value["accepted"][less]:
                    verdict.fault("contained", f"row {row}: option {more} contains {less}, which is as good")

    def _needless(
        self, row: int, raw: np.ndarray, changed: np.ndarray, value: pd.Series, verdict: Verdict
    ) -> Iterator[str]:
        """What could be given back of one answer."""
        names = np.array(self.task.encoder.schema.names)
        sets = reverts(changed)
        if len(sets) == 0:
            return
        verdict.subsets += len(sets)
        found = self.snap(np.where(sets, self.found.own[row], raw), row)
        fewer = ~same(found, raw).all(axis=1)
        each = self.value(found, row)
        each["accepted"] |= each["met"] & (not value["accepted"])  # where it is on the very boundary itself
        less = changed.sum() - (~same(found, self.found.own[row]) & self.decided).sum(axis=1)
        worth = 0.0 if self.lenient else MIN_WORTH
        better = each["accepted"] & fewer & (each["total"] < value["total"] + worth * less - TOLERANCE)
        better &= each["lacks"] <= value["lacks"]
        if better.any():
            best = each["total"].where(better).idxmin()
            yield (
                f"{names[sets[best]].tolist()} of {names[changed].tolist()}: {value['total']:.5f} -> "
                f"{each['total'][best]:.5f}, {int(better.sum())} of {len(sets)}"
            )
        for_nothing = (
            fewer & each["accepted"] & (each["margin"] >= value["margin"]) & (each["energy"] <= value["energy"])
            & (each["lacks"] <= value["lacks"]) & (each["cost"] < value["cost"])
        )  # fmt: skip
        if for_nothing.any() and not better.any():
            yield f"{names[sets[for_nothing.idxmax()]].tolist()} of {names[changed].tolist()}: for nothing"


def reverts(changed: np.ndarray) -> np.ndarray:
    """(m, features) every set of a row's changes (features,) that can be reverted, but not all of them."""
    places = np.flatnonzero(changed)
    if not 2 <= len(places) <= MOST_CHANGES:
        return np.zeros((0, len(changed)), dtype=bool)
    bits = (np.arange(1, 2 ** len(places) - 1)[:, None] >> np.arange(len(places))) & 1
    sets = np.zeros((len(bits), len(changed)), dtype=bool)
    sets[:, places] = bits.astype(bool)
    return sets
