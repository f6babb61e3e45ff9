"""Gradient descent on many rows at once, keeping each row's closest accepted candidate; shared by several methods."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tdce._core import Adam
from tdce.methods.protocol import Dialogue, Query, Search

Distance = Callable[[Tensor, Tensor], Tensor]  # (..., width), (..., width) -> (...)


class Closest:
    """Keeps each row's closest candidate in the target class; until there is one, its latest candidate.

    Candidates are decided on the data's grid, with hard categories and the row's immutable columns.
    """

    def __init__(self, query: Query, distance: Distance) -> None:
        self.query, self.distance = query, distance
        self.x_cf, self.away = query.x, torch.full((len(query.x),), torch.inf)

    @property
    def solved(self) -> Tensor:
        """(n,) which rows have a candidate in the target class."""
        return self.away.isfinite()

    def offer(self, candidates: Tensor) -> Dialogue[Tensor]:
        """(n, k, width) candidates of each row -> (n, k) which of them meet the goal."""
        n, k, width = candidates.shape
        reply = yield self.query.ask(candidates, on_grid_only=True)
        x_cf, met = reply.x, reply.met
        own = self.query.x[:, None].expand(n, k, width)
        away, best = self.distance(x_cf, own).masked_fill(~met, torch.inf).min(dim=1)
        best = torch.where(met.any(dim=1), best, k - 1)
        take = (away < self.away) | ~self.solved
        self.x_cf = torch.where(take[:, None], x_cf[torch.arange(n), best], self.x_cf)
        self.away = torch.minimum(away, self.away)
        return met


def descend(
    start: Tensor,  # (n, d) where each row's search begins
    row: Callable[[Tensor], Tensor],  # (n, d) -> (n, width) the soft row of a point
    loss: Callable[[Tensor, Tensor], Tensor],  # soft rows (n, width), weights (n,) -> (n,)
    closest: Closest,
    steps: int,
    rate: float,
    every: int,
    growth: float = 1.0,  # factor on the weights at every decision
) -> Search:
    """Run Adam on every row separately, with a decision every few steps.

    A row's weight grows while the row is refused and shrinks while it is in the target class, so that the row settles
    at the decision boundary, a saddle point of min over x', max over lambda. Rows do not influence each other: Adam
    works element by element, and the gradient of a sum over rows keeps them separate.
    """
    at, weight = start.detach().clone().requires_grad_(), torch.ones(len(start))
    adam = Adam((at,))
    for step in range(1, steps + 1):
        with torch.enable_grad():
            total = loss(row(at), weight).sum()
        adam.step(torch.autograd.grad(total, at), rate * (1 - (step - 1) / steps))  # to zero: |x| has a kink
        if step % every == 0 or step == steps:
            with torch.no_grad():
                candidates = row(at)[:, None]
            met = (yield from closest.offer(candidates))[:, 0]
            weight = torch.where(met, weight / growth, weight * growth)
    return closest.x_cf


def l1(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).abs().sum(dim=-1)
