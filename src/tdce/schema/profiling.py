"""What a careful person would notice about the columns of a table: one sentence each, with the way out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from tdce._core import Floats, Name, Positions, listing, readable, same, show
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.identifiers import option_hint, split_name, text_kind
from tdce.schema.schema import Schema

FEWEST = 50  # rows of a table whose columns are compared with each other and with the label
FEWEST_ALIKE = 20  # rows of one in which a column that never varies is worth a word
CHANCE = 0.01  # that any two columns that have nothing to do with each other are called the same
MOST_CLASSES = 50  # of a label; one with more is a number
LEAK = 0.99  # of the rows right by a single column
COMMONEST = 0.95  # of the rows, at most, in the commonest class for a leak to be one,
OTHERS = 5  # and at least so many rows in others
LEVELS = (3, 15)  # whole numbers that a code can have, from and to
GLANCE = 500  # rows by which most columns are seen to have more
CLEAR = 0.001  # the level at which the effect of a code is not ordered,
UNORDERED = 0.25  # and the least share of the effect that an order misses

COUNTS = "number num count times anzahl total years year months month days age alter level grade score stufe"
PROTECTED = """
    sex sexual gender geschlecht male female race ethnicity ethnic ethnie nationality nationalität nationalitaet
    staatsangehörigkeit staatsangehoerigkeit staatsbürgerschaft staatsbuergerschaft citizenship citizen native foreign
    foreigner ausländer auslaender immigrant migrant migrationshintergrund religion religious konfession disability
    disabled handicap behinderung behindert marital married marriage familienstand pregnant pregnancy schwanger
    schwangerschaft age alter birth birthday birthdate birthyear born dob geburt geburts geburtstag geburtsdatum
    geburtsjahr geburtsort caste
"""
AGES = "age alter"  # which also things have:
THINGS = """
    account credit loan car vehicle house home property building company business firm file trade line card debt
    contract policy device machine oldest newest konto kredit auto fahrzeug haus gebäude gebaeude firma vertrag
"""
OUTCOMES = """
    outcome outcomes recoveries chargeoff chargedoff writeoff defaulted churned readmitted deceased died survived future
    ergebnis ausgang ausfall ausgefallen verstorben zukunft
"""
OFF = {("charged", "off"), ("written", "off")}
PAST = "previous prev past prior earlier last history früher frueher vorherig vorheriges letztes"


def profile_columns(
    frame: pd.DataFrame, schema: Schema, label: Name | None = None, carried: Mapping[Name, str] | None = None
) -> list[str]:
    """One sentence for each thing; `carried` has those on the columns that are not learned."""
    raw = np.stack([column.read(frame[column.name]) for column in schema]).T  # column by column in memory
    y = None if label is None else _classes(frame[label])
    found = [*(carried or {}).values(), *_texts(schema), *_constant(schema, raw), *_same(schema, raw)]
    if label is not None and y is not None:
        columns = raw if (y >= 0).all() else raw[y >= 0]
        found += [*_leaks(schema, columns, y[y >= 0], label), *_codes(schema, columns, y[y >= 0], label)]
    return [*found, *_sensitive(schema)]


def _classes(label: pd.Series[Any]) -> Positions | None:
    """(n,) class numbers, missing as -1; None if these are no classes, or too few rows."""
    label = readable(label)
    try:
        codes, classes = pd.factorize(label.to_numpy() if label.dtype == object else label)
    except TypeError:  # lists
        return None
    many = (codes >= 0).sum() >= FEWEST and 2 <= len(classes) <= MOST_CLASSES
    return codes.astype(np.int64) if many else None


def _texts(schema: Schema) -> Iterator[str]:
    for column in schema:
        if not isinstance(column, Categorical) or not all(isinstance(c, str) for c in column.categories):
            continue
        if (kind := text_kind(pd.Series(column.categories))) == "dates":
            example = show(column.categories[0], 30, str)
            yield (f"{column.name!r} holds dates as text, such as {example}, and is learned as categories; turn them "
                   "into numbers, e.g. days before today")  # fmt: skip
        elif kind == "free text":
            yield (f"{column.name!r} holds free text and is learned as {len(column.categories):,} categories; turn it "
                   "into fewer, or drop the column")  # fmt: skip


def _constant(schema: Schema, raw: Floats) -> Iterator[str]:
    for column, values in zip(schema, raw.T, strict=True):
        if len(values) >= FEWEST_ALIKE and same(values, values[:1]).all():
            value = column.cells(values[:1])[0]
            said = "missing" if value is None else show(value, 30)
            yield f"{column.name!r} is {said} in every row and says nothing; drop the column"


def _same(schema: Schema, raw: Floats) -> Iterator[str]:
    """Columns with the same values, or with values that go one to one; numbered in the order in which they appear,
    both are the same numbers."""
    if len(raw) < FEWEST:
        return
    groups = dict[bytes, list[int]]()
    sizes = list[int]()
    for i, values in enumerate(raw.T):
        codes, distinct = pd.factorize(values, use_na_sentinel=False)
        sizes.append(len(distinct))
        groups.setdefault(codes.tobytes(), []).append(i)
    tried = len(schema) * (len(schema) - 1) / 2
    for first, *others in groups.values():
        if sizes[first] == 1:
            continue
        counts = np.unique(raw[:, first], return_counts=True)[1]
        chance = -(len(raw) - sizes[first]) * np.log(counts.max() / len(raw))
        for other in others:
            a, b = schema.features[first], schema.features[other]
            copied = a.numbers and b.numbers and same(raw[:, first], raw[:, other]).all()
            if copied or chance >= np.log(max(tried, 1) / CHANCE):
                yield f"{b.name!r} says the same as {a.name!r}, value by value; drop one of them"


def _leaks(schema: Schema, raw: Floats, y: Positions, label: Name) -> Iterator[str]:
    """Columns that predict the label almost perfectly, each by itself."""
    times = np.bincount(y)
    if times.max() > COMMONEST * len(y) or len(y) - times.max() < OTHERS:
        return
    for column, values in zip(schema, raw.T, strict=True):
        right = max(_right_by_value(values, y), _right_by_threshold(values, y) if column.numbers else 0)
        if right >= LEAK * len(y):
            share, usual = (100 * part / len(y) for part in (right, times.max()))
            yield (f"{column.name!r} alone predicts {label!r} in {share:.1f} % of the rows (always the commonest "
                   f"class: {usual:.1f} %); if it is known only afterwards, drop the column")  # fmt: skip


def _right_by_value(values: Floats, y: Positions) -> int:
    """Rows whose class is the majority among the other rows with the same value: a value of its own proves nothing."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    if 2 * len(distinct) > len(values):
        return 0
    classes = int(y.max()) + 1
    counts = np.bincount(codes * classes + y, minlength=len(distinct) * classes).reshape(-1, classes)
    top = np.partition(counts, -2, axis=1)[:, -2:]  # second, first
    return int(top[:, 1][top[:, 1] - 1 > top[:, 0]].sum())


def _right_by_threshold(values: Floats, y: Positions) -> int:
    """Rows right by the best threshold, below and above which one class is said; missing is a third case."""
    gone = np.isnan(values)
    missing = int(np.bincount(y[gone]).max()) if gone.any() else 0
    order = np.argsort(values[~gone])
    values, y = values[~gone][order], y[~gone][order]
    if len(values) == 0:
        return missing
    last = np.flatnonzero(np.append(values[1:] > values[:-1], True))  # the rows above which a threshold can be
    below = np.stack([np.cumsum(y == k)[last] for k in range(int(y.max()) + 1)])  # (classes, thresholds)
    return missing + int((below.max(axis=0) + (below[:, -1:] - below).max(axis=0)).max())


def _codes(schema: Schema, raw: Floats, y: Positions, label: Name) -> Iterator[str]:
    """Whole numbers that seem to be names: the share of a class neither rises nor falls with them."""
    if y.max() != 1:  # the share of a class among several rises and falls by itself
        return
    codes = [
        column.name
        for column, values in zip(schema, raw.T, strict=True)
        if isinstance(column, Numeric) and not _among(COUNTS, split_name(column.name)) and _is_code(values, y)
    ]
    if codes:
        what, them = ("looks like a code", "it") if len(codes) == 1 else ("look like codes", "them")
        yield (f"{_list(codes)} {what}: few whole numbers, with which {label!r} neither rises nor falls; to learn "
               f"{them} as categories: {option_hint('categorical', codes)}")  # fmt: skip


def _is_code(values: Floats, y: Positions) -> bool:
    """By chi-square against the best order, and by the share of what the levels explain that it misses."""
    y, values = y[~np.isnan(values)], values[~np.isnan(values)]
    if len(np.unique(values[:GLANCE])) > LEVELS[1]:
        return False
    levels, code = np.unique(values, return_inverse=True)
    if not LEVELS[0] <= len(levels) <= LEVELS[1] or (levels != np.rint(levels)).any():
        return False
    rows = np.bincount(code).astype(np.float64)
    share = np.bincount(code, weights=y) / rows
    total = _distance(share, np.full_like(share, y.mean()), rows)
    missed = min(_distance(share, sign * _rising(sign * share, rows), rows) for sign in (1, -1))
    return missed >= UNORDERED * total and float(chdtrc(len(levels) - 1, missed)) < CLEAR


def _distance(share: Floats, expected: Floats, rows: Floats) -> float:
    """Chi-square of shares of rows; where nothing else is expected than what is there, 0."""
    spread = expected * (1 - expected)
    return float((rows * np.divide((share - expected) ** 2, spread, out=np.zeros_like(share), where=spread > 0)).sum())


def _rising(share: Floats, rows: Floats) -> Floats:
    """The nearest shares that never fall: neighbours that do are put together."""
    parts = list[tuple[float, float, int]]()  # share, rows, levels
    for part in zip(share.tolist(), rows.tolist(), [1] * len(rows), strict=True):
        parts.append(part)
        while len(parts) > 1 and parts[-2][0] >= parts[-1][0]:
            (a, n, i), (b, m, j) = parts[-2:]
            parts[-2:] = [((a * n + b * m) / (n + m), n + m, i + j)]
    return np.repeat([part[0] for part in parts], [part[2] for part in parts])


def _sensitive(schema: Schema) -> Iterator[str]:
    """All that should not change, in one line."""
    free = [column.name for column in schema if not column.immutable]
    protected = [name for name in free if _is_protected(split_name(name))]
    outcomes = [name for name in free if _is_outcome(split_name(name)) and name not in protected]
    said = []
    if protected:
        one = len(protected) == 1
        said.append(
            f"{_list(protected)} {'looks like a protected attribute' if one else 'look like protected attributes'}"
        )
    if outcomes:
        one = len(outcomes) == 1
        said.append(f"{_list(outcomes)} {'looks like an outcome' if one else 'look like outcomes'} of the future")
    if said:
        names = [name for name in free if name in {*protected, *outcomes}]
        yield (
            f"{' and '.join(said)}; to keep answers from changing {'it' if len(names) == 1 else 'them'}: "
            + option_hint("immutable", names)
        )


def _is_protected(parts: list[str]) -> bool:
    found = _among(PROTECTED, parts)
    return bool(found - _among(AGES, parts)) or bool(found and not _among(THINGS, parts))


def _is_outcome(parts: list[str]) -> bool:
    return bool(_among(OUTCOMES, parts) or OFF & set(pairwise(parts))) and not _among(PAST, parts)


def _among(known: str, parts: list[str]) -> set[str]:
    return set(known.split()) & set(parts)


def _list(names: Iterable[Name]) -> str:
    return listing([repr(name) for name in names])
