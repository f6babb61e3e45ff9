"""Our answers compared with those of NICE, DiCE and a forty-line baseline, for the same rows with the same metrics.

    TDCE_DATA=... python benchmarks/peers.py [--data adult,gmc,german] [--methods ...] [--rows 100] [--cache FOLDER]
                                             [--out results/peers.csv]

A model of scikit-learn or LightGBM is trained on the complete rows of a table (the peers do not handle missing values),
and 100 refused test rows are explained. Numbers may only take values of the table; there are no laws and no rules,
because the peers have none. Adult is without `final_weight`, which does not describe a person. Each peer runs in an
environment of its own (a venv in the cache, created when it is first needed) and queries the model through a pipe: this
process answers all queries and counts calls and rows. Seconds are processor time on one core, of the peer and of the
model.

All metrics are of the returned raw values. validity: the share that the model accepts. Of the valid ones: features
changed; gower: the mean change over features, relative to the range in the training table, a category 0 or 1; l2:
squared distance over standardised numbers, and its median, which a few extreme rows do not dominate; nearest: Gower's
distance to the nearest training row that the model accepts; outliers: the share that an isolation forest of the
training rows calls outliers, with categories as numbers, and one-hot (flags); unseen: the share with a number that is
not in the table. Of all answers: broken, the share that changes an immutable feature; sets: how many different sets of
features three options change. Seconds and rows are per 100 explained rows, without preparation; calls are the total.
Answers are saved in the cache and reused; remove those of tdce after a change of the method, and all of them after a
change of the tables or models. Results are written as they are measured.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from lightgbm import LGBMClassifier
from packages import PACKAGES, Effort, Question, answer
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import tdce
from tdce._core import Flags, Floats
from tdce.schema import Categorical, Encoder, Numeric, Schema

COLUMNS = ["data", "method", "metric", "value"]
SHOWN = (
    "validity", "features", "gower", "l2", "l2_median", "nearest", "outliers", "outliers_flags", "unseen", "broken",
    "sets", "seconds", "calls", "rows", "preparation_seconds", "preparation_rows",
)  # fmt: skip
WHOLE = ("calls", "rows", "preparation_rows")
OPTIONS = 3
TDCE = {"search": None, "search, closeness 1": 1.0} | {
    f"search, closeness {c}": c for c in (0.95, 0.9, 0.7, 0.68, 0.65, 0.5, 0.35)
}
METHODS = (*TDCE, "forty-line baseline", *PACKAGES)
ON_ADULT_ALONE = ("dice, genetic",)  # it takes all of its 20 seconds for nearly every person


class Setting(NamedTuple):
    model: Callable[[Schema], Any]
    immutable: tuple[str, ...]
    test: float  # share of the rows that nothing is learned from
    without: tuple[str, ...] = ()  # columns that are left out


def words(schema: Schema) -> list[str]:
    return [f.name for f in schema if isinstance(f, Categorical)]


def by_codes(schema: Schema, model: Any) -> Any:
    """Numbers as they are, categories as numbers, in the first columns."""
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(ColumnTransformer([("codes", codes, words(schema))], remainder="passthrough"), model)


def by_flags(schema: Schema, model: Any) -> Any:
    flags = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(ColumnTransformer([("flags", flags, words(schema))], remainder="passthrough"), model)


def histogram(schema: Schema) -> Any:
    return by_codes(
        schema, HistGradientBoostingClassifier(categorical_features=range(len(words(schema))), random_state=0)
    )


def lightgbm(schema: Schema) -> Any:
    return by_codes(schema, LGBMClassifier(random_state=0, n_jobs=1, deterministic=True, verbose=-1))


def forest(schema: Schema) -> Any:
    return by_flags(schema, RandomForestClassifier(200, min_samples_leaf=3, random_state=0))


SETTINGS = {
    "adult": Setting(histogram, ("age", "sex", "race"), 0.2, ("final_weight",)),
    "gmc": Setting(lightgbm, ("age",), 0.3),
    "german": Setting(forest, ("age", "personal_status", "foreign_worker"), 0.4),
}


class CountingModel:
    """The one model that all methods query; it counts calls and rows."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_ = model, model.classes_
        self.again()

    def again(self) -> None:
        self.calls, self.rows = 0, 0

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        self.calls, self.rows = self.calls + 1, self.rows + len(frame)
        return self.model.predict_proba(frame)

    def effort(self, began: float) -> Effort:
        """Since that processor time, and since it was last reset."""
        return Effort(time.process_time() - began, self.calls, self.rows)


@dataclass(frozen=True)
class Bench:
    """One table, a model of it, and the rows to explain."""

    name: str
    people: int

    @cached_property
    def setting(self) -> Setting:
        return SETTINGS[self.name]

    @cached_property
    def data(self) -> tdce.data.Dataset:
        return tdce.load(self.name)

    @cached_property
    def split(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Complete rows: those to learn from, and the others."""
        frame = self.data.frame.drop(columns=list(self.setting.without)).dropna()
        frame = frame.astype({name: "int64" for name in frame.columns if str(frame[name].dtype) == "Int64"})
        frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
        cut = round(self.setting.test * len(frame))
        return frame.iloc[cut:], frame.iloc[:cut]

    @cached_property
    def schema(self) -> Schema:
        """Numbers take the values of the training rows; no laws and no rules."""
        train = self.split[0]
        schema = Schema(Schema.infer(train, self.data.label, roles=False).features)
        for f in schema:
            if isinstance(f, Numeric):
                seen = np.setdiff1d(train[f.name].unique(), f.marks).astype(float)
                schema = schema.change(f.name, levels=tuple(seen.tolist()))
        return schema.freeze(*self.setting.immutable)

    @cached_property
    def encoder(self) -> Encoder:
        return Encoder.fit(self.split[0], self.schema)

    @cached_property
    def names(self) -> list[str]:
        return list(self.schema.names)

    @cached_property
    def numeric(self) -> Flags:
        return np.array([isinstance(f, Numeric) for f in self.schema])

    @cached_property
    def immutable(self) -> Flags:
        return np.array([f.immutable for f in self.schema])

    @cached_property
    def model(self) -> CountingModel:
        train = self.split[0]
        return CountingModel(self.setting.model(self.schema).fit(train[self.names], train[self.data.label]))

    @cached_property
    def favourable(self) -> int:
        return list(self.model.classes_).index(self.data.favourable)

    def frame(self, raw: Floats) -> pd.DataFrame:
        """(n, features) with numbers and words, as the model takes them."""
        cells = {}
        for f, values in zip(self.schema, raw.T, strict=True):
            numeric = isinstance(f, Numeric)
            cells[f.name] = values if numeric else np.array(f.categories, dtype=object)[values.astype(int)]
        return pd.DataFrame(cells)

    def scores(self, raw: Floats) -> Floats:
        return self.model.predict_proba(self.frame(raw))

    def accepts(self, raw: Floats) -> Flags:
        """(n,) whether the model accepts; not counted."""
        return self.model.model.predict_proba(self.frame(raw)).argmax(axis=1) == self.favourable

    @cached_property
    def train(self) -> Floats:
        return self.encoder.read(self.split[0])

    @cached_property
    def test(self) -> Floats:
        """The test rows whose categories are all known."""
        test = self.split[1]
        known = [test[f.name].isin(f.categories) for f in self.schema if isinstance(f, Categorical)]
        return self.encoder.read(test[np.logical_and.reduce(known)])

    @cached_property
    def queries(self) -> Floats:
        return self.test[~self.accepts(self.test)][: self.people]

    @cached_property
    def accepted(self) -> Floats:
        """Training rows that the model accepts."""
        return self.train[self.accepts(self.train)]

    def gower(self, raw: Floats, others: Floats) -> Floats:
        """(n, features) and (n or 1, features) -> (n,)"""
        apart = np.where(self.numeric, np.abs(raw - others) / self.spans, raw != others)
        return apart.mean(axis=1)

    @cached_property
    def spans(self) -> Floats:
        return np.where(self.numeric, np.ptp(self.train, axis=0), 1.0)

    @cached_property
    def fitted(self) -> tuple[tdce.Explainer, dict[str, float]]:
        """An explainer of the model, and the effort of fitting it."""
        explainer = tdce.Explainer(model=self.model, exact=True, progress="silent")  # rare values are seen ones, too
        with self.preparing() as prepared:
            explainer.fit(
                self.split[0],
                label=self.data.label,
                favourable=self.data.favourable,
                schema=self.schema,
                immutable=self.setting.immutable,
            )
        return explainer, prepared

    @contextmanager
    def preparing(self) -> Iterator[dict[str, float]]:
        """A mapping that is filled at the end: the seconds, and the rows that the model was queried for."""
        prepared: dict[str, float] = {}
        self.model.again()
        began = time.process_time()
        yield prepared
        prepared |= {"preparation_seconds": time.process_time() - began, "preparation_rows": self.model.rows}

    @cached_property
    def metrics(self) -> Metrics:
        return Metrics(self)


@dataclass(frozen=True)
class Answers:
    raw: Floats  # (people, options, features), missing where there is none
    effort: dict[str, float]

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, raw=self.raw, effort=json.dumps(self.effort))

    @classmethod
    def load(cls, path: Path) -> Answers:
        with np.load(path) as saved:
            return cls(saved["raw"], json.loads(str(saved["effort"])))


@dataclass(frozen=True)
class Metrics:
    bench: Bench

    @cached_property
    def flags(self) -> ColumnTransformer:
        """A flag for each category."""
        words = ("flags", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ~self.bench.numeric)
        return ColumnTransformer([words], remainder="passthrough").fit(self.bench.train)

    @cached_property
    def forests(self) -> tuple[IsolationForest, IsolationForest]:
        """Of categories as numbers, and of a flag for each, by which hardly any row is an outlier."""
        train = self.bench.train
        whole = (IsolationForest(random_state=0).fit(each) for each in (train, self.flags.transform(train)))
        return tuple(whole)

    def place(self, raw: Floats) -> dict[str, float]:
        """How near rows are to real ones."""
        bench, (by_codes, by_flags) = self.bench, self.forests
        nearest = [bench.gower(bench.accepted, row[None]).min() for row in raw]
        return {
            "nearest": float(np.mean(nearest)),
            "outliers": float((by_codes.predict(raw) == -1).mean()),
            "outliers_flags": float((by_flags.predict(self.flags.transform(raw)) == -1).mean()),
        }

    def measure(self, answers: Floats) -> dict[str, float]:
        """Of one answer per person (people, features)."""
        bench, own, there = self.bench, self.bench.queries, ~np.isnan(answers).any(axis=1)
        valid, moved = there.copy(), there[:, None] & (answers != own)
        valid[there] = bench.accepts(answers[there])
        deviation = np.where(bench.numeric, bench.train.std(axis=0), np.inf)
        seen = np.stack([among(values, known) for values, known in zip(answers.T, bench.train.T, strict=True)], axis=1)
        unseen = moved & ~seen
        good, its_own = answers[valid], own[valid]
        apart = (((good - its_own) / deviation) ** 2).sum(axis=1)
        return {
            "validity": float(valid.mean()),
            "features": float(moved[valid].sum(axis=1).mean()),
            "gower": float(bench.gower(good, its_own).mean()),
            "l2": float(apart.mean()),
            "l2_median": float(np.median(apart)),
            **self.place(good),
            "unseen": float(unseen.any(axis=1)[valid].mean()),
            "broken": float((moved & bench.immutable).any(axis=1)[there].mean()),
        }

    def sets(self, answers: Floats) -> float:
        """(people, options, features) -> how many different sets of features change, the mean over people."""
        there, counts = ~np.isnan(answers).any(axis=2), []
        valid = there.copy()
        valid[there] = self.bench.accepts(answers[there])
        for own, some in zip(self.bench.queries, (a[v] for a, v in zip(answers, valid, strict=True)), strict=True):
            counts.append(len(np.unique(some != own, axis=0)))
        return float(np.mean(counts))


def among(values: Floats, known: Floats) -> Flags:
    """(n,) which of the values are among those of a column; some peers round them to 32 bits."""
    levels = np.unique(known)
    at = np.searchsorted(levels, values).clip(1, max(len(levels) - 1, 1))
    near = np.stack([levels[at - 1], levels[at.clip(max=len(levels) - 1)]])
    return np.isclose(near, values, rtol=1e-6, atol=0).any(axis=0)


def by_tdce(bench: Bench, closeness: float | None, options: int) -> Answers:
    (explainer, prepared), rows = bench.fitted, bench.frame(bench.queries)
    whole = {f.name: "int64" for f in bench.schema if isinstance(f, Numeric) and f.step == 1}
    rows = rows.astype(whole)
    bench.model.again()
    began = time.process_time()
    answer = explainer.explain(rows, closeness=closeness, n=options)
    spent = bench.model.effort(began)
    raw = bench.encoder.read(answer.to_frame()).reshape(len(rows), options, -1)
    return Answers(raw, prepared | effort(bench, spent))


def by_package(bench: Bench, title: str, options: int, cache: Path) -> Answers:
    label = (bench.split[0][bench.data.label] == bench.data.favourable).to_numpy()
    asked = Question(
        bench.train, np.where(label, bench.favourable, 1 - bench.favourable), bench.queries, bench.numeric,
        bench.immutable, bench.favourable,
    )  # fmt: skip
    found = answer(title, asked, options, bench.scores, cache)
    prepared = {"preparation_seconds": found.preparation.seconds, "preparation_rows": found.preparation.rows}
    return Answers(found.raw, prepared | effort(bench, found.answering))


def by_forty_lines(bench: Bench, options: int) -> Answers:
    """The nearest accepted training rows, with the person's own immutable features; then features are reverted one
    after another, the farthest first."""
    own = np.repeat(bench.queries, options, axis=0)
    with bench.preparing() as prepared:
        accepted = bench.train[bench.scores(bench.train).argmax(axis=1) == bench.favourable]
    bench.model.again()
    began = time.process_time()
    near = [np.argsort(bench.gower(accepted, person[None]), kind="stable") for person in bench.queries]
    turn = np.tile(np.arange(options), len(near))  # whose turn it is among the nearest of each person
    raw, wanting = np.full_like(own, np.nan), np.arange(len(own))
    while len(wanting):
        theirs = accepted[[near[i // options][turn[i]] for i in wanting]]
        asked = np.where(bench.immutable, own[wanting], theirs)
        good = bench.scores(asked).argmax(axis=1) == bench.favourable
        raw[wanting[good]] = asked[good]
        wanting = wanting[~good]
        turn[wanting] += options
        wanting = wanting[turn[wanting] < len(accepted)]
    going = np.flatnonzero(~np.isnan(raw).any(axis=1))
    while len(going):
        who, feature = np.nonzero(raw[going] != own[going])
        less = raw[going[who]]
        less[np.arange(len(who)), feature] = own[going[who], feature]
        good = bench.scores(less).argmax(axis=1) == bench.favourable
        left = bench.gower(less, own[going[who]])
        order = np.lexsort((left, who))
        order = order[good[order]]
        whose, first = np.unique(who[order], return_index=True)
        raw[going[whose]] = less[order[first]]
        going = going[whose]
    spent = bench.model.effort(began)
    return Answers(raw.reshape(len(bench.queries), options, -1), prepared | effort(bench, spent))


def effort(bench: Bench, spent: Effort) -> dict[str, float]:
    """Seconds and rows per 100 people."""
    share = 100 / len(bench.queries)
    return {"seconds": share * spent.seconds, "calls": spent.calls, "rows": share * spent.rows}


def answers_of(bench: Bench, method: str, options: int, cache: Path) -> Answers:
    """A method's answers, from the cache if they are there."""
    path = cache / "answers" / f"{bench.name}, {method}, {options} of {len(bench.queries)}.npz"
    if path.exists():
        return Answers.load(path)
    if method in TDCE:
        answers = by_tdce(bench, TDCE[method], options)
    elif method in PACKAGES:
        answers = by_package(bench, method, options, cache)
    else:
        answers = by_forty_lines(bench, options)
    answers.save(path)
    return answers


def measured(bench: Bench, methods: list[str], cache: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Each method, and its metrics."""
    tests = {"the refused rows": bench.queries, "accepted test rows": bench.test[bench.accepts(bench.test)][:1000]}
    for name, rows in tests.items():
        yield name, bench.metrics.place(rows) | {"people": len(rows)}
    for method in methods:
        answers = answers_of(bench, method, 1, cache)
        values = bench.metrics.measure(answers.raw[:, 0]) | answers.effort | {"people": len(bench.queries)}
        if not method.startswith("nice"):  # it gives one answer only
            values["sets"] = bench.metrics.sets(answers_of(bench, method, OPTIONS, cache).raw)
        yield method, values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(SETTINGS))
    parser.add_argument("--methods", default=";".join(METHODS), help="with ; between them")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted/peers"))
    parser.add_argument("--out", type=Path, default=Path("results/peers.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out, Path("docs/models.md"))
        return
    torch.set_num_threads(1)
    rows = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    for data in asked.data.split(","):
        methods = [each for each in asked.methods.split(";") if data == "adult" or each not in ON_ADULT_ALONE]
        for method, values in measured(Bench(data, asked.rows), methods, asked.cache):
            old = (rows["data"] == data) & (rows["method"] == method)
            new = pd.DataFrame([(data, method, *each) for each in values.items()], columns=COLUMNS)
            rows = pd.concat([rows[~old], new], ignore_index=True)
            rows.to_csv(asked.out, index=False)
    print(markdown(rows))


def write_docs(results: Path, page: Path) -> None:
    put(page, peers=markdown(pd.read_csv(results)))


def markdown(rows: pd.DataFrame) -> str:
    lines = [f"| data | method | {' | '.join(SHOWN)} |".replace("_", " "), "|---" * (2 + len(SHOWN)) + "|"]
    for (data, method), part in rows.groupby(["data", "method"], sort=False):
        value = part.set_index("metric")["value"]
        cells = [f"{round(value[m], 9):,.{0 if m in WHOLE else 3}f}" if m in value else "" for m in SHOWN]
        lines.append(f"| {data} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
