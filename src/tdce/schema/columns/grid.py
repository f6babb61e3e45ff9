"""What the numbers of a column look like: the grid that they lie on, the few levels they have, marks among them."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from tdce._core import Flags, Floats, Positions

NEARLY = 0.99  # of the cells lie on the grid; the odd ones may stay and are never proposed
MAX_LEVELS = 256
ROWS_PER_LEVEL = 50
FEW_LEVELS = 40  # so few whole numbers, in enough rows each, are proposed as they were seen, even if few are missing
ROWS_PER_FEW = 20
RARE = 0.001  # of the rows, and at least so many: where a mark may be one
FEWEST = 20
SPIKE = 0.05  # of the rows, and so many times an ordinary value's: where a mark may be at the end of the others
OUTSTANDING = 5
APART = 0.2  # of the whole range: so far is a mark from all others, and further than these from each other
MOST_MARKS = 3
UNKNOWN = re.compile(r"-(1|8|9|99|999)|9[6-9]|99[6-9]|999[6-9]|9{5,}")  # what a mark says that stands for no answer


def step_of(distinct: Floats, times: Positions) -> tuple[float | None, Flags]:
    """The coarsest decimal grid that nearly all cells lie on, with many values also its multiple (5, 25, …), and which
    of the values do."""
    everything = np.ones(len(distinct), dtype=bool)
    for decimals in range(13):
        units = distinct * 10.0**decimals
        if np.abs(units).max() > 2.0**52:
            return 1.0 if (np.rint(distinct) == distinct).all() else None, everything
        on = np.rint(units) / 10.0**decimals == distinct
        if times[on].sum() >= NEARLY * times.sum():
            multiple = int(np.gcd.reduce(np.rint(units[on]).astype(np.int64))) if on.sum() >= 20 else 1
            return float(Decimal(multiple).scaleb(-decimals)), on
    return None, everything


def levels_of(distinct: Floats, step: float | None, rows: int) -> tuple[float, ...] | None:
    """The few values themselves, where a well-filled column leaves most of its grid empty (0, 3103, 5178), or has few
    whole numbers and gaps between them (-2, -1, 0, 2, 3)."""
    if step is None or len(distinct) == 0:
        return None
    few = step >= 1 and len(distinct) <= FEW_LEVELS and len(distinct) * ROWS_PER_FEW <= rows
    if few and (np.diff(distinct) > step).any():
        return tuple(distinct.tolist())
    if len(distinct) > MAX_LEVELS or len(distinct) * ROWS_PER_LEVEL > rows:
        return None
    points_on_grid = round((distinct[-1] - distinct[0]) / step) + 1
    return tuple(distinct.tolist()) if 2 * len(distinct) < points_on_grid else None


def marks_of(distinct: Floats, times: Positions) -> tuple[float, ...]:
    """Values that stand for no answer: far from all others or very frequent at an end, and written as marks are."""
    marks = far_apart(distinct, times)
    ends = [0, -1] if len(distinct) > 2 else []
    marks[ends] |= times[ends] >= max(SPIKE * times.sum(), OUTSTANDING * float(np.median(times)))
    return tuple(v for v in distinct[marks].tolist() if UNKNOWN.fullmatch(f"{v:.15g}"))


def far_apart(values: Floats, times: Positions) -> Flags:
    """Which of a number's values, in order, are a few far beyond all others (-1, 98, 999), and not rare."""
    far = np.zeros(len(values), dtype=bool)
    enough = max(RARE * times.sum(), FEWEST)
    for beyond in range(1, min(MOST_MARKS, len(values) - 2) + 1):
        ends = (
            (slice(beyond), values[beyond:], values[beyond - 1]),
            (slice(-beyond, None), values[:-beyond], values[-beyond]),
        )
        for group, inner, outer in ends:
            gap = min(abs(outer - inner[0]), abs(outer - inner[-1]))
            if gap > APART * np.ptp(values) and gap > np.ptp(inner) and times[group].sum() >= enough:
                far[group] = True
    return far
