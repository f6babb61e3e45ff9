"""The kinds of columns: a new kind is one file beside these and one line in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, Value, plain, readable, show
from tdce.schema.columns.base import AllowedValues, Column, FittedColumn
from tdce.schema.columns.categorical import MAX_CATEGORIES, Categorical
from tdce.schema.columns.grid import step_of
from tdce.schema.columns.numeric import Numeric

__all__ = [
    "KINDS",
    "AllowedValues",
    "Categorical",
    "Column",
    "FittedColumn",
    "Numeric",
    "change_column",
    "column_from_entry",
    "infer_column",
]

KINDS: tuple[type[Column], ...] = (Numeric, Categorical)
"""In the order in which they are asked whether a column is theirs; the last one takes any."""


def infer_column(series: pd.Series[Any], categorical: bool = False) -> Column:
    """Kind, grid, range or categories, read off the cells of one column; `categorical`: whatever they look like."""
    series = readable(series)
    if series.isna().all():
        raise InputError(f"{plain(series.name)!r} has no value at all: every cell is missing; drop the column")
    if categorical:
        words = pd.api.types.infer_dtype(series, skipna=True) == "string"  # also those that look like numbers
        return Categorical.infer(series.astype("category") if words else series)
    return next(column for kind in KINDS if (column := kind.infer(series)) is not None)


def column_from_entry(entry: Any) -> Column:
    """A column from its entry in a schema's JSON."""
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise InputError(f"each feature of the schema needs a name: {entry!r}")
    settings = dict(entry)
    name, called = settings["name"], settings.pop("kind", None)
    for kind in KINDS:
        if called == kind.kind:
            return kind.from_settings(settings)
    raise _unknown(name, called)


def change_column(column: Column, settings: Mapping[str, Any]) -> Column:
    """The column with other settings, perhaps of another `kind`: numbers as categories, or back."""
    settings = dict(settings)
    called = settings.pop("kind", column.kind)
    kind = next((kind for kind in KINDS if called == kind.kind), None)
    if kind is None:
        raise _unknown(column.name, called)
    kind.check_settings(column.name, settings)
    if isinstance(column, Numeric) and kind is Categorical:
        column = _codes(column)
    elif isinstance(column, Categorical) and kind is Numeric:
        same = {key: getattr(column, key) for key in ("immutable", "missing", "words")}
        column = replace(_numbers(column), **same)
    elif not isinstance(column, kind):
        raise InputError(f"{column.name!r} is {column.kind} and cannot be turned into {kind.kind}")
    return replace(column, **settings)


def _codes(column: Numeric) -> Categorical:
    """Its numbers and marks as categories; marks are proposed as little as before."""
    numbers, marks = _grid(column), tuple(map(_short, column.marks))
    allowed = (*numbers, *map(_short, column.proposed)) if marks else None
    words = column.words.among((*numbers, *marks))
    return Categorical(column.name, (*numbers, *marks), allowed, column.immutable, column.missing, words=words)


def _short(value: float) -> Value:
    return int(value) if value.is_integer() else value


def _grid(column: Numeric) -> tuple[Value, ...]:
    """The numbers that a column can have, as far as its settings say."""
    values = sorted(set(column.levels or ()))
    if column.levels is None:
        steps = np.inf if column.step is None else (column.high - column.low) / column.step
        if steps >= MAX_CATEGORIES:
            raise InputError(
                f"{column.name!r} has no list of its numbers from which to make categories ({column.describe()}); read "
                f"them off the table: Schema.infer(frame, label, categorical=[{column.name!r}])"
            )
        count = np.arange(int(np.floor(steps + 1e-9)) + 1, dtype=np.float64)
        values = np.unique(column.round(column.low + count * (column.step or 1.0))).tolist()
    return tuple(_short(v) for v in values if v not in column.marks)


def _numbers(column: Categorical) -> Numeric:
    odd = [value for value in column.categories if isinstance(value, str | bool)]
    if odd:
        raise InputError(f"{column.name!r} cannot be numeric: it has the category {show(odd[0])}")
    values = np.unique(np.array(column.categories, dtype=np.float64))
    step, _ = step_of(values, np.ones(len(values), dtype=np.int64))
    whole = step is not None and len(values) == round((values[-1] - values[0]) / step) + 1
    return Numeric(column.name, values[0], values[-1], step, None if whole else tuple(values.tolist()))


def _unknown(name: Name, called: Any) -> InputError:
    return InputError(f"{name!r}: kind {called!r} must be {' or '.join(kind.kind for kind in KINDS)}")
