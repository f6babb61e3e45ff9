"""Shared by the discovery of all equations: least squares, the band of an equation, what a column follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tdce._core import Floats, Name
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.follows import Follows
from tdce.schema.constraints.table import Table

MAX_ROWS = 8_000  # used to find equations other than totals: half to fit, half to judge
MIN_ROWS = 100
MIN_VALUES = 5  # distinct, of every number in a product or price list
MAX_MISSING = 0.2  # of a column's cells
MAX_CATEGORIES = 50  # of a column in a price list
ROWS_PER_TERM = 5  # at least, in either half
MAX_TYPICAL_ERROR = 0.05  # in 95 % of the rows, as a share of the range of 90 % of them
WORSE = 1.1  # times the residual, at most, after dropping a source
BAND_SHARE = 0.995  # of the rows lie within an equation's band
BAND_MARGIN = 1.5
RIDGE = 1e-9


def ancestors(table: Table, found: Mapping[int, Law], sources: Sequence[Name]) -> set[int]:
    """The positions of some columns and of everything that these follow."""
    out, left = set[int](), [table.position(name) for name in sources]
    while left:
        at = left.pop()
        if at not in out:
            out.add(at)
            left += [table.position(name) for name in found[at].followed] if at in found else []
    return out


def with_band(table: Table, rows: Floats, law: Follows) -> Follows:
    """The law with the band that holds nearly all rows."""
    bound = law.bind(table.features)
    value, current = bound.typical(rows), rows[:, table.position(law.column)]
    with np.errstate(invalid="ignore", divide="ignore"):
        residual = np.abs(current - value) - bound.step
        residual = residual / np.abs(value) if law.product else residual
    residual = residual[np.isfinite(residual)].clip(min=0.0)
    band = BAND_MARGIN * float(np.quantile(residual, BAND_SHARE)) if len(residual) else 0.0
    return replace(law, band=float(f"{band:.3g}"))


def solve(x: Floats, y: Floats) -> Floats:
    """Weights of least squares, with a ridge so small that it affects only undetermined ones."""
    gram = x.T @ x
    gram += RIDGE * np.diag(gram.diagonal() + 1e-12)
    weights = np.linalg.solve(gram, x.T @ y)
    return np.asarray(weights + np.linalg.solve(gram, x.T @ (y - x @ weights)))  # a second step keeps exact sums exact
