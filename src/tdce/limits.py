"""What may be proposed for each queried row: the schema's rules, met by every line that is returned."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce.cells import Flags, Floats, Name, Positions, Value, as_numbers, same
from tdce.encoder import Encoder
from tdce.errors import InputError, listing
from tdce.schema import Categorical, Feature, Numeric


class Reach(NamedTuple):
    low: Tensor  # (n, num) encoded numbers
    high: Tensor  # (n, num)
    allowed: Tensor  # (n, cat) bool

    @classmethod
    def whole(cls, low: Tensor, high: Tensor, cat: Tensor) -> Reach:
        """Anything between these numbers, every category."""
        return cls(low.expand(len(cat), -1), high.expand(len(cat), -1), torch.ones_like(cat, dtype=torch.bool))


class Limits:
    """The queried rows and, for each of their features, what a counterfactual may say instead.

    It holds the raw values alone until something is asked of it: of many rows, ask about some at a time (`take`).

    A value is the row's own, or it is on the grid, in the range, in the direction, among the allowed categories, and
    fits the column's dtype. Missing is never proposed. Immutable features keep their own value.
    """

    def __init__(self, encoder: Encoder, rows: pd.DataFrame, immutable: Iterable[Name] = ()) -> None:
        frozen = tuple(immutable)
        unknown = [name for name in frozen if name not in encoder.schema.names]
        if unknown:
            raise InputError(f"immutable: there is no feature {unknown[0]!r}; known: {listing(encoder.schema.names)}")
        self.encoder = encoder
        self.own: Floats = encoder.read(rows)  # (n, features)
        self.dtypes = [_dense(rows[name].dtype) for name in encoder.schema.names]
        self.features = tuple(
            _as_stored(replace(f, immutable=f.immutable or f.name in frozen), dtype)
            for f, dtype in zip(encoder.schema, self.dtypes, strict=True)
        )

    @classmethod
    def of(cls, encoder: Encoder, rows: pd.DataFrame, immutable: Iterable[Name] = ()) -> Limits:
        return cls(encoder, rows, immutable)

    @property
    def immutable(self) -> tuple[Name, ...]:
        return tuple(f.name for f in self.features if f.immutable)

    def take(self, at: Flags | Positions) -> Limits:
        """The limits of some of the rows."""
        part = copy.copy(self)
        part.own = self.own[at]
        for made in ("x", "ranges"):
            part.__dict__.pop(made, None)
        return part

    @cached_property
    def x(self) -> Tensor:
        """(n, width) the rows as networks see them."""
        return self.encoder.embed(self.own).float()

    @cached_property
    def ranges(self) -> dict[int, tuple[Floats, Floats]]:
        """By the position of a numeric feature: the lowest and the highest number that may be proposed, (n,) each."""
        return {i: _range(f, self.own[:, i]) for i, f in enumerate(self.features) if isinstance(f, Numeric)}

    def free(self) -> Flags:
        """(n, features): which features have any other value that may be proposed."""
        free = np.zeros(self.own.shape, dtype=bool)
        for i, feature in enumerate(self.features):
            own = self.own[:, i]
            if feature.immutable:
                continue
            if isinstance(feature, Numeric):
                low, high = self.ranges[i]
                free[:, i] = (low <= high) & ~((low == high) & (low == own))
            else:
                free[:, i] = feature.proposable.sum() - _at(feature.proposable, own) > 0
        return free

    def snap(self, x_cf: Tensor) -> Floats:
        """Encoded proposals (n, width) -> raw values (n, features) that keep every rule."""
        num, cat = self.encoder.space.split(x_cf.detach().double())
        numbers = iter(num.numpy().T)
        blocks = iter(b.numpy() for b in self.encoder.space.blocks(cat))
        own = self.own
        out = []
        for i, feature in enumerate(self.features):
            if isinstance(feature, Numeric):
                values = self.encoder.scales[feature.name].unembed(next(numbers))
                state = next(blocks) if feature.missing else None
                out.append(_snap_number(feature, values, state, own[:, i], self.ranges[i], self.dtypes[i]))
            else:
                out.append(_snap_category(feature, next(blocks), own[:, i]))
        raw = np.stack(out, axis=1)
        unmoved = self.encoder.same(x_cf, self.x)
        fixed = unmoved | np.array([f.immutable for f in self.features])
        return np.where(fixed, own, raw)

    def reach(self) -> Reach:
        """How far the encoded rows may go: the lowest and highest numbers, and which category weights may be 1."""
        low, high, allowed = [], [], []
        own = self.own
        for i, feature in enumerate(self.features):
            gone = np.isnan(own[:, i])
            if isinstance(feature, Numeric):
                scale = self.encoder.scales[feature.name]
                bottom, top = self.ranges[i]
                ends = np.clip([bottom, top], scale.raw[0], scale.raw[-1])
                ends[:, bottom > top] = np.nan  # nothing may be proposed
                ends = np.where(np.isnan(ends), own[:, i], ends)
                ends = np.where(np.isnan(ends), 0.0, scale.embed(ends))
                low.append(ends[0])
                high.append(ends.max(axis=0))
                if feature.missing:
                    allowed.append(np.stack([np.ones_like(gone), gone], axis=1))
            else:
                here = np.zeros((len(own), len(feature.categories) + feature.missing), dtype=bool)
                here[:, : len(feature.categories)] = feature.proposable
                here[~gone, own[~gone, i].astype(int)] = True
                here[:, len(feature.categories) :] = gone[:, None]
                allowed.append(here)
        none = np.zeros((len(own), 0))
        lowest, highest = (torch.from_numpy(np.stack(ends, axis=1) if ends else none).float() for ends in (low, high))
        return Reach(lowest, highest, torch.from_numpy(np.concatenate([none.astype(bool), *allowed], axis=1)))

    def kept(self, raw: Floats) -> Flags:
        """(n,): whether every value is the row's own or one that may be proposed."""
        kept = np.ones(len(raw), dtype=bool)
        for i, feature in enumerate(self.features):
            value, own = raw[:, i], self.own[:, i]
            unchanged = same(value, own)
            if feature.immutable:
                kept &= unchanged
            elif isinstance(feature, Numeric):
                low, high = self.ranges[i]
                inside = (value >= low) & (value <= high)
                kept &= unchanged | (inside & (feature.round(value) == value))
            else:
                kept &= unchanged | _at(feature.proposable, value)
        return kept

    def note(self) -> str:
        """Why nothing can change in a row that is not free."""
        stuck = [str(f.name) for f in self.features if not f.immutable]
        if not stuck:
            return "every feature is immutable"
        parts = [f"no other allowed value for {listing(stuck)}"]
        if self.immutable:
            parts.append(f"immutable: {listing(self.immutable)}")
        return "; ".join(parts)


def _range(feature: Numeric, own: Floats) -> tuple[Floats, Floats]:
    """The lowest and the highest number on the grid that may be proposed to rows with these values of their own."""
    low, high = np.full_like(own, feature.low), np.full_like(own, feature.high)
    if feature.direction == "increase":
        low = np.fmax(low, own)
    elif feature.direction == "decrease":
        high = np.fmin(high, own)
    return feature.round(low, "up"), feature.round(high, "down")


def _snap_number(
    feature: Numeric, values: Floats, state: Floats | None, own: Floats, within: tuple[Floats, Floats], dtype: Any
) -> Floats:
    (low, high), rounded, here = within, feature.round(values), feature.round(own)
    snapped = np.clip(rounded, low, np.maximum(low, high))
    stays = (rounded == here) | (snapped == here) | (low > high)
    if _is_narrow_float(dtype):
        snapped = _narrow(snapped, dtype)
        stays |= (snapped != feature.round(snapped)) | (snapped < low) | (snapped > high)
    if state is not None:
        stays |= np.isnan(own) & (state.argmax(axis=1) == 1)  # still missing
    return np.where(stays, own, snapped)


def _as_stored(feature: Feature, dtype: Any) -> Feature:
    """The feature as a column of this dtype can hold it: its kind of values, whole numbers within its range."""
    if isinstance(feature, Categorical):
        allowed = feature.categories if feature.allowed is None else feature.allowed
        return replace(feature, allowed=_fitting(allowed, dtype))
    if not _takes_numbers(dtype):  # all its cells are missing: as words, dates or flags
        return replace(feature, immutable=True)
    if not pd.api.types.is_integer_dtype(dtype):
        return feature
    bounds = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    top = float(bounds.max) if float(bounds.max) <= bounds.max else float(np.nextafter(float(bounds.max), 0))
    low, high = max(feature.low, float(bounds.min)), min(feature.high, top)
    levels = None if feature.levels is None else tuple(v for v in feature.levels if v.is_integer())
    if low > high or levels == ():
        return replace(feature, immutable=True)
    step = 1.0 if feature.step is None else float(Decimal(str(feature.step)).as_integer_ratio()[0])  # 2.5 -> 5
    return replace(feature, low=low, high=high, step=step, levels=levels)


def _takes_numbers(dtype: Any) -> bool:
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype):
        return True
    return pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)


def _dense(dtype: Any) -> Any:
    return dtype.subtype if isinstance(dtype, pd.SparseDtype) else dtype


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


def _snap_category(feature: Categorical, weights: Floats, own: Floats) -> Floats:
    """The largest weight among the allowed categories and the row's own; missing only where it was missing."""
    size = len(feature.categories)
    candidate = np.zeros(weights.shape, dtype=bool)
    candidate[:, :size] = feature.proposable
    here = np.flatnonzero(~np.isnan(own))
    candidate[here, own[here].astype(int)] = True
    if feature.missing:
        candidate[:, size] = np.isnan(own)
    code = np.where(candidate, weights, -np.inf).argmax(axis=1)
    if not feature.missing:  # missing here but never in fit: stays so if nothing may be proposed
        return np.where(candidate.any(axis=1), code.astype(np.float64), own)
    return np.where(code == size, np.nan, code.astype(np.float64))


def _at(flags: Flags, codes: Floats) -> Flags:
    """flags[code] for each code, False where the code is missing."""
    return np.where(np.isnan(codes), False, flags[np.nan_to_num(codes).astype(int)])


def _is_narrow_float(dtype: Any) -> bool:
    return pd.api.types.is_float_dtype(dtype) and dtype.itemsize < 8


def _narrow(values: Floats, dtype: Any) -> Floats:
    """The values as a column of fewer bits gives them back."""
    with np.errstate(over="ignore"):
        return as_numbers(pd.Series(values).astype(dtype))
