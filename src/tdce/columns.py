"""One column of a data frame: its cells as plain values, and the grid or the categories that they show."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce.errors import InputError

Name = Hashable  # in practice str or int: what a data frame calls a column
Value = str | bool | int | float
Floats = NDArray[np.float64]

MAX_CATEGORIES = 1_000  # a text column with more different values is taken for an identifier
MAX_LEVELS = 256
ROWS_PER_LEVEL = 50


def as_numbers(series: pd.Series[Any]) -> Floats:
    """A numeric column as float64, missing as NaN. Narrow floats are read by their shortest decimal text:
    a float32 that shows as 0.1 is 0.1, so that decimals stay decimals."""
    if pd.api.types.is_object_dtype(series.dtype):
        return np.array([float(v) for v in series.to_numpy(dtype=object, na_value=np.nan)], dtype=np.float64)
    if pd.api.types.is_float_dtype(series.dtype) and getattr(series.dtype, "itemsize", 8) < 8:
        narrow = series.to_numpy(dtype=_numpy_float(series.dtype), na_value=np.nan)
        return narrow.astype(str).astype(np.float64)
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def same(values: Floats, others: Floats) -> NDArray[np.bool_]:
    """Where two arrays of cells say the same; missing is the same as missing."""
    return np.asarray((values == others) | (np.isnan(values) & np.isnan(others)))


def holds_numbers(series: pd.Series[Any]) -> bool:
    """Whether a column holds numbers (flags are not numbers)."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return False
    if pd.api.types.is_complex_dtype(dtype):
        raise InputError(f"{series.name!r} holds complex numbers; give their parts as two columns")
    if pd.api.types.is_numeric_dtype(dtype):
        return True
    if pd.api.types.is_object_dtype(dtype):
        return pd.api.types.infer_dtype(series, skipna=True) in {
            "integer", "floating", "mixed-integer-float", "decimal",
        }  # fmt: skip
    return False


def plain(value: Any) -> Value:
    """A cell as a plain Python value: numpy scalars unwrapped."""
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]


def step_of(distinct: Floats) -> float | None:
    """The coarsest decimal grid that all values lie on; with many values also its multiple (5, 25, …)."""
    for decimals in range(13):
        units = distinct * 10.0**decimals
        if np.abs(units).max() > 2.0**52:
            return 1.0 if (np.rint(distinct) == distinct).all() else None
        if (np.rint(units) / 10.0**decimals == distinct).all():
            multiple = int(np.gcd.reduce(np.rint(units).astype(np.int64))) if len(distinct) >= 20 else 1
            return float(Decimal(multiple).scaleb(-decimals))
    return None


def levels_of(distinct: Floats, step: float | None, rows: int) -> tuple[float, ...] | None:
    """The few values themselves, where a well-filled column leaves most of its grid empty (e.g. 0, 3103, 5178)."""
    if step is None or len(distinct) > MAX_LEVELS or len(distinct) * ROWS_PER_LEVEL > rows:
        return None
    points_on_grid = (distinct[-1] - distinct[0]) / step + 1
    return tuple(distinct.tolist()) if 2 * len(distinct) < points_on_grid else None


def categories_of(present: pd.Series[Any]) -> tuple[Value, ...]:
    if isinstance(present.dtype, pd.CategoricalDtype):
        values = list(present.cat.remove_unused_categories().cat.categories)
    else:
        try:
            values = list(present.unique())
        except TypeError:
            raise InputError(f"{present.name!r} holds lists or other nested values; only text, numbers and "
                             "yes/no are supported") from None  # fmt: skip
    values = [plain(v) for v in values]
    for value in values:
        if not isinstance(value, str | bool | int | float):
            raise InputError(
                f"{present.name!r} holds {type(value).__name__} ({value}); only text, numbers and yes/no are "
                "supported: convert it (a date, for instance, to days before today) or drop the column"
            )
    if len(values) > MAX_CATEGORIES:
        raise InputError(
            f"{present.name!r} has {len(values):,} different values in {len(present):,} rows and looks like an "
            "identifier; drop the column, or convert it to numbers if it holds numbers"
        )
    if isinstance(present.dtype, pd.CategoricalDtype):
        return tuple(values)
    return tuple(sorted(values, key=lambda v: (isinstance(v, str), v if isinstance(v, str) else float(v))))


def _numpy_float(dtype: Any) -> Any:
    return np.float16 if dtype.itemsize == 2 else np.float32
