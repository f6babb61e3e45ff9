"""What counterfactuals towards one class are measured against: rows, autoencoders and neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce import metrics
from tdce._core import Flags, Floats, InputError, TrainingPlan
from tdce.explainer.autoencoder import Autoencoder
from tdce.explainer.plans import TrainingPlans
from tdce.methods import Explanation, Status
from tdce.metrics import MEANING
from tdce.models import Oracle
from tdce.schema import Encoder, FeasibleSet


@dataclass(frozen=True)
class MetricReference:
    """What counterfactuals towards one class are measured against; fitted once and used for every method."""

    encoder: Encoder
    raw: Floats  # (rows, features) the training rows
    target: Flags  # (rows,) which are of the target class
    of_target: Autoencoder
    of_origin: Autoencoder
    of_all: Autoencoder
    held: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (held-out rows, features); may be empty
    held_target: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))  # which are of the target class

    @classmethod
    def fit(
        cls,
        encoder: Encoder,
        raw: Floats,
        target: Flags,
        seed: int = 0,
        held: Floats | None = None,
        held_target: Flags | None = None,
        plan: TrainingPlan | None = None,
    ) -> Self:
        """Train the three autoencoders, with a bottleneck half as wide as there are features."""
        if target.all() or not target.any():
            raise InputError(
                f"{'all' if target.all() else 'none'} of the {len(target)} rows are of the target class; "
                "measuring needs some that are and some that are not: fit on a table with more rows of both"
            )
        x = encoder.embed(raw).float()

        def train(rows: Tensor) -> Autoencoder:
            autoencoder = Autoencoder(x.shape[1], max(1, len(encoder.schema) // 2), seed=seed)
            autoencoder.fit(rows, seed, plan or TrainingPlans().autoencoder)
            return autoencoder

        trained = train(x[target]), train(x[~target]), train(x)
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
        return self.encoder.marks_as_missing(self.raw)

    def standardised(self, raw: Floats) -> Tensor:
        """(n, num) numbers minus their mean, over their standard deviation. A missing value or a mark takes the mean; a
        number beyond the ends of the encoding is clipped to them."""
        columns = [i for i, column in enumerate(self.encoder.schema) if column.numbers]
        low, high = np.array([self.encoder.columns[i].ends for i in columns]).reshape(-1, 2).T
        learned, raw = self.numbers[:, columns], self.encoder.marks_as_missing(raw)[:, columns]
        mean, deviation = np.nanmean(learned, axis=0), np.nanstd(learned, axis=0)
        scaled = (raw.clip(low, high) - mean) / np.where(deviation > 0, deviation, 1.0)
        return torch.from_numpy(np.nan_to_num(scaled))

    def whole(self, raw: Floats) -> Tensor:
        """(n, width) standardised numbers and one-hot categories: the space of distances over all features."""
        return torch.cat([self.standardised(raw), self.encoder.space.split(self.encoder.embed(raw))[1]], dim=1)

    def neighbours(self, raw: Floats, oracle: Oracle) -> Floats:
        """For each query, the nearest other training row for which the model predicts the same class."""
        own, theirs = (oracle.predict(rows).numpy() for rows in (raw, self.raw))
        points, rows = self.whole(raw), self.whole(self.raw)
        near = np.empty_like(raw)
        for k in np.unique(own):  # a loop over classes
            searched, among = own == k, np.flatnonzero(theirs == k)
            if len(among) == 0:
                near[searched] = raw[searched]
                continue
            index = among[metrics.nearest_rows(points[searched], rows[among], k=2)[1].numpy()]
            itself = (rows[index[:, 0]] == points[searched]).all(dim=1).numpy()
            near[searched] = self.raw[np.where(itself, index[:, -1], index[:, 0])]
        return near

    def frame(self, raw: Floats) -> pd.DataFrame:
        return self.encoder.write(raw, pd.DataFrame(index=range(len(raw))))

    def measure(
        self,
        feasible: FeasibleSet,
        explanation: Explanation,
        near: Floats,
        near_cf: Explanation,
        over_all: bool = False,
    ) -> dict[str, float]:
        """All metrics of the first option of each row that was not in the target class already: `validity` and
        `violations` over all of these, the others over those that became valid or, with `over_all`, over all too."""
        status = explanation.status[:, 0]
        searched, valid = status != Status.ALREADY, status == Status.VALID
        if not searched.any():
            return {}
        values = {
            "validity": metrics.validity(valid[searched]),
            "violations": float((~feasible.contains(explanation.raw[:, 0]))[searched].mean()),
        }
        valid = searched if over_all else valid
        plausible = explanation.plausibility[valid, 0]
        if valid.any() and not np.isnan(plausible).any():
            values["plausibility"] = float(plausible.mean())
        if valid.any():
            values |= self._quality(feasible.own[valid], explanation.raw[valid], near[valid], near_cf.raw[valid, 0])
        return {name: values[name] for name in MEANING if name in values}

    def _quality(self, raw: Floats, options: Floats, near: Floats, near_cf: Floats) -> dict[str, float]:
        """The metrics of rows that became valid; `options` is (rows, options, features)."""
        raw_cf, followers = options[:, 0], self.encoder.schema.followers
        chosen = [i for i, name in enumerate(self.encoder.schema.names) if name not in followers]
        x, x_cf, x_near, x_near_cf = map(self.standardised, (raw, raw_cf, near, near_cf))
        encoded, whole = self.encoder.embed(raw_cf).float(), self.whole(raw_cf)
        im1 = metrics.im1(encoded, self.of_target, self.of_origin)
        im2 = metrics.im2(encoded, self.of_target, self.of_all)
        values = {
            "l2": metrics.l2(x, x_cf),
            "l2_per_feature": metrics.l2_per_feature(x, x_cf),
            "diversity": metrics.diversity(x_cf),
            "instability": metrics.instability(x, x_near, x_cf, x_near_cf),
            "js": metrics.js(self.encoder.space, encoded, self.encoder.embed(self.raw[self.target])),
            "im1": im1.mean().item(),
            "im2": im2.mean().item(),
            "im1_median": im1.median().item(),
            "im2_median": im2.median().item(),
            "sparsity": metrics.sparsity(raw[:, chosen], raw_cf[:, chosen]),
            "gower": metrics.gower(raw, raw_cf, self.numeric & self._graded(raw, raw_cf), self.numbers),
            "realism": metrics.realism(whole, self.whole(self.raw[self.target])),
            "copies": metrics.copies(raw_cf, self.raw),
        }
        if options.shape[1] > 1:
            values["option_spread"] = metrics.option_spread(raw, options)
        return values | self._against_held_out(raw_cf, whole)

    def _graded(self, raw: Floats, raw_cf: Floats) -> Flags:
        """(n, features) where neither value is missing or a mark, so that the distance between them is defined."""
        return ~np.isnan(self.encoder.marks_as_missing(raw)) & ~np.isnan(self.encoder.marks_as_missing(raw_cf))

    def _against_held_out(self, raw_cf: Floats, whole: Tensor) -> dict[str, float]:
        """The metrics against held-out rows of the target class; left out where there are too few."""
        real = self.held[self.held_target]
        if len(real) == 0:
            return {}
        values = {
            "held_out_distance": metrics.held_out_distance(whole, self.whole(real)),
            "coherence": metrics.coherence(
                self.encoder.marks_as_missing(raw_cf), self.encoder.marks_as_missing(real), self.numeric
            ),
        }
        learned, held = self.whole(self.raw[self.target]), self.whole(real)
        values["low_density"] = metrics.low_density(whole, learned, held)
        if len(learned) > 1:
            values["lof_outliers"] = metrics.lof_outliers(whole, learned)
        if min(len(real), len(raw_cf)) >= metrics.MIN_TWO_SAMPLE_ROWS:
            values["two_sample"] = metrics.two_sample(whole, held)
        return values
