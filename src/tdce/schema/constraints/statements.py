"""The parts of a parsed rule: terms, which have values, and statements, which are true, false or unknown per row."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tdce._core import Flags, Floats, Name, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical

ROUNDING = 1e-9
"""Results of arithmetic that differ by less, relative to the largest number involved, are equal: 0.1 + 0.2 == 0.3.
Cells and constants are compared exactly."""

Interval = tuple[Floats, Floats]  # lowest and highest, (features,) each


class Rows(NamedTuple):
    raw: Floats  # (n, features) the proposed values
    own: Floats  # (n, features) the current values


class Amount(NamedTuple):
    """Numbers, NaN where unknown, and the largest magnitude in their computation, 0 without arithmetic."""

    value: Floats
    size: Floats


class Term(ABC):
    """A number in each row, or one of a column's categories."""

    @abstractmethod
    def amount(self, rows: Rows) -> Amount:
        """The number in each row (n,), or () if it is the same in every row."""


@dataclass(frozen=True)
class Constant(Term):
    value: Value

    def amount(self, rows: Rows) -> Amount:
        return Amount(np.asarray(self.value, dtype=np.float64), np.zeros(()))


@dataclass(frozen=True)
class Cell(Term):
    """A column's value: the proposed one, or the current one."""

    column: Column
    at: int
    was: bool = False

    @property
    def categories(self) -> tuple[Value, ...]:
        """The column's categories; empty for numbers."""
        return self.column.categories if isinstance(self.column, Categorical) else ()

    @property
    def size(self) -> int:
        """The number of categories, with all rare ones counted as one."""
        return self.column.size if isinstance(self.column, Categorical) else 0

    @property
    def order(self) -> tuple[Value, ...]:
        return self.column.order if isinstance(self.column, Categorical) else ()

    def values(self, rows: Rows) -> Floats:
        return (rows.own if self.was else rows.raw)[:, self.at]

    def amount(self, rows: Rows) -> Amount:
        return Amount(self.values(rows), np.zeros(()))


@dataclass(frozen=True)
class Ranked(Term):
    """A column's category as its position in an order, or among another column's categories; -1 or NaN if none."""

    cell: Cell
    ranks: tuple[float, ...]

    def amount(self, rows: Rows) -> Amount:
        values = self.cell.values(rows)
        positions = np.where(values < len(self.ranks), values, len(self.ranks)).astype(int)  # last: missing, rare
        return Amount(np.append(np.asarray(self.ranks, dtype=np.float64), np.nan)[positions], np.zeros(()))


@dataclass(frozen=True)
class Applied(Term):
    """The negative or the absolute value of a term."""

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
        return reduce(lambda a, step: ARITHMETIC[step[0]](a, step[1].amount(rows)), self.rest, self.first.amount(rows))


def _add(a: Amount, b: Amount) -> Amount:
    value = a.value + b.value
    return Amount(value, _largest(a.size, b.size, abs(a.value), abs(b.value), abs(value)))


def _subtract(a: Amount, b: Amount) -> Amount:
    return _add(a, Amount(-b.value, b.size))


def _multiply(a: Amount, b: Amount) -> Amount:
    value = a.value * b.value
    return Amount(value, _largest(abs(value), abs(a.value) * b.size, a.size * abs(b.value)))


def _divide(a: Amount, b: Amount) -> Amount:
    """Divide; the result is unknown (NaN) if the divisor is 0 up to rounding."""
    value = a.value / np.where(abs(b.value) <= ROUNDING * b.size, np.nan, b.value)
    return Amount(value, _largest(abs(value), a.size / abs(b.value), abs(value) * b.size / abs(b.value)))


def _largest(*sizes: Floats) -> Floats:
    return reduce(np.maximum, sizes)


ARITHMETIC: dict[str, Callable[[Amount, Amount], Amount]] = {
    "+": _add, "-": _subtract, "*": _multiply, "/": _divide,
}  # fmt: skip


class Truth(NamedTuple):
    """Where a statement is true and where it is false; unknown where it is neither."""

    yes: Flags
    no: Flags


class Statement(ABC):
    """A statement that is true, false or unknown in each row. There is no "not": parts are negated instead."""

    @abstractmethod
    def truth(self, rows: Rows) -> Truth:
        """Where the statement is true and where it is false, (n,) each."""

    @abstractmethod
    def negate(self) -> Statement:
        """The statement that is true where this is false, and false where this is true."""

    def narrow(self, low: Floats, high: Floats) -> Interval:
        """Each feature's range as left by the statement if nothing is missing."""
        return low, high

    def allowed(self, column: Name) -> set[Value] | None:
        """The categories allowed for a column; None: all."""
        return None


class Operator(NamedTuple):
    holds: Callable[[Any, Any], Any]
    negated: str
    flipped: str  # with the sides exchanged


OPERATORS = {
    "<": Operator(operator.lt, ">=", ">"),
    "<=": Operator(operator.le, ">", ">="),
    ">": Operator(operator.gt, "<=", "<"),
    ">=": Operator(operator.ge, "<", "<="),
    "==": Operator(operator.eq, "!=", "=="),
    "!=": Operator(operator.ne, "==", "!="),
}


@dataclass(frozen=True)
class Comparison(Statement):
    """A comparison of two numbers, or of the positions of two categories."""

    left: Term
    operator: str
    right: Term

    def truth(self, rows: Rows) -> Truth:
        left, right = self.left.amount(rows), self.right.amount(rows)
        size, gap = np.maximum(left.size, right.size), left.value - right.value
        known = np.isfinite(left.value) & np.isfinite(right.value) & np.isfinite(size)
        holds = OPERATORS[self.operator].holds(np.where(abs(gap) <= ROUNDING * size, 0, gap), 0)
        return Truth(known & holds, known & ~holds)

    def negate(self) -> Statement:
        return replace(self, operator=OPERATORS[self.operator].negated)

    def narrow(self, low: Floats, high: Floats) -> Interval:
        """For columns and constants: the smaller side is at most the other's highest value, and vice versa."""
        pairs = {"<": [(self.left, self.right)], ">": [(self.right, self.left)]}
        pairs["="] = pairs["<"] + pairs[">"]
        low, high = low.copy(), high.copy()
        for less, more in pairs.get(self.operator[0], []):
            if (bottom := _end(less, low)) is not None and (top := _end(more, high)) is not None:
                if self.operator in ("<", ">"):
                    bottom, top = _next_after(bottom, np.inf), _next_after(top, -np.inf)
                if isinstance(less, Cell):
                    high[less.at] = min(high[less.at], top)
                if isinstance(more, Cell):
                    low[more.at] = max(low[more.at], bottom)
        return low, high


@dataclass(frozen=True)
class OneOf(Statement):
    """A category is one of those at these positions."""

    cell: Cell
    positions: tuple[int, ...]

    def truth(self, rows: Rows) -> Truth:
        values = np.minimum(self.cell.values(rows), self.cell.size - 1)
        yes = np.isin(values, self.positions)
        return Truth(yes, ~yes & ~np.isnan(values))

    def negate(self) -> Statement:
        return replace(self, positions=tuple(i for i in range(self.cell.size) if i not in self.positions))

    def allowed(self, column: Name) -> set[Value] | None:
        if self.cell.was or self.cell.column.name != column:
            return None
        return {self.cell.categories[i] for i in self.positions if i < len(self.cell.categories)}


@dataclass(frozen=True)
class Missing(Statement):
    """A value is missing, or is present; never unknown."""

    cell: Cell
    wanted: bool = True

    def truth(self, rows: Rows) -> Truth:
        yes = np.isnan(self.cell.values(rows)) == self.wanted
        return Truth(yes, ~yes)

    def negate(self) -> Statement:
        return replace(self, wanted=not self.wanted)


@dataclass(frozen=True)
class AllOf(Statement):
    parts: tuple[Statement, ...]

    def truth(self, rows: Rows) -> Truth:
        truths = [part.truth(rows) for part in self.parts]
        return Truth(reduce(operator.and_, (t.yes for t in truths)), reduce(operator.or_, (t.no for t in truths)))

    def negate(self) -> Statement:
        return AnyOf(tuple(part.negate() for part in self.parts))

    def narrow(self, low: Floats, high: Floats) -> Interval:
        for part in (
            *self.parts,
            *reversed(self.parts),
        ):  # and back, so that both ends of a < b < c affect the others
            low, high = part.narrow(low, high)
        return low, high

    def allowed(self, column: Name) -> set[Value] | None:
        sets = [allowed for part in self.parts if (allowed := part.allowed(column)) is not None]
        return set.intersection(*sets) if sets else None


@dataclass(frozen=True)
class AnyOf(Statement):
    parts: tuple[Statement, ...]

    def truth(self, rows: Rows) -> Truth:
        truths = [part.truth(rows) for part in self.parts]
        return Truth(reduce(operator.or_, (t.yes for t in truths)), reduce(operator.and_, (t.no for t in truths)))

    def negate(self) -> Statement:
        return AllOf(tuple(part.negate() for part in self.parts))

    def narrow(self, low: Floats, high: Floats) -> Interval:
        """From the lowest to the highest value that any part leaves; parts that leave none cannot be true."""
        each = [part.narrow(low, high) for part in self.parts]
        lows, highs = zip(*([ends for ends in each if (ends[0] <= ends[1]).all()] or each[:1]), strict=True)
        return reduce(np.minimum, lows), reduce(np.maximum, highs)

    def allowed(self, column: Name) -> set[Value] | None:
        union: set[Value] = set()
        for part in self.parts:
            if (allowed := part.allowed(column)) is None:
                return None
            union |= allowed
        return union


def _end(term: Term, ends: Floats) -> float | None:
    """One end of a constant's or a column's range; None for other terms."""
    if isinstance(term, Constant):
        return float(term.value)
    return float(ends[term.at]) if isinstance(term, Cell) and not term.was else None


def _next_after(end: float, towards: float) -> float:
    return float(np.nextafter(end, towards)) if np.isfinite(end) else end
