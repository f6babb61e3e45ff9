"""Actions: changes that many people could make, taken from answers, and their effect on each person's row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, log10
from typing import Literal

import numpy as np

from tdce._core import Flags, Floats, same
from tdce.schema import Column, FeasibleSet, Numeric

How = Literal["set", "at most", "at least", "by", "times"]
FORMS: tuple[Literal["limit", "by", "times"], ...] = ("limit", "by", "times")
LEVELS = (0.25, 0.5, 0.75)  # quantiles of people's changes of a number, from which actions take their values
MOST_PATTERNS = 60  # the most common combinations of features, from which actions are made
ROUND = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # round amounts, times a power of ten
SHARE = 0.05  # shares are multiples of this
LOWEST_SHARE = -0.95


@dataclass(frozen=True)
class Step:
    """What an action asks for in one feature."""

    column: int  # position of the feature
    how: How  # set: to a category or a mark; at most, at least: a limit; by: a difference; times: a relative change
    value: float  # raw value, difference or share

    def values(self, own: Floats, column: Column) -> Floats:
        """(n,) the rows' values after this step, on the grid; NaN where it is not defined: the number is missing or a
        mark."""
        if self.how == "set" or not isinstance(column, Numeric):
            return np.full(len(own), self.value)
        number = np.where(np.isin(own, column.marks), np.nan, own)
        if self.how == "at most":
            return np.minimum(number, self.value)
        if self.how == "at least":
            return np.maximum(number, self.value)
        wanted = column.round(number + self.value if self.how == "by" else number * (1 + self.value))
        return np.where(wanted == column.round(number), number, wanted)


Action = tuple[Step, ...]
"""Steps in different features, ordered by column."""


def propose_actions(
    own: Floats, raw: Floats, columns: Sequence[Column], followers: Sequence[int], most: int
) -> list[Action]:
    """Actions of at most `most` steps, from rows (lines, features) and their counterfactuals; those from the most
    common patterns come first.

    A pattern is the set of features that an answer changes, with the new category or the direction of each number. It
    gives actions in which every number goes as far as a quantile of the people who move it that way: to the same value,
    by the same amount, or by the same share. Each feature alone is a pattern, too.
    """
    changed = ~same(raw, own)
    changed[:, list(followers)] = False
    moves, patterns = dict[_Move, list[tuple[float, float]]](), Counter[tuple[_Move, ...]]()
    for line in np.flatnonzero(changed.any(axis=1)).tolist():
        pattern = []
        for c in np.flatnonzero(changed[line]).tolist():
            move = _Move.of(c, columns[c], own[line, c], raw[line, c])
            moves.setdefault(move, []).append((own[line, c], raw[line, c]))
            pattern.append(move)
        patterns[tuple(pattern)] += 1
    for move in moves:
        patterns[move,] += 0  # a pattern of its own, even if no answer makes this change alone
    common = sorted((p for p in patterns if len(p) <= most), key=lambda p: (-patterns[p], len(p), p))[:MOST_PATTERNS]
    steps = {move: _steps(move, columns[move.column], np.array(pairs)) for move, pairs in moves.items()}
    every = (
        tuple(step[form, level] for step in (steps[move] for move in pattern))
        for pattern in common
        for form in FORMS
        for level in LEVELS
        if all((form, level) in steps[move] for move in pattern)
    )
    return list(dict.fromkeys(every))


def join_actions(actions: Sequence[Action], most: int) -> list[Action]:
    """The union of every two actions that change different features, if it has at most `most` steps."""
    joined = []
    for one, other in combinations(actions, 2):
        both = tuple(sorted((*one, *other), key=lambda step: step.column))
        if len(both) <= most and len({step.column for step in both}) == len(both):
            joined.append(both)
    return list(dict.fromkeys(joined))


def apply_action(action: Action, feasible: FeasibleSet) -> tuple[Floats, Flags]:
    """(n, features) the rows after an action, followers included, and (n,) whether it is possible: every step may be
    proposed to the row, no law or rule reverts one, and something changes."""
    own, raw = feasible.own, feasible.own.copy()
    possible = np.ones(len(own), dtype=bool)
    for step in action:
        c = step.column
        wanted = step.values(own[:, c], feasible.columns[c].column)
        stays = same(wanted, own[:, c])
        possible &= ~np.isnan(wanted) & (stays | (feasible.allowed_values[c].allows(wanted) & ~feasible.frozen[c]))
        raw[:, c] = wanted
    raw = np.where(possible[:, None], raw, own)
    asked = raw[:, [step.column for step in action]]
    raw = feasible.constraints.repair(raw, own, feasible)
    possible &= same(raw[:, [step.column for step in action]], asked).all(axis=1) & ~same(raw, own).all(axis=1)
    return np.where(possible[:, None], raw, own), possible


@dataclass(frozen=True, order=True)
class _Move:
    """A change of one feature in a form that people share: to a category or a mark, or up or down."""

    column: int
    direction: int  # -1 or 1; 0: to `value`
    value: float = 0.0

    @classmethod
    def of(cls, at: int, column: Column, own: float, new: float) -> _Move:
        marks = (*column.marks,)
        if not isinstance(column, Numeric) or np.isnan(own) or own in marks or new in marks:
            return cls(at, 0, new)
        return cls(at, 1 if new > own else -1)


def _steps(move: _Move, column: Column, pairs: Floats) -> dict[tuple[str, float], Step]:
    """The steps for a move, by form and level; `pairs` (n, 2) are the values before and after of those who make it."""
    if move.direction == 0 or not isinstance(column, Numeric):
        return {(form, level): Step(move.column, "set", move.value) for form in FORMS for level in LEVELS}
    own, new = pairs.T
    steps: dict[tuple[str, float], Step] = {}
    for level in LEVELS:
        far = float(np.quantile(np.abs(new - own), level, method="higher"))
        end = np.quantile(move.direction * new, level, method="higher") * move.direction
        limit = _limit(column, float(end), move.direction)
        if limit is not None:
            steps["limit", level] = Step(move.column, "at least" if move.direction > 0 else "at most", limit)
        amount = float(column.round(np.array([_round_up(far)]), "up")[0]) if column.levels is None else _round_up(far)
        steps["by", level] = Step(move.column, "by", move.direction * amount)
        if (own > 0).all() and (new >= 0).all():
            share = ceil(round(float(np.quantile(np.abs(new / own - 1), level, method="higher")) / SHARE, 9)) * SHARE
            steps["times", level] = Step(move.column, "times", round(max(move.direction * share, LOWEST_SHARE), 9))
    return steps


def _limit(column: Numeric, end: float, direction: int) -> float | None:
    """The nearest round number at or beyond an end, on the column's grid and in its range."""
    if end == 0:
        return 0.0
    scale = 10.0 ** (floor(log10(abs(end))) - 1)  # two digits
    said = (ceil if direction > 0 else floor)(round(end / scale, 9)) * scale
    towards: Literal["up", "down"] = "up" if direction > 0 else "down"
    low, high = column.bounds
    for value in (said, end):
        limit = float(column.round(np.array([value]), towards)[0])
        if low <= limit <= high and limit not in column.marks:
            return limit
    return None


def _round_up(amount: float) -> float:
    """The next round amount."""
    scale = 10.0 ** floor(log10(amount))
    return next(step * scale for step in ROUND if step * scale >= amount * (1 - 1e-9))
