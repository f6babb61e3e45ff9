"""The evaluation of an answer by the paper's metrics and others."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch

from tdce._core import Floats, InputError, Positions, check_integer, listing
from tdce.explainer.answer import Answer
from tdce.explainer.fitted import Fitted
from tdce.explainer.fitting import split_rows
from tdce.explainer.metric_reference import MetricReference
from tdce.explainer.plans import TrainingPlans
from tdce.methods import Explanation, Method, Status, explain
from tdce.metrics import MEANING
from tdce.models import Ensemble, Oracle
from tdce.schema import FeasibleSet

UNSEEN_SEED = 100_001  # seed of retrained models that no answer was made to convince
EDITION = 5  # raised whenever the same counterfactuals would be measured differently

PAPER = ("l2", "diversity", "instability", "js", "im1", "im2", "validity")
"""The paper's metrics, in the order of its tables."""

OVER_ALL = ("validity", "violations")
"""Metrics over all rows that needed an answer; the others are over those that became valid."""


class Evaluated(Protocol):
    """What an evaluation needs of an explainer."""

    seed: int

    @property
    def _plans(self) -> TrainingPlans: ...
    @property
    def fitted(self) -> Fitted: ...
    @property
    def chosen_method(self) -> Method: ...
    def retrain(self, table: pd.DataFrame, *, models: int = 10, seed: int = 1) -> Ensemble: ...


def evaluate(
    explainer: Evaluated, answer: Answer, table: pd.DataFrame | None = None, retrain: int = 0
) -> dict[str, float]:
    """The paper's metrics and others (docs/metrics.md), over the first option of every row that needed one: validity
    and violations over all of these, everything else over those that became valid.

    `explainer` is the one that gave the answer. `table` has real rows with the label column. If it has as many rows as
    the table given to `fit`, it is taken to be that table, in the same order, and is split into learned and held-out
    rows as before. Any other table serves as both. Without a table, the explainer's training rows are used, or its
    synthetic rows if it was loaded without training rows, and the metrics of held-out rows are left out. If the user
    brought the model, the classes are its predictions, and the table needs no label.

    `retrain` is the number of models to retrain on the table (`Explainer.retrain`); the metric `retrained` is then the
    share of valid answers that such a model still accepts.

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
    wanted = answer.goals.target_class(task.oracle.score(feasible.own))
    groups = []
    for target in sorted(set(wanted.tolist())):
        reference = _reference(explainer, target, rows)
        of_target = wanted == target
        at = of_target.numpy()
        beside = reference.frame(reference.neighbours(feasible.own[at], task.oracle))
        near = FeasibleSet.of(fitted.encoder, beside, answer.immutable, question.rules)
        near_cf = explain(method, near, answer.goals.take(of_target), replace(question, n=1))
        explanation = answer.explanation.take(at)
        groups.append((explanation, reference.measure(feasible.take(at), explanation, near.own, near_cf)))
    values = _together(groups)
    valid = answer.explanation.status[:, 0] == Status.VALID
    if retrain and table is not None and valid.any():
        ensemble = explainer.retrain(table, models=retrain, seed=UNSEEN_SEED)
        accepting = ensemble.votes(answer.explanation.raw[valid, 0], answer.goals.take(torch.from_numpy(valid)))
        values["retrained"] = float(accepting.double().mean()) / retrain
    return values


class Rows(NamedTuple):
    """Rows to measure against: learned or synthetic ones, and real ones that were held out."""

    raw: Floats  # (rows, features)
    y: Positions  # (rows,) class numbers
    held: Floats  # (held-out rows, features)
    held_y: Positions


def _rows_of(explainer: Evaluated, table: pd.DataFrame | None) -> Rows:
    """The rows to measure against: the table's, or else the explainer's training rows, or else synthetic rows with the
    classes that the model predicts."""
    fitted = explainer.fitted
    if table is None:
        raw, y = fitted.raw, fitted.y.numpy()
        if len(raw) == 0:
            raw, y = fitted.synthetic, Oracle(fitted.model).predict(fitted.synthetic).numpy()
        return Rows(raw, y, raw[:0], y[:0])
    raw = fitted.encoder.read(table)
    y = Oracle(fitted.model).predict(raw).numpy() if fitted.classifier is None else fitted.class_numbers(table)
    raw = fitted.encoder.nearest_known(raw)  # pooled as in `fit`
    if len(raw) != fitted.report["rows"]:
        return Rows(raw, y, raw, y)
    learned, stopping, test = (part.numpy() for part in split_rows(len(raw), fitted.report["seed"]))
    held = np.setdiff1d(np.union1d(stopping, test), learned)  # empty for a tiny table, which is learned whole
    return Rows(raw[learned], y[learned], raw[held], y[held])


def _reference(explainer: Evaluated, target: int, rows: Rows) -> MetricReference:
    """The reference for a target class, fitted when first needed and cached with the fitted explainer."""
    fitted = explainer.fitted
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in rows)).digest()
    key = ("metric reference", target, explainer.seed, digest)
    if key not in fitted.memo:
        fitted.memo[key] = MetricReference.fit(
            fitted.encoder, rows.raw, rows.y == target, explainer.seed, rows.held, rows.held_y == target,
            explainer._plans.autoencoder,
        )  # fmt: skip
    reference: MetricReference = fitted.memo[key]
    return reference


def _together(groups: list[tuple[Explanation, dict[str, float]]]) -> dict[str, float]:
    """The metrics of all rows: the mean over target classes, weighted by the number of rows behind each value."""
    out = {}
    for name in MEANING:
        parts = [(_count(explanation, name), values[name]) for explanation, values in groups if name in values]
        if parts:
            out[name] = sum(rows * value for rows, value in parts) / sum(rows for rows, _ in parts)
    return out


def _count(explanation: Explanation, metric: str) -> int:
    searched = (
        explanation.status[:, 0] != Status.ALREADY if metric in OVER_ALL else explanation.status[:, 0] == Status.VALID
    )
    return int(searched.sum())
