"""Synthetic people whom the model accepts, and what each value of a feature does to the verdict on average."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from tdce.goal import Goal
from tdce.methods.interface import Task
from tdce.methods.objective import Objective, costs, draws, energies, places
from tdce.noise import Noise
from tdce.products import even, nearest
from tdce.space import Space

EXACT = 30.0  # how much more an immutable column weighs where people should agree on it
LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # quantiles of a number whose effect is measured
ROWS = 64  # that are compared with all people at a time
SAMPLE = 128  # refused people by whom the effect of a value is measured
FAR = 10.0  # in log odds: a margin beyond this counts as this


@dataclass(frozen=True)
class Crowd:
    """The synthetic people that meet a goal."""

    goal: Goal
    x: Tensor  # (p, width)
    place: Tensor  # (p, features) of their values
    effect: Tensor  # (p, features) of their values
    values: Values

    @classmethod
    def of(cls, task: Task, goal: Goal) -> Crowd:
        def make() -> Crowd:
            x, values = task.people[meeting(task, goal)], Values.of(task, goal)
            return cls(goal, x, places(task.space, x), values.effects(task.space, x), values)

        return task.once(("crowd", goal), make)

    def nearest(self, x: Tensor, mutable: Tensor, count: int) -> Tensor:
        """(n, k) positions of the nearest people, those first that agree on the immutable columns."""
        weight = torch.where(mutable, 1.0, EXACT)
        return nearest(x * weight, self.x * weight, min(count, len(self.x)))

    def best(self, task: Task, aim: Objective, at: Tensor, count: int) -> Tensor:
        """(n, k) positions of the people who are the best answers as they are, for the rows at `at`, those first that
        agree on the immutable features."""
        free, people, found = task.space.gathered(task.mutable.float()[None])[0] > 0, self.place.T, []
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
        each = torch.stack([task.once(("energy", self.goal, k), partial(self._energy, task, k)) for k in classes])
        return each[torch.tensor([classes.index(k) for k in y.tolist()])]

    def _energy(self, task: Task, k: int) -> Tensor:
        x = self.x[even(torch.arange(len(self.x)))]
        return energies(task.diffusion, x, torch.full((len(x),), k), draws(task.space, Noise(x, seed=0)))[: len(self.x)]

    def compared(
        self,
        task: Task,
        x: Tensor,  # (n, width)
        which: Tensor,  # (n, k) positions of people
    ) -> tuple[Tensor, Tensor]:
        """(n, k, features) how much each of their values helps more than the row's own, on average, and what it would
        cost; one that cannot be taken over helps infinitely little."""
        own, place = self.values.effects(task.space, x)[:, None], places(task.space, x)[:, None]
        free = task.space.gathered(task.mutable.float()[None])[0] > 0
        gain = (self.effect[which] - own).masked_fill(~free, -torch.inf)
        theirs = self.place[which]
        return gain, costs(theirs != place, place, theirs)


@dataclass(frozen=True)
class Values:
    """Some values of each feature: quantiles of a number among accepted people, then its marks; every category."""

    feature: Tensor  # (v,) the number of the feature
    rows: Tensor  # (v, width) with the value in the feature's columns
    effect: Tensor  # (v,) the margin of refused people who have it instead of their own, on average

    @classmethod
    def of(cls, task: Task, goal: Goal) -> Values:
        return task.once(("values", goal), lambda: cls._measured(task, goal))

    @classmethod
    def _measured(cls, task: Task, goal: Goal) -> Values:
        space, met = task.space, meeting(task, goal)
        accepted, refused = task.people[met], task.people[~met][:SAMPLE]
        feature, rows = [], [torch.zeros(0, space.width)]
        marked = task.encoder.marked(accepted)
        for i, columns in enumerate(space.places.values() if len(accepted) else ()):
            numbers, weights = [c for c in columns if c < space.num], [c for c in columns if c >= space.num]
            marks = len(task.encoder.schema.features[i].marks)
            row = torch.zeros(len(LEVELS) + marks if numbers else len(weights), space.width)
            if numbers:
                theirs = accepted[~marked[:, numbers[0]], numbers[0]]
                if len(theirs):
                    row[: len(LEVELS), numbers[0]] = torch.quantile(theirs, torch.tensor(LEVELS))
                row[: len(LEVELS), weights[:1]] = 1.0  # present
                row[len(LEVELS) :, weights[len(weights) - marks :]] = torch.eye(marks)
            else:
                row[:, weights] = torch.eye(len(weights))
            feature += [i] * len(row)
            rows.append(row)
        which, values = torch.tensor(feature, dtype=torch.long), torch.cat(rows)
        if len(refused) == 0 or len(values) == 0:
            return cls(which, values, torch.zeros(len(values)))
        changed = torch.where(space.members[which][:, None], values[:, None], refused).view(-1, space.width)
        margin = goal.gap(task.judge.score(task.encoder.unembed(changed)).log()).clamp(-FAR, FAR)
        return cls(which, values, margin.view(len(values), -1).mean(dim=1).float())

    def effects(self, space: Space, x: Tensor) -> Tensor:
        """(n, features) of the values that rows have; of a number between two that were measured, in between."""
        found = torch.zeros(len(x), len(space.members))
        for i, columns in enumerate(space.places.values() if len(self.feature) else ()):
            theirs = self.feature == i
            if columns[0] < space.num:
                known, effect = self.rows[theirs], self.effect[theirs]
                levels = known[: len(LEVELS), columns[0]].numpy(), effect[: len(LEVELS)].numpy()
                found[:, i] = torch.from_numpy(np.interp(x[:, columns[0]].numpy(), *levels))
                for mark, its in zip(known[len(LEVELS) :], effect[len(LEVELS) :], strict=True):
                    found[(x[:, columns[1:]] == mark[list(columns[1:])]).all(dim=1), i] = its
            else:
                found[:, i] = self.effect[theirs][x[:, list(columns)].argmax(dim=1)]
        return found


def meeting(task: Task, goal: Goal) -> Tensor:
    """(p,) which synthetic people meet the goal."""
    if len(task.people) == 0:
        return torch.zeros(0, dtype=torch.bool)
    return goal.met(task.once("scores of people", lambda: task.judge.score(task.encoder.unembed(task.people))))
