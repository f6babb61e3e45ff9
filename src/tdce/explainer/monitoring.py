"""Drift of a table: its columns, ranges, categories, laws, plausibility and accuracy, each compared with what the
artefact holds about the learned table.

An artefact holds nobody's record, but what the tests need: the shares of categories, the scale of each number (on which
the learned table has mean 0 and standard deviation 1), its ends, laws with their exceptions, quantiles of the energies
of held-out rows, and the accuracy. A check reports a change if its p-value is below `LEVEL`, divided by the number of
tests, and if the effect matters: each check has a least effect, so that a large table raises no alarm over a trifle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
import torch

from tdce._core import (
    Flags,
    Floats,
    InputError,
    Name,
    Positions,
    as_pandas,
    check_table,
    listing,
    show,
    suggest,
)
from tdce.diffusion import rate_plausibility
from tdce.explainer.drift import Drift, Finding
from tdce.explainer.fitted import Fitted
from tdce.models import MissingModel, Oracle
from tdce.schema import MIN_PEOPLE, Categorical, FittedCategorical, FittedColumn, FittedNumeric, Law

LEVEL = 0.01  # probability of any false alarm, over all checks of a table
MAX_ROWS = 2_000  # rows whose plausibility and accuracy are measured, evenly spread over the table
MIN_ROWS = 30  # with fewer, only large changes are found
MIN_CLASS_ROWS = 25  # held-out rows of a class; with fewer, its energies are those of synthetic rows

LEAST_SHIFT = 0.1  # of a mean, in standard deviations
LEAST_SPREAD = 0.1  # of a standard deviation, relative to it
LEAST_SHARES = 0.05  # of the shares of categories: the total variation distance
LEAST_RATE = 0.005  # of the share of rows that are out of range, of an unknown category, or break a law
LEAST_MISSING = 0.15  # of the share of missing cells, above that in synthetic rows, which have rather few
LEAST_PLAUSIBILITY = 0.1  # of the plausibility: the Kolmogorov-Smirnov distance
LEAST_ACCURACY = 0.02


@dataclass(frozen=True)
class _Column:
    """A column of the new table as raw values, with the categories that are unknown."""

    fitted: FittedColumn
    raw: Floats  # (n,) NaN where the cell is missing or unknown
    missing: Flags  # (n,)
    unknown: tuple[Any, ...] = ()  # categories
    unknown_rows: int = 0


def monitor(fitted: Fitted, table: Any, label: Name | None = None) -> Drift:
    """Compare a table with the learned one. The label is the column of that name, by default the learned one if the
    table has it; without a label, accuracy is not checked."""
    frame = as_pandas(table)
    check_table(frame)
    if len(frame) == 0:
        raise InputError("the table has no rows")
    if label is not None and label not in frame.columns:
        known = f"{suggest(label, frame.columns)}the table has: {listing(frame.columns)}"
        raise InputError(f"there is no label column {show(label)}; {known}")
    label = fitted.label if label is None and fitted.label in frame.columns else label
    findings = [*_absent(fitted, frame)]
    columns = [_read(each, frame) for each in fitted.encoder.columns if each.column.name in frame.columns]
    readable = [each for each in columns if isinstance(each, _Column)]
    findings += [each for each in columns if isinstance(each, Finding)]
    rows = int(fitted.report["rows"])
    for column in readable:
        findings += _check_column(column, fitted, rows)
    notes: list[str] = []
    if len(readable) == len(fitted.encoder.columns):
        raw = np.stack([column.raw for column in readable], axis=1)
        findings += [_check_law(law, fitted, raw) for law in fitted.encoder.schema.laws if law.on]
        if isinstance(fitted.decides, MissingModel):
            notes.append("the model is not at hand: plausibility and accuracy were not checked")
        else:
            findings += _check_model(fitted, raw, frame, label)
    else:
        notes.append("laws, plausibility and accuracy were not checked: they need all columns")
    if len(frame) < MIN_ROWS:
        notes.append(f"{len(frame)} rows are few: only large changes are found with fewer than {MIN_ROWS}")
    extra = [str(name) for name in frame.columns if name not in fitted.encoder.schema.names and name != fitted.label]
    return Drift(len(frame), rows, LEVEL, _judged(findings), tuple(notes), tuple(extra))


def _judged(findings: list[Finding]) -> tuple[Finding, ...]:
    """The findings with their verdicts, changed ones first; the level is divided by the number of tests."""
    tests = max(1, sum(finding.p is not None for finding in findings))
    judged = [finding.judge(LEVEL / tests) for finding in findings]
    return tuple(sorted(judged, key=lambda each: not each.changed))


def _absent(fitted: Fitted, frame: pd.DataFrame) -> Iterator[Finding]:
    for name in fitted.encoder.schema.names:
        if name not in frame.columns:
            yield Finding("column", str(name), "present", "absent", 1.0, 0.0)


def _read(fitted: FittedColumn, frame: pd.DataFrame) -> _Column | Finding:
    column, series = fitted.column, frame[fitted.column.name]
    if isinstance(series, pd.DataFrame):
        raise InputError(f"column {column.name!r} appears twice; rename or drop one of them")
    missing = np.asarray(series.isna(), dtype=bool)
    try:
        raw = column.read(series)
        return _Column(fitted, raw, np.isnan(raw))
    except InputError as error:
        if not isinstance(column, Categorical) or "not seen in fit" not in str(error):
            return Finding("column", str(column.name), column.describe(), f"cannot be read: {error}", 1.0, 0.0)
    known = series.astype(object).isin(list(column.categories)).to_numpy(dtype=bool) | missing
    unknown = series[~known].astype(object)
    raw = column.read(series.astype(object).where(known, None))
    return _Column(fitted, raw, missing, tuple(unknown.value_counts().index.tolist()), len(unknown))


def _check_column(column: _Column, fitted: Fitted, rows: int) -> Iterator[Finding]:
    name, n = str(column.fitted.column.name), len(column.raw)
    yield _check_missing(column, fitted)
    present = column.raw[~np.isnan(column.raw)]
    if isinstance(column.fitted, FittedNumeric):
        numbers = present[~np.isin(present, column.fitted.column.marks)]
        drawn = fitted.synthetic[:, fitted.encoder.schema.names.index(column.fitted.column.name)]
        drawn = drawn[~np.isnan(drawn) & ~np.isin(drawn, column.fitted.column.marks)]
        trimmed = 0 if fitted.exact else 2 * MIN_PEOPLE  # learned rows beyond the pooled ends, at most
        yield from _check_numbers(name, column.fitted, numbers, drawn, rows, trimmed)
    elif isinstance(column.fitted, FittedCategorical):
        if column.unknown_rows:
            yield _rate("category", name, "none unknown", f"unknown: {listing(column.unknown, 4)}",
                        column.unknown_rows, n, 0, rows)  # fmt: skip
        yield from _check_shares(name, column.fitted, present, rows)


def _check_missing(column: _Column, fitted: Fitted) -> Finding:
    """Compare missing cells with those of the synthetic rows, which have about the same share as the learned table."""
    name, n = str(column.fitted.column.name), len(column.raw)
    now = int(column.missing.sum())
    at = fitted.encoder.schema.names.index(column.fitted.column.name)
    before = int(np.isnan(fitted.synthetic[:, at]).sum()) if column.fitted.column.missing else 0
    least = LEAST_MISSING if column.fitted.column.missing else LEAST_RATE
    return _rate("missing", name, _percent(before, len(fitted.synthetic)), _percent(now, n), now, n, before,
                 len(fitted.synthetic), least)  # fmt: skip


def _check_numbers(
    name: str,
    fitted: FittedNumeric,
    numbers: Floats,  # (n,)
    drawn: Floats,  # those of synthetic rows
    rows: int,  # number of learned rows
    trimmed: int,  # number of these beyond the learned ends, at most
) -> Iterator[Finding]:
    """Check range, middle and spread; on the column's scale, the learned table has mean 0 and deviation 1."""
    from scipy.special import ndtr

    n, scale = len(numbers), fitted.scale
    low, high = float(scale.raw[0]), float(scale.raw[-1])
    outside = int(((numbers < low) | (numbers > high)).sum())
    ends = f"{low:,.6g} to {high:,.6g}"
    seen = f"{numbers.min():,.6g} to {numbers.max():,.6g}" if n else "no number"
    yield _rate("range", name, ends, seen, outside, n, trimmed, rows)
    if n < 2:
        return
    scores = scale.embed(scale.clip(numbers))
    unit = sqrt(1 / n + 1 / rows)
    mean, deviation = float(scores.mean()), float(scores.std())
    middle = f"around {float(scale.unembed(np.zeros(1))[0]):,.4g}"
    now = f"around {float(scale.unembed(np.array([mean]))[0]):,.4g}"
    p = 2 * float(ndtr(-abs(mean) / unit))
    yield Finding("middle", name, middle, now, abs(mean), p, LEAST_SHIFT)
    learned = scale.embed(scale.clip(drawn)) if len(drawn) else scores
    noise = max(np.square(scores).std(), np.square(learned).std(), 1e-9) * unit  # few rows may lack rare values
    p = 2 * float(ndtr(-abs(deviation**2 - 1) / noise))
    yield Finding("spread", name, "as learned", f"{deviation:.2f} times as wide", abs(deviation - 1), p, LEAST_SPREAD)


def _check_shares(name: str, fitted: FittedCategorical, present: Floats, rows: int) -> Iterator[Finding]:
    """A two-sample chi-squared test; categories expected in fewer than five rows are counted together."""
    from scipy.special import chdtrc

    shares, n = fitted.shares, len(present)
    if n == 0 or len(shares) < 2:
        return
    counts = np.bincount(fitted.nearest_known(present).astype(np.int64), minlength=len(shares)).astype(np.float64)
    few = shares * min(n, rows) < MIN_PEOPLE
    now, then = (np.append(each[~few], each[few].sum()) for each in (counts, shares * rows))
    now, then = now[(now + then) > 0], then[(now + then) > 0]
    expected = (now + then) / (n + rows)
    distance = sum(
        float((np.square(each - size * expected) / (size * expected)).sum()) for each, size in ((now, n), (then, rows))
    )
    variation = float(np.abs(counts / n - shares).sum() / 2)
    most = int(np.abs(counts / n - shares).argmax())
    categories = fitted.column.categories
    which = categories[most] if most < len(categories) else "rare ones"
    yield Finding("shares", name, f"{which}: {100 * shares[most]:.1f} %", f"{which}: {100 * counts[most] / n:.1f} %",
                  variation, float(chdtrc(max(1, len(now) - 1), distance)), LEAST_SHARES)  # fmt: skip


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _check_law(law: Law, fitted: Fitted, raw: Floats) -> Finding:
    broken = int(np.asarray(law.bind(fitted.encoder.schema.features).contradicted(raw), dtype=bool).sum())
    then = f"{law.exceptions:,} of {law.support:,} rows break it"
    return _rate("law", str(law), then, f"{broken:,} of {len(raw):,} rows", broken, len(raw), law.exceptions,
                 max(law.support, 1))  # fmt: skip


def _check_model(fitted: Fitted, raw: Floats, frame: pd.DataFrame, label: Name | None) -> Iterator[Finding]:
    at = np.unique(np.linspace(0, len(raw) - 1, min(MAX_ROWS, len(raw))).astype(np.int64))
    predicted = Oracle(fitted.model).predict(fitted.encoder.nearest_known(raw[at])).numpy()
    truth = None if label is None or not fitted.classes else _class_numbers(fitted, frame.iloc[at], label)
    learned_by_label = fitted.classifier is not None
    yield from _check_plausibility(fitted, raw[at], truth if truth is not None and learned_by_label else predicted)
    accuracy, test_rows = fitted.report["accuracy"], int(fitted.report["test_rows"])
    if truth is None or accuracy is None:
        return
    right = int((predicted == truth).sum())
    wrong_then = round((1 - accuracy) * test_rows)
    yield _rate("accuracy", "accuracy", f"{100 * accuracy:.1f} %", f"{100 * right / len(at):.1f} %", len(at) - right,
                len(at), wrong_then, test_rows, LEAST_ACCURACY)  # fmt: skip


def _class_numbers(fitted: Fitted, frame: pd.DataFrame, label: Name) -> Positions:
    return fitted.class_numbers(frame.rename(columns={label: fitted.label}) if label != fitted.label else frame)


def _check_plausibility(fitted: Fitted, raw: Floats, y: Positions) -> Iterator[Finding]:
    """A Kolmogorov-Smirnov test against the uniform distribution, which plausibility has for rows like the held-out
    ones. The learned quantiles come from a sample, too, of a tenth of the rows, hence the effective sample size."""
    from scipy.special import kolmogorov

    held_out = int(fitted.report["test_rows"])
    shares = np.bincount(y, minlength=len(fitted.energy_quantiles)) / len(y)
    known = np.flatnonzero(shares * held_out >= MIN_CLASS_ROWS)
    used = np.isin(y, known)
    if used.sum() < 2:
        return
    rated = rate_plausibility(
        fitted.encoder, fitted.diffusion, fitted.energy_quantiles, raw[used], torch.from_numpy(y[used])
    )
    n, ordered = len(rated), np.sort(rated)
    steps = np.arange(n) / n
    distance = float(max((steps + 1 / n - ordered).max(), (ordered - steps).max()))
    effective = n * held_out / (n + held_out)
    yield Finding("plausibility", "plausibility", "0.50 on average", f"{rated.mean():.2f} on average", distance,
                  float(kolmogorov(distance * sqrt(effective))), LEAST_PLAUSIBILITY)  # fmt: skip


def _rate(
    check: str, name: str, then: str, now: str, k: int, n: int, k_then: int, n_then: int, least: float = LEAST_RATE
) -> Finding:
    """Whether `k` of `n` is a higher rate than `k_then` of `n_then`: Fisher's exact test, one-sided."""
    from scipy.stats import hypergeom

    if n == 0:
        return Finding(check, name, then, now, 0.0, 1.0, least)
    p = float(hypergeom.sf(k - 1, n + n_then, k + k_then, n))
    return Finding(check, name, then, now, max(0.0, k / n - k_then / n_then), p, least)


def _percent(k: int, n: int) -> str:
    return f"{100 * k / max(n, 1):.1f} % missing"
