"""Columns that say nothing about a row but which one it is: carried through to the answer, not learned."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import NUMBER, PADDED, Name, as_numbers, holds_numbers, plain, readable, show
from tdce.schema.columns.categorical import MAX_CATEGORIES, NUMBER_WITH_COMMA

FEWEST_CALLED = 10  # rows, from which on a column of different whole numbers that is called an id is one,
FEWEST_CONSECUTIVE = 20  # or one whose numbers are consecutive in any order,
FEWEST_INCREASING = 200  # or one whose numbers increase evenly;
FEWEST_TEXTS = 50  # and a column of text with a different one in nearly every row
NEARLY = 0.95  # every row
HALF = 0.5  # of the rows, from which on different dates or free texts are no categories
MOSTLY = 0.95  # of the different texts, by which a column is one of dates or of numbers
SEVERAL = 3  # words on average, and
MANY = 50  # different texts, from which on they are free text
LOOK = 2_000  # different texts that are looked at
LONGEST = 15  # characters of a number that is written as text; longer ones are ids

DATE = re.compile(
    r"\s*([0-9]{4}([-/.])[0-9]{1,2}\2[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\3([0-9]{4}|[0-9]{2})"
    r"|[0-9]{1,2}[ -][^\W\d_]{3,9}\.?[ -][0-9]{2,4}|[^\W\d_]{3,9}\.? [0-9]{1,2}, [0-9]{4}|[0-9]{4}-[0-9]{2})"
    r"([T ]+[0-9]{1,2}:[0-9]{2}\S*( ?[AaPp][Mm])?)?\s*"
)
CALLED = {"id", "index", "idx", "unnamed", "row", "rownum", "rownumber", "rowid", "row number", "row nr", "no", "nr",
          "number", "nummer", "key", "row index", "level"}  # fmt: skip
ENDS = {"id", "uid", "uuid", "guid", "pk", "nr", "number", "nummer", "kennung", "kennziffer", "identifier"}
JOINED = re.compile(
    r"(customer|client|user|person|member|patient|student|applicant|application|account|loan|row|record|case|order"
    r"|employee|kunden|personen|patienten|antrags|vertrags|konto)(id|nr|no)|\w+nummer"
)
UPPER, LOWER = "A-ZÄÖÜ", "a-zäöüß"
SEAM = re.compile(f"(?<=[{LOWER}])(?=[{UPPER}])|(?<=[{UPPER}])(?=[{UPPER}][{LOWER}])")


def find_pass_through(frame: pd.DataFrame, label: Name | None = None, learn: Collection[Name] = ()) -> dict[Name, str]:
    """The columns that are not to be learned, and a sentence on each that says why and what to do to learn it. None, if
    there is no other column."""
    names = [plain(name) for name in frame.columns if label is None or name != label]
    found = ((name, _why(readable(frame[name]))) for name in names if name not in learn)
    out: dict[Name, str] = {
        name: f"{name!r} {why[0]}: carried through, not learned; {why[1]}" for name, why in found if why
    }
    return out if len(out) < len(names) else {}


def text_kind(present: pd.Series[Any]) -> str:
    """What the cells of a text column are: dates, free text, numbers, or words."""
    some = present.drop_duplicates().head(LOOK).astype(str)
    if some.map(lambda text: bool(DATE.fullmatch(text))).mean() >= MOSTLY:
        return "dates"
    if some.map(_is_number).mean() >= MOSTLY:
        return "numbers"
    if len(some) >= MANY and some.map(lambda text: len(text.split())).mean() >= SEVERAL:
        return "free text"
    return "words"


def is_text(series: pd.Series[Any]) -> bool:
    """Whether every cell that is there is text; a category dtype says itself that it holds categories."""
    if isinstance(series.dtype, pd.CategoricalDtype) or not pd.api.types.is_string_dtype(series.dtype):
        return False
    return pd.api.types.infer_dtype(series, skipna=True) == "string"


def split_name(name: Name) -> list[str]:
    """The words of a column's name in small letters: native_country and NativeCountry are two."""
    return [word.lower() for word in re.split(r"[\W\d_]+", SEAM.sub(" ", str(name))) if word]


def option_hint(option: str, names: Iterable[Name]) -> str:
    """How columns are named in Python and on the command line: `immutable=['sex'] or --immutable sex`."""
    some = list(names)
    return f"{option}={some!r} or --{option} {shlex.quote(','.join(map(str, some)))}"


def _why(series: pd.Series[Any]) -> tuple[str, str] | None:
    """Why a column is not learned, and what to do to learn it; None if it is."""
    present = series.dropna()
    name = plain(series.name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        distinct = len(present.cat.remove_unused_categories().cat.categories)
        return (_many(distinct), "group its values to learn it") if distinct > MAX_CATEGORIES else None
    if holds_numbers(series):
        why = _why_number(series, present)
        return (why, f"to learn it: {option_hint('learn', [name])}") if why else None
    return _why_text(name, present) if len(present) >= FEWEST_TEXTS and is_text(series) else None


def _why_number(series: pd.Series[Any], present: pd.Series[Any]) -> str | None:
    values = as_numbers(present)
    if len(values) < FEWEST_CALLED or not np.isfinite(values).all() or (values != np.rint(values)).any():
        return None
    if len(np.unique(values)) < len(values):
        return None
    if len(present) == len(series):
        if len(values) >= FEWEST_CONSECUTIVE and np.ptp(values) == len(values) - 1:
            return "is a row number"
        if len(values) >= FEWEST_INCREASING and _increases_evenly(values):
            return "looks like an id: a whole number that increases from row to row"
    return "looks like an id: a different whole number in every row" if _called_id(series.name) else None


def _increases_evenly(values: Any) -> bool:
    """As ids do that are drawn from a longer list; a table that is sorted by a measurement has its gaps at the ends.
    The largest distance from a straight line is that of Kolmogorov and Smirnov, at a level of about 2 %."""
    if (np.diff(values) < 0).any():
        return False
    straight = np.linspace(values[0], values[-1], len(values))
    return bool(np.abs(values - straight).max() <= 1.5 / np.sqrt(len(values)) * np.ptp(values))


def _called_id(name: Name) -> bool:
    parts = split_name(name)
    if not parts:
        return False
    return " ".join(parts) in CALLED or parts[-1] in ENDS or parts[0] == "id" or bool(JOINED.fullmatch(parts[-1]))


def _why_text(name: Name, present: pd.Series[Any]) -> tuple[str, str] | None:
    distinct = present.nunique()
    if distinct <= min(HALF * len(present), MAX_CATEGORIES):
        return None
    kind = text_kind(present)
    if kind == "numbers":  # no id: to be read as numbers, or refused
        return None
    learnable = distinct <= MAX_CATEGORIES
    if kind == "dates":
        example = show(present.iloc[0], 30, str)
        return (
            f"holds dates as text, such as {example}",
            "to learn them, turn them into numbers, e.g. days before today",
        )
    if kind == "free text":
        way_out = f"to learn its {distinct:,} texts as categories: {option_hint('learn', [name])}"
        return "holds free text", way_out if learnable else "to learn it, turn it into a few categories"
    if distinct >= NEARLY * len(present):
        way_out = f"to learn it: {option_hint('learn', [name])}" if learnable else "to learn it, group its values"
        return f"looks like an id: {distinct:,} different values in {len(present):,} rows", way_out
    return None if learnable else (_many(distinct), "to learn it, group its values")


def _many(distinct: int) -> str:
    return f"has {distinct:,} different values"


def _is_number(text: str) -> bool:
    text = text.strip()
    if len(text) > LONGEST or PADDED.match(text):
        return False
    return bool(NUMBER.fullmatch(text) or NUMBER_WITH_COMMA.fullmatch(text))
