"""Real rows of the target class around a query: the typical one, and the nearest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from tdce.cells import Floats
from tdce.goal import Goal, Goals
from tdce.judge import rounded
from tdce.methods.interface import Task
from tdce.products import exact, nearest, squared_distances, sums

POOL = 4096  # confident rows of a class, at most
FEWEST = 100  # and at least, if there are enough
EXACT = 30.0  # how much more an immutable column weighs where rows should agree on it


@dataclass(frozen=True)
class Typical:
    """What is typical of a class around a query, by the real rows that the model puts there with confidence: numbers
    from their mean, drawn together or apart, and the categories of one of them, so that these go together."""

    neighbours: int  # how many of the nearest rows
    confidence: float  # of the model in them
    own_share: float  # share of the query's own value in a number that does not tell the classes apart
    factors: int | None  # main directions of the class in which rows may differ fully, in others half; None: all
    spread: float  # how far the numbers are stretched from the mean of the class: averaging draws them together

    @torch.no_grad()
    def rows(
        self,
        task: Task,
        x: Tensor,  # (n, width)
        goals: Goals,
        u: Tensor,  # (n, 1) in (0, 1): which of the neighbours gives the categories
    ) -> Tensor:  # (n, width)
        out = x
        for goal, whose in goals.groups():
            out = torch.where(whose[:, None], self._of_goal(task, x, goal, u), out)
        return out

    def _of_goal(self, task: Task, x: Tensor, goal: Goal, u: Tensor) -> Tensor:
        pool, num = pool_of(task, goal, self.confidence), task.space.num
        near = crowd(x, pool, self.neighbours)
        mean, centre = (sums(of, pool) / of.sum(dim=1, keepdim=True) for of in (near, torch.ones(1, len(pool))))
        kept = self.own_share * (1 - separation(task, goal))
        mean[:, :num] = torch.lerp(mean[:, :num], x[:, :num], kept.expand(len(x), -1))
        away = mean - centre
        if self.factors is not None:
            away = exact(away, main_directions(task, goal, self.confidence, self.factors))
        numbers = (centre + self.spread * away)[:, :num]
        return task.space.join(numbers, pool[drawn(near, u)][:, num:])


def crowd(x: Tensor, pool: Tensor, count: int) -> Tensor:
    """(n, m) 1 for the rows of the pool that are nearest to a query, and for ties, 0 elsewhere."""
    away, last = squared_distances(x, pool), min(count, len(pool)) - 1
    return (away <= torch.from_numpy(np.partition(away.numpy(), last, axis=1)[:, last, None])).float()


def drawn(near: Tensor, u: Tensor) -> Tensor:
    """(n,) one of the rows that have a 1 in `near` (n, m), each as likely as the others for a uniform u."""
    before = (u * near.sum(dim=1, keepdim=True)).floor().float()  # how many of them come before it
    return torch.searchsorted(near.cumsum(dim=1), before, right=True).squeeze(1)


def separation(task: Task, goal: Goal) -> Tensor:
    """(num,) how well each number alone tells the rows that meet the goal from the others: |2 AUC - 1|, the best one's
    being 1. All are 1 where none does, or where there are no others."""

    def make() -> Tensor:
        inside = meeting(task, goal).numpy()
        rank, n_in, n_out = ranks(task.x[:, : task.space.num].numpy()), inside.sum(), (~inside).sum()
        auc = (rank[inside].sum(axis=0) - n_in * (n_in + 1) / 2) / max(n_in * n_out, 1)  # Mann and Whitney's U
        apart = np.abs(2 * auc - 1)
        known = n_in > 0 and n_out > 0 and apart.any()
        return torch.from_numpy(apart / apart.max() if known else np.ones_like(apart)).float()

    return task.once(("separation", goal), make)


def ranks(x: NDArray[Any]) -> Floats:
    """(m, num) the place of each value in its column, from 1; equal values share the mean of their places."""
    places = np.empty(x.shape)
    for i, column in enumerate(x.T):
        ordered = np.sort(column)
        places[:, i] = (ordered.searchsorted(column) + ordered.searchsorted(column, side="right") + 1) / 2
    return places


def main_directions(task: Task, goal: Goal, confidence: float, factors: int) -> Tensor:
    """(width, width) halves what is not along the first principal components of the goal's confident rows."""

    def make() -> Tensor:
        rows = pool_of(task, goal, confidence).double()
        away = rows - rows.mean(dim=0)
        axes = torch.linalg.eigh(away.T @ away).eigenvectors[:, -factors:]  # the largest come last
        return torch.lerp(torch.eye(len(axes), dtype=torch.double), axes @ axes.T, 0.5).float()

    return task.once(("directions", goal, confidence, factors), make)


@torch.no_grad()
def nearest_accepted(task: Task, x: Tensor, goals: Goals, count: int) -> Tensor:
    """(n, count, width) the nearest rows that meet the goal, those first that agree on the immutable columns: where
    there are fewer, the last is repeated; where there is none, the query is."""
    weight = torch.where(task.mutable, 1.0, EXACT)
    rows = x[:, None].expand(-1, count, -1)
    for goal, whose in goals.groups():
        pool = pool_of(task, goal, None)
        if len(pool) == 0:
            continue
        order = nearest(x * weight, pool * weight, min(count, len(pool)))
        order = torch.cat([order, order[:, -1:].expand(-1, count - order.shape[1])], dim=1)
        rows = torch.where(whose[:, None, None], pool[order], rows)
    return rows


def pool_of(task: Task, goal: Goal, confidence: float | None) -> Tensor:
    """(m, width) training rows that meet the goal with at least this confidence; if these are too few, the likeliest,
    and if they are many, some of them. Without a confidence, all that meet the goal."""

    def make() -> Tensor:
        if confidence is None:
            return task.x[meeting(task, goal)]
        chance, likely = rounded(goal.chance(scores(task))).sort(descending=True, stable=True)
        found = likely[: max(int((chance >= confidence).sum()), FEWEST)]
        thinned = torch.randperm(len(found), generator=Generator().manual_seed(task.seed))[:POOL]
        return task.x[found[thinned].sort().values]

    return task.once(("pool", goal, confidence), make)


def meeting(task: Task, goal: Goal) -> Tensor:
    """(m,) which training rows meet the goal."""
    return goal.met(scores(task))


def scores(task: Task) -> Tensor:
    """(m, classes) what the guide says of the training rows; the model itself where nothing leads."""

    def make() -> Tensor:
        if task.guide is None:
            return task.judge.score(task.encoder.unembed(task.x))
        return torch.cat([task.guide(rows) for rows in torch.split(task.x, 4096)]).double().softmax(dim=1)

    return task.once("scores", make)
