"""Categorical columns: a list of values, some of which may be proposed; encoded as one weight per category."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from tdce._core import (
    LARGEST_VALUE,
    NUMBER_TEXT,
    ZERO_PADDED,
    Flags,
    Floats,
    InputError,
    Name,
    Note,
    Positions,
    Value,
    as_numbers,
    check_finite,
    first_row,
    holds_numbers,
    is_value,
    listing,
    normalise_column,
    plain,
    show,
    sort_values,
    suggest,
)
from tdce.schema.columns.base import AllowedValues, Arrays, Column, FittedColumn, Sizes
from tdce.schema.columns.pooling import is_personal
from tdce.schema.columns.unlisted import RARE, unlisted_code, unlisted_name
from tdce.schema.columns.wording import NO_WORDING, Wording, check_values
from tdce.schema.roles import Role, is_nothing, never_categories

MAX_CATEGORIES = 1_000  # a text column with more distinct values counts as an identifier

NO_ANSWER = re.compile(
    r"\s*(unknown\b|unbekannt\b|n\.?/?a\.?$|not\s+(applicable|available|given|known|stated|specified|reported|disclosed)\b"
    r"|none\s+given|undisclosed|unspecified|no\s+answer|refused\s+to|don'?t\s+know|keine\s+angabe|\?+$|-+$|nan$|null$|missing$)",
    re.IGNORECASE,
)  # "unknown" is not advice: such a category is proposed only if the user allows it
BELOW = re.compile(r"\b(below|under|less|fewer|up to|at most|unter|bis)\b|^\s*[<≤]", re.IGNORECASE)
AMOUNT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")

NUMBER_WITH_COMMA = re.compile(r"[+-]?([0-9]+(,[0-9]+)?|,[0-9]+)")
MIN_DISTINCT_NUMBERS = 20  # a column with at least this many distinct numbers and
MAX_DISTINCT_WORDS = 3  # at most this many distinct words
MAX_WORD_SHARE = 0.05  # in at most this share of its cells is a numeric column with errors


@dataclass(frozen=True)
class Categorical(Column):
    """A categorical column. Proposed values come from `allowed` (by default, all categories).

    A raw value is a position in `categories`; categories not listed there are rare and have raw values beyond its end.
    """

    kind, numbers = "categorical", 0
    name: Name
    categories: tuple[Value, ...]
    allowed: tuple[Value, ...] | None = None
    immutable: bool = False
    missing: bool = False
    order: tuple[Value, ...] = ()  # from lowest to highest; a category not listed has no rank
    role: Role = "actionable"
    words: Wording = NO_WORDING
    rare: bool | None = None  # unlisted categories are rare and never proposed; None: only if `fit` pools some

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.rare, bool | None):
            raise InputError(f"{self.name!r}: rare {show(self.rare)} must be true, false or null")
        self._settle("categories", self._several("categories", self.categories))
        if self.allowed is not None:
            self._settle("allowed", self._several("allowed", self.allowed))
        self._settle("order", self._several("order", self.order))
        for value in self.order:
            if value not in self.categories or self.order.count(value) > 1:
                raise InputError(f"{self.name!r}: order must list each category at most once, not "
                                 f"{listing(self.order)}; known: {listing(self.categories)}")  # fmt: skip
        if not self.categories and not self.rare:
            raise InputError(f"{self.name!r}: a categorical column needs at least one category")
        if len(set(self.categories)) < len(self.categories):
            raise InputError(f"{self.name!r}: a category is listed twice: {listing(self.categories)}")
        for value in self.allowed or ():
            if value not in self.categories:
                known = listing(self.categories)
                raise InputError(f"{self.name!r}: allowed category {show(value)} is not one of {known}")
        check_values(self.name, self.words, self.categories)

    @classmethod
    def infer(cls, series: pd.Series[Any]) -> Self:
        present = series.dropna()
        categories = _infer_codes(present) if holds_numbers(series) else _infer_categories(present)
        name = plain(series.name)
        barred = never_categories(categories)
        known = tuple(c for c in categories if not (NO_ANSWER.match(str(c)) or is_nothing(name, c) or c in barred))
        allowed = known if 0 < len(known) < len(categories) else None
        order = _infer_order(present, known)
        return cls(name, categories, allowed, missing=len(present) < len(series), order=order)

    def describe(self) -> str:
        shown = self.order + tuple(c for c in self.categories if c not in self.order)
        text = f"{len(self.categories)} categories{': ' if shown else ''}{listing(shown, most=6)}"
        text += "; others are rare" if self.rare else ""
        if self.order:
            text += f"; in this order{f' up to {self.order[-1]}' if len(self.order) < len(shown) else ''}"
        if self.allowed is None:
            return text
        never = tuple(c for c in self.categories if c not in self.allowed)
        if len(never) < len(self.allowed):
            return f"{text}; never proposed: {listing(never)}"
        return f"{text}; allowed: {listing(self.allowed, most=6)}"

    def entry(self) -> dict[str, Any]:
        """The entry in a schema's JSON, without settings at their defaults."""
        nothing = {"order": (), "rare": None}
        return {key: value for key, value in super().entry().items() if key not in nothing or value != nothing[key]}

    @cached_property
    def proposable(self) -> Flags:
        """(categories,) which categories may be proposed."""
        return np.array([self.allowed is None or c in self.allowed for c in self.categories], dtype=bool)

    def read(self, series: pd.Series[Any], most: float = np.inf) -> Floats:
        """Map each cell to the position of its category."""
        series = normalise_column(series, self.categories)
        if any(isinstance(c, float) for c in self.categories) and holds_numbers(series):
            series = pd.Series(as_numbers(series), series.index, name=series.name)  # a float32 0.1 becomes 0.1
        positions = {value: float(i) for i, value in enumerate(self.categories)}
        try:
            codes, values = pd.factorize(series.to_numpy() if series.dtype == object else series)  # for pandas 2
        except TypeError:
            raise InputError(f"{self.name!r} holds lists or other nested values, but was fitted with categories: "
                             f"{listing(self.categories)}") from None  # fmt: skip
        lookup = np.full(len(values) + 1, np.nan)  # the last entry is for code -1, missing
        for i, value in enumerate(values):
            if plain(value) not in positions and self.rare and is_value(plain(value)):
                lookup[i] = len(self.categories) + unlisted_code(plain(value))
                continue
            if plain(value) not in positions:
                row, known = first_row(series, codes == i), listing(self.categories)
                raise InputError(
                    f"{self.name!r} has category {show(value)} in row {row}, "
                    f"not seen in fit; {suggest(value, self.categories)}known: {known}",
                    "no_category", column=str(self.name), value=show(value), row=row, known=known,
                )  # fmt: skip
            lookup[i] = positions[plain(value)]
        return lookup[codes]

    def cells(self, values: Floats) -> list[Value | None]:
        listed = len(self.categories)
        return [
            None if np.isnan(v) else self.categories[int(v)] if v < listed else unlisted_name(v - listed)
            for v in values.tolist()
        ]

    def for_dtype(self, dtype: Any) -> Self:
        return replace(self, allowed=_storable(self.categories if self.allowed is None else self.allowed, dtype))

    def unrestricted(self) -> Self:
        return replace(self, allowed=None, order=(), immutable=False, role="actionable")

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, len(self.categories) - 1.0

    def narrow(self, low: float, high: float, allowed: Set[Value] | None) -> Self:
        if allowed is None:
            return self
        left = tuple(c for c, may in zip(self.categories, self.proposable, strict=True) if may and c in allowed)
        if not left:
            raise InputError(f"{self.name!r}: no category is left to propose")
        return replace(self, allowed=left)

    @property
    def size(self) -> int:
        """The number of categories, with all rare ones counted as one."""
        return len(self.categories) + bool(self.rare)

    @property
    def weights(self) -> int:
        return self.size + self.missing

    @property
    def ranks(self) -> tuple[float, ...]:
        """The rank of each weight: ordered categories are spread from 0 to 1."""
        ranks = [2.0 * (i + bool(self.order)) for i in range(self.weights)]
        for i, value in enumerate(self.order):
            ranks[self.categories.index(value)] = i / max(len(self.order) - 1, 1)
        return tuple(ranks)

    def pooled(self, values: Floats, keep: Set[Value] = frozenset()) -> Self:
        """Make categories held by fewer than five people rare, unless the user set `rare`."""
        if self.rare is not None:
            return self
        few = is_personal(np.bincount(values.astype(int), minlength=len(self.categories)))
        kept = tuple(c for c, is_few in zip(self.categories, few, strict=True) if c in keep or not is_few)
        if len(kept) == len(self.categories):
            return self
        allowed = None if self.allowed is None else tuple(c for c in self.allowed if c in kept)
        order = tuple(c for c in self.order if c in kept)
        return replace(self, categories=kept, allowed=allowed, order=order, words=self.words.among(kept), rare=True)

    def fit(self, values: Floats) -> FittedCategorical:
        positions = np.minimum(values, self.size - 1).astype(int)
        return FittedCategorical(self, np.bincount(positions, minlength=self.size) / len(values))

    def layout(self) -> dict[str, tuple[str, Sizes]]:
        return {"average.{}": ("F64", (self.size,))}

    def restore(self, arrays: Arrays) -> FittedCategorical:
        shares = arrays["average.{}"]
        if not ((shares >= 0).all() and np.isclose(shares.sum(), 1)):
            raise InputError(f"its shares of the categories of {self.name!r} do not add up to 1")
        return FittedCategorical(self, shares)


@dataclass(frozen=True)
class FittedCategorical(FittedColumn):
    """A categorical column, encoded as a block of weights: one per category, one for all rare categories if there are
    any, and one for missing, at the end, if cells can be missing."""

    column: Categorical
    shares: Floats  # (size,) of the table's rows, by category
    dtype: Any = None

    def embed(self, values: Floats) -> Floats:
        known = self.nearest_known(values)
        return np.asarray(self._encodings[np.where(np.isnan(known), len(self.shares), known).astype(int)])

    @cached_property
    def _encodings(self) -> Floats:
        """(size + 1, weights) the encoding of each category, and of missing."""
        size = len(self.shares)
        if self.column.missing:
            return np.eye(size + 1)
        return np.concatenate([np.eye(size), self.shares[None]])

    def unembed(self, x: Floats) -> Floats:
        return _argmax(x, len(self.shares))

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, len(self.shares) - 1.0

    def knows(self, values: Floats) -> Flags:
        return np.asarray((values >= 0) & (values < len(self.shares)) & (values == np.floor(values)))

    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, Note]]:
        never = np.isin(values, np.flatnonzero(self.shares[: len(self.column.categories)] == 0))
        for i in np.flatnonzero(never | (values >= len(self.column.categories))).tolist():
            value = self.column.cells(values[[i]])[0]
            if value != RARE:
                yield i, Note("never_seen" if never[i] else "rare", (self.column.name,), values={"value": value})

    def nearest_known(self, values: Floats) -> Floats:
        """The values, with all rare categories replaced by one without a name."""
        return np.minimum(values, len(self.shares) - 1) if self.column.rare else values

    def arrays(self) -> Arrays:
        return {"average.{}": self.shares}

    def allowed_values(self, own: Floats) -> AllowedCategories:
        return AllowedCategories(self, own)


@dataclass(frozen=True)
class AllowedCategories(AllowedValues):
    """The categories that may be proposed to each row."""

    fitted: FittedCategorical
    own: Floats

    @cached_property
    def allowed(self) -> Flags:
        """(n, weights) which weights may be 1: those of proposable categories, and the row's own."""
        column, own = self.fitted.column, self.fitted.nearest_known(self.own)
        allowed = np.zeros((len(self.own), column.size + 1), dtype=bool)
        allowed[:, : len(column.categories)] = column.proposable
        allowed[np.arange(len(self.own)), np.where(np.isnan(own), column.size, own).astype(int)] = True
        return allowed[:, : column.weights]

    def take(self, at: Flags | Positions) -> Self:
        part = super().take(at)
        vars(part).update(allowed=self.allowed[at])
        return part

    def can_change(self) -> Flags:
        return np.asarray(self.fitted.column.proposable.sum() - self.allows(self.own) > 0)

    def allows(self, values: Floats) -> Flags:
        listed = values < len(self.fitted.column.categories)  # False for NaN too
        return np.asarray(np.append(self.fitted.column.proposable, False)[np.where(listed, values, -1).astype(int)])

    def snap(self, x: Floats) -> Floats:
        """The category with the largest weight among those that may be 1. The row's own value where none may be (it
        is then missing), or where the largest weight is that of rare categories."""
        values = _argmax(np.where(self.allowed, x, -np.inf), len(self.fitted.shares))
        stays = ~self.allowed.any(axis=1)
        if self.fitted.column.rare:
            stays |= x.argmax(axis=1) == len(self.fitted.column.categories)
        return np.where(stays, self.own, values)

    def encoded_bounds(self) -> tuple[Floats, Floats, Flags]:
        none = np.zeros((len(self.own), 0))
        return none, none, self.allowed


def _argmax(weights: Floats, size: int) -> Floats:
    """(n, weights) -> (n,) the position of the largest weight; NaN for the weight after the `size` categories."""
    position = weights.argmax(axis=1)
    return np.where(position == size, np.nan, position.astype(np.float64))


def _infer_order(present: pd.Series[Any], categories: tuple[Value, ...]) -> tuple[Value, ...]:
    """The order of an ordered dtype, or of amounts in the text: below 100, 100 to 500, 500 or more."""
    if isinstance(present.dtype, pd.CategoricalDtype) and present.cat.ordered:
        return categories
    amounts = {c: [float(n) for n in AMOUNT.findall(c)] for c in categories if isinstance(c, str)}
    keys = {c: (n[0], not BELOW.search(c), n[-1]) for c, n in amounts.items() if n}  # below 100, then 100 to 500
    if len(keys) < 3 or len(keys) < len(categories) - 1 or len(set(keys.values())) < len(keys):
        return ()
    return tuple(sorted(keys, key=lambda c: keys[c]))


def _infer_codes(present: pd.Series[Any]) -> tuple[Value, ...]:
    values = as_numbers(present)
    check_finite(present, values, LARGEST_VALUE)
    distinct = np.unique(values)
    if len(distinct) > MAX_CATEGORIES:
        raise InputError(f"{present.name!r} has {len(distinct):,} distinct numbers, too many for categories (at most "
                         f"{MAX_CATEGORIES:,}); leave it numeric, or group them")  # fmt: skip
    return tuple(int(v) if v.is_integer() else v for v in distinct.tolist())


def _infer_categories(present: pd.Series[Any]) -> tuple[Value, ...]:
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
        _check_mixed_cells(present, values)
    if len(values) > MAX_CATEGORIES:
        raise InputError(
            f"{present.name!r} has {len(values):,} distinct values in {len(present):,} rows and looks like an "
            "identifier; drop the column, or convert it to numbers if it holds numbers"
        )
    return tuple(values) if isinstance(present.dtype, pd.CategoricalDtype) else sort_values(values)


def _check_mixed_cells(present: pd.Series[Any], values: list[Value]) -> None:
    """Raise an error for likely mistakes: a few words among numbers, or numbers with a decimal comma."""
    words = _few_others(present, values, NUMBER_TEXT)
    if words:
        wrong = present.isin(words)
        raise InputError(
            f"{present.name!r} holds numbers, but has {show(present[wrong].iloc[0])} in row "
            f"{first_row(present, wrong)}; correct the cell, leave it empty if the value is not known, or, if these "
            "are codes and not numbers, give a schema that says categorical (in pandas: astype('category'))"
        )
    if words is None and _few_others(present, values, NUMBER_WITH_COMMA) is not None:
        example = next(v for v in values if "," in str(v))
        raise InputError(f"{present.name!r} holds numbers with a comma, such as {show(example)}; if it is decimal, "
                         "read the table with --decimal , (in pandas: decimal=','), otherwise remove it")  # fmt: skip


def _few_others(present: pd.Series[Any], values: list[Value], pattern: re.Pattern[str]) -> list[Value] | None:
    """The values that do not match, if few, with many others, and none a code such as 007; otherwise None."""
    text = {v: str(v).strip() for v in values}
    others = [v for v in values if not pattern.fullmatch(text[v]) or ZERO_PADDED.match(text[v])]
    few = len(others) <= MAX_DISTINCT_WORDS and len(values) - len(others) >= MIN_DISTINCT_NUMBERS
    if not few or any(text[v].isdigit() for v in others):
        return None
    return others if present.isin(others).mean() <= MAX_WORD_SHARE else None


def _storable(categories: tuple[Value, ...], dtype: Any) -> tuple[Value, ...]:
    """The categories that survive a round trip through this dtype; as a bool, "unknown" would come back as True."""
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype):
        return categories
    try:
        stored = pd.array(list(categories), dtype=dtype)
        return tuple(c for c, back in zip(categories, stored, strict=True) if back == c)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        if len(categories) == 1:
            return ()
    return tuple(c for each in categories for c in _storable((each,), dtype))  # not all fit: try each alone
