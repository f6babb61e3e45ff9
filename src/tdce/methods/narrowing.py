"""Candidates of wide tables: what limits the work where a candidate could change hundreds of features.

Of many changes, those that help least on average are reverted first, half of them at a time; what is then left is
reverted one by one. A table of at most `MANY` features is searched without any of this.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tdce._core import rank_within
from tdce.methods.candidates import Candidates, round_numbers
from tdce.methods.exemplars import ValueEffects
from tdce.methods.protocol import Dialogue, Query, Task

MANY = 24  # changes of a candidate: if there are more, several are reverted at a time
HALVINGS = 6  # of the number that is reverted together, in one round


def narrow(task: Task, query: Query, near: Candidates) -> Dialogue[Candidates]:
    """The candidates; from those with many changes, as many are reverted as lowers the objective, those first that help
    least by their average effects."""
    if int(task.free.sum()) <= MANY:
        return near
    done = torch.zeros(len(near.at), dtype=torch.bool)
    while True:
        changed = task.space.moved(near.x, query.x[near.at]) & task.free
        count = changed.sum(dim=1)
        which = ((count > MANY) & ~done).nonzero().squeeze(1)
        if len(which) == 0:
            return near
        at = near.at[which]
        gain = average_gains(task, query, near.x[which], at).masked_fill(~changed[which], torch.inf)
        rank = rank_features(gain)  # 0 for the change that helps least
        excess = count[which] - MANY
        several = torch.stack([-(excess // -(2**i)) for i in range(HALVINGS)], dim=1)  # (m, halvings) rounded up
        reverted = (rank[:, None] < several[:, :, None]).flatten(0, 1)[:, task.space.owner]
        parent = which.repeat_interleave(HALVINGS)
        trials = torch.where(reverted, query.x[near.at[parent]], near.x[parent])
        before, old = near.total, len(near.at)
        reply = yield query.ask(round_numbers(task.space, query.x[near.at[parent]], trials), near.at[parent])
        accepted = near.screen(reply, near.at[parent])
        near.add(reply.x[accepted, 0], near.at[parent[accepted]], reply.margin[accepted, 0])
        best = _best_of_each(near.total[old:], parent[accepted], before)
        replaced = torch.zeros(old, dtype=torch.bool).index_fill(0, parent[accepted][best], True)
        done[which] = True
        done = torch.cat([done[~replaced], torch.zeros(int(best.sum()), dtype=torch.bool)])
        near = near.drop(torch.cat([replaced, ~best]))


def average_gains(task: Task, query: Query, x_cf: Tensor, at: Tensor) -> Tensor:
    """(m, features) how much more each value of candidates (m, width) of the rows at `at` helps than the row's own."""
    gain = torch.zeros(len(at), len(task.free))
    for goal, belongs in query.goals.groups():
        values, own = ValueEffects.of(task, goal), belongs[at]
        gain[own] = values.effects(task.space, x_cf[own]) - values.effects(task.space, query.x[at[own]])
    return gain


def rank_features(key: Tensor) -> Tensor:
    """(m, features) the rank of each feature by its key, the lowest first; equal ones in the order of the features."""
    order = key.argsort(dim=1, stable=True)
    return torch.empty_like(order).scatter_(1, order, torch.arange(key.shape[1]).expand_as(order).contiguous())


def _best_of_each(total: Tensor, parent: Tensor, before: Tensor) -> Tensor:
    """(m,) which candidates are the best of those of the same parent (m,), and better than it."""
    order = total.argsort(stable=True)
    first = torch.zeros(len(total), dtype=torch.bool)
    first[order] = rank_within(parent[order]) == 0
    return first & (total < before[parent])
