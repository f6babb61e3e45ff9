"""Laws about states: if one column has certain values, another has certain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tdce._core import Flags, Floats, InputError, Name, Value, is_value, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import Constraint, Law, feature_position, raw_values


@dataclass(frozen=True)
class State:
    """Certain values of a column, or all but these; None is missing."""

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
    """If one column has certain values, another has certain values."""

    kind = "given"
    when: State
    then: State
    usual: Value | None = None  # the other column's most frequent value in that case; None: unknown
    otherwise: Value | None = None  # the first column's most frequent value where the other has another value
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", State.of(self.when))
        object.__setattr__(self, "then", State.of(self.then))
        for name in ("usual", "otherwise"):
            if (value := getattr(self, name)) is not None and not is_value(value):
                raise InputError(f"a law's {name} {show(value)} must be a word, a number or null")
        self._check_names()
        self._check_counts()

    def __str__(self) -> str:
        return f"if {self.when}, then {self.then}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.when.column, self.then.column

    def bind(self, features: Sequence[Column]) -> Constraint:
        first, second = at = tuple(feature_position(features, name) for name in self.columns)
        values = tuple(
            raw_values(features[i], state.values) for i, state in zip(at, (self.when, self.then), strict=True)
        )
        usual = (raw_values(features[i], [value])[0] for i, value in zip(at, (self.otherwise, self.usual), strict=True))
        return _BoundGiven((first, second), cast(Any, values), (self.when.but, self.then.but), cast(Any, tuple(usual)))


@dataclass(frozen=True)
class _BoundGiven(Constraint):
    columns: tuple[int, int]
    values: tuple[Floats, Floats]
    but: tuple[bool, bool]
    usual: tuple[float, float]

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return self._in_state(raw, 0) & ~self._in_state(raw, 1)

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Give the column that did not change its usual value; if both changed, the second."""
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


@dataclass(frozen=True)
class Equivalent(Law):
    """Several columns are each in a given state together, or none of them is."""

    kind = "equivalent"
    states: tuple[State, ...]
    otherwise: tuple[Value | None, ...] = ()  # each column's most frequent value in other rows; None: unknown
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        for key in ("states", "otherwise"):
            if not isinstance(getattr(self, key), list | tuple):
                raise InputError(f"a law's {key} {show(getattr(self, key))} must be a list")
        object.__setattr__(self, "states", tuple(map(State.of, self.states)))
        otherwise = tuple(self.otherwise) or (None,) * len(self.states)
        object.__setattr__(self, "otherwise", otherwise)
        if len(self.states) < 2 or len(otherwise) != len(self.states):
            raise InputError(
                "a law that states are equivalent needs two of them or more, and a value for each otherwise"
            )
        if not all(v is None or is_value(v) for v in otherwise):
            raise InputError(f"a law's otherwise {show(otherwise)} must be words, numbers or null")
        self._check_names()
        self._check_counts()

    def __str__(self) -> str:
        first, *others = map(str, self.states)
        return f"{first} exactly where {' and '.join(others)}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return tuple(state.column for state in self.states)

    def bind(self, features: Sequence[Column]) -> Constraint:
        first, *others = zip(self.states, self.otherwise, strict=True)
        pairs: list[Constraint] = []
        for other in others:
            pairs += [_one_way(*first, *other).bind(features), _one_way(*other, *first).bind(features)]
        return _BoundEquivalent(tuple(feature_position(features, name) for name in self.columns), tuple(pairs))


def _one_way(when: State, when_otherwise: Value | None, then: State, then_otherwise: Value | None) -> Given:
    usual = then_otherwise if then.but else then.values[0]
    otherwise = when.values[0] if when.but else when_otherwise
    return Given(when, then, usual, otherwise)


@dataclass(frozen=True)
class _BoundEquivalent(Constraint):
    """The bound law: implications from the first state to every other one and back."""

    columns: tuple[int, ...]
    pairs: tuple[Constraint, ...]

    def parts(self) -> tuple[Constraint, ...]:
        return self.pairs

    def broken(self, raw: Floats, own: Floats) -> Flags:
        return np.asarray(np.any([pair.broken(raw, own) for pair in self.pairs], axis=0))

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        return [fix for pair in self.pairs for fix in pair.fixes(raw, own, changed)]
