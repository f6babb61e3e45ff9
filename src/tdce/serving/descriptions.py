"""Descriptions of the columns and of the laws, as the pages show them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats, Name
from tdce.report import Speaker, write_number
from tdce.schema import Categorical, Column, Numeric, Schema
from tdce.serving.json_rows import series_to_json

MAX_LISTED_VALUES = 6  # in a description


def describe_column(column: Column, speaker: Speaker) -> str:
    """The values of a column: `4 categories: owned, rented, …`, `18 to 75, whole numbers`."""
    if isinstance(column, Categorical):
        return _describe_categories(column, speaker)
    return _describe_numbers(column, speaker) if isinstance(column, Numeric) else column.describe()


def describe_laws(schema: Schema, named: Collection[Name]) -> list[dict[str, Any]]:
    """The laws between columns that may be named, each with its position in the schema."""
    sentences = schema.sentences()
    return [
        {
            "number": i,
            "sentence": sentences[i],
            "words": str(law),
            "on": law.on,
            "hard": law.hard,
            "support": law.support,
            "exceptions": law.exceptions,
            "strength": getattr(law, "strength", None),
            "columns": list(map(str, law.columns)),
            "follower": None if law.follower is None else str(law.follower),
        }
        for i, law in enumerate(schema.laws)
        if all(name in named for name in law.columns)
    ]


def column_wording(column: Column, speaker: Speaker) -> dict[str, Any]:
    """How the studio writes a column and its values for analysts, who type them in."""
    categories = column.categories if isinstance(column, Categorical) else ()
    return {
        "title": speaker.title(column.name),
        "values": {str(value): speaker.value(column.name, value) for value in categories},
        "unit": speaker.translate(column.words.unit),
        "format": column.words.format,
        "named": speaker.may_name(column.name),
    }


def default_person(
    people: Floats,  # (n, features)
    columns: Sequence[Column],
) -> dict[str, Any]:
    """The person a page starts with: the median of each number, the most common value of each category."""
    person = {}
    for column, values in zip(columns, people.T, strict=True):
        known = values[~np.isnan(values)]
        if len(known) == 0:
            middle = np.nan
        elif column.numbers:
            middle = np.sort(known)[(len(known) - 1) // 2]  # a value that occurs
        else:
            different, times = np.unique(known, return_counts=True)
            middle = different[times.argmax()]
        person[str(column.name)] = series_to_json(pd.Series(column.cells(np.array([middle])), dtype=object))[0]
    return person


def _describe_categories(column: Categorical, speaker: Speaker) -> str:
    in_order = (*column.order, *(each for each in column.categories if each not in column.order))
    texts = [_list_values(column, in_order, speaker, "studio_categories")]
    if column.order:
        texts.append(speaker.text("studio_in_order"))
    excluded = [each for each in column.categories if column.allowed is not None and each not in column.allowed]
    if excluded:
        texts.append(_list_values(column, tuple(excluded), speaker, "studio_never_proposed"))
    return "; ".join(texts)


def _describe_numbers(column: Numeric, speaker: Speaker) -> str:
    places = {"low": _number(speaker, column.low), "high": _number(speaker, column.high)}
    if column.levels is not None:
        text = speaker.text("studio_grid_levels", count=len(column.levels), **places)
    elif column.step is None:
        text = speaker.text("studio_grid_any", **places)
    elif column.step == 1:
        text = speaker.text("studio_grid_whole", **places)
    else:
        text = speaker.text("studio_grid_steps", step=_number(speaker, column.step), **places)
    return f"{text}; {_list_values(column, column.marks, speaker, 'studio_marks')}" if column.marks else text


def _number(speaker: Speaker, value: float) -> str:
    return write_number(speaker.messages, value)


def _list_values(column: Column, values: tuple[Any, ...], speaker: Speaker, key: str) -> str:
    """List the first few values in a message."""
    text = " · ".join(speaker.value(column.name, each) for each in values[:MAX_LISTED_VALUES])
    if len(values) > MAX_LISTED_VALUES:
        text = speaker.text("studio_and_more", values=text, count=len(values) - MAX_LISTED_VALUES)
    return speaker.text(key, values=text, count=len(values))
