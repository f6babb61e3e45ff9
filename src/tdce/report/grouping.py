"""Groups of people by a column: quarters of a number with many values, else the most common values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from tdce._core import Flags, as_numbers, is_blank

MAX_GROUPS = 12  # of a column; the remaining values form one group
MIN_VALUES_FOR_QUARTERS = 8  # distinct numbers; with fewer, each number is a group


class Group(NamedTuple):
    """Some people, and what their values in the column have in common."""

    kind: Literal["range", "value", "others", "missing"]
    values: tuple[Any, ...]  # the lowest and the highest; the value itself; how many other values; none
    people: Flags


def group_people(column: pd.Series[Any]) -> list[Group]:
    """The groups of a column, the most common value first and missing values last; none if almost every person would be
    a group. Cells that are lists raise a TypeError."""
    missing = column.isna().to_numpy(dtype=bool) | np.array([is_blank(cell) for cell in column], dtype=bool)
    known = column[~missing]
    counts = known.value_counts()
    counts = counts[counts > 0]  # a category without people is not a group
    numeric = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    if numeric and len(counts) >= MIN_VALUES_FOR_QUARTERS:
        groups = _quarters(as_numbers(column), ~missing)
    elif len(counts) > MAX_GROUPS and len(counts) > len(known) / 2:
        return []
    else:
        groups = _common_values(column, counts, ~missing)
    return groups + ([Group("missing", (), missing)] if missing.any() else [])


def _quarters(numbers: Any, known: Flags) -> list[Group]:
    edges = np.unique(np.quantile(numbers[known], [0, 0.25, 0.5, 0.75, 1], method="lower"))
    groups = []
    for i, (low, high) in enumerate(pairwise(edges)):
        people = (numbers <= high) & ((numbers >= low) if i == 0 else (numbers > low))
        groups.append(Group("range", (numbers[people].min(), numbers[people].max()), people))
    return groups


def _common_values(column: pd.Series[Any], counts: pd.Series[int], known: Flags) -> list[Group]:
    order = sorted(counts.index, key=lambda value: (-int(counts[value]), str(value)))
    cells = column.astype(object).where(known, None).to_numpy(dtype=object)  # NA cannot be compared
    groups = [
        Group("value", (value,), np.asarray(known & (cells == value), dtype=bool)) for value in order[:MAX_GROUPS]
    ]
    if len(order) > MAX_GROUPS:
        others = known & ~np.any([group.people for group in groups], axis=0)
        groups.append(Group("others", (len(order) - MAX_GROUPS,), others))
    return groups
