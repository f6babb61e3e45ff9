"""The labels of people in a report, and the file name of each person."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from tdce._core import InputError, Name, is_blank, is_name, listing, show, suggest

MAX_LENGTH = 80  # characters, which are at most 240 bytes
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # on Windows
HASH_DIGITS = 8


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


def file_names(ids: Sequence[str]) -> list[str]:
    """A name for each id, safe on every system: the id itself if it is safe, else its safe characters and a hash.

    Names differ even where case does not matter, and for ids that are there several times.
    """
    names = [_safe(each) for each in ids]
    alike = Counter(name.casefold() for name, each in zip(names, ids, strict=True) if name == each)
    found, times = [], Counter[str]()
    for name, each in zip(names, ids, strict=True):
        times[each] += 1
        alone = name == each and alike[name.casefold()] == 1
        found.append(name if alone else f"{name}-{_hash(each, times[each])}")
    if len({name.casefold() for name in found}) < len(found):
        raise InputError("two ids give the same name of a file; name another column of ids")
    return found


def _safe(id: str) -> str:
    """Letters, digits, `_`, `-` and `.` of an id; other runs become one `-`, and no name begins or ends with a mark."""
    kept = re.sub(r"[^\w.-]+", "-", unicodedata.normalize("NFC", id))[:MAX_LENGTH].strip("-.")
    return f"id-{kept}".rstrip("-") if not kept or RESERVED.fullmatch(kept) else kept


def _hash(id: str, time: int) -> str:
    """Of an id that is there for the first, second, … time."""
    text = id if time == 1 else f"{id}\0{time}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]
