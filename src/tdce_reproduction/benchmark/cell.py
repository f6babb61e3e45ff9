"""One data set with one seed: it is fitted once, and all methods answer the same rows and are measured alike."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import torch

from tdce._core import Floats, InputError, Name, Progress, TrainingPlan
from tdce.datasets import Dataset, load, make_folder
from tdce.diffusion import TabularDiffusion
from tdce.explainer import Explainer, Fitted, MetricReference, learned_diffusion
from tdce.methods import Explanation, Method, Question, Status, Task, explain
from tdce.models import Class, Goals, Oracle
from tdce.schema import ConstraintSet, FeasibleSet
from tdce_reproduction.benchmark.fingerprint import fit_fingerprint
from tdce_reproduction.benchmark.settings import (
    ANY_YES_VARIANTS,
    OURS,
    POSITIONS,
    PRESETS,
    SEARCH_VARIANTS,
    plain_schema,
    table_name,
    tuned_method,
    wanted_safety,
)
from tdce_reproduction.benchmark.unchanged import Unchanged

OF_POSITIONS = (
    "sparsity", "gower", "l2", "im1_median", "im2_median", "held_out_distance", "instability", "js", "coherence",
    "validity",
)  # fmt: skip
"""The metrics that are kept for each position of the trade-off."""


class Cell(NamedTuple):
    """One method on one data set, masked or not, with one seed."""

    data: str
    method: str
    masked: str  # yes or no
    seed: int


class Measurement(NamedTuple):
    """The measurements of a cell."""

    cell: Cell
    metrics: dict[str, float]
    valid: Floats  # (rows,) 1 where the counterfactual is valid
    l2: Floats  # (rows,) squared distance over standardised numbers


@dataclass(frozen=True)
class Bench:
    """Everything that the methods share on one data set with one seed."""

    name: str
    seed: int
    rows: int  # maximum number of queries
    cache: Path | None = None  # a folder of fitted explainers
    part: Literal["validation", "test"] = "test"

    @cached_property
    def data(self) -> Dataset:
        return load(table_name(self.name), PRESETS.get(self.name, "full"), self.seed)

    @cached_property
    def fitted(self) -> Fitted:
        name = f"{self.name}-{self.seed}-{fit_fingerprint(self.name, self.explainer)}.tdce"
        path = None if self.cache is None else self.cache / name
        if path is not None and path.exists():
            with suppress(InputError):  # damaged or of another format: fit again
                return Explainer.load(path, progress="silent").fitted_
        explainer = self.explainer
        explainer.fit(
            self.data.part("train"), label=self.data.label, favourable=self.data.favourable,
            schema=plain_schema(self.name),
        )  # fmt: skip
        if path is not None:
            make_folder(path.parent)
            explainer.save(path)
        return explainer.fitted_

    @property
    def explainer(self) -> Explainer:
        """An unfitted explainer with default settings. It keeps its rows, which some methods and all metrics need."""
        return Explainer(seed=self.seed, keep_rows=True, progress="silent")

    @cached_property
    def target(self) -> int:
        return self.fitted.classes.index(self.data.favourable)

    @cached_property
    def queries(self) -> pd.DataFrame:
        """The rows for which the classifier does not predict the favourable class."""
        frame = self.data.part(self.part)
        predicted = Oracle(self.fitted.model).predict(self.fitted.encoder.read(frame))
        refused: pd.DataFrame = frame[(predicted != self.target).numpy()]
        return refused.head(self.rows)

    @cached_property
    def held_out(self) -> pd.DataFrame:
        """Rows that are neither training rows nor queries; test rows are among them only if the queries are."""
        unseen = self.data.part("validation")
        if self.part == "test":
            unseen = pd.concat([unseen, self.data.part("test")])
        return unseen.drop(index=self.queries.index)

    @cached_property
    def reference(self) -> MetricReference:
        fitted, held = self.fitted, self.held_out
        wanted = (held[self.data.label] == self.data.favourable).to_numpy(dtype=bool)
        return MetricReference.fit(
            fitted.encoder, fitted.raw, (fitted.y == self.target).numpy(), self.seed, fitted.encoder.read(held), wanted
        )

    @cached_property
    def neighbours(self) -> pd.DataFrame:
        """The nearest training row of each query, for the instability."""
        raw = self.reference.neighbours(self.fitted.encoder.read(self.queries), Oracle(self.fitted.model))
        return self.reference.frame(raw)

    def immutable(self, masked: str) -> tuple[Name, ...]:
        return (self.data.mask,) if masked == "yes" else ()

    def task(self, masked: str) -> Task:
        return self.fitted.task(self.immutable(masked))

    def explanation(
        self,
        method: Method,
        masked: str,
        frame: pd.DataFrame,
        along: tuple[float, ...] = (),
        safety: float | None = None,
    ) -> tuple[Explanation, FeasibleSet]:
        feasible = FeasibleSet.of(self.fitted.encoder, frame, self.immutable(masked))
        question = replace(self.question(), safety=safety)
        return explain(method, feasible, self.goals(len(frame)), question, along=along), feasible

    def goals(self, rows: int) -> Goals:
        return Goals.all(Class(self.target), rows)

    def question(self, n: int = 1) -> Question:
        return Question(n=n, seed=self.seed)

    def diffusion(self, tau: float) -> TabularDiffusion:
        """The table's diffusion model, retrained with the same temperature at all times."""
        frame, settings = self.data.part("train"), self.explainer
        x, y = self.fitted.encoder.encode(frame).float(), torch.from_numpy(self.fitted.class_numbers(frame))
        return learned_diffusion(
            self.fitted.encoder.space,
            x,
            y,
            settings.hidden,
            (tau, tau),
            TrainingPlan(steps=settings.steps),
            self.seed,
            Progress("silent"),
        )[0]

    def measure(self, cell: Cell, method: Method | None = None, task: Task | None = None) -> Measurement:
        """Fit the method, explain the queries and their neighbours, and compute every metric."""
        fitted_method = (method or tuned_method(cell.method, cell.data)).fit(task or self.task(cell.masked))
        safety, began = wanted_safety(cell.method), time.perf_counter()
        explanation, feasible = self.explanation(fitted_method, cell.masked, self.queries, safety=safety)
        seconds = time.perf_counter() - began
        of_neighbours, near = self.explanation(fitted_method, cell.masked, self.neighbours, safety=safety)
        over_all = isinstance(fitted_method, Unchanged)
        values = self.reference.measure(feasible, explanation, near.own, of_neighbours, over_all)
        values |= {"seconds": seconds, "contradictions": self.contradictions(feasible, explanation)}
        return self._measurement(cell, values, feasible, explanation)

    def measure_positions(self, cells: list[Cell]) -> Iterator[Measurement]:
        """Measure positions of the trade-off with one mask and wanted safety; one search answers all `POSITIONS`, for
        the queries and for their neighbours."""
        masked, safety = cells[0].masked, wanted_safety(cells[0].method)
        variants = SEARCH_VARIANTS if safety is None else ANY_YES_VARIANTS
        method = tuned_method(OURS, self.name).fit(self.task(masked))
        explanation, feasible = self.explanation(method, masked, self.queries, POSITIONS, safety)
        of_neighbours, near = self.explanation(method, masked, self.neighbours, POSITIONS, safety)
        for cell in cells:
            at = variants.index(cell.method)
            found, beside = explanation.option(at), of_neighbours.option(at)
            values = self.reference.measure(feasible, found, near.own, beside)
            kept = {metric: values[metric] for metric in OF_POSITIONS if metric in values}
            yield self._measurement(cell, kept, feasible, found)

    def _measurement(
        self, cell: Cell, values: dict[str, float], feasible: FeasibleSet, explanation: Explanation
    ) -> Measurement:
        values = values | {"rows": len(self.queries)}
        moved = self.reference.standardised(explanation.raw[:, 0]) - self.reference.standardised(feasible.own)
        valid = (explanation.status[:, 0] == Status.VALID).astype(np.float64)
        return Measurement(cell, values, valid, moved.square().sum(dim=1).numpy())

    def contradictions(self, feasible: FeasibleSet, explanation: Explanation) -> float:
        """The share of counterfactuals that break a law of the table; the methods do not know the laws here."""
        laws = ConstraintSet.hard(self.data.schema.laws, self.data.schema.features)
        return float(laws.broken(explanation.raw[:, 0], feasible.own).any(axis=1).mean())

    def seconds(self, method: Method, rows: int, repeats: int = 3) -> float:
        """Seconds of the fastest of several runs after a warm-up, for this many queries, with the process's threads."""
        fitted_method = method.fit(self.task("no"))
        frame = pd.concat([self.queries] * (-(-rows // len(self.queries)))).head(rows)
        self.explanation(fitted_method, "no", frame)
        return min(self._run_time(fitted_method, frame) for _ in range(repeats))

    def _run_time(self, fitted_method: Method, frame: pd.DataFrame) -> float:
        began = time.perf_counter()
        self.explanation(fitted_method, "no", frame)
        return time.perf_counter() - began


def measure_cells(data: str, seed: int, rows: int, cells: list[Cell], cache: Path) -> Iterator[Measurement]:
    """Measure the cells of one data set and seed, one after another, on one thread."""
    torch.set_num_threads(1)
    bench = Bench(data, seed, rows, cache)

    def searched_together(cell: Cell) -> tuple[str, float | None] | None:
        """A key shared by the positions that one search answers; None: the cell is not a position."""
        is_position = cell.method in SEARCH_VARIANTS + ANY_YES_VARIANTS
        return (cell.masked, wanted_safety(cell.method)) if is_position else None

    for positions, group in groupby(cells, key=searched_together):
        if positions is not None:
            yield from bench.measure_positions(list(group))
        else:
            yield from map(bench.measure, group)
