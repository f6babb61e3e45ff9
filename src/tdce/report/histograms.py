"""Where people stand in each feature, class by class: counts in bins, never anybody's own value."""

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

FEWEST = 5  # real people of a class in a bin; fewer are not shown
BINS = 18  # of a number, about
CATEGORIES = 30  # bins of a column with more: the most common ones, and all others in the last
TAIL = 4  # times the distance of the quartiles: how far beyond them an axis goes at most
WIDTHS = (1.0, 2.0, 2.5, 5.0, 10.0)  # of bins, times a power of ten


@dataclass(frozen=True)
class Spread:
    """One feature: how many people of each class there are in each bin."""

    name: Name
    counts: tuple[tuple[int, ...], ...]  # (classes, bins)
    low: float = 0.0  # of a number: where the first bin begins; it also holds all who are below
    high: float = 1.0  # where the last bin ends; it also holds all who are above
    categories: tuple[int, ...] = ()  # the raw value of each bin; -1: all others. None: it is a number
    single: bool = False  # of a number: whether each bin is one number, in its middle
    span: float = 1.0  # of a number: from its 5 % to its 95 % quantile

    @property
    def bins(self) -> int:
        return len(self.counts[0])

    @property
    def ends(self) -> tuple[float, float]:
        """The first and the last value of the axis of a number."""
        half = (self.high - self.low) / self.bins / 2 if self.single else 0.0
        return self.low + half, self.high - half

    def bin(self, values: Floats) -> Positions:
        """(n,) the bin of each raw value; -1 if it is missing."""
        known = ~np.isnan(values)
        at = np.full(len(values), -1, dtype=np.int64)
        if self.categories:
            others = self.bins - 1
            bins = {value: i for i, value in enumerate(self.categories)}
            at[known] = [bins.get(int(value), others) for value in values[known]]
        else:
            share = (values[known] - self.low) / (self.high - self.low)
            at[known] = np.floor(np.clip(share, 0, 1) * self.bins).clip(max=self.bins - 1)
        return at

    def below(self, values: Floats) -> Floats:
        """(classes, n) the share of each class that is below a number, or that has the same category."""
        counts = np.array(self.counts, dtype=np.float64)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        at = self.bin(values)
        inside = np.where(at < 0, np.nan, shares[:, at])
        if self.categories:
            return inside
        part = self.place(values) * self.bins - at  # of its bin; where each number has one, nobody in it is below
        return np.asarray(shares.cumsum(axis=1)[:, at] - inside * (1 - (0.0 if self.single else part)))

    def place(self, values: Floats) -> Floats:
        """(n,) where on the axis raw values stand, from 0 to 1: those beyond it at its end, missing ones nowhere."""
        if self.categories:
            at = self.bin(values)
            return np.where(at < 0, np.nan, (at + 0.5) / self.bins)
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True)
class Population:
    """The people beside whom a person is shown: synthetic ones, or real ones in bins of at least five."""

    real: bool
    people: int
    classes: tuple[Value, ...]  # what the model says of them
    sizes: tuple[int, ...]  # of the classes
    spreads: tuple[Spread, ...]  # one for each feature

    @classmethod
    def of(cls, encoder: Encoder, raw: Floats, y: Positions, classes: tuple[Value, ...], real: bool) -> Self:
        """Of raw values (n, features) and class numbers (n,)."""
        unmarked = encoder.unmarked(raw)
        every = zip(encoder.schema, unmarked.T, spans(unmarked).tolist(), strict=True)
        spreads = [_counted(_axis(column, values, span), values, y, len(classes)) for column, values, span in every]
        sizes = tuple(np.bincount(y, minlength=len(classes)).tolist())
        return cls(real, len(raw), classes, sizes, tuple(map(_without_few, spreads) if real else spreads))

    def __getitem__(self, name: Name) -> Spread:
        for spread in self.spreads:
            if spread.name == name:
                return spread
        raise InputError(f"this population has no feature {name!r}; it has: {listing(s.name for s in self.spreads)}")


def answers_of(output: Output) -> tuple[Value, ...]:
    """What the model may say: its classes, or the groups of its number."""
    if output.classes:
        return output.classes
    edges = [f"{edge:,.4g}" if abs(edge) < 1e4 else f"{edge:,.0f}" for edge in output.edges]
    between = [f"{low} to {high}" for low, high in pairwise(edges)]
    return (f"up to {edges[0]}", *between, f"above {edges[-1]}") if edges else ("any",)


def _axis(column: Column, values: Floats, span: float) -> Spread:
    """The bins, still empty. Of a number they go from and to round values, so that no end is a person's own."""
    known = values[~np.isnan(values)]
    if isinstance(column, Numeric):
        low, high = _ends(known) if len(known) else (column.low, column.high)
        step = column.step or 0.0
        width = _width((high - low) / BINS, step)
        first, last = floor(low / width + 1e-9), max(ceil(high / width - 1e-9), floor(low / width + 1e-9) + 1)
        single = width == step
        bins, begin = last - first + single, first * width - single * step / 2
        return Spread(column.name, ((0,) * bins,), begin, begin + bins * width, single=single, span=span)
    found, counts = np.unique(known.astype(np.int64), return_counts=True)
    shown = found.tolist() or [0]  # of a kind that nothing more is known of: the values there are
    if isinstance(column, Categorical):
        order = [column.categories.index(value) for value in column.order]
        shown = [*order, *(i for i in range(len(column.categories)) if i not in order)]
    if len(shown) > CATEGORIES:
        common = set(found[np.argsort(-counts, kind="stable")[: CATEGORIES - 1]].tolist())
        shown = [*(i for i in shown if i in common), -1]
    return Spread(column.name, ((0,) * len(shown),), categories=tuple(shown))


def _ends(values: Floats) -> tuple[float, float]:
    """Of an axis: without a hundredth of the people at either end, and without a long tail."""
    low, first, third, high = np.quantile(values, [0.01, 0.25, 0.75, 0.99]).tolist()
    reach = TAIL * (third - first)
    return (low, high) if reach == 0 else (max(low, first - reach), min(high, third + reach))


def _width(least: float, step: float) -> float:
    """A round width, of whole steps, that is no less."""
    if least <= 0:
        return step or 1.0
    power = 10.0 ** floor(log10(least))
    width = next(power * w for w in WIDTHS if power * w >= least * (1 - 1e-9))
    return ceil(width / step - 1e-9) * step if step else width


def _counted(axis: Spread, values: Floats, y: Positions, classes: int) -> Spread:
    at = axis.bin(values)
    table = np.zeros((classes, axis.bins), dtype=np.int64)
    np.add.at(table, (y[at >= 0], at[at >= 0]), 1)
    return replace(axis, counts=tuple(map(tuple, table.tolist())))


def _without_few(spread: Spread) -> Spread:
    return replace(spread, counts=tuple(tuple(n if n >= FEWEST else 0 for n in row) for row in spread.counts))
