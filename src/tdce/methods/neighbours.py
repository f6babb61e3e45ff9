"""Real rows of the target class around a query."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from tdce.methods.base import Task, accepted

POOL = 4096  # rows of a class that are looked at, at most
FEWEST = 100  # and at least, if the class has them
EXACT = 30.0  # how much more an immutable column weighs: rows that agree on it come first


def nearest(
    task: Task,
    x: Tensor,  # (n, width)
    target: Tensor,  # (n,)
    count: int,
    confidence: float | None = None,
) -> tuple[Tensor, Tensor]:
    """(n, count, width) the real rows of each query's target class that are nearest to it, nearest first, and (n,) how
    many there are: where a class has fewer, the last one is repeated; where it has none, the query is."""
    weight = torch.where(task.mutable, 1.0, EXACT)
    rows, known = x[:, None].expand(-1, count, -1), torch.zeros(len(x), dtype=torch.long)
    for k in sorted(set(target.tolist())):  # a loop over classes
        pool, asked = pool_of(task, k, confidence), target == k
        if len(pool) == 0:
            continue
        order = torch.cdist(x * weight, pool * weight).topk(min(count, len(pool)), largest=False).indices
        order = torch.cat([order, order[:, -1:].expand(-1, count - order.shape[1])], dim=1)
        rows = pool[order] if asked.all() else torch.where(asked[:, None, None], pool[order], rows)
        known = torch.where(asked, min(count, len(pool)), known)
    return rows, known


def typical(task: Task, x: Tensor, target: Tensor, count: int, confidence: float, whole: float) -> Tensor:
    """(n, width) the mean of the nearest rows, its categories a share `whole` on the way to those of the whole pool."""
    num, cat = task.space.split(nearest(task, x, target, count, confidence)[0].mean(dim=1))
    means = torch.zeros(len(x), task.space.cat)
    for k in sorted(set(target.tolist())) if whole else []:
        means[target == k] = task.space.split(pool_of(task, k, confidence))[1].mean(dim=0)
    return task.space.join(num, cat + whole * (means - cat))


@torch.no_grad()
def pool_of(task: Task, k: int, confidence: float | None) -> Tensor:
    """(m, width) training rows that the model puts in class k: at least so confidently, or if these are too few, the
    likeliest. Without a confidence, all that it accepts. A large pool is thinned out."""
    key = ("pool", k, confidence, task.threshold)
    if key not in task.memo:
        logits = torch.cat([task.classifier(rows) for rows in torch.split(task.x, 4096)])
        if confidence is None:
            found = accepted(logits, torch.full((len(logits),), k), task.threshold).nonzero().squeeze(1)
        else:
            p, likely = logits.double().softmax(dim=1)[:, k].sort(descending=True, stable=True)
            found = likely[: max(int((p >= confidence).sum()), FEWEST)]
        thinned = torch.randperm(len(found), generator=Generator().manual_seed(task.seed))[:POOL]
        task.memo[key] = task.x[found[thinned].sort().values]
    pool: Tensor = task.memo[key]
    return pool
