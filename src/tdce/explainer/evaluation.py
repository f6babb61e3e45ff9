"""Measure an explanation: the data, autoencoders and neighbours that the metrics need, shared by all methods."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce import metrics
from tdce._core import Flags, Floats, InputError, Positions, check_integer, listing
from tdce.explainer.answer import Answer
from tdce.explainer.autoencoder import Autoencoder
from tdce.explainer.fitting import Fitted, parts
from tdce.methods import Explanation, Method, Status, explain
from tdce.metrics import MEANING
from tdce.models import Ensemble, Oracle
from tdce.schema import Encoder, FeasibleSet

UNSEEN_SEED = 100_001  # of models that no answer was asked to convince
EDITION = 4  # raised when the same counterfactuals come to be measured differently

PAPER = ("l2", "diversity", "instability", "js", "im1", "im2", "validity")
"""The paper's metrics, in the order of its tables."""

OVER_ALL = ("validity", "violations")
"""Taken over all rows that needed an answer; the others over those that became valid."""


class BlockWorker(Protocol):
    """What measuring needs of an explainer."""

    seed: int

    @property
    def fitted(self) -> Fitted: ...
    @property
    def chosen_method(self) -> Method: ...
    def retrain(self, table: pd.DataFrame, models: int = 10, seed: int = 1) -> Ensemble: ...


def evaluate(
    explainer: BlockWorker, answer: Answer, table: pd.DataFrame | None = None, retrain: int = 0
) -> dict[str, float]:
    """The paper's metrics and some more (docs/metrics.md), over the first option of every row that needed one: validity
    and violations over all of these, everything else over those that became valid.

    `explainer` is the one that gave the answer. `table` has real rows with the label column. If it has as many rows as
    `fit` was given, it is taken for that table, in the same order: the rows that were learned and those that were held
    out are found again. Any other table serves as both. Without a table, the training rows that the explainer holds
    are used, or its synthetic people if it was loaded without training rows; the metrics of held-out rows are left out.
    Of a model that the user brought, the target class is what the model says, and there need be no label.

    With `retrain`, so many models are trained again on rows drawn from the table (`Explainer.retrain`), and `retrained`
    is the share of the valid answers that such a model still accepts.

    The first call trains three small autoencoders per target class; every call also explains the nearest training
    rows, for the instability.
    """
    fitted, question, retrain = explainer.fitted, answer.question, check_integer("retrain", retrain, 0, 1000)
    if retrain and table is None:
        raise InputError("retrain trains models again, which takes the table that was learned; give it, too")
    if fitted.encoder.schema.names != answer.features:
        raise InputError(f"the answer is about other columns ({listing(answer.features)}) than this explainer "
                         f"({listing(fitted.encoder.schema.names)}); give the explainer that made it")  # fmt: skip
    rows = _rows_of(explainer, table)
    task = fitted.task(answer.immutable)
    method = explainer.chosen_method.fit(task)
    feasible = FeasibleSet.of(fitted.encoder, answer.rows, answer.immutable, question.rules)
    wanted = question.goals.towards(task.oracle.score(feasible.own))
    groups = []
    for target in sorted(set(wanted.tolist())):
        yardstick = _yardstick(explainer, target, rows)
        of_target = wanted == target
        at = of_target.numpy()
        beside = yardstick.frame(yardstick.neighbours(feasible.own[at], task.oracle))
        near = FeasibleSet.of(fitted.encoder, beside, answer.immutable, question.rules)
        again = replace(question, goals=question.goals.take(of_target), options=1)
        found, found_near = answer.explanation.take(at), explain(method, near, again)
        groups.append((found, yardstick.measure(feasible.take(at), found, near.own, found_near)))
    measured = _together(groups)
    valid = answer.explanation.status[:, 0] == Status.VALID
    if retrain and table is not None and valid.any():
        ensemble = explainer.retrain(table, retrain, UNSEEN_SEED)
        accepting = ensemble.accepting(answer.explanation.raw[valid, 0], question.goals.take(torch.from_numpy(valid)))
        measured["retrained"] = float(accepting.double().mean()) / retrain
    return measured


class Rows(NamedTuple):
    """Those that were learned, or synthetic ones, and real ones that were not learned."""

    raw: Floats  # (rows, features)
    y: Positions  # (rows,) class numbers
    held: Floats  # (held-out rows, features)
    held_y: Positions


def _rows_of(explainer: BlockWorker, table: pd.DataFrame | None) -> Rows:
    """What to measure against: the table's rows, or else those that the explainer holds, or else synthetic people with
    the classes that the model gives them."""
    fitted = explainer.fitted
    if table is None:
        raw, y = fitted.raw, fitted.y.numpy()
        if len(raw) == 0:
            raw, y = fitted.synthetic, Oracle(fitted.model).predict(fitted.synthetic).numpy()
        return Rows(raw, y, raw[:0], y[:0])
    raw = fitted.encoder.read(table)
    y = Oracle(fitted.model).predict(raw).numpy() if fitted.classifier is None else fitted.class_numbers(table)
    if len(raw) != fitted.report["rows"]:
        return Rows(raw, y, raw, y)
    learned, stopping, test = (part.numpy() for part in parts(len(raw), fitted.report["seed"]))
    held = np.union1d(stopping, test)
    return Rows(raw[learned], y[learned], raw[held], y[held])


def _yardstick(explainer: BlockWorker, target: int, rows: Rows) -> MetricReference:
    """Learned when first needed, and kept with what the explainer learned."""
    fitted = explainer.fitted
    known = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in rows)).digest()
    key = ("yardstick", target, explainer.seed, known)
    if key not in fitted.memo:
        fitted.memo[key] = MetricReference.fit(
            fitted.encoder, rows.raw, rows.y == target, explainer.seed, rows.held, rows.held_y == target
        )
    made: MetricReference = fitted.memo[key]
    return made


def _together(groups: list[tuple[Explanation, dict[str, float]]]) -> dict[str, float]:
    """The metrics of all rows from those of each target class, by the number of rows that each was taken over."""
    out = {}
    for name in MEANING:
        parts = [(_counted(found, name), values[name]) for found, values in groups if name in values]
        if parts:
            out[name] = sum(rows * value for rows, value in parts) / sum(rows for rows, _ in parts)
    return out


def _counted(found: Explanation, metric: str) -> int:
    asked = found.status[:, 0] != Status.ALREADY if metric in OVER_ALL else found.status[:, 0] == Status.VALID
    return int(asked.sum())


@dataclass(frozen=True)
class MetricReference:
    """What counterfactuals towards one class are measured against; learned once and used for every method."""

    encoder: Encoder
    raw: Floats  # (rows, features) the training rows
    target: Flags  # (rows,) which of them are of the target class
    of_target: Autoencoder
    of_origin: Autoencoder
    of_all: Autoencoder
    held: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (held-out rows, features); there may be none
    held_target: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))  # which of them are of the target class

    @classmethod
    def fit(
        cls,
        encoder: Encoder,
        raw: Floats,
        target: Flags,
        seed: int = 0,
        held: Floats | None = None,
        held_target: Flags | None = None,
    ) -> Self:
        """Train the three autoencoders; their bottleneck has half as many numbers as there are features."""
        if target.all() or not target.any():
            raise InputError(
                f"{'all' if target.all() else 'none'} of the {len(target)} rows are of the target class; "
                "measuring needs some that are and some that are not: fit on a table with more rows of both"
            )
        x = encoder.embed(raw).float()

        def learned(rows: Tensor) -> Autoencoder:
            made = Autoencoder(x.shape[1], max(1, len(encoder.schema) // 2), seed=seed)
            made.fit(rows, seed)
            return made

        trained = learned(x[target]), learned(x[~target]), learned(x)
        if held is None or held_target is None:
            return cls(encoder, raw, target, *trained)
        return cls(encoder, raw, target, *trained, held, held_target)

    @property
    def numeric(self) -> Flags:
        """(features,) which of them are numbers."""
        return np.array([column.numbers > 0 for column in self.encoder.schema])

    @cached_property
    def numbers(self) -> Floats:
        """(rows, features) the training rows with marks as missing."""
        return self.encoder.unmarked(self.raw)

    def standardised(self, raw: Floats) -> Tensor:
        """(n, num) numbers minus their mean, over their deviation; a missing one and a mark are at the mean, one far
        out is where the encoding ends."""
        columns = [i for i, column in enumerate(self.encoder.schema) if column.numbers]
        low, high = np.array([self.encoder.columns[i].ends for i in columns]).reshape(-1, 2).T
        learned, raw = self.numbers[:, columns], self.encoder.unmarked(raw)[:, columns]
        mean, deviation = np.nanmean(learned, axis=0), np.nanstd(learned, axis=0)
        scaled = (raw.clip(low, high) - mean) / np.where(deviation > 0, deviation, 1.0)
        return torch.from_numpy(np.nan_to_num(scaled))

    def whole(self, raw: Floats) -> Tensor:
        """(n, width) standardised numbers and one-hot categories: where distances over all features are taken."""
        return torch.cat([self.standardised(raw), self.encoder.space.split(self.encoder.embed(raw))[1]], dim=1)

    def neighbours(self, raw: Floats, oracle: Oracle) -> Floats:
        """For each query the nearest other training row that the model puts in the same class."""
        own, theirs = (oracle.predict(rows).numpy() for rows in (raw, self.raw))
        points, rows = self.whole(raw), self.whole(self.raw)
        near = np.empty_like(raw)
        for k in np.unique(own):  # a loop over classes
            asked, among = own == k, np.flatnonzero(theirs == k)
            if len(among) == 0:
                near[asked] = raw[asked]
                continue
            index = among[metrics.nearest_rows(points[asked], rows[among], k=2)[1].numpy()]
            itself = (rows[index[:, 0]] == points[asked]).all(dim=1).numpy()
            near[asked] = self.raw[np.where(itself, index[:, -1], index[:, 0])]
        return near

    def frame(self, raw: Floats) -> pd.DataFrame:
        return self.encoder.write(raw, pd.DataFrame(index=range(len(raw))))

    def measure(
        self, feasible: FeasibleSet, found: Explanation, near: Floats, found_near: Explanation
    ) -> dict[str, float]:
        """All metrics of the first option of each row that was not in the target class already: `validity` and
        `violations` of all of them, the others of those that became valid."""
        status = found.status[:, 0]
        asked, valid = status != Status.ALREADY, status == Status.VALID
        if not asked.any():
            return {}
        values = {
            "validity": metrics.validity(valid[asked]),
            "violations": float((~feasible.kept(found.raw[:, 0]))[asked].mean()),
        }
        plausible = found.plausibility[valid, 0]
        if valid.any() and not np.isnan(plausible).any():
            values["plausibility"] = float(plausible.mean())
        if valid.any():
            values |= self._quality(feasible.own[valid], found.raw[valid], near[valid], found_near.raw[valid, 0])
        return {name: values[name] for name in MEANING if name in values}

    def _quality(self, raw: Floats, options: Floats, near: Floats, near_cf: Floats) -> dict[str, float]:
        """Of rows that became valid; `options` is (rows, options, features)."""
        raw_cf = options[:, 0]
        x, x_cf, x_near, x_near_cf = map(self.standardised, (raw, raw_cf, near, near_cf))
        encoded, whole = self.encoder.embed(raw_cf).float(), self.whole(raw_cf)
        im1 = metrics.im1(encoded, self.of_target, self.of_origin)
        im2 = metrics.im2(encoded, self.of_target, self.of_all)
        values = {
            "l2": metrics.l2(x, x_cf),
            "diversity": metrics.diversity(x_cf),
            "instability": metrics.instability(x, x_near, x_cf, x_near_cf),
            "js": metrics.js(self.encoder.space, encoded, self.encoder.embed(self.raw[self.target])),
            "im1": im1.mean().item(),
            "im2": im2.mean().item(),
            "im1_median": im1.median().item(),
            "im2_median": im2.median().item(),
            "sparsity": metrics.sparsity(raw, raw_cf),
            "gower": metrics.gower(raw, raw_cf, self.numeric & self._graded(raw, raw_cf), self.numbers),
            "realism": metrics.realism(whole, self.whole(self.raw[self.target])),
            "copies": metrics.copies(raw_cf, self.raw),
        }
        if options.shape[1] > 1:
            values["option_spread"] = metrics.option_spread(raw, options)
        return values | self._against_held_out(raw_cf, whole)

    def _graded(self, raw: Floats, raw_cf: Floats) -> Flags:
        """(n, features) where neither is missing or a mark: how far it went can be said."""
        return ~np.isnan(self.encoder.unmarked(raw)) & ~np.isnan(self.encoder.unmarked(raw_cf))

    def _against_held_out(self, raw_cf: Floats, whole: Tensor) -> dict[str, float]:
        """Left out where there are no held-out rows of the target class, or too few."""
        real = self.held[self.held_target]
        if len(real) == 0:
            return {}
        values = {
            "held_out_distance": metrics.held_out_distance(whole, self.whole(real)),
            "coherence": metrics.coherence(self.encoder.unmarked(raw_cf), self.encoder.unmarked(real), self.numeric),
        }
        if min(len(real), len(raw_cf)) >= metrics.FEWEST:
            values["two_sample"] = metrics.two_sample(whole, self.whole(real))
        return values
