"""The way back: from a valid counterfactual towards the query, as far as the verdict holds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tdce.methods.base import Task

Holds = Callable[[Tensor], Tensor]  # (n, width) -> (n, 1) whether the verdict does
HALVINGS = 6
FINEST = 2.0**-8  # of a deviation
TIE = 1e-4  # margins, in log odds, that differ by less are the same: the earlier feature goes first


@torch.no_grad()
def come_back(
    task: Task,
    x: Tensor,
    x_cf: Tensor,
    target: Tensor,
    share: float = 1.0,
    taste: Tensor | None = None,  # (n, features) what is liked least goes back first
) -> Tensor:
    """Give features back to the query one at a time, then draw the numbers that are left nearer by bisection.

    Every step is judged on the data's grid. It is taken only where the model still says the target and no more than
    `share` of the row's margin over the verdict is spent; a row that was not valid to begin with is left as it is.
    """
    x_cf = restore(task, x, x_cf)
    valid, margin = task.judged(x_cf, target)

    def holds(candidate: Tensor) -> Tensor:
        accepted, left = task.judged(candidate, target)
        return (valid & accepted & (left >= (1 - share) * margin))[:, None]

    x_cf = give_back(task, x, x_cf, holds, order_of(task, x, x_cf, target, taste))
    return bisect(task, x, x_cf, holds)


def give_back(task: Task, x: Tensor, x_cf: Tensor, holds: Holds, order: Tensor) -> Tensor:
    """Each feature in its turn takes the query's value where the verdict holds; the turns may differ by row."""
    members = task.space.members
    for turn in order.T:  # (n,) feature numbers
        candidate = torch.where(members[turn], x, x_cf)
        x_cf = torch.where(holds(candidate), candidate, x_cf)
    return x_cf


def bisect(task: Task, x: Tensor, x_cf: Tensor, holds: Holds) -> Tensor:
    """The numbers on the straight line from the query to where they are, as near to the query as the verdict holds."""
    end, low, high = x_cf, torch.zeros(len(x), 1), torch.ones(len(x), 1)  # how far from x towards `end`
    number = torch.arange(task.space.width) < task.space.num
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        candidate = restore(task, x, torch.where(number, x + middle * (end - x), end))
        good = holds(candidate)
        x_cf = torch.where(good, candidate, x_cf)
        low, high = torch.where(good, low, middle), torch.where(good, middle, high)
    return x_cf


def order_of(task: Task, x: Tensor, x_cf: Tensor, target: Tensor, taste: Tensor | None) -> Tensor:
    """(n, features) whose turn it is: by taste, or by the margin that a return would cost, to first order."""
    if taste is not None:
        return taste.argsort(dim=1, stable=True)
    with torch.enable_grad():
        at = x_cf.detach().requires_grad_()
        (g,) = torch.autograd.grad(task.judged(at, target)[1].sum(), at)
    gain = (task.space.gathered(g * (x - x_cf)) / TIE).round()
    return gain.argsort(dim=1, descending=True, stable=True)


def restore(task: Task, x: Tensor, x_cf: Tensor) -> Tensor:
    """On the data's grid, with the query's own value in every feature that may not, or did not, move.

    Numbers are first rounded to a small part of a deviation: a finer value would hang on the machine's last bits.
    """
    num, cat = task.space.split(x_cf)
    x_cf = torch.where(x_cf == x, x, task.space.join((num / FINEST).round() * FINEST, cat))
    moved = task.space.moved(x_cf, x)[:, task.space.owner]
    return torch.where(task.mutable & moved, task.settle(x_cf), x)
