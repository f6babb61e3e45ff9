"""The kinds of laws that are discovered in tables, each a plain value with the table's own names and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields
from itertools import permutations
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd

from tdce._core import (
    LARGEST_VALUE,
    Flags,
    Floats,
    InputError,
    Name,
    Value,
    is_integer,
    is_value,
    listing,
    same,
    show,
    suggest,
)
from tdce.schema.columns.base import Column

ROUNDING = 1e-9  # relative to the largest number: a smaller difference is due to rounding
TowardsOwn = Callable[[int, Floats], Floats]
"""Of a column and values (n,): the first value that may be proposed on the way from these to the row's own."""


class Law(ABC):
    """What holds between some columns. Every kind is a frozen dataclass.

    A law without exceptions in the table is hard: no answer may break it. A law with a few is soft: breaking it costs.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    support: int  # rows of the table that could break it
    exceptions: int  # rows of the table that do
    on: bool  # False: it is ignored

    @property
    @abstractmethod
    def columns(self) -> tuple[Name, ...]:
        """The columns it is about."""

    @abstractmethod
    def __str__(self) -> str:
        """The law as a sentence."""

    @abstractmethod
    def bind(self, features: Sequence[Column]) -> Constraint:
        """The law about the columns of a raw matrix; an error if it does not fit them."""

    @property
    def hard(self) -> bool:
        return self.exceptions == 0

    def entry(self) -> dict[str, Any]:
        """Its entry in a schema's JSON."""
        return {"law": self.kind, **asdict(self)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        known = {each.name: each.default is MISSING for each in fields(cls)}
        for key in settings:
            if key not in known:
                hint = suggest(key, known)
                known_names = f"{hint}known: {listing(known)}"
                raise InputError(f"a law of kind {cls.kind!r} has no setting {show(key)}; {known_names}")
        for key, needed in known.items():
            if needed and key not in settings:
                raise InputError(f"a law of kind {cls.kind!r} needs the setting {show(key)}")
        return cls(**settings)

    def _check(self) -> None:
        """Check the names and the counts; a law from a schema that somebody edited may have any."""
        for name in self.columns:
            if not isinstance(name, str | int) or isinstance(name, bool):
                raise InputError(f"a law of kind {self.kind!r} names {show(name)}, which is not the name of a feature")
        if not (is_integer(self.support) and is_integer(self.exceptions) and 0 <= self.exceptions <= self.support):
            raise InputError(f"law {self}: exceptions {show(self.exceptions)} of support {show(self.support)} must "
                             "be whole numbers, the first at most the second")  # fmt: skip
        if not isinstance(self.on, bool):
            raise InputError(f"law {self}: on is {show(self.on)}; it must be true or false")


class Constraint(ABC):
    """A law or a rule about the columns of a raw matrix, by their positions."""

    columns: tuple[int, ...]

    @abstractmethod
    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n,) which proposed rows (n, features) break it, given the rows' own values; a missing number breaks
        nothing."""

    @abstractmethod
    def fixes(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Ways to fix rows that break it, the best first, given which features differ from the rows' own. Each is one
        column and its values (n,), NaN in rows that it does not fix."""

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Ways to keep it for rows that no fix helps, with changed numbers nearer to the rows' own; each is whole rows
        (n, features). Every new value comes from `towards_own`."""
        yield from ()

    def reverted(self, raw: Floats, own: Floats) -> Flags:
        """(n, features) which changes to revert in rows that break it and that nothing else helps: at least one."""
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
        self._check()

    def __str__(self) -> str:
        return f"{self.low} is at most {self.high}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.low, self.high

    def bind(self, features: Sequence[Column]) -> Constraint:
        return _BoundOrder(cast(tuple[int, int], tuple(_numeric_position(features, name) for name in self.columns)))


@dataclass(frozen=True)
class _BoundOrder(Constraint):
    columns: tuple[int, int]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        low, high = raw[:, self.columns].T
        return np.asarray(low > high)

    def fixes(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """The changed number is set to the other."""
        first, second = self.columns
        low, high = raw[:, self.columns].T
        return [(first, np.where(changed[:, first], high, np.nan)), (second, np.where(changed[:, second], low, np.nan))]

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Where the other is off the grid: as near to it as possible."""
        changed = ~same(raw, own)
        for column, other in (self.columns, self.columns[::-1]):
            nearest = towards_own(column, raw[:, other])
            yield _with(raw, column, np.where(changed[:, column], nearest, raw[:, column]))


@dataclass(frozen=True)
class Linear(Law):
    """A number is a sum of others, each times a factor: a total, a difference, a fixed ratio, a copy."""

    kind = "linear"
    total: Name
    parts: tuple[Name, ...]
    factors: tuple[float, ...]
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        for key in ("parts", "factors"):
            if not isinstance(given := getattr(self, key), list | tuple):
                raise InputError(f"the law about {show(self.total)}: {key} {show(given)} must be a list")
            object.__setattr__(self, key, tuple(given))
        if not self.parts or len(self.parts) != len(self.factors):
            raise InputError(f"the law about {show(self.total)} needs one factor for each of its parts")
        if not all(is_integer(f) or isinstance(f, float) for f in self.factors) or not all(
            1 / LARGEST_VALUE <= abs(f) <= LARGEST_VALUE for f in self.factors
        ):
            raise InputError(f"the law about {show(self.total)}: factors {show(self.factors)} must be numbers other "
                             f"than 0, not beyond {LARGEST_VALUE:g}, nor as near to 0")  # fmt: skip
        self._check()

    def __str__(self) -> str:
        if self.parts[1:] == () and self.factors == (1,):
            return f"{self.total} is the same as {self.parts[0]}"
        text = ""
        for part, factor in zip(self.parts, self.factors, strict=True):
            minus, plus = (" - ", " + ") if text else ("-", "")
            size = "" if abs(factor) == 1 else f"{abs(factor):.10g} x "
            text += f"{minus if factor < 0 else plus}{size}{part}"
        return f"{self.total} = {text}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.total, *self.parts

    def bind(self, features: Sequence[Column]) -> Constraint:
        return _BoundLinear(
            tuple(_numeric_position(features, name) for name in self.columns), np.array(self.factors, dtype=np.float64)
        )


@dataclass(frozen=True)
class _BoundLinear(Constraint):
    columns: tuple[int, ...]
    factors: Floats

    def broken(self, raw: Floats, own: Floats) -> Flags:
        total, terms = raw[:, self.columns[0]], raw[:, self.columns[1:]] * self.factors
        largest = np.maximum(np.abs(total), np.abs(terms).max(axis=1))
        return np.asarray(np.abs(total - terms.sum(axis=1)) > ROUNDING * largest)

    def fixes(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """A total that did not change follows its parts; otherwise one of the parts follows."""
        first, *parts = self.columns
        total, terms = raw[:, first], raw[:, parts] * self.factors
        gap = total - terms.sum(axis=1)
        fixes = [(first, np.where(changed[:, first] & ~changed[:, parts].all(axis=1), np.nan, terms.sum(axis=1)))]
        for part, factor in sorted(zip(parts, self.factors.tolist(), strict=True), key=lambda each: -abs(each[1])):
            fixes.append((part, np.where(changed[:, part], np.nan, raw[:, part] + gap / factor)))
        return [*fixes, (first, np.where(changed[:, parts].any(axis=1), terms.sum(axis=1), np.nan))]

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """One number follows another that changed as far as it may, that one is moved back to where it fits, and the
        first follows it there."""
        changed = ~same(raw, own)
        for changing, follower in permutations(self.columns, 2):
            relaxed = raw
            for column in (follower, changing, follower):
                relaxed = _with(relaxed, column, towards_own(column, self._needed(relaxed, column)))
            yield np.where(changed[:, [changing]], relaxed, raw)

    def _needed(self, raw: Floats, column: int) -> Floats:
        """(n,) the value of a number that keeps the law, with all others unchanged."""
        factors = np.array([-1.0, *self.factors])
        position = self.columns.index(column)
        terms = raw[:, self.columns] * factors
        return np.asarray(raw[:, column] - terms.sum(axis=1) / factors[position])


@dataclass(frozen=True)
class Determines(Law):
    """The value of one column determines that of another."""

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
            about = f"{show(self.column)} determines {show(self.other)}"
            raise InputError(f"the law that {about} needs a list of pairs of values")
        object.__setattr__(self, "values", tuple(tuple(pair) for pair in self.values))
        self._check()

    def __str__(self) -> str:
        return f"{self.column} determines {self.other}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.column, self.other

    def bind(self, features: Sequence[Column]) -> Constraint:
        at = _position(features, self.column), _position(features, self.other)
        values = zip(*self.values, strict=True) if self.values else ((), ())
        pairs = np.column_stack([_raw(features[i], cells) for i, cells in zip(at, values, strict=True)])
        pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]  # missing last
        return _BoundDetermines(at, pairs)


@dataclass(frozen=True)
class _BoundDetermines(Constraint):
    columns: tuple[int, int]
    pairs: Floats  # (values, 2) sorted by the first

    def broken(self, raw: Floats, own: Floats) -> Flags:
        needed, known = self._needed(raw[:, self.columns[0]])
        return np.asarray(known & ~same(needed, raw[:, self.columns[1]]))

    def fixes(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """The column that did not change follows the one that did."""
        first, second = self.columns
        needed = self._needed(raw[:, first])[0]
        determining = np.full(len(raw), np.nan)
        for a, b in self.pairs[::-1]:
            determining[raw[:, second] == b] = a
        second_follows = (second, np.where(changed[:, second] & ~changed[:, first], np.nan, needed))
        return [second_follows, (first, np.where(changed[:, first], np.nan, determining)), (second, needed)]

    def _needed(self, values: Floats) -> tuple[Floats, Flags]:
        """(n,) the value that the other column must have, and whether it is known."""
        keys = self.pairs[:, 0]
        if not len(keys):
            return np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
        position = np.searchsorted(keys, values).clip(max=len(keys) - 1)
        known = (keys[position] == values) | (np.isnan(keys[position]) & np.isnan(values))
        return np.where(known, self.pairs[position, 1], np.nan), known


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
            raise InputError(f"a law's state {show(settings)} needs 'column' and 'values', and may have 'but'")
        column, values, but = settings["column"], settings["values"], settings.get("but", False)
        if not isinstance(values, list | tuple) or not all(v is None or is_value(v) for v in values) or not values:
            raise InputError(f"{show(column)}: a law's values {show(values)} must be words, numbers or null")
        if not isinstance(but, bool):
            raise InputError(f"{show(column)}: a law's but is {show(but)}; it must be true or false")
        return cls(column, tuple(values), but)

    def __str__(self) -> str:
        if self.values == (None,):
            return f"{self.column} {'is not missing' if self.but else 'is missing'}"
        texts = ["missing" if v is None else str(v) for v in self.values]
        if self.but and len(texts) > 1:
            several = f"neither {texts[0]} nor {texts[1]}" if len(texts) == 2 else f"none of {', '.join(texts)}"
            return f"{self.column} is {several}"
        several = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
        return f"{self.column} is {'not ' * self.but}{several}"


@dataclass(frozen=True)
class Given(Law):
    """If one column has some values, another has some values."""

    kind = "given"
    when: State
    then: State
    usual: Value | None = None  # the most frequent value of the other column then; None: unknown
    otherwise: Value | None = None  # the most frequent value of the first one where the other has another value
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", State.of(self.when))
        object.__setattr__(self, "then", State.of(self.then))
        self._check()

    def __str__(self) -> str:
        return f"if {self.when}, then {self.then}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.when.column, self.then.column

    def bind(self, features: Sequence[Column]) -> Constraint:
        first, second = at = tuple(_position(features, name) for name in self.columns)
        values = tuple(_raw(features[i], state.values) for i, state in zip(at, (self.when, self.then), strict=True))
        usual = (_raw(features[i], [value])[0] for i, value in zip(at, (self.otherwise, self.usual), strict=True))
        return _BoundGiven((first, second), cast(Any, values), (self.when.but, self.then.but), cast(Any, tuple(usual)))


@dataclass(frozen=True)
class _BoundGiven(Constraint):
    columns: tuple[int, int]
    values: tuple[Floats, Floats]
    but: tuple[bool, bool]
    usual: tuple[float, float]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return self._in_state(raw, 0) & ~self._in_state(raw, 1)

    def fixes(self, raw: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """The column that did not change gets its usual value; if both did, the second."""
        first, second = (
            (column, np.where(changed[:, column], np.nan, usual))
            for column, usual in zip(self.columns, self.usual, strict=True)
        )
        return [second, first, (second[0], np.full(len(raw), self.usual[1]))]

    def _in_state(self, raw: Floats, which: int) -> Flags:
        values, state = raw[:, self.columns[which]], self.values[which]
        among = np.isin(values, state[~np.isnan(state)])
        if np.isnan(state).any():
            among |= np.isnan(values)
        return np.asarray(among != self.but[which])


LAW_KINDS: tuple[type[Law], ...] = (Order, Linear, Determines, Given)


def law_from_entry(entry: Any) -> Law:
    """A law from its entry in a schema's JSON."""
    if not isinstance(entry, Mapping):
        raise InputError(f"a law in the schema is {show(entry)}; it must be an object")
    settings = dict(entry)
    kind_name = settings.pop("law", None)
    for kind in LAW_KINDS:
        if kind_name == kind.kind:
            return kind.from_settings(settings)
    known = [kind.kind for kind in LAW_KINDS]
    hint = suggest(kind_name, known)
    raise InputError(f"law {show(kind_name)} is not known; {hint}it must be one of {listing(known)}")


def _position(features: Sequence[Column], name: Name) -> int:
    names = [column.name for column in features]
    if name not in names:
        known = f"{suggest(name, names)}known: {listing(names)}"
        raise InputError(f"a law refers to {show(name)}, but there is no such feature; {known}")
    return names.index(name)


def _numeric_position(features: Sequence[Column], name: Name) -> int:
    position = _position(features, name)
    if features[position].numbers == 0:
        raise InputError(f"a law compares {show(name)} as a number, but its kind is {features[position].kind}")
    return position


def _with(raw: Floats, column: int, values: Floats) -> Floats:
    out = raw.copy()
    out[:, column] = values
    return out


def _raw(column: Column, values: Sequence[Value | None]) -> Floats:
    """Cells of a column as raw values."""
    try:
        return column.read(pd.Series(list(values), dtype=object, name=cast(Any, column.name)))
    except InputError as error:
        raise InputError(f"a law does not fit the schema: {error}") from None
