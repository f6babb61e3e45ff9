"""The cells of a data frame as plain values."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce._core.errors import InputError, show

Name = Hashable  # in practice str or int: what a data frame calls a column
Value = str | bool | int | float
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]

LARGEST = 1e150  # a number beyond means no real one (a largest float as a mark of missing, say)

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
PADDED = re.compile(r"[+-]?0[0-9]")  # 007 is a code, not the number 7


def check_table(frame: Any) -> None:
    """That it is a data frame whose columns have one name each."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"the table must be a data frame, not {type(frame).__name__}")
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"the table's columns have {frame.columns.nlevels} levels of names, such as {show(frame.columns[0])}; "
            "give each column one name: frame.columns = ['_'.join(map(str, names)) for names in frame.columns]"
        )


def readable(series: pd.Series[Any]) -> pd.Series[Any]:
    """The column as pandas can compare its cells: dense, numbers of 64 bits at most; others are named."""
    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return series.astype(dtype.subtype)
    if str(dtype) == "null[pyarrow]":  # whose missing cells pandas 2 takes for a value
        return series.astype(object)
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            return series.astype(np.float64)
    if isinstance(dtype, pd.ArrowDtype) and dtype.pyarrow_dtype.num_fields and not _is_dictionary(dtype):
        raise InputError(f"{series.name!r} holds nested values ({dtype.pyarrow_dtype}); only text, numbers and yes/no "
                         "are supported: give each part a column of its own, or drop the column")  # fmt: skip
    if pd.api.types.is_object_dtype(dtype):
        signals = [isinstance(cell, Decimal) and cell.is_snan() for cell in series]
        if any(signals):
            raise InputError(f"{series.name!r} has Decimal('sNaN') in row {row_of(series, signals)}; "
                             "give a number, or leave the cell empty if the value is not known")  # fmt: skip
    return series


def row_of(series: pd.Series[Any], flags: Any) -> str:
    """The index label of the first flagged row, for a message."""
    return show(series.index[np.asarray(flags, dtype=bool)].tolist()[0])


def as_numbers(series: pd.Series[Any]) -> Floats:
    """A numeric column as float64, missing as NaN. Narrow floats are read by their shortest decimal text:
    a float32 that shows as 0.1 is 0.1, so that decimals stay decimals."""
    if pd.api.types.is_object_dtype(series.dtype):
        return np.array([_float(v) for v in series.to_numpy(dtype=object, na_value=np.nan)], dtype=np.float64)
    if pd.api.types.is_float_dtype(series.dtype) and getattr(series.dtype, "itemsize", 8) < 8:
        narrow = series.to_numpy(dtype=_numpy_float(series.dtype), na_value=np.nan)
        return narrow.astype(str).astype(np.float64)
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def check_finite(series: pd.Series[Any], values: Floats, most: float = np.inf) -> None:
    """Name the first cell of a numeric column that is infinite, or beyond `most`."""
    wrong = np.isinf(values) | (np.abs(values) > most)
    if wrong.any():
        raise InputError(
            f"{series.name!r} is infinite or too large ({show(series[wrong].iloc[0], 30, str)}) in row "
            f"{row_of(series, wrong)}; give a number, or leave the cell empty if the value is not known"
        )


def same(values: Floats, others: Floats) -> Flags:
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
        kind = pd.api.types.infer_dtype(series, skipna=True)
        if kind.startswith("mixed"):  # decimals beside floats, or words beside numbers
            return all(is_number(cell) for cell in series[series.notna()])
        return kind in {"integer", "floating", "decimal"}
    return False


def is_number(cell: Any) -> bool:
    return isinstance(cell, Real | Decimal) and not isinstance(cell, bool)


def is_value(cell: Any) -> bool:
    """Whether a cell can be a category or a class: a flag, a finite number, text that a file can hold."""
    if isinstance(cell, str):
        return cell.encode(errors="replace").decode() == cell  # no half of a surrogate pair
    return isinstance(cell, bool | int | float) and -LARGEST <= cell <= LARGEST


def ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Numbers and flags by size, then words."""
    return tuple(sorted(values, key=lambda v: (isinstance(v, str), v)))


def plain(value: Any) -> Value:
    """A cell as a plain Python value: numpy scalars unwrapped."""
    return value.item() if isinstance(value, np.generic) else value  # type: ignore[no-any-return]


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    return str(dtype.pyarrow_dtype).startswith("dictionary")


def _float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if cell > 0 else -math.inf


def _numpy_float(dtype: Any) -> Any:
    return np.float16 if dtype.itemsize == 2 else np.float32
