"""What a rule is made of: terms, which have values, and statements, which are true, false or unknown for each row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tdce._core import Flags, Floats, Name, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical

ROUNDING = 1e-9
"""Results of arithmetic this near to each other, as a share of the largest number in it, are equal: 0.1 + 0.2 == 0.3.
Cells and constants alone are compared exactly."""

Interval = tuple[Floats, Floats]  # lowest and highest, (features,) each


class Rows(NamedTuple):
    raw: Floats  # (n, features) what is proposed
    own: Floats  # (n, features) what the people have now


class Amount(NamedTuple):
    """Numbers, NaN where unknown, and the largest magnitude that arithmetic met on the way: 0 if there was none."""

    value: Floats
    size: Floats


@runtime_checkable
class Term(Protocol):
    """A number in each row, or one of a column's categories."""

    def amount(self, rows: Rows) -> Amount: ...  # (n,), or () if it is the same in every row


@dataclass(frozen=True)
class Constant(Term):
    of: Value

    def amount(self, rows: Rows) -> Amount:
        return Amount(np.asarray(self.of, dtype=np.float64), np.zeros(()))


@dataclass(frozen=True)
class Cell(Term):
    """A column's value: what is proposed, or what was before."""

    column: Column
    at: int
    was: bool = False

    @property
    def categories(self) -> tuple[Value, ...]:
        """None at all if it holds numbers."""
        return self.column.categories if isinstance(self.column, Categorical) else ()

    @property
    def order(self) -> tuple[Value, ...]:
        return self.column.order if isinstance(self.column, Categorical) else ()

    def values(self, rows: Rows) -> Floats:
        return (rows.own if self.was else rows.raw)[:, self.at]

    def amount(self, rows: Rows) -> Amount:
        return Amount(self.values(rows), np.zeros(()))


@dataclass(frozen=True)
class Ranked(Term):
    """A column's category as its position in an order, or among those of another column; -1, NaN: none of them."""

    cell: Cell
    ranks: tuple[float, ...]

    def amount(self, rows: Rows) -> Amount:
        values = self.cell.values(rows)
        positions = np.where(np.isnan(values), len(self.ranks), values).astype(int)
        return Amount(np.append(np.asarray(self.ranks, dtype=np.float64), np.nan)[positions], np.zeros(()))


@dataclass(frozen=True)
class Applied(Term):
    """Minus a term, or its absolute value."""

    function: np.ufunc
    term: Term

    def amount(self, rows: Rows) -> Amount:
        amount = self.term.amount(rows)
        return Amount(self.function(amount.value), amount.size)


@dataclass(frozen=True)
class Arithmetic(Term):
    """Terms added and subtracted, or multiplied and divided, from left to right."""

    first: Term
    rest: tuple[tuple[str, Term], ...]

    def amount(self, rows: Rows) -> Amount:
        return reduce(lambda a, step: STEPS[step[0]](a, step[1].amount(rows)), self.rest, self.first.amount(rows))


def _plus(a: Amount, b: Amount) -> Amount:
    value = a.value + b.value
    return Amount(value, _largest(a.size, b.size, abs(a.value), abs(b.value), abs(value)))


def _minus(a: Amount, b: Amount) -> Amount:
    return _plus(a, Amount(-b.value, b.size))


def _times(a: Amount, b: Amount) -> Amount:
    value = a.value * b.value
    return Amount(value, _largest(abs(value), abs(a.value) * b.size, a.size * abs(b.value)))


def _over(a: Amount, b: Amount) -> Amount:
    """What is zero but for rounding divides nothing: the result is unknown."""
    value = a.value / np.where(abs(b.value) <= ROUNDING * b.size, np.nan, b.value)
    return Amount(value, _largest(abs(value), a.size / abs(b.value), abs(value) * b.size / abs(b.value)))


def _largest(*sizes: Floats) -> Floats:
    return reduce(np.maximum, sizes)


STEPS: dict[str, Callable[[Amount, Amount], Amount]] = {"+": _plus, "-": _minus, "*": _times, "/": _over}


class Truth(NamedTuple):
    yes: Flags
    no: Flags  # neither: unknown


@runtime_checkable
class Statement(Protocol):
    """True, false or unknown in each row. There is no statement "not": its parts are negated instead."""

    def truth(self, rows: Rows) -> Truth: ...
    def negated(self) -> Statement: ...

    def narrowed(self, low: Floats, high: Floats) -> Interval:
        """What it leaves of a range of each feature if nothing is missing."""
        return low, high

    def allowed(self, column: Name) -> set[Value] | None:
        """The categories that it leaves a column; None: all of them."""
        return None


class Order(NamedTuple):
    holds: Callable[[Any, Any], Any]
    negated: str
    flipped: str  # as it reads from right to left


ORDERS = {
    "<": Order(operator.lt, ">=", ">"),
    "<=": Order(operator.le, ">", ">="),
    ">": Order(operator.gt, "<=", "<"),
    ">=": Order(operator.ge, "<", "<="),
    "==": Order(operator.eq, "!=", "=="),
    "!=": Order(operator.ne, "==", "!="),
}


@dataclass(frozen=True)
class Comparison(Statement):
    """Two numbers, or the positions of two categories."""

    left: Term
    order: str
    right: Term

    def truth(self, rows: Rows) -> Truth:
        left, right = self.left.amount(rows), self.right.amount(rows)
        size, gap = np.maximum(left.size, right.size), left.value - right.value
        known = np.isfinite(left.value) & np.isfinite(right.value) & np.isfinite(size)
        holds = ORDERS[self.order].holds(np.where(abs(gap) <= ROUNDING * size, 0, gap), 0)
        return Truth(known & holds, known & ~holds)

    def negated(self) -> Statement:
        return replace(self, order=ORDERS[self.order].negated)

    def narrowed(self, low: Floats, high: Floats) -> Interval:
        """Of columns and constants alone: the lower one is at most the other's highest, and the other way round."""
        pairs = {"<": [(self.left, self.right)], ">": [(self.right, self.left)]}
        pairs["="] = pairs["<"] + pairs[">"]
        low, high = low.copy(), high.copy()
        for less, more in pairs.get(self.order[0], []):
            if (bottom := _end(less, low)) is not None and (top := _end(more, high)) is not None:
                if self.order in ("<", ">"):
                    bottom, top = _beyond(bottom, np.inf), _beyond(top, -np.inf)
                if isinstance(less, Cell):
                    high[less.at] = min(high[less.at], top)
                if isinstance(more, Cell):
                    low[more.at] = max(low[more.at], bottom)
        return low, high


@dataclass(frozen=True)
class OneOf(Statement):
    """A category is one of those at these positions."""

    cell: Cell
    chosen: tuple[int, ...]

    def truth(self, rows: Rows) -> Truth:
        values = self.cell.values(rows)
        yes = np.isin(values, self.chosen)
        return Truth(yes, ~yes & ~np.isnan(values))

    def negated(self) -> Statement:
        return replace(self, chosen=tuple(i for i in range(len(self.cell.categories)) if i not in self.chosen))

    def allowed(self, column: Name) -> set[Value] | None:
        if self.cell.was or self.cell.column.name != column:
            return None
        return {self.cell.categories[i] for i in self.chosen}


@dataclass(frozen=True)
class Missing(Statement):
    """A value is missing, or is not; always known."""

    cell: Cell
    wanted: bool = True

    def truth(self, rows: Rows) -> Truth:
        yes = np.isnan(self.cell.values(rows)) == self.wanted
        return Truth(yes, ~yes)

    def negated(self) -> Statement:
        return replace(self, wanted=not self.wanted)


@dataclass(frozen=True)
class AllOf(Statement):
    parts: tuple[Statement, ...]

    def truth(self, rows: Rows) -> Truth:
        truths = [part.truth(rows) for part in self.parts]
        return Truth(reduce(operator.and_, (t.yes for t in truths)), reduce(operator.or_, (t.no for t in truths)))

    def negated(self) -> Statement:
        return AnyOf(tuple(part.negated() for part in self.parts))

    def narrowed(self, low: Floats, high: Floats) -> Interval:
        for part in (*self.parts, *reversed(self.parts)):  # there and back: both ends of a < b < c reach the others
            low, high = part.narrowed(low, high)
        return low, high

    def allowed(self, column: Name) -> set[Value] | None:
        sets = [found for part in self.parts if (found := part.allowed(column)) is not None]
        return set.intersection(*sets) if sets else None


@dataclass(frozen=True)
class AnyOf(Statement):
    parts: tuple[Statement, ...]

    def truth(self, rows: Rows) -> Truth:
        truths = [part.truth(rows) for part in self.parts]
        return Truth(reduce(operator.or_, (t.yes for t in truths)), reduce(operator.and_, (t.no for t in truths)))

    def negated(self) -> Statement:
        return AllOf(tuple(part.negated() for part in self.parts))

    def narrowed(self, low: Floats, high: Floats) -> Interval:
        """From the lowest to the highest that any part leaves; parts that leave nothing cannot be the true one."""
        each = [part.narrowed(low, high) for part in self.parts]
        lows, highs = zip(*([ends for ends in each if (ends[0] <= ends[1]).all()] or each[:1]), strict=True)
        return reduce(np.minimum, lows), reduce(np.maximum, highs)

    def allowed(self, column: Name) -> set[Value] | None:
        union: set[Value] = set()
        for part in self.parts:
            if (found := part.allowed(column)) is None:
                return None
            union |= found
        return union


def _end(term: Term, ends: Floats) -> float | None:
    """One end of what a constant or a column may be; None: it is another term."""
    if isinstance(term, Constant):
        return float(term.of)
    return float(ends[term.at]) if isinstance(term, Cell) and not term.was else None


def _beyond(end: float, towards: float) -> float:
    return float(np.nextafter(end, towards)) if np.isfinite(end) else end
