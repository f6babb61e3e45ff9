"""The cheapest combinations of a few changes, for answers nearer than those of the standard position.

Each single change is tried for its effect on the row's margin. Then the combinations of two and more changes that
should suffice if these effects add up are tried, so that none is missed because no similar row needed it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from tdce._core import rank_within
from tdce.methods.candidates import Candidates, round_numbers
from tdce.methods.exemplars import ValueEffects
from tdce.methods.objective import change_costs, feature_positions, needed_margin
from tdce.methods.padding import first_copies
from tdce.methods.protocol import Dialogue, Query, Task
from tdce.models import Goal
from tdce.schema import Space

PLACES = tuple(i / 240 for i in range(241))  # quantiles of a number whose average effects are compared
APART = 10  # every tenth of these is tried, and the most helpful one between two of them
MOST_FEATURES = 24  # features whose values are tried; in a wide table, those of the largest effects
CONTINUED = 128  # most helpful insufficient combinations, to which a further change is added
TRIED = 128  # cheapest combinations that should suffice, and as many others that should help most
ROWS_AT_A_TIME = 32


def combine(task: Task, query: Query, near: Candidates, most: int) -> Dialogue[Candidates]:
    """The accepted combinations of up to `most` changes that cost less than the row's best candidate at position 1."""
    original = _originals(query)
    own = (original[near.at] == near.at).nonzero().squeeze(1)
    found = near.take(own)
    solved = found.best(1.0) >= 0
    for goal, belongs in query.goals.groups():
        for at in torch.split((solved & belongs).nonzero().squeeze(1), ROWS_AT_A_TIME):
            changes = yield from _try_alone(task, query, goal, found, at)
            tried = changes.insufficient()
            for _ in range(most - 1):
                tried = yield from changes.extend(tried, found)
    found = found.take(torch.arange(len(own), len(found.at)))
    row, which = (original[:, None] == found.at).nonzero(as_tuple=True)
    found = found.take(which)
    found.at, found.line = row, torch.arange(len(row))
    return found


def _originals(query: Query) -> Tensor:
    """(n,) for each row, the first one with the same values, bounds and goal, whose results it shares."""
    bounds, which = query.bounds, query.goals.which[:, None].to(query.x.dtype)
    return first_copies(torch.cat([query.x, bounds.low, bounds.high, bounds.allowed.to(query.x.dtype), which], dim=1))


@dataclass(frozen=True)
class _Tried:
    """Up to k combinations for each of some rows; the margin is minus infinity for those not to be extended."""

    x: Tensor  # (n, k, width)
    margin: Tensor  # (n, k)
    cost: Tensor  # (n, k)
    last: Tensor  # (n, k) the change that was added last
    changed: Tensor  # (n, k, features)

    def most_helpful(self, count: int) -> _Tried:
        """Up to `count` of these for each row, by margin."""
        which = self.margin.argsort(dim=1, descending=True, stable=True)[:, :count]
        rows = torch.arange(len(which))[:, None]
        parts = (each[rows, which] for each in (self.x, self.margin, self.cost, self.last, self.changed))
        return _Tried(*parts)


@dataclass(frozen=True)
class _Changes:
    """Up to v single changes for each of some rows, the most helpful first; if there are fewer, the rest have infinite
    cost."""

    query: Query
    members: Tensor  # (features, width) the columns of each feature
    at: Tensor  # (n,) the rows
    needed: Tensor  # (n,) the margin that suffices
    x: Tensor  # (n, v, width) the row with this change alone
    feature: Tensor  # (n, v)
    gain: Tensor  # (n, v) the margin that it adds
    cost: Tensor  # (n, v)

    def insufficient(self) -> _Tried:
        """The changes that do not suffice alone."""
        margin = self.query.decision.margin[self.at, None].float() + self.gain
        margin = margin.masked_fill(self.cost.isinf() | (margin >= self.needed[:, None]), -torch.inf)
        changed = one_hot(self.feature, len(self.members)).bool()
        return _Tried(self.x, margin, self.cost, torch.arange(self.x.shape[1]).expand_as(self.feature), changed)

    def extend(self, tried: _Tried, near: Candidates) -> Dialogue[_Tried]:
        """Try combinations with one more change."""
        tried, n = tried.most_helpful(CONTINUED), torch.arange(len(self.at))[:, None]
        pair, there = self._promising(tried, near.cost[near.best(1.0)[self.at]])  # (n, t)
        parent, change = pair // self.gain.shape[1], pair % self.gain.shape[1]
        feature = self.feature[n, change]
        more = _Tried(
            torch.where(self.members[feature], self.x[n, change], tried.x[n, parent]),
            torch.full(pair.shape, -torch.inf), torch.zeros(pair.shape), change,
            tried.changed[n, parent] | one_hot(feature, len(self.members)).bool(),
        )  # fmt: skip
        i, j = there.nonzero(as_tuple=True)
        if len(i):
            x, margin = yield from _ask(self.query, near, more.x[i, j], self.at[i])
            more.x[i, j], more.cost[i, j] = x, near.objective.cost(x, self.at[i])
            more.margin[i, j] = margin.masked_fill(margin >= self.needed[i], -torch.inf)
        return more

    def _promising(self, tried: _Tried, bound: Tensor) -> tuple[Tensor, Tensor]:
        """(n, t) pairs of a combination and a further change that cost less than the bound (n,), and which exist: the
        cheapest that should suffice if their effects add up, then those that should help most."""
        margin = tried.margin[:, :, None] + self.gain[:, None]  # (n, k, v)
        cost = tried.cost[:, :, None] + self.cost[:, None]
        other = ~tried.changed.gather(2, self.feature[:, None].expand(-1, margin.shape[1], -1))
        later = torch.arange(margin.shape[2]) > tried.last[:, :, None]  # each combination once
        left = other & later & (cost < bound[:, None, None]) & margin.isfinite()
        margin, cost, left = (each.flatten(1) for each in (margin, cost, left))
        chosen = []
        for key, which in ((cost, left & (margin >= self.needed[:, None])), (-margin, left)):
            key, order = key.masked_fill(~which, torch.inf).sort(dim=1, stable=True)
            chosen.append((order[:, :TRIED], key[:, :TRIED].isfinite()))
            left = left & ~torch.zeros_like(left).scatter(1, *chosen[-1])
        pairs, exist = (torch.cat(each, dim=1) for each in zip(*chosen, strict=True))
        return pairs, exist


def _try_alone(task: Task, query: Query, goal: Goal, near: Candidates, at: Tensor) -> Dialogue[_Changes]:
    """Try the single changes of some rows (n,) with this goal that cost less than their best candidates."""
    feature, values = _values(task, goal)
    there = feature_positions(task.encoder, values)[torch.arange(len(values)), feature]
    here = feature_positions(task.encoder, query.x[at])[:, feature]
    other = there[:, 0] != here[:, :, 0]
    price = change_costs(other, here, there) * near.objective.weights[feature]
    i, value = (other & (price < near.cost[near.best(1.0)[at], None])).nonzero(as_tuple=True)
    own, feature, most = query.x[at], feature[value], int(torch.bincount(i, minlength=1).max())
    changes = _Changes(
        query, task.space.members, at, (needed_margin(task, query) + near.min_margin)[at].float(),
        own[:, None].repeat(1, most, 1), torch.zeros(len(at), most, dtype=torch.long),
        torch.full((len(at), most), -torch.inf), torch.full((len(at), most), torch.inf),
    )  # fmt: skip
    if most:
        x_cf = torch.where(task.space.members[feature], values[value], own[i])
        x, margin = yield from _ask(query, near, round_numbers(task.space, own[i], x_cf), at[i])
        order = torch.from_numpy(np.lexsort((-margin.numpy(), i.numpy())))
        places = i[order], rank_within(i[order])
        changes.x[places], changes.feature[places] = x[order], feature[order]
        changes.gain[places] = (margin - query.decision.margin[at[i]].float())[order]
        changes.cost[places] = near.objective.cost(x, at[i])[order]
    return changes


def _values(task: Task, goal: Goal) -> tuple[Tensor, Tensor]:
    """(v,) free features, and (v, width) rows with one of the feature's values in its columns."""
    size = ValueEffects.of(task, goal).spread(len(task.free)) if int(task.free.sum()) > MOST_FEATURES else task.free
    largest = size.float().masked_fill(~task.free, -1.0).argsort(descending=True, stable=True)[:MOST_FEATURES]
    features = tuple(sorted(i for i in largest.tolist() if task.free[i]))
    values = ValueEffects.of(task, goal, PLACES, features)
    chosen = task.memoise(("tried", goal.family, features), partial(_choose, task.space, values))
    return values.feature[chosen], values.rows[chosen]


def _choose(space: Space, values: ValueEffects) -> Tensor:
    """(k,) the values that are tried: all categories and marks, and some quantiles of each number."""
    chosen, first = torch.ones(len(values.feature), dtype=torch.bool), 0
    for columns, (rows, effect) in zip(space.places.values(), values.by_feature(space), strict=True):
        if columns[0] < space.num:
            places = int((rows[:, 1:2] == 1).all(dim=1).sum())  # the others are marks
            chosen[first : first + places] = _best_places(effect[:places])
        first += len(rows)
    return chosen.nonzero().squeeze(1)


def _best_places(effect: Tensor) -> Tensor:
    """(n,) every tenth quantile of a number, and between two of these the most helpful one, if it helps more than both:
    tree models may accept a narrow range anywhere."""
    chosen, places = torch.zeros(len(effect), dtype=torch.bool), range(len(effect))
    ends = sorted({*places[::APART], *places[-1:]})
    chosen[ends] = True
    for a, b in pairwise(ends):
        if b - a > 1 and effect[a + 1 : b].max() > effect[[a, b]].max():
            chosen[a + 1 + int(effect[a + 1 : b].argmax())] = True
    return chosen


def _ask(query: Query, near: Candidates, x_cf: Tensor, at: Tensor) -> Dialogue[tuple[Tensor, Tensor]]:
    """(m, width) candidates as they would be returned, and (m,) their margins; those accepted are added."""
    reply = yield query.ask(x_cf, at)
    x, margin, accepted = reply.x[:, 0], reply.margin[:, 0], near.screen(reply, at)
    near.add(x[accepted], at[accepted], margin[accepted])
    return x, margin.float()
