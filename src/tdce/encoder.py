"""From a data frame to an encoded tensor and back, without losing a bit of what did not change.

Two stages. `read` and `write` translate between a frame and a plain float64 matrix, one column a feature (a number
as it is, a category as its position, missing as NaN); this stage is exact. `embed` and `unembed` translate between
that matrix and the tensor that networks see: numbers on a normal scale, categories as one-hot blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from tdce.cells import (
    LARGEST,
    Floats,
    Name,
    Value,
    as_numbers,
    check_finite,
    check_table,
    holds_numbers,
    is_number,
    plain,
    readable,
    row_of,
    same,
)
from tdce.errors import InputError, listing, shown
from tdce.schema import Categorical, Feature, Numeric, Schema
from tdce.space import Space

Flags = NDArray[np.bool_]
KNOTS = 128
REACH = 10.0  # so many deviations beyond the data, encoded numbers end: no network has seen anything there


@dataclass(frozen=True)
class Scale:
    """A monotone piecewise linear map from a column's raw values to mean 0 and deviation 1.

    Knots stand at the column's quantiles, at the height of their normal score, so that long tails, spikes and
    levels all come out at a sane distance; beyond the data the overall slope goes on, for a while.  PAPER[16]
    """

    raw: Floats  # increasing
    score: Floats  # increasing

    @classmethod
    def fit(cls, values: Floats) -> Self:
        distinct, counts = np.unique(values, return_counts=True)
        middle = (np.cumsum(counts) - counts / 2) / len(values)  # mid-rank of each distinct value
        keep = np.unique(np.searchsorted(middle, np.linspace(0, 1, KNOTS)).clip(0, len(distinct) - 1))
        keep = np.union1d(keep, [0, len(distinct) - 1])
        raw, score = distinct[keep], ndtri(middle[keep])
        if raw[-1] - raw[0] < 1 / LARGEST:  # a constant column
            half = max(0.5, np.spacing(np.abs(raw[0])))
            return cls(np.array([raw[0] - half, raw[0] + half]), np.array([-0.5, 0.5]))
        embedded = np.interp(values, raw, score)
        return cls(raw, (score - embedded.mean()) / embedded.std())

    def embed(self, values: Floats) -> Floats:
        return _interpolate(values.clip(*self.ends), self.raw, self.score)

    def unembed(self, scores: Floats) -> Floats:
        return _interpolate(scores, self.score, self.raw)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The raw values beyond which all are encoded the same."""
        low, high = self.unembed(self.score[[0, -1]] + [-REACH, REACH])
        return float(low), float(high)


@dataclass(frozen=True)
class Encoder:
    """`encode` a frame to a tensor (n, width); `decode` it back, unchanged values bit for bit."""

    schema: Schema
    scales: dict[Name, Scale]  # of each numeric feature
    averages: dict[Name, Floats]  # of each categorical feature: the share of its categories

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema | None = None) -> Self:
        schema = Schema.infer(frame) if schema is None else schema
        raw = read(frame, schema, LARGEST)
        scales: dict[Name, Scale] = {}
        averages: dict[Name, Floats] = {}
        for feature, values in zip(schema, raw.T, strict=True):
            present = values[~np.isnan(values)]
            if len(present) == 0:
                raise InputError(f"{feature.name!r} has no value at all: every cell is missing; drop the column")
            if isinstance(feature, Numeric):
                scales[feature.name] = Scale.fit(present)
            else:
                counts = np.bincount(present.astype(int), minlength=len(feature.categories))
                averages[feature.name] = counts / len(present)
        return cls(schema, scales, averages)

    @cached_property
    def space(self) -> Space:
        return Space.of(self.schema)

    def encode(self, frame: pd.DataFrame) -> Tensor:
        """(n, width) float64; networks take it as float32."""
        return self.embed(self.read(frame))

    def decode(self, x: Tensor, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """A frame of raw values on the data's grid. With `like`, the frame that a row was made from: its other
        columns, its index and dtypes, and its very own value wherever the encoding has not moved."""
        raw = self.unembed(x)
        if like is None:
            return self.write(raw, pd.DataFrame(index=range(len(raw))))
        own = self.read(like)
        return self.write(np.where(self.same(x, self.embed(own)), own, raw), like)

    def read(self, frame: pd.DataFrame) -> Floats:
        """The frame's features as a float64 matrix (n, features), missing as NaN."""
        return read(frame, self.schema)

    def write(self, raw: Floats, like: pd.DataFrame) -> pd.DataFrame:
        """`like` with the values of `raw` in it: cells that say the same keep their own bits."""
        out = {}
        for feature, values in zip(self.schema, raw.T, strict=True):
            out[feature.name] = _write(feature, values, like)
        missing = [name for name in out if name not in like.columns]
        frame = like.copy()
        for name, column in out.items():
            if name not in missing:
                frame[name] = column
        return pd.concat([frame, *(out[name] for name in missing)], axis=1) if missing else frame

    def embed(self, raw: Floats) -> Tensor:
        """(n, features) -> (n, width) float64. A value missing where fit saw none counts as the average row."""
        x, every = np.zeros((len(raw), self.space.width)), np.arange(len(raw))
        for feature, values in zip(self.schema, raw.T, strict=True):
            gone = np.isnan(values)
            own = self.space.columns[feature.name]
            if isinstance(feature, Numeric):
                x[:, own[0]] = np.where(gone, 0.0, self.scales[feature.name].embed(values))
                if feature.missing:
                    x[every, np.where(gone, own[2], own[1])] = 1.0
            else:
                known = every if feature.missing else every[~gone]
                code = np.where(gone, len(feature.categories), values)[known].astype(int)
                x[known, own[0] + code] = 1.0
                if not feature.missing:
                    x[np.ix_(gone, own)] = self.averages[feature.name]
        return torch.from_numpy(x)

    def unembed(self, x: Tensor) -> Floats:
        """(n, width) -> (n, features): the largest weight of each block, numbers on the grid."""
        num, cat = self.space.split(x.detach().double().cpu())
        numbers, blocks = iter(num.numpy().T), iter(b.numpy() for b in self.space.blocks(cat))
        out = []
        for feature in self.schema:
            if isinstance(feature, Numeric):
                values = feature.round(self.scales[feature.name].unembed(next(numbers)))
                out.append(np.where(next(blocks).argmax(axis=1) == 1, np.nan, values) if feature.missing else values)
            else:
                code = next(blocks).argmax(axis=1)
                out.append(np.where(code == len(feature.categories), np.nan, code.astype(np.float64)))
        return np.stack(out, axis=1)

    def unfamiliar(self, raw: Floats) -> list[list[str]]:
        """(n,) what each row says that fit never saw: numbers beyond the data, categories nobody had, empty cells."""
        remarks: list[list[str]] = [[] for _ in raw]
        for feature, values in zip(self.schema, raw.T, strict=True):
            name, gone = feature.name, np.isnan(values)
            if not feature.missing:
                for i in np.flatnonzero(gone):
                    remarks[i].append(f"{name} is missing, which it never was in what was learned")
            if isinstance(feature, Numeric):
                low, high = self.scales[name].raw[[0, -1]]
                bottom, top = self.scales[name].ends
                for i in np.flatnonzero((values < low) | (values > high)):
                    far = "outside" if bottom <= values[i] <= top else "far outside"
                    remarks[i].append(
                        f"{name} {values[i]:,.10g} is {far} what was learned, {low:,.10g} to {high:,.10g}"
                    )
            else:
                nobody = np.flatnonzero(self.averages[name] == 0)
                for i in np.flatnonzero(np.isin(values, nobody)):
                    remarks[i].append(f"{name} {feature.categories[int(values[i])]} was never seen in what was learned")
        return remarks

    def same(self, x: Tensor, other: Tensor) -> Flags:
        """(n, features): which features of two encoded tensors are equal (in float32)."""
        return ~self.space.moved(x.float(), other.float()).numpy()


def read(frame: pd.DataFrame, schema: Schema, most: float = np.inf) -> Floats:
    """A frame's features as a float64 matrix; anything that does not fit the schema, or is larger than `most`, is
    named."""
    check_table(frame)
    absent = [name for name in schema.names if name not in frame.columns]
    if absent:
        raise InputError(f"column {absent[0]!r} is not in the table; it has: {listing(frame.columns)}")
    for name in schema.names:
        if isinstance(frame[name], pd.DataFrame):
            raise InputError(f"column {name!r} stands twice; rename or drop one of them")
    return np.stack([_read(feature, frame[feature.name], most) for feature in schema], axis=1)


def _read(feature: Feature, series: pd.Series[Any], most: float = np.inf) -> Floats:
    series = readable(series)
    if isinstance(feature, Numeric):
        return _read_numbers(feature, series, most)
    positions = {value: float(i) for i, value in enumerate(feature.categories)}
    try:
        codes, values = pd.factorize(series.to_numpy() if series.dtype == object else series)  # for pandas 2
    except TypeError:
        raise InputError(f"{feature.name!r} holds lists or other nested values, but was fitted with categories: "
                         f"{listing(feature.categories)}") from None  # fmt: skip
    lookup = np.full(len(values) + 1, np.nan)  # the last one stands for code -1, missing
    for i, value in enumerate(values):
        if plain(value) not in positions:
            raise InputError(
                f"{feature.name!r} has category {shown(value)} in row {row_of(series, codes == i)}, "
                f"not seen in fit; known: {listing(feature.categories)}"
            )
        lookup[i] = positions[plain(value)]
    return lookup[codes]


def _read_numbers(feature: Numeric, series: pd.Series[Any], most: float) -> Floats:
    if not holds_numbers(series):
        series = series.astype(object)  # so that a category dtype over numbers shows its numbers
        bad = np.array([not (gone or is_number(v)) for v, gone in zip(series, series.isna(), strict=True)], dtype=bool)
        if bad.any():
            raise InputError(
                f"{feature.name!r} must hold numbers ({feature.describe()}), but has {shown(series[bad].iloc[0])} in "
                f"row {row_of(series, bad)}; correct the cell, or leave it empty if the value is not known"
            )
    values = as_numbers(series)
    check_finite(series, values, most)
    return values


def _write(feature: Feature, values: Floats, like: pd.DataFrame) -> pd.Series[Any]:
    """One column: `like`'s own cells where they say the same, else the new values in `like`'s dtype."""
    if feature.name not in like.columns:
        return pd.Series(_cells(feature, values), index=like.index, name=feature.name).infer_objects()
    own = like[feature.name]
    changed = ~same(values, _read(feature, own))
    if not changed.any():
        return own
    if isinstance(own.dtype, pd.SparseDtype):
        return _changed(feature, values, changed, readable(own)).astype(own.dtype)
    return _changed(feature, values, changed, own.copy())


def _changed(feature: Feature, values: Floats, changed: Flags, column: pd.Series[Any]) -> pd.Series[Any]:
    """The column with some of its cells changed in place."""
    cells: list[Any] = _cells(feature, values[changed])
    if isinstance(column.dtype, pd.CategoricalDtype):
        new = [c for c in dict.fromkeys(cells) if c is not None and c not in column.cat.categories]
        column = column.cat.add_categories(new) if new else column
    elif pd.api.types.is_integer_dtype(column.dtype):
        cells = [c if c is None else round(c) for c in cells]
    elif isinstance(next(iter(column.dropna()), None), Decimal):
        cells = [c if c is None else Decimal(str(c)) for c in cells]
    column.iloc[np.flatnonzero(changed)] = pd.array(cells, dtype=cast(Any, column.dtype))
    return column


def _cells(feature: Feature, values: Floats) -> list[Value | None]:
    if isinstance(feature, Categorical):
        return [None if np.isnan(v) else feature.categories[int(v)] for v in values]
    whole = feature.step is not None and float(feature.step).is_integer()
    if feature.levels is not None:
        whole = all(float(v).is_integer() for v in feature.levels)
    return [None if np.isnan(v) else int(v) if whole and float(v).is_integer() else float(v) for v in values]


def _interpolate(at: Floats, xs: Floats, ys: Floats) -> Floats:
    """Piecewise linear through the points, with the overall slope beyond them.

    One operation at a time, so that no processor may fuse two and round otherwise.
    """
    left = np.searchsorted(xs[1:-1], at, side="right")  # the point that a segment begins at
    within = np.clip(at, xs[0], xs[-1])
    share = (within - xs[left]) / np.diff(xs)[left]
    inside = np.where(within == xs[-1], ys[-1], ys[left] + share * np.diff(ys)[left])
    return np.asarray(inside + (at - within) * ((ys[-1] - ys[0]) / (xs[-1] - xs[0])))
