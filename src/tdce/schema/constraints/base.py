"""Base classes of a law, and of the constraint that binds it to the columns of a raw matrix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd

from tdce._core import Flags, Floats, InputError, Name, Value, is_integer, listing, same, show, suggest
from tdce.schema.columns.base import Column, FittedColumn

TowardsOwn = Callable[[int, Floats], Floats]
"""Of a column and values (n,): the first value that may be proposed on the way from these to the row's own."""


class Law(ABC):
    """What holds between some columns; every kind is a frozen dataclass.

    A law without exceptions in the table is hard: no answer may break it. One with a few is soft: breaking it costs.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    support: int  # rows of the table that could break the law
    exceptions: int  # rows of the table that break it
    on: bool  # False: it is ignored

    @property
    @abstractmethod
    def columns(self) -> tuple[Name, ...]:
        """The columns that the law is about."""

    @abstractmethod
    def __str__(self) -> str:
        """The law as a sentence."""

    @abstractmethod
    def bind(self, features: Sequence[Column]) -> Constraint:
        """Bind the law to the columns of a raw matrix; raise an error if it does not fit them."""

    @property
    def hard(self) -> bool:
        return self.exceptions == 0

    @property
    def follower(self) -> Name | None:
        """The column that follows the others, if any."""
        return None

    @property
    def followed(self) -> tuple[Name, ...]:
        """The columns that the follower follows."""
        return tuple(name for name in self.columns if name != self.follower)

    def turned(self, name: Name) -> Self:
        """The law solved for another follower; raise an error if that is impossible."""
        raise InputError(f"{self}: {show(name)} cannot follow; only an equation can be turned round")

    def entry(self) -> dict[str, Any]:
        """The entry in a schema's JSON."""
        return {"law": self.kind, **asdict(self)}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        known = {each.name: each.default is MISSING for each in fields(cls)}
        for key in settings:
            if key not in known:
                hint = suggest(key, known)
                raise InputError(
                    f"a law of kind {cls.kind!r} has no setting {show(key)}; {hint}known: {listing(known)}"
                )
        for key, needed in known.items():
            if needed and key not in settings:
                raise InputError(f"a law of kind {cls.kind!r} needs the setting {key!r}")
        return cls(**settings)

    def _check_names(self) -> None:
        """Check the names before they are shown or compared: an edited schema may hold anything."""
        for name in self.columns:
            if not isinstance(name, str | int) or isinstance(name, bool):
                raise InputError(f"a law of kind {self.kind!r} names {show(name)}, which is not the name of a feature")

    def _check_counts(self) -> None:
        if not (is_integer(self.support) and is_integer(self.exceptions) and 0 <= self.exceptions <= self.support):
            raise InputError(f"law {self}: exceptions {show(self.exceptions)} of support {show(self.support)} must "
                             "be whole numbers, the first at most the second")  # fmt: skip
        if not isinstance(self.on, bool):
            raise InputError(f"law {self}: on is {show(self.on)}; it must be true or false")


class Constraint(ABC):
    """A law or a rule, bound to columns of a raw matrix by position."""

    columns: tuple[int, ...]

    def parts(self) -> tuple[Constraint, ...]:
        """The constraints that this one consists of; each is repaired separately."""
        return (self,)

    def for_cells(self, columns: Sequence[FittedColumn]) -> Constraint:
        """The constraint for rows stored in these columns' dtypes."""
        return self

    def contradicted(self, raw: Floats) -> Flags:
        """(n,) which rows break the constraint themselves, with no original row to compare with."""
        return self.broken(raw, raw)

    @abstractmethod
    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n,) which proposed rows (n, features) break the constraint, given the rows' own values; missing numbers
        never do."""

    @abstractmethod
    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Ways to fix rows that break the constraint, best first, given the rows' own values and which features differ
        from them. Each is a column and its values (n,), NaN in rows that it does not fix."""

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Ways to keep the constraint in rows that no fix helps, by moving changed numbers towards the rows' own; each
        is a matrix of rows (n, features). Every new value comes from `towards_own`."""
        yield from ()

    def reverted(self, raw: Floats, own: Floats) -> Flags:
        """(n, features) which changes to revert, at least one per row, in rows that nothing else helps."""
        return ~same(raw, own) & np.isin(np.arange(raw.shape[1]), self.columns)


class FollowerConstraint(Constraint):
    """A constraint by which one column is computed from the others."""

    @property
    @abstractmethod
    def follower(self) -> int:
        """The computed column, which is never changed alone."""

    @abstractmethod
    def expected(self, raw: Floats, own: Floats) -> Floats:
        """(n,) the follower's value in proposed rows (n, features), given the rows' own values; NaN if none fits."""


def feature_position(features: Sequence[Column], name: Name) -> int:
    names = [column.name for column in features]
    if name not in names:
        known = f"{suggest(name, names)}known: {listing(names)}"
        raise InputError(f"a law refers to {name!r}, but there is no such feature; {known}")
    return names.index(name)


def number_position(features: Sequence[Column], name: Name) -> int:
    position = feature_position(features, name)
    if features[position].numbers == 0:
        raise InputError(f"a law compares {name!r} as a number, but its kind is {features[position].kind}")
    return position


def with_column(raw: Floats, column: int, values: Floats) -> Floats:
    out = raw.copy()
    out[:, column] = values
    return out


def raw_values(column: Column, values: Sequence[Value | None]) -> Floats:
    """Cells of a column as raw values."""
    try:
        return column.read(pd.Series(list(values), dtype=object, name=cast(Any, column.name)))
    except InputError as error:
        raise InputError(f"a law does not fit the schema: {error}") from None
