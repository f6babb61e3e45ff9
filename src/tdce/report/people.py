"""The labels of people in a report, and the file name of each person."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import pandas as pd

from tdce._core import InputError, Name, is_blank, is_name, listing, show, suggest

LONGEST_FILE_NAME = 80  # characters, without the ending
UNSAFE = re.compile(r"[^\w.\- ]+")  # in the name of a file, on any system
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # on Windows


def person_labels(rows: pd.DataFrame, id: Name | None, features: Collection[Name]) -> list[str]:
    """One label per row: from the column or index level `id`, which must be no feature; by default the index label."""
    if id is None:
        return [row_label(label) for label in rows.index]
    if not is_name(id):
        raise InputError(f"id is {show(id)}; it must be the name of a column")
    if id in features:
        raise InputError(
            f"id is {show(id)}, a feature of the model; name a column that is passed through, or the index"
        )
    if id in rows.columns:
        cells = rows[id]
        if isinstance(cells, pd.DataFrame):
            raise InputError(f"id is {show(id)}, but several columns have that name; rename one of them")
    elif id in rows.index.names:
        cells = pd.Series(rows.index.get_level_values(rows.index.names.index(id)), index=rows.index)
    else:
        others = [name for name in (*rows.index.names, *rows.columns) if name is not None and name not in features]
        known = f"known: {listing(others)}" if others else "the rows have only features and an index without a name"
        raise InputError(f"id is {show(id)}, but the rows have no such column; {suggest(id, others)}{known}")
    for label, cell in zip(rows.index, cells, strict=True):
        if is_blank(cell) or (pd.api.types.is_scalar(cell) and pd.isna(cell)):
            raise InputError(f"{id!r} is empty in row {show(label)}; give everybody an id, or name another column")
    return [str(cell) for cell in cells]


def row_label(label: Any) -> str:
    """An index label as text."""
    return " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def file_names(labels: list[str], ending: str) -> list[str]:
    """A file name for each label: safe on every system, and distinct even where case does not matter."""
    names, taken = [], set[str]()
    for label in labels:
        stem = UNSAFE.sub("_", label).strip(" .")[:LONGEST_FILE_NAME] or "person"
        stem = f"_{stem}" if RESERVED.fullmatch(stem) else stem
        name, number = stem, 2
        while name.lower() in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name.lower())
        names.append(f"{name}{ending}")
    return names
