"""The cells of a data frame as plain values: checks, numbers, categories."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Hashable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce._core.errors import InputError, plain, show

Name = Hashable  # of a column; in practice str or int
Value = str | bool | int | float
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]

LARGEST_VALUE = 1e150  # a larger number is not a measurement, but e.g. the largest float as a code for missing

NUMBER_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
ZERO_PADDED = re.compile(r"[+-]?0[0-9]")  # 007 is a code, not the number 7


def check_table(frame: Any) -> None:
    """Check that an argument is a data frame whose columns have single-level names."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"the table must be a data frame, not {type(frame).__name__}")
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"the table's columns have {frame.columns.nlevels} levels of names, such as {show(frame.columns[0])}; "
            "give each column one name: frame.columns = ['_'.join(map(str, names)) for names in frame.columns]"
        )


def normalise_column(series: pd.Series[Any], known: Container[Any] = ()) -> pd.Series[Any]:
    """The column in a dtype whose cells pandas can compare: dense, with numbers of 64 bits at most; else an error.
    Cells of spaces alone are missing, unless they are among the `known` categories."""
    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return series.astype(dtype.subtype)
    if str(dtype) == "null[pyarrow]":  # pandas 2 treats its missing cells as a value
        return series.astype(object)
    if isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            return series.astype(np.float64)
    if isinstance(dtype, pd.ArrowDtype) and dtype.pyarrow_dtype.num_fields and not _is_dictionary(dtype):
        raise InputError(f"{series.name!r} holds nested values ({dtype.pyarrow_dtype}); only text, numbers and yes/no "
                         "are supported: give each part a column of its own, or drop the column")  # fmt: skip
    if pd.api.types.is_object_dtype(dtype):
        signalling = [isinstance(cell, Decimal) and cell.is_snan() for cell in series]
        if any(signalling):
            raise InputError(f"{series.name!r} has Decimal('sNaN') in row {first_row(series, signalling)}; "
                             "give a number, or leave the cell empty if the value is not known")  # fmt: skip
        blank = np.array([is_blank(cell) and cell not in known for cell in series], dtype=bool)
        return series.mask(blank) if blank.any() else series
    if isinstance(dtype, pd.CategoricalDtype):
        blanks = [cell for cell in dtype.categories if is_blank(cell) and cell not in known]
        series = series.cat.remove_categories(blanks) if blanks else series
        values = dtype.categories.to_series()
        narrow = pd.api.types.is_float_dtype(values.dtype) and getattr(values.dtype, "itemsize", 8) < 8
        return series.cat.rename_categories(as_numbers(values).tolist()) if narrow else series
    if pd.api.types.is_string_dtype(dtype):
        blanks = [cell for cell in series.unique() if is_blank(cell) and cell not in known]
        return series.mask(series.isin(blanks)) if blanks else series
    return series


def is_blank(cell: Any) -> bool:
    """Whether a cell is text that consists of spaces alone."""
    return isinstance(cell, str) and not cell.strip()


def first_row(series: pd.Series[Any], flags: Any) -> str:
    """The index label of the first flagged row, for a message."""
    return show(series.index[np.asarray(flags, dtype=bool)].tolist()[0])


def as_numbers(series: pd.Series[Any]) -> Floats:
    """A numeric column as float64, with missing cells as NaN. Narrow floats are read by their shortest decimal text: a
    float32 that prints as 0.1 becomes 0.1."""
    if pd.api.types.is_object_dtype(series.dtype):
        return np.array([_float(v) for v in series.to_numpy(dtype=object, na_value=np.nan)], dtype=np.float64)
    if pd.api.types.is_float_dtype(series.dtype) and getattr(series.dtype, "itemsize", 8) < 8:
        narrow = series.to_numpy(dtype=_numpy_float(series.dtype), na_value=np.nan)
        return narrow.astype(str).astype(np.float64)
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def as_decimals(series: pd.Series[Any]) -> pd.Series[Any]:
    """A column of objects with its numbers as decimals; columns of other dtypes are unchanged."""
    if not pd.api.types.is_object_dtype(series.dtype):
        return series
    return pd.Series([as_decimal(cell) for cell in series], series.index, dtype=object, name=series.name)


def as_decimal(cell: Any) -> Any:
    """A number or a flag as a decimal, by its shortest text; any other cell unchanged."""
    if isinstance(cell, bool | np.bool_):
        return Decimal(int(cell))
    return Decimal(str(plain(cell))) if is_plain_number(cell) else cell


def is_plain_number(cell: Any) -> bool:
    """Whether a cell is a number other than a decimal, and not missing."""
    return is_number(cell) and not isinstance(cell, Decimal) and cell == cell


def check_finite(series: pd.Series[Any], values: Floats, most: float = np.inf) -> None:
    """Check that no cell of a numeric column is infinite, or beyond `most`."""
    wrong = np.isinf(values) | (np.abs(values) > most)
    if wrong.any():
        raise InputError(
            f"{series.name!r} is infinite or too large ({show(series[wrong].iloc[0], 30, str)}) in row "
            f"{first_row(series, wrong)}; give a number, or leave the cell empty if the value is not known"
        )


def same(values: Floats, others: Floats) -> Flags:
    """Where two arrays of cells are equal; missing equals missing."""
    return np.asarray((values == others) | (np.isnan(values) & np.isnan(others)))


def holds_numbers(series: pd.Series[Any]) -> bool:
    """Whether a column holds numbers; flags do not count as numbers."""
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
    """Whether a cell can be a category or a class: a flag, a finite number, valid Unicode text."""
    if isinstance(cell, str):
        return cell.encode(errors="replace").decode() == cell  # no lone surrogate
    return isinstance(cell, bool | int | float) and -LARGEST_VALUE <= cell <= LARGEST_VALUE


def sort_values(values: Iterable[Value]) -> tuple[Value, ...]:
    """The values sorted: numbers and flags by size, then text."""
    return tuple(sorted(values, key=lambda v: (isinstance(v, str), v)))


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    return str(dtype.pyarrow_dtype).startswith("dictionary")


def _float(cell: Any) -> float:
    try:
        return float(plain(cell))
    except OverflowError:  # an integer of more than 308 digits
        return math.inf if cell > 0 else -math.inf


def _numpy_float(dtype: Any) -> Any:
    return np.float16 if dtype.itemsize == 2 else np.float32
