"""Columns of categories: a list of values, some of which may be proposed; encoded as one weight per category."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from tdce._core import (
    LARGEST,
    NUMBER,
    PADDED,
    Flags,
    Floats,
    InputError,
    Name,
    Note,
    Positions,
    Value,
    as_numbers,
    check_finite,
    holds_numbers,
    is_value,
    listing,
    ordered,
    plain,
    readable,
    row_of,
    show,
)
from tdce.schema.columns.base import AllowedValues, Arrays, Column, FittedColumn, Sizes
from tdce.schema.columns.wording import NONE, Wording, check_values

MAX_CATEGORIES = 1_000  # a text column with more different values is taken for an identifier

UNKNOWN = re.compile(
    r"\s*(unknown\b|unbekannt\b|n\.?/?a\.?$|not\s+(applicable|available|given|known|stated|specified|reported|disclosed)\b"
    r"|none\s+given|undisclosed|unspecified|no\s+answer|refused\s+to|don'?t\s+know|keine\s+angabe|\?+$|-+$|nan$|null$|missing$)",
    re.IGNORECASE,
)  # a category that is no advice: it is not proposed unless the user allows it
BELOW = re.compile(r"\b(below|under|less|fewer|up to|at most|unter|bis)\b|^\s*[<≤]", re.IGNORECASE)
AMOUNT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")

NUMBER_WITH_COMMA = re.compile(r"[+-]?([0-9]+(,[0-9]+)?|,[0-9]+)")
FEWEST_NUMBERS = 20  # a column with at least this many different numbers,
MOST_ODD = 3  # at most this many different words,
MOST_ODD_CELLS = 0.05  # and words in at most this share of its cells, is a column of numbers with slips in it


@dataclass(frozen=True)
class Categorical(Column):
    """A column of categories. A proposed value is one of `allowed` (by default all of them)."""

    kind, numbers = "categorical", 0
    name: Name
    categories: tuple[Value, ...]
    allowed: tuple[Value, ...] | None = None
    immutable: bool = False
    missing: bool = False
    order: tuple[Value, ...] = ()  # from the lowest to the highest; those not named have no place in it
    words: Wording = NONE

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle("categories", self._several("categories", self.categories))
        if self.allowed is not None:
            self._settle("allowed", self._several("allowed", self.allowed))
        self._settle("order", self._several("order", self.order))
        for value in self.order:
            if value not in self.categories or self.order.count(value) > 1:
                raise InputError(f"{self.name!r}: order must name different ones of {listing(self.categories)}, not "
                                 f"{listing(self.order)}")  # fmt: skip
        if not self.categories:
            raise InputError(f"{self.name!r}: a categorical column needs at least one category")
        if len(set(self.categories)) < len(self.categories):
            raise InputError(f"{self.name!r}: a category is listed twice: {listing(self.categories)}")
        for value in self.allowed or ():
            if value not in self.categories:
                raise InputError(f"{self.name!r}: allowed category {value!r} is not one of {listing(self.categories)}")
        check_values(self.name, self.words, self.categories)

    @classmethod
    def infer(cls, series: pd.Series[Any]) -> Self:
        present = series.dropna()
        categories = _numbers_of(present) if holds_numbers(series) else _categories_of(present)
        known = tuple(c for c in categories if not UNKNOWN.match(str(c)))
        allowed = known if 0 < len(known) < len(categories) else None
        order = _order_of(present, known)
        return cls(plain(series.name), categories, allowed, missing=len(present) < len(series), order=order)

    def describe(self) -> str:
        named = self.order + tuple(c for c in self.categories if c not in self.order)
        text = f"{len(self.categories)} categories: {listing(named, most=6)}"
        if self.order:
            text += f"; in this order{f' up to {self.order[-1]}' if len(self.order) < len(named) else ''}"
        if self.allowed is None:
            return text
        never = tuple(c for c in self.categories if c not in self.allowed)
        if len(never) < len(self.allowed):
            return f"{text}; never proposed: {listing(never)}"
        return f"{text}; allowed: {listing(self.allowed, most=6)}"

    def entry(self) -> dict[str, Any]:
        """Without an order that it has not."""
        return {key: value for key, value in super().entry().items() if value or key != "order"}

    @cached_property
    def proposable(self) -> Flags:
        """Which of the categories may be proposed, one flag each."""
        return np.array([self.allowed is None or c in self.allowed for c in self.categories], dtype=bool)

    def read(self, series: pd.Series[Any], most: float = np.inf) -> Floats:
        """The position of each cell's category."""
        series = readable(series)
        if any(isinstance(c, float) for c in self.categories) and holds_numbers(series):
            series = pd.Series(as_numbers(series), series.index, name=series.name)  # so that 0.1 of 32 bits is 0.1
        positions = {value: float(i) for i, value in enumerate(self.categories)}
        try:
            codes, values = pd.factorize(series.to_numpy() if series.dtype == object else series)  # for pandas 2
        except TypeError:
            raise InputError(f"{self.name!r} holds lists or other nested values, but was fitted with categories: "
                             f"{listing(self.categories)}") from None  # fmt: skip
        lookup = np.full(len(values) + 1, np.nan)  # the last one is for code -1, missing
        for i, value in enumerate(values):
            if plain(value) not in positions:
                raise InputError(
                    f"{self.name!r} has category {show(value)} in row {row_of(series, codes == i)}, "
                    f"not seen in fit; known: {listing(self.categories)}"
                )
            lookup[i] = positions[plain(value)]
        return lookup[codes]

    def cells(self, values: Floats) -> list[Value | None]:
        return [None if np.isnan(v) else self.categories[int(v)] for v in values]

    def stored(self, dtype: Any) -> Self:
        return replace(self, allowed=_fitting(self.categories if self.allowed is None else self.allowed, dtype))

    def plain(self) -> Self:
        return replace(self, allowed=None, order=(), immutable=False)

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, len(self.categories) - 1.0

    def within(self, low: float, high: float, allowed: Set[Value] | None) -> Self:
        if allowed is None:
            return self
        left = tuple(c for c, may in zip(self.categories, self.proposable, strict=True) if may and c in allowed)
        if not left:
            raise InputError(f"{self.name!r}: no category is left that may be proposed")
        return replace(self, allowed=left)

    @property
    def weights(self) -> int:
        return len(self.categories) + self.missing

    @property
    def ranks(self) -> tuple[float, ...]:
        """Those in order share the way from 0 to 1."""
        ranks = [2.0 * (i + bool(self.order)) for i in range(self.weights)]
        for i, value in enumerate(self.order):
            ranks[self.categories.index(value)] = i / max(len(self.order) - 1, 1)
        return tuple(ranks)

    def learn(self, values: Floats) -> FittedCategorical:
        return FittedCategorical(self, np.bincount(values.astype(int), minlength=len(self.categories)) / len(values))

    def layout(self) -> dict[str, tuple[str, Sizes]]:
        return {"average.{}": ("F64", (len(self.categories),))}

    def restored(self, arrays: Arrays) -> FittedCategorical:
        shares = arrays["average.{}"]
        if not ((shares >= 0).all() and np.isclose(shares.sum(), 1)):
            raise InputError(f"its shares of the categories of {self.name!r} do not add up to 1")
        return FittedCategorical(self, shares)


@dataclass(frozen=True)
class FittedCategorical(FittedColumn):
    """Encoded as a block of weights, one per category and, if it may be missing, one more at the end."""

    column: Categorical
    shares: Floats  # (categories,) of the table's rows
    dtype: Any = None

    def embed(self, values: Floats) -> Floats:
        return np.asarray(self._rows[np.where(np.isnan(values), len(self.shares), values).astype(int)])

    @cached_property
    def _rows(self) -> Floats:
        """(categories + 1, weights) what each category is encoded as, and after them what missing is."""
        size = len(self.shares)
        if self.column.missing:
            return np.eye(size + 1)
        return np.concatenate([np.eye(size), self.shares[None]])

    def unembed(self, x: Floats) -> Floats:
        return _largest(x, len(self.shares))

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, len(self.shares) - 1.0

    def knows(self, values: Floats) -> Flags:
        return np.asarray((values >= 0) & (values < len(self.shares)) & (values == np.floor(values)))

    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, Note]]:
        for i in np.flatnonzero(np.isin(values, np.flatnonzero(self.shares == 0))).tolist():
            yield i, Note("never_seen", (self.column.name,), values={"value": self.column.categories[int(values[i])]})

    def arrays(self) -> Arrays:
        return {"average.{}": self.shares}

    def choices(self, own: Floats) -> AllowedCategories:
        return AllowedCategories(self, own)


@dataclass(frozen=True)
class AllowedCategories(AllowedValues):
    """For each row the categories that the column allows."""

    learned: FittedCategorical
    own: Floats

    @cached_property
    def allowed(self) -> Flags:
        """(n, weights) which of them may be 1: those that may be proposed, and the row's own."""
        column, missing = self.learned.column, np.isnan(self.own)
        allowed = np.zeros((len(self.own), len(column.categories) + 1), dtype=bool)
        allowed[:, :-1] = column.proposable
        allowed[np.arange(len(self.own)), np.where(missing, len(column.categories), self.own).astype(int)] = True
        return allowed[:, : column.weights]

    def take(self, at: Flags | Positions) -> Self:
        part = super().take(at)
        vars(part).update(allowed=self.allowed[at])
        return part

    def free(self) -> Flags:
        return np.asarray(self.learned.column.proposable.sum() - self.allows(self.own) > 0)

    def allows(self, values: Floats) -> Flags:
        return np.where(np.isnan(values), False, self.learned.column.proposable[np.nan_to_num(values).astype(int)])

    def snap(self, x: Floats) -> Floats:
        """The largest of the weights that may be 1; where none may be, the row's own value, which then is missing."""
        values = _largest(np.where(self.allowed, x, -np.inf), len(self.learned.shares))
        return np.where(self.allowed.any(axis=1), values, self.own)

    def encoded_bounds(self) -> tuple[Floats, Floats, Flags]:
        none = np.zeros((len(self.own), 0))
        return none, none, self.allowed


def _largest(weights: Floats, size: int) -> Floats:
    """(n, weights) -> (n,) the position of the largest weight; one after `size` categories means missing."""
    position = weights.argmax(axis=1)
    return np.where(position == size, np.nan, position.astype(np.float64))


def _order_of(present: pd.Series[Any], categories: tuple[Value, ...]) -> tuple[Value, ...]:
    """The order that an ordered dtype has, or that the numbers in the words say: below 100, 100 to 500, 500 or more."""
    if isinstance(present.dtype, pd.CategoricalDtype) and present.cat.ordered:
        return categories
    amounts = {c: [float(n) for n in AMOUNT.findall(c)] for c in categories if isinstance(c, str)}
    keys = {c: (n[0], not BELOW.search(c), n[-1]) for c, n in amounts.items() if n}  # below 100, then 100 to 500
    if len(keys) < 3 or len(keys) < len(categories) - 1 or len(set(keys.values())) < len(keys):
        return ()
    return tuple(sorted(keys, key=lambda c: keys[c]))


def _numbers_of(present: pd.Series[Any]) -> tuple[Value, ...]:
    values = as_numbers(present)
    check_finite(present, values, LARGEST)
    distinct = np.unique(values)
    if len(distinct) > MAX_CATEGORIES:
        raise InputError(f"{present.name!r} has {len(distinct):,} different numbers, too many for categories (at most "
                         f"{MAX_CATEGORIES:,}); leave it numeric, or group them")  # fmt: skip
    return tuple(int(v) if v.is_integer() else v for v in distinct.tolist())


def _categories_of(present: pd.Series[Any]) -> tuple[Value, ...]:
    if isinstance(present.dtype, pd.CategoricalDtype):
        values = list(present.cat.remove_unused_categories().cat.categories)
    else:
        try:
            values = list(present.unique())
        except TypeError:
            raise InputError(f"{present.name!r} holds lists or other nested values; only text, numbers and "
                             "yes/no are supported") from None  # fmt: skip
    values = [plain(v) for v in values]
    for value in values:
        if not is_value(value):
            raise InputError(
                f"{present.name!r} holds {type(value).__name__} ({show(value, spell=str)}); only text, numbers and "
                "yes/no are supported: convert it (a date, for instance, to days before today) or drop the column"
            )
    if not isinstance(present.dtype, pd.CategoricalDtype):
        _check_odd_cells(present, values)
    if len(values) > MAX_CATEGORIES:
        raise InputError(
            f"{present.name!r} has {len(values):,} different values in {len(present):,} rows and looks like an "
            "identifier; drop the column, or convert it to numbers if it holds numbers"
        )
    return tuple(values) if isinstance(present.dtype, pd.CategoricalDtype) else ordered(values)


def _check_odd_cells(present: pd.Series[Any], values: list[Value]) -> None:
    """A few words among numbers are slips, and numbers with a comma in them are not words."""
    odd = _odd(present, values, NUMBER)
    if odd:
        strange = present.isin(odd)
        raise InputError(
            f"{present.name!r} holds numbers, but has {show(present[strange].iloc[0])} in row "
            f"{row_of(present, strange)}; correct the cell, leave it empty if the value is not known, or, if these are "
            "names and not numbers, give a schema that says categorical (in pandas: astype('category'))"
        )
    if odd is None and _odd(present, values, NUMBER_WITH_COMMA) is not None:
        example = next(v for v in values if "," in str(v))
        raise InputError(f"{present.name!r} holds numbers with a comma, such as {show(example)}; if it is decimal, "
                         "read the table with --decimal , (in pandas: decimal=','), otherwise remove it")  # fmt: skip


def _odd(present: pd.Series[Any], values: list[Value], pattern: re.Pattern[str]) -> list[Value] | None:
    """The values that do not match, if few do not and many do, and none is a code such as 007; else None."""
    text = {v: str(v).strip() for v in values}
    odd = [v for v in values if not pattern.fullmatch(text[v]) or PADDED.match(text[v])]
    few = len(odd) <= MOST_ODD and len(values) - len(odd) >= FEWEST_NUMBERS and not any(text[v].isdigit() for v in odd)
    return odd if few and present.isin(odd).mean() <= MOST_ODD_CELLS else None


def _fitting(categories: tuple[Value, ...], dtype: Any) -> tuple[Value, ...]:
    """The categories that a column of this dtype gives back: True and "unknown" are both true as a bool."""
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype):
        return categories
    try:
        stored = pd.array(list(categories), dtype=dtype)
        return tuple(c for c, back in zip(categories, stored, strict=True) if back == c)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        if len(categories) == 1:
            return ()
    return tuple(c for each in categories for c in _fitting((each,), dtype))  # one of them spoils the whole
