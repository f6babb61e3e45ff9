"""Pass-through columns: ids, row numbers, dates and free text, which are not learned and returned unchanged."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import NUMBER_TEXT, ZERO_PADDED, Floats, Name, as_numbers, holds_numbers, normalise_column, plain, show
from tdce.schema.columns.categorical import MAX_CATEGORIES, NUMBER_WITH_COMMA
from tdce.schema.roles import split_name

MIN_ROWS_NAMED = 10  # for a column of distinct whole numbers to be an id if its name says so,
MIN_ROWS_CONSECUTIVE = 20  # if its numbers are consecutive in any order,
MIN_ROWS_INCREASING = 200  # if its numbers increase evenly,
MIN_ROWS_SPREAD = 500  # if they are evenly spread, or so dense that measurements would repeat,
MIN_ROWS_DISTINCT = 1_000  # or in any case
NEAR = 5  # steps; the pairs of numbers within this distance predict how many repeats to expect
MIN_EXPECTED_REPEATS = 5  # of measurements: then having none has a probability below 1 %
MIN_ROWS_TEXT = 50  # for a text column to be an id
ID_SHARE = 0.95  # share of distinct texts, at least
MAX_CATEGORY_SHARE = 0.5  # distinct dates or free texts, as a share of the rows; more are not categories
KIND_SHARE = 0.95  # of distinct texts that are dates, or numbers, for the column to be
MIN_WORDS = 3  # per text on average, and
MIN_FREE_TEXTS = 50  # distinct texts, for a column of free text
MAX_TEXTS_EXAMINED = 2_000
MAX_NUMBER_LENGTH = 15  # characters of a number written as text; longer ones are ids

DATE = re.compile(
    r"\s*([0-9]{4}([-/.])[0-9]{1,2}\2[0-9]{1,2}|[0-9]{1,2}([-/.])[0-9]{1,2}\3([0-9]{4}|[0-9]{2})"
    r"|[0-9]{1,2}[ -][^\W\d_]{3,9}\.?[ -][0-9]{2,4}|[^\W\d_]{3,9}\.? [0-9]{1,2}, [0-9]{4}|[0-9]{4}-[0-9]{2})"
    r"([T ]+[0-9]{1,2}:[0-9]{2}\S*( ?[AaPp][Mm])?)?\s*"
)
ID_NAMES = {"id", "index", "idx", "unnamed", "row", "rownum", "rownumber", "rowid", "row number", "row nr", "no", "nr",
            "number", "nummer", "key", "row index", "level"}  # fmt: skip
ID_ENDINGS = {"id", "uid", "uuid", "guid", "pk", "nr", "number", "nummer", "kennung", "kennziffer", "identifier"}
ID_COMPOUND = re.compile(
    r"(customer|client|user|person|member|patient|student|applicant|application|account|loan|row|record|case|order"
    r"|employee|kunden|personen|patienten|antrags|vertrags|konto)(id|nr|no)|\w+nummer"
)


def find_pass_through(frame: pd.DataFrame, label: Name | None = None, learn: Collection[Name] = ()) -> dict[Name, str]:
    """The pass-through columns, each with a sentence on why it is not learned and how to learn it. Empty if no other
    column would be left."""
    names = [plain(name) for name in frame.columns if label is None or name != label]
    reasons = ((name, _reason(normalise_column(frame[name]))) for name in names if name not in learn)
    sentences: dict[Name, str] = {
        name: f"{name!r} {reason[0]}: passed through, not learned; {reason[1]}" for name, reason in reasons if reason
    }
    return sentences if len(sentences) < len(names) else {}


def text_kind(present: pd.Series[Any]) -> str:
    """What the cells of a text column hold: dates, free text, numbers, or words."""
    texts = present.drop_duplicates().head(MAX_TEXTS_EXAMINED).astype(str)
    if texts.map(lambda text: bool(DATE.fullmatch(text))).mean() >= KIND_SHARE:
        return "dates"
    if texts.map(_is_number).mean() >= KIND_SHARE:
        return "numbers"
    if len(texts) >= MIN_FREE_TEXTS and texts.map(lambda text: len(text.split())).mean() >= MIN_WORDS:
        return "free text"
    return "words"


def is_text(series: pd.Series[Any]) -> bool:
    """Whether every present cell is text; a category dtype does not count as text."""
    if isinstance(series.dtype, pd.CategoricalDtype) or not pd.api.types.is_string_dtype(series.dtype):
        return False
    return pd.api.types.infer_dtype(series, skipna=True) == "string"


def option_hint(option: str, names: Iterable[Name]) -> str:
    """How to pass columns in Python and on the command line: `immutable=['sex'] or --immutable sex`."""
    columns = list(names)
    return f"{option}={columns!r} or --{option} {shlex.quote(','.join(map(str, columns)))}"


def _reason(series: pd.Series[Any]) -> tuple[str, str] | None:
    """Why a column is not learned, and how to learn it; None if it is learned."""
    present = series.dropna()
    name = plain(series.name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        distinct = len(present.cat.remove_unused_categories().cat.categories)
        return (_too_many(distinct), "group its values to learn it") if distinct > MAX_CATEGORIES else None
    if holds_numbers(series):
        reason = _reason_number(series, present)
        return (reason, f"to learn it: {option_hint('learn', [name])}") if reason else None
    return _reason_text(name, present) if len(present) >= MIN_ROWS_TEXT and is_text(series) else None


def _reason_number(series: pd.Series[Any], present: pd.Series[Any]) -> str | None:
    values = as_numbers(present)
    if len(values) < MIN_ROWS_NAMED or not np.isfinite(values).all() or (values != np.rint(values)).any():
        return None
    if len(np.unique(values)) < len(values):
        return None
    is_id = _is_id_name(series.name)
    if len(present) == len(series):
        if len(values) >= MIN_ROWS_CONSECUTIVE and np.ptp(values) == len(values) - 1:
            return "is a row number"
        ordered = np.sort(values)
        evenly = _is_even(ordered)
        if len(values) >= MIN_ROWS_INCREASING and evenly and (values == ordered).all():
            return "looks like an id: a whole number that increases from row to row"
        is_id |= len(values) >= (MIN_ROWS_SPREAD if evenly or _is_dense(ordered) else MIN_ROWS_DISTINCT)
    return "looks like an id: a different whole number in every row" if is_id else None


def _is_even(ordered: Floats) -> bool:
    """Whether numbers are spread evenly over their range, like ids from a longer list; measurements thin out towards
    the ends. By the Kolmogorov-Smirnov distance from the uniform distribution, at a level of about 2 %."""
    straight = np.linspace(ordered[0], ordered[-1], len(ordered))
    return bool(np.abs(ordered - straight).max() <= 1.5 / np.sqrt(len(ordered)) * np.ptp(ordered))


def _is_dense(ordered: Floats) -> bool:
    """Whether the numbers lie so close, in steps of their grid, that measurements would repeat: among measurements,
    equal pairs are about half as many as pairs 1 apart, 2 apart, and so on."""
    above = ordered - ordered[0]
    steps = above / (np.gcd.reduce(above.astype(np.int64)) if above[-1] < 2.0**62 else 1)
    near = sum(int((steps[k:] - steps[:-k] <= NEAR).sum()) for k in range(1, NEAR + 1))
    return near / (2 * NEAR) >= MIN_EXPECTED_REPEATS


def _is_id_name(name: Name) -> bool:
    parts = split_name(name)
    if not parts:
        return False
    return (
        " ".join(parts) in ID_NAMES
        or parts[-1] in ID_ENDINGS
        or parts[0] == "id"
        or bool(ID_COMPOUND.fullmatch(parts[-1]))
    )


def _reason_text(name: Name, present: pd.Series[Any]) -> tuple[str, str] | None:
    distinct = present.nunique()
    if distinct <= min(MAX_CATEGORY_SHARE * len(present), MAX_CATEGORIES):
        return None
    kind = text_kind(present)
    if kind == "numbers":  # not an id: read as numbers, or refused
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
    if distinct >= ID_SHARE * len(present):
        way_out = f"to learn it: {option_hint('learn', [name])}" if learnable else "to learn it, group its values"
        return f"looks like an id: {distinct:,} different values in {len(present):,} rows", way_out
    return None if learnable else (_too_many(distinct), "to learn it, group its values")


def _too_many(distinct: int) -> str:
    return f"has {distinct:,} different values"


def _is_number(text: str) -> bool:
    text = text.strip()
    if len(text) > MAX_NUMBER_LENGTH or ZERO_PADDED.match(text):
        return False
    return bool(NUMBER_TEXT.fullmatch(text) or NUMBER_WITH_COMMA.fullmatch(text))
