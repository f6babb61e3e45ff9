"""The default method: the diffusion model proposes exemplars and rates how plausible each candidate is.

For each row, the search tries the changes that helped similar synthetic rows (its precedents) and whole exemplars
(synthetic rows that the model accepts); where there are no precedents, or too few help, also parts of exemplars. The
candidates that the model accepts are refined: brought as near to the row as possible, with as few changes as suffice.
The best by `objective.Objective` at the wanted position of the trade-off is returned. Nearly all candidates are the
same for all positions, so that answers at different positions are consistent; above the standard position, combinations
of a few changes are added. docs/method.md has the reasons and the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from tdce._core import LARGEST_COUNT, Noise
from tdce.methods.candidates import STANDARD_POSITION, Candidates, round_numbers
from tdce.methods.combinations import combine
from tdce.methods.coordinates import FEW_POINTS, FIRST_BISECTIONS, bisect, complete, enumerate_rows, exchange, try_ends
from tdce.methods.dialogues import together
from tdce.methods.exemplars import ExemplarPool, ValueEffects
from tdce.methods.narrowing import MANY_FEATURES, is_wide, narrow
from tdce.methods.objective import Objective, change_costs, feature_positions, needed_margin
from tdce.methods.protocol import Dialogue, Query, Search, Task, task_of
from tdce.methods.settings import check_settings
from tdce.models import Goal

UPPER, LOWER = (STANDARD_POSITION, 1.0), (0.0, 0.25, 0.5)  # positions of the trade-off that are searched together
NEAREST_PRECEDENTS = (6, 24, 6)  # number of precedents to try, for each of `PRECEDENT_POSITIONS`
PLAUSIBLE_PRECEDENTS = (24, 0, 0)  # the same for the lower positions
BEST_PRECEDENTS = ((STANDARD_POSITION, 4), (1.0, 2))  # accepted precedents to refine: how many best at which position
WHOLE_EXEMPLARS = 4  # exemplars tried in addition to precedents
FEWEST_PRECEDENTS = 4  # that must help; a row with fewer is searched like one without
NEAREST_EXEMPLARS = 256  # from which those are chosen whose parts should suffice at the lowest cost
CHEAPEST_PARTS = 8  # accepted parts of exemplars that are refined
LAST_RESORT_EXEMPLARS = 512  # tried as a whole for rows without a candidate
OPTIONS_FACTOR = 4  # factor on the number of candidates tried for further options
MAX_SWEPT_NUMBERS = 4  # numeric features whose ends are tried for every row
MAX_CHANGES_COMBINED = 10  # changes of which every subset is reverted; with more, every pair and triple
MAX_CHANGES_COMBINED_WIDE = 6  # the same in a wide table; with more, every pair
PARTS_BATCH_ROWS = 128  # rows that are compared with exemplars at a time
INSUFFICIENT = 2_000.0  # sorts values that should not suffice behind all that should, at any cost


@dataclass(frozen=True)
class DiffusionSearch:
    """Try the changes of precedents, exemplars and parts of them, and refine the best that the model accepts."""

    edition: ClassVar[int] = 11  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = True
    combined: ClassVar[int] = 3  # maximum number of changes combined above the standard position
    closeness: float = STANDARD_POSITION  # the trade-off: 0 is most plausible by the diffusion model, 1 closest
    exemplars: int = 8  # exemplars tried per row, as a whole and in parts
    beam: int = 4  # lines of candidates that are refined
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, closeness=(0, 1), exemplars=(1, NEAREST_EXEMPLARS), beam=(1, LARGEST_COUNT))

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        closeness = self.closeness if query.closeness is None else query.closeness
        asked = query.along or (closeness,)
        objective = Objective(task_of(self), query, noise, query.goals.target_class(query.decision.score))
        near = yield from self.refine(query, (yield from self.propose(query, objective)), UPPER)
        near.fix_safety()
        standard = near.best(STANDARD_POSITION)
        if max(asked) > STANDARD_POSITION and self.combined and task_of(self).oracle.budget is None:
            near = yield from self.approach(query, near)
        if min(asked) < STANDARD_POSITION:
            plausible = yield from self.propose_plausible(query, objective)
            near = yield from self.refine(query, near.union(plausible), LOWER)
        yield from self.settle(query, near, partial(front, positions=asked))
        if query.along:
            return torch.stack([near.answer(each) for each in asked], dim=1)
        answer = near.answer(closeness, None if closeness == STANDARD_POSITION else standard)
        if query.options == 1:
            return answer
        near = near.union((yield from self.propose_others(query, objective)))
        diverse = partial(Candidates.diverse, count=3 * query.options, first=answer, closeness=closeness)
        yield from self.bisect(query, near, diverse(near))
        yield from narrow(task_of(self), query, near, diverse, closeness, few=MANY_FEATURES)
        yield from self.settle(query, near, diverse)
        return near.answers(query.options, answer, closeness)

    def propose(self, query: Query, objective: Objective) -> Dialogue[Candidates]:
        """Find accepted candidates: few for rows with precedents that help, many for all others."""
        task, rows = task_of(self), torch.arange(len(query.x))
        new = partial(Candidates, task, query, objective)
        if task.oracle.budget is not None:  # first what every question is charged for
            for goal, _ in query.goals.groups():
                ExemplarPool.of(task, goal)
        precedents, whole, ends, points = new(), new(), new(), new()

        def with_precedents() -> Dialogue[tuple[Tensor, Candidates]]:
            energy = yield from self.precedents(query, precedents, NEAREST_PRECEDENTS)
            helped = torch.bincount(precedents.at, minlength=len(rows)) >= FEWEST_PRECEDENTS
            of_helped = self.whole_exemplars(query, whole, rows[helped], slice(WHOLE_EXEMPLARS))
            _, wide = yield from together(of_helped, self.propose_widely(query, objective, rows[~helped]))
            return energy, wide

        at_ends = try_ends(task, query, ends, self.effective_numbers(query))
        (energy, wide), _ = yield from together(with_precedents(), at_ends)
        left = torch.ones(len(rows), dtype=torch.bool)  # rows whose feasible set was not tried as a whole
        if task.oracle.budget is None:
            left[(yield from enumerate_rows(task, query, rows, points, FEW_POINTS))] = False
        best = [precedents.top(precedents.likely(energy, position), k) for position, k in BEST_PRECEDENTS]
        near = whole.union(wide, *best, ends.cheapest(1), points.cheapest(CHEAPEST_PARTS))
        yield from self.last_resort(query, near.unsolved() & left, near)
        return near.distinct().with_misses()

    def propose_widely(self, query: Query, objective: Objective, rows: Tensor) -> Dialogue[Candidates]:
        """Find the best single changes, parts of exemplars and whole exemplars for some rows (m,)."""
        new, ranks = partial(Candidates, task_of(self), query, objective), slice(self.exemplars)
        single, parts, whole = new(), new(), new()
        of_whole = self.whole_exemplars(query, whole, rows, ranks)
        yield from together(self.single(query, single, rows, ranks), self.parts(query, parts, rows, ranks), of_whole)
        return whole.union(single.cheapest(self.beam), parts.cheapest(CHEAPEST_PARTS))

    def propose_plausible(self, query: Query, objective: Objective) -> Dialogue[Candidates]:
        """Find more candidates for the lower positions of the trade-off: precedents and whole exemplars."""
        new, rows = partial(Candidates, task_of(self), query, objective), torch.arange(len(query.x))
        precedents, whole = new(), new()
        energy = yield from self.precedents(query, precedents, PLAUSIBLE_PRECEDENTS)
        for position in LOWER:
            yield from self.whole_exemplars(query, whole, rows, slice(WHOLE_EXEMPLARS), position)
        best = [precedents.top(precedents.likely(energy, position), self.beam) for position in LOWER]
        return whole.union(*best).distinct()

    def propose_others(self, query: Query, objective: Objective) -> Dialogue[Candidates]:
        """Find more candidates for all rows, from which further options are chosen."""
        new, ranks = partial(Candidates, task_of(self), query, objective), slice(OPTIONS_FACTOR * self.exemplars)
        single, parts, whole, rows = new(), new(), new(), torch.arange(len(query.x))
        of_whole = self.whole_exemplars(query, whole, rows, ranks)
        yield from together(self.single(query, single, rows, ranks), self.parts(query, parts, rows, ranks), of_whole)
        count = OPTIONS_FACTOR * CHEAPEST_PARTS
        return whole.union(single.cheapest(count), parts.cheapest(count)).distinct()

    def precedents(self, query: Query, candidates: Candidates, counts: tuple[int, ...]) -> Dialogue[Tensor]:
        """Try the changes of the most similar synthetic rows; (m,) the energy that each added there."""
        task, rows, known, energy = task_of(self), torch.arange(len(query.x)), task_of(self).precedents, []
        for goal, belongs in query.goals.groups():
            if known is not None and len(known.x) and goal.of == known.goal.of:
                x_cf, change = known.apply(task.space, query.x[belongs], task.free, counts)
                each = rows[belongs].repeat_interleave(x_cf.shape[1])
                accepted = yield from self.ask(query, candidates, x_cf.flatten(0, 1), each)
                energy.append(change.flatten()[accepted])
        return torch.cat([torch.zeros(0), *energy])

    def single(self, query: Query, candidates: Candidates, rows: Tensor, ranks: slice) -> Dialogue[None]:
        """Try single changes of some rows (m,), to any category or to some quantiles of a number: by cost, those that
        should suffice by their average effects; then the others, by effect."""
        task = task_of(self)
        space, free = task.space, task.free
        margin = query.decision.margin.float() - needed_margin(task, query)
        for goal, at in goals_of(query, rows):
            values = ValueEffects.of(task, goal)
            if len(values.rows) == 0:
                continue
            gain = values.effect - values.effects(space, query.x[at])[:, values.feature]  # (n, values)
            there = feature_positions(task.encoder, values.rows)[torch.arange(len(values.rows)), values.feature]
            here = feature_positions(task.encoder, query.x[at])[:, values.feature]
            other = there[:, 0] != here[:, :, 0]
            cost = change_costs(other, here, there) * query.costs.expand(len(free))[values.feature]
            sufficient = gain >= -margin[at, None]
            key = torch.where(sufficient, cost, INSUFFICIENT - gain)
            key = key.masked_fill(~other | ~free[values.feature], torch.inf)
            best, which = key.sort(dim=1, stable=True)
            row, rank = best[:, ranks].isfinite().nonzero(as_tuple=True)
            value = which[:, ranks][row, rank]
            changed = torch.where(space.members[values.feature[value]], values.rows[value], query.x[at[row]])
            yield from self.ask(query, candidates, changed, at[row])

    def parts(self, query: Query, candidates: Candidates, rows: Tensor, ranks: slice) -> Dialogue[None]:
        """Try parts of exemplars near some rows (m,): as many of the features that help most as should suffice by their
        average effects, one fewer, one more, and the first alone."""
        task = task_of(self)
        margin = query.decision.margin.float() - needed_margin(task, query)
        for goal, own in goals_of(query, rows):
            pool = ExemplarPool.of(task, goal)
            if len(pool.x) == 0:
                continue
            batches = torch.split(own, PARTS_BATCH_ROWS)
            parts = [self._parts(task, query, pool, at, margin, ranks) for at in batches]
            x_cf, at = (torch.cat(each) for each in zip(*parts, strict=True))
            yield from self.ask(query, candidates, x_cf, at)

    @staticmethod
    def _parts(
        task: Task, query: Query, pool: ExemplarPool, at: Tensor, margin: Tensor, ranks: slice
    ) -> tuple[Tensor, Tensor]:
        """(m, width) candidates for the rows at `at`, and (m,) the row of each."""
        features = pool.compared(task)  # (f,)
        near = pool.nearest(query.x[at], task.mutable, NEAREST_EXEMPLARS)  # (n, k)
        gain, cost = pool.compare(task, query.x[at], near, features)  # (n, k, f)
        cost = cost * query.costs.expand(len(task.free))[features]
        sorted_gain, order = gain.sort(dim=2, descending=True, stable=True)
        place = torch.empty_like(order).scatter_(2, order, torch.arange(len(features)).expand_as(order).contiguous())
        missing = sorted_gain.clamp_min(0.0).cumsum(dim=2) < -margin[at, None, None]
        enough = missing.sum(dim=2, keepdim=True)  # the rank of the last feature that is needed
        price = torch.where((place <= enough) & (gain > 0), cost, 0.0).sum(dim=2)
        cheapest = price.argsort(dim=1, stable=True)[:, ranks, None]
        exemplar, place, gain, enough = (
            each.gather(1, cheapest.expand(-1, -1, each.shape[2])) for each in (near[:, :, None], place, gain, enough)
        )
        last = (enough - 1, enough, enough + 1, torch.zeros_like(enough))
        taken = torch.cat([(place <= each) & (gain > 0) for each in last], dim=1)
        exemplar = exemplar.squeeze(2).repeat(1, len(last))
        row, part = taken.any(dim=2).nonzero(as_tuple=True)
        whole = torch.zeros(len(row), len(task.free), dtype=torch.bool).index_copy_(1, features, taken[row, part])
        columns = whole[:, task.space.owner]  # (m, width) the columns taken over
        return torch.where(columns, pool.x[exemplar[row, part]], query.x[at[row]]), at[row]

    def whole_exemplars(
        self, query: Query, candidates: Candidates, rows: Tensor, ranks: slice, closeness: float = STANDARD_POSITION
    ) -> Dialogue[None]:
        """Try the best exemplars for some rows (m,) as a whole, with the row's own immutable features."""
        task = task_of(self)
        for goal, at in goals_of(query, rows):
            pool = ExemplarPool.of(task, goal)
            if len(pool.x):
                best = pool.best(task, candidates.objective, at, ranks.stop, closeness)[:, ranks]  # (n, count)
                each = at.repeat_interleave(best.shape[1])
                x_cf = torch.where(task.mutable, pool.x[best.flatten()], query.x[each])
                yield from self.ask(query, candidates, x_cf, each)

    def last_resort(self, query: Query, unsolved: Tensor, candidates: Candidates) -> Dialogue[None]:
        """Try more distant exemplars for rows without a candidate (n,), then search along the features."""
        task, rows = task_of(self), torch.arange(len(query.x))
        yield from self.whole_exemplars(query, candidates, rows[unsolved], slice(LAST_RESORT_EXEMPLARS))
        yield from complete(task, query, rows[unsolved & candidates.unsolved()], candidates)

    def effective_numbers(self, query: Query) -> Tensor:
        """(k,) the columns of the free numbers with the largest average effects."""
        task = task_of(self)
        columns = [(i, at[0]) for i, at in enumerate(task.space.places.values()) if at and at[0] < task.space.num]
        free = [(i, column) for i, column in columns if task.free[i]]
        if len(free) > MAX_SWEPT_NUMBERS:
            size = torch.zeros(len(task.free))
            for goal, _ in query.goals.groups():
                size = torch.maximum(size, ValueEffects.of(task, goal).spread(len(size)))
            free = sorted(sorted(free, key=lambda each: -float(size[each[0]]))[:MAX_SWEPT_NUMBERS])
        return torch.tensor([column for _, column in free], dtype=torch.long)

    def refine(self, query: Query, near: Candidates, positions: tuple[float, ...]) -> Dialogue[Candidates]:
        """Bring candidates nearer to the row: bisect their numbers, revert changes of the best lines at these positions
        of the trade-off, exchange changes of the best candidates for cheaper ones, bisect each of their numbers alone,
        and revert their changes once more, also several together."""

        def lines(near: Candidates) -> Tensor:
            return distinct_positions([near.leading(each, self.beam) for each in positions])

        best = partial(front, positions=positions)
        yield from self.bisect(query, near, torch.arange(len(near.at)))
        yield from narrow(task_of(self), query, near, lines, positions[0])
        if not is_wide(task_of(self)):  # else they were narrowed
            yield from self.settle(query, near, lines, groups=False)
        yield from self.settle(query, near, best, groups=False)
        near = near.union((yield from exchange(task_of(self), query, near.take(best(near)))))
        yield from self.bisect_each(query, near, best(near))
        yield from self.settle(query, near, best)
        return near

    def approach(self, query: Query, near: Candidates) -> Dialogue[Candidates]:
        """Look for candidates even nearer than the best: combinations of a few changes, refined."""
        best = partial(front, positions=(1.0,))
        near = near.union((yield from combine(task_of(self), query, near, self.combined)))
        yield from self.bisect_each(query, near, best(near))
        yield from self.settle(query, near, best)
        near = near.union((yield from exchange(task_of(self), query, near.take(best(near)))))
        yield from self.bisect_each(query, near, best(near))
        yield from self.settle(query, near, best)
        return near

    def settle(
        self, query: Query, near: Candidates, select: Callable[[Candidates], Tensor], groups: bool = True
    ) -> Dialogue[None]:
        """Try the selected candidates with each change reverted and, with `groups`, several together, until all that
        are selected have been tried; accepted results are added to the line of their candidate."""
        space, free = task_of(self).space, task_of(self).free
        bound = [constraint.columns for constraint in task_of(self).encoder.laws.constraints]
        while True:
            which = select(near)
            todo, several = which[~near.settled[which]], False
            if len(todo) == 0 and groups:
                todo, several = which[~near.minimal[which]], True
            if len(todo) == 0:
                return
            (near.minimal if several else near.settled)[todo] = True
            x_cf, at = near.x[todo], near.at[todo]
            changed = space.moved(x_cf, query.x[at]) & free
            # (m,) candidates, and (m, features) what is reverted in each
            i, features = group_reverts(changed, bound) if several else single_reverts(changed)
            reverted = torch.where(features[:, space.owner], query.x[at[i]], x_cf[i])
            if len(i):  # values of rows and of answers are on the grid already
                reply = yield query.ask(reverted, at[i])
                accepted = near.screen(reply, at[i])
                own = near.line[todo][i][accepted]
                near.add(reply.x[accepted, 0], at[i][accepted], reply.margin[accepted, 0], own)

    def bisect(self, query: Query, near: Candidates, which: Tensor) -> Dialogue[None]:
        """Move the numbers of the candidates at `which` together along the straight line to the row, as near to it as
        they are still accepted, and add the results."""
        x_cf, at = near.x[which], near.at[which]
        number = self.free_numbers(query, x_cf, at)
        moved = ((x_cf != query.x[at]) & number).any(dim=1)
        yield from bisect(task_of(self), query, near, which[moved], number[moved], FIRST_BISECTIONS)

    def bisect_each(self, query: Query, near: Candidates, which: Tensor) -> Dialogue[None]:
        """Do the same with one number at a time."""
        x_cf, at = near.x[which], near.at[which]
        i, column = ((x_cf != query.x[at]) & self.free_numbers(query, x_cf, at)).nonzero(as_tuple=True)
        yield from bisect(task_of(self), query, near, which[i], one_hot(column, task_of(self).space.width).bool())

    def free_numbers(self, query: Query, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m, width) the columns of free numbers that can be bisected: neither the row's value nor the candidate's is a
        mark."""
        task = task_of(self)
        marked = task.encoder.is_mark(query.x)[at] | task.encoder.is_mark(x_cf)
        return (torch.arange(task.space.width) < task.space.num) & task.free[task.space.owner] & ~marked

    def ask(self, query: Query, candidates: Candidates, x_cf: Tensor, at: Tensor) -> Dialogue[Tensor]:
        """(m,) which of x_cf (m, width), for the rows at `at`, the model accepts; adds these to the candidates."""
        if len(at) == 0:
            return torch.zeros(0, dtype=torch.bool)
        reply = yield query.ask(round_numbers(task_of(self).space, query.x[at], x_cf), at)
        accepted = candidates.screen(reply, at)
        candidates.add(reply.x[accepted, 0], at[accepted], reply.margin[accepted, 0])
        return accepted


def front(near: Candidates, positions: Sequence[float]) -> Tensor:
    """(k,) the best candidates of each row at these positions of the trade-off."""
    return distinct_positions([near.best(each) for each in positions])


def distinct_positions(each: list[Tensor]) -> Tensor:
    """(k,) all distinct positions, sorted, without -1 (none)."""
    found = torch.from_numpy(np.unique(torch.cat(each).numpy()))
    return found[found >= 0]


def goals_of(query: Query, rows: Tensor) -> list[tuple[Goal, Tensor]]:
    """Each goal of some rows (m,), with the rows that have it."""
    each = [(goal, rows[belongs[rows]]) for goal, belongs in query.goals.groups()]
    return [(goal, at) for goal, at in each if len(at)]


def single_reverts(changed: Tensor) -> tuple[Tensor, Tensor]:
    """Each change alone of candidates with several (n, features): (m,) the candidate, and (m, features) the change."""
    i, feature = (changed & (changed.sum(dim=1, keepdim=True) > 1)).nonzero(as_tuple=True)
    return i, one_hot(feature, changed.shape[1]).bool()


def group_reverts(changed: Tensor, bound: Sequence[Sequence[int]] = ()) -> tuple[Tensor, Tensor]:
    """The same for every proper subset of two or more of a candidate's changes; with many changes, for every pair and
    triple. In a wide table: with many changes, for every pair and for the features that each law binds (`bound`); with
    very many, for the latter alone."""
    (features, count), wide = (changed.shape[1], changed.sum(dim=1)), changed.shape[1] > MANY_FEATURES
    all_sets, sizes = (MAX_CHANGES_COMBINED_WIDE, (2,)) if wide else (MAX_CHANGES_COMBINED, (2, 3))
    which, reverted = [torch.zeros(0, dtype=torch.long)], [torch.zeros(0, features, dtype=torch.bool)]
    for k in sorted({int(c) for c in count.tolist() if 2 < c <= MANY_FEATURES}):
        at = (count == k).nonzero().squeeze(1)
        each_size = range(2, k) if k <= all_sets else sizes
        chosen = [some for size in each_size for some in combinations(range(k), size)]
        sets = torch.tensor([[j in some for j in range(k)] for some in chosen])
        place = changed[at].nonzero(as_tuple=True)[1].view(len(at), k)  # the features that candidate changes
        each = torch.zeros(len(at), len(sets), features, dtype=torch.bool)
        each.scatter_(2, place[:, None].expand(-1, len(sets), -1), sets.expand(len(at), -1, -1))
        which.append(at.repeat_interleave(len(sets)))
        reverted.append(each.flatten(0, 1))
    at = (count > all_sets).nonzero().squeeze(1) if wide else count[:0]
    for columns in sorted({tuple(sorted(set(each))) for each in bound}) if len(at) else ():
        tied = changed[at] & torch.zeros(features, dtype=torch.bool).index_fill(0, torch.tensor(columns), True)
        several = tied.sum(dim=1) > 1
        which.append(at[several])
        reverted.append(tied[several])
    return torch.cat(which), torch.cat(reverted)
