"""Pooled figures of a column's numbers: each comes from at least five people, so that none is one person's value."""

from __future__ import annotations

import numpy as np

from tdce._core import Flags, Floats, Positions

MIN_PEOPLE = 5  # to share a value, or to be averaged in a figure, for it to be kept
PEOPLE_PER_KNOT = 20  # rows per quantile of a scale, at least
MIN_ROWS_TRIMMED = 8 * MIN_PEOPLE  # from this many rows on, the outermost four at an end are left out of its figure


def is_personal(people: Floats | Positions) -> Flags:
    """Which counts of people are too small for their value to be kept; a value that nobody has is not personal."""
    return np.asarray((people > 0) & (people < MIN_PEOPLE))


def people_with(known: Floats, values: Floats) -> Floats:
    """(n,) how many of the cells `values` hold each of the values `known`; missing counts as a value."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) == 0:
        return np.zeros(len(known))
    at = np.searchsorted(found, known).clip(max=len(found) - 1)  # NaN is last
    same = (found[at] == known) | (np.isnan(found[at]) & np.isnan(known))
    return np.where(same, counts[at], 0).astype(np.float64)


def pool_ends(values: Floats) -> tuple[float, float]:
    """The pooled ends of a column's numbers (n,): at each end, the outermost value that five people share or, if it is
    farther out, the mean of five people: the fifth to the ninth or, in a small table, the first five."""
    ordered, size = np.sort(values), min(MIN_PEOPLE, len(values))
    skipped = MIN_PEOPLE - 1 if len(values) >= MIN_ROWS_TRIMMED else 0
    last = len(values) - skipped
    low, high = _mean(ordered[skipped : skipped + size]), _mean(ordered[last - size : last])
    distinct, counts = np.unique(ordered, return_counts=True)
    shared = distinct[counts >= MIN_PEOPLE]
    return min([low, *shared[:1].tolist()]), max([high, *shared[-1:].tolist()])


def pool_quantile(ordered: Floats, share: float) -> float:
    """The value at a quantile of sorted numbers (n,) if five people share it, else the mean of the five around it."""
    first = int(np.clip(round(share * len(ordered)) - MIN_PEOPLE // 2, 0, max(len(ordered) - MIN_PEOPLE, 0)))
    around = ordered[first : first + MIN_PEOPLE]
    middle = float(around[len(around) // 2])
    people = np.searchsorted(ordered, middle, side="right") - np.searchsorted(ordered, middle, side="left")
    return middle if people >= MIN_PEOPLE else _mean(around)


def pool_sorted(values: Floats) -> tuple[Floats, Floats]:
    """The means of groups of five or more neighbouring numbers (n,), and the quantile of each group's middle."""
    groups = max(1, len(values) // MIN_PEOPLE)
    means = np.array([_mean(group) for group in np.array_split(np.sort(values), groups)])
    return means, (np.arange(groups) + 0.5) / groups


def _mean(ordered: Floats) -> float:
    """The mean of sorted numbers, exact for equal ones and without overflow."""
    mean = ordered[0] + (ordered / len(ordered) - ordered[0] / len(ordered)).sum()
    return float(np.clip(mean, ordered[0], ordered[-1]))
