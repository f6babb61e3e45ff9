"""Candidates of wide tables: limits to the work where a candidate could change hundreds of features.

Of many changes, those that help least on average are reverted first, half of them at a time; the remaining changes of
the best candidates are then reverted one by one. A table of at most `MANY_FEATURES` features needs none of this.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tdce._core import pad_rows
from tdce.diffusion import NOISE_LEVELS
from tdce.methods.candidates import Candidates
from tdce.methods.exemplars import ValueEffects
from tdce.methods.objective import DENOISE_BATCH_ROWS, Objective, change_costs, feature_positions
from tdce.methods.protocol import Dialogue, Query, Task

MANY_FEATURES = 24  # a table with more of them is wide
HALVINGS = 6  # of the number of changes reverted together, in one round


def narrow(
    task: Task,
    query: Query,
    near: Candidates,
    select: Callable[[Candidates], Tensor],
    closeness: float,
    few: int = 1,  # number of changes left
) -> Dialogue[None]:
    """Try the selected candidates of a wide table with all changes but a few reverted together, then half of these, a
    quarter, and so on: first those that help least by their average effects, or those whose reversal would save most of
    the objective at this position of the trade-off. Ends when all selected candidates have been tried."""
    tried = torch.zeros(len(near.at), dtype=torch.bool)
    while is_wide(task):
        which = select(near)
        changed = task.space.moved(near.x[which], query.x[near.at[which]]) & task.free
        count = changed.sum(dim=1)
        untried = (count > few) & ~tried[which]
        which, changed, count = which[untried], changed[untried], count[untried]
        if len(which) == 0:
            return
        x_cf, at = near.x[which], near.at[which]
        gain = average_gains(task, query, x_cf, at).masked_fill(~changed, torch.inf)
        saving = savings(task, near.objective, x_cf, at, closeness).masked_fill(~changed, -torch.inf)
        rank = torch.stack([rank_features(gain), rank_features(-saving)], dim=1)  # (m, 2, features)
        several = torch.stack([-((few - count) // 2**i) for i in range(HALVINGS)], dim=1)  # (m, halvings) rounded up
        new = several.diff(dim=1, prepend=torch.zeros_like(several[:, :1])) != 0  # a few halves may be the same
        parent, order, i = new[:, None].expand(-1, 2, -1).nonzero(as_tuple=True)
        reverted = (rank[parent, order] < several[parent, i, None])[:, task.space.owner]
        reply = yield query.ask(torch.where(reverted, query.x[at[parent]], x_cf[parent]), at[parent])
        accepted = near.screen(reply, at[parent])
        parent = parent[accepted]
        near.add(reply.x[accepted, 0], at[parent], reply.margin[accepted, 0], near.line[which[parent]])
        tried = torch.cat([tried.index_fill(0, which, True), torch.zeros(len(parent), dtype=torch.bool)])


def is_wide(task: Task) -> bool:
    """Whether more features may be changed than can be reverted one by one."""
    return int(task.free.sum()) > MANY_FEATURES


def average_gains(task: Task, query: Query, x_cf: Tensor, at: Tensor) -> Tensor:
    """(m, features) the average gain of each value of candidates (m, width) over the own value of the row at `at`."""
    gain = torch.zeros(len(at), len(task.free))
    for goal, belongs in query.goals.groups():
        values, own = ValueEffects.of(task, goal), belongs[at]
        gain[own] = values.effects(task.space, x_cf[own]) - values.effects(task.space, query.x[at[own]])
    return gain


def savings(task: Task, objective: Objective, x_cf: Tensor, at: Tensor, closeness: float) -> Tensor:
    """(m, features) how much reverting each change of candidates (m, width) would lower the objective if the denoising
    errors of the other features stayed the same."""
    x, position = objective.x[at], objective.position[at]
    price = change_costs(task.space.moved(x_cf, x), position, feature_positions(task.encoder, x_cf)) * objective.weights
    errors = _errors_by_feature(objective, x_cf, at) - _errors_by_feature(objective, x, at)
    return objective.total(price, errors, closeness)


def _errors_by_feature(objective: Objective, x: Tensor, at: Tensor) -> Tensor:
    """(m, features) denoising errors, mean over the noise levels."""
    diffusion, errors = objective.diffusion, [torch.zeros(0, len(objective.follows))]
    for part in torch.split(torch.arange(len(x)), DENOISE_BATCH_ROWS):
        some = pad_rows(part)
        noise = [(normal[at[some]], gumbel[at[some]]) for normal, gumbel in objective.noise]
        times = [max(1, round(level * diffusion.schedule.times)) for level in NOISE_LEVELS]
        each = diffusion.errors_at(x[some], times, noise, objective.y[at[some]], len(part))
        errors.append((sum(each[1:], each[0]) / len(each))[: len(part)])
    return torch.cat(errors)


def rank_features(key: Tensor) -> Tensor:
    """(m, features) the rank of each feature by its key, lowest first; ties in the order of the features."""
    order = key.argsort(dim=1, stable=True)
    return torch.empty_like(order).scatter_(1, order, torch.arange(key.shape[1]).expand_as(order).contiguous())
