"""Rows of JSON as a data frame, and cells of a frame as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tdce._core import InputError, as_numbers, is_value, plain, show
from tdce.schema import Categorical, Column, Encoder, Numeric

SMALLEST, LARGEST = -(2**63), 2**63 - 1  # whole numbers that a column can hold


def frame_of(rows: Any, encoder: Encoder) -> pd.DataFrame:
    """Objects by column name as a frame, with the dtypes that a file of the same cells is read with. What a row says
    of other columns is left out; null is missing."""
    if not isinstance(rows, list):
        raise InputError(f"rows is {show(rows)}; it must be a list of objects, each with a value for every column")
    for row in rows:
        if not isinstance(row, dict):
            raise InputError(f"rows has {show(row)}; each row must be an object, such as {{'age': 30}}")
        for text in (text for pair in row.items() for text in pair if isinstance(text, str)):
            if not is_value(text):
                raise InputError(f"rows has {show(text)}: half a character, which no file can hold; correct the text")
    known = {str(column.name): column for column in encoder.schema}
    for row in rows:
        if not known.keys() <= row.keys():
            encoder.read(pd.DataFrame([list(row.values())], columns=list(row)))  # names what is not there
    cells_by = {column.name: _array([row[name] for row in rows], column) for name, column in known.items()}
    return pd.DataFrame(cells_by, index=range(len(rows)))


def others(row: Mapping[str, Any], encoder: Encoder) -> dict[str, Any]:
    """What a row says besides the features: carried through."""
    features = {str(name) for name in encoder.schema.names}
    return {name: cell for name, cell in row.items() if name not in features}


def cells(series: pd.Series[Any]) -> list[Any]:
    """As JSON holds them: numbers to the last bit, missing as null, anything odd as text."""
    if pd.api.types.is_float_dtype(series.dtype):
        series = pd.Series(as_numbers(series))
    return [None if gone else _plain(cell) for cell, gone in zip(series.tolist(), series.isna(), strict=True)]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One object per row."""
    columns = [cells(frame.iloc[:, i]) for i in range(frame.shape[1])]
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def number(value: float) -> float | None:
    """A number for JSON, which has none that is not known."""
    return None if math.isnan(value) else float(value)


def _array(values: Sequence[Any], column: Column) -> Any:
    for value in values:
        if isinstance(value, list | dict):
            raise InputError(f"{column.name!r} holds {show(value)}; a cell must be text, a number, true, false or null")
    words = isinstance(column, Categorical) and any(isinstance(c, str | bool) for c in column.categories)
    present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in present)
    if words or not numbers:
        series = pd.Series(list(values), dtype=object)
        series = series.infer_objects() if words else series
        return series if series.dtype == object else series.array  # objects in an array would be inferred again
    whole = all(isinstance(v, int) and SMALLEST <= v <= LARGEST for v in present) and _whole(column)
    if whole:
        return pd.array([None if _missing(v) else v for v in values], dtype="Int64")
    return pd.array([None if _missing(v) else _float(v) for v in values], dtype="Float64")


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _whole(column: Column) -> bool:
    """Whether its numbers have no decimals."""
    return not isinstance(column, Numeric) or (column.step is not None and column.step.is_integer())


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if value > 0 else -math.inf


def _plain(cell: Any) -> Any:
    cell = plain(cell)
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else str(cell)
    return cell if isinstance(cell, str | bool | int | float) else str(cell)
