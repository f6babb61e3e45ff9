"""What a kind of column knows: its settings, what fit learns about it, and what may be proposed for each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, Field, asdict, fields, replace
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from tdce._core import (
    LARGEST,
    Flags,
    Floats,
    InputError,
    Name,
    Note,
    Positions,
    Value,
    is_value,
    listing,
    readable,
    same,
    show,
)
from tdce.schema.columns.wording import NONE, Wording

Arrays = Mapping[str, NDArray[Any]]  # by names in which {} is the column's position
Sizes = tuple[int | str, ...]  # a size that is a word may be any, but is the same wherever the word appears


class Column(Protocol):
    """The settings of one column, which a person may edit; every kind is a frozen dataclass.

    Its raw values are float64, missing as NaN. In an encoded row it has some numbers and a block of weights.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    name: Name
    immutable: bool
    missing: bool  # whether cells were empty in fit
    words: Wording = NONE  # how people read it

    @classmethod
    def infer(cls, series: pd.Series[Any]) -> Self | None: ...  # from cells, not all missing; None: it is another kind
    def describe(self) -> str: ...  # its values, for people
    def read(self, series: pd.Series[Any], most: float = ...) -> Floats: ...  # what does not fit is named
    def cells(self, values: Floats) -> list[Value | None]: ...  # the way back
    def stored(self, dtype: Any) -> Self: ...  # proposing only what a series of this dtype can hold
    @property
    def numbers(self) -> int: ...  # in an encoded row: 0 or 1
    @property
    def weights(self) -> int: ...  # in an encoded row: a block of 0 or more
    def learn(self, values: Floats) -> FittedColumn: ...  # from the raw values of a table, none of them missing
    def layout(self) -> Mapping[str, tuple[str, Sizes]]: ...  # dtypes and shapes of what was learned, in a file
    def restored(self, arrays: Arrays) -> FittedColumn: ...  # from such a file; what makes no sense is named

    @property
    def marks(self) -> tuple[float, ...]:
        """Numbers that stand for a state."""
        return ()

    @property
    def ranks(self) -> tuple[float, ...]:
        """Of each weight: two that differ by 1 or more are as far apart as can be."""
        return tuple(2.0 * i for i in range(self.weights))

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest raw value that is proposed."""
        return -np.inf, np.inf

    def regular(self, values: Floats) -> Floats:
        """The values, without those off the grid: slips that say nothing about other columns."""
        return values

    def within(self, low: float, high: float, allowed: Set[Value] | None) -> Self:
        """Proposing only these; an error if nothing is left."""
        return self

    def stepped(self, values: Floats, away: Floats) -> Floats:
        """The numbers one step of the grid further up, where `away` is above 0, or down, where it is below; as they are
        where there is no such step."""
        return values

    def plain(self) -> Self:
        """As it is without anybody's knowledge: any value of the table may be proposed."""
        return replace(self, immutable=False)

    @property
    def may_change(self) -> str:
        """Whether it may, or in which direction; for people."""
        return "no" if self.immutable else "yes"

    def write(self, values: Floats, own: Floats, series: pd.Series[Any]) -> pd.Series[Any]:
        """The series, which says `own`, with these values: new cells in its dtype, old ones where they say the same."""
        changed = ~same(values, own)
        if not changed.any():
            return series
        sparse = isinstance(series.dtype, pd.SparseDtype)
        column = readable(series) if sparse else series.copy()
        cells: list[Any] = self.cells(values[changed])
        if isinstance(column.dtype, pd.CategoricalDtype):
            new = [c for c in dict.fromkeys(cells) if c is not None and c not in column.cat.categories]
            column = column.cat.add_categories(new) if new else column
        elif pd.api.types.is_integer_dtype(column.dtype):
            cells = [c if c is None else round(c) for c in cells]
        elif isinstance(next(iter(column.dropna()), None), Decimal):
            cells = [c if c is None else Decimal(str(c)) for c in cells]
        column.iloc[np.flatnonzero(changed)] = pd.array(cells, dtype=cast(Any, column.dtype))
        return column.astype(series.dtype) if sparse else column

    def entry(self) -> dict[str, Any]:
        """Its entry in a schema's JSON."""
        entry = {"kind": self.kind, **asdict(self)}
        entry.pop("words", None)
        return entry | ({"words": self.words.entry()} if self.words.entry() else {})

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        cls.check_settings(settings["name"], settings)
        for each in fields(cls):
            if each.default is MISSING and each.name not in settings:
                raise InputError(f"{settings['name']!r}: a {cls.kind} column needs the setting {each.name!r}")
        return cls(**settings)

    @classmethod
    def check_settings(cls, name: Name, settings: Mapping[str, Any]) -> None:
        known = {each.name for each in fields(cls)}
        for key in settings:
            if key not in known:
                raise InputError(f"{name!r}: unknown setting {key!r}; known: {listing(sorted(known))}")

    def __post_init__(self) -> None:
        if not isinstance(self.name, str | int) or isinstance(self.name, bool) or not is_value(self.name):
            raise InputError(f"column name {show(self.name)} must be text or a whole number; rename it")
        for key in ("immutable", "missing"):
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"{self.name!r}: {key} {getattr(self, key)!r} must be true or false")
        if self.words is not NONE:
            self._settle("words", Wording.of(self.name, self.words))

    def _settle(self, key: str, value: Any) -> None:
        """Put a setting into its plain form; only for `__post_init__`."""
        object.__setattr__(self, key, value)

    def _number(self, key: str, value: Any) -> float:
        if isinstance(value, Real) and not isinstance(value, bool) and abs(cast(float, value)) <= LARGEST:
            return float(value)
        raise InputError(f"{self.name!r}: {key} {show(value)} must be a number")

    def _several(self, key: str, values: Any) -> tuple[Value, ...]:
        if not isinstance(values, list | tuple) or not all(is_value(v) for v in values):
            raise InputError(f"{self.name!r}: {key} {show(values)} must be a list of words, numbers or true/false")
        return tuple(values)


class FittedColumn(Protocol):
    """A column together with what fit learned about it; also a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    column: Column
    dtype: Any  # of the rows that are asked about; None: not known yet

    def embed(self, values: Floats) -> Floats: ...  # (n,) -> (n, numbers + weights)
    def unembed(self, x: Floats) -> Floats: ...  # the way back: the largest weight, numbers on the grid
    @property
    def ends(self) -> tuple[float, float]: ...  # the raw values beyond which all are encoded the same
    def knows(self, values: Floats) -> Flags: ...  # whether each can have been in the table, none of them missing
    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, Note | str]]: ...  # a row with a value unseen in fit
    def arrays(self) -> Arrays: ...  # as `layout` says
    def choices(self, own: Floats) -> AllowedValues: ...  # of rows with these values of their own

    def of_range(self, scores: Floats) -> Floats:
        """Encoded numbers (n,) -> from 0 to 1: how much of the table's range is below each; here, how many people."""
        return np.asarray(ndtr(scores))

    def nearest_known(self, values: Floats) -> Floats:
        """The values, or the nearest ones that it knows; missing stays missing."""
        return values

    def stored(self, dtype: Any, immutable: bool) -> Self:
        """As the rows that are asked about store it, and immutable if they say so."""
        dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
        column = self.column.stored(dtype)
        column = replace(column, immutable=True) if immutable and not column.immutable else column
        return replace(self, column=column, dtype=dtype)


class AllowedValues(Protocol):
    """What may be proposed in one column, per row; missing never is."""

    own: Floats  # (n,) the rows' own values

    def free(self) -> Flags: ...  # (n,) whether there is any but the row's own value
    def allows(self, values: Floats) -> Flags: ...  # (n,) whether these are among them
    def snap(self, x: Floats) -> Floats: ...  # (n, numbers + weights) -> (n,): one of them, or the row's own value
    def encoded_bounds(
        self,
    ) -> tuple[Floats, Floats, Flags]: ...  # lowest, highest (n, numbers); which weights may be 1

    def take(self, at: Flags | Positions) -> Self:
        """Of some of the rows; a column whose choices take time to find hands on what it has found."""
        return cast(Self, replace(cast(Any, self), own=self.own[at]))

    def back(self, values: Floats) -> Floats:
        """(n,) the nearest of them on the way from these values to the row's own, which is the end of the way."""
        return np.where(self.allows(values), values, self.own)
