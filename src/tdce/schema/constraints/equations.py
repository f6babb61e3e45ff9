"""The discovery of columns that follow others: totals and copies, products and ratios. Price lists, curves and additive
laws have their own modules.

Equations are fitted to one half of the rows and judged on the other. A column follows at most one equation, and no
column follows itself through others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from tdce._core import Flags, Floats
from tdce.schema.constraints.additive import find_additive
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.curves import find_curves
from tdce.schema.constraints.fitting import MAX_MISSING, MAX_ROWS, MIN_ROWS, MIN_VALUES, ancestors, with_band
from tdce.schema.constraints.follows import ROUNDING, Follows
from tdce.schema.constraints.price_list import find_price_lists
from tdce.schema.constraints.table import Table
from tdce.schema.roles import is_result

PROBE_ROWS = 64  # rows used to recognise sums
FIRST_ROWS = 500  # enough to rule most candidates out
MAX_PARTS = 12  # of a total
MAX_SUM_COLUMNS = 100  # numeric columns, at most, to search for totals of several parts
MAX_RATIO_SPREAD = 0.25  # standard deviation of the logarithm of c / (a * b)
MIN_PRODUCT_STRENGTH = 0.98  # share of the variance of log c that a product explains
MIN_CONTRIBUTION = 4.0  # times the residual variance: the least cost of leaving a factor out
ROUND_FACTORS = (1.0, 12.0, 100.0, 1000.0, 4.0, 52.0, 365.0, 10.0, 2.0, 60.0, 24.0, 7.0)


def find_equations(table: Table, known: Sequence[Law] = ()) -> list[Follows]:
    """The equations of a table besides totals, only for columns that follow no known law yet."""
    found: dict[int, Law] = {table.position(law.follower): law for law in known if law.follower is not None}
    for find in (find_products, find_price_lists, find_curves, find_additive):
        for law in find(table, found):
            follower = table.position(law.column)
            if follower not in found and not ancestors(table, found, law.sources) & {follower}:
                found[follower] = law
    return [law for law in found.values() if isinstance(law, Follows) and law not in known]


def find_totals(table: Table) -> Iterator[Follows]:
    """Copies, fixed ratios, sums and differences of two numbers, and totals of several, exact in all rows."""
    present = [i for i in table.numbers if np.isnan(table.numeric[:, i]).mean() <= MAX_MISSING]
    whole = table.numeric[~np.isnan(table.numeric[:, present]).any(axis=1)]
    if len(whole) < PROBE_ROWS:
        return
    numbers, done = list(present), set[int]()
    for a, b in _candidate_ratios(whole, numbers):
        if not done & {a, b} and (law := _verify_ratio(table, whole, a, b)) is not None:
            yield law
            done.add(b)
    numbers = [i for i in numbers if i not in done]
    for total, parts in _candidate_sums(whole, numbers):
        if total not in done and (law := _verify_sum(table, whole, total, parts, (1.0,) * len(parts))) is not None:
            yield _by_name(table, law)
            done.add(total)
    free = [i for i in numbers if i not in done]
    for total in free if 3 < len(free) <= MAX_SUM_COLUMNS and 4 * len(free) <= len(whole) else ():
        others = [i for i in free if i != total and i not in done]
        some = whole[: max(PROBE_ROWS, 4 * len(others))]
        factors = np.linalg.lstsq(some[:, others], some[:, total], rcond=None)[0].round(6)
        used = [(i, float(f)) for i, f in zip(others, factors, strict=True) if f]
        if 1 < len(used) <= MAX_PARTS and {abs(f) for _, f in used} == {1.0}:
            law = _verify_sum(table, whole, total, tuple(i for i, _ in used), tuple(f for _, f in used))
            if law is not None:
                yield law
                done.add(total)


def find_products(table: Table, found: dict[int, Law]) -> Iterator[Follows]:
    """Numbers that are, exactly or nearly, the product of two others: a sum over months, a ratio."""
    rows = table.some(MAX_ROWS)
    numbers = [i for i in table.numbers if i not in found and _has_values(rows[:, i], rows[:, i] > 0)]
    if len(rows) < MIN_ROWS or len(numbers) < 3:
        return
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(rows[:, numbers] > 0, np.log(rows[:, numbers]), np.nan)
    laws = []
    for p, q, r in _candidate_products(logs):
        at = [numbers[i] for i in (p, q, r)]
        if (law := _verify_product(table, rows, logs[:, [p, q, r]], at)) is not None:
            laws.append(law)
    yield from sorted(laws, key=lambda law: (law.band, -law.strength))


def _by_name(table: Table, law: Follows) -> Follows:
    """The equation, solved for the column whose name denotes a result, if that is another one."""
    if is_result(law.column) or law.constant != 0.0 or any(abs(float(t)) != 1 for t in law.terms):  # type: ignore[arg-type]
        return law
    named = [name for name in law.sources if is_result(name)]
    return law.turned(named[0]) if len(named) == 1 else law


def _has_values(values: Floats, good: Flags) -> bool:
    return bool(good.mean() >= 1 - MAX_MISSING and len(np.unique(values[good])) >= MIN_VALUES)


def _candidate_products(logs: Floats) -> Iterator[tuple[int, int, int]]:
    """Triples (p, q, r) where log p - log q - log r varies little, from the covariances of the logarithms."""
    present = ~np.isnan(logs)
    centred = np.where(present, logs - np.nanmean(logs, axis=0), 0.0)
    weights = present.astype(np.float64)
    cov = centred.T @ centred / np.maximum(weights.T @ weights, 1.0)
    var = cov.diagonal()
    for p in range(len(cov)):
        residual = var[p] + var[:, None] + var - 2 * cov[p][:, None] - 2 * cov[p] + 2 * cov
        residual[p], residual[:, p] = np.inf, np.inf
        largest = np.maximum(var[p], np.maximum(var[:, None], var))
        most = np.minimum(4 * MAX_RATIO_SPREAD**2, np.maximum(0.1 * largest, 1e-4))
        for q, r in zip(*np.nonzero(np.triu(residual <= most, 1)), strict=True):
            yield p, int(q), int(r)


def _verify_product(table: Table, rows: Floats, logs: Floats, at: list[int]) -> Follows | None:
    """The law that the first number is the product of the other two, solved for the one whose name denotes a result, or
    else the one that it explains best."""
    known = ~np.isnan(logs).any(axis=1)
    if known.sum() < MIN_ROWS:
        return None
    logs = logs[known]
    ratio = logs[:, 0] - logs[:, 1] - logs[:, 2]
    judged = ratio[1::2]
    spread = float(np.clip(judged, *np.quantile(judged, [0.01, 0.99])).std())
    variances = logs[1::2].var(axis=0)
    names = [table.features[i].name for i in at]
    results = [i for i in range(3) if is_result(names[i])]
    follower = results[0] if len(results) == 1 else 0 if 0 in results else int(variances.argmax())
    strength = float(1 - judged.var() / variances[follower])
    without = [np.var(logs[:, 0] - logs[:, 1]), np.var(logs[:, 0] - logs[:, 2]), np.var(logs[:, 1] + logs[:, 2])]
    alone = min(min(without), *logs.var(axis=0))
    if spread > MAX_RATIO_SPREAD or strength < MIN_PRODUCT_STRENGTH or alone < MIN_CONTRIBUTION * ratio.var() + 1e-6:
        return None
    constant = _round_factor(float(np.exp(np.median(ratio))))
    law = Follows(names[0], tuple(names[1:]), (1.0, 1.0), constant, True, strength=strength, support=int(known.sum()))
    return with_band(table, rows, law if follower == 0 else law.turned(names[follower]))


def _round_factor(factor: float) -> float:
    """Round a factor to 12, 1 / 100, … if it is nearly that."""
    for each in ROUND_FACTORS:
        for nice in (each, 1 / each):
            if abs(factor / nice - 1) <= 0.01:
                return nice
    return float(f"{factor:.6g}")


def _candidate_ratios(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of columns where, in a few rows, the second is a fixed multiple of the first."""
    some = whole[:FIRST_ROWS, numbers]
    for i, a in enumerate(numbers):
        rows = np.flatnonzero(some[:, i])[:3]
        ratio = some[rows, i + 1 :] / some[rows, i, None]
        for j in np.flatnonzero((np.ptp(ratio, axis=0) <= ROUNDING * np.abs(ratio).max(axis=0)) if len(rows) else ()):
            yield a, numbers[i + 1 + j]


def _verify_ratio(table: Table, whole: Floats, a: int, b: int) -> Follows | None:
    """The law that b is a fixed multiple of a, if it holds in all rows."""
    first, second = whole[:, a], whole[:, b]
    known = first != 0
    if (second[~known] != 0).any() or not known.any():
        return None
    factor = float(second[known][0] / first[known][0])
    return _verify_sum(table, whole, b, (a,), (factor,)) if factor else None


def _candidate_sums(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Columns that may be the sum of two others. A random weighting of some rows maps each column to a number, and a
    sum of columns to the sum of their numbers."""
    weights = np.random.default_rng(0).uniform(0.5, 1.5, PROBE_ROWS)
    probes = weights @ whole[:: len(whole) // PROBE_ROWS][:PROBE_ROWS, numbers]
    order = np.argsort(probes)
    for i, j in combinations(range(len(numbers)), 2):
        total = probes[i] + probes[j]
        near = ROUNDING * max(abs(probes[i]), abs(probes[j]))
        first, last = np.searchsorted(probes[order], [total - near, total + near])
        for k in order[first:last]:
            if k not in (i, j):
                yield numbers[k], (numbers[i], numbers[j])


def _verify_sum(
    table: Table, whole: Floats, total: int, parts: tuple[int, ...], factors: tuple[float, ...]
) -> Follows | None:
    """The law, if it holds in all rows and has support: many values other than 0 in each part."""
    names = [column.name for column in table.features]
    law = Follows(names[total], tuple(names[i] for i in parts), factors, support=len(whole))
    supported = (whole[:, list(parts)] != 0).sum(axis=0).min() >= PROBE_ROWS and len(np.unique(whole[:, total])) > 2
    return law if supported and _is_exact(law, table, whole) else None


def _is_exact(law: Follows, table: Table, rows: Floats) -> bool:
    """Whether the law holds in all rows up to rounding."""
    value, total = law.bind(table.features).typical(rows), rows[:, table.position(law.column)]
    parts = np.abs(rows[:, [table.position(name) for name in law.sources]] * np.array(law.terms, dtype=np.float64))
    return bool((np.abs(total - value) <= ROUNDING * np.maximum(np.abs(total), parts.max(axis=1))).all())
