"""The law that one number is never above another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tdce._core import Flags, Floats, InputError, Name, is_number, same, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import Constraint, Law, TowardsOwn, number_position, with_column


@dataclass(frozen=True)
class Order(Law):
    """One number is never above another."""

    kind = "order"
    low: Name
    high: Name
    slack: float = 0.0  # how far rounding may put it above
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        self._check_names()
        if not is_number(self.slack) or not 0 <= self.slack < np.inf:
            raise InputError(f"the law about {show(self.low)}: slack {show(self.slack)} must be a number, at least 0")
        self._check_counts()

    def __str__(self) -> str:
        return f"{self.low} is at most {self.high}" + (f" (to within {self.slack:.10g})" if self.slack else "")

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.low, self.high

    def bind(self, features: Sequence[Column]) -> Constraint:
        low, high = (number_position(features, name) for name in self.columns)
        return _BoundOrder((low, high), float(self.slack))


@dataclass(frozen=True)
class _BoundOrder(Constraint):
    columns: tuple[int, int]
    slack: float = 0.0

    def broken(self, raw: Floats, own: Floats) -> Flags:
        low, high = raw[:, self.columns].T
        return np.asarray(low - high > self.slack) if self.slack else np.asarray(low > high)

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Set the changed number to the other."""
        first, second = self.columns
        low, high = raw[:, self.columns].T
        return [(first, np.where(changed[:, first], high, np.nan)), (second, np.where(changed[:, second], low, np.nan))]

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Where the other is off the grid, move as near to it as possible."""
        changed = ~same(raw, own)
        for column, other in (self.columns, self.columns[::-1]):
            nearest = towards_own(column, raw[:, other])
            yield with_column(raw, column, np.where(changed[:, column], nearest, raw[:, column]))
