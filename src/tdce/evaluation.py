"""Measure an explanation: the data, autoencoders and neighbours that the metrics need, shared by all methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce import metrics
from tdce.answer import Answer
from tdce.cells import Flags, Floats
from tdce.encoder import Encoder
from tdce.errors import InputError, listing
from tdce.explainer import Explainer
from tdce.explaining import explain
from tdce.explanation import Explanation, Question, Status
from tdce.judge import Judge
from tdce.limits import Limits
from tdce.models.autoencoder import Autoencoder

EDITION = 1  # raised when the same counterfactuals come to be measured differently

PAPER = ("l2", "diversity", "instability", "js", "im1", "im2", "validity")
"""The paper's metrics, in the order of its tables."""

MEANING = {
    "l2": ("low", "how far the numbers moved: squared distance, standardised"),
    "diversity": ("high", "how varied the counterfactuals are: half their mean distance"),
    "instability": ("low", "how much the answer for the nearest similar row differs"),
    "js": ("low", "how far the categories are from those of the target class, in bits"),
    "im1": ("low", "error of the target class's autoencoder over that of the original class's (mean; heavy tail)"),
    "im2": ("low", "gap between the autoencoders of the target class and of the whole data"),
    "validity": ("high", "share of rows that the model then puts in the target class"),
    "im1_median": ("low", "im1 of the median row"),
    "im2_median": ("low", "im2 of the median row"),
    "sparsity": ("low", "number of features changed"),
    "realism": ("low", "distance to the nearest real row of the target class"),
    "copies": ("low", "share of counterfactuals that are identical to a training row"),
    "violations": ("low", "share of rows that break a constraint"),
    "option_spread": ("high", "how much a row's options differ in the features they change: 1 minus their overlap"),
}
"""Each metric's good direction and its meaning."""


def evaluate(explainer: Explainer, answer: Answer) -> dict[str, float]:
    """The paper's metrics and some more (docs/metrics.md), over the first option of every row that needed one.

    `explainer` is the one that gave the answer. The first call trains three small autoencoders per target class; every
    call also explains the nearest training rows, for the instability.
    """
    fitted, question = explainer.fitted, answer.question
    if fitted.encoder.schema.names != answer.features:
        raise InputError(f"the answer is about other columns ({listing(answer.features)}) than this explainer "
                         f"({listing(fitted.encoder.schema.names)}); give the explainer that made it")  # fmt: skip
    task = fitted.task(answer.immutable)
    task.require_rows("evaluate")
    method = explainer.chosen_method.fit(task)
    limits = Limits.of(fitted.encoder, answer.rows, answer.immutable)
    wanted = question.goals.towards(task.judge.score(limits.own))
    groups = []
    for target in sorted(set(wanted.tolist())):
        yardstick = _yardstick(explainer, target)
        of_target = wanted == target
        at = of_target.numpy()
        near = Limits.of(
            fitted.encoder, yardstick.frame(yardstick.neighbours(limits.own[at], task.judge)), answer.immutable
        )
        again = Question(question.goals.take(of_target), 1, question.seed, question.closeness)
        found_near = explain(method, near, again)
        groups.append((at.sum(), yardstick.measure(limits.take(at), answer.found.take(at), near.own, found_near)))
    groups = [(rows, measured) for rows, measured in groups if measured]
    total = sum(rows for rows, _ in groups)
    return {k: sum(rows * m[k] for rows, m in groups) / total for k in (groups[0][1] if groups else {})}


def _yardstick(explainer: Explainer, target: int) -> Yardstick:
    """Learned when first needed, and kept with what the explainer learned."""
    fitted, key = explainer.fitted, ("yardstick", target, explainer.seed)
    if key not in fitted.memo:
        fitted.memo[key] = Yardstick.fit(fitted.encoder, fitted.raw, (fitted.y == target).numpy(), explainer.seed)
    made: Yardstick = fitted.memo[key]
    return made


@dataclass(frozen=True)
class Yardstick:
    """What counterfactuals towards one class are measured against; learned once and used for every method."""

    encoder: Encoder
    raw: Floats  # (rows, features) the training rows
    target: Flags  # (rows,) which of them are of the target class
    of_target: Autoencoder
    of_origin: Autoencoder
    of_all: Autoencoder

    @classmethod
    def fit(cls, encoder: Encoder, raw: Floats, target: Flags, seed: int = 0) -> Self:
        """Train the three autoencoders; their bottleneck has half as many numbers as there are features."""
        if target.all() or not target.any():
            raise InputError(
                f"{'all' if target.all() else 'none'} of the {len(target)} training rows are of the target class; "
                "measuring needs some that are and some that are not: fit on a table with more rows of both"
            )
        x = encoder.embed(raw).float()

        def learned(rows: Tensor) -> Autoencoder:
            made = Autoencoder(x.shape[1], max(1, len(encoder.schema) // 2), seed=seed)
            made.fit(rows, seed)
            return made

        return cls(encoder, raw, target, learned(x[target]), learned(x[~target]), learned(x))

    def standardised(self, raw: Floats) -> Tensor:
        """(n, num) numbers minus their mean, over their deviation; a missing one is at the mean, one far out is where
        the encoding ends."""
        columns = [i for i, column in enumerate(self.encoder.schema) if column.numbers]
        low, high = np.array([self.encoder.columns[i].ends for i in columns]).reshape(-1, 2).T
        mean, deviation = np.nanmean(self.raw[:, columns], axis=0), np.nanstd(self.raw[:, columns], axis=0)
        scaled = (raw[:, columns].clip(low, high) - mean) / np.where(deviation > 0, deviation, 1.0)
        return torch.from_numpy(np.nan_to_num(scaled))

    def whole(self, raw: Floats) -> Tensor:
        """(n, width) standardised numbers and one-hot categories: where distances over all features are taken."""
        return torch.cat([self.standardised(raw), self.encoder.space.split(self.encoder.embed(raw))[1]], dim=1)

    def neighbours(self, raw: Floats, judge: Judge) -> Floats:
        """For each query the nearest other training row that the model puts in the same class."""
        own, theirs = (judge.predict(rows).numpy() for rows in (raw, self.raw))
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

    def measure(self, limits: Limits, found: Explanation, near: Floats, found_near: Explanation) -> dict[str, float]:
        """All metrics of the first option of each row that was not in the target class already."""
        asked = found.status[:, 0] != Status.ALREADY
        raw, raw_cf = limits.own[asked], found.raw[asked, 0]
        if len(raw) == 0:
            return {}
        x, x_cf, x_near, x_near_cf = map(self.standardised, (raw, raw_cf, near[asked], found_near.raw[asked, 0]))
        encoded = self.encoder.embed(raw_cf).float()
        im1 = metrics.im1(encoded, self.of_target, self.of_origin)
        im2 = metrics.im2(encoded, self.of_target, self.of_all)
        several = found.raw.shape[1] > 1
        return {
            "l2": metrics.l2(x, x_cf),
            "diversity": metrics.diversity(x_cf),
            "instability": metrics.instability(x, x_near, x_cf, x_near_cf),
            "js": metrics.js(self.encoder.space, encoded, self.encoder.embed(self.raw[self.target])),
            "im1": im1.mean().item(),
            "im2": im2.mean().item(),
            "validity": metrics.validity(found.status[asked, 0] == Status.VALID),
            "im1_median": im1.median().item(),
            "im2_median": im2.median().item(),
            "sparsity": metrics.sparsity(raw, raw_cf),
            "realism": metrics.realism(self.whole(raw_cf), self.whole(self.raw[self.target])),
            "copies": metrics.copies(raw_cf, self.raw),
            "violations": float((~limits.kept(found.raw[:, 0]))[asked].mean()),
        } | ({"option_spread": metrics.option_spread(raw, found.raw[asked])} if several else {})
