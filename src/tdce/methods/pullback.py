"""The way back: from a valid counterfactual towards the query, as far as the verdict holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from tdce.methods.interface import Guide, Query, Search, Talk
from tdce.products import even
from tdce.space import Space

HALVINGS = 6
FINEST = 2.0**-8  # of a deviation
TIE = 1e-4  # margins, in log odds, that differ by less are the same: the earlier feature goes first


class Tried(NamedTuple):
    x: Tensor  # (n, width) candidates as they would be returned
    holds: Tensor  # (n, 1) whether the verdict does


Try = Callable[[Tensor, Tensor], Talk[Tried]]
"""Candidates (n, width) for rows that are now as in the second (n, width)."""


def come_back(
    query: Query,
    space: Space,
    x_cf: Tensor,  # (n, width)
    share: float,
    order_of: Callable[[Tensor], Tensor],  # (n, width) -> (n, features) whose turn it is to go back
) -> Search:
    """Give features back to the query one at a time, then draw the numbers that are left nearer by bisection.

    Every step is judged on the data's grid. It is taken only where the model still says what is wanted and no more than
    `share` of the row's margin is spent; a row that was not valid to begin with is left as it is.
    """
    first = yield query.ask(coarse(space, query.x, x_cf))
    x_cf, valid, least = first.x[:, 0], first.met[:, 0], (1 - share) * first.margin[:, 0]

    def attempt(candidate: Tensor, now: Tensor) -> Talk[Tried]:
        """Asks only about valid rows that would change."""
        changes = (valid & (candidate != now).any(dim=1)).nonzero().squeeze(1)
        if len(changes) == 0:
            return Tried(candidate, valid[:, None])
        at = even(changes)
        judged = yield query.ask(candidate[at], at)
        good = judged.met[:, 0] & (judged.margin[:, 0] >= least[at])
        return Tried(candidate.index_copy(0, at, judged.x[:, 0]), valid.index_copy(0, at, good)[:, None])

    x_cf = yield from give_back(query.x, space, x_cf, attempt, order_of(x_cf))
    return (yield from bisect(query.x, space, x_cf, attempt))


def give_back(x: Tensor, space: Space, x_cf: Tensor, attempt: Try, order: Tensor) -> Search:
    """Each feature in turn takes the query's value if the verdict holds; the order may differ by row."""
    for turn in order.T:  # (n,) feature numbers
        candidate = torch.where(space.members[turn], x, x_cf)
        _, holds = yield from attempt(candidate, x_cf)
        x_cf = torch.where(holds, candidate, x_cf)
    return x_cf


def bisect(x: Tensor, space: Space, x_cf: Tensor, attempt: Try) -> Search:
    """The numbers on the straight line from the query to where they are, as near to the query as the verdict holds."""
    end, low, high = x_cf, torch.zeros(len(x), 1), torch.ones(len(x), 1)  # how far from x towards `end`
    number = torch.arange(space.width) < space.num
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        candidate = coarse(space, x, torch.where(number, x + middle * (end - x), end))
        settled, holds = yield from attempt(candidate, x_cf)
        x_cf = torch.where(holds, settled, x_cf)
        low, high = torch.where(holds, low, middle), torch.where(holds, middle, high)
    return x_cf


def cheapest_first(query: Query, space: Space, guide: Guide, x_cf: Tensor) -> Tensor:
    """(n, features) by the margin that a return of each feature would cost, to first order."""
    with torch.enable_grad():
        at = x_cf.detach().requires_grad_()
        (g,) = torch.autograd.grad(query.goals.gap(guide(at)).sum(), at)
    gain = (space.gathered(g * (query.x - x_cf)) / TIE).round()
    return gain.argsort(dim=1, descending=True, stable=True)


def coarse(space: Space, x: Tensor, x_cf: Tensor) -> Tensor:
    """Numbers that moved, rounded to a small part of a deviation: finer values depend on the machine's last bits.

    Both are (..., width).
    """
    number = torch.arange(space.width) < space.num
    return torch.where(number & (x_cf != x), (x_cf / FINEST).round() * FINEST, x_cf)
