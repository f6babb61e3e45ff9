"""The way back: from a valid counterfactual towards the query, as far as the verdict holds."""

from __future__ import annotations

import torch
from torch import Tensor

from tdce.methods.base import Task


@torch.no_grad()
def pull_back(task: Task, x: Tensor, x_cf: Tensor, target: Tensor, halvings: int = 8) -> Tensor:
    """Give features back to the query one at a time, categories first, then the rest of the numbers by bisection.

    Every step is judged on the data's grid, and taken only in rows where the model still says the target; a row that
    was not valid to begin with is left as it is.
    """
    best = restore(task, x, x_cf)
    valid = task.accepts(best, target)

    def take(candidate: Tensor) -> Tensor:
        nonlocal best
        candidate = restore(task, x, candidate)
        holds = valid & task.accepts(candidate, target)
        best = torch.where(holds[:, None], candidate, best)
        return holds

    for columns in sorted(task.space.columns.values(), key=lambda own: own[0] < task.space.num):
        own = torch.zeros(task.space.width, dtype=torch.bool)
        own[list(columns)] = True
        take(torch.where(own, x, best))

    end, low, high = best, torch.zeros(len(x), 1), torch.ones(len(x), 1)  # how far from x towards `end`
    number = torch.arange(task.space.width) < task.space.num
    for _ in range(halvings):
        middle = (low + high) / 2
        holds = take(torch.where(number, x + middle * (end - x), end))[:, None]
        low, high = torch.where(holds, low, middle), torch.where(holds, middle, high)
    return best


def restore(task: Task, x: Tensor, x_cf: Tensor) -> Tensor:
    """On the data's grid, with the query's own value in every column that may not, or did not, move."""
    kept = ~task.mutable | (x_cf == x)
    return torch.where(kept, x, task.settle(x_cf))
