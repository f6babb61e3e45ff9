"""What the numbers of a column look like: the grid they lie on, their levels if few, and the marks among them."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from tdce._core import Flags, Floats, Positions

MIN_ON_GRID = 0.99  # share of the cells that lie on the grid; the others may stay and are never proposed
MIN_VALUES_FOR_MULTIPLE = 20  # distinct values from which on a grid may be coarser than a power of ten
MAX_DECIMALS = 12
MAX_LEVELS = 256
MIN_ROWS_PER_LEVEL = 50
MAX_WHOLE_LEVELS = 40  # whole numbers with gaps between them: with so few, only those of the table are proposed
MIN_ROWS_PER_WHOLE_LEVEL = 20
MIN_MARK_SHARE = 0.001  # of the rows have one of the marks at an end,
MIN_MARK_ROWS = 20  # and at least this many rows
SPIKE_SHARE = 0.05  # of the rows: a single value at an end with so many may be a mark,
SPIKE_RATIO = 5  # if it also has this many times the rows of the median value
MIN_MARK_GAP = 0.2  # of the whole range: the distance of a mark from all others, which lie closer together than that
MAX_MARKS = 3  # at either end
MARK_TEXT = re.compile(r"-(1|8|9|99|999)|9[6-9]|99[6-9]|999[6-9]|9{5,}")  # codes for "no answer"


def infer_step(distinct: Floats, counts: Positions) -> tuple[float | None, Flags]:
    """The step of the coarsest decimal grid that nearly all cells lie on, a multiple (5, 25, …) if there are many
    values, and which values lie on it."""
    everything = np.ones(len(distinct), dtype=bool)
    for decimals in range(MAX_DECIMALS + 1):
        units = distinct * 10.0**decimals
        if np.abs(units).max() > 2.0**52:
            return 1.0 if (np.rint(distinct) == distinct).all() else None, everything
        on = np.rint(units) / 10.0**decimals == distinct
        if counts[on].sum() >= MIN_ON_GRID * counts.sum():
            many = on.sum() >= MIN_VALUES_FOR_MULTIPLE
            multiple = int(np.gcd.reduce(np.rint(units[on]).astype(np.int64))) if many else 1
            return float(Decimal(multiple).scaleb(-decimals)), on
    return None, everything


def infer_levels(distinct: Floats, step: float | None, rows: int) -> tuple[float, ...] | None:
    """The values themselves, where many rows leave most of the grid empty (0, 3103, 5178), or there are few whole
    numbers with gaps between them (-2, -1, 0, 2, 3); otherwise None."""
    if step is None or len(distinct) == 0:
        return None
    few = step >= 1 and len(distinct) <= MAX_WHOLE_LEVELS and len(distinct) * MIN_ROWS_PER_WHOLE_LEVEL <= rows
    if few and (np.diff(distinct) > step).any():
        return tuple(distinct.tolist())
    if len(distinct) > MAX_LEVELS or len(distinct) * MIN_ROWS_PER_LEVEL > rows:
        return None
    points_on_grid = round((distinct[-1] - distinct[0]) / step) + 1
    return tuple(distinct.tolist()) if 2 * len(distinct) < points_on_grid else None


def infer_marks(distinct: Floats, counts: Positions) -> tuple[float, ...]:
    """Values that stand for a state, not a number: far from all others or very frequent at an end, and written like
    a code for "no answer"."""
    marks = is_far_apart(distinct, counts)
    ends = [0, -1] if len(distinct) > 2 else []
    marks[ends] |= counts[ends] >= max(SPIKE_SHARE * counts.sum(), SPIKE_RATIO * float(np.median(counts)))
    return tuple(v for v in distinct[marks].tolist() if MARK_TEXT.fullmatch(f"{v:.15g}"))


def is_far_apart(values: Floats, counts: Positions) -> Flags:
    """Which of a column's values, in order, are a few far beyond all others (-1, 98, 999), and not rare."""
    far = np.zeros(len(values), dtype=bool)
    enough = max(MIN_MARK_SHARE * counts.sum(), MIN_MARK_ROWS)
    for beyond in range(1, min(MAX_MARKS, len(values) - 2) + 1):
        ends = (
            (slice(beyond), values[beyond:], values[beyond - 1]),
            (slice(-beyond, None), values[:-beyond], values[-beyond]),
        )
        for group, inner, outer in ends:
            gap = min(abs(outer - inner[0]), abs(outer - inner[-1]))
            if gap > MIN_MARK_GAP * np.ptp(values) and gap > np.ptp(inner) and counts[group].sum() >= enough:
                far[group] = True
    return far
