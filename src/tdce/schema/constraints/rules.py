"""Rules written by the user, bound to the columns of a table.

Besides expressions (`expression.py`) there are

    at most 3 changes                       among all features
    at most 1 change of rent, heating       among these
    rent, heating together                  if one changes, all do
    loan in steps of 500
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tdce._core import LARGEST_VALUE, Flags, Floats, InputError, same, show
from tdce.schema.columns.base import Column
from tdce.schema.columns.numeric import SMALLEST_STEP, Direction, Numeric
from tdce.schema.constraints.base import Constraint, TowardsOwn
from tdce.schema.constraints.expression import Expression
from tdce.schema.constraints.grammar import Parser

AT_MOST_RULE = re.compile(r"at\s+most\s+(\S+)\s+changes?(?:\s+of\s+(.+))?", re.DOTALL | re.IGNORECASE)
TOGETHER_RULE = re.compile(r"(.+?)\s+together", re.DOTALL | re.IGNORECASE)
STEPS_RULE = re.compile(r"(.+?)\s+in\s+steps\s+of\s+(\S+)", re.DOTALL | re.IGNORECASE)
HALVINGS = 30  # of a change, to find how much of it a rule allows
MAX_CATEGORIES_TRIED = 50  # of a column, to fix a broken rule


class Rule(Constraint):
    """A constraint with its text."""

    text: str

    def without(self, followers: Sequence[int]) -> Rule:
        """The rule for a table in which these columns are followers."""
        return self

    def narrow(self, features: Sequence[Column]) -> tuple[Column, ...]:
        """Restrict the columns to values that do not break the rule on their own; raise an error if none are left."""
        return tuple(features)


def parse_rule(text: str, features: Sequence[Column]) -> Rule:
    """Parse a rule; errors show the place of the mistake."""
    if not isinstance(text, str):
        raise InputError(f"the rule {show(text)} must be text, such as 'loan <= 5 * income'")
    stripped = text.strip()
    if match := AT_MOST_RULE.fullmatch(stripped):
        if not re.fullmatch("[0-9]{1,9}", match[1]):
            raise InputError(
                f"rule {show(stripped)}: {show(match[1], spell=str)} must be a whole number, as in 'at most 3 changes'"
            )
        columns = tuple(range(len(features))) if match[2] is None else Parser(match[2], features).parse_columns()
        span = np.array([column.bounds[1] - column.bounds[0] if column.numbers else np.nan for column in features])
        return AtMost(stripped, columns, int(match[1]), span, match[2] is None)
    if match := TOGETHER_RULE.fullmatch(stripped):
        return Together(stripped, Parser(match[1], features).parse_columns())
    if match := STEPS_RULE.fullmatch(stripped):
        return _parse_steps(stripped, match, features)
    expression = Expression.parse(stripped, features)
    names = [column.name for column in features]
    columns = tuple(names.index(name) for name in expression.columns)
    categories = tuple(0 if features[i].numbers else features[i].weights - features[i].missing for i in columns)
    return Stated(stripped, columns, expression, categories)


def narrow_columns(rules: Sequence[Rule], features: Sequence[Column]) -> tuple[Column, ...]:
    """Restrict the columns to values that all rules allow. If none are left, the error names a minimal set of
    contradicting rules."""
    columns = _narrow_all(rules, features)
    if columns is not None:
        return columns
    conflicting = list(rules)
    for rule in rules:  # leave each out in turn: if the others still conflict, it is not needed
        rest = [other for other in conflicting if other is not rule]
        if _narrow_all(rest, features) is None:
            conflicting = rest
    what = "these rules contradict each other" if len(conflicting) > 1 else "this rule allows nothing"
    texts = "; ".join(show(rule.text, 200, str) for rule in conflicting)
    raise InputError(f"{what}, within the schema: {texts}", "rules_conflict", rules=texts)


def _narrow_all(rules: Sequence[Rule], features: Sequence[Column]) -> tuple[Column, ...] | None:
    """The columns restricted by all rules; None if a column has no value left."""
    current = tuple(features)
    for _ in range(len(rules) + 1):  # one rule may narrow the columns of another
        before = current
        for rule in rules:
            try:
                current = rule.narrow(current)
            except InputError:
                return None
        if current == before:
            break
    return current


@dataclass(frozen=True)
class Stated(Rule):
    """An expression that must not be false."""

    text: str
    columns: tuple[int, ...]
    expression: Expression
    categories: tuple[int, ...]  # the number of categories of each column; 0 for numbers

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return self.expression.broken(raw, own)

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Try another category in a column that did not change."""
        return [
            (column, np.where(changed[:, column], np.nan, float(value)))
            for column, count in zip(self.columns, self.categories, strict=True)
            for value in range(min(count, MAX_CATEGORIES_TRIED))
        ]

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Move one number back as far as needed, or all of them by the same share."""
        numbers = [column for column, count in zip(self.columns, self.categories, strict=True) if count == 0]
        for columns in [[column] for column in numbers] + [numbers] * (len(numbers) > 1):
            yield self._pull_back(raw, own, columns, towards_own)

    def _pull_back(self, raw: Floats, own: Floats, columns: list[int], towards_own: TowardsOwn) -> Floats:
        """The rows with as much of the change in these columns as the rule allows, by bisection."""
        kept, broken = np.zeros(len(raw)), np.ones(len(raw))
        for _ in range(HALVINGS):
            middle = (kept + broken) / 2
            good = ~self.broken(_partial_change(raw, own, columns, middle), own)
            kept, broken = np.where(good, middle, kept), np.where(good, broken, middle)
        beyond, within = (
            _on_grid(_partial_change(raw, own, columns, share), columns, towards_own) for share in (broken, kept)
        )
        return np.where(self.broken(beyond, own)[:, None], within, beyond)  # the boundary itself may be on the grid

    def narrow(self, features: Sequence[Column]) -> tuple[Column, ...]:
        low, high = np.array([column.bounds for column in features]).T
        low, high = self.expression.narrow(low, high)
        out = list(features)
        for i in self.columns:
            out[i] = out[i].narrow(float(low[i]), float(high[i]), self.expression.allowed(out[i].name))
            column = out[i]
            if self.columns == (i,) and isinstance(column, Numeric) and column.direction == "any":  # keep the schema's
                out[i] = replace(column, direction=self._direction(i, *column.bounds))
        return tuple(out)

    def _direction(self, i: int, low: float, high: float) -> Direction:
        """The direction of a number, if that is all the rule states; tested with some values."""
        before, after = np.zeros((2, 20, i + 1))
        before[:, i] = np.repeat(np.linspace(low, high, 5), 4)
        after[:, i] = before[:, i] + np.tile([1e-3, 1.0, -1e-3, -1.0], 5) * max(1.0, high - low)
        broken, up = self.expression.broken(after, before), after[:, i] > before[:, i]
        if (broken == up).all():
            return "decrease"
        return "increase" if (broken == ~up).all() and not self.expression.broken(before, before).any() else "any"


@dataclass(frozen=True, eq=False)
class AtMost(Rule):
    """A maximum number of columns that change."""

    text: str
    columns: tuple[int, ...]
    count: int
    span: Floats  # (features,) the ranges of numbers; NaN for categories
    everything: bool = False  # all features, not a list by the user

    def without(self, followers: Sequence[int]) -> Rule:
        """The rule without followers, whose changes do not count unless it names them."""
        return replace(self, columns=tuple(set(self.columns) - set(followers))) if self.everything else self

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return np.asarray(self._changed(raw, own).sum(axis=1) > self.count)

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        return []

    def reverted(self, raw: Floats, own: Floats) -> Flags:
        """The smallest changes: those of numbers as a share of their range, those of categories count 1."""
        changed = self._changed(raw, own)
        size = np.nan_to_num(np.abs(raw - own) / np.maximum(self.span, 1e-300), nan=1.0)
        order = np.argsort(np.where(changed, -size, np.inf), axis=1, kind="stable")
        rank = np.argsort(order, axis=1)  # the largest change has rank 0
        return np.asarray(changed & (rank >= self.count))

    def _changed(self, raw: Floats, own: Floats) -> Flags:
        return ~same(raw, own) & np.isin(np.arange(raw.shape[1]), self.columns)


@dataclass(frozen=True)
class Together(Rule):
    """Columns that change together or not at all."""

    text: str
    columns: tuple[int, ...]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        changed = ~same(raw[:, list(self.columns)], own[:, list(self.columns)])
        return np.asarray(changed.any(axis=1) & ~changed.all(axis=1))

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        return []


@dataclass(frozen=True)
class Steps(Rule):
    """A number on a grid."""

    text: str
    columns: tuple[int, ...]
    step: float

    def broken(self, raw: Floats, own: Floats) -> Flags:
        values = raw[:, self.columns[0]]
        units = np.where(np.abs(values) > LARGEST_VALUE, 0.0, values) / self.step  # so large a number is on any grid
        return np.asarray(np.abs(units - np.rint(units)) > 1e-9 * np.maximum(1.0, np.abs(units)))

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        values = raw[:, self.columns[0]]
        near = np.abs(values) <= LARGEST_VALUE
        return [(self.columns[0], np.where(near, np.rint(np.where(near, values, 0.0) / self.step) * self.step, values))]

    def narrow(self, features: Sequence[Column]) -> tuple[Column, ...]:
        """Put the column on this grid, unless its own is coarser."""
        out, (position,) = list(features), self.columns
        column = out[position]
        if isinstance(column, Numeric) and column.levels is None and (column.step is None or column.step < self.step):
            out[position] = replace(column, step=self.step)
        return tuple(out)


def _partial_change(raw: Floats, own: Floats, columns: list[int], share: Floats) -> Floats:
    """The rows with only a share (n,) of the change in these columns; changes from or to missing stay whole."""
    out, before = raw.copy(), own[:, columns]
    part = before + share[:, None] * (raw[:, columns] - before)
    out[:, columns] = np.where(np.isnan(part), raw[:, columns], part)
    return out


def _on_grid(raw: Floats, columns: list[int], towards_own: TowardsOwn) -> Floats:
    """The rows with these columns moved to values that may be proposed."""
    out = raw.copy()
    for column in columns:
        out[:, column] = towards_own(column, raw[:, column])
    return out


def _parse_steps(text: str, match: re.Match[str], features: Sequence[Column]) -> Rule:
    positions = Parser(match[1], features).parse_columns()
    try:
        step = float(match[2])
    except ValueError:
        step = 0.0
    if not 0 < step < np.inf or len(positions) > 1 or features[positions[0]].numbers == 0:
        raise InputError(f"rule {show(text)} needs one column of numbers and a positive step: 'loan in steps of 500'")
    if not SMALLEST_STEP <= step <= LARGEST_VALUE:
        raise InputError(f"rule {show(text)}: the step must be from {SMALLEST_STEP:g} to {LARGEST_VALUE:g}")
    return Steps(text, positions, step)
