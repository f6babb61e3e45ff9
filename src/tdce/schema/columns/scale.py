"""The normal scale of a numeric column, learned from a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy.special import ndtri

from tdce._core import LARGEST_VALUE, Floats
from tdce.schema.columns.pooling import PEOPLE_PER_KNOT, pool_quantile

MAX_KNOTS = 128
LARGEST_SCORE = 1e6  # of an encoded number, in standard deviations
SCORE_MARGIN = 10.0  # scores are clipped this many deviations beyond the data, where networks saw nothing


@dataclass(frozen=True)
class Scale:
    """A monotone piecewise linear map from a column's raw values to scores of mean 0 and standard deviation 1.

    Its knots lie at the column's quantiles and map to their normal scores, so that long tails, spikes and levels keep
    moderate distances; beyond the data, the overall slope continues for a while.  PAPER[16]
    """

    raw: Floats  # increasing
    score: Floats  # increasing
    spread: Floats  # (1,) the standard deviation of the table's raw values; 1 if they are all the same

    @classmethod
    def fit(cls, values: Floats) -> Self:
        distinct, counts = np.unique(values, return_counts=True)
        middle = (np.cumsum(counts) - counts / 2) / len(values)  # mid-rank of each distinct value
        keep = np.unique(np.searchsorted(middle, np.linspace(0, 1, MAX_KNOTS)).clip(0, len(distinct) - 1))
        keep = np.union1d(keep, [0, len(distinct) - 1])
        return cls._standardised(values, distinct[keep], ndtri(middle[keep]))

    @classmethod
    def fit_pooled(cls, values: Floats, ends: tuple[float, float]) -> Self:
        """Like `fit`, between these ends and with fewer knots, each a figure of at least five people. Values beyond the
        ends count as the ends."""
        low, high = ends
        ordered = np.sort(values.clip(low, high))
        shares = np.linspace(0, 1, min(MAX_KNOTS, max(2, len(values) // PEOPLE_PER_KNOT)))[1:-1]
        raw = np.unique([low, *(pool_quantile(ordered, share) for share in shares), high])
        ranks = np.searchsorted(ordered, raw, side="left") + np.searchsorted(ordered, raw, side="right")
        middle = ranks / (2 * len(ordered))
        keep = np.r_[True, (np.diff(middle) > 0)[:-1] & (middle[1:-1] < middle[-1]), True][: len(raw)]
        return cls._standardised(ordered, raw[keep], ndtri(middle[keep]))

    @classmethod
    def _standardised(cls, values: Floats, raw: Floats, score: Floats) -> Self:
        """The scale through these knots, with scores of mean 0 and standard deviation 1 over the values."""
        if raw[-1] - raw[0] < 1 / LARGEST_VALUE:  # a constant column
            half = max(0.5, np.spacing(np.abs(raw[0])))
            return cls(np.array([raw[0] - half, raw[0] + half]), np.array([-0.5, 0.5]), np.ones(1))
        embedded = np.interp(values, raw, score)
        spread = max(float(f"{values.std():.6g}"), 1 / LARGEST_VALUE)
        return cls(raw, (score - embedded.mean()) / embedded.std(), np.array([spread]))

    def embed(self, values: Floats) -> Floats:
        return _interpolate(values.clip(*self.ends), self.raw, self.score)

    def unembed(self, scores: Floats) -> Floats:
        return _interpolate(scores, self.score, self.raw)

    def range_share(self, scores: Floats) -> Floats:
        """The share of the table's range below each score, from 0 to 1."""
        share = (self.raw - self.raw[0]) / (self.raw[-1] - self.raw[0])
        return _interpolate(scores.clip(self.score[0], self.score[-1]), self.score, share)

    def deviations(self, scores: Floats) -> Floats:
        """Raw values at these scores, in standard deviations of the table's raw values."""
        return np.asarray(self.unembed(scores.clip(self.score[0], self.score[-1])) / self.spread[0])

    def clip(self, values: Floats) -> Floats:
        """Clip values to the table's range."""
        return np.asarray(values.clip(self.raw[0], self.raw[-1]))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The raw values beyond which all values have the same score."""
        low, high = self.unembed(self.score[[0, -1]] + [-SCORE_MARGIN, SCORE_MARGIN])
        return float(low), float(high)

    @property
    def increases(self) -> bool:
        """Whether raw values and scores increase and are of sensible size; those of a scale from a file may not be."""
        spread = bool(1 / LARGEST_VALUE <= self.spread[0] <= LARGEST_VALUE)  # False for NaN
        scores = _increases(self.score, LARGEST_SCORE, 0.5)
        return spread and scores and _increases(self.raw, 2 * LARGEST_VALUE, 1 / LARGEST_VALUE)


def _interpolate(at: Floats, xs: Floats, ys: Floats) -> Floats:
    """Piecewise linear through the points, with the overall slope beyond them.

    One operation at a time: a processor that fused two would round differently.
    """
    left = np.searchsorted(xs[1:-1], at, side="right")  # the point where the segment begins
    within = np.minimum(np.maximum(at, xs[0]), xs[-1])  # like np.clip, in half the time
    share = (within - xs[left]) / (xs[1:] - xs[:-1])[left]
    inside = np.where(within == xs[-1], ys[-1], ys[left] + share * (ys[1:] - ys[:-1])[left])
    return np.asarray(inside + (at - within) * ((ys[-1] - ys[0]) / (xs[-1] - xs[0])))


def _increases(knots: Floats, largest: float, span: float) -> bool:
    """Whether there are two or more numbers, increasing, none too large, that span at least `span`."""
    sane = len(knots) >= 2 and bool((np.abs(knots) <= largest).all())
    return sane and bool((knots[1:] > knots[:-1]).all()) and bool(knots[-1] - knots[0] >= span)
