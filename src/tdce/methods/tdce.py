"""TDCE, the method that users get: the diffusion model proposes people, judges how likely each answer is, and mends it.

Starts are synthetic people whom the model accepts and changes of a single feature; from each start features are given
back to the person one at a time; of all that the model accepts on the way the best is mended and returned. What is best
is one function, `objective.Objective`. docs/method.md has the reasons and the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from tdce.errors import MOST
from tdce.goal import Goal
from tdce.methods.interface import Judged, Query, Search, Talk, Task, task_of
from tdce.methods.objective import Objective
from tdce.methods.settings import check
from tdce.noise import Noise
from tdce.products import nearest
from tdce.space import Space

MARGIN = 0.02  # in log odds: an answer is not on the very edge of a verdict
EXACT = 30.0  # how much more an immutable column weighs where people should agree on it
LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)  # quantiles that are tried as a number's only change
HALVINGS = 6
FINEST = 2.0**-8  # of a deviation
PER_FEATURE = 3  # values of one feature that are tried as the only change
SAMPLE = 128  # refused people by whom the effect of a value is measured
FAR = 10.0  # in log odds: a margin beyond this counts as this
MENDED = 3  # features whose value the denoiser may put right in a round


@dataclass(frozen=True)
class TDCE:
    """Ask about people, about parts of them, and about few changes; mend the best."""

    edition: ClassVar[int] = 2  # raised when its answers change
    random: ClassVar[bool] = False
    has_dial: ClassVar[bool] = True
    closeness: float = 0.8  # the dial: 0 is most likely by the diffusion model, 1 as close as possible
    people: int = 24  # accepted people, of whom a row takes over as few features as may be enough
    few: int = 16  # changes of one feature, and of two, that the model is asked about
    beam: int = 4  # answers that are mended
    rounds: int = 3  # of mending
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check(self, closeness=(0, 1), people=(1, MOST), few=(0, MOST), beam=(1, MOST), rounds=(0, MOST))

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        task = task_of(self)
        closeness = self.closeness if query.closeness is None else query.closeness
        judged = yield query.ask(query.x)
        aim = Objective(task, query, noise, closeness, query.goals.towards(judged.score[:, 0]))
        tried = Tried(query, aim)
        yield from self.ask_about_people(query, tried)
        yield from self.ask_about_parts(query, tried, judged.margin[:, 0].float())
        yield from self.ask_about_few(query, tried)
        tried = tried.shortlist(self.beam)
        yield from self.halve(query, tried)
        for _ in range(self.rounds):
            tried = tried.shortlist(self.beam)
            if not (yield from self.mend(query, aim, tried)):
                break
        return tried.best()

    def ask_about_people(self, query: Query, tried: Tried) -> Talk[None]:
        """The nearest accepted people with the row's immutable features; more of them where the model accepts none."""
        task, rows = task_of(self), torch.arange(len(query.x))
        for first, last in ((0, 4), (4, 64), (64, 512)):
            left = rows if first == 0 else tried.without()
            if len(left) == 0:
                return
            near = nearest_people(task, query, left, last)[:, first:]
            at = left.repeat_interleave(near.shape[1])
            candidates = torch.where(task.mutable, near.reshape(-1, near.shape[2]), query.x[at])
            judged = yield query.ask(coarse(task, query.x[at], candidates), at)
            tried.add(judged, at)

    def ask_about_parts(self, query: Query, tried: Tried, margin: Tensor) -> Talk[None]:
        """Of each of the nearest accepted people, the features that help most: as many as should be enough by their
        average effects, one fewer, and one more."""
        task, rows = task_of(self), torch.arange(len(query.x))
        space = task.space
        near = nearest_people(task, query, rows, self.people)  # (n, people, width)
        gain = torch.zeros(len(rows), self.people, len(space.members))
        for goal, whose in query.goals.groups():
            values = Values.of(task, goal)
            flat = values.effects(space, near.reshape(-1, space.width)).view(gain.shape)
            gain = torch.where(whose[:, None, None], flat - values.effects(space, query.x)[:, None], gain)
        free = space.gathered(task.mutable.float()[None])[0] > 0
        gain = gain.masked_fill(~free, -torch.inf)
        helped, order = gain.sort(dim=2, descending=True, stable=True)
        enough = (helped.clamp_min(0.0).cumsum(dim=2) < -margin[:, None, None]).sum(dim=2)  # features but one
        place = torch.empty_like(order).scatter_(
            2, order, torch.arange(len(space.members)).expand_as(order).contiguous()
        )
        for more in (-1, 0, 1):
            taken = (place <= (enough + more)[:, :, None]) & (gain > 0)  # (n, people, features)
            candidates = torch.where(taken[:, :, space.owner], near, query.x[:, None])
            use = taken.any(dim=2)
            at = rows[:, None].expand_as(use)[use]
            if len(at):
                judged = yield query.ask(coarse(task, query.x[at], candidates[use]), at)
                tried.add(judged, at)

    def ask_about_few(self, query: Query, tried: Tried) -> Talk[None]:
        """One or two features changed: of all such changes those that help most on average."""
        task, rows = task_of(self), torch.arange(len(query.x))
        for goal, whose in query.goals.groups():
            values, at = Values.of(task, goal), rows[whose]
            if len(values.feature) == 0 or self.few == 0:
                continue
            x, members = query.x[at], task.space.members[values.feature]  # (v, width)
            gain = values.effect - values.effects(task.space, x)[:, values.feature]
            gain = gain.masked_fill(~values.open(task.space, x, query.reach.allowed[at]), -torch.inf)
            gain = best_of_each(gain, values.feature, PER_FEATURE)
            best, which = gain.topk(min(self.few, gain.shape[1]), dim=1)
            single = torch.where(members[which], values.rows[which], x[:, None])  # (n, few, width)
            i, j = torch.triu_indices(best.shape[1], best.shape[1], offset=1)
            apart = values.feature[which][:, i] != values.feature[which][:, j]
            both, pair = (best[:, i] + best[:, j]).masked_fill(~apart, -torch.inf).topk(min(self.few, len(i)), dim=1)
            first, second = (
                single.gather(1, i[pair][:, :, None].expand(-1, -1, single.shape[2])),
                which.gather(1, j[pair]),
            )
            double = torch.where(members[second], values.rows[second], first)
            use = torch.cat([best, both], dim=1) > -torch.inf
            candidates, theirs = torch.cat([single, double], dim=1)[use], at[:, None].expand_as(use)[use]
            if len(theirs):
                judged = yield query.ask(coarse(task, query.x[theirs], candidates), theirs)
                tried.add(judged, theirs)

    def halve(self, query: Query, tried: Tried) -> Talk[None]:
        """The numbers on the straight line from the person to where they are, as near as the verdict holds."""
        task, x_cf, at = task_of(self), *tried.accepted
        own, number = query.x[at], torch.arange(task.space.width) < task.space.num
        moved = ((x_cf != own) & number).any(dim=1)
        x_cf, at, own = x_cf[moved], at[moved], own[moved]
        low, high = torch.zeros(len(at), 1), torch.ones(len(at), 1)
        for _ in range(HALVINGS if len(at) else 0):
            middle = (low + high) / 2
            candidate = coarse(task, own, torch.where(number, own + middle * (x_cf - own), x_cf))
            judged = yield query.ask(candidate, at)
            good = tried.add(judged, at)[:, None]
            low, high = torch.where(good, low, middle), torch.where(good, middle, high)

    def mend(self, query: Query, aim: Objective, tried: Tried) -> Talk[bool]:
        """Moves that may make the objective smaller: give a feature back, or let one that is denoised badly take the
        value that the denoiser expects given the rest."""
        task, x_cf, rows = task_of(self), *tried.accepted
        space, own = task.space, query.x[rows]
        errors = aim.errors(x_cf, rows)
        free = space.gathered(task.mutable.float()[None])[0] > 0
        worst = errors.each.masked_fill(~free, -torch.inf).topk(min(MENDED, len(free)), dim=1).indices
        num, cat = space.split(errors.x_0)
        expected = space.join(num, space.one_hot(cat))
        put_right = torch.where(space.members[worst] & task.mutable, expected[:, None], x_cf[:, None])
        back = torch.where(space.members, own[:, None], x_cf[:, None])
        moves = torch.cat([put_right, back], dim=1)  # (m, moves, width)
        use = (moves != x_cf[:, None]).any(dim=2)
        at = rows[:, None].expand_as(use)[use]
        if len(at) == 0:
            return False
        judged = yield query.ask(coarse(task, query.x[at], moves[use]), at)
        return bool(tried.add(judged, at).any())


class Tried:
    """The candidates that the model accepts, and of each row the nearest miss."""

    def __init__(self, query: Query, aim: Objective) -> None:
        self.query, self.aim = query, aim
        self.x, self.at, self.total = [query.x[:0]], [torch.arange(0)], [torch.zeros(0)]
        self.miss, self.missed_by = query.x, torch.full((len(query.x),), -torch.inf, dtype=torch.double)

    def add(self, judged: Judged, at: Tensor) -> Tensor:
        """(m,) which of these candidates are accepted."""
        good = judged.met[:, 0] & (judged.margin[:, 0] >= MARGIN)
        x = judged.x[:, 0]
        self.x.append(x[good])
        self.at.append(at[good])
        if not good.all():
            at, margin, x = at[~good], judged.margin[~good, 0], x[~good]
            first = firsts(-margin, at)
            take = first[margin[first] > self.missed_by[at[first]]]
            self.miss = self.miss.index_copy(0, at[take], x[take])
            self.missed_by = self.missed_by.index_copy(0, at[take], margin[take])
        return good

    @property
    def accepted(self) -> tuple[Tensor, Tensor]:
        """(m, width), (m,)"""
        return torch.cat(self.x), torch.cat(self.at)

    def without(self) -> Tensor:
        """Rows that have no accepted candidate."""
        have = torch.zeros(len(self.query.x), dtype=torch.bool)
        have[torch.cat(self.at)] = True
        return (~have).nonzero().squeeze(1)

    def weighed(self) -> tuple[Tensor, Tensor, Tensor]:
        """The accepted ones and (m,) their objective, each computed once."""
        done = sum(map(len, self.total))
        x, at = self.accepted
        if done < len(at):
            new, whose = x[done:], at[done:]
            self.total.append(self.aim.total(self.aim.cost(new, whose), self.aim.energy(new, whose)))
        self.x, self.at, self.total = [x], [at], [torch.cat(self.total)]
        return x, at, self.total[0]

    def shortlist(self, count: int) -> Tried:
        """The best few of each row."""
        x, at, total = self.weighed()
        order = torch.from_numpy(np.lexsort((total.numpy(), at.numpy())))
        x, at, total = x[order], at[order], total[order]
        new = torch.ones(len(at), dtype=torch.bool)
        new[1:] = (at[1:] != at[:-1]) | (total[1:] != total[:-1])  # the same candidate again has the same total
        x, at, total = x[new], at[new], total[new]
        start = torch.searchsorted(at, at)
        near = torch.arange(len(at)) - start < count
        kept = Tried(self.query, self.aim)
        kept.x, kept.at, kept.total = [x[near]], [at[near]], [total[near]]
        kept.miss, kept.missed_by = self.miss, self.missed_by
        return kept

    def best(self) -> Tensor:
        """(n, width) the best of each row, else the nearest miss."""
        x, at, total = self.weighed()
        first = firsts(total, at)
        return self.miss.index_copy(0, at[first], x[first])


def firsts(key: Tensor, at: Tensor) -> Tensor:
    """Where the smallest key of each row is; of equal ones the first."""
    order = torch.from_numpy(np.lexsort((key.numpy(), at.numpy())))
    rows = at[order]
    new = torch.ones(len(rows), dtype=torch.bool)
    new[1:] = rows[1:] != rows[:-1]
    return order[new]


def nearest_people(task: Task, query: Query, at: Tensor, count: int) -> Tensor:
    """(m, count, width) the nearest synthetic people that meet the goal, those first that agree on the immutable columns;
    where there are fewer, the last is repeated; where there is none, the row itself is."""
    weight = torch.where(task.mutable, 1.0, EXACT)
    x, goals = query.x[at], query.goals.take(at)
    rows = x[:, None].expand(-1, count, -1)
    for goal, whose in goals.groups():
        pool = accepted_people(task, goal)
        if len(pool) == 0:
            continue
        order = nearest(x * weight, pool * weight, min(count, len(pool)))
        order = torch.cat([order, order[:, -1:].expand(-1, count - order.shape[1])], dim=1)
        rows = torch.where(whose[:, None, None], pool[order], rows)
    return rows


def accepted_people(task: Task, goal: Goal) -> Tensor:
    """(m, width) the synthetic people that meet the goal."""

    def make() -> Tensor:
        return task.people[goal.met(task.once("scores", lambda: task.judge.score(task.encoder.unembed(task.people))))]

    return task.once(("people", goal), make)


@dataclass(frozen=True)
class Values:
    """Values to try as the only change of a row: some quantiles of a number among accepted people, every category."""

    feature: Tensor  # (v,) the number of the feature
    rows: Tensor  # (v, width) with the value in the feature's columns
    effect: Tensor  # (v,) the margin of refused people who have it instead of their own, on average

    @classmethod
    def of_goal(cls, task: Task, goal: Goal) -> Values:
        space, pool = task.space, accepted_people(task, goal)
        of, rows = [], []
        for i, columns in enumerate(space.places.values()):
            if not task.mutable[list(columns)].any() or len(pool) == 0:
                continue
            numbers, weights = [c for c in columns if c < space.num], [c for c in columns if c >= space.num]
            row = torch.zeros(len(LEVELS) if numbers else len(weights), space.width)
            if numbers:
                row[:, numbers[0]] = torch.quantile(pool[:, numbers[0]], torch.tensor(LEVELS))
                row[:, weights[:1]] = 1.0  # present
            else:
                row[:, weights] = torch.eye(len(weights))
            of += [i] * len(row)
            rows.append(row)
        if not rows:
            return cls(torch.zeros(0, dtype=torch.long), torch.zeros(0, space.width), torch.zeros(0))
        which, values = torch.tensor(of), torch.cat(rows)
        scores = task.once("scores", lambda: task.judge.score(task.encoder.unembed(task.people)))
        refused = task.people[~goal.met(scores)][:SAMPLE]
        if len(refused) == 0:
            return cls(which, values, torch.zeros(len(values)))
        changed = torch.where(space.members[which][:, None], values[:, None], refused).view(-1, space.width)
        gap = goal.gap(task.judge.score(task.encoder.unembed(changed)).log()).clamp(-FAR, FAR)
        return cls(which, values, gap.view(len(values), -1).mean(dim=1).float())

    @classmethod
    def of(cls, task: Task, goal: Goal) -> Values:
        return task.once(("values", goal, tuple(task.mutable.tolist())), lambda: cls.of_goal(task, goal))

    def effects(self, space: Space, x: Tensor) -> Tensor:
        """(n, features) of the values that rows have: of a number between two that were measured, in between."""
        found = torch.zeros(len(x), len(space.members))
        for i, columns in enumerate(space.places.values()):
            theirs = self.feature == i
            if not theirs.any():
                continue
            if columns[0] < space.num:
                known, effect = self.rows[theirs, columns[0]].numpy(), self.effect[theirs].numpy()
                found[:, i] = torch.from_numpy(np.interp(x[:, columns[0]].numpy(), known, effect))
            else:
                found[:, i] = self.effect[theirs][x[:, list(columns)].argmax(dim=1)]
        return found

    def open(self, space: Space, x: Tensor, allowed: Tensor) -> Tensor:
        """(n, v) whether it is another value than the row's own, of a category that is open to it."""
        members = space.members[self.feature]
        other = (torch.where(members, self.rows, x[:, None]) != x[:, None]).any(dim=2)
        return other & (allowed[:, None] | (self.rows[:, space.num :] == 0)).all(dim=2)


def best_of_each(gain: Tensor, of: Tensor, count: int) -> Tensor:
    """(n, v) with only the best few of each feature left."""
    left = torch.full_like(gain, -torch.inf)
    for feature in of.unique():  # a loop over features
        theirs = (of == feature).nonzero().squeeze(1)
        best, which = gain[:, theirs].topk(min(count, len(theirs)), dim=1)
        left.scatter_(1, theirs[which], best)
    return left


def coarse(task: Task, x: Tensor, x_cf: Tensor) -> Tensor:
    """Numbers that moved, rounded to a small part of a deviation: finer values depend on the machine's last bits."""
    number = torch.arange(task.space.width) < task.space.num
    return torch.where(number & (x_cf != x), (x_cf / FINEST).round() * FINEST, x_cf)
