"""One column of a data frame: its cells as plain values, and the grid or the categories that they show."""

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

from tdce.errors import InputError, shown

Name = Hashable  # in practice str or int: what a data frame calls a column
Value = str | bool | int | float
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]

LARGEST = 1e150  # a number beyond stands for no real one (a largest float as a mark of missing, say)
MAX_CATEGORIES = 1_000  # a text column with more different values is taken for an identifier
MAX_LEVELS = 256
ROWS_PER_LEVEL = 50

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NUMBER_WITH_COMMA = re.compile(r"[+-]?([0-9]+(,[0-9]+)?|,[0-9]+)")
PADDED = re.compile(r"[+-]?0[0-9]")  # 007 is a code, not the number 7
FEWEST_NUMBERS = 20  # so many different numbers, with
MOST_ODD = 3  # so few different words beside them
MOST_ODD_CELLS = 0.05  # in so small a share of the cells, are a column of numbers with slips in it


def check_table(frame: Any) -> None:
    """That it is a data frame whose columns have one name each."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"the table must be a data frame, not {type(frame).__name__}")
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError(
            f"the table's columns have {frame.columns.nlevels} levels of names, such as {shown(frame.columns[0])}; "
            "give each column one name: frame.columns = ['_'.join(map(str, names)) for names in frame.columns]"
        )


def readable(series: pd.Series[Any]) -> pd.Series[Any]:
    """The column as pandas can compare its cells: dense, at most 64 bits a number; what it cannot compare is named."""
    dtype = series.dtype
    if isinstance(dtype, pd.SparseDtype):
        return series.astype(dtype.subtype)
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
    return shown(series.index[np.asarray(flags, dtype=bool)].tolist()[0])


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
            f"{series.name!r} is infinite or too large ({shown(series[wrong].iloc[0], 30, str)}) in row "
            f"{row_of(series, wrong)}; give a number, or leave the cell empty if the value is not known"
        )


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
        kind = pd.api.types.infer_dtype(series, skipna=True)
        if kind.startswith("mixed"):  # decimals beside floats, or words beside numbers
            return all(gone or is_number(cell) for cell, gone in zip(series, series.isna(), strict=True))
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
        if not is_value(value):
            raise InputError(
                f"{present.name!r} holds {type(value).__name__} ({shown(value, spell=str)}); only text, numbers and "
                "yes/no are supported: convert it (a date, for instance, to days before today) or drop the column"
            )
    if not isinstance(present.dtype, pd.CategoricalDtype):
        _check_odd_cells(present, values)
    if len(values) > MAX_CATEGORIES:
        raise InputError(
            f"{present.name!r} has {len(values):,} different values in {len(present):,} rows and looks like an "
            "identifier; drop the column, or convert it to numbers if it holds numbers"
        )
    return tuple(values) if isinstance(present.dtype, pd.CategoricalDtype) else ordered(values)


def _check_odd_cells(present: pd.Series[Any], values: list[Value]) -> None:
    """A few words among numbers are slips, and numbers with a comma in them are no words."""
    odd = _odd(present, values, NUMBER)
    if odd:
        strange = present.isin(odd)
        raise InputError(
            f"{present.name!r} holds numbers, but has {shown(present[strange].iloc[0])} in row "
            f"{row_of(present, strange)}; correct the cell, leave it empty if the value is not known, or, if these are "
            "names and not numbers, give a schema that says categorical (in pandas: astype('category'))"
        )
    if odd is None and _odd(present, values, NUMBER_WITH_COMMA) is not None:
        example = next(v for v in values if "," in str(v))
        raise InputError(f"{present.name!r} holds numbers with a comma, such as {shown(example)}; if it is decimal, "
                         "read the table with --decimal , (in pandas: decimal=','), else take it out")  # fmt: skip


def _odd(present: pd.Series[Any], values: list[Value], pattern: re.Pattern[str]) -> list[Value] | None:
    """The values that do not match, if they are few beside many that do, and no codes such as 007; else None."""
    text = {v: str(v).strip() for v in values}
    odd = [v for v in values if not pattern.fullmatch(text[v]) or PADDED.match(text[v])]
    few = len(odd) <= MOST_ODD and len(values) - len(odd) >= FEWEST_NUMBERS and not any(text[v].isdigit() for v in odd)
    return odd if few and present.isin(odd).mean() <= MOST_ODD_CELLS else None


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    return str(dtype.pyarrow_dtype).startswith("dictionary")


def _float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if cell > 0 else -math.inf


def _numpy_float(dtype: Any) -> Any:
    return np.float16 if dtype.itemsize == 2 else np.float32
