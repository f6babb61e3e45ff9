"""The discovery of columns that follow others: totals and copies, products and ratios, price lists, curves.

What determines an equation is fitted to one half of the rows and judged on the other. A column follows at most one
equation, and no column follows itself through others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from tdce._core import Flags, Floats, Name, Positions
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.follows import ROUNDING, Follows, Points, Term
from tdce.schema.constraints.table import Table
from tdce.schema.roles import is_result

PROBE_ROWS = 64  # rows by which sums are recognised
FIRST_ROWS = 500  # enough to rule most candidates out
MAX_PARTS = 12  # of a total
MAX_SUM_COLUMNS = 100  # numbers among which totals of several parts are looked for
MAX_ROWS = 8_000  # that the other equations are looked for in: half to fit, half to judge
MIN_ROWS = 100
MIN_VALUES = 5  # of every number in a product or price list
MAX_MISSING = 0.2  # of a column's cells
MAX_RATIO_SPREAD = 0.25  # standard deviation of the logarithm of c / (a * b)
MIN_PRODUCT_STRENGTH = 0.98  # share of the variance of log c that a product explains
MIN_CONTRIBUTION = 4.0  # times the residual variance: what leaving a factor out must cost
MIN_SUM_STRENGTH = 0.999  # share of the variance that a price list explains
MAX_TYPICAL_ERROR = 0.05  # of a price list in 95 % of the rows, as a share of the range of 90 % of them
MIN_CURVE_STRENGTH = 0.997
MAX_CURVE_STEPS = 3  # grid steps within which 99 % of the rows are
CURVE_POINTS = 33
MAX_LEVELS = 40  # values of a number that is a step function of another
MAX_CATEGORIES = 50  # of a column in a price list
MIN_CATEGORY_ROWS = 5
ROWS_PER_TERM = 5  # at least, in either half
WORSE = 1.1  # times the residual that a price list may have for one source less
BAND_SHARE = 0.995  # of the rows lie within the band of an equation
BAND_MARGIN = 1.5
ROUND_FACTORS = (1.0, 12.0, 100.0, 1000.0, 4.0, 52.0, 365.0, 10.0, 2.0, 60.0, 24.0, 7.0)
RIDGE = 1e-9


def find_equations(table: Table, known: Sequence[Law] = ()) -> list[Follows]:
    """The equations of a table besides totals; none about columns that follow a known law already."""
    found: dict[int, Law] = {table.position(law.follower): law for law in known if law.follower is not None}
    for find in (find_products, find_price_lists, find_curves):
        for law in find(table, found):
            follower = table.position(law.column)
            if follower not in found and not _ancestors(table, found, law.sources) & {follower}:
                found[follower] = law
    return [law for law in found.values() if isinstance(law, Follows) and law not in known]


def find_totals(table: Table) -> Iterator[Follows]:
    """Copies, fixed ratios, sums and differences of two numbers, totals of several: all rows keep them exactly."""
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
    """One number is the product of two others, exactly or nearly: a sum over months, a ratio."""
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


def find_price_lists(table: Table, found: dict[int, Law]) -> Iterator[Follows]:
    """A number is a sum of contributions of other columns: so much a unit, or so much for a category."""
    rows = table.some(MAX_ROWS)
    design = _Design.of(table, rows)
    if design is None:
        return
    fit, judge = rows[0::2], rows[1::2]
    for target in design.candidates(fit):
        if target in found:
            continue
        excluded = {target, *(i for i in found if target in _ancestors(table, found, found[i].followed))}
        law = design.fit(table, fit, judge, target, excluded)
        if law is not None:
            found[target] = law  # at once: what follows must not explain what it follows
            yield law


def find_curves(table: Table, found: dict[int, Law]) -> Iterator[Follows]:
    """A number is a curve of another, to within a few steps of its grid: a decile of a score."""
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
        if law is not None and b not in found and not _ancestors(table, found, law.sources) & {b}:
            found[b] = law
            yield law


def _ancestors(table: Table, found: dict[int, Law], sources: Sequence[Name]) -> set[int]:
    """The positions of some columns and of all that these follow."""
    out, left = set[int](), [table.position(name) for name in sources]
    while left:
        at = left.pop()
        if at not in out:
            out.add(at)
            left += [table.position(name) for name in found[at].followed] if at in found else []
    return out


def _by_name(table: Table, law: Follows) -> Follows:
    """The equation, solved for the column that a person would call the result, if that is another one."""
    if is_result(law.column) or law.constant != 0.0 or any(abs(float(t)) != 1 for t in law.terms):  # type: ignore[arg-type]
        return law
    named = [name for name in law.sources if is_result(name)]
    return law.turned(named[0]) if len(named) == 1 else law


def _has_values(values: Floats, good: Flags) -> bool:
    return bool(good.mean() >= 1 - MAX_MISSING and len(np.unique(values[good])) >= MIN_VALUES)


def _candidate_products(logs: Floats) -> Iterator[tuple[int, int, int]]:
    """Triples (p, q, r) for which log p - log q - log r varies little, by the covariances of the logarithms."""
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
    """The law that the first number is the product of the other two, solved for the one that a person would call the
    result, or that it explains best."""
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
    return _with_band(table, rows, law if follower == 0 else law.turned(names[follower]))


def _round_factor(factor: float) -> float:
    """12, 1 / 100, … if a factor is nearly that."""
    for each in ROUND_FACTORS:
        for nice in (each, 1 / each):
            if abs(factor / nice - 1) <= 0.01:
                return nice
    return float(f"{factor:.6g}")


def _with_band(table: Table, rows: Floats, law: Follows) -> Follows:
    """The law with the band that nearly all rows lie in."""
    bound = law.bind(table.features)
    value, current = bound.typical(rows), rows[:, table.position(law.column)]
    with np.errstate(invalid="ignore", divide="ignore"):
        residual = np.abs(current - value) - bound.step
        residual = residual / np.abs(value) if law.product else residual
    residual = residual[np.isfinite(residual)].clip(min=0.0)
    band = BAND_MARGIN * float(np.quantile(residual, BAND_SHARE)) if len(residual) else 0.0
    return replace(law, band=float(f"{band:.3g}"))


@dataclass(frozen=True)
class _Design:
    """A table as columns of a linear model: numbers, and one column for each category but the commonest."""

    owner: Positions  # (d,) the feature of each column
    values: list[float]  # (d,) the raw value of a category; NaN for a number
    scale: Floats  # (d,) of numbers; 1 for categories
    named: list[bool]  # (d,) whether a person would call it the result of others

    @classmethod
    def of(cls, table: Table, rows: Floats) -> _Design | None:
        columns = list[tuple[int, float, float]]()
        for i, column in enumerate(table.features):
            cells = rows[:, i]
            present = cells[~np.isnan(cells)]
            if len(present) < (1 - MAX_MISSING) * len(cells):
                continue
            distinct, counts = np.unique(present, return_counts=True)
            if column.numbers and i in table.numbers and present.std() > 0:
                columns.append((i, np.nan, float(present.std())))
            elif not column.numbers and 1 < len(distinct) <= MAX_CATEGORIES:
                for value in distinct[counts.argsort(kind="stable")[:-1]]:
                    columns.append((i, float(value), 1.0))
        if len(columns) < 2 or len(rows) < max(MIN_ROWS, 2 * ROWS_PER_TERM * len(columns)):
            return None
        owner, values, scale = zip(*columns, strict=True)
        named = [is_result(table.features[i].name) for i in owner]
        return cls(np.array(owner, dtype=np.int64), list(values), np.array(scale), named)

    def matrix(self, rows: Floats, features: set[int] | None = None) -> Floats:
        """(n, d) the rows, with a column of ones last; those of some features only."""
        at = [j for j, i in enumerate(self.owner) if features is None or i in features]
        columns = []
        for j in at:
            cells = rows[:, self.owner[j]]
            columns.append(cells / self.scale[j] if np.isnan(self.values[j]) else cells == self.values[j])
        return np.column_stack([*columns, np.ones(len(rows))]).astype(np.float64)

    def candidates(self, rows: Floats) -> list[int]:
        """The numbers that all other columns explain nearly, results first, then the best explained."""
        x = self.matrix(rows)[:, :-1]
        x = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
        x = x - x.mean(axis=0)
        gram = x.T @ x / len(x)
        gram += RIDGE * np.diag(gram.diagonal() + 1e-12)
        explained = 1 - 1 / (np.linalg.inv(gram).diagonal() * gram.diagonal())
        good = [j for j in range(len(self.owner)) if np.isnan(self.values[j]) and explained[j] >= 0.99]
        return [int(self.owner[j]) for j in sorted(good, key=lambda j: (not self.named[j], -explained[j]))]

    def fit(self, table: Table, rows: Floats, judge: Floats, target: int, excluded: set[int]) -> Follows | None:
        """The law about one number, with as few sources as explain it as well as all do."""
        features = {int(i) for i in self.owner} - excluded
        if len(np.unique(rows[:, target])) < MIN_VALUES or not features:
            return None
        sources, error = self._select(table, rows, judge, target, features)
        if not sources:
            return None
        used = rows[~np.isnan(rows[:, [target, *sources]]).any(axis=1)]
        weights = _solve(self.matrix(used, set(sources)), used[:, target])
        law = self._law(table, target, sources, weights, len(used), error)
        return None if law is None else _with_band(table, np.concatenate([rows, judge]), law)

    def _select(
        self, table: Table, rows: Floats, judge: Floats, target: int, features: set[int]
    ) -> tuple[list[int], float]:
        """The sources that are needed, and the share of the variance that they leave unexplained."""

        def unexplained(some: set[int]) -> tuple[float, dict[int, float]]:
            fit, held = (part[~np.isnan(part[:, [target, *some]]).any(axis=1)] for part in (rows, judge))
            if min(len(fit), len(held)) < ROWS_PER_TERM * (len(some) + 1):
                return np.inf, {}
            weights = _solve(self.matrix(fit, some), fit[:, target])
            x, y = self.matrix(held, some), held[:, target]
            residual = y - x @ weights
            low, high = np.quantile(y, [0.05, 0.95])
            if np.quantile(np.abs(residual), 0.95) > MAX_TYPICAL_ERROR * (high - low) or y.var() == 0:
                return np.inf, {}
            owners = self.owner[np.isin(self.owner, list(some))]
            parts = x[:, :-1] * weights[:-1]
            return float(residual.var() / y.var()), {i: float(parts[:, owners == i].sum(axis=1).var()) for i in some}

        error, size = unexplained(features)
        if error > 1 - MIN_SUM_STRENGTH:
            return [], error
        column = table.features[target]
        step = column.step if isinstance(column, Numeric) and column.step is not None else 0.0
        rounding = (0.3 * step) ** 2 / max(float(np.nanvar(rows[:, target])), 1e-300)
        most = max(WORSE**2 * error, rounding)
        for i in sorted(size, key=lambda i: size[i]):
            less, _ = unexplained(features - {i})
            if less <= min(most, 1 - MIN_SUM_STRENGTH) and len(features) > 1:
                features = features - {i}
        return sorted(features), unexplained(features)[0]

    def _law(
        self, table: Table, target: int, sources: list[int], weights: Floats, rows: int, error: float
    ) -> Follows | None:
        columns = [j for j, i in enumerate(self.owner) if i in sources]
        terms: list[Term] = []
        constant = float(weights[-1])
        for i in sources:
            own = [(j, float(w)) for j, w in zip(columns, weights, strict=False) if self.owner[j] == i]
            if np.isnan(self.values[own[0][0]]):
                factor = float(f"{own[0][1] / self.scale[own[0][0]]:.9g}")
                if not factor:
                    return None
                terms.append(factor)
            else:
                known = {self.values[j]: w for j, w in own}
                positions = np.arange(table.features[i].weights - table.features[i].missing, dtype=np.float64)
                cells = table.cells(i, positions)
                seen = set(np.unique(table.raw[:, i]).tolist())
                points: Points = tuple(
                    (cell, float(f"{known.get(at, 0.0):.9g}"))
                    for cell, at in zip(cells, positions.tolist(), strict=True)
                    if at in seen
                )
                terms.append(points)
        names = tuple(table.features[i].name for i in sources)
        constant = float(f"{constant:.9g}") if abs(constant) > 1e-6 * float(np.nanstd(table.raw[:, target])) else 0.0
        return Follows(
            table.features[target].name, names, tuple(terms), constant, strength=float(1 - error), support=rows
        )


def _solve(x: Floats, y: Floats) -> Floats:
    """Weights of least squares, with so little ridge that only what is undetermined is affected."""
    gram = x.T @ x
    gram += RIDGE * np.diag(gram.diagonal() + 1e-12)
    weights = np.linalg.solve(gram, x.T @ y)
    return np.asarray(weights + np.linalg.solve(gram, x.T @ (y - x @ weights)))  # once more: exact sums stay exact


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
    return _with_band(table, rows, Follows(*names, (points,), strength=strength, support=len(both)))


def _curve_points(rows: Floats) -> tuple[Floats, Floats]:
    """The curve of the second column over the first: of few values, both ends of every run of the same value; of many,
    the medians around some quantiles."""
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


def _candidate_ratios(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of columns of which the second is a multiple of the first in a few rows."""
    some = whole[:FIRST_ROWS, numbers]
    for i, a in enumerate(numbers):
        rows = np.flatnonzero(some[:, i])[:3]
        ratio = some[rows, i + 1 :] / some[rows, i, None]
        for j in np.flatnonzero((np.ptp(ratio, axis=0) <= ROUNDING * np.abs(ratio).max(axis=0)) if len(rows) else ()):
            yield a, numbers[i + 1 + j]


def _verify_ratio(table: Table, whole: Floats, a: int, b: int) -> Follows | None:
    """The law that b is a fixed multiple of a, if all rows keep it."""
    first, second = whole[:, a], whole[:, b]
    known = first != 0
    if (second[~known] != 0).any() or not known.any():
        return None
    factor = float(second[known][0] / first[known][0])
    return _verify_sum(table, whole, b, (a,), (factor,)) if factor else None


def _candidate_sums(whole: Floats, numbers: list[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Columns that may be the sum of two others: a random weighting of some rows maps each column to one number, and a
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
    """The law, if all rows keep it and enough of them support it: in each part many differ from 0."""
    names = [column.name for column in table.features]
    law = Follows(names[total], tuple(names[i] for i in parts), factors, support=len(whole))
    supported = (whole[:, list(parts)] != 0).sum(axis=0).min() >= PROBE_ROWS and len(np.unique(whole[:, total])) > 2
    return law if supported and _is_exact(law, table, whole) else None


def _is_exact(law: Follows, table: Table, rows: Floats) -> bool:
    """Whether all rows keep it, but for the rounding of arithmetic."""
    value, total = law.bind(table.features).typical(rows), rows[:, table.position(law.column)]
    parts = np.abs(rows[:, [table.position(name) for name in law.sources]] * np.array(law.terms, dtype=np.float64))
    return bool((np.abs(total - value) <= ROUNDING * np.maximum(np.abs(total), parts.max(axis=1))).all())
