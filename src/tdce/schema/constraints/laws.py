"""The kinds of laws that are found in tables, each a plain value in the table's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import permutations
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
import pandas as pd

from tdce._core import Flags, Floats, InputError, Name, Value, is_integer, is_value, listing, same, show
from tdce.schema.columns.base import Column

SAME = 1e-9  # of the largest number: two that differ by less differ by rounding
Back = Callable[[int, Floats], Floats]
"""Of a column and values (n,): the nearest that may be proposed on the way from these to the person's own."""
ENDING = {"missing": "is missing", "present": "is not missing"}


class Law(Protocol):
    """What holds between some columns. Every kind is a frozen dataclass.

    A law that all rows keep is hard: no answer may break it. One that nearly all keep is soft: breaking it costs.
    """

    kind: ClassVar[str]
    support: int  # rows of the table that could break it
    exceptions: int  # rows of the table that do
    on: bool  # False: it is known, and nobody heeds it

    @property
    def columns(self) -> tuple[Name, ...]: ...
    def __str__(self) -> str: ...  # a sentence
    def bound(
        self, features: Sequence[Column]
    ) -> Bound: ...  # to the columns of a raw matrix; what does not fit is named

    @property
    def hard(self) -> bool:
        return self.exceptions == 0

    def entry(self) -> dict[str, Any]:
        """Its entry in a schema's JSON."""
        return {"law": self.kind, **asdict(cast(Any, self))}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        known = {each.name: each.default is MISSING for each in fields(cast(Any, cls))}
        for key in settings:
            if key not in known:
                raise InputError(f"a law {cls.kind!r} has no setting {key!r}; known: {listing(known)}")
        for key, needed in known.items():
            if needed and key not in settings:
                raise InputError(f"a law {cls.kind!r} needs the setting {key!r}")
        return cls(**settings)

    def _check_counts(self) -> None:
        if not (is_integer(self.support) and is_integer(self.exceptions) and 0 <= self.exceptions <= self.support):
            raise InputError(f"law {self}: exceptions {show(self.exceptions)} of support {show(self.support)} must "
                             "be whole numbers, the first at most the second")  # fmt: skip
        if not isinstance(self.on, bool):
            raise InputError(f"law {self}: on is {show(self.on)}; it must be true or false")


class Bound(Protocol):
    """A law about the columns of a raw matrix, by their positions."""

    columns: tuple[int, ...]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n,) which rows (n, features) break it, of people whose own rows are these; with a missing number there is
        nothing to compare."""

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Of rows that break it, with the features that differ from the person's: ways to keep it, the best first. Each
        is one column and its values (n,), NaN in rows for which it is no way."""

    def eased(self, raw: Floats, own: Floats, back: Back) -> Iterator[Floats]:
        """Of rows that break it and that nothing mends: ways to keep it with changed numbers nearer to the person's
        own, each the whole rows. Every new value is one that `back` gives."""
        yield from ()

    def undone(self, raw: Floats, own: Floats) -> Flags:
        """(n, features) which changes are taken back in rows that break it and that nothing mends: at least one."""
        return ~same(raw, own) & np.isin(np.arange(raw.shape[1]), self.columns)


@dataclass(frozen=True)
class Order(Law):
    """One number is never above another."""

    kind = "order"
    low: Name
    high: Name
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        self._check_counts()

    def __str__(self) -> str:
        return f"{self.low} is at most {self.high}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.low, self.high

    def bound(self, features: Sequence[Column]) -> Bound:
        return _Order(cast(tuple[int, int], tuple(_number(features, name) for name in self.columns)))


@dataclass(frozen=True)
class _Order(Bound):
    columns: tuple[int, int]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        low, high = raw[:, self.columns].T
        return np.asarray(low > high)

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """The one that changed goes to the other."""
        first, second = self.columns
        low, high = raw[:, self.columns].T
        return [(first, np.where(changed[:, first], high, np.nan)), (second, np.where(changed[:, second], low, np.nan))]

    def eased(self, raw: Floats, own: Floats, back: Back) -> Iterator[Floats]:
        """Where the other is off the grid: as near to it as may be."""
        changed = ~same(raw, own)
        for mine, other in (self.columns, self.columns[::-1]):
            yield _with(raw, mine, np.where(changed[:, mine], back(mine, raw[:, other]), raw[:, mine]))


@dataclass(frozen=True)
class Linear(Law):
    """A number is a sum of others, each times a factor: totals, differences, fixed ratios, copies."""

    kind = "linear"
    total: Name
    parts: tuple[Name, ...]
    factors: tuple[float, ...]
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "factors", tuple(self.factors))
        if not self.parts or len(self.parts) != len(self.factors):
            raise InputError(f"the law about {self.total!r} needs one factor for each of its parts")
        if not all(
            isinstance(f, int | float) and not isinstance(f, bool) and np.isfinite(f) and f for f in self.factors
        ):
            raise InputError(f"the law about {self.total!r}: factors {show(self.factors)} must be numbers other than 0")
        self._check_counts()

    def __str__(self) -> str:
        if self.parts[1:] == () and self.factors == (1,):
            return f"{self.total} is the same as {self.parts[0]}"
        words = ""
        for part, factor in zip(self.parts, self.factors, strict=True):
            size = "" if abs(factor) == 1 else f"{abs(factor):.10g} x "
            words += (
                (" - " if words else "-") * (factor < 0) + (" + " if words else "") * (factor > 0) + f"{size}{part}"
            )
        return f"{self.total} = {words}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.total, *self.parts

    def bound(self, features: Sequence[Column]) -> Bound:
        return _Linear(
            tuple(_number(features, name) for name in self.columns), np.array(self.factors, dtype=np.float64)
        )


@dataclass(frozen=True)
class _Linear(Bound):
    columns: tuple[int, ...]
    factors: Floats

    def broken(self, raw: Floats, own: Floats) -> Flags:
        total, terms = raw[:, self.columns[0]], raw[:, self.columns[1:]] * self.factors
        largest = np.maximum(np.abs(total), np.abs(terms).max(axis=1))
        return np.asarray(np.abs(total - terms.sum(axis=1)) > SAME * largest)

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """A total that did not change follows its parts, otherwise one of the parts follows."""
        first, *parts = self.columns
        total, terms = raw[:, first], raw[:, parts] * self.factors
        gap = total - terms.sum(axis=1)
        follow = [(first, np.where(changed[:, first] & ~changed[:, parts].all(axis=1), np.nan, terms.sum(axis=1)))]
        for part, factor in sorted(zip(parts, self.factors.tolist(), strict=True), key=lambda each: -abs(each[1])):
            follow.append((part, np.where(changed[:, part], np.nan, raw[:, part] + gap / factor)))
        return [*follow, (first, np.where(changed[:, parts].any(axis=1), terms.sum(axis=1), np.nan))]

    def eased(self, raw: Floats, own: Floats, back: Back) -> Iterator[Floats]:
        """One number follows another that changed as far as it may, that one comes back to where it fits, and the first
        follows it there."""
        changed = ~same(raw, own)
        for changing, follower in permutations(self.columns, 2):
            way = raw
            for column in (follower, changing, follower):
                way = _with(way, column, back(column, self._needed(way, column)))
            yield np.where(changed[:, [changing]], way, raw)

    def _needed(self, raw: Floats, column: int) -> Floats:
        """(n,) what a number has to be, with all others as they are."""
        factors = np.array([-1.0, *self.factors])
        place = self.columns.index(column)
        terms = raw[:, self.columns] * factors
        return np.asarray(raw[:, column] - terms.sum(axis=1) / factors[place])


@dataclass(frozen=True)
class Determines(Law):
    """Where one column has a value, another has a certain one."""

    kind = "determines"
    column: Name
    other: Name
    values: tuple[tuple[Value | None, Value | None], ...]  # of the column, and of the other
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
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

    def bound(self, features: Sequence[Column]) -> Bound:
        at = _place(features, self.column), _place(features, self.other)
        values = zip(*self.values, strict=True) if self.values else ((), ())
        pairs = np.column_stack([_raw(features[i], some) for i, some in zip(at, values, strict=True)])
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]  # missing last
        return _Determines(at, pairs)


@dataclass(frozen=True)
class _Determines(Bound):
    columns: tuple[int, int]
    pairs: Floats  # (values, 2) by the first

    def broken(self, raw: Floats, own: Floats) -> Flags:
        there, known = self._other(raw[:, self.columns[0]])
        return np.asarray(known & ~same(there, raw[:, self.columns[1]]))

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """What did not change follows what did."""
        first, second = self.columns
        there = self._other(raw[:, first])[0]
        back = np.full(len(raw), np.nan)
        for a, b in self.pairs[::-1]:
            back[raw[:, second] == b] = a
        forth = (second, np.where(changed[:, second] & ~changed[:, first], np.nan, there))
        return [forth, (first, np.where(changed[:, first], np.nan, back)), (second, there)]

    def _other(self, values: Floats) -> tuple[Floats, Flags]:
        """(n,) what the other column has to be, and whether that is known."""
        keys = self.pairs[:, 0]
        place = np.searchsorted(keys, values).clip(max=len(keys) - 1) if len(keys) else np.zeros(len(values), dtype=int)
        if not len(keys):
            return np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
        known = (keys[place] == values) | (np.isnan(keys[place]) & np.isnan(values))
        return np.where(known, self.pairs[place, 1], np.nan), known


@dataclass(frozen=True)
class State:
    """Some values of a column, or all but these; None is missing."""

    column: Name
    values: tuple[Value | None, ...]
    but: bool = False  # all but these

    @classmethod
    def of(cls, settings: Any) -> State:
        if isinstance(settings, State):
            return settings
        if not isinstance(settings, Mapping) or set(settings) - {"but"} != {"column", "values"}:
            raise InputError(f"a law's state {show(settings)} needs a column and values, and may have but")
        values, but = settings["values"], settings.get("but", False)
        if not isinstance(values, list | tuple) or not all(v is None or is_value(v) for v in values) or not values:
            raise InputError(f"{settings['column']!r}: a law's values {show(values)} must be words, numbers or null")
        if not isinstance(but, bool):
            raise InputError(f"{settings['column']!r}: a law's but is {show(but)}; it must be true or false")
        return cls(settings["column"], tuple(values), but)

    def __str__(self) -> str:
        if self.values == (None,):
            return f"{self.column} {ENDING['present' if self.but else 'missing']}"
        words = ["missing" if v is None else str(v) for v in self.values]
        if self.but and len(words) > 1:
            several = f"neither {words[0]} nor {words[1]}" if len(words) == 2 else f"none of {', '.join(words)}"
            return f"{self.column} is {several}"
        several = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
        return f"{self.column} is {'not ' * self.but}{several}"


@dataclass(frozen=True)
class Given(Law):
    """If one column has some values, another has some values."""

    kind = "given"
    when: State
    then: State
    usual: Value | None = None  # what the other column mostly is then; None: unknown
    otherwise: Value | None = None  # what the first one mostly is where the other is something else
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", State.of(self.when))
        object.__setattr__(self, "then", State.of(self.then))
        self._check_counts()

    def __str__(self) -> str:
        return f"if {self.when}, then {self.then}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.when.column, self.then.column

    def bound(self, features: Sequence[Column]) -> Bound:
        first, second = at = tuple(_place(features, name) for name in self.columns)
        values = tuple(_raw(features[i], state.values) for i, state in zip(at, (self.when, self.then), strict=True))
        usual = (_raw(features[i], [value])[0] for i, value in zip(at, (self.otherwise, self.usual), strict=True))
        return _Given((first, second), cast(Any, values), (self.when.but, self.then.but), cast(Any, tuple(usual)))


@dataclass(frozen=True)
class _Given(Bound):
    columns: tuple[int, int]
    values: tuple[Floats, Floats]
    but: tuple[bool, bool]
    usual: tuple[float, float]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return self._is(raw, 0) & ~self._is(raw, 1)

    def mends(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """What did not change becomes what it usually is then; if both did, the second."""
        first, second = (
            (mine, np.where(changed[:, mine], np.nan, usual))
            for mine, usual in zip(self.columns, self.usual, strict=True)
        )
        return [second, first, (second[0], np.full(len(raw), self.usual[1]))]

    def _is(self, raw: Floats, which: int) -> Flags:
        values, listed = raw[:, self.columns[which]], self.values[which]
        among = np.isin(values, listed[~np.isnan(listed)])
        if np.isnan(listed).any():
            among |= np.isnan(values)
        return np.asarray(among != self.but[which])


KINDS: tuple[type[Law], ...] = (Order, Linear, Determines, Given)


def law_from_entry(entry: Any) -> Law:
    """A law from its entry in a schema's JSON."""
    if not isinstance(entry, Mapping):
        raise InputError(f"a law of the schema is {show(entry)}; it must be an object")
    settings = dict(entry)
    called = settings.pop("law", None)
    for kind in KINDS:
        if called == kind.kind:
            return kind.from_settings(settings)
    raise InputError(f"law {show(called)} must be one of {listing([kind.kind for kind in KINDS])}")


def _place(features: Sequence[Column], name: Name) -> int:
    names = [column.name for column in features]
    if name not in names:
        raise InputError(f"a law speaks of {name!r}, but there is no such feature; known: {listing(names)}")
    return names.index(name)


def _number(features: Sequence[Column], name: Name) -> int:
    place = _place(features, name)
    if features[place].numbers == 0:
        raise InputError(f"a law compares {name!r} as a number, but its kind is {features[place].kind}")
    return place


def _with(raw: Floats, column: int, values: Floats) -> Floats:
    out = raw.copy()
    out[:, column] = values
    return out


def _raw(column: Column, values: Sequence[Value | None]) -> Floats:
    """Values of a column as a raw matrix has them."""
    try:
        return column.read(pd.Series(list(values), dtype=object, name=cast(Any, column.name)))
    except InputError as error:
        raise InputError(f"a law does not fit the schema: {error}") from None
