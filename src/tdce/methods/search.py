"""TDCE, the method that users get: the diffusion model proposes people and says how likely each answer is.

A row takes over as few features as may be enough from synthetic people whom the model accepts, or all of them. Of what
the model accepts then, the best come as near to the row as they can, and the best of these is returned. What is best is
one function, `objective.Objective`. docs/method.md has the reasons and the measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor

from tdce._core import LARGEST_COUNT, Noise
from tdce.methods.candidates import MARGIN, Candidates, coarse
from tdce.methods.exemplars import ExemplarPool, ValueEffects
from tdce.methods.objective import Objective, costs, places
from tdce.methods.protocol import Dialogue, Query, Search, Task, task_of
from tdce.methods.settings import check_settings

WIDE = 256  # accepted people among whom those are chosen of whom the least should be enough
FURTHER = 512  # people who are asked about as a whole where nobody nearer will do
DRAWN = 64  # people who are drawn for a row of whom even these will not do
STRIDES = 20  # of that draw
OTHERS = 4  # times as many people are asked about for further options
WEIGHED = 8  # accepted parts of people whose energy is computed, the cheapest first
HALVINGS = 6
LITTLE = 0.02  # that a step away from the edge may cost
ROWS = 128  # that are compared with those people at a time
LAST = 2_000.0  # behind every value that should be enough, whatever it costs


@dataclass(frozen=True)
class DiffusionSearch:
    """Ask about single changes, parts of accepted people and whole ones, bring the best nearer."""

    edition: ClassVar[int] = 5  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = True
    closeness: float = 0.75  # the dial: 0 is most likely by the diffusion model, 1 as close as possible
    exemplars: int = 8  # accepted people of whom a row may take over a part; and whom it is asked about as a whole
    beam: int = 4  # candidates of either kind that are brought nearer
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, closeness=(0, 1), exemplars=(1, WIDE), beam=(1, LARGEST_COUNT))

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        closeness = self.closeness if query.closeness is None else query.closeness
        aim = Objective(task_of(self), query, noise, closeness, query.goals.towards(query.own.score))
        single, parts, whole = (Candidates(query, aim) for _ in range(3))
        yield from self.asked(query, single, parts, whole, slice(self.exemplars))
        yield from self.last_resort(query, single.lacking() & parts.lacking() & whole.lacking(), whole, noise)
        some = single.cheapest(self.beam).joined(parts.cheapest(WEIGHED))
        starts = some.best(self.beam).joined(whole.best(self.beam))
        near = yield from self.refine(query, starts, lambda some: some.best(2 * self.beam))
        answer = near.first()
        if query.options == 1:
            return answer
        yield from self.asked(query, single, parts, whole, slice(self.exemplars, OTHERS * self.exemplars))
        different = partial(Candidates.different, count=3 * query.options, begin=answer)
        starts = single.cheapest(OTHERS * WEIGHED).joined(parts.cheapest(OTHERS * WEIGHED)).joined(whole)
        others = yield from self.refine(query, different(starts), different)
        return near.joined(others).answers(query.options, answer)

    def asked(
        self, query: Query, single: Candidates, parts: Candidates, whole: Candidates, turns: slice
    ) -> Dialogue[None]:
        """All three kinds of candidates: of what each ranks, these places."""
        margin = query.own.margin.float()
        yield from self.single(query, single, margin, turns)
        yield from self.parts(query, parts, margin, turns)
        yield from self.whole_exemplars(query, whole, torch.arange(len(query.x)), turns)

    def single(self, query: Query, asked: Candidates, margin: Tensor, turns: slice) -> Dialogue[None]:
        """One feature changed: of all categories and some quantiles of each number, those that should be enough by
        their average effects, the cheapest first, then those that help most."""
        task, rows = task_of(self), torch.arange(len(query.x))
        space, free = task.space, task.free
        for goal, whose in query.goals.groups():
            values, at = ValueEffects.of(task, goal), rows[whose]
            if len(values.rows) == 0:
                continue
            gain = values.effect - values.effects(space, query.x[at])[:, values.feature]  # (n, values)
            there = places(task.encoder, values.rows).gather(1, values.feature[:, None])[:, 0]
            here = places(task.encoder, query.x[at])[:, values.feature]
            cost = costs(there != here, here, there) * query.costs.expand(len(free))[values.feature]
            enough = gain >= -margin[at, None]
            key = torch.where(enough, cost, LAST - gain)
            key = key.masked_fill((there == here) | ~free[values.feature], torch.inf)
            best, which = key.sort(dim=1, stable=True)
            row, turn = best[:, turns].isfinite().nonzero(as_tuple=True)
            value = which[:, turns][row, turn]
            changed = torch.where(space.members[values.feature[value]], values.rows[value], query.x[at[row]])
            yield from self.ask(query, asked, changed, at[row])

    def parts(self, query: Query, asked: Candidates, margin: Tensor, turns: slice) -> Dialogue[None]:
        """Of accepted people near the row, the features that help most: as many as should be enough by their average
        effects, one fewer, one more, and the first alone."""
        task, rows = task_of(self), torch.arange(len(query.x))
        for goal, whose in query.goals.groups():
            pool = ExemplarPool.of(task, goal)
            if len(pool.x) == 0:
                continue
            found = [self._parts(task, query, pool, at, margin, turns) for at in torch.split(rows[whose], ROWS)]
            candidates, at = (torch.cat(each) for each in zip(*found, strict=True))
            yield from self.ask(query, asked, candidates, at)

    @staticmethod
    def _parts(
        task: Task, query: Query, pool: ExemplarPool, at: Tensor, margin: Tensor, turns: slice
    ) -> tuple[Tensor, Tensor]:
        """(m, width) candidates for the rows at `at`, and (m,) whose each is."""
        features = torch.arange(len(task.space.members))
        near = pool.nearest(query.x[at], task.mutable, WIDE)  # (n, wide)
        gain, cost = pool.compared(task, query.x[at], near)  # (n, wide, features)
        cost = cost * query.costs
        helped, order = gain.sort(dim=2, descending=True, stable=True)
        place = torch.empty_like(order).scatter_(2, order, features.expand_as(order).contiguous())
        missing = helped.clamp_min(0.0).cumsum(dim=2) < -margin[at, None, None]
        enough = missing.sum(dim=2, keepdim=True)  # of the features in their order, the last that is needed
        price = torch.where((place <= enough) & (gain > 0), cost, 0.0).sum(dim=2)
        chosen = price.argsort(dim=1, stable=True)[:, turns, None]
        theirs, place, gain, enough = (
            each.gather(1, chosen.expand(-1, -1, each.shape[2])) for each in (near[:, :, None], place, gain, enough)
        )
        last = (enough - 1, enough, enough + 1, torch.zeros_like(enough))
        taken = torch.cat([(place <= each) & (gain > 0) for each in last], dim=1)
        theirs = theirs.squeeze(2).repeat(1, len(last))
        row, part = taken.any(dim=2).nonzero(as_tuple=True)
        over = taken[row, part][:, task.space.owner]  # (m, width) what is taken over
        return torch.where(over, pool.x[theirs[row, part]], query.x[at[row]]), at[row]

    def whole_exemplars(self, query: Query, asked: Candidates, rows: Tensor, turns: slice) -> Dialogue[None]:
        """The best of all accepted people as a whole, with the row's own immutable features."""
        task = task_of(self)
        for goal, whose in query.goals.groups():
            pool, at = ExemplarPool.of(task, goal), rows[whose[rows]]
            if len(at) and len(pool.x):
                best = pool.best(task, asked.aim, at, turns.stop)[:, turns]  # (n, count)
                each = at.repeat_interleave(best.shape[1])
                people = torch.where(task.mutable, pool.x[best.flatten()], query.x[each])
                yield from self.ask(query, asked, people, each)

    def last_resort(self, query: Query, lacking: Tensor, asked: Candidates, noise: Noise) -> Dialogue[None]:
        """For rows of which nothing was accepted: people further away, then people who are drawn with the row's
        immutable features."""
        task, rows = task_of(self), torch.arange(len(query.x))
        yield from self.whole_exemplars(query, asked, rows[lacking], slice(FURTHER))
        at = rows[lacking & asked.lacking()]
        if len(at):
            whose, number = at.repeat_interleave(DRAWN), torch.arange(DRAWN).repeat(len(at))[:, None]
            draws = Noise(torch.cat([query.x[whose], number], dim=1), noise.seed, noise.part)
            given = (query.x[whose], ~task.mutable)
            people = task.diffusion.sample(draws, STRIDES, y=asked.aim.y[whose], given=given)
            yield from self.ask(query, asked, people, whose)

    def refine(
        self, query: Query, near: Candidates, chosen: Callable[[Candidates], Candidates]
    ) -> Dialogue[Candidates]:
        """With their numbers halved towards the row, but not to the very edge, and with features given back for as long
        as that makes the objective smaller."""
        yield from self.bisect(query, near)
        near = yield from self.step_off_boundary(query, near)
        while True:
            near = chosen(near)
            if near.settled.all():
                return near
            near = yield from self.revert(query, near)

    def bisect(self, query: Query, near: Candidates) -> Dialogue[None]:
        """The numbers on the straight line from the row to where they are, as near as the verdict holds."""
        task, x_cf, at = task_of(self), near.x, near.at
        whole = task.encoder.marked(query.x)[at] | task.encoder.marked(x_cf)  # nothing lies between it and a number
        number = (torch.arange(task.space.width) < task.space.num) & ~whole
        moved = ((x_cf != query.x[at]) & number).any(dim=1)
        x_cf, at, number = x_cf[moved], at[moved], number[moved]
        own, low, high = query.x[at], torch.zeros(len(at), 1), torch.ones(len(at), 1)
        end = x_cf
        for _ in range(HALVINGS if len(at) else 0):
            middle = (low + high) / 2
            between = torch.where(number, own + middle * (x_cf - own), x_cf)
            reply = yield query.ask(coarse(task.space, own, between), at)
            good = near.accepted(reply, at)[:, None]
            end = torch.where(good, reply.x[:, 0], end)
            low, high = torch.where(good, low, middle), torch.where(good, middle, high)
        near.keep(end, at)

    def step_off_boundary(self, query: Query, near: Candidates) -> Dialogue[Candidates]:
        """What is refused if its numbers are one step of their grid nearer to the row goes one step further, if that is
        accepted and costs little."""
        encoder, x_cf, at = task_of(self).encoder, near.x, near.at
        if len(at) == 0:
            return near
        nearer, further = (encoder.stepped(x_cf, query.x[at], steps) for steps in (-1, 1))
        reply = yield query.ask(torch.stack([nearer, further], dim=1), at)
        moved = reply.x[:, 1]
        dearer = near.aim.cost(moved, at) - near.aim.cost(x_cf, at)
        good = reply.met[:, 1] & (reply.margin[:, 1] >= MARGIN) & (dearer <= LITTLE) & ~reply.met[:, 0]
        near.keep(moved[good], at[good])
        return near.without(torch.cat([good, torch.zeros(int(good.sum()), dtype=torch.bool)]))

    def revert(self, query: Query, near: Candidates) -> Dialogue[Candidates]:
        """Ask about every candidate with one change less. What is better takes the place of what it came from; a
        candidate of which nothing is better is settled."""
        space, x_cf, at, before = task_of(self).space, near.x, near.at, near.total
        changed = space.moved(x_cf, query.x[at])
        several = changed.sum(dim=1, keepdim=True) > 1
        i, feature = (changed & several & ~near.settled[:, None]).nonzero(as_tuple=True)
        less = torch.where(space.members[feature], query.x[at[i]], x_cf[i])
        good = yield from self.ask(query, near, less, at[i])
        after = torch.full((len(i),), torch.inf)
        after[good] = near.total[len(before) :]
        better = after < before[i]
        moved = torch.zeros(len(at), dtype=torch.bool).index_fill(0, i[better], True)
        near.settled[: len(at)] = ~moved
        return near.without(torch.cat([moved, ~better[good]]))

    def ask(self, query: Query, asked: Candidates, x_cf: Tensor, at: Tensor) -> Dialogue[Tensor]:
        """(m,) which of the candidates (m, width) of the rows at `at` the model accepts; these are kept."""
        if len(at) == 0:
            return torch.zeros(0, dtype=torch.bool)
        reply = yield query.ask(coarse(task_of(self).space, query.x[at], x_cf), at)
        good = asked.accepted(reply, at)
        asked.keep(reply.x[good, 0], at[good])
        return good
