"""JSON rows as a data frame, and a data frame as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from tdce._core import InputError, as_numbers, is_value, plain, show
from tdce.schema import Categorical, Column, Encoder, Numeric

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


def json_to_frame(rows: Any, encoder: Encoder) -> pd.DataFrame:
    """Turn objects by column name into a frame, with the dtypes of a file with the same cells. Columns that are not
    features are left out; null is missing."""
    if not isinstance(rows, list):
        raise InputError(f"rows is {show(rows)}; it must be a list of objects, each with a value for every column")
    for row in rows:
        if not isinstance(row, dict):
            raise InputError(f"rows has {show(row)}; each row must be an object, such as {{'age': 30}}")
        for text in (text for pair in row.items() for text in pair if isinstance(text, str)):
            if not is_value(text):
                raise InputError(
                    f"rows has {show(text)}: half a surrogate pair, which no file can hold; correct the text"
                )
    known = {str(column.name): column for column in encoder.schema}
    for row in rows:
        if not known.keys() <= row.keys():
            encoder.read(
                pd.DataFrame([list(row.values())], columns=list(row))
            )  # raises an error that names what is missing
    arrays = {column.name: _column_array([row[name] for row in rows], column) for name, column in known.items()}
    return pd.DataFrame(arrays, index=range(len(rows)))


def pass_through_cells(row: Mapping[str, Any], encoder: Encoder) -> dict[str, Any]:
    """The pass-through cells of a row, returned unchanged."""
    features = {str(name) for name in encoder.schema.names}
    return {name: cell for name, cell in row.items() if name not in features}


def series_to_json(series: pd.Series[Any]) -> list[Any]:
    """The cells of a series for JSON: numbers to the last bit, missing as null, other kinds as text."""
    if pd.api.types.is_float_dtype(series.dtype):
        series = pd.Series(as_numbers(series))
    return [None if gone else _json_value(cell) for cell, gone in zip(series.tolist(), series.isna(), strict=True)]


def values_to_json(values: Iterable[Any]) -> list[Any]:
    """Any values for JSON."""
    return series_to_json(pd.Series(list(values), dtype=object))


def frame_to_json(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One object per row."""
    columns = [series_to_json(frame.iloc[:, i]) for i in range(frame.shape[1])]
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def number_to_json(value: float) -> float | None:
    """A number for JSON; NaN is null."""
    return None if math.isnan(value) else float(value)


def _column_array(values: Sequence[Any], column: Column) -> Any:
    """The cells of a column as pandas would read them from a file."""
    for value in values:
        if isinstance(value, list | dict):
            raise InputError(f"{column.name!r} holds {show(value)}; a cell must be text, a number, true, false or null")
    words = isinstance(column, Categorical) and any(isinstance(c, str | bool) for c in column.categories)
    present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in present)
    if words or not numbers:
        series = pd.Series(list(values), dtype=object)
        series = series.infer_objects() if words else series
        return series if series.dtype == object else series.array  # pandas would infer the type of an object array
    whole = all(isinstance(v, int) and MIN_INT64 <= v <= MAX_INT64 for v in present) and _is_whole(column)
    if whole:
        return pd.array([None if _missing(v) else v for v in values], dtype="Int64")
    return pd.array([None if _missing(v) else _float(v) for v in values], dtype="Float64")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _is_whole(column: Column) -> bool:
    """Whether all numbers are whole."""
    return not isinstance(column, Numeric) or (column.step is not None and column.step.is_integer())


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if value > 0 else -math.inf


def _json_value(cell: Any) -> Any:
    cell = plain(cell)
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else str(cell)
    return cell if isinstance(cell, str | bool | int | float) else str(cell)
