"""The columns of a table and the states they can be in, prepared for the discovery of laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tdce._core import Flags, Floats, Name, Positions, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.grid import is_far_apart
from tdce.schema.constraints.states import State

MAX_LEVELS_COMPARED = 40  # with at most this many values, numbers are compared value by value
SPIKE_SHARE = 0.05  # share of the rows: a value at an end of a range with this many is a state,
SPIKE_RATIO = 5  # or one with this many times the rows of the median value
MIN_SPIKE_SHARE = 0.001  # and at least this share of the rows
MIN_GAP_ROWS = 5  # missing cells, for a column's gaps to be tied to another's value
MAX_STATES = 1_000  # compared, the most frequent ones, to limit the time for wide tables


@dataclass(frozen=True)
class Table:
    """The columns of a table, prepared for the discovery of laws."""

    features: Sequence[Column]
    raw: Floats  # (rows, features)

    @cached_property
    def numbers(self) -> list[int]:
        """The numeric columns that are not constant."""
        return [
            i
            for i, c in enumerate(self.features)
            if c.numbers and np.nanmin(self.raw[:, i]) < np.nanmax(self.raw[:, i])
        ]

    @cached_property
    def numeric(self) -> Floats:
        """(rows, features) the raw values with marks as missing, so that numbers can be compared."""
        marked = [(i, column.marks) for i, column in enumerate(self.features) if column.marks]
        out = self.raw.copy() if marked else self.raw
        for i, marks in marked:
            out[np.isin(out[:, i], marks), i] = np.nan
        return out

    def some(self, count: int) -> Floats:
        """(up to `count`, features) rows spread evenly over the table, marks as missing."""
        return self.numeric[:: max(1, -(-len(self.numeric) // count))]

    def position(self, name: Name) -> int:
        return next(i for i, column in enumerate(self.features) if column.name == name)

    @cached_property
    def codes(self) -> list[tuple[Positions, Floats]]:
        """For each column: the code of every cell's value, and the values by code, missing last."""
        return [tuple(np.unique(each, return_inverse=True)[::-1]) for each in self.raw.T]  # type: ignore[misc]

    def cells(self, column: int, values: Floats) -> tuple[Value | None, ...]:
        return tuple(self.features[column].cells(values))

    @cached_property
    def states(self) -> list[Condition]:
        """The states of all columns: each category, each value of a number with few, marks among many numbers, any
        number other than a mark, missing. A column can be in two states at once."""
        states = [state for i in range(len(self.features)) for state in self._states(i)]
        frequent = sorted(range(len(states)), key=lambda i: -states[i].rows.sum())[:MAX_STATES]
        return [states[i] for i in sorted(frequent)]

    def _states(self, column: int) -> Iterator[Condition]:
        code, values = self.codes[column]
        counts, missing = np.bincount(code, minlength=len(values)), np.isnan(values)
        if not self.features[column].numbers:
            for i in np.flatnonzero(counts):
                yield Condition(column, values[[i]], code == i)
            return
        marks = np.union1d(_marks(values[~missing], counts[~missing]), self._gap_values(column)).astype(np.int64)
        for i in np.flatnonzero(~missing):
            if i in marks or len(values) <= MAX_LEVELS_COMPARED:
                yield Condition(column, values[[i]], code == i, level=i not in marks)
        for i in np.flatnonzero(missing):
            yield Condition(column, values[[i]], code == i)
        if len(marks):
            but = np.concatenate([values[marks], values[missing]])
            yield Condition(column, but, ~np.isin(code, [*marks, *np.flatnonzero(missing)]), but=True)

    def _gap_values(self, column: int) -> Positions:
        """Which of a number's values are the only one where some other column is missing (months is 0 where nothing was
        paid yet)."""
        code, values = self.codes[column]
        found = []
        for rows in self._gaps:
            here = code[rows]
            if (here == here[0]).all() and not np.isnan(values[here[0]]):
                found.append(int(here[0]))
        return np.unique(np.array(found, dtype=np.int64))

    @cached_property
    def _gaps(self) -> list[Positions]:
        """The rows where a column is missing, for columns with enough such rows, but not with most rows."""
        gaps = (np.flatnonzero(np.isnan(cells)) for cells in self.raw.T)
        return [rows for rows in gaps if MIN_GAP_ROWS <= len(rows) <= len(self.raw) / 2]


@dataclass(frozen=True, eq=False)
class Condition:
    """A state of a column, and the rows in that state."""

    column: int
    values: Floats
    rows: Flags
    but: bool = False  # all but these values
    level: bool = False  # one of several ordinary numbers

    def state(self, table: Table) -> State:
        return State(table.features[self.column].name, table.cells(self.column, self.values), self.but)


def _marks(values: Floats, counts: Positions) -> Positions:
    """Which of a number's sorted values are marks: a frequent one at an end of the range (0, or a cap), or a few far
    beyond all others (-1, 98, 999)."""
    marks = np.zeros(len(values), dtype=bool)
    if len(values) < 3:
        return np.flatnonzero(marks)
    frequent = counts >= max(MIN_SPIKE_SHARE * counts.sum(), SPIKE_RATIO * float(np.median(counts)))
    spike = counts[[0, -1]] >= SPIKE_SHARE * counts.sum()
    marks[[0, -1]] = frequent[[0, -1]] & (spike | (len(values) > MAX_LEVELS_COMPARED))
    return np.flatnonzero(marks | is_far_apart(values, counts))
