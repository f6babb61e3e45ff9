"""What the numbers of a column look like: the grid they lie on, their levels if few, and the marks among them."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from tdce._core import Flags, Floats, Positions

NOISE = 1e-9  # relative rounding error of float arithmetic,
CANCELLATION = 1e-14  # or relative to the column's largest number (0.1 + 0.2 - 0.3 is 5.55e-17),
MAX_NOISE = 1e-4  # and at most this share of a step
MIN_ON_GRID = 0.99  # share of the cells on the grid; values off it may stay, but are never proposed
MAX_SPECIAL = 2  # special values off the grid, such as a limit, if they are few compared with those on it:
MIN_VALUES_BESIDE = 10  # distinct values on the grid per special value,
MAX_SPECIAL_SHARE = 0.1  # and their share of the cells other than the commonest value, at most
MIN_VALUES_FOR_MULTIPLE = 20  # distinct values for a grid coarser than a power of ten
ROUND_MULTIPLES = (1, 2, 5, 10, 20, 25, 50)  # times a power of 100: steps of grids that admit special values
MAX_DECIMALS = 12
MIN_VALUES_BELIEVED = 10  # distinct values and
MIN_CELLS_BELIEVED = 0.95  # share of the cells, at least, that define what is believable
BEYOND_BELIEF = 1_000  # times as far from the median as these: an alcohol content of 9e14
MAX_LEVELS = 256
MIN_ROWS_PER_LEVEL = 50
MAX_WHOLE_LEVELS = 40  # of whole numbers with gaps: at most this many, only those of the table are proposed
MIN_ROWS_PER_WHOLE_LEVEL = 20
MIN_MARK_SHARE = 0.001  # share of the rows with a mark at one end, at least,
MIN_MARK_ROWS = 20  # and at least this many rows
SPIKE_SHARE = 0.05  # share of the rows: a single value at an end with this many may be a mark
SPIKE_RATIO = 5  # if it also has this many times the rows of the median value
MIN_MARK_GAP = 0.2  # share of the range between a mark and all other values, which must span less than that gap
MAX_MARKS = 3  # at either end
LARGEST_NARROW = 2.0**100  # of numbers that may once have been float32
MARK_TEXT = re.compile(r"-(1|8|9|99|999)|9[6-9]|99[6-9]|999[6-9]|9{5,}")  # codes for "no answer"


def round_to_step(values: Floats, step: float) -> Floats:
    """Round to the nearest multiples of a step; each is the float that prints as that decimal."""
    numerator, denominator = map(float, Decimal(str(step)).as_integer_ratio())
    with np.errstate(over="ignore"):  # for the largest floats, which are off any grid
        return np.asarray(np.rint(values * denominator / numerator) * numerator / denominator)


def remove_noise(values: Floats, step: float | None, largest: float | None = None) -> tuple[Floats, Flags]:
    """Put numbers that are on the grid but for float noise exactly on it; also return which are on it.

    1.7069999999999999 is 1.707, and so is its nearest float32. `largest`: the column's largest number, if `values` is
    only a part of the column."""
    if step is None:
        return values, np.ones(len(values), dtype=bool)
    nearest = round_to_step(values, step)
    with np.errstate(over="ignore"):
        narrow = nearest.astype(np.float32) == values
    on = (np.abs(values - nearest) <= np.minimum(_noise(values, largest), MAX_NOISE * step)) | narrow
    return np.where(on, nearest, values), on


def _noise(values: Floats, largest: float | None = None) -> Floats:
    size = np.abs(values)
    largest = float(np.fmax.reduce(size, initial=0.0)) if largest is None else largest
    return np.asarray(np.maximum(NOISE * size, CANCELLATION * largest))


def infer_step(distinct: Floats, counts: Positions) -> tuple[float | None, Flags]:
    """The step of the coarsest decimal grid that holds nearly all cells, and which values lie on it. With many values,
    the step may be a multiple (5, 25, …)."""
    step, on = _infer_step(distinct, counts)
    if step is None and (np.abs(distinct) < LARGEST_NARROW).all() and (distinct.astype(np.float32) == distinct).all():
        shown = distinct.astype(np.float32).astype(str).astype(np.float64)  # 0.10000000149011612 was 0.1
        return _infer_step(shown, counts)
    return step, on


def _infer_step(distinct: Floats, counts: Positions) -> tuple[float | None, Flags]:
    everything = np.ones(len(distinct), dtype=bool)
    for decimals in range(MAX_DECIMALS + 1):
        units = distinct * 10.0**decimals
        if np.abs(units).max() > 2.0**52:
            return 1.0 if (np.rint(distinct) == distinct).all() else None, everything
        nearest = np.rint(units)
        noise = np.minimum(_noise(units), MAX_NOISE)
        on = (nearest / 10.0**decimals == distinct) | (np.abs(units - nearest) <= noise)
        if _is_grid(on, counts):
            multiple, on[on] = _infer_multiple(nearest[on].astype(np.int64), counts[on])
            return float(Decimal(multiple).scaleb(-decimals)), on
    return None, everything


def _is_grid(on: Flags, counts: Positions) -> bool:
    """Whether nearly all cells are on the grid, or all but one or two special values among many. The commonest value
    proves nothing: it may be 0, which is on any grid."""
    off, beside = int(counts[~on].sum()), int(counts.sum() - counts.max())
    if off > MAX_SPECIAL_SHARE * beside:
        return off == 0
    special = int((~on).sum())
    few = special <= MAX_SPECIAL and on.sum() >= MIN_VALUES_BESIDE * special
    return bool(few or off <= (1 - MIN_ON_GRID) * counts.sum())


def _infer_multiple(whole: Positions, counts: Positions) -> tuple[int, Flags]:
    """The greatest common divisor, or a larger round divisor of all but one or two special values; and which values it
    divides."""
    everything = np.ones(len(whole), dtype=bool)
    if len(whole) < MIN_VALUES_FOR_MULTIPLE:
        return 1, everything
    largest = int(np.gcd.reduce(whole))
    for power in range(16, -1, -2):
        for factor in reversed(ROUND_MULTIPLES):
            multiple = factor * 10**power
            if multiple <= largest:
                return largest, everything
            on = whole % multiple == 0
            if 0 < (~on).sum() <= MAX_SPECIAL and on.sum() >= MIN_VALUES_FOR_MULTIPLE and _is_grid(on, counts):
                return multiple, on
    return largest, everything


def is_believable(values: Floats) -> Flags:
    """Which cells of a column are not typing errors far beyond all others, such as a density of 100,369. A value that
    many rows have is a limit or a code, not an error; missing is not an error either."""
    distinct, place, counts = np.unique(values[~np.isnan(values)], return_inverse=True, return_counts=True)
    believable = np.ones(len(values), dtype=bool)
    if len(distinct) <= MIN_VALUES_BELIEVED:
        return believable
    total = int(counts.sum())
    distance = np.abs(distinct - distinct[np.searchsorted(np.cumsum(counts), total / 2)])  # from the median
    order = np.argsort(distance, kind="stable")
    ordered, cells = distance[order], np.cumsum(counts[order])
    gap = (ordered[1:] > BEYOND_BELIEF * ordered[:-1]) & (ordered[:-1] > 0)
    gap &= (cells[:-1] >= MIN_CELLS_BELIEVED * total) & (np.arange(1, len(ordered)) >= MIN_VALUES_BELIEVED)
    if gap.any():
        slips = np.zeros(len(distinct), dtype=bool)
        slips[order[int(gap.argmax()) + 1 :]] = True
        slips &= counts < max(MIN_MARK_SHARE * total, MIN_MARK_ROWS)
        believable[~np.isnan(values)] = ~slips[place]
    return believable


def infer_levels(distinct: Floats, step: float | None, rows: int) -> tuple[float, ...] | None:
    """The distinct values, if many rows leave most of the grid empty (0, 3103, 5178), or if they are few whole numbers
    with gaps (-2, -1, 0, 2, 3); otherwise None."""
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
    """Values that stand for a state, not a number: far from all others, or very frequent at an end, and written like a
    code for "no answer"."""
    marks = is_far_apart(distinct, counts)
    ends = [0, -1] if len(distinct) > 2 else []
    marks[ends] |= counts[ends] >= max(SPIKE_SHARE * counts.sum(), SPIKE_RATIO * float(np.median(counts)))
    return tuple(v for v in distinct[marks].tolist() if MARK_TEXT.fullmatch(f"{v:.15g}"))


def is_far_apart(values: Floats, counts: Positions) -> Flags:
    """Which of a column's sorted values lie far beyond all others (-1, 98, 999): a few values, but not rare ones."""
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
