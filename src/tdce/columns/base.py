"""What a kind of column knows: its settings, what fit learns of it, and what may be proposed to each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce.cells import LARGEST, Flags, Floats, Name, Value, is_value, readable, same
from tdce.errors import InputError, listing, shown

LARGEST_SCORE = 1e6  # of an encoded number, in deviations

Sizes = tuple[int | str, ...]  # a size that is a word may be any, but is the same wherever the word appears
Arrays = Mapping[str, NDArray[Any]]  # by names in which {} is the column's position


class Column(ABC):
    """The settings of one column, all of which a person may edit. Every kind is a frozen dataclass.

    Raw values are float64, missing as NaN. An encoded row has `numbers` numbers of the column, then `weights` weights.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    name: Name
    immutable: bool
    missing: bool  # whether cells were empty in fit

    def __post_init__(self) -> None:
        if not isinstance(self.name, str | int) or isinstance(self.name, bool) or not is_value(self.name):
            raise InputError(f"column name {shown(self.name)} must be text or a whole number; rename it")
        for key in ("immutable", "missing"):
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"{self.name!r}: {key} {getattr(self, key)!r} must be true or false")

    @classmethod
    @abstractmethod
    def infer(cls, series: pd.Series[Any]) -> Self | None:
        """The column of these cells, some of which are not missing; None if it is of another kind."""

    @abstractmethod
    def describe(self) -> str:
        """Its values, for people."""

    @property
    def may_change(self) -> str:
        """Whether, or in which direction, for people."""
        return "no" if self.immutable else "yes"

    @abstractmethod
    def read(self, series: pd.Series[Any], most: float = np.inf) -> Floats:
        """Cells to raw values; one that does not fit, or is a number larger than `most`, is named."""

    @abstractmethod
    def cells(self, values: Floats) -> list[Value | None]:
        """Raw values to plain cells."""

    @abstractmethod
    def stored(self, dtype: Any) -> Self:
        """The column with only such values to propose as a series of this dtype can hold."""

    @property
    @abstractmethod
    def numbers(self) -> int: ...

    @property
    @abstractmethod
    def weights(self) -> int: ...

    @abstractmethod
    def learn(self, values: Floats) -> Learned:
        """What the raw values of a table say, none of them missing."""

    @abstractmethod
    def layout(self) -> Mapping[str, tuple[str, Sizes]]:
        """The dtype and shape of each array that a file holds of what was learned."""

    @abstractmethod
    def restored(self, arrays: Arrays) -> Learned:
        """What was learned, from the arrays of a file; those that make no sense are named."""

    def write(self, values: Floats, own: Floats, series: pd.Series[Any]) -> pd.Series[Any]:
        """The series, which says `own`, with these values: new cells in its dtype, old ones where they say the same."""
        changed = ~same(values, own)
        if not changed.any():
            return series
        column = readable(series) if isinstance(series.dtype, pd.SparseDtype) else series.copy()
        cells: list[Any] = self.cells(values[changed])
        if isinstance(column.dtype, pd.CategoricalDtype):
            new = [c for c in dict.fromkeys(cells) if c is not None and c not in column.cat.categories]
            column = column.cat.add_categories(new) if new else column
        elif pd.api.types.is_integer_dtype(column.dtype):
            cells = [c if c is None else round(c) for c in cells]
        elif isinstance(next(iter(column.dropna()), None), Decimal):
            cells = [c if c is None else Decimal(str(c)) for c in cells]
        column.iloc[np.flatnonzero(changed)] = pd.array(cells, dtype=cast(Any, column.dtype))
        return column.astype(series.dtype) if isinstance(series.dtype, pd.SparseDtype) else column

    def entry(self) -> dict[str, Any]:
        """Its entry in a schema's JSON."""
        return {"kind": self.kind, **asdict(self)}

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

    def settle(self, key: str, value: Any) -> None:
        """Put a setting into its plain form; only for `__post_init__`."""
        object.__setattr__(self, key, value)

    def number(self, key: str, value: Any) -> float:
        """A setting as a number."""
        if isinstance(value, Real) and not isinstance(value, bool) and abs(cast(float, value)) <= LARGEST:
            return float(value)
        raise InputError(f"{self.name!r}: {key} {shown(value)} must be a number")

    def several(self, key: str, values: Any) -> tuple[Value, ...]:
        """A setting as several plain values."""
        if not isinstance(values, list | tuple) or not all(is_value(v) for v in values):
            raise InputError(f"{self.name!r}: {key} {shown(values)} must be a list of words, numbers or true and false")
        return tuple(values)


@dataclass(frozen=True)
class Learned(ABC):
    """A column together with what fit learned of it."""

    column: Column
    dtype: Any = field(default=None, kw_only=True)  # of the rows that are asked about

    def stored(self, dtype: Any, immutable: bool) -> Self:
        """As the rows that are asked about store it, and immutable if they are not to change."""
        dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
        column = self.column.stored(dtype)
        return replace(self, column=replace(column, immutable=column.immutable or immutable), dtype=dtype)

    @abstractmethod
    def embed(self, values: Floats) -> Floats:
        """(n,) -> (n, numbers + weights). A value missing where fit saw none counts as the average row."""

    @abstractmethod
    def unembed(self, x: Floats) -> Floats:
        """(n, numbers + weights) -> (n,): the largest weight, numbers on the grid."""

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The raw values beyond which all are encoded the same."""

    @abstractmethod
    def knows(self, values: Floats) -> Flags:
        """(n,) whether each of these values, none of them missing, can have been in the table that was learned."""

    @abstractmethod
    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, str]]:
        """Rows whose value fit never saw, with a remark; missing ones apart."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """All that a file must hold of it, as `layout` says."""

    @abstractmethod
    def choices(self, own: Floats) -> Choices:
        """What may be proposed to rows with these values of their own."""


class Choices(ABC):
    """What may be proposed in one column, per row. Missing is never proposed."""

    @abstractmethod
    def free(self) -> Flags:
        """(n,) whether there is another value than the row's own."""

    @abstractmethod
    def allows(self, values: Floats) -> Flags:
        """(n,) whether these values may be proposed."""

    @abstractmethod
    def snap(self, x: Floats) -> Floats:
        """(n, numbers + weights) -> (n,): the nearest choice to each encoded proposal, or the row's own value."""

    @abstractmethod
    def reach(self) -> tuple[Floats, Floats, Flags]:
        """The lowest and highest encoded numbers (n, numbers), and which weights may be 1 (n, weights)."""
