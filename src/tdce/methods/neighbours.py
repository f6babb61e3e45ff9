"""Real rows of the target class around a query: the typical one, and the nearest ones."""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor

from tdce.methods.base import Task, accepted

POOL = 4096  # confident rows of a class, at most
FEWEST = 100  # and at least, if there are so many
EXACT = 30.0  # how much more an immutable column weighs where rows should agree on it


@torch.no_grad()
def typical(
    task: Task,
    x: Tensor,  # (n, width)
    target: Tensor,  # (n,)
    count: int,
    confidence: float,
    spread: float,
) -> Tensor:
    """(n, width) the mean of the nearest rows that the model puts in the target class with confidence.

    Averaging draws the means together; `spread` stretches how far their numbers are from the mean of all such rows.
    """
    num, out = task.space.num, x
    for k in sorted(set(target.tolist())):  # a loop over classes
        pool = pool_of(task, k, confidence)
        away = torch.cdist(x, pool)
        last = min(count, len(pool)) - 1
        near = (away <= torch.from_numpy(np.partition(away.numpy(), last, axis=1)[:, last, None])).float()  # and ties
        mean = (near @ pool) / near.sum(dim=1, keepdim=True)
        mean[:, :num] = torch.lerp(pool[:, :num].mean(dim=0), mean[:, :num], spread)
        out = torch.where((target == k)[:, None], mean, out)
    return out


@torch.no_grad()
def nearest(task: Task, x: Tensor, target: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """(n, count, width) the nearest rows that the model accepts, those first that agree on the immutable columns, and
    (n,) how many there are: where there are fewer, the last is repeated; where there is none, the query is."""
    weight = torch.where(task.mutable, 1.0, EXACT)
    rows, known = x[:, None].expand(-1, count, -1), torch.zeros(len(x), dtype=torch.long)
    for k in sorted(set(target.tolist())):
        pool, asked = pool_of(task, k, None), target == k
        if len(pool) == 0:
            continue
        order = torch.cdist(x * weight, pool * weight).topk(min(count, len(pool)), largest=False).indices
        order = torch.cat([order, order[:, -1:].expand(-1, count - order.shape[1])], dim=1)
        rows = torch.where(asked[:, None, None], pool[order], rows)
        known = torch.where(asked, min(count, len(pool)), known)
    return rows, known


def pool_of(task: Task, k: int, confidence: float | None) -> Tensor:
    """(m, width) training rows that the model puts in class k: at least so confidently, or if these are too few, the
    likeliest, and thinned out if they are many. Without a confidence, all that it accepts."""
    key = ("pool", k, confidence, task.threshold)
    if key not in task.memo:
        logits = torch.cat([task.classifier(rows) for rows in torch.split(task.x, 4096)])
        if confidence is None:
            found = accepted(logits, torch.full((len(logits),), k), task.threshold).nonzero().squeeze(1)
        else:
            p, likely = logits.double().softmax(dim=1)[:, k].sort(descending=True, stable=True)
            found = likely[: max(int((p >= confidence).sum()), FEWEST)]
            thinned = torch.randperm(len(found), generator=Generator().manual_seed(task.seed))[:POOL]
            found = found[thinned].sort().values
        task.memo[key] = task.x[found]
    pool: Tensor = task.memo[key]
    return pool
