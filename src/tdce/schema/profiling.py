"""Profiling: hints about the columns of a table, one sentence each, with the remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from tdce._core import Floats, Name, Positions, listing, normalise_column, same, show
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.grid import is_believable
from tdce.schema.columns.numeric import Numeric
from tdce.schema.constraints.grammar import quote_name
from tdce.schema.headers import HEADER_ROWS, find_headerless
from tdce.schema.identifiers import option_hint, text_kind
from tdce.schema.roles import Role, is_attained, is_bodily, is_outcome, propose_role, split_name
from tdce.schema.schema import Schema

MIN_ROWS = 50  # of a table, to compare its columns with each other and with the label
MIN_ROWS_CONSTANT = 20  # of a table, to report a constant column
FALSE_EQUALITY = 0.01  # probability of reporting any two unrelated columns as equal
MAX_LABEL_CLASSES = 50  # a label with more distinct values is a number
LEAK_ACCURACY = 0.99  # of predicting the label from a single column
MAX_COMMONEST_SHARE = 0.95  # of the commonest class, to report a leak,
MIN_OTHER_ROWS = 5  # with at least this many rows in other classes
MIN_CODES, MAX_CODES = 3, 15  # distinct whole numbers in a column of codes
FIRST_ROWS = 500  # enough to see that most columns have more
CODE_SIGNIFICANCE = 0.001  # of the test that a code's effect is not ordered,
MIN_UNORDERED_SHARE = 0.25  # and the smallest share of the effect that no order explains

COUNT_WORDS = "number num count times anzahl total years year months month days age alter level grade score stufe"

IS: Mapping[Role, tuple[str, str]] = {  # if certain; if uncertain
    "immutable": ("is a protected attribute", "may be a protected attribute"),
    "passes with time": ("passes with time", "may pass with time"),
    "history": ("is history", "may be history"),
    "identifier": ("is an identifier", "may be an identifier"),
}


def profile_columns(
    frame: pd.DataFrame,
    schema: Schema,
    label: Name | None = None,
    pass_through: Mapping[Name, str] | None = None,
    *,
    proposed: Collection[Name] = (),
    asked: Collection[Name] = (),
) -> list[str]:
    """One sentence per finding; `pass_through` holds those about columns that are not learned.

    `proposed` names the columns whose roles the user did not set, `asked` those made actionable on purpose.
    """
    raw = np.stack([column.read(frame[column.name]) for column in schema]).T  # contiguous by column
    y = None if label is None else _classes(frame[label])
    findings = [*_header(frame), *(pass_through or {}).values(), *_texts(schema), *_beyond_belief(schema, raw)]
    findings += [*_constants(schema, raw), *_duplicates(schema, raw)]
    if label is not None and y is not None:
        columns = raw if (y >= 0).all() else raw[y >= 0]
        findings += [*_leaks(schema, columns, y[y >= 0], label), *_codes(schema, columns, y[y >= 0], label)]
    return [*findings, *_roles(schema, proposed, asked)]


def _classes(label: pd.Series[Any]) -> Positions | None:
    """(n,) class numbers, missing as -1; None if the label has no classes, or too few rows."""
    label = normalise_column(label)
    try:
        codes, classes = pd.factorize(label.to_numpy() if label.dtype == object else label)
    except TypeError:  # lists
        return None
    enough = (codes >= 0).sum() >= MIN_ROWS and 2 <= len(classes) <= MAX_LABEL_CLASSES
    return codes.astype(np.int64) if enough else None


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


def _header(frame: pd.DataFrame) -> Iterator[str]:
    if not all(isinstance(name, str) for name in frame.columns):
        return
    cells = [frame.iloc[:HEADER_ROWS, i].dropna().astype(str).tolist() for i in range(frame.shape[1])]
    if evidence := find_headerless(list(frame.columns), cells):
        yield f"the table seems to have no header: {evidence}; read it again with names for its columns"


def _beyond_belief(schema: Schema, raw: Floats) -> Iterator[str]:
    for column, values in zip(schema, raw.T, strict=True):
        if not isinstance(column, Numeric) or (believed := is_believable(values)).all():
            continue
        slips, median = values[~believed], np.nanmedian(values[~np.isin(values, column.marks)])
        texts = [f"{value:,.15g}" if abs(value) < 1e9 else f"{value:.3g}" for value in np.unique(slips).tolist()]
        rows = "1 row" if len(slips) == 1 else f"{len(slips):,} rows"
        yield (f"{column.name!r} is beyond belief in {rows}: {listing(texts, most=3)}, beside a median of "
               f"{median:,.15g}; such a value is never proposed: correct the cells, or leave them empty")  # fmt: skip


def _constants(schema: Schema, raw: Floats) -> Iterator[str]:
    for column, values in zip(schema, raw.T, strict=True):
        if len(values) >= MIN_ROWS_CONSTANT and same(values, values[:1]).all():
            value = column.cells(values[:1])[0]
            text = "missing" if value is None else show(value, 30)
            yield f"{column.name!r} is {text} in every row and says nothing; drop the column"


def _duplicates(schema: Schema, raw: Floats) -> Iterator[str]:
    """Columns with equal values, or with values that correspond one to one: when values are numbered in order of
    appearance, both have the same numbers."""
    if len(raw) < MIN_ROWS:
        return
    groups = dict[bytes, list[int]]()
    sizes = list[int]()
    for i, values in enumerate(raw.T):
        codes, distinct = pd.factorize(values, use_na_sentinel=False)
        sizes.append(len(distinct))
        groups.setdefault(codes.tobytes(), []).append(i)
    pairs = len(schema) * (len(schema) - 1) / 2
    for first, *others in groups.values():
        if sizes[first] == 1:
            continue
        counts = np.unique(raw[:, first], return_counts=True)[1]
        evidence = -(len(raw) - sizes[first]) * np.log(counts.max() / len(raw))
        for other in others:
            a, b = schema.features[first], schema.features[other]
            copy = a.numbers and b.numbers and same(raw[:, first], raw[:, other]).all()
            if copy or evidence >= np.log(max(pairs, 1) / FALSE_EQUALITY):
                yield f"{b.name!r} says the same as {a.name!r}, value by value; drop one of them"


def _leaks(schema: Schema, raw: Floats, y: Positions, label: Name) -> Iterator[str]:
    """Columns that each predict the label almost perfectly."""
    counts = np.bincount(y)
    if counts.max() > MAX_COMMONEST_SHARE * len(y) or len(y) - counts.max() < MIN_OTHER_ROWS:
        return
    for column, values in zip(schema, raw.T, strict=True):
        right = max(_right_by_value(values, y), _right_by_threshold(values, y) if column.numbers else 0)
        if right >= LEAK_ACCURACY * len(y):
            share, usual = (100 * part / len(y) for part in (right, counts.max()))
            yield (f"{column.name!r} alone predicts {label!r} in {share:.1f} % of the rows (always the commonest "
                   f"class: {usual:.1f} %); if it is known only afterwards, drop the column")  # fmt: skip


def _right_by_value(values: Floats, y: Positions) -> int:
    """Count rows whose class is the majority among the other rows with the same value; unique values do not count."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    if 2 * len(distinct) > len(values):
        return 0
    classes = int(y.max()) + 1
    counts = np.bincount(codes * classes + y, minlength=len(distinct) * classes).reshape(-1, classes)
    top = np.partition(counts, -2, axis=1)[:, -2:]  # second, first
    return int(top[:, 1][top[:, 1] - 1 > top[:, 0]].sum())


def _right_by_threshold(values: Floats, y: Positions) -> int:
    """Count rows predicted correctly by the best threshold: one class below, one above, one for missing."""
    absent = np.isnan(values)
    missing = int(np.bincount(y[absent]).max()) if absent.any() else 0
    order = np.argsort(values[~absent])
    values, y = values[~absent][order], y[~absent][order]
    if len(values) == 0:
        return missing
    last = np.flatnonzero(np.append(values[1:] > values[:-1], True))  # rows after which a threshold can lie
    below = np.stack([np.cumsum(y == k)[last] for k in range(int(y.max()) + 1)])  # (classes, thresholds)
    return missing + int((below.max(axis=0) + (below[:, -1:] - below).max(axis=0)).max())


def _codes(schema: Schema, raw: Floats, y: Positions, label: Name) -> Iterator[str]:
    """Columns of whole numbers that seem to be codes: the share of a class neither rises nor falls with them."""
    if y.max() != 1:  # with several classes, no share need be monotone
        return
    codes = [
        column.name
        for column, values in zip(schema, raw.T, strict=True)
        if isinstance(column, Numeric) and not _among(COUNT_WORDS, split_name(column.name)) and _is_code(values, y)
    ]
    if codes:
        verb, them = ("looks like a code", "it") if len(codes) == 1 else ("look like codes", "them")
        yield (f"{_list(codes)} {verb}: few whole numbers, with which {label!r} neither rises nor falls; to learn "
               f"{them} as categories: {option_hint('categorical', codes)}")  # fmt: skip


def _is_code(values: Floats, y: Positions) -> bool:
    """Test by chi-square against the best monotone fit, and by the share of the effect that this fit misses."""
    y, values = y[~np.isnan(values)], values[~np.isnan(values)]
    if len(np.unique(values[:FIRST_ROWS])) > MAX_CODES:
        return False
    levels, code = np.unique(values, return_inverse=True)
    if not MIN_CODES <= len(levels) <= MAX_CODES or (levels != np.rint(levels)).any():
        return False
    rows = np.bincount(code).astype(np.float64)
    share = np.bincount(code, weights=y) / rows
    total = _chi_square(share, np.full_like(share, y.mean()), rows)
    missed = min(_chi_square(share, sign * _isotonic(sign * share, rows), rows) for sign in (1, -1))
    return missed >= MIN_UNORDERED_SHARE * total and float(chdtrc(len(levels) - 1, missed)) < CODE_SIGNIFICANCE


def _chi_square(share: Floats, expected: Floats, rows: Floats) -> float:
    """Chi-square of observed shares; an expected share of 0 or 1 adds nothing."""
    variance = expected * (1 - expected)
    terms = np.divide((share - expected) ** 2, variance, out=np.zeros_like(share), where=variance > 0)
    return float((rows * terms).sum())


def _isotonic(share: Floats, rows: Floats) -> Floats:
    """Isotonic regression: the nearest shares that never fall, by pooling adjacent violators."""
    parts = list[tuple[float, float, int]]()  # share, rows, levels
    for part in zip(share.tolist(), rows.tolist(), [1] * len(rows), strict=True):
        parts.append(part)
        while len(parts) > 1 and parts[-2][0] >= parts[-1][0]:
            (a, n, i), (b, m, j) = parts[-2:]
            parts[-2:] = [((a * n + b * m) / (n + m), n + m, i + j)]
    return np.repeat([part[0] for part in parts], [part[2] for part in parts])


def _roles(schema: Schema, proposed: Collection[Name], asked: Collection[Name]) -> Iterator[str]:
    """Proposed roles, and features that perhaps should not change, one sentence each."""
    following = schema.followers
    for column in schema:
        (role, certain), names = propose_role(column), [column.name]
        if column.name in proposed:
            reason = _reason(column.name, column.role, certain=True)
            yield f"{column.name!r} {reason}: not changed; to allow it: {option_hint('actionable', names)}"
        elif column.immutable or column.name in asked or column.name in following:
            continue
        elif role not in ("actionable", column.role):
            outcome = "looks like an outcome of the future" if is_outcome(column.name) else None
            reason = outcome or _reason(column.name, role, certain)
            yield f"{column.name!r} {reason}; to keep answers from changing it: {option_hint('immutable', names)}"
        elif column.may_change == "yes" and is_attained(column.name):
            yield from _only_up(schema, column)


def _reason(name: Name, role: Role, certain: bool) -> str:
    if is_bodily(name) and role == "immutable":
        return "is a fact of the body"
    return IS[role][0 if certain else 1]


def _only_up(schema: Schema, column: Column) -> Iterator[str]:
    """How to let a column only rise, unless a rule mentions it already."""
    if any(str(column.name) in rule for rule in schema.rules):
        return
    if isinstance(column, Numeric):
        name = repr(column.name)
        yield f"{name} can hardly fall; to let it rise only: schema.change({name}, direction='increase')"
    elif isinstance(column, Categorical) and column.order:
        rule = f"{quote_name(column.name)} >= was({quote_name(column.name)})"
        yield f"{column.name!r} can hardly fall; to let it rise only: schema.with_rules({rule!r})"


def _among(known: str, parts: list[str]) -> set[str]:
    return set(known.split()) & set(parts)


def _list(names: Iterable[Name]) -> str:
    return listing([repr(name) for name in names])
