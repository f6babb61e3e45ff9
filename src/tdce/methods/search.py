"""The default method: the diffusion model proposes exemplars and says how plausible each candidate is.

A row takes over as few features as may suffice from exemplars, synthetic rows that the model accepts, or all of them.
The best of the candidates that the model then accepts are refined, brought as near to the row as they can, and the best
of these is returned. What is best is one function, `objective.Objective`. docs/method.md has the reasons and the
measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from tdce._core import LARGEST_COUNT, Noise
from tdce.methods.candidates import MIN_MARGIN, Candidates, round_numbers
from tdce.methods.coordinates import FEW_POINTS, bisect, complete, enumerate_rows, exchange, try_ends
from tdce.methods.exemplars import ExemplarPool, ValueEffects
from tdce.methods.narrowing import MANY, narrow
from tdce.methods.objective import Objective, change_costs, feature_positions, needed_margin
from tdce.methods.protocol import Dialogue, Query, Search, Task, task_of
from tdce.methods.settings import check_settings

NEAREST_EXEMPLARS = 256  # among which those are chosen whose parts should suffice at the lowest cost
NEAREST_PRECEDENTS = 15  # whose changes are tried
LAST_RESORT_EXEMPLARS = 512  # tried as a whole for rows without a candidate
LAST_RESORT_DRAWS = 64  # synthetic rows drawn for a row for which these fail, too
LAST_RESORT_STEPS = 20  # of the reverse walk that draws them
OPTIONS_FACTOR = 4  # times as many candidates are tried for further options
SCORED_PARTS = 8  # accepted parts of exemplars whose energy is computed, the cheapest first
MAX_SWEPT_NUMBERS = 12  # whose ends are tried for every row
MAX_CHANGES_COMBINED_WIDE = 6  # the same in a wide table
MAX_CHANGES_COMBINED = 10  # of which every subset is reverted; of more, every pair and every three
MIN_WORTH = 0.001  # of the objective that each change must be worth
BOUNDARY_STEP_COST = 0.02  # that a step off the decision boundary may cost
PARTS_BATCH_ROWS = 128  # rows that are compared with exemplars at a time
INSUFFICIENT = 2_000.0  # sorts values that should not suffice behind all that should, whatever those cost


@dataclass(frozen=True)
class DiffusionSearch:
    """Try single changes, parts of exemplars and whole exemplars, and refine the best that the model accepts."""

    edition: ClassVar[int] = 9  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = True
    closeness: float = 0.75  # the trade-off: 0 is most plausible by the diffusion model, 1 as close as possible
    exemplars: int = 8  # of which a row may take over a part, and which are tried as a whole
    beam: int = 4  # candidates of either kind that are refined
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, closeness=(0, 1), exemplars=(1, NEAREST_EXEMPLARS), beam=(1, LARGEST_COUNT))

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        closeness = self.closeness if query.closeness is None else query.closeness
        target = query.goals.target_class(query.decision.score)
        objective = Objective(task_of(self), query, noise, closeness, target)
        single, parts, whole = (Candidates(task_of(self), query, objective) for _ in range(3))
        yield from self.propose(query, single, parts, whole, slice(self.exemplars))
        yield from self.precedents(query, parts)
        yield from try_ends(task_of(self), query, single, self.effective_numbers(query))
        if task_of(self).oracle.budget is None:
            yield from enumerate_rows(task_of(self), query, torch.arange(len(query.x)), parts, FEW_POINTS)
        yield from self.last_resort(query, single.unsolved() & parts.unsolved() & whole.unsolved(), whole, noise)
        partial_changes = single.cheapest(self.beam).union(parts.cheapest(SCORED_PARTS))
        starts = partial_changes.best(self.beam).union(whole.best(self.beam)).with_misses()
        starts = yield from narrow(task_of(self), query, starts)
        near = yield from self.refine(query, starts, lambda near: near.best(2 * self.beam))
        near = yield from self.polish(query, near)
        answer = near.best_answer()
        if query.options == 1:
            return answer
        yield from self.propose(query, single, parts, whole, slice(self.exemplars, OPTIONS_FACTOR * self.exemplars))
        diverse = partial(Candidates.diverse, count=3 * query.options, first=answer)
        count = OPTIONS_FACTOR * SCORED_PARTS
        starts = single.cheapest(count).union(parts.cheapest(count)).union(whole)
        starts = yield from narrow(task_of(self), query, diverse(starts))
        others = yield from self.refine(query, starts, diverse)
        return near.union(others).answers(query.options, answer)

    def propose(
        self, query: Query, single: Candidates, parts: Candidates, whole: Candidates, ranks: slice
    ) -> Dialogue[None]:
        """Try candidates of all three kinds: of what each kind ranks, those of these ranks."""
        margin = query.decision.margin.float() - needed_margin(task_of(self), query)
        yield from self.single(query, single, margin, ranks)
        yield from self.parts(query, parts, margin, ranks)
        yield from self.whole_exemplars(query, whole, torch.arange(len(query.x)), ranks)

    def single(self, query: Query, candidates: Candidates, margin: Tensor, ranks: slice) -> Dialogue[None]:
        """Try one changed feature: of all categories and some quantiles of each number, first those that should suffice
        by their average effects, by cost, then the others, by effect."""
        task, rows = task_of(self), torch.arange(len(query.x))
        space, free = task.space, task.free
        for goal, belongs in query.goals.groups():
            values, at = ValueEffects.of(task, goal), rows[belongs]
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

    def parts(self, query: Query, candidates: Candidates, margin: Tensor, ranks: slice) -> Dialogue[None]:
        """Try parts of exemplars near the row: of the features that help most, as many as should suffice by their
        average effects, one fewer, one more, and the first alone."""
        task, rows = task_of(self), torch.arange(len(query.x))
        for goal, belongs in query.goals.groups():
            pool = ExemplarPool.of(task, goal)
            if len(pool.x) == 0:
                continue
            batches = torch.split(rows[belongs], PARTS_BATCH_ROWS)
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
        enough = missing.sum(dim=2, keepdim=True)  # the place of the last feature that is needed
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
        columns = whole[:, task.space.owner]  # (m, width) those taken over
        return torch.where(columns, pool.x[exemplar[row, part]], query.x[at[row]]), at[row]

    def precedents(self, query: Query, candidates: Candidates) -> Dialogue[None]:
        """Try what the search changed for the most similar synthetic rows."""
        task, rows = task_of(self), torch.arange(len(query.x))
        known = task.precedents
        for goal, belongs in query.goals.groups():
            if known is not None and len(known.x) and goal.of == known.goal.of:
                x_cf = known.apply(task.space, query.x[belongs], task.free, NEAREST_PRECEDENTS)
                yield from self.ask(
                    query, candidates, x_cf.flatten(0, 1), rows[belongs].repeat_interleave(x_cf.shape[1])
                )

    def whole_exemplars(self, query: Query, candidates: Candidates, rows: Tensor, ranks: slice) -> Dialogue[None]:
        """Try the best exemplars as a whole, with the row's own immutable features."""
        task = task_of(self)
        for goal, belongs in query.goals.groups():
            pool, at = ExemplarPool.of(task, goal), rows[belongs[rows]]
            if len(at) and len(pool.x):
                best = pool.best(task, candidates.objective, at, ranks.stop)[:, ranks]  # (n, count)
                each = at.repeat_interleave(best.shape[1])
                x_cf = torch.where(task.mutable, pool.x[best.flatten()], query.x[each])
                yield from self.ask(query, candidates, x_cf, each)

    def last_resort(self, query: Query, unsolved: Tensor, candidates: Candidates, noise: Noise) -> Dialogue[None]:
        """For rows without a candidate, try exemplars further away, then synthetic rows drawn with the row's own
        immutable features."""
        task, rows = task_of(self), torch.arange(len(query.x))
        yield from self.whole_exemplars(query, candidates, rows[unsolved], slice(LAST_RESORT_EXEMPLARS))
        at = rows[unsolved & candidates.unsolved()]
        if len(at):
            each = at.repeat_interleave(LAST_RESORT_DRAWS)
            number = torch.arange(LAST_RESORT_DRAWS).repeat(len(at))[:, None]
            draws = Noise(torch.cat([query.x[each], number], dim=1), noise.seed, noise.part)
            given = (query.x[each], ~task.mutable)
            x_cf = task.diffusion.sample(draws, LAST_RESORT_STEPS, y=candidates.objective.y[each], given=given)
            yield from self.ask(query, candidates, x_cf, each)
        yield from complete(task, query, rows[unsolved & candidates.unsolved()], candidates)

    def effective_numbers(self, query: Query) -> Tensor:
        """(k,) the columns of the free numbers whose values make the largest difference on average."""
        task = task_of(self)
        columns = [(i, at[0]) for i, at in enumerate(task.space.places.values()) if at and at[0] < task.space.num]
        free = [(i, column) for i, column in columns if task.free[i]]
        if len(free) > MAX_SWEPT_NUMBERS:
            size = torch.zeros(len(task.free))
            for goal, _ in query.goals.groups():
                size = torch.maximum(size, ValueEffects.of(task, goal).spread(len(size)))
            free = sorted(sorted(free, key=lambda each: -float(size[each[0]]))[:MAX_SWEPT_NUMBERS])
        return torch.tensor([column for _, column in free], dtype=torch.long)

    def refine(
        self, query: Query, near: Candidates, select: Callable[[Candidates], Candidates]
    ) -> Dialogue[Candidates]:
        """Bring candidates nearer to the row: bisect their numbers, step off the decision boundary, and revert changes
        for as long as that lowers the objective; `select` picks those to go on with."""
        yield from self.bisect(query, near)
        near = yield from self.step_off_boundary(query, near)
        return (yield from self.settle(query, near, select))

    def settle(
        self, query: Query, near: Candidates, select: Callable[[Candidates], Candidates], worth: float = MIN_WORTH
    ) -> Dialogue[Candidates]:
        """Revert changes that are not worth this much of the objective each: one at a time, then several together."""
        while True:
            near = select(near)
            if not near.settled.all():
                near = yield from self.revert(query, near, worth=worth)
            elif not near.minimal.all():
                near = yield from self.revert(query, near, groups=True, worth=worth)
            else:
                return near

    def polish(self, query: Query, near: Candidates) -> Dialogue[Candidates]:
        """Exchange changes of the best candidates for cheaper ones, bring each of their numbers nearer to the row by
        itself, and revert changes once more."""
        task = task_of(self)
        near = near.union((yield from exchange(task, query, near.best(1))))
        best = near.best(1)
        marked = task.encoder.is_mark(query.x)[best.at] | task.encoder.is_mark(best.x)
        number = (torch.arange(task.space.width) < task.space.num) & task.free[task.space.owner] & ~marked
        i, column = ((best.x != query.x[best.at]) & number).nonzero(as_tuple=True)
        which = one_hot(column, task.space.width).bool()
        yield from bisect(task, query, near, best.x[i], best.at[i], which, best.shortfall[i])
        return (yield from self.settle(query, near, lambda near: near.best(2 * self.beam)))

    def bisect(self, query: Query, near: Candidates) -> Dialogue[None]:
        """Add candidates with numbers on the straight line to the row, as near to it as the decision holds."""
        task, x_cf, at = task_of(self), near.x, near.at
        marked = task.encoder.is_mark(query.x)[at] | task.encoder.is_mark(x_cf)  # no number lies between
        number = (torch.arange(task.space.width) < task.space.num) & ~marked
        moved = ((x_cf != query.x[at]) & number).any(dim=1)
        lacking = near.shortfall[moved]
        yield from bisect(task, query, near, x_cf[moved], at[moved], number[moved], lacking)

    def step_off_boundary(self, query: Query, near: Candidates) -> Dialogue[Candidates]:
        """Move a candidate one step of its grid further from the row if it would be refused one step nearer to it, and
        if the step further is accepted at little cost."""
        encoder, x_cf, at = task_of(self).encoder, near.x, near.at
        if len(at) == 0:
            return near
        nearer, further = (encoder.step_numbers(x_cf, query.x[at], steps) for steps in (-1, 1))
        reply = yield query.ask(torch.stack([nearer, further], dim=1), at)
        x_further = reply.x[:, 1]
        extra_cost = near.objective.cost(x_further, at) - near.objective.cost(x_cf, at)
        accepted = reply.met[:, 1] & (reply.margin[:, 1] >= MIN_MARGIN)
        step = accepted & (extra_cost <= BOUNDARY_STEP_COST) & ~reply.met[:, 0]
        near.add(x_further[step], at[step], reply.margin[step, 1])
        return near.drop(torch.cat([step, torch.zeros(int(step.sum()), dtype=torch.bool)]))

    def revert(
        self, query: Query, near: Candidates, groups: bool = False, worth: float = MIN_WORTH
    ) -> Dialogue[Candidates]:
        """Try every candidate with one change reverted, or several. A better one replaces the candidate it came from; a
        candidate without a better one is settled, and after `groups` minimal."""
        space, free, x_cf, at, before = task_of(self).space, task_of(self).free, near.x, near.at, near.total
        done = near.minimal if groups else near.settled
        changes = space.moved(x_cf, query.x[at]) & free
        changed = changes & ~done[:, None]
        # (m,) a candidate, and (m, features) what is reverted in it
        bound = [constraint.columns for constraint in task_of(self).encoder.laws.constraints]
        i, features = group_reverts(changed, bound) if groups else single_reverts(changed)
        reverted = torch.where(features[:, space.owner], query.x[at[i]], x_cf[i])
        accepted = yield from self.ask(query, near, reverted, at[i])
        fewer = changes[i[accepted]].sum(dim=1) - (space.moved(near.x, query.x[near.at]) & free)[len(at) :].sum(dim=1)
        better = torch.zeros(len(i), dtype=torch.bool)
        better[accepted] = near.total[len(at) :] < before[i[accepted]] + worth * fewer
        replaced = torch.zeros(len(at), dtype=torch.bool).index_fill(0, i[better], True)
        near.settled[: len(at)] = ~replaced
        near.minimal[: len(at)] = ~replaced if groups else near.minimal[: len(at)]
        return near.drop(torch.cat([replaced, ~better[accepted]]))

    def ask(self, query: Query, candidates: Candidates, x_cf: Tensor, at: Tensor) -> Dialogue[Tensor]:
        """(m,) which of x_cf (m, width), for the rows at `at`, the model accepts; these are added to the candidates."""
        if len(at) == 0:
            return torch.zeros(0, dtype=torch.bool)
        reply = yield query.ask(round_numbers(task_of(self).space, query.x[at], x_cf), at)
        accepted = candidates.screen(reply, at)
        candidates.add(reply.x[accepted, 0], at[accepted], reply.margin[accepted, 0])
        return accepted


def single_reverts(changed: Tensor) -> tuple[Tensor, Tensor]:
    """For each of several changes (n, features) of a candidate: (m,) the candidate, and (m, features) that change."""
    i, feature = (changed & (changed.sum(dim=1, keepdim=True) > 1)).nonzero(as_tuple=True)
    return i, one_hot(feature, changed.shape[1]).bool()


def group_reverts(changed: Tensor, bound: Sequence[Sequence[int]] = ()) -> tuple[Tensor, Tensor]:
    """The same for every set of two or more of a candidate's changes, but not for all of them; with many changes, for
    every pair and every three. In a wide table, with many changes for every pair, with very many for what a law ties
    together (`bound`, its features)."""
    (features, count), wide = (changed.shape[1], changed.sum(dim=1)), changed.shape[1] > MANY
    all_sets, sizes = (MAX_CHANGES_COMBINED_WIDE, (2,)) if wide else (MAX_CHANGES_COMBINED, (2, 3))
    which, reverted = [torch.zeros(0, dtype=torch.long)], [torch.zeros(0, features, dtype=torch.bool)]
    for k in sorted({int(c) for c in count.tolist() if 2 < c <= MANY}):
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
