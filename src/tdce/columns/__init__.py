"""The kinds of columns: a new kind is one file beside these and one line in `KINDS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tdce.cells import plain, readable
from tdce.columns.base import Choices, Column, Learned
from tdce.columns.categorical import Categorical
from tdce.columns.numeric import Numeric
from tdce.errors import InputError

__all__ = ["KINDS", "Categorical", "Choices", "Column", "Learned", "Numeric", "from_entry", "infer"]

KINDS: tuple[type[Column], ...] = (Numeric, Categorical)
"""In the order in which they are asked whether a column is theirs; the last one takes any."""


def infer(series: pd.Series[Any]) -> Column:
    """Kind, grid, range or categories, read off the cells of one column."""
    series = readable(series)
    if series.isna().all():
        raise InputError(f"{plain(series.name)!r} has no value at all: every cell is missing; drop the column")
    return next(column for kind in KINDS if (column := kind.infer(series)) is not None)


def from_entry(entry: Any) -> Column:
    """A column from its entry in a schema's JSON."""
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise InputError(f"each feature of the schema needs a name: {entry!r}")
    settings = dict(entry)
    name, called = settings["name"], settings.pop("kind", None)
    for kind in KINDS:
        if called == kind.kind:
            return kind.from_settings(settings)
    raise InputError(f"{name!r}: kind {called!r} must be {' or '.join(kind.kind for kind in KINDS)}")
