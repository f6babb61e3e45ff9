"""Base classes for a kind of column: its settings, what fit learns about it, what may be proposed for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from dataclasses import MISSING, Field, asdict, fields, replace
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from tdce._core import (
    LARGEST_VALUE,
    Flags,
    Floats,
    InputError,
    Name,
    Note,
    Positions,
    Value,
    as_decimal,
    is_plain_number,
    is_value,
    listing,
    normalise_column,
    same,
    show,
    suggest,
)
from tdce.schema.columns.wording import NO_WORDING, Wording
from tdce.schema.roles import FROZEN, Role, check_role

Arrays = Mapping[str, NDArray[Any]]  # by name, with {} for the column's position
Sizes = tuple[int | str, ...]  # a word is a size that may be any number, the same wherever the word appears


class Column(ABC):
    """The settings of one column, which a user may edit; every kind is a frozen dataclass.

    Raw values are float64, missing is NaN. An encoded row holds 0 or 1 numbers and a block of weights for the column.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    name: Name
    immutable: bool
    missing: bool  # whether cells were missing in fit
    role: Role  # actionable, immutable, …
    words: Wording = NO_WORDING  # how it is shown to people

    @classmethod
    @abstractmethod
    def infer(cls, series: pd.Series[Any]) -> Self | None:
        """Infer the settings from a column with at least one value; None if it is of another kind."""

    @abstractmethod
    def describe(self) -> str:
        """The column's values, for people."""

    @abstractmethod
    def read(self, series: pd.Series[Any], most: float = np.inf) -> Floats:
        """Cells -> raw values; raise an error for a cell that does not fit, or a number beyond `most`."""

    @abstractmethod
    def cells(self, values: Floats) -> list[Value | None]:
        """Raw values -> cells."""

    @abstractmethod
    def for_dtype(self, dtype: Any) -> Self:
        """The same column, proposing only what a series of this dtype can hold."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """The number of numeric entries in an encoded row: 0 or 1."""

    @property
    @abstractmethod
    def weights(self) -> int:
        """The size of the block of weights in an encoded row, 0 or more."""

    @abstractmethod
    def fit(self, values: Floats) -> FittedColumn:
        """Learn from the raw values of a table, none of them missing."""

    def pooled(self, values: Floats, keep: Set[Value] = frozenset()) -> Self:
        """The settings without values held by fewer than five people, given a table's raw values without missing ones;
        `keep`: values that the user named elsewhere."""
        return self

    def fit_pooled(self, values: Floats) -> FittedColumn:
        """Like `fit`, but keep no value held by fewer than five people."""
        return self.fit(values)

    @abstractmethod
    def layout(self) -> Mapping[str, tuple[str, Sizes]]:
        """The dtypes and shapes of the learned arrays, as an artefact stores them."""

    @abstractmethod
    def restore(self, arrays: Arrays) -> FittedColumn:
        """The fitted column from an artefact's arrays; raise an error if they are inconsistent."""

    @property
    def marks(self) -> tuple[float, ...]:
        """Numbers that stand for a state (-1: never called)."""
        return ()

    @property
    def ranks(self) -> tuple[float, ...]:
        """The rank of each weight: two that differ by 1 or more are as far apart as possible."""
        return tuple(2.0 * i for i in range(self.weights))

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest raw value that may be proposed."""
        return -np.inf, np.inf

    def drop_off_grid(self, values: Floats) -> Floats:
        """The values, with those off the grid or not believable, which are errors, as missing."""
        return values

    def narrow(self, low: float, high: float, allowed: Set[Value] | None) -> Self:
        """The same column, proposing only these values; raise an error if none is left."""
        return self

    def step_values(self, values: Floats, direction: Floats) -> Floats:
        """Move numbers one step of the grid up where the direction is positive, down where it is negative; leave them
        unchanged where there is no such step."""
        return values

    def unrestricted(self) -> Self:
        """The same column without the user's settings: any value of the table may be proposed."""
        return replace(self, immutable=False, role="actionable")

    @property
    def may_change(self) -> str:
        """Whether it may change, or in which direction; for people."""
        return "no" if self.immutable else "yes"

    def write(self, values: Floats, own: Floats, series: pd.Series[Any]) -> pd.Series[Any]:
        """The series, whose raw values are `own`, with these values in its dtype; equal cells are unchanged."""
        changed = ~same(values, own)
        if not changed.any():
            return series
        sparse = isinstance(series.dtype, pd.SparseDtype)
        column = normalise_column(series) if sparse else series.copy()
        cells: list[Any] = self.cells(values[changed])
        if isinstance(column.dtype, pd.CategoricalDtype):
            if pd.api.types.is_float_dtype(column.cat.categories.dtype):  # a float32 of 0.1 is not 0.1
                cells = [c if c is None else column.cat.categories.dtype.type(c) for c in cells]
            new = [c for c in dict.fromkeys(cells) if c is not None and c not in column.cat.categories]
            column = column.cat.add_categories(new) if new else column
        elif pd.api.types.is_integer_dtype(column.dtype):
            cells = [c if c is None else round(c) for c in cells]
        elif any(isinstance(cell, Decimal) for cell in column):
            before = column.iloc[np.flatnonzero(changed)]  # each cell keeps its own type of number
            cells = [c if is_plain_number(b) else as_decimal(c) for b, c in zip(before, cells, strict=True)]
        column.iloc[np.flatnonzero(changed)] = pd.array(cells, dtype=cast(Any, column.dtype))
        return column.astype(series.dtype) if sparse else column

    def entry(self) -> dict[str, Any]:
        """The entry in a schema's JSON."""
        entry = {"kind": self.kind, **asdict(self)}
        entry.pop("words", None)
        if self.role in ("actionable", "immutable"):  # implied by `immutable`
            entry.pop("role")
        return entry | ({"words": self.words.entry()} if self.words.entry() else {})

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        cls.check_settings(settings["name"], settings)
        for each in fields(cls):
            if each.default is MISSING and each.name not in settings:
                raise InputError(f"{show(settings['name'])}: a {cls.kind} column needs the setting {each.name!r}")
        return cls(**with_role(settings["name"], settings))

    @classmethod
    def check_settings(cls, name: Name, settings: Mapping[str, Any]) -> None:
        known = sorted(each.name for each in fields(cls))
        for key in settings:
            if key not in known:
                meant = suggest(key, known)
                raise InputError(f"{show(name)}: unknown setting {show(key)}; {meant}known: {listing(known)}")

    def __post_init__(self) -> None:
        if not isinstance(self.name, str | int) or isinstance(self.name, bool) or not is_value(self.name):
            raise InputError(f"column name {show(self.name)} must be text or a whole number; rename it")
        for key in ("immutable", "missing"):
            if not isinstance(getattr(self, key), bool):
                raise InputError(f"{self.name!r}: {key} {show(getattr(self, key))} must be true or false")
        self._settle("role", check_role(self.name, self.role))
        if self.role in FROZEN:
            self._settle("immutable", True)
        elif self.immutable and self.role == "actionable":
            self._settle("role", "immutable")
        if self.words is not NO_WORDING:
            self._settle("words", Wording.of(self.name, self.words))

    def _settle(self, key: str, value: Any) -> None:
        """Normalise a setting; only for `__post_init__`."""
        object.__setattr__(self, key, value)

    def _number(self, key: str, value: Any) -> float:
        if isinstance(value, Real) and not isinstance(value, bool) and abs(cast(float, value)) <= LARGEST_VALUE:
            return float(value)
        raise InputError(f"{self.name!r}: {key} {show(value)} must be a number")

    def _several(self, key: str, values: Any) -> tuple[Value, ...]:
        if not isinstance(values, list | tuple) or not all(is_value(v) for v in values):
            raise InputError(f"{self.name!r}: {key} {show(values)} must be a list of words, numbers or true/false")
        return tuple(values)


def with_role(name: Name, settings: Mapping[str, Any], old: Role = "actionable") -> dict[str, Any]:
    """Complete `role` and `immutable` by each other; raise an error if they contradict."""
    settings = dict(settings)
    if "role" not in settings:
        if settings.get("immutable") is False and old in FROZEN:
            settings["role"] = "actionable"
        return settings
    role = check_role(name, settings["role"])
    immutable = settings.setdefault("immutable", role != "actionable")
    if (role in FROZEN and immutable is False) or (role == "actionable" and immutable is True):
        raise InputError(
            f"{name!r}: role {role!r} contradicts immutable {str(immutable).lower()}; leave out one of them"
        )
    return settings


class FittedColumn(ABC):
    """A column and what fit learned about it; a frozen dataclass, too."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    column: Column
    dtype: Any  # of the queried rows; None: not yet known

    @abstractmethod
    def embed(self, values: Floats) -> Floats:
        """Raw values (n,) -> encoded (n, numbers + weights)."""

    @abstractmethod
    def unembed(self, x: Floats) -> Floats:
        """Encoded (n, numbers + weights) -> raw values (n,): the largest weight, numbers on the grid."""

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The raw values beyond which all values have the same encoding."""

    @abstractmethod
    def knows(self, values: Floats) -> Flags:
        """(n,) whether each value (none is missing) can have been in the table."""

    @abstractmethod
    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, Note | str]]:
        """The position of each value not seen in fit, and a note about it."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The learned arrays, in the column's `layout`."""

    @abstractmethod
    def allowed_values(self, own: Floats) -> AllowedValues:
        """The values that may be proposed for rows with these own values (n,)."""

    def range_share(self, scores: Floats) -> Floats:
        """Encoded numbers (n,) -> the share of the table's range below each (0 to 1); by default that of rows."""
        return np.asarray(ndtr(scores))

    def deviations(self, scores: Floats) -> Floats:
        """Encoded numbers (n,) -> raw values in the table's standard deviations; by default the scores themselves."""
        return scores

    def nearest_known(self, values: Floats) -> Floats:
        """The values, or the nearest ones that the column knows; missing stays missing."""
        return values

    def for_rows(self, dtype: Any, immutable: bool) -> Self:
        """The same column for rows that store it in this dtype; `immutable` makes it immutable."""
        dtype = dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype
        column = self.column.for_dtype(dtype)
        column = replace(column, immutable=True) if immutable and not column.immutable else column
        return replace(self, column=column, dtype=dtype)


class AllowedValues(ABC):
    """The values that may be proposed in one column, per row; a frozen dataclass, too. Missing is never proposed."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    own: Floats  # (n,) the rows' own values

    @abstractmethod
    def can_change(self) -> Flags:
        """(n,) whether any value other than the row's own may be proposed."""

    @abstractmethod
    def allows(self, values: Floats) -> Flags:
        """(n,) whether these values may be proposed."""

    @abstractmethod
    def snap(self, x: Floats) -> Floats:
        """Encoded (n, numbers + weights) -> (n,) the nearest value that may be proposed, or the row's own."""

    @abstractmethod
    def encoded_bounds(self) -> tuple[Floats, Floats, Flags]:
        """The lowest and the highest encoded number (n, numbers); which weights may be 1 (n, weights)."""

    def take(self, at: Flags | Positions) -> Self:
        """The same for some of the rows. Kinds with costly cached properties pass these on."""
        return replace(self, own=self.own[at])

    def towards_own(self, values: Floats) -> Floats:
        """(n,) the first allowed value on the way from these values to the row's own, which ends the way."""
        return np.where(self.allows(values), values, self.own)
