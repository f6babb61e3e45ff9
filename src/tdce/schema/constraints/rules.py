"""Rules that a user gives, bound to the columns of a table and kept like laws.

Besides expressions (`expression.py`) there are

    at most 3 changes                       of all features
    at most 1 change of rent, heating       of these
    rent, heating together                  if one of them changes, all do
    loan in steps of 500
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tdce._core import Flags, Floats, InputError, same, show
from tdce.schema.columns.base import Column
from tdce.schema.columns.numeric import Direction, Numeric
from tdce.schema.constraints.expression import Expression
from tdce.schema.constraints.grammar import Parser
from tdce.schema.constraints.laws import Back, Bound

AT_MOST = re.compile(r"at\s+most\s+(\S+)\s+changes?(?:\s+of\s+(.+))?", re.DOTALL | re.IGNORECASE)
TOGETHER = re.compile(r"(.+?)\s+together", re.DOTALL | re.IGNORECASE)
STEPS = re.compile(r"(.+?)\s+in\s+steps\s+of\s+(\S+)", re.DOTALL | re.IGNORECASE)
HALVINGS = 30  # of a change, to find how much of it a rule leaves
TRIED = 50  # categories of a column by which a broken rule may be mended


class Rule(Bound, Protocol):
    """A law that was given, with its text."""

    text: str

    def narrowed(self, features: Sequence[Column]) -> tuple[Column, ...]:
        """The columns, of which nothing is proposed that breaks it by itself; what it leaves nothing of is an error."""
        return tuple(features)


def parse_rule(text: str, features: Sequence[Column]) -> Rule:
    """A rule from its text; a mistake is shown with its place."""
    if not isinstance(text, str):
        raise InputError(f"the rule {show(text)} must be text, such as 'loan <= 5 * income'")
    stripped = text.strip()
    if match := AT_MOST.fullmatch(stripped):
        if not re.fullmatch("[0-9]{1,9}", match[1]):
            raise InputError(f"rule {stripped!r}: {match[1]} must be a whole number, as in 'at most 3 changes'")
        columns = tuple(range(len(features))) if match[2] is None else Parser(match[2], features).listed()
        span = np.array([column.bounds[1] - column.bounds[0] if column.numbers else np.nan for column in features])
        return AtMost(stripped, columns, int(match[1]), span)
    if match := TOGETHER.fullmatch(stripped):
        return Together(stripped, Parser(match[1], features).listed())
    if match := STEPS.fullmatch(stripped):
        return _steps(stripped, match, features)
    expression = Expression.parse(stripped, features)
    names = [column.name for column in features]
    columns = tuple(names.index(name) for name in expression.columns)
    choices = tuple(0 if features[i].numbers else features[i].weights - features[i].missing for i in columns)
    return Stated(stripped, columns, expression, choices)


def narrow_columns(rules: Sequence[Rule], features: Sequence[Column]) -> tuple[Column, ...]:
    """The columns as all rules together leave them. Rules that leave nothing are named: as few as contradict each
    other."""
    found = _narrowed(rules, features)
    if found is not None:
        return found
    needed = list(rules)
    for rule in rules:  # without each in turn: what still contradicts is enough
        rest = [other for other in needed if other is not rule]
        if _narrowed(rest, features) is None:
            needed = rest
    several = "these rules contradict each other" if len(needed) > 1 else "this rule allows nothing"
    raise InputError(f"{several}, within the schema: {'; '.join(rule.text for rule in needed)}")


def _narrowed(rules: Sequence[Rule], features: Sequence[Column]) -> tuple[Column, ...] | None:
    """None: nothing is left of some column."""
    current = tuple(features)
    for _ in range(len(rules) + 1):  # one rule may narrow what another has to do with
        before = current
        for rule in rules:
            try:
                current = rule.narrowed(current)
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
    choices: tuple[int, ...]  # how many categories each column has

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return self.expression.broken(raw, own)

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Another category of what did not change."""
        return [
            (column, np.where(changed[:, column], np.nan, float(value)))
            for column, count in zip(self.columns, self.choices, strict=True)
            for value in range(min(count, TRIED))
        ]

    def eased(self, raw: Floats, own: Floats, back: Back) -> Iterator[Floats]:
        """One number comes back as far as it must, or all of them by the same share."""
        numbers = [column for column, count in zip(self.columns, self.choices, strict=True) if count == 0]
        for columns in [[column] for column in numbers] + [numbers] * (len(numbers) > 1):
            yield self._pulled(raw, own, columns, back)

    def _pulled(self, raw: Floats, own: Floats, columns: list[int], back: Back) -> Floats:
        """The rows with as much of the change in these columns as it leaves, found by halving."""
        kept, broken = np.zeros(len(raw)), np.ones(len(raw))
        for _ in range(HALVINGS):
            middle = (kept + broken) / 2
            good = ~self.broken(_part(raw, own, columns, middle), own)
            kept, broken = np.where(good, middle, kept), np.where(good, broken, middle)
        beyond, within = (_on_grid(_part(raw, own, columns, share), columns, back) for share in (broken, kept))
        return np.where(self.broken(beyond, own)[:, None], within, beyond)  # the border itself may be on the grid

    def narrowed(self, features: Sequence[Column]) -> tuple[Column, ...]:
        low, high = np.array([column.bounds for column in features]).T
        low, high = self.expression.narrowed(low, high)
        out = list(features)
        for i in self.columns:
            out[i] = out[i].within(float(low[i]), float(high[i]), self.expression.allowed(out[i].name))
            column = out[i]
            if self.columns == (i,) and isinstance(column, Numeric) and column.direction == "any":  # the schema's stays
                out[i] = replace(column, direction=self._direction(i, *column.bounds))
        return tuple(out)

    def _direction(self, i: int, low: float, high: float) -> Direction:
        """The direction of a number, if the rule says that and no more: tried with some values."""
        before, after = np.zeros((2, 20, i + 1))
        before[:, i] = np.repeat(np.linspace(low, high, 5), 4)
        after[:, i] = before[:, i] + np.tile([1e-3, 1.0, -1e-3, -1.0], 5) * max(1.0, high - low)
        broken, up = self.expression.broken(after, before), after[:, i] > before[:, i]
        if (broken == up).all():
            return "decrease"
        return "increase" if (broken == ~up).all() and not self.expression.broken(before, before).any() else "any"


@dataclass(frozen=True, eq=False)
class AtMost(Rule):
    """At most so many of some columns change."""

    text: str
    columns: tuple[int, ...]
    count: int
    span: Floats  # (features,) of the numbers; NaN for categories

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return np.asarray(self._changed(raw, own).sum(axis=1) > self.count)

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        return []

    def undone(self, raw: Floats, own: Floats) -> Flags:
        """The smallest changes: numbers by the share of their range, categories by a whole one."""
        changed = self._changed(raw, own)
        size = np.nan_to_num(np.abs(raw - own) / np.maximum(self.span, 1e-300), nan=1.0)
        order = np.argsort(np.where(changed, -size, np.inf), axis=1, kind="stable")
        place = np.argsort(order, axis=1)  # the largest change has place 0
        return np.asarray(changed & (place >= self.count))

    def _changed(self, raw: Floats, own: Floats) -> Flags:
        return ~same(raw, own) & np.isin(np.arange(raw.shape[1]), self.columns)


@dataclass(frozen=True)
class Together(Rule):
    """All of some columns change, or none."""

    text: str
    columns: tuple[int, ...]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        changed = ~same(raw[:, list(self.columns)], own[:, list(self.columns)])
        return np.asarray(changed.any(axis=1) & ~changed.all(axis=1))

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        return []


@dataclass(frozen=True)
class Steps(Rule):
    """A number on a grid."""

    text: str
    columns: tuple[int, ...]
    step: float

    def broken(self, raw: Floats, own: Floats) -> Flags:
        units = raw[:, self.columns[0]] / self.step
        return np.asarray(np.abs(units - np.rint(units)) > 1e-9 * np.maximum(1.0, np.abs(units)))

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        values = raw[:, self.columns[0]]
        return [(self.columns[0], np.rint(values / self.step) * self.step)]

    def narrowed(self, features: Sequence[Column]) -> tuple[Column, ...]:
        """Proposed on this grid from the start, unless it is coarser than the rule's."""
        out, (place,) = list(features), self.columns
        column = out[place]
        if isinstance(column, Numeric) and column.levels is None and (column.step is None or column.step < self.step):
            out[place] = replace(column, step=self.step)
        return tuple(out)


def _part(raw: Floats, own: Floats, columns: list[int], share: Floats) -> Floats:
    """The rows with a share (n,) of the change in these columns; missing is no number to come from or to go to."""
    out, mine = raw.copy(), own[:, columns]
    part = mine + share[:, None] * (raw[:, columns] - mine)
    out[:, columns] = np.where(np.isnan(part), raw[:, columns], part)
    return out


def _on_grid(raw: Floats, columns: list[int], back: Back) -> Floats:
    out = raw.copy()
    for column in columns:
        out[:, column] = back(column, raw[:, column])
    return out


def _steps(text: str, match: re.Match[str], features: Sequence[Column]) -> Rule:
    places = Parser(match[1], features).listed()
    try:
        step = float(match[2])
    except ValueError:
        step = 0.0
    if not 0 < step < np.inf or len(places) > 1 or features[places[0]].numbers == 0:
        raise InputError(f"rule {text!r} needs one column of numbers and a positive step: 'loan in steps of 500'")
    return Steps(text, places, step)
