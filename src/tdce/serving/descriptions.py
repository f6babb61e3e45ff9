"""What is known of the columns, in the words of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats
from tdce.report import Speaker, write_number
from tdce.schema import Categorical, Column, Numeric
from tdce.serving.json_rows import cells

MOST_LISTED = 6  # values that are listed


def described(column: Column, speaker: Speaker) -> str:
    """Which values it has: `4 categories: owned, rented, …`, `18 to 75, whole numbers`."""
    if isinstance(column, Categorical):
        return _categories(column, speaker)
    return _numbers(column, speaker) if isinstance(column, Numeric) else column.describe()


def spoken(column: Column, speaker: Speaker) -> dict[str, Any]:
    """How the studio writes it: for an analyst, who types values in and must know what they are."""
    known = column.categories if isinstance(column, Categorical) else ()
    return {
        "title": speaker.title(column.name),
        "values": {str(value): speaker.value(column.name, value) for value in known},
        "unit": speaker.translate(column.words.unit),
        "format": column.words.format,
        "named": speaker.may_name(column.name),
    }


def usual(
    people: Floats,  # (n, features)
    columns: Sequence[Column],
) -> dict[str, Any]:
    """Somebody to begin with: of each column the median number, or the most common category."""
    found = {}
    for column, values in zip(columns, people.T, strict=True):
        known = values[~np.isnan(values)]
        if len(known) == 0:
            middle = np.nan
        elif column.numbers:
            middle = np.sort(known)[(len(known) - 1) // 2]  # one that somebody has
        else:
            different, times = np.unique(known, return_counts=True)
            middle = different[times.argmax()]
        found[str(column.name)] = cells(pd.Series(column.cells(np.array([middle])), dtype=object))[0]
    return found


def _categories(column: Categorical, speaker: Speaker) -> str:
    in_order = (*column.order, *(each for each in column.categories if each not in column.order))
    said = [_listed(column, in_order, speaker, "studio_categories")]
    if column.order:
        said.append(speaker.text("studio_in_order"))
    never = [each for each in column.categories if column.allowed is not None and each not in column.allowed]
    if never:
        said.append(_listed(column, tuple(never), speaker, "studio_never_proposed"))
    return "; ".join(said)


def _numbers(column: Numeric, speaker: Speaker) -> str:
    places = {"low": _number(speaker, column.low), "high": _number(speaker, column.high)}
    if column.levels is not None:
        text = speaker.text("studio_grid_levels", count=len(column.levels), **places)
    elif column.step is None:
        text = speaker.text("studio_grid_any", **places)
    elif column.step == 1:
        text = speaker.text("studio_grid_whole", **places)
    else:
        text = speaker.text("studio_grid_steps", step=_number(speaker, column.step), **places)
    return f"{text}; {_listed(column, column.marks, speaker, 'studio_marks')}" if column.marks else text


def _number(speaker: Speaker, value: float) -> str:
    return write_number(speaker.messages, value)


def _listed(column: Column, values: tuple[Any, ...], speaker: Speaker, key: str) -> str:
    """The first few of them, in a message."""
    text = " · ".join(speaker.value(column.name, each) for each in values[:MOST_LISTED])
    if len(values) > MOST_LISTED:
        text = speaker.text("studio_and_more", values=text, count=len(values) - MOST_LISTED)
    return speaker.text(key, values=text, count=len(values))
