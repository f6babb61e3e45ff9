"""The discovery of price lists: numbers that are sums of contributions of other columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tdce._core import Floats, Positions
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.fitting import (
    MAX_CATEGORIES,
    MAX_MISSING,
    MAX_ROWS,
    MAX_TYPICAL_ERROR,
    MIN_ROWS,
    MIN_VALUES,
    RIDGE,
    ROWS_PER_TERM,
    WORSE,
    ancestors,
    solve,
    with_band,
)
from tdce.schema.constraints.follows import Follows, Points, Term
from tdce.schema.constraints.table import Table
from tdce.schema.roles import is_result

MIN_SUM_STRENGTH = 0.999  # share of the variance that a price list explains


def find_price_lists(table: Table, found: dict[int, Law]) -> Iterator[Follows]:
    """Numbers that are sums of contributions of other columns: an amount per unit, or per category."""
    rows = table.some(MAX_ROWS)
    design = Design.of(table, rows)
    if design is None:
        return
    fit, judge = rows[0::2], rows[1::2]
    for target in design.candidates(fit):
        if target in found:
            continue
        excluded = {target, *(i for i in found if target in ancestors(table, found, found[i].followed))}
        law = design.fit(table, fit, judge, target, excluded)
        if law is not None:
            found[target] = law  # at once: a follower must not explain what it follows
            yield law


@dataclass(frozen=True)
class Design:
    """A table as columns of a linear model: numbers, and one column for each category but the commonest."""

    owner: Positions  # (d,) the feature of each column
    values: list[float]  # (d,) the raw value of a category; NaN for a number
    scale: Floats  # (d,) of numbers; 1 for categories
    named: list[bool]  # (d,) whether its name denotes a result

    @classmethod
    def of(cls, table: Table, rows: Floats) -> Design | None:
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
        """(n, d + 1) the rows, for all or some features, with a final column of ones."""
        at = [j for j, i in enumerate(self.owner) if features is None or i in features]
        columns = []
        for j in at:
            cells = rows[:, self.owner[j]]
            columns.append(cells / self.scale[j] if np.isnan(self.values[j]) else cells == self.values[j])
        return np.column_stack([*columns, np.ones(len(rows))]).astype(np.float64)

    def candidates(self, rows: Floats) -> list[int]:
        """The numbers that all other columns nearly explain: results first, then by explained variance."""
        x = self.matrix(rows)[:, :-1]
        x = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
        x = x - x.mean(axis=0)
        gram = x.T @ x / len(x)
        gram += RIDGE * np.diag(gram.diagonal() + 1e-12)
        explained = 1 - 1 / (np.linalg.inv(gram).diagonal() * gram.diagonal())
        good = [j for j in range(len(self.owner)) if np.isnan(self.values[j]) and explained[j] >= 0.99]
        return [int(self.owner[j]) for j in sorted(good, key=lambda j: (not self.named[j], -explained[j]))]

    def fit(self, table: Table, rows: Floats, judge: Floats, target: int, excluded: set[int]) -> Follows | None:
        """The law for one number, with the fewest sources that explain it as well as all."""
        features = {int(i) for i in self.owner} - excluded
        if len(np.unique(rows[:, target])) < MIN_VALUES or not features:
            return None
        sources, error = self._select(table, rows, judge, target, features)
        if not sources:
            return None
        used = rows[~np.isnan(rows[:, [target, *sources]]).any(axis=1)]
        weights = solve(self.matrix(used, set(sources)), used[:, target])
        law = self._law(table, target, sources, weights, len(used), error)
        return None if law is None else with_band(table, np.concatenate([rows, judge]), law)

    def _select(
        self, table: Table, rows: Floats, judge: Floats, target: int, features: set[int]
    ) -> tuple[list[int], float]:
        """The necessary sources, and the share of the variance that they leave unexplained."""

        def unexplained(some: set[int]) -> tuple[float, dict[int, float]]:
            fit, held = (part[~np.isnan(part[:, [target, *some]]).any(axis=1)] for part in (rows, judge))
            if min(len(fit), len(held)) < ROWS_PER_TERM * (len(some) + 1):
                return np.inf, {}
            weights = solve(self.matrix(fit, some), fit[:, target])
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
