"""Exemplars, synthetic rows that the model accepts, and the average effect of each value on the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from tdce._core import Noise, find_nearest, pad_rows
from tdce.methods.objective import (
    DENOISE_BATCH_ROWS,
    NOISE_LENGTH,
    Objective,
    change_costs,
    denoising_energy,
    draw_noise,
    feature_positions,
)
from tdce.methods.protocol import Task
from tdce.models import Goal
from tdce.schema import Space

IMMUTABLE_WEIGHT = 30.0  # weight of a difference in an immutable column
QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # of a number, whose effects are measured
RANKED_BATCH_ROWS = 64  # rows that are compared with all exemplars at a time
EFFECT_SAMPLE = 64  # refused synthetic rows on which the effect of a value is measured
EFFECT_BUDGET_SHARE = 0.25  # maximum share of the query budget for these effects
MAX_MARGIN = 10.0  # in log odds; larger margins are clamped to it
EFFECT_ROWS = 65_536  # rows queried to measure all effects, roughly; with more values, the sample is smaller
MIN_EFFECT_SAMPLE = 8
MEASURED_AT_A_TIME = 8_192  # of these rows, queried at a time
COMPARED_FEATURES = 48  # features of an exemplar that may be taken over: those of the largest effects


@dataclass(frozen=True)
class ExemplarPool:
    """The exemplars of a goal: the synthetic rows that meet it."""

    goal: Goal
    x: Tensor  # (p, width)
    position: Tensor  # (p, features, 2) `feature_positions` of their values
    effect: Tensor  # (p, features) average effects of their values
    values: ValueEffects

    @classmethod
    def of(cls, task: Task, goal: Goal) -> ExemplarPool:
        """The pool of a goal, made once per task."""

        def make() -> ExemplarPool:
            x = task.synthetic[exemplars_meeting(task, goal)]
            return cls(goal, x, feature_positions(task.encoder, x), values.effects(task.space, x), values)

        values = ValueEffects.of(task, goal)
        return task.memoise(("exemplar pool", goal, len(values.rows), values.sample), make)

    def nearest(self, x: Tensor, mutable: Tensor, count: int) -> Tensor:
        """(n, k) positions of the nearest exemplars, those that agree on the immutable columns first."""
        weight = torch.where(mutable, 1.0, IMMUTABLE_WEIGHT)
        return find_nearest(x * weight, self.x * weight, min(count, len(self.x)))

    def best(self, task: Task, objective: Objective, at: Tensor, count: int, closeness: float) -> Tensor:
        """(n, k) positions of the exemplars with the lowest objective for the rows at `at`, those that agree on the
        immutable features first."""
        best = []
        for some in torch.split(at, RANKED_BATCH_ROWS):
            cost, disagreement = torch.zeros(2, len(some), len(self.x))
            own = objective.position[some].transpose(0, 1)[:, :, None]
            features = zip(own, self.distinct_positions, objective.weights, task.free.tolist(), strict=True)
            for here, (theirs, which), weight, may_change in features:  # one by one: a fixed order of the sum
                price = weight * change_costs(here[..., 0] != theirs[..., 0], here, theirs)
                (cost if may_change else disagreement).add_(price.index_select(1, which))
            energy = objective.weigh(self.errors(task, objective.y[some]), some)
            total = objective.total(cost, energy, closeness) + IMMUTABLE_WEIGHT * disagreement
            best.append(total.topk(min(count, len(self.x)), largest=False).indices)
        return torch.cat(best)

    @cached_property
    def distinct_positions(self) -> list[tuple[Tensor, Tensor]]:
        """For each feature, (v, 2) its distinct positions, and (p,) the index of each exemplar's."""
        return [each.unique(dim=0, return_inverse=True) for each in self.position.transpose(0, 1)]

    def errors(self, task: Task, y: Tensor) -> Tensor:
        """(n, p) the denoising errors of all exemplars as members of each row's class, each with its own noise."""
        classes = sorted(set(y.tolist()))
        each = torch.stack([task.memoise(("errors", self.goal, k), partial(self._errors, task, k)) for k in classes])
        return each[torch.tensor([classes.index(k) for k in y.tolist()])]

    def _errors(self, task: Task, k: int) -> Tensor:
        """(p,) the denoising errors as members of class k."""
        x, energy = self.x[pad_rows(torch.arange(len(self.x)))], []
        noise = draw_noise(task.space, Noise(x, 0, length=NOISE_LENGTH))
        for some in torch.split(torch.arange(len(x)), DENOISE_BATCH_ROWS):
            part, y = [(normal[some], gumbel[some]) for normal, gumbel in noise], torch.full((len(some),), k)
            energy.append(denoising_energy(task.diffusion, x[some], y, part, len(some)))
        return torch.cat(energy)[: len(self.x)]

    def compared(self, task: Task) -> Tensor:
        """(f,) the features whose values are compared: all; in a wide table, the free ones of the largest effects."""
        if len(task.free) <= COMPARED_FEATURES:
            return torch.arange(len(task.free))
        size = self.values.spread(len(task.free)).masked_fill(~task.free, -1.0)
        return size.argsort(descending=True, stable=True)[:COMPARED_FEATURES].sort().values

    def compare(
        self,
        task: Task,
        x: Tensor,  # (n, width)
        which: Tensor,  # (n, k) positions of exemplars
        features: Tensor,  # (f,) features to compare
    ) -> tuple[Tensor, Tensor]:
        """(n, k, f) the average gain of each of their values over the row's own, and its cost; the gain is minus
        infinity where the feature is not free."""
        own = self.values.effects(task.space, x)[:, None, features]
        position = feature_positions(task.encoder, x)[:, None, features]
        gain = (self.effect[:, features][which] - own).masked_fill(~task.free[features], -torch.inf)
        theirs = self.position[:, features][which]
        return gain, change_costs(theirs[..., 0] != position[..., 0], position, theirs)


@dataclass(frozen=True)
class ValueEffects:
    """The average effects of values of each feature: of a number, its quantiles among exemplars, then its marks; of a
    categorical feature, every category."""

    feature: Tensor  # (v,) index of the feature
    rows: Tensor  # (v, width) rows with the value in the feature's columns
    effect: Tensor  # (v,) mean margin of refused rows with this value instead of their own
    sample: int  # number of rows it was measured on

    @classmethod
    def of(
        cls, task: Task, goal: Goal, shares: tuple[float, ...] = QUANTILES, features: tuple[int, ...] | None = None
    ) -> ValueEffects:
        """The effects for these features, or all; measured once, at most by a part of the query budget."""
        family, oracle, which = goal.family, task.oracle, (shares, features)
        accepted = exemplars_meeting(task, family)  # every question is charged for it
        unmeasured = task.memoise(
            ("chosen", family, which), lambda: cls._of(task, task.synthetic[accepted], shares, features)
        )
        values = len(unmeasured.rows)
        sample = max(MIN_EFFECT_SAMPLE, min(EFFECT_SAMPLE, EFFECT_ROWS // max(1, values)))
        if oracle.budget is not None:
            sample = min(sample, int(EFFECT_BUDGET_SHARE * oracle.budget) // max(1, values))

        def measured() -> ValueEffects:
            refused = task.synthetic[~accepted][:sample]
            return task.memoise(("values", family, sample, which), lambda: unmeasured._measure(task, family, refused))

        return oracle.charge(("values", family, which), sample * values, measured)

    @classmethod
    def _of(cls, task: Task, accepted: Tensor, shares: Sequence[float], features: Sequence[int] | None) -> ValueEffects:
        """The values, with effects of 0 to begin with."""
        feature, rows = feature_values(task, accepted, shares, features)
        return cls(feature, rows, torch.zeros(len(rows)), 0)

    def _measure(self, task: Task, goal: Goal, refused: Tensor) -> ValueEffects:
        if len(refused) == 0 or len(self.rows) == 0:
            return self
        own, margins = task.encoder.unembed(refused), []
        for some in torch.split(torch.arange(len(self.rows)), max(1, MEASURED_AT_A_TIME // len(refused))):
            members = task.space.members[self.feature[some]]
            changed = torch.where(members[:, None], self.rows[some][:, None], refused).flatten(0, 1)
            raw = task.encoder.laws.follow(task.encoder.unembed(changed), np.tile(own, (len(some), 1)))
            margin = goal.raw_margin(task.oracle.score(raw)).clamp(-MAX_MARGIN, MAX_MARGIN)
            margins.append(margin.view(len(some), -1))
        return replace(self, effect=torch.cat(margins).mean(dim=1).float(), sample=len(refused))

    def are_had(self, space: Space, x: Tensor) -> Tensor:
        """(n, v) whether rows (n, width) have each of the values."""
        each = zip(space.places.values(), self.by_feature(space), strict=True)
        had = [(x[:, None, list(columns)] == rows).all(dim=2) for columns, (rows, _) in each]
        return torch.cat(had, dim=1)

    def spread(self, features: int) -> Tensor:
        """(features,) the range of the effects of each feature's values."""
        ends = [torch.zeros(features).scatter_reduce(0, self.feature, self.effect, each, include_self=False)
                for each in ("amax", "amin")]  # fmt: skip
        return ends[0] - ends[1]

    def effects(self, space: Space, x: Tensor) -> Tensor:
        """(n, features) the effects of the values of rows (n, width), interpolated between measured numbers."""
        effects = torch.zeros(len(x), len(space.members))
        for i, (columns, (rows, effect)) in enumerate(zip(space.places.values(), self.by_feature(space), strict=True)):
            if len(self.feature) == 0:
                break
            if columns[0] < space.num:
                present = (rows[:, 1:2] == 1).all(dim=1)  # a quantile, not a mark
                measured = rows[present, 0].numpy(), effect[present].numpy()
                effects[:, i] = torch.from_numpy(np.interp(x[:, columns[0]].numpy(), *measured))
                for mark, its_effect in zip(rows[~present], effect[~present], strict=True):
                    effects[(x[:, columns[1:]] == mark[1:]).all(dim=1), i] = its_effect
            else:
                effects[:, i] = effect[x[:, columns[0] : columns[-1] + 1].argmax(dim=1)]
        return effects

    def by_feature(self, space: Space) -> list[tuple[Tensor, Tensor]]:
        """For each feature, its values in its own columns, and their effects."""
        if "_by_feature" not in vars(self):
            counts = self.feature.bincount(minlength=len(space.places)).tolist()
            parts = zip(torch.split(self.rows, counts), torch.split(self.effect, counts), strict=True)
            each = zip(space.places.values(), parts, strict=True)
            vars(self)["_by_feature"] = [(rows[:, list(columns)], effect) for columns, (rows, effect) in each]
        known: list[tuple[Tensor, Tensor]] = vars(self)["_by_feature"]
        return known


def feature_values(
    task: Task, x: Tensor, shares: Sequence[float], features: Sequence[int] | None
) -> tuple[Tensor, Tensor]:
    """(v,) features, of these or all, and (v, width) rows with a value of that feature in its columns: of a number, its
    quantiles among rows x (n, width), then its marks; else every category. Empty if x is."""
    space, feature, rows = task.space, list[int](), [torch.zeros(0, task.space.width)]
    marked = task.encoder.is_mark(x)
    for i, columns in enumerate(space.places.values() if len(x) else ()):
        if features is not None and i not in features:
            continue
        numbers, weights = [c for c in columns if c < space.num], [c for c in columns if c >= space.num]
        row = torch.zeros(len(weights), space.width)
        if numbers:
            marks = len(task.encoder.schema.features[i].marks)
            quantiles = _quantiles(x[~marked[:, numbers[0]], numbers[0]], shares)
            row = torch.zeros(len(quantiles) + marks, space.width)
            row[: len(quantiles), numbers[0]] = quantiles
            row[: len(quantiles), weights[:1]] = 1.0  # present
            row[len(quantiles) :, weights[len(weights) - marks :]] = torch.eye(marks)
        else:
            row[:, weights] = torch.eye(len(weights))
        feature += [i] * len(row)
        rows.append(row)
    return torch.tensor(feature, dtype=torch.long), torch.cat(rows)


def exemplars_meeting(task: Task, goal: Goal) -> Tensor:
    """(p,) whether each synthetic row meets the goal."""
    if len(task.synthetic) == 0:
        return torch.zeros(0, dtype=torch.bool)
    if task.synthetic_scores is not None:
        return goal.met(task.synthetic_scores)

    def scores() -> Tensor:
        return task.memoise("synthetic scores", lambda: task.oracle.score(task.encoder.unembed(task.synthetic)))

    return goal.met(task.oracle.charge("synthetic scores", len(task.synthetic), scores))


def _quantiles(values: Tensor, shares: Sequence[float]) -> Tensor:
    """Quantiles of the values and of the distinct ones, as nearly all values may be 0; one 0 if there are no values."""
    if len(values) == 0:
        return torch.zeros(1)
    number = values.double().numpy()
    quantiles = np.concatenate([np.quantile(each, shares) for each in (number, np.unique(number))])
    return torch.from_numpy(np.unique(quantiles.astype(np.float32)))
