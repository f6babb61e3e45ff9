"""NICE: from the nearest accepted real rows back to the query, one feature at a time.

D. Brughmans, P. Leyman, D. Martens, "NICE: an algorithm for nearest instance counterfactual explanations", Data Mining
and Knowledge Discovery, 2023. Every value of an answer is the query's own or a real row's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from tdce._core import Noise, find_nearest, pad_rows, round_scores
from tdce.methods.protocol import Dialogue, Query, Search, Task, task_of
from tdce.methods.settings import check_settings
from tdce.models import Goal, Goals

TIE = 1e-4  # margins (in log odds) and distances that differ by less are ties: the earlier one is taken


@dataclass(frozen=True)
class NICE:
    """NICE with several starts where the paper has one; the result with the fewest changes is returned."""

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    starts: int = 20  # real rows from which changes are reverted
    candidates: int = 100  # nearest accepted rows that are tried with the query's own immutable features
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, starts=(1, 1000), candidates=(1, 10_000))

    def fit(self, task: Task) -> Self:
        task.require_rows("NICE")
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        """Revert changes of valid starts; if no candidate is valid as it would be returned, take the one with the
        largest margin. `noise` is not used."""
        reply = yield query.ask(self.nearest_accepted(query.x, query.goals))
        first = (~reply.met).int().argsort(dim=1, stable=True)[:, : self.starts]  # valid ones first, then by distance
        valid = reply.met.gather(1, first)
        everyone = torch.arange(len(first))
        starts = reply.x[everyone[:, None], first]
        ends = yield from self.revert(query, starts, valid)
        best = ends[everyone, self.least_changed(query.x, ends, valid)]
        nearest_miss = reply.row((reply.margin / TIE).round().argmax(dim=1))
        return torch.where(valid.any(dim=1)[:, None], best, nearest_miss)

    def nearest_accepted(self, x: Tensor, goals: Goals) -> Tensor:
        """(n, candidates, width) training rows that meet the goal, nearest first by the columns that may change; if
        there are fewer, the last is repeated."""
        task = task_of(self)
        rows = x[:, None].expand(-1, self.candidates, -1)
        for goal, belongs in goals.groups():
            pool = self.accepted(task, goal)
            near = find_nearest(x * task.mutable, pool * task.mutable, min(self.candidates, len(pool)))
            near = torch.cat([near, near[:, -1:].expand(-1, self.candidates - near.shape[1])], dim=1)
            rows = torch.where(belongs[:, None, None], pool[near], rows)
        return rows

    def accepted(self, task: Task, goal: Goal) -> Tensor:
        """(m, width) the training rows that meet the goal; if none does, those that come closest to it."""

        def make() -> Tensor:
            score = task.oracle.score(task.encoder.unembed(task.x))
            met = goal.met(score)
            if met.any():
                return task.x[met]
            return task.x[round_scores(goal.chance(score)).argsort(descending=True, stable=True)[: self.candidates]]

        return task.memoise(("nice", goal, self.candidates), make)

    def revert(self, query: Query, x_cf: Tensor, valid: Tensor) -> Dialogue[Tensor]:
        """(n, starts, width) each valid start with changes reverted one by one, always the one that leaves the largest
        margin, until none can be reverted without losing the decision. A round is one request for all rows and
        starts."""
        space, (n, starts, width) = task_of(self).space, x_cf.shape
        x, going_on = query.x[:, None].expand_as(x_cf), valid
        while True:
            changed = space.moved(x_cf.reshape(-1, width), x.reshape(-1, width)).view(n, starts, -1)
            row, start, feature = (changed & going_on[:, :, None]).nonzero(as_tuple=True)
            if len(row) == 0:
                return x_cf
            reverted = torch.where(space.members[feature], query.x[row], x_cf[row, start])
            padded = pad_rows(torch.arange(len(row)))
            reply = yield query.ask(reverted[padded], row[padded])
            left = torch.where(reply.met, (reply.margin / TIE).round(), -torch.inf)[: len(row), 0]
            margin = left.new_full(changed.shape, -torch.inf)
            margin[row, start, feature] = left
            most, which = margin.max(dim=2)
            going_on = most > -torch.inf
            x_cf = torch.where(going_on[:, :, None] & space.members[which], x, x_cf)

    def least_changed(self, x: Tensor, x_cf: Tensor, valid: Tensor) -> Tensor:
        """(n,) which of the valid results (n, starts, width) changes the fewest features; of these, the nearest.
        Numbers count by their difference, categories by 1."""
        space, (n, starts, width) = task_of(self).space, x_cf.shape
        away = (x_cf - x[:, None]).abs().double()
        distance = away[:, :, : space.num].sum(dim=2) + away[:, :, space.num :].sum(dim=2) / 2
        changed = space.moved(x_cf.reshape(-1, width), x.repeat_interleave(starts, dim=0)).sum(dim=1).view(n, starts)
        keys = (distance / TIE).round().numpy(), changed.numpy(), ~valid.numpy()  # the last is the primary key
        return torch.from_numpy(np.lexsort(keys, axis=1)[:, 0])
