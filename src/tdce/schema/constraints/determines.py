"""The law that the value of one column determines that of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tdce._core import Flags, Floats, InputError, Name, Value, same
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import FollowerConstraint, Law, feature_position, raw_values


@dataclass(frozen=True)
class Determines(Law):
    """The value of one column determines that of another."""

    kind = "determines"
    column: Name
    other: Name
    values: tuple[tuple[Value | None, Value | None], ...]  # pairs: of the column, of the other
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        self._check_names()
        if not isinstance(self.values, list | tuple) or not all(
            isinstance(pair, list | tuple) and len(pair) == 2 for pair in self.values
        ):
            raise InputError(f"the law that {self.column!r} determines {self.other!r} needs a list of pairs of values")
        object.__setattr__(self, "values", tuple(tuple(pair) for pair in self.values))
        self._check_counts()

    def __str__(self) -> str:
        return f"{self.column} determines {self.other}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.column, self.other

    @property
    def follower(self) -> Name:
        return self.other

    def turned(self, name: Name) -> Self:
        others = [other for _, other in self.values]
        if len(set(others)) < len(others):
            raise InputError(f"{self}, but several of its values go with the same one of {self.other}: {name!r} cannot "
                             "follow")  # fmt: skip
        return replace(self, column=self.other, other=name, values=tuple(pair[::-1] for pair in self.values))

    def bind(self, features: Sequence[Column]) -> FollowerConstraint:
        at = feature_position(features, self.column), feature_position(features, self.other)
        values = zip(*self.values, strict=True) if self.values else ((), ())
        pairs = np.column_stack([raw_values(features[i], cells) for i, cells in zip(at, values, strict=True)])
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]  # missing last
        return _BoundDetermines(at, pairs)


@dataclass(frozen=True)
class _BoundDetermines(FollowerConstraint):
    columns: tuple[int, int]
    pairs: Floats  # (values, 2) sorted by the first

    @property
    def follower(self) -> int:
        return self.columns[1]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        needed, known = self._needed(raw[:, self.columns[0]])
        return np.asarray(known & ~same(needed, raw[:, self.columns[1]]))

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Adapt the column that did not change to the one that did."""
        first, second = self.columns
        needed = self._needed(raw[:, first])[0]
        determining = np.full(len(raw), np.nan)
        for a, b in self.pairs[::-1]:
            determining[raw[:, second] == b] = a
        second_follows = (second, np.where(changed[:, second] & ~changed[:, first], np.nan, needed))
        return [second_follows, (first, np.where(changed[:, first], np.nan, determining)), (second, needed)]

    def expected(self, raw: Floats, own: Floats) -> Floats:
        first, second = self.columns
        needed, known = self._needed(raw[:, first])
        return np.where(same(raw[:, first], own[:, first]) | ~known, own[:, second], needed)

    def _needed(self, values: Floats) -> tuple[Floats, Flags]:
        """(n,) the value that the other column must have, and (n,) whether it is known."""
        keys = self.pairs[:, 0]
        if not len(keys):
            return np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
        position = np.searchsorted(keys, values).clip(max=len(keys) - 1)
        known = (keys[position] == values) | (np.isnan(keys[position]) & np.isnan(values))
        return np.where(known, self.pairs[position, 1], np.nan), known
