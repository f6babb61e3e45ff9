"""Synthetic people whom the model accepts, and what each value of a feature does to the verdict on average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tdce._core import Noise, nearest_rows_exact, pad_rows
from tdce.methods.objective import ROWS as DENOISED
from tdce.methods.objective import SMOOTH, Objective, costs, draws, energies, places
from tdce.methods.protocol import Task
from tdce.models import Goal
from tdce.schema import Space

EXACT = 30.0  # how much more an immutable column weighs where people should agree on it
LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # quantiles of a number whose effect is measured
ROWS = 64  # that are compared with all people at a time
SAMPLE = 64  # refused people by whom the effect of a value is measured
SHARE = 0.25  # of a budget, at most, for these effects
FAR = 10.0  # in log odds: a margin beyond this counts as this


@dataclass(frozen=True)
class ExemplarPool:
    """The synthetic people that meet a goal."""

    goal: Goal
    x: Tensor  # (p, width)
    place: Tensor  # (p, features) of their values
    effect: Tensor  # (p, features) of their values
    values: ValueEffects

    @classmethod
    def of(cls, task: Task, goal: Goal) -> ExemplarPool:
        def make() -> ExemplarPool:
            x = task.synthetic[exemplars_meeting(task, goal)]
            return cls(goal, x, places(task.encoder, x), values.effects(task.space, x), values)

        values = ValueEffects.of(task, goal)
        return task.memoise(("crowd", goal, len(values.rows), values.sample), make)

    def nearest(self, x: Tensor, mutable: Tensor, count: int) -> Tensor:
        """(n, k) positions of the nearest people, those first that agree on the immutable columns."""
        weight = torch.where(mutable, 1.0, EXACT)
        return nearest_rows_exact(x * weight, self.x * weight, min(count, len(self.x)))

    def best(self, task: Task, aim: Objective, at: Tensor, count: int) -> Tensor:
        """(n, k) positions of the people who are the best answers as they are, for the rows at `at`, those first that
        agree on the immutable features."""
        free, people, found = task.free, self.place.T, []
        for some in torch.split(at, ROWS):
            cost, apart = torch.zeros(2, len(some), len(self.x))
            features = zip(aim.place[some].T[:, :, None], people, aim.weight, free.tolist(), strict=True)
            for place, theirs, weight, may_change in features:
                more = weight * costs(place != theirs, place, theirs)  # one feature after another: no order of a sum
                (cost if may_change else apart).add_(more)
            total = aim.total(cost, self.energy(task, aim.y[some])) + EXACT * apart
            found.append(total.topk(min(count, len(self.x)), largest=False).indices)
        return torch.cat(found)

    def energy(self, task: Task, y: Tensor) -> Tensor:
        """(n, p) of all people as members of each row's class, each person with noise of its own."""
        classes = sorted(set(y.tolist()))
        each = torch.stack([task.memoise(("energy", self.goal, k), partial(self._energy, task, k)) for k in classes])
        return each[torch.tensor([classes.index(k) for k in y.tolist()])]

    def _energy(self, task: Task, k: int) -> Tensor:
        x, found = self.x[pad_rows(torch.arange(len(self.x)))], []
        noise = draws(task.space, Noise(x, 0, length=SMOOTH))
        for some in torch.split(torch.arange(len(x)), DENOISED):
            theirs, y = [(normal[some], gumbel[some]) for normal, gumbel in noise], torch.full((len(some),), k)
            found.append(energies(task.diffusion, x[some], y, theirs, len(some)))
        return torch.cat(found)[: len(self.x)]

    def compared(
        self,
        task: Task,
        x: Tensor,  # (n, width)
        which: Tensor,  # (n, k) positions of people
    ) -> tuple[Tensor, Tensor]:
        """(n, k, features) how much each of their values helps more than the row's own, on average, and what it would
        cost; one that cannot be taken over helps infinitely little."""
        own, place = self.values.effects(task.space, x)[:, None], places(task.encoder, x)[:, None]
        free = task.free
        gain = (self.effect[which] - own).masked_fill(~free, -torch.inf)
        theirs = self.place[which]
        return gain, costs(theirs != place, place, theirs)


@dataclass(frozen=True)
class ValueEffects:
    """Some values of each feature: quantiles of a number among accepted people, then its marks; every category."""

    feature: Tensor  # (v,) the number of the feature
    rows: Tensor  # (v, width) with the value in the feature's columns
    effect: Tensor  # (v,) the margin of refused people who have it instead of their own, on average
    sample: int  # by how many people that was measured

    @classmethod
    def of(cls, task: Task, goal: Goal) -> ValueEffects:
        """Measured once; a part of the budget is spent on it, if there is one."""
        family, oracle = goal.family, task.oracle
        accepted = exemplars_meeting(task, family)  # paid for by every question
        some = task.memoise(("chosen", family), lambda: cls._chosen(task, task.synthetic[accepted]))
        sample = SAMPLE if oracle.budget is None else min(SAMPLE, int(SHARE * oracle.budget) // max(1, len(some.rows)))

        def known() -> ValueEffects:
            refused = task.synthetic[~accepted][:sample]
            return task.memoise(("values", family, sample), lambda: some._measured(task, family, refused))

        return oracle.charge(("values", family), sample * len(some.rows), known)

    @classmethod
    def _chosen(cls, task: Task, accepted: Tensor) -> ValueEffects:
        space, feature, rows = task.space, [], [torch.zeros(0, task.space.width)]
        marked = task.encoder.marked(accepted)
        for i, columns in enumerate(space.places.values() if len(accepted) else ()):
            numbers, weights = [c for c in columns if c < space.num], [c for c in columns if c >= space.num]
            row = torch.zeros(len(weights), space.width)
            if numbers:
                marks = len(task.encoder.schema.features[i].marks)
                known = _levels(accepted[~marked[:, numbers[0]], numbers[0]])
                row = torch.zeros(len(known) + marks, space.width)
                row[: len(known), numbers[0]] = known
                row[: len(known), weights[:1]] = 1.0  # present
                row[len(known) :, weights[len(weights) - marks :]] = torch.eye(marks)
            else:
                row[:, weights] = torch.eye(len(weights))
            feature += [i] * len(row)
            rows.append(row)
        which, values = torch.tensor(feature, dtype=torch.long), torch.cat(rows)
        return cls(which, values, torch.zeros(len(values)), 0)

    def _measured(self, task: Task, goal: Goal, refused: Tensor) -> ValueEffects:
        space = task.space
        if len(refused) == 0 or len(self.rows) == 0:
            return self
        changed = torch.where(space.members[self.feature][:, None], self.rows[:, None], refused).view(-1, space.width)
        margin = goal.beyond(task.oracle.score(task.encoder.unembed(changed))).clamp(-FAR, FAR)
        return replace(self, effect=margin.view(len(self.rows), -1).mean(dim=1).float(), sample=len(refused))

    def effects(self, space: Space, x: Tensor) -> Tensor:
        """(n, features) of the values that rows have; of a number between two that were measured, in between."""
        found = torch.zeros(len(x), len(space.members))
        for i, columns in enumerate(space.places.values() if len(self.feature) else ()):
            theirs = self.feature == i
            if columns[0] < space.num:
                known, effect = self.rows[theirs], self.effect[theirs]
                level = (known[:, columns[1:2]] == 1).all(dim=1)  # present, not a mark
                levels = known[level, columns[0]].numpy(), effect[level].numpy()
                found[:, i] = torch.from_numpy(np.interp(x[:, columns[0]].numpy(), *levels))
                for mark, its in zip(known[~level], effect[~level], strict=True):
                    found[(x[:, columns[1:]] == mark[list(columns[1:])]).all(dim=1), i] = its
            else:
                found[:, i] = self.effect[theirs][x[:, list(columns)].argmax(dim=1)]
        return found


def _levels(values: Tensor) -> Tensor:
    """Quantiles of the values, and of the different ones: nearly all of them may be 0. Of none, 0."""
    if len(values) == 0:
        return torch.zeros(1)
    number = values.double().numpy()
    found = np.concatenate([np.quantile(each, LEVELS) for each in (number, np.unique(number))])
    return torch.from_numpy(np.unique(found.astype(np.float32)))


def exemplars_meeting(task: Task, goal: Goal) -> Tensor:
    """(p,) which synthetic people meet the goal."""
    if len(task.synthetic) == 0:
        return torch.zeros(0, dtype=torch.bool)
    if task.synthetic_scores is not None:
        return goal.met(task.synthetic_scores)

    def known() -> Tensor:
        return task.memoise("scores of people", lambda: task.oracle.score(task.encoder.unembed(task.synthetic)))

    return goal.met(task.oracle.charge("people", len(task.synthetic), known))
