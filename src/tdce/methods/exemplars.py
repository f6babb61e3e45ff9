"""Exemplars, synthetic rows that the model accepts, and the average effect of each value on the decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

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

IMMUTABLE_WEIGHT = 30.0  # how much more a difference in an immutable column counts
QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # of a number, whose effects are measured
RANKED_BATCH_ROWS = 64  # rows that are compared with all exemplars at a time
EFFECT_SAMPLE = 64  # refused synthetic rows by which the effect of a value is measured
EFFECT_BUDGET_SHARE = 0.25  # of the query budget, at most, for these effects
MAX_MARGIN = 10.0  # in log odds: a margin beyond this counts as this


@dataclass(frozen=True)
class ExemplarPool:
    """The synthetic rows that meet a goal."""

    goal: Goal
    x: Tensor  # (p, width)
    position: Tensor  # (p, features, 2) `feature_positions` of their values
    effect: Tensor  # (p, features) of their values
    values: ValueEffects

    @classmethod
    def of(cls, task: Task, goal: Goal) -> ExemplarPool:
        """Of a task and a goal, made once."""

        def make() -> ExemplarPool:
            x = task.synthetic[exemplars_meeting(task, goal)]
            return cls(goal, x, feature_positions(task.encoder, x), values.effects(task.space, x), values)

        values = ValueEffects.of(task, goal)
        return task.memoise(("exemplar pool", goal, len(values.rows), values.sample), make)

    def nearest(self, x: Tensor, mutable: Tensor, count: int) -> Tensor:
        """(n, k) positions of the nearest exemplars, first those that agree on the immutable columns."""
        weight = torch.where(mutable, 1.0, IMMUTABLE_WEIGHT)
        return find_nearest(x * weight, self.x * weight, min(count, len(self.x)))

    def best(self, task: Task, objective: Objective, at: Tensor, count: int, closeness: float) -> Tensor:
        """(n, k) positions of the exemplars with the lowest objective for the rows at `at`, first those that agree on
        the immutable features."""
        free, positions, best = task.free, self.position.transpose(0, 1), []
        for some in torch.split(at, RANKED_BATCH_ROWS):
            cost, disagreement = torch.zeros(2, len(some), len(self.x))
            features = zip(
                objective.position[some].transpose(0, 1)[:, :, None],
                positions,
                objective.weights,
                free.tolist(),
                strict=True,
            )
            for own, theirs, weight, may_change in features:  # one after another: no order of a sum
                (cost if may_change else disagreement).add_(
                    weight * change_costs(own[..., 0] != theirs[..., 0], own, theirs)
                )
            energy = objective.weigh(self.errors(task, objective.y[some]), some)
            total = objective.total(cost, energy, closeness) + IMMUTABLE_WEIGHT * disagreement
            best.append(total.topk(min(count, len(self.x)), largest=False).indices)
        return torch.cat(best)

    def errors(self, task: Task, y: Tensor) -> Tensor:
        """(n, p) the denoising errors of all exemplars as members of each row's class, each with noise of its own."""
        classes = sorted(set(y.tolist()))
        each = torch.stack([task.memoise(("errors", self.goal, k), partial(self._errors, task, k)) for k in classes])
        return each[torch.tensor([classes.index(k) for k in y.tolist()])]

    def _errors(self, task: Task, k: int) -> Tensor:
        """(p,) as members of class k."""
        x, energy = self.x[pad_rows(torch.arange(len(self.x)))], []
        noise = draw_noise(task.space, Noise(x, 0, length=NOISE_LENGTH))
        for some in torch.split(torch.arange(len(x)), DENOISE_BATCH_ROWS):
            part, y = [(normal[some], gumbel[some]) for normal, gumbel in noise], torch.full((len(some),), k)
            energy.append(denoising_energy(task.diffusion, x[some], y, part, len(some)))
        return torch.cat(energy)[: len(self.x)]

    def compare(
        self,
        task: Task,
        x: Tensor,  # (n, width)
        which: Tensor,  # (n, k) positions of exemplars
    ) -> tuple[Tensor, Tensor]:
        """(n, k, features) how much more each of their values helps than the row's own, on average, and its cost; the
        gain of a value that cannot be taken over is minus infinity."""
        own = self.values.effects(task.space, x)[:, None]
        position = feature_positions(task.encoder, x)[:, None]
        free = task.free
        gain = (self.effect[which] - own).masked_fill(~free, -torch.inf)
        theirs = self.position[which]
        return gain, change_costs(theirs[..., 0] != position[..., 0], position, theirs)


@dataclass(frozen=True)
class ValueEffects:
    """The average effects of some values of each feature: quantiles of a number among exemplars, then its marks; every
    category."""

    feature: Tensor  # (v,) the number of the feature
    rows: Tensor  # (v, width) with the value in the feature's columns
    effect: Tensor  # (v,) the mean margin of refused rows with this value instead of their own
    sample: int  # how many rows measured it

    @classmethod
    def of(cls, task: Task, goal: Goal) -> ValueEffects:
        """Measured once; with a query budget, by a part of it."""
        family, oracle = goal.family, task.oracle
        accepted = exemplars_meeting(task, family)  # charged to every question
        unmeasured = task.memoise(("chosen", family), lambda: cls._choose(task, task.synthetic[accepted]))
        sample, values = EFFECT_SAMPLE, len(unmeasured.rows)
        if oracle.budget is not None:
            sample = min(EFFECT_SAMPLE, int(EFFECT_BUDGET_SHARE * oracle.budget) // max(1, values))

        def measured() -> ValueEffects:
            refused = task.synthetic[~accepted][:sample]
            return task.memoise(("values", family, sample), lambda: unmeasured._measure(task, family, refused))

        return oracle.charge(("values", family), sample * values, measured)

    @classmethod
    def _choose(cls, task: Task, accepted: Tensor) -> ValueEffects:
        """The values, their effects still 0."""
        space, feature, rows = task.space, [], [torch.zeros(0, task.space.width)]
        marked = task.encoder.is_mark(accepted)
        for i, columns in enumerate(space.places.values() if len(accepted) else ()):
            numbers, weights = [c for c in columns if c < space.num], [c for c in columns if c >= space.num]
            row = torch.zeros(len(weights), space.width)
            if numbers:
                marks = len(task.encoder.schema.features[i].marks)
                quantiles = _quantiles(accepted[~marked[:, numbers[0]], numbers[0]])
                row = torch.zeros(len(quantiles) + marks, space.width)
                row[: len(quantiles), numbers[0]] = quantiles
                row[: len(quantiles), weights[:1]] = 1.0  # present
                row[len(quantiles) :, weights[len(weights) - marks :]] = torch.eye(marks)
            else:
                row[:, weights] = torch.eye(len(weights))
            feature += [i] * len(row)
            rows.append(row)
        values = torch.cat(rows)
        return cls(torch.tensor(feature, dtype=torch.long), values, torch.zeros(len(values)), 0)

    def _measure(self, task: Task, goal: Goal, refused: Tensor) -> ValueEffects:
        space = task.space
        if len(refused) == 0 or len(self.rows) == 0:
            return self
        changed = torch.where(space.members[self.feature][:, None], self.rows[:, None], refused).view(-1, space.width)
        own = np.tile(task.encoder.unembed(refused), (len(self.rows), 1))
        raw = task.encoder.laws.follow(task.encoder.unembed(changed), own)
        margin = goal.raw_margin(task.oracle.score(raw)).clamp(-MAX_MARGIN, MAX_MARGIN)
        return replace(self, effect=margin.view(len(self.rows), -1).mean(dim=1).float(), sample=len(refused))

    def effects(self, space: Space, x: Tensor) -> Tensor:
        """(n, features) of the values of rows (n, width); numbers between two measured ones are interpolated."""
        effects = torch.zeros(len(x), len(space.members))
        for i, columns in enumerate(space.places.values() if len(self.feature) else ()):
            own = self.feature == i
            if columns[0] < space.num:
                rows, effect = self.rows[own], self.effect[own]
                present = (rows[:, columns[1:2]] == 1).all(dim=1)  # a quantile, not a mark
                measured = rows[present, columns[0]].numpy(), effect[present].numpy()
                effects[:, i] = torch.from_numpy(np.interp(x[:, columns[0]].numpy(), *measured))
                for mark, its_effect in zip(rows[~present], effect[~present], strict=True):
                    effects[(x[:, columns[1:]] == mark[list(columns[1:])]).all(dim=1), i] = its_effect
            else:
                effects[:, i] = self.effect[own][x[:, list(columns)].argmax(dim=1)]
        return effects


def exemplars_meeting(task: Task, goal: Goal) -> Tensor:
    """(p,) which synthetic rows meet the goal."""
    if len(task.synthetic) == 0:
        return torch.zeros(0, dtype=torch.bool)
    if task.synthetic_scores is not None:
        return goal.met(task.synthetic_scores)

    def scores() -> Tensor:
        return task.memoise("synthetic scores", lambda: task.oracle.score(task.encoder.unembed(task.synthetic)))

    return goal.met(task.oracle.charge("synthetic scores", len(task.synthetic), scores))


def _quantiles(values: Tensor) -> Tensor:
    """Quantiles of the values and of the distinct ones, for nearly all of them may be 0; 0 if there are none."""
    if len(values) == 0:
        return torch.zeros(1)
    number = values.double().numpy()
    quantiles = np.concatenate([np.quantile(each, QUANTILES) for each in (number, np.unique(number))])
    return torch.from_numpy(np.unique(quantiles.astype(np.float32)))
