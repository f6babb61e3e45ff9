"""Candidates that the model accepts: their objective, and the choice of those to return."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tdce._core import rank_within
from tdce.methods.objective import SAFETY_WEIGHT, Objective, safety_shortfall
from tdce.methods.protocol import Query, Reply, Task
from tdce.schema import Space

MIN_MARGIN = 0.02  # in log odds: an answer is not on the very boundary of a decision
BAND_SHARE = 0.1  # of a band's width, which is the minimum margin in a narrow one
OVERLAP_PENALTY = 1.0  # how much worse an option may be if it changes entirely other features than those before it
SAME_FEATURES_PENALTY = 100.0  # the same features again only if there is nothing else
NUMBER_STEP = 2.0**-8  # of a standard deviation


class Candidates:
    """Accepted candidates of all rows of a query, as flat tensors; the objective is computed on demand, once."""

    def __init__(self, task: Task, query: Query, objective: Objective) -> None:
        self.task, self.query, self.objective = task, query, objective
        self.x, self.at = query.x[:0], torch.arange(0)  # (m, width), and (m,) the row of each
        self.settled = torch.zeros(0, dtype=torch.bool)  # (m,) no change can be reverted to its advantage
        self.minimal = torch.zeros(0, dtype=torch.bool)  # (m,) no several changes either
        self.shortfall = torch.zeros(0)  # (m,) by how much each is less safe than is wanted
        self._total = torch.zeros(0)  # (up to m,)
        self.nearest_miss = query.x  # (n, width) the refused candidate of each row with the largest margin
        self.miss_margin = torch.full((len(query.x),), -torch.inf, dtype=torch.double)
        self.any_margin = torch.zeros(len(query.x), dtype=torch.bool)  # (n,) for which rows the smallest is enough

    @property
    def min_margin(self) -> Tensor:
        """(n,) by which a candidate must be accepted: less in a narrow band."""
        return (BAND_SHARE * self.query.goals.width).clamp(max=MIN_MARGIN).masked_fill(self.any_margin, 0.0)

    @property
    def total(self) -> Tensor:
        """(m,) the objective."""
        done = len(self._total)
        if done < len(self.at):
            x, at = self.x[done:], self.at[done:]
            total = self.objective.total(
                self.objective.cost(x, at), self.objective.energy(x, at), self.shortfall[done:]
            )
            self._total = torch.cat([self._total, total])
        return self._total

    def add(self, x: Tensor, at: Tensor, margin: Tensor) -> None:
        """Add candidates (m, width) of the rows at `at` that the model accepts by this margin (m,)."""
        self.x, self.at = torch.cat([self.x, x]), torch.cat([self.at, at])
        self.shortfall = torch.cat([self.shortfall, safety_shortfall(self.task, self.query, x, margin, at)])
        fresh = torch.zeros(len(at), dtype=torch.bool)
        self.settled, self.minimal = torch.cat([self.settled, fresh]), torch.cat([self.minimal, fresh])

    def screen(self, reply: Reply, at: Tensor, lacking: Tensor | None = None) -> Tensor:
        """(m,) which candidates of a reply the model accepts by the minimum margin and, if `lacking` (m,) is given,
        without lacking more safety than that; keeps each row's nearest miss."""
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
        """(n,) which rows have no candidate."""
        return torch.ones(len(self.query.x), dtype=torch.bool).index_fill(0, self.at, False)

    def with_misses(self) -> Candidates:
        """The same; where a row has none, its nearest miss if the goal is met after all, by less than the minimum
        margin. For such a row that is enough."""
        at = (self.unsolved() & (self.miss_margin >= 0)).nonzero().squeeze(1)
        more = self._subset(torch.arange(len(self.at)))
        more.add(self.nearest_miss[at], at, self.miss_margin[at])
        more.any_margin = self.any_margin.index_fill(0, at, True)
        return more

    def cheapest(self, count: int) -> Candidates:
        """The distinct candidates of each row with the lowest cost and enough safety, up to `count`."""
        return self._top(self.objective.cost(self.x, self.at) + SAFETY_WEIGHT * self.shortfall, count)

    def best(self, count: int) -> Candidates:
        """The distinct candidates of each row with the lowest objective, up to `count`."""
        return self._top(self.total, count)

    def diverse(
        self,
        count: int,
        first: Tensor,  # (n, width) the answers already chosen
    ) -> Candidates:
        """Good candidates of each row, up to `count`, that change other features than those before them."""
        which, exists = self._greedy(count, first)
        return self._subset(which[exists])

    def drop(self, unwanted: Tensor) -> Candidates:
        """Those left without the candidates flagged in `unwanted` (m,)."""
        return self._subset((~unwanted).nonzero().squeeze(1))

    def union(self, others: Candidates) -> Candidates:
        """These candidates and those of another search for the same rows."""
        both = self._subset(torch.arange(len(self.at)))
        both._total = torch.cat([self.total, others.total])
        both.x, both.at = torch.cat([self.x, others.x]), torch.cat([self.at, others.at])
        both.settled = torch.cat([self.settled, others.settled])
        both.minimal = torch.cat([self.minimal, others.minimal])
        both.shortfall = torch.cat([self.shortfall, others.shortfall])
        nearer = others.miss_margin > self.miss_margin
        both.nearest_miss = torch.where(nearer[:, None], others.nearest_miss, self.nearest_miss)
        both.miss_margin = torch.maximum(self.miss_margin, others.miss_margin)
        both.any_margin = self.any_margin | others.any_margin
        return both

    def best_answer(self) -> Tensor:
        """(n, width) the best candidate of each row; its nearest miss if there is none."""
        best = self.best(1)
        return self.nearest_miss.index_copy(0, best.at, best.x)

    def answers(self, count: int, first: Tensor) -> Tensor:
        """(n, count, width) the answer already chosen, then good ones that change other features; if there are too few,
        the last one is repeated."""
        which, exists = self._greedy(count - 1, first)
        out, known = [first], torch.cat([self.x, first[:1]])  # never empty
        for candidate, there in zip(which.T, exists.T, strict=True):
            out.append(torch.where(there[:, None], known[candidate], out[-1]))
        return torch.stack(out, dim=1)

    def _top(self, key: Tensor, count: int) -> Candidates:
        order = _order_by_row(key, self.at)
        x, at = self.x[order], self.at[order]
        repeated = torch.zeros(len(at), dtype=torch.bool)
        repeated[1:] = (at[1:] == at[:-1]) & (x[1:] == x[:-1]).all(dim=1)
        order = order[~repeated]
        return self._subset(order[rank_within(self.at[order]) < count])

    def _subset(self, which: Tensor) -> Candidates:
        subset = Candidates(self.task, self.query, self.objective)
        subset.x, subset.at, subset._total = self.x[which], self.at[which], self._total[which[which < len(self._total)]]
        subset.settled, subset.minimal = self.settled[which], self.minimal[which]
        subset.shortfall = self.shortfall[which]
        subset.nearest_miss, subset.miss_margin = self.nearest_miss, self.miss_margin
        subset.any_margin = self.any_margin
        return subset

    def _greedy(self, count: int, first: Tensor) -> tuple[Tensor, Tensor]:
        """(n, count) candidates, chosen one after another by the objective and by the overlap of their changes with
        those of earlier ones; and whether there was one left."""
        n, space = len(self.query.x), self.objective.space
        order = _order_by_row(self.total, self.at)
        rank = rank_within(self.at[order])
        table = torch.full((n, int(rank.max()) + 1 if len(rank) else 1), -1)
        table[self.at[order], rank] = order  # (n, k) the candidates of each row
        total = torch.where(table >= 0, torch.cat([self.total, torch.zeros(1)])[table], torch.inf)
        x = torch.cat([self.x, self.query.x[:1]])[table]  # (n, k, width)
        rows = torch.arange(n)[:, None].expand_as(table)
        changed = space.moved(x.flatten(0, 1), self.query.x[rows.flatten()]).view(*table.shape, -1)
        changed, last, overlap = changed & ~self.objective.follows, first, torch.zeros_like(total)
        chosen, exists, last_total = [], [], torch.full((n,), -torch.inf)  # none is better than the first
        for _ in range(count):
            own = space.moved(last, self.query.x) & ~self.objective.follows
            same = ((x == last[:, None]) | ~own[:, None, space.owner]).all(dim=2)
            needless = same & (changed.sum(dim=2) > own.sum(dim=1, keepdim=True)) & (total >= last_total[:, None])
            total = total.masked_fill(needless, torch.inf)  # it contains one that is as good
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
    """Candidates (..., width) with changed numbers rounded: finer values would depend on a machine's last bits."""
    number = torch.arange(space.width) < space.num
    return torch.where(number & (x_cf != x), (x_cf / NUMBER_STEP).round() * NUMBER_STEP, x_cf)


def _order_by_row(key: Tensor, at: Tensor) -> Tensor:
    """(m,) positions sorted by row, then by key; stable."""
    return torch.from_numpy(np.lexsort((key.numpy(), at.numpy())))


def _overlap(changed: Tensor, others: Tensor) -> Tensor:
    """(...) the Jaccard index of two sets of features (..., features)."""
    return (changed & others).sum(dim=-1) / (changed | others).sum(dim=-1).clamp_min(1)
