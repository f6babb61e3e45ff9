"""A search along the features, for rows that no exemplar helps and for the smallest change of a single number.

It does not depend on similar people in the table: every free number is moved to its ends and bisected back, every
category is tried, then the best value of all features at once, then further changes to the best candidate so far; where
only a few thousand rows are feasible, all of them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from tdce._core import Flags, Floats
from tdce.methods.candidates import Candidates, round_numbers
from tdce.methods.exemplars import ValueEffects
from tdce.methods.objective import change_costs, feature_positions
from tdce.methods.protocol import Dialogue, Query, Reply, Task
from tdce.schema import Numeric

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # places in a number's range that are tried
ROUNDS = 4  # rounds that each change one feature of the best candidate so far
BISECTIONS = 4
AHEAD = 2  # bisection steps per round of queries, for few rows; divides the numbers of steps
FIRST_BISECTIONS = 2  # for candidates before the best are chosen
EXCHANGES = 8  # most helpful exchanges of a change for a cheaper one that are tried
EXCHANGED_AT_A_TIME = 512  # changes that are compared with all values at a time
CHEAPEST_EXCHANGES = 4  # cheapest accepted exchanges, whose energy is computed
BAND_BISECTIONS = 18
BAND_PATHS = 8  # paths from below a band to above it that are bisected in each round
BAND_PAIRS = 64  # pairs of changes that should lead into a band if their effects add up, tried in each round
MOST_PAIRS = 50_000  # pairs that these are chosen from
BAND_ROUNDS = 6
MAX_POINTS = 4_096  # feasible rows that are all tried where nothing else was accepted
FEW_POINTS = 512  # feasible rows that are all tried in any case
POINTS_AT_A_TIME = 65_536
ROWS_AT_A_TIME = 64  # maximum number of rows whose features are changed one by one
NUMBERS_AT_A_TIME = 2**24  # maximum number of values in all of their trials


def try_ends(task: Task, query: Query, candidates: Candidates, columns: Tensor) -> Dialogue[None]:
    """Try both ends of the range of each of these numeric columns (k,), and bisect accepted ones back to the row."""
    n, k = len(query.x), len(columns)
    ends = torch.stack([query.bounds.low[:, columns], query.bounds.high[:, columns]], dim=2).flatten()  # (n * k * 2,)
    at, column = torch.arange(n).repeat_interleave(2 * k), columns.repeat_interleave(2).repeat(n)
    apart = (ends != query.x[at, column]) & ~task.encoder.is_mark(query.x)[at, column]
    at, column, ends = at[apart], column[apart], ends[apart]
    if len(at):
        x_cf = query.x[at].scatter(1, column[:, None], ends[:, None])
        reply = yield query.ask(round_numbers(task.space, query.x[at], x_cf), at)
        accepted = candidates.screen(reply, at)
        before = len(candidates.at)
        candidates.add(reply.x[accepted, 0], at[accepted], reply.margin[accepted, 0])
        which = torch.arange(before, len(candidates.at))
        yield from bisect(task, query, candidates, which, one_hot(column[accepted], task.space.width).bool())


def bisect(
    task: Task, query: Query, candidates: Candidates, which: Tensor, columns: Tensor, times: int = BISECTIONS
) -> Dialogue[None]:
    """Move the numbers in `columns` (m, width) of the candidates at `which` (m,) along the straight line to the row, as
    near to it as they are still accepted without losing safety, and add the results."""
    x_cf, at, lacking = candidates.x[which], candidates.at[which], candidates.shortfall[which]
    own, best, margin = query.x[at], x_cf, torch.zeros(len(at), dtype=torch.double)
    low, high = torch.zeros(len(at), 1), torch.ones(len(at), 1)
    ahead = AHEAD if query.few and task.oracle.budget is None else 1
    points = 2**ahead - 1  # queried per candidate in a round: all that the next steps may need
    first = torch.arange(len(at)) * points
    for _ in range(times // ahead if len(at) else 0):
        shares = low + (high - low) * torch.arange(1, points + 1) / (points + 1)  # exact: few binary digits
        between = own[:, None] + shares[:, :, None] * (x_cf - own)[:, None]
        between = round_numbers(task.space, own[:, None], torch.where(columns[:, None], between, x_cf[:, None]))
        reply = yield query.ask(between.flatten(0, 1), at.repeat_interleave(points))
        for _ in range(ahead):
            middle = (low + high) / 2
            part = reply.take(first + (shares == middle).int().argmax(dim=1))
            accepted = candidates.screen(part, at, lacking)[:, None]
            best = torch.where(accepted, part.x[:, 0], best)
            margin = torch.where(accepted[:, 0], part.margin[:, 0], margin)
            low, high = torch.where(accepted, low, middle), torch.where(accepted, middle, high)
    nearer = (best != x_cf).any(dim=1)
    candidates.add(best[nearer], at[nearer], margin[nearer], candidates.line[which[nearer]])


def exchange(task: Task, query: Query, best: Candidates) -> Dialogue[Candidates]:
    """Try to exchange each change of each candidate for a cheaper one, of the same feature or another; the cheapest
    candidates that the model accepts."""
    cheaper = Candidates(task, query, best.objective)
    for goal, belongs in query.goals.groups():
        values, own = ValueEffects.of(task, goal), belongs[best.at].nonzero().squeeze(1)
        if len(values.rows) == 0 or len(own) == 0:
            continue
        x_cf, at = best.x[own], best.at[own]
        here, there = (feature_positions(task.encoder, x) for x in (query.x[at], x_cf))
        changed = task.space.moved(x_cf, query.x[at]) & task.free
        weights = best.objective.weights
        paid = change_costs(changed, here, there) * weights  # (n, features)
        offered = feature_positions(task.encoder, values.rows)[torch.arange(len(values.rows)), values.feature]  # (v, 2)
        asked = here[:, values.feature]
        other = offered[:, 0] != asked[..., 0]
        price = change_costs(other, asked, offered) * weights[values.feature]  # (n, v)
        gain = values.effect - values.effects(task.space, x_cf)[:, values.feature]
        allowed = other & task.free[values.feature] & ~values.are_had(task.space, x_cf)
        trials, whose = [x_cf[:0]], [at[:0]]
        for some in torch.split(changed.nonzero(), EXCHANGED_AT_A_TIME):
            i, reverted = some.T  # (m,) candidates, and the feature that is reverted in each
            again = values.feature == reverted[:, None]  # (m, v) values of the same feature
            saved = paid[i, reverted][:, None] + torch.where(again, 0.0, paid[i][:, values.feature])
            key = (-gain[i]).masked_fill((price[i] >= saved) | ~allowed[i], torch.inf)
            key, which = key.sort(dim=1, stable=True)
            row, rank = key[:, :EXCHANGES].isfinite().nonzero(as_tuple=True)
            value = which[row, rank]
            less = torch.where(task.space.members[reverted[row]], query.x[at[i[row]]], x_cf[i[row]])
            trials.append(torch.where(task.space.members[values.feature[value]], values.rows[value], less))
            whose.append(at[i[row]])
        if len(torch.cat(whose)):
            yield from _ask(task, query, cheaper, torch.cat(trials), torch.cat(whose))
    return cheaper.cheapest(CHEAPEST_EXCHANGES)


def complete(task: Task, query: Query, rows: Tensor, candidates: Candidates) -> Dialogue[None]:
    """Change one feature after another to the value that helps most, for rows (m,) without a candidate."""
    for part in torch.split(rows, _rows_at_a_time(task)):
        at, base, margin = part, query.x[part], query.decision.margin[part]
        for i in range(ROUNDS):
            trials, feature = single_changes(task, query, base, at)
            m, v, width = trials.shape
            if not m or not v:
                break
            each = at.repeat_interleave(v)
            reply = yield from _ask(task, query, candidates, trials.view(-1, width), each)
            x, gain = reply.x[:, 0].view(m, v, width), reply.margin[:, 0].view(m, v)
            if i == 0:  # all features at once, each with its most helpful value
                improves = torch.where(gain > margin[:, None], gain, -torch.inf)
                yield from _ask(task, query, candidates, _combine(task, base, x, improves, feature), at)
            best, which = gain.max(dim=1)
            goes_on = candidates.unsolved()[at] & (best > margin)
            base, margin, at = x[torch.arange(m), which][goes_on], best[goes_on], at[goes_on]
    in_band = query.goals.width.isfinite()
    yield from bracket(task, query, _left(rows[in_band[rows]], candidates), candidates)
    yield from enumerate_rows(task, query, _left(rows, candidates), candidates)


def bracket(task: Task, query: Query, rows: Tensor, candidates: Candidates) -> Dialogue[None]:
    """Search for rows (m,) whose goal is a band: try pairs of single changes that should lead into it if their effects
    add up, then bisect between a candidate below the band and one above it, on several paths that change the features
    in different orders."""
    features = len(task.space.members)
    shuffle = torch.Generator().manual_seed(0)
    orders = [torch.randperm(features, generator=shuffle) for _ in range(BAND_ROUNDS * BAND_PATHS)]
    rounds = torch.stack(orders)[:, task.space.owner].view(BAND_ROUNDS, BAND_PATHS, -1)
    for at in torch.split(rows, _rows_at_a_time(task)):
        sides = _Sides(query, at)
        for ranks in rounds:
            m, base, before = len(at), sides.nearest(), sides.offset()
            trials, feature = single_changes(task, query, base, at)
            v = trials.shape[1]
            if not m or not v:
                break
            reply = yield from _ask(task, query, candidates, trials.flatten(0, 1), at.repeat_interleave(v))
            x, over = sides.add(reply, v)
            score = query.goals.take(at.repeat_interleave(v)).display_score(reply.score[:, 0]).view(m, v)
            pairs = _pairs(task, x, feature, before, sides.offset_of(reply.margin[:, 0].view(m, v), over))
            if pairs.shape[1]:
                each = at.repeat_interleave(pairs.shape[1])
                reply = yield from _ask(task, query, candidates, pairs.flatten(0, 1), each)
                sides.add(reply, pairs.shape[1])
            ends = torch.stack([_combine(task, base, x, sign * score, feature) for sign in (-1, 1)], dim=1)
            reply = yield from _ask(task, query, candidates, ends.flatten(0, 1), at.repeat_interleave(2))
            sides.add(reply, 2)
            low, high = torch.zeros(m, BAND_PATHS, 1), torch.ones(m, BAND_PATHS, 1)
            below, above = (each[:, None].expand(-1, BAND_PATHS, -1) for each in (sides.below, sides.above))
            number = torch.arange(task.space.width) < task.space.num
            for _ in range(BAND_BISECTIONS):
                middle = (low + high) / 2
                weight = (middle * features - ranks).clamp(0.0, 1.0)
                between = torch.where(number, below + weight * (above - below), torch.where(weight < 0.5, below, above))
                reply = yield from _ask(
                    task, query, candidates, between.flatten(0, 1), at.repeat_interleave(BAND_PATHS)
                )
                _, over = sides.add(reply, BAND_PATHS)
                low, high = torch.where(over[:, :, None], low, middle), torch.where(over[:, :, None], middle, high)
            unsolved = candidates.unsolved()[at]
            sides, at = sides.take(unsolved), at[unsolved]


class _Sides:
    """The nearest misses of some rows below their bands and above them."""

    def __init__(self, query: Query, at: Tensor) -> None:
        self.query, self.at = query, at
        over = query.goals.take(at).overshot(query.decision.score[at])
        margin = query.decision.margin[at]
        self.below = self.above = query.x[at]  # (m, width)
        self.below_margin = margin.masked_fill(over, -torch.inf)
        self.above_margin = margin.masked_fill(~over, -torch.inf)

    def add(self, reply: Reply, count: int) -> tuple[Tensor, Tensor]:
        """Record a reply about `count` candidates of each row; (m, count, width) these candidates, and (m, count) which
        are above the band."""
        m = len(self.at)
        x, margin = reply.x[:, 0].view(m, count, -1), reply.margin[:, 0].view(m, count)
        goals = self.query.goals.take(self.at.repeat_interleave(count))
        over = goals.overshot(reply.score[:, 0]).view(m, count)
        self.below, self.below_margin = _nearer(self.below, self.below_margin, x, margin.masked_fill(over, -torch.inf))
        self.above, self.above_margin = _nearer(self.above, self.above_margin, x, margin.masked_fill(~over, -torch.inf))
        return x, over

    def nearest(self) -> Tensor:
        """(m, width) the nearest miss of either side."""
        return torch.where((self.below_margin > self.above_margin)[:, None], self.below, self.above)

    def offset(self) -> Tensor:
        """(m,) the nearest miss's offset from the middle of the band, negative if below."""
        margin = torch.maximum(self.below_margin, self.above_margin)
        return self.offset_of(margin[:, None], (self.below_margin <= self.above_margin)[:, None])[:, 0]

    def offset_of(self, margin: Tensor, over: Tensor) -> Tensor:
        """(m, k) the same for candidates with these margins (m, k); `over` (m, k): those above the band."""
        half = self.query.goals.width[self.at, None] / 2
        return torch.where(over, half - margin, margin - half)

    def take(self, which: Tensor) -> _Sides:
        part = _Sides(self.query, self.at[which])
        for name in ("below", "above", "below_margin", "above_margin"):
            setattr(part, name, getattr(self, name)[which])
        return part


def _pairs(task: Task, x: Tensor, feature: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """(m, pairs, width) pairs of single changes x (m, v, width) of different features, first those that come closest to
    the middle of a band if their effects add up. The offsets from it are `before` (m,) and `after` (m, v)."""
    i, j = torch.triu_indices(len(feature), len(feature), 1)
    apart = (feature[i] != feature[j]).nonzero().squeeze(1)
    apart = apart[:: 1 + len(apart) // MOST_PAIRS]
    i, j = i[apart], j[apart]
    off = (after[:, i] + after[:, j] - before[:, None]).abs().nan_to_num(nan=torch.inf)
    best = off.argsort(dim=1, stable=True)[:, :BAND_PAIRS]
    rows = torch.arange(len(x))[:, None]
    return torch.where(task.space.members[feature[j[best]]], x[rows, j[best]], x[rows, i[best]])


def _nearer(x: Tensor, margin: Tensor, others: Tensor, other_margin: Tensor) -> tuple[Tensor, Tensor]:
    best, which = other_margin.max(dim=1)
    better = best > margin
    found = others[torch.arange(len(x)), which]
    return torch.where(better[:, None], found, x), torch.where(better, best, margin)


def enumerate_rows(
    task: Task, query: Query, rows: Tensor, candidates: Candidates, most: int = MAX_POINTS
) -> Dialogue[Tensor]:
    """Try all feasible rows of those rows (m,) that have at most `most`; (k,) the rows whose feasible set was tried."""
    rows, tried = rows[2.0 ** _choices(task, query)[rows].sum(dim=1) <= most], [torch.zeros(0, dtype=torch.long)]
    for part in torch.split(rows, max(1, POINTS_AT_A_TIME // most)):
        each = [(row, values) for row, values in zip(part.tolist(), _all_values(task, query, part, most), strict=True)
                if values is not None]  # fmt: skip
        meshes = [
            np.stack([axis.ravel() for axis in np.meshgrid(*values, indexing="ij")], axis=1) for _, values in each
        ]
        if meshes:
            at = torch.cat([torch.full((len(mesh),), row) for (row, _), mesh in zip(each, meshes, strict=True)])
            yield from _ask(task, query, candidates, task.encoder.embed(np.concatenate(meshes)).float(), at)
            tried.append(torch.tensor([row for row, _ in each]))
    return torch.cat(tried)


def _choices(task: Task, query: Query) -> Tensor:
    """(n, features) features that may have more than one value, for each row."""
    several = 2.0 * (query.bounds.high > query.bounds.low)
    values = task.space.sum_by_feature(task.space.join(several, query.bounds.allowed.float()))
    return (values > 1) & task.free


def _all_values(task: Task, query: Query, rows: Tensor, most: int = MAX_POINTS) -> list[list[Floats] | None]:
    """The feasible values of each feature of some rows (m,), its own included; None for rows with more than `most`
    combinations."""
    x, num = query.x[rows], task.space.num
    ends = (torch.cat([each[rows], x[:, num:]], dim=1) for each in (query.bounds.low, query.bounds.high))
    own, low, high = (task.encoder.unembed(each) for each in (x, *ends))
    allowed = query.bounds.allowed[rows].numpy()
    return [_row_values(task, *each, most) for each in zip(own, low, high, allowed, strict=True)]


def _row_values(
    task: Task,
    own: Floats,  # (features,)
    low: Floats,  # (features,)
    high: Floats,  # (features,)
    allowed: Flags,  # (cat,)
    most: int,
) -> list[Floats] | None:
    values, points = list[Floats](), 1
    for i, (column, columns, free) in enumerate(
        zip(task.encoder.schema, task.space.places.values(), task.free.tolist(), strict=True)
    ):
        each = own[[i]]
        if free and isinstance(column, Numeric):
            if column.levels is not None:
                grid = np.array(column.levels)
            elif column.step is not None and (high[i] - low[i]) / column.step <= most:
                grid = column.round(np.arange(low[i], high[i] + column.step / 2, column.step))
            else:
                return None
            each = np.union1d(each, grid[(grid >= low[i]) & (grid <= high[i])])
        elif free:
            numbers = np.flatnonzero(allowed[np.array(columns) - task.space.num])
            each = np.union1d(each, numbers.astype(np.float64))
        points *= len(each)
        if points > most:
            return None
        values.append(each)
    return values


def single_changes(task: Task, query: Query, base: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """(m, v, width) base (m, width) with one free feature changed: a number to places in its range, a category to any
    other; and (v,) the index of that feature."""
    space, free = task.space, task.free.tolist()
    trials = list[tuple[int, int, float, int]]()  # feature, column of its number, share, column of its weight; -1: none
    for i, columns in enumerate(space.places.values()):
        if not free[i]:
            continue
        numbers, weights = [c for c in columns if c < space.num], [c for c in columns if c >= space.num]
        trials += [(i, c, share, weights[0] if weights else -1) for c in numbers for share in SHARES]
        trials += [(i, -1, 0.0, c) for c in weights[1 if numbers else 0 :]]
    if not trials:
        return base[:, None][:, :0], torch.zeros(0, dtype=torch.long)
    which, column, share, hot = (torch.tensor(each) for each in zip(*trials, strict=True))
    has_number, has_weight = column >= 0, hot >= 0
    new = torch.zeros(len(base), len(which), space.width)
    low, high = (bound[at][:, column[has_number]] for bound in (query.bounds.low, query.bounds.high))
    new[:, has_number, column[has_number]] = low + share[has_number] * (high - low)
    new[:, has_weight, hot[has_weight]] = 1.0
    return torch.where(space.members[which], new, base[:, None]), which


def _rows_at_a_time(task: Task) -> int:
    """The number of rows at a time; fewer in a wide table, whose rows have many trials of many columns."""
    space = task.space
    return max(1, min(ROWS_AT_A_TIME, NUMBERS_AT_A_TIME // ((len(SHARES) * space.num + space.cat + 1) * space.width)))


def _combine(task: Task, base: Tensor, x: Tensor, key: Tensor, feature: Tensor) -> Tensor:
    """(m, width) base with each feature taken from the trial x (m, v, width) of it with the highest key (m, v)."""
    out, rows = base, torch.arange(len(base))
    for i in sorted(set(feature.tolist())):
        own = (feature == i).nonzero().squeeze(1)
        best, which = key[:, own].max(dim=1)
        taken = best.isfinite()[:, None] & task.space.members[i]
        out = torch.where(taken, x[rows, own[which]], out)
    return out


def _ask(task: Task, query: Query, candidates: Candidates, x_cf: Tensor, at: Tensor) -> Dialogue[Reply]:
    """Request decisions on candidates (m, width) of the rows at `at`, and add those accepted."""
    reply = yield query.ask(round_numbers(task.space, query.x[at], x_cf), at)
    accepted = candidates.screen(reply, at)
    candidates.add(reply.x[accepted, 0], at[accepted], reply.margin[accepted, 0])
    return reply


def _left(rows: Tensor, candidates: Candidates) -> Tensor:
    return rows[candidates.unsolved()[rows]]
