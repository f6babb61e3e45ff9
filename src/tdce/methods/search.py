"""What the searching methods share: a descent of many rows at once, and one judge of what it comes across."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tdce.methods.base import Task

Distance = Callable[[Tensor, Tensor], Tensor]  # (..., width), (..., width) -> (...)


class Closest:
    """Keeps, for each row, the closest candidate in the target class; until there is one, the latest.

    Candidates are judged as they would be returned: on the data's grid, categories hard, immutable columns the query's,
    by the task's threshold if it has one.
    """

    def __init__(self, task: Task, x: Tensor, target: Tensor, distance: Distance) -> None:
        self.task, self.x, self.target, self.distance = task, x, target, distance
        self.x_cf, self.away = x, torch.full((len(x),), torch.inf)

    @property
    def found(self) -> Tensor:
        """(n,) which rows have a candidate in the target class."""
        return self.away.isfinite()

    @torch.no_grad()
    def offer(self, candidates: Tensor) -> Tensor:
        """(n, k, width) candidates of each row -> (n, k) which of them are in the target class."""
        n, k, width = candidates.shape
        settled = self.task.settle(candidates.reshape(n * k, width))
        own = self.x[:, None].expand(n, k, width)
        settled = torch.where(self.task.mutable, settled.view(n, k, width), own)
        flips = self.task.accepts(settled.view(n * k, width), self.target.repeat_interleave(k)).view(n, k)
        away, best = self.distance(settled, own).masked_fill(~flips, torch.inf).min(dim=1)
        best = torch.where(flips.any(dim=1), best, k - 1)
        take = (away < self.away) | ~self.found
        self.x_cf = torch.where(take[:, None], settled[torch.arange(n), best], self.x_cf)
        self.away = torch.minimum(away, self.away)
        return flips


def descend(
    start: Tensor,  # (n, d) where each row's search begins
    row: Callable[[Tensor], Tensor],  # (n, d) -> (n, width) the soft row that a point stands for
    loss: Callable[[Tensor, Tensor], Tensor],  # soft rows (n, width), weights (n,) -> (n,)
    closest: Closest,
    steps: int,
    rate: float,
    every: int,
    growth: float = 1.0,  # of the weights, at every judgement
) -> Tensor:
    """Adam on every row by itself, judged every few steps.

    A row's weight grows while it is refused and shrinks while it is in the target class, so that it comes to rest at
    the border, a saddle of min over x', max over lambda. Adam works element by element and the sum over rows
    leaves their gradients apart, so rows never meet.
    """
    at, weight = start.detach().clone().requires_grad_(), torch.ones(len(start))
    adam = torch.optim.Adam([at], lr=rate)
    for step in range(1, steps + 1):
        with torch.enable_grad():
            total = loss(row(at), weight).sum()
        (at.grad,) = torch.autograd.grad(total, at)
        adam.step()
        if step % every == 0 or step == steps:
            with torch.no_grad():
                flips = closest.offer(row(at)[:, None])[:, 0]
            weight = torch.where(flips, weight / growth, weight * growth)
        adam.param_groups[0]["lr"] = rate * (1 - step / steps)  # down to nothing: |x| has a kink to settle in
    return closest.x_cf


def miss(logits: Tensor, target: Tensor) -> Tensor:
    """(n,) the cross-entropy -log p(target)."""
    return cross_entropy(logits, target, reduction="none")


def l1(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).abs().sum(dim=-1)
