"""The discovery of curves: numbers that are a curve of one other number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tdce._core import Floats
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.fitting import MAX_MISSING, MAX_ROWS, MIN_ROWS, ancestors, with_band
from tdce.schema.constraints.follows import Follows, Points
from tdce.schema.constraints.table import Table
from tdce.schema.roles import is_result

MIN_CURVE_STRENGTH = 0.997
MAX_CURVE_STEPS = 3  # grid steps; 99 % of the rows must be this close
CURVE_POINTS = 33
MAX_LEVELS = 40  # of a number that is a step function of another


def find_curves(table: Table, found: dict[int, Law]) -> Iterator[Follows]:
    """Numbers that are a curve of another, to within a few steps of their grid, such as the decile of a score."""
    rows = table.some(MAX_ROWS)
    if len(rows) < 2 * MIN_ROWS:
        return
    numbers = [i for i in table.numbers if np.isnan(rows[:, i]).mean() <= MAX_MISSING]
    candidates = []
    for a in numbers:
        known = rows[~np.isnan(rows[:, a])]
        ordered = known[np.argsort(known[:, a], kind="stable")]
        for b in numbers:
            values = ordered[~np.isnan(ordered[:, b]), b]
            if a != b and b not in found and len(values) >= MIN_ROWS and values.std() > 0:
                noise = float(np.square(np.diff(values)).mean() / 2 / values.var())  # 1 for unrelated columns
                if noise <= 2 * (1 - MIN_CURVE_STRENGTH):
                    result = not is_result(table.features[b].name), len(np.unique(values)), noise
                    candidates.append((result, a, b))
    for _, a, b in sorted(candidates):
        law = _fit_curve(table, rows, a, b)
        if law is not None and b not in found and not ancestors(table, found, law.sources) & {b}:
            found[b] = law
            yield law


def _fit_curve(table: Table, rows: Floats, a: int, b: int) -> Follows | None:
    """The law that number b is a curve of number a."""
    both = rows[~np.isnan(rows[:, [a, b]]).any(axis=1)][:, [a, b]]
    fit, judge = both[0::2], both[1::2]
    if len(fit) < MIN_ROWS:
        return None
    knots, heights = _curve_points(fit)
    residual = judge[:, 1] - np.interp(judge[:, 0], knots, heights)
    strength = float(1 - residual.var() / max(float(judge[:, 1].var()), 1e-300))
    column = table.features[b]
    step = column.step if isinstance(column, Numeric) and column.step is not None else 0.0
    near = max(MAX_CURVE_STEPS * step, 0.01 * float(np.ptp(judge[:, 1])))
    if strength < MIN_CURVE_STRENGTH or np.quantile(np.abs(residual), 0.99) > near:
        return None
    cells = [None if np.isnan(v) else float(v) for v in knots.tolist()]
    points: Points = tuple((cell, float(f"{h:.9g}")) for cell, h in zip(cells, heights.tolist(), strict=True))
    names = table.features[b].name, (table.features[a].name,)
    return with_band(table, rows, Follows(*names, (points,), strength=strength, support=len(both)))


def _curve_points(rows: Floats) -> tuple[Floats, Floats]:
    """The points of the curve of the second column over the first: with few values, both ends of every run of equal
    values; with many, the medians around some quantiles."""
    levels = np.unique(rows[:, 1])
    at, which = np.unique(rows[:, 0], return_inverse=True)
    if len(levels) <= MAX_LEVELS and len(at) <= MAX_ROWS:
        order = np.lexsort((rows[:, 1], which))
        start = np.searchsorted(which[order], np.arange(len(at)))
        middle = start + (np.append(start[1:], len(rows)) - start) // 2
        heights = rows[order, 1][middle]  # the median at each value
        turns = np.flatnonzero(np.diff(heights)) + 1
        ends = np.unique(np.concatenate([[0], turns, turns - 1, [len(at) - 1]]))
        if len(ends) <= 4 * MAX_LEVELS:
            return at[ends], heights[ends]
    knots = np.unique(np.quantile(rows[:, 0], np.linspace(0, 1, CURVE_POINTS)))
    nearest = np.abs(rows[:, [0]] - knots).argmin(axis=1)
    return knots, np.array([np.median(rows[nearest == k, 1]) for k in range(len(knots))])
