"""The candidates that the model accepts, what each is worth, and which of them to return."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tdce._core import rank_within
from tdce.methods.objective import Objective
from tdce.methods.protocol import Query, Reply
from tdce.schema import Space

MARGIN = 0.02  # in log odds: an answer is not on the very edge of a verdict
SPREAD = 1.0  # how much worse an option may be if it changes entirely other features than those before it
AGAIN = 100.0  # the same features once more only if there are no others
FINEST = 2.0**-8  # of a deviation


class Candidates:
    """Of all rows of a query: flat tensors. The objective is computed when it is first asked for, and once."""

    def __init__(self, query: Query, aim: Objective) -> None:
        self.query, self.aim = query, aim
        self.x, self.at = query.x[:0], torch.arange(0)  # (m, width), and (m,) the row of each
        self.settled = torch.zeros(0, dtype=torch.bool)  # (m,) which have nothing more to give back
        self._total = torch.zeros(0)  # (up to m,)
        self.miss = query.x  # (n, width) of each row what the model came nearest to accepting
        self.missed_by = torch.full((len(query.x),), -torch.inf, dtype=torch.double)

    @property
    def total(self) -> Tensor:
        """(m,) the objective."""
        done = len(self._total)
        if done < len(self.at):
            x, at = self.x[done:], self.at[done:]
            self._total = torch.cat([self._total, self.aim.total(self.aim.cost(x, at), self.aim.energy(x, at))])
        return self._total

    def keep(self, x: Tensor, at: Tensor) -> None:
        """Accepted ones: they are candidates now."""
        self.x, self.at = torch.cat([self.x, x]), torch.cat([self.at, at])
        self.settled = torch.cat([self.settled, torch.zeros(len(at), dtype=torch.bool)])

    def accepted(self, reply: Reply, at: Tensor) -> Tensor:
        """(m,) which of these the model accepts."""
        x, margin = reply.x[:, 0], reply.margin[:, 0]
        first = _ordered(-margin, at)
        first = first[_heads(at[first])]
        first = first[margin[first] > self.missed_by[at[first]]]
        self.miss = self.miss.index_copy(0, at[first], x[first])
        self.missed_by = self.missed_by.index_copy(0, at[first], margin[first])
        return reply.met[:, 0] & (margin >= MARGIN)

    def lacking(self) -> Tensor:
        """(n,) which rows have none."""
        return torch.ones(len(self.query.x), dtype=torch.bool).index_fill(0, self.at, False)

    def cheapest(self, count: int) -> Candidates:
        """A few of each row, each once, by their cost alone."""
        return self._few(self.aim.cost(self.x, self.at), count)

    def best(self, count: int) -> Candidates:
        """A few of each row, each once, by the objective."""
        return self._few(self.total, count)

    def without(self, gone: Tensor) -> Candidates:
        return self._taken((~gone).nonzero().squeeze(1))

    def joined(self, others: Candidates) -> Candidates:
        """With those of another search among the same rows."""
        both = self._taken(torch.arange(len(self.at)))
        both._total = torch.cat([self.total, others.total])
        both.x, both.at = torch.cat([self.x, others.x]), torch.cat([self.at, others.at])
        both.settled = torch.cat([self.settled, others.settled])
        nearer = others.missed_by > self.missed_by
        both.miss = torch.where(nearer[:, None], others.miss, self.miss)
        both.missed_by = torch.maximum(self.missed_by, others.missed_by)
        return both

    def different(
        self,
        count: int,
        begin: Tensor,  # (n, width) answers that there are already
    ) -> Candidates:
        """A few of each row that are good and change other features than the answers before them."""
        picked, found = self._greedy(count, begin)
        return self._taken(picked[found])

    def answers(self, count: int, begin: Tensor) -> Tensor:
        """(n, count, width) the answer that there is already, then further ones that are good and change other
        features; where there are too few, the last one again."""
        picked, found = self._greedy(count - 1, begin)
        out, known = [begin], torch.cat([self.x, begin[:1]])  # so that there is one in any case
        for which, there in zip(picked.T, found.T, strict=True):
            out.append(torch.where(there[:, None], known[which], out[-1]))
        return torch.stack(out, dim=1)

    def first(self) -> Tensor:
        """(n, width) the best of each row; where there is none, the nearest miss."""
        best = self.best(1)
        return self.miss.index_copy(0, best.at, best.x)

    def _few(self, key: Tensor, count: int) -> Candidates:
        order = _ordered(key, self.at)
        x, at = self.x[order], self.at[order]
        again = torch.zeros(len(at), dtype=torch.bool)
        again[1:] = (at[1:] == at[:-1]) & (x[1:] == x[:-1]).all(dim=1)
        order = order[~again]
        return self._taken(order[rank_within(self.at[order]) < count])

    def _taken(self, which: Tensor) -> Candidates:
        taken = Candidates(self.query, self.aim)
        taken.x, taken.at, taken._total = self.x[which], self.at[which], self._total[which[which < len(self._total)]]
        taken.settled, taken.miss, taken.missed_by = self.settled[which], self.miss, self.missed_by
        return taken

    def _greedy(self, count: int, begin: Tensor) -> tuple[Tensor, Tensor]:
        """(n, count) one candidate after another, by the objective and by how many of the changed features earlier ones
        have changed already; and whether there was one left."""
        n, space = len(self.query.x), self.aim.space
        order = _ordered(self.total, self.at)
        rank = rank_within(self.at[order])
        table = torch.full((n, int(rank.max()) + 1 if len(rank) else 1), -1)
        table[self.at[order], rank] = order  # (n, k) the candidates of each row
        total = torch.where(table >= 0, torch.cat([self.total, torch.zeros(1)])[table], torch.inf)
        x = torch.cat([self.x, self.query.x[:1]])[table]  # (n, k, width)
        rows = torch.arange(n)[:, None].expand_as(table)
        changed = space.moved(x.flatten(0, 1), self.query.x[rows.flatten()]).view(*table.shape, -1)
        last, alike = begin, torch.zeros_like(total)
        picked, found = [], []
        for _ in range(count):
            alike = torch.maximum(alike, _overlap(changed, space.moved(last, self.query.x)[:, None]))
            total = total.masked_fill((x == last[:, None]).all(dim=2), torch.inf)  # never the same line twice
            score, which = (total + SPREAD * alike + AGAIN * (alike == 1)).min(dim=1, keepdim=True)
            picked.append(table.gather(1, which).clamp_min(0))
            found.append(score.isfinite())
            last = torch.where(found[-1], x.gather(1, which[:, :, None].expand(-1, -1, x.shape[2]))[:, 0], last)
        none = torch.zeros(n, 0, dtype=torch.long)
        return torch.cat([none, *picked], dim=1), torch.cat([none.bool(), *found], dim=1)


def _ordered(key: Tensor, at: Tensor) -> Tensor:
    """(m,) positions by row, then by key; equal ones stay in their order."""
    return torch.from_numpy(np.lexsort((key.numpy(), at.numpy())))


def _heads(at: Tensor) -> Tensor:
    """(m,) where a row begins among rows in order."""
    return rank_within(at) == 0


def _overlap(changed: Tensor, others: Tensor) -> Tensor:
    """(...) the Jaccard index of two sets of features (..., features)."""
    return (changed & others).sum(dim=-1) / (changed | others).sum(dim=-1).clamp_min(1)


def coarse(space: Space, x: Tensor, x_cf: Tensor) -> Tensor:
    """Numbers that moved, rounded to a small part of a deviation: finer values depend on the machine's last bits."""
    number = torch.arange(space.width) < space.num
    return torch.where(number & (x_cf != x), (x_cf / FINEST).round() * FINEST, x_cf)
