"""Histograms of a population, by feature and class: counts in bins, never a person's own value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log10
from typing import Self

import numpy as np

from tdce._core import Floats, InputError, Name, Positions, Value, listing
from tdce.metrics import spans
from tdce.models import Output
from tdce.schema import Categorical, Column, Encoder, Numeric

MIN_BIN_ROWS = 5  # real rows of a class in a bin; fewer are dropped, so that nobody can be recognised
NUMERIC_BINS = 18  # approximately, because widths are rounded
MAX_CATEGORY_BINS = 30  # with more, the last bin holds all but the most common categories
MAX_TAIL = 4  # how far an axis goes beyond the quartiles, in interquartile ranges
ROUND_WIDTHS = (1.0, 2.0, 2.5, 5.0, 10.0)  # of bins, times a power of ten


@dataclass(frozen=True)
class Histogram:
    """The number of rows of each class in each bin of one feature."""

    name: Name
    counts: tuple[tuple[int, ...], ...]  # (classes, bins)
    low: float = 0.0  # numeric: lower edge of the first bin, which also counts all below
    high: float = 1.0  # numeric: upper edge of the last bin, which also counts all above
    categories: tuple[int, ...] = ()  # the raw value of each bin, -1: all others; empty: numeric
    discrete: bool = False  # numeric: each bin holds exactly one number, at its centre
    span: float = 1.0  # numeric: from the 5 % to the 95 % quantile

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.counts[0])

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last value on a numeric axis."""
        half = (self.high - self.low) / self.bins / 2 if self.discrete else 0.0
        return self.low + half, self.high - half

    def bin_index(self, values: Floats) -> Positions:
        """(n,) the bin of each raw value; -1 if missing."""
        known = ~np.isnan(values)
        index = np.full(len(values), -1, dtype=np.int64)
        if self.categories:
            others = self.bins - 1
            bins = {value: i for i, value in enumerate(self.categories)}
            index[known] = [bins.get(int(value), others) for value in values[known]]
        else:
            share = (values[known].clip(self.low, self.high) - self.low) / (self.high - self.low)
            index[known] = np.floor(share * self.bins).clip(max=self.bins - 1)
        return index

    def shares(self, values: Floats) -> Floats:
        """(classes, n) the share of each class below a number, or with the same category."""
        counts = np.array(self.counts, dtype=np.float64)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        index = self.bin_index(values)
        inside = np.where(index < 0, np.nan, shares[:, index])
        if self.categories:
            return inside
        part = self.position(values) * self.bins - index  # the part of the bin below; none in a discrete bin
        return np.asarray(shares.cumsum(axis=1)[:, index] - inside * (1 - (0.0 if self.discrete else part)))

    def position(self, values: Floats) -> Floats:
        """(n,) the positions of raw values on the axis, from 0 to 1; clipped to its ends, NaN if missing."""
        if self.categories:
            index = self.bin_index(values)
            return np.where(index < 0, np.nan, (index + 0.5) / self.bins)
        return np.asarray((values.clip(self.low, self.high) - self.low) / (self.high - self.low))


@dataclass(frozen=True)
class Population:
    """The rows a report compares a person with: synthetic rows, or real ones in bins of at least five."""

    real: bool
    rows: int
    classes: tuple[Value, ...]  # the model's outcomes
    class_sizes: tuple[int, ...]
    histograms: tuple[Histogram, ...]  # one for each feature

    @classmethod
    def of(cls, encoder: Encoder, raw: Floats, y: Positions, classes: tuple[Value, ...], real: bool) -> Self:
        """Count raw values (n, features) with class numbers (n,)."""
        unmarked = encoder.marks_as_missing(raw)
        features = zip(encoder.schema, unmarked.T, spans(unmarked).tolist(), strict=True)
        histograms = [
            _fill(_empty_histogram(column, values, span), values, y, len(classes)) for column, values, span in features
        ]
        class_sizes = tuple(np.bincount(y, minlength=len(classes)).tolist())
        shown = map(_drop_small_counts, histograms) if real else histograms
        return cls(real, len(raw), classes, class_sizes, tuple(shown))

    def __getitem__(self, name: Name) -> Histogram:
        for histogram in self.histograms:
            if histogram.name == name:
                return histogram
        known = listing(histogram.name for histogram in self.histograms)
        raise InputError(f"the population has no feature {name!r}; it has: {known}")


def outcome_names(output: Output) -> tuple[Value, ...]:
    """The model's possible outcomes: its classes, or the groups of a predicted number."""
    if output.classes:
        return output.classes
    edges = [f"{edge:,.4g}" if abs(edge) < 1e4 else f"{edge:,.0f}" for edge in output.edges]
    between = [f"{low} to {high}" for low, high in pairwise(edges)]
    return (f"up to {edges[0]}", *between, f"above {edges[-1]}") if edges else ("any",)


def _empty_histogram(column: Column, values: Floats, span: float) -> Histogram:
    """The bins of a feature, with counts of 0. Numeric bins have round edges, so that no edge is a person's value."""
    known = values[~np.isnan(values)]
    if isinstance(column, Numeric):
        low, high = _axis_limits(known) if len(known) else (column.low, column.high)
        step = column.step or 0.0
        width = _round_width((high - low) / NUMERIC_BINS, step)
        if width < (finest := 4 * float(np.spacing(max(abs(low), abs(high))))):  # 1e149 + 1 is the same number
            width = _round_width(finest, 0.0)
        first, last = floor(low / width + 1e-9), max(ceil(high / width - 1e-9), floor(low / width + 1e-9) + 1)
        discrete = width == step
        bins, start = last - first + discrete, first * width - discrete * step / 2
        return Histogram(column.name, ((0,) * bins,), start, start + bins * width, discrete=discrete, span=span)
    present, counts = np.unique(known.astype(np.int64), return_counts=True)
    shown = present.tolist() or [0]  # for columns that list no categories: the values that occur
    if isinstance(column, Categorical):
        order = [column.categories.index(value) for value in column.order]
        shown = [*order, *(i for i in range(len(column.categories)) if i not in order)]
    if len(shown) > MAX_CATEGORY_BINS:
        common = set(present[np.argsort(-counts, kind="stable")[: MAX_CATEGORY_BINS - 1]].tolist())
        shown = [*(i for i in shown if i in common), -1]
    elif isinstance(column, Categorical) and column.rare:
        shown = [*shown, -1]
    return Histogram(column.name, ((0,) * len(shown),), categories=tuple(shown))


def _axis_limits(values: Floats) -> tuple[float, float]:
    """The ends of an axis, without one percent of the rows at either end and without long tails."""
    low, first, third, high = np.quantile(values, [0.01, 0.25, 0.75, 0.99]).tolist()
    reach = MAX_TAIL * (third - first)
    return (low, high) if reach == 0 else (max(low, first - reach), min(high, third + reach))


def _round_width(least: float, step: float) -> float:
    """The smallest round width that is at least `least`, in whole steps."""
    if least <= 0:
        return step or 1.0
    power = max(10.0 ** floor(log10(least)), float(np.finfo(np.float64).smallest_subnormal))
    width = next(power * w for w in ROUND_WIDTHS if power * w >= least * (1 - 1e-9))
    return ceil(width / step - 1e-9) * step if step else width


def _fill(empty: Histogram, values: Floats, y: Positions, classes: int) -> Histogram:
    index = empty.bin_index(values)
    counts = np.zeros((classes, empty.bins), dtype=np.int64)
    np.add.at(counts, (y[index >= 0], index[index >= 0]), 1)
    return replace(empty, counts=tuple(map(tuple, counts.tolist())))


def _drop_small_counts(histogram: Histogram) -> Histogram:
    counts = tuple(tuple(n if n >= MIN_BIN_ROWS else 0 for n in row) for row in histogram.counts)
    return replace(histogram, counts=counts)
