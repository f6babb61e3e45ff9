"""The kinds of columns: a new kind is one file beside these and one line in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, Value, normalise_column, plain, show
from tdce.schema.columns.base import AllowedValues, Column, FittedColumn, with_role
from tdce.schema.columns.categorical import MAX_CATEGORIES, Categorical
from tdce.schema.columns.grid import infer_step
from tdce.schema.columns.numeric import Numeric
from tdce.schema.roles import ONLY_UP

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
"""In the order in which they are tried on a column; the last one takes any."""


def infer_column(series: pd.Series[Any], categorical: bool = False) -> Column:
    """Infer kind, grid, range or categories from the cells of one column; `categorical`: its numbers are codes."""
    series = normalise_column(series)
    if series.isna().all():
        raise InputError(f"{plain(series.name)!r} has no value at all: every cell is missing; drop the column")
    if categorical:
        text = pd.api.types.infer_dtype(series, skipna=True) == "string"  # also for text that looks like numbers
        return Categorical.infer(series.astype("category") if text else series)
    return next(column for kind in KINDS if (column := kind.infer(series)) is not None)


def column_from_entry(entry: Any) -> Column:
    """A column from its entry in a schema's JSON."""
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise InputError(f"each feature of the schema needs a name, but one is {show(entry)}")
    settings = dict(entry)
    name, kind_name = settings["name"], settings.pop("kind", None)
    for kind in KINDS:
        if isinstance(kind_name, str) and kind_name == kind.kind:
            return kind.from_settings(settings)
    raise _unknown_kind(name, kind_name)


def change_column(column: Column, settings: Mapping[str, Any]) -> Column:
    """The column with new settings, possibly another `kind`: numbers as categories, or categories as numbers."""
    settings = dict(settings)
    kind_name = settings.pop("kind", column.kind)
    kind = next((kind for kind in KINDS if isinstance(kind_name, str) and kind_name == kind.kind), None)
    if kind is None:
        raise _unknown_kind(column.name, kind_name)
    kind.check_settings(column.name, settings)
    if isinstance(column, Numeric) and kind is Categorical:
        column = _to_categorical(column)
    elif isinstance(column, Categorical) and kind is Numeric:
        common = {key: getattr(column, key) for key in ("immutable", "missing", "role", "words")}
        column = replace(_to_numeric(column), **common)
    elif not isinstance(column, kind):
        raise InputError(f"{column.name!r} is {column.kind} and cannot be changed to {kind.kind}")
    settings = with_role(column.name, settings, column.role)
    if isinstance(column, Numeric) and column.role in ONLY_UP and settings.get("role") == "actionable":
        settings.setdefault("direction", "any")  # the old one came from the role
    return replace(column, **settings)


def _to_categorical(column: Numeric) -> Categorical:
    """Turn numbers and marks into categories; marks may be proposed only if they could be before."""
    numbers, marks = _grid_values(column), tuple(map(_as_whole, column.marks))
    allowed = (*numbers, *map(_as_whole, column.proposed)) if marks else None
    words = column.words.among((*numbers, *marks))
    common = {key: getattr(column, key) for key in ("immutable", "missing", "role")}
    return Categorical(column.name, (*numbers, *marks), allowed, words=words, **common)


def _as_whole(value: float) -> Value:
    """A whole number as an int."""
    return int(value) if value.is_integer() else value


def _grid_values(column: Numeric) -> tuple[Value, ...]:
    """The numbers that the column's settings admit."""
    values = sorted(set(column.levels or ()))
    if column.levels is None:
        steps = np.inf if column.step is None else (column.high - column.low) / column.step
        if steps >= MAX_CATEGORIES:
            raise InputError(
                f"{column.name!r} ({column.describe()}) has too many possible numbers to make them categories; infer "
                f"them from the table: Schema.infer(frame, label, categorical=[{column.name!r}])"
            )
        count = np.arange(int(np.floor(steps + 1e-9)) + 1, dtype=np.float64)
        values = np.unique(column.round(column.low + count * (column.step or 1.0))).tolist()
    return tuple(_as_whole(v) for v in values if v not in column.marks)


def _to_numeric(column: Categorical) -> Numeric:
    others = [value for value in column.categories if isinstance(value, str | bool)]
    if others:
        raise InputError(f"{column.name!r} cannot be numeric: it has the category {show(others[0])}")
    values = np.unique(np.array(column.categories, dtype=np.float64))
    step, _ = infer_step(values, np.ones(len(values), dtype=np.int64))
    complete = step is not None and len(values) == round((values[-1] - values[0]) / step) + 1
    return Numeric(column.name, values[0], values[-1], step, None if complete else tuple(values.tolist()))


def _unknown_kind(name: Name, kind_name: Any) -> InputError:
    return InputError(f"{show(name)}: kind {show(kind_name)} must be {' or '.join(kind.kind for kind in KINDS)}")
