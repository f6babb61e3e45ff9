"""The law that a number stays within a range where a categorical column has a certain value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tdce._core import LARGEST_VALUE, Flags, Floats, InputError, Name, is_number, same, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import (
    Constraint,
    Law,
    TowardsOwn,
    feature_position,
    number_position,
    raw_values,
    with_column,
)
from tdce.schema.constraints.states import State


@dataclass(frozen=True)
class Within(Law):
    """If one column has certain values, a number has a lower or an upper bound."""

    kind = "within"
    when: State
    column: Name
    low: float | None = None
    high: float | None = None
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", State.of(self.when))
        self._check_names()
        for key in ("low", "high"):
            bound = getattr(self, key)
            if bound is not None and (not is_number(bound) or not abs(bound) <= LARGEST_VALUE):
                raise InputError(f"the law about {show(self.column)}: {key} {show(bound)} must be a number or null")
        if self.low is None and self.high is None:
            raise InputError(f"the law about {show(self.column)} needs low or high")
        self._check_counts()

    def __str__(self) -> str:
        ends = (("at least", self.low), ("at most", self.high))
        bounds = [f"{word} {end:.10g}" for word, end in ends if end is not None]
        return f"if {self.when}, then {self.column} is {' and '.join(bounds)}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.when.column, self.column

    def bind(self, features: Sequence[Column]) -> Constraint:
        when, number = feature_position(features, self.when.column), number_position(features, self.column)
        values = raw_values(features[when], self.when.values)
        low, high = -np.inf if self.low is None else self.low, np.inf if self.high is None else self.high
        return _BoundWithin((when, number), values, self.when.but, low, high, features[number].marks)


@dataclass(frozen=True)
class _BoundWithin(Constraint):
    columns: tuple[int, int]
    values: Floats
    but: bool
    low: float
    high: float
    marks: tuple[float, ...]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        state, number = raw[:, self.columns[0]], raw[:, self.columns[1]]
        inside = (np.isin(state, self.values) | (np.isnan(state) & np.isnan(self.values).any())) != self.but
        return np.asarray(inside & ((number < self.low) | (number > self.high)) & ~np.isin(number, self.marks))

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Move the number to the nearer end."""
        return [(self.columns[1], np.clip(raw[:, self.columns[1]], self.low, self.high))]

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Where the end is off the grid, move as near to it as possible."""
        number = self.columns[1]
        nearest = towards_own(number, np.clip(raw[:, number], self.low, self.high))
        yield with_column(raw, number, np.where(same(raw, own)[:, number], raw[:, number], nearest))
