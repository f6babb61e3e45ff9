"""Candidates that the model accepts: their cost and energy, and the choice of those to refine and to return."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tdce._core import rank_within
from tdce.methods.objective import SAFETY_WEIGHT, Objective, safety_shortfall
from tdce.methods.protocol import Query, Reply, Task
from tdce.schema import Space

MIN_MARGIN = 0.02  # in log odds, so that no answer lies right on the decision boundary
BAND_SHARE = 0.1  # in a narrow band, the minimum margin is this share of its width
MIN_WORTH = 0.001  # by which each change must improve the objective
STANDARD_POSITION = 0.75  # of the trade-off; its best candidate sets how safe those of all positions must be
OVERLAP_PENALTY = 1.0  # how much worse an option may be if it changes entirely different features
SAME_FEATURES_PENALTY = 100.0  # so that the same features are changed again only as a last resort
NUMBER_STEP = 2.0**-8  # of a standard deviation


class Candidates:
    """Accepted candidates of all rows of a query, as flat tensors; cost and energy are computed once, on demand.

    A line is the candidates that were made from one another.
    """

    def __init__(self, task: Task, query: Query, objective: Objective) -> None:
        self.task, self.query, self.objective = task, query, objective
        self.x, self.at = query.x[:0], torch.arange(0)  # (m, width), and (m,) the row of each
        self.line = torch.arange(0)  # (m,)
        self.settled = torch.zeros(0, dtype=torch.bool)  # (m,) reverting each change alone was tried
        self.minimal = torch.zeros(0, dtype=torch.bool)  # (m,) so was reverting several together
        self.shortfall = torch.zeros(0)  # (m,) wanted minus forecast safety, at least 0
        self._cost = self._energy = self._changes = torch.zeros(0)  # (m,) NaN: not computed yet
        self.nearest_miss = query.x  # (n, width) each row's refused candidate with the largest margin
        self.miss_margin = torch.full((len(query.x),), -torch.inf, dtype=torch.double)
        self.any_margin = torch.zeros(len(query.x), dtype=torch.bool)  # (n,) rows that accept any margin
        self.lacking: Tensor | None = None  # (n,) see `fix_safety`

    @property
    def min_margin(self) -> Tensor:
        """(n,) the margin by which a candidate must be accepted; smaller in a narrow band."""
        return (BAND_SHARE * self.query.goals.width).clamp(max=MIN_MARGIN).masked_fill(self.any_margin, 0.0)

    @property
    def cost(self) -> Tensor:
        """(m,)"""
        unknown = self._cost.isnan().nonzero().squeeze(1)
        if len(unknown):
            self._cost[unknown] = self.objective.cost(self.x[unknown], self.at[unknown])
        return self._cost

    @property
    def energy(self) -> Tensor:
        """(m,)"""
        unknown = self._energy.isnan().nonzero().squeeze(1)
        if len(unknown):
            self._energy[unknown] = self.objective.energy(self.x[unknown], self.at[unknown])
        return self._energy

    @property
    def changes(self) -> Tensor:
        """(m,) the number of features that each changes, followers not counted."""
        unknown = self._changes.isnan().nonzero().squeeze(1)
        if len(unknown):
            moved = self.objective.space.moved(self.x[unknown], self.query.x[self.at[unknown]])
            self._changes[unknown] = (moved & ~self.objective.follows).sum(dim=1).float()
        return self._changes

    def total(self, closeness: float, safe: bool = True) -> Tensor:
        """(m,) the objective at this position of the trade-off; the penalty for too little safety only if `safe`."""
        penalty = self.shortfall if safe else torch.zeros_like(self.shortfall)
        energy = self.energy if closeness < 1 else 0.0  # expensive to compute
        return self.objective.total(self.cost, energy, closeness, penalty) + MIN_WORTH * self.changes

    def add(self, x: Tensor, at: Tensor, margin: Tensor, line: Tensor | None = None) -> None:
        """Add candidates (m, width) of the rows at `at`, accepted by this margin (m,), each to its line `line` (m,) or
        as a line of its own."""
        new = torch.arange(len(at)) + (int(self.line.max()) + 1 if len(self.line) else 0)
        self.x, self.at = torch.cat([self.x, x]), torch.cat([self.at, at])
        self.line = torch.cat([self.line, new if line is None else line])
        self.shortfall = torch.cat([self.shortfall, safety_shortfall(self.task, self.query, x, margin, at)])
        unknown, fresh = torch.full((len(at),), torch.nan), torch.zeros(len(at), dtype=torch.bool)
        self._cost, self._energy, self._changes = (
            torch.cat([each, unknown]) for each in (self._cost, self._energy, self._changes)
        )
        self.settled, self.minimal = torch.cat([self.settled, fresh]), torch.cat([self.minimal, fresh])

    def screen(self, reply: Reply, at: Tensor, lacking: Tensor | None = None) -> Tensor:
        """(m,) which candidates of a reply are accepted by the minimum margin and, if `lacking` (m,) is given, with a
        safety shortfall of at most that; records each row's nearest miss."""
        x, margin = reply.x[:, 0], reply.margin[:, 0]
        first = _order_by_row(-margin, at)
        first = first[rank_within(at[first]) == 0]
        first = first[margin[first] > self.miss_margin[at[first]]]
        self.nearest_miss = self.nearest_miss.index_copy(0, at[first], x[first])
        self.miss_margin = self.miss_margin.index_copy(0, at[first], margin[first])
        accepted = reply.met[:, 0] & (margin >= self.min_margin[at])
        if lacking is None or self.query.safety == 0:
            return accepted
        return accepted & (safety_shortfall(self.task, self.query, x, margin, at) <= lacking)

    def unsolved(self) -> Tensor:
        """(n,) rows without a candidate."""
        return torch.ones(len(self.query.x), dtype=torch.bool).index_fill(0, self.at, False)

    def with_misses(self) -> Candidates:
        """These candidates, and for rows without any, the nearest miss if it meets the goal, though by less than the
        minimum margin; such rows then accept any margin."""
        at = (self.unsolved() & (self.miss_margin >= 0)).nonzero().squeeze(1)
        more = self.take(torch.arange(len(self.at)))
        more.add(self.nearest_miss[at], at, self.miss_margin[at])
        more.any_margin = self.any_margin.index_fill(0, at, True)
        return more

    def cheapest(self, count: int) -> Candidates:
        """Up to `count` distinct candidates of each row with the lowest cost, too little safety penalised."""
        return self.top(self.cost + SAFETY_WEIGHT * self.shortfall, count)

    def distinct(self) -> Candidates:
        """These candidates without duplicates of the same row."""
        return self.top(self.cost, len(self.at))

    def likely(self, energy: Tensor, closeness: float) -> Tensor:
        """(m,) the objective at this position, up to a constant per row, if the changes add this energy (m,)."""
        return self.objective.total(self.cost, energy, closeness, self.shortfall)

    def top(self, key: Tensor, count: int) -> Candidates:
        """Up to `count` distinct candidates of each row with the lowest key (m,)."""
        order = _order_by_row(key, self.at)
        x, at = self.x[order], self.at[order]
        repeated = torch.zeros(len(at), dtype=torch.bool)
        repeated[1:] = (at[1:] == at[:-1]) & (x[1:] == x[:-1]).all(dim=1)
        order = order[~repeated]
        return self.take(order[rank_within(self.at[order]) < count])

    def leaders(self, closeness: float) -> Tensor:
        """(k,) the leaders: the best candidate of each line."""
        lines = int(self.line.max()) + 1 if len(self.line) else 0
        best = lowest(self.total(closeness), self.line, lines)
        return best[best >= 0]

    def leading(self, closeness: float, count: int) -> Tensor:
        """(k,) the leaders of up to `count` best lines of each row."""
        leaders = self.leaders(closeness)
        order = leaders[_order_by_row(self.total(closeness)[leaders], self.at[leaders])]
        return order[rank_within(self.at[order]) < count]

    def best(self, closeness: float) -> Tensor:
        """(n,) the best candidate of each row at this position of the trade-off; -1 if there is none.

        At all positions the best is at least as safe as at the standard one, so that the trade-off is between distance
        and energy alone: as closeness rises, the distance of the best never increases."""
        lacking = self._lacking() if self.lacking is None else self.lacking
        key = self.total(closeness, safe=False).masked_fill(self.shortfall > lacking[self.at], torch.inf)
        return lowest(key, self.at, len(self.query.x))

    def fix_safety(self) -> None:
        """Fix how safe the best must be, whatever candidates are added later."""
        self.lacking = self._lacking()

    def _lacking(self) -> Tensor:
        """(n,) the safety shortfall of the best candidate at the standard position."""
        standard = lowest(self.total(STANDARD_POSITION), self.at, len(self.query.x))
        return torch.cat([self.shortfall, torch.zeros(1)])[standard]  # the last is for rows without any

    def answer(self, closeness: float, standard: Tensor | None = None) -> Tensor:
        """(n, width) the best candidate of each row; the nearest miss if there is none. `standard` (n,), the best at
        the standard position, takes its place if the best is nearer at a lower position or further at a higher one.

        A question at the standard position alone gets `standard` itself. It has no needless change at other positions
        either: a part of it that is worse at the standard position has more energy."""
        best = self.best(closeness)
        if standard is not None:
            cost = torch.cat([self.cost, torch.zeros(1)])
            backwards = cost[best] < cost[standard] if closeness < STANDARD_POSITION else cost[best] > cost[standard]
            best = torch.where(backwards & (standard >= 0), standard, best)
        return torch.where((best >= 0)[:, None], torch.cat([self.x, self.query.x[:1]])[best], self.nearest_miss)

    def answers(self, count: int, first: Tensor, closeness: float) -> Tensor:
        """(n, count, width) the answer already chosen, then good ones that change other features; the last is repeated
        if there are too few."""
        which, exists = self._greedy(count - 1, first, closeness)
        out, known = [first], torch.cat([self.x, first[:1]])  # never empty
        for candidate, there in zip(which.T, exists.T, strict=True):
            out.append(torch.where(there[:, None], known[candidate], out[-1]))
        return torch.stack(out, dim=1)

    def diverse(
        self,
        count: int,
        first: Tensor,  # (n, width) the answers already chosen
        closeness: float,
    ) -> Tensor:
        """(k,) up to `count` good candidates of each row, each changing other features than those before it."""
        which, exists = self._greedy(count, first, closeness)
        return which[exists]

    def union(self, *others: Candidates) -> Candidates:
        """These candidates and others for the same rows."""
        both = self.take(torch.arange(len(self.at)))
        for more in others:
            line = more.line + (int(both.line.max()) + 1 if len(both.line) else 0)
            for name in ("x", "at", "settled", "minimal", "shortfall", "_cost", "_energy", "_changes"):
                setattr(both, name, torch.cat([getattr(both, name), getattr(more, name)]))
            both.line = torch.cat([both.line, line])
            nearer = more.miss_margin > both.miss_margin
            both.nearest_miss = torch.where(nearer[:, None], more.nearest_miss, both.nearest_miss)
            both.miss_margin = torch.maximum(both.miss_margin, more.miss_margin)
            both.any_margin = both.any_margin | more.any_margin
        return both

    def take(self, which: Tensor) -> Candidates:
        """The candidates at these positions (k,)."""
        subset = Candidates(self.task, self.query, self.objective)
        for name in ("x", "at", "line", "settled", "minimal", "shortfall", "_cost", "_energy", "_changes"):
            setattr(subset, name, getattr(self, name)[which])
        subset.nearest_miss, subset.miss_margin = self.nearest_miss, self.miss_margin
        subset.any_margin, subset.lacking = self.any_margin, self.lacking
        return subset

    def _greedy(self, count: int, first: Tensor, closeness: float) -> tuple[Tensor, Tensor]:
        """(n, count) leaders of lines, chosen one by one by the objective and by the overlap of their changes with
        those of earlier ones; and whether there was one left."""
        n, space = len(self.query.x), self.objective.space
        leaders, objective = self.leaders(closeness), self.total(closeness)
        order = leaders[_order_by_row(objective[leaders], self.at[leaders])]
        rank = rank_within(self.at[order])
        table = torch.full((n, int(rank.max()) + 1 if len(rank) else 1), -1)
        table[self.at[order], rank] = order  # (n, k) the candidates of each row
        total = torch.where(table >= 0, torch.cat([objective, torch.zeros(1)])[table], torch.inf)
        x = torch.cat([self.x, self.query.x[:1]])[table]  # (n, k, width)
        rows = torch.arange(n)[:, None].expand_as(table)
        changed = space.moved(x.flatten(0, 1), self.query.x[rows.flatten()]).view(*table.shape, -1)
        changed, last, overlap = changed & ~self.objective.follows, first, torch.zeros_like(total)
        chosen, exists, last_total = [], [], torch.full((n,), -torch.inf)  # the first answer is the best
        for _ in range(count):
            own = space.moved(last, self.query.x) & ~self.objective.follows
            same = ((x == last[:, None]) | ~own[:, None, space.owner]).all(dim=2)
            needless = same & (changed.sum(dim=2) > own.sum(dim=1, keepdim=True)) & (total >= last_total[:, None])
            total = total.masked_fill(needless, torch.inf)  # it contains an answer that is as good
            overlap = torch.maximum(overlap, _overlap(changed, space.moved(last, self.query.x)[:, None]))
            total = total.masked_fill((x == last[:, None]).all(dim=2), torch.inf)  # never the same answer twice
            score, which = (total + OVERLAP_PENALTY * overlap + SAME_FEATURES_PENALTY * (overlap == 1)).min(
                dim=1, keepdim=True
            )
            chosen.append(table.gather(1, which).clamp_min(0))
            exists.append(score.isfinite())
            last_total = torch.where(exists[-1][:, 0], total.gather(1, which)[:, 0], last_total)
            last = torch.where(exists[-1], x.gather(1, which[:, :, None].expand(-1, -1, x.shape[2]))[:, 0], last)
        none = torch.zeros(n, 0, dtype=torch.long)
        return torch.cat([none, *chosen], dim=1), torch.cat([none.bool(), *exists], dim=1)


def round_numbers(space: Space, x: Tensor, x_cf: Tensor) -> Tensor:
    """Candidates (..., width) with changed numbers rounded, so that they are the same on every machine."""
    number = torch.arange(space.width) < space.num
    return torch.where(number & (x_cf != x), (x_cf / NUMBER_STEP).round() * NUMBER_STEP, x_cf)


def lowest(key: Tensor, group: Tensor, groups: int) -> Tensor:
    """(groups,) the position of the lowest key (m,) in each group (m,), the first if tied; -1 if all are infinite."""
    least = torch.full((groups,), torch.inf).scatter_reduce(0, group, key, "amin")
    m = len(key)
    place = torch.where((key == least[group]) & key.isfinite(), torch.arange(m), m)
    first = torch.full((groups,), m).scatter_reduce(0, group, place, "amin")
    return first.masked_fill(first == m, -1)


def _order_by_row(key: Tensor, at: Tensor) -> Tensor:
    """(m,) positions sorted by row, then by key; stable."""
    return torch.from_numpy(np.lexsort((key.numpy(), at.numpy())))


def _overlap(changed: Tensor, others: Tensor) -> Tensor:
    """(...) the Jaccard index of two sets of features (..., features)."""
    return (changed & others).sum(dim=-1) / (changed | others).sum(dim=-1).clamp_min(1)
