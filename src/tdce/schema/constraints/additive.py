"""The discovery of numbers that several columns determine nonlinearly, such as an instalment by amount, rate and term:
a sum of one curve per source, or a product of such curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tdce._core import Floats
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.fitting import (
    MAX_CATEGORIES,
    MAX_MISSING,
    MAX_ROWS,
    MAX_TYPICAL_ERROR,
    MIN_ROWS,
    MIN_VALUES,
    ROWS_PER_TERM,
    WORSE,
    ancestors,
    solve,
    with_band,
)
from tdce.schema.constraints.follows import Follows, Points, Term
from tdce.schema.constraints.table import Table
from tdce.schema.roles import is_result

MIN_STRENGTH = 0.997  # share of the variance explained, on rows not used to fit the curves
MAX_SOURCES = 6
MIN_GAIN = 0.1  # share of the unexplained variance that a further source must explain
KNOTS = 17  # of a curve
NEARLY_WHOLE = 0.002  # a power this near a whole number is rounded to it
FORMS = (False, True)  # a sum of curves, a product


def find_additive(table: Table, found: Mapping[int, Law]) -> Iterator[Follows]:
    """Numbers that are a sum, or a product, of curves of at least two other columns, best explained first."""
    rows = table.some(MAX_ROWS)
    present = [i for i in range(len(table.features)) if np.isnan(rows[:, i]).mean() <= MAX_MISSING]
    sources = [source for i in present if (source := _Source.of(table, rows, i)) is not None]
    targets = [i for i in present if i in table.numbers and i not in found and len(np.unique(rows[:, i])) >= MIN_VALUES]
    if len(rows) < 2 * MIN_ROWS or len(sources) < 3:
        return
    laws = []
    for target in targets:
        others = [
            source
            for source in sources
            if source.at != target and target not in ancestors(table, found, [table.features[source.at].name])
        ]
        laws += [law for product in FORMS if (law := _fit(table, rows, target, others, product)) is not None]
    yield from sorted(laws, key=lambda law: (not is_result(law.column), -law.strength))


@dataclass(frozen=True)
class _Source:
    """The possible contributions of a column: proportional, a curve over its values, or an amount per category."""

    at: int
    cells: Floats  # (n,) the column's values in the rows
    knots: Floats  # the points of a piecewise linear curve; for categories, all but the commonest
    number: bool

    @classmethod
    def of(cls, table: Table, rows: Floats, at: int) -> _Source | None:
        cells = rows[:, at]
        values, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
        if len(values) < 2:
            return None
        if table.features[at].numbers:
            if at not in table.numbers:
                return None
            known = cells[~np.isnan(cells)]
            knots = np.unique(np.quantile(known, np.linspace(0, 1, KNOTS))) if len(values) > KNOTS else values
            return cls(at, cells, knots, True)
        return (
            cls(at, cells, values[counts.argsort(kind="stable")[:-1]], False) if len(values) <= MAX_CATEGORIES else None
        )

    @cached_property
    def curve(self) -> Floats:
        """(n, k) the hat functions of all knots but the first, or indicators of the categories."""
        if not self.number:
            return np.asarray(self.cells[:, None] == self.knots, dtype=np.float64)
        hats = np.eye(len(self.knots))
        return np.column_stack([np.interp(self.cells, self.knots, hats[k]) for k in range(1, len(self.knots))])

    def proportional(self, product: bool) -> Floats | None:
        """(n, 1) the scaled number or, for a product, its logarithm; None if there is none."""
        if not self.number or (product and np.nanmin(self.cells) <= 0):
            return None
        return (np.log(self.cells) if product else self.cells / np.abs(self.knots).max())[:, None]

    def basis(self, product: bool) -> Floats:
        """(n / 2, k) an orthonormal basis of all possible contributions, on every other row; 0 where missing."""
        return self._log_basis if product else self._basis

    @cached_property
    def _basis(self) -> Floats:
        return _orthonormal(self.curve[0::2])

    @cached_property
    def _log_basis(self) -> Floats:
        simple = self.proportional(True)
        return self._basis if simple is None else _orthonormal(np.column_stack([simple, self.curve])[0::2])

    def term(self, table: Table, weights: Floats, simple: bool, product: bool) -> Term:
        if simple:
            return float(f"{weights[0] / (1.0 if product else np.abs(self.knots).max()):.9g}")
        known = {float(k): w for k, w in zip(self.knots[1:] if self.number else self.knots, weights, strict=True)}
        if self.number:
            values = [float(k) for k in self.knots]
            return tuple((value, float(f"{known.get(value, 0.0):.9g}")) for value in values)
        positions = np.unique(self.cells[~np.isnan(self.cells)])
        cells = table.cells(self.at, positions)
        points: Points = tuple(
            (cell, float(f"{known.get(float(at), 0.0):.9g}")) for cell, at in zip(cells, positions, strict=True)
        )
        return points


def _fit(table: Table, rows: Floats, target: int, sources: Sequence[_Source], product: bool) -> Follows | None:
    values = rows[:, target]
    if product and np.nanmin(values) <= 0:
        return None
    goal = np.log(values) if product else values
    chosen = _choose(goal, sources, product) if len(sources) > 1 else []
    if len(chosen) < 2:
        return None
    blocks = [(source, False) for source in chosen]
    error = _unexplained(goal, values, blocks, product)
    if error > 1 - MIN_STRENGTH:
        return None
    column = table.features[target]
    step = column.step if isinstance(column, Numeric) and column.step is not None else 0.0
    most = min(max(WORSE**2 * error, (0.3 * step) ** 2 / float(np.nanvar(values))), 1 - MIN_STRENGTH)
    for i, (source, _) in enumerate(blocks):  # prefer a factor to a curve where it does as well
        simpler = [*blocks[:i], (source, True), *blocks[i + 1 :]]
        if source.proportional(product) is not None and _unexplained(goal, values, simpler, product) <= most:
            blocks = simpler
    for block in tuple(reversed(blocks)):
        fewer = [each for each in blocks if each is not block]
        if len(fewer) > 1 and _unexplained(goal, values, fewer, product) <= most:
            blocks = fewer
    if all(simple for _, simple in blocks) and not product:
        return None  # a price list, already searched for
    parts = [_columns(block, product) for block in blocks]
    x = np.column_stack([*parts, np.ones(len(values))])
    used = ~np.isnan(x).any(axis=1) & ~np.isnan(goal)
    weights = solve(x[used], goal[used])
    terms, start = [], 0
    for (source, simple), part in zip(blocks, parts, strict=True):
        own = weights[start : start + part.shape[1]]
        if simple and product and abs(own[0] - round(own[0])) <= NEARLY_WHOLE * abs(own[0]):
            own = own.round()  # the square of a height, not its power of 2.0002
            weights[-1] += float(((weights[start] - own[0]) * part[used, 0]).mean())
        terms.append(source.term(table, own, simple, product))
        start += part.shape[1]
    if not all(terms):
        return None
    constant = float(np.exp(weights[-1]) if product else weights[-1])
    names = tuple(table.features[source.at].name for source, _ in blocks)
    strength = 1 - _unexplained(goal, values, blocks, product)
    law = Follows(
        column.name, names, tuple(terms), float(f"{constant:.9g}"), product, strength=strength, support=int(used.sum())
    )
    return with_band(table, rows, law)


def _choose(goal: Floats, sources: Sequence[_Source], product: bool) -> list[_Source]:
    """Select sources greedily by what they explain, on every other row."""
    y = np.nan_to_num(goal[0::2] - np.nanmean(goal[0::2]))
    total = float(y @ y)
    bases = [source.basis(product) for source in sources]
    chosen, residual, left = list[int](), y, total
    while total > 0 and len(chosen) < min(MAX_SOURCES, len(y) // (ROWS_PER_TERM * KNOTS)):
        gains = [0.0 if i in chosen else float(np.square(residual @ q).sum()) for i, q in enumerate(bases)]
        best = int(np.argmax(gains))
        if gains[best] < MIN_GAIN * left or left <= 1e-12 * total or (len(chosen) == 2 and left > total / 2):
            break
        chosen.append(best)
        q = np.linalg.qr(np.column_stack([bases[i] for i in chosen]))[0]
        residual = y - q @ (q.T @ y)
        left = float(residual @ residual)
    return [sources[i] for i in chosen] if left <= 2 * (1 - MIN_STRENGTH) * total else []


def _orthonormal(part: Floats) -> Floats:
    centred = np.nan_to_num(part - np.nanmean(part, axis=0))
    return np.linalg.qr(centred)[0]


def _columns(block: tuple[_Source, bool], product: bool) -> Floats:
    source, simple = block
    part = source.proportional(product) if simple else source.curve
    assert part is not None
    return part


def _unexplained(goal: Floats, values: Floats, blocks: Sequence[tuple[_Source, bool]], product: bool) -> float:
    """The share of a number's variance that curves fitted to half of the rows leave unexplained in the other half;
    infinite if typical errors are large."""
    x = np.column_stack([*(_columns(block, product) for block in blocks), np.ones(len(goal))])
    used = np.flatnonzero(~np.isnan(x).any(axis=1) & ~np.isnan(goal))
    fit, judge = used[0::2], used[1::2]
    if len(fit) < ROWS_PER_TERM * x.shape[1]:
        return np.inf
    forecast = x[judge] @ solve(x[fit], goal[fit])
    y = values[judge]
    residual = y - (np.exp(forecast) if product else forecast)
    low, high = np.quantile(y, [0.05, 0.95])
    if y.var() == 0 or np.quantile(np.abs(residual), 0.95) > MAX_TYPICAL_ERROR * (high - low):
        return np.inf
    return float(residual.var() / y.var())
