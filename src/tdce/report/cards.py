"""The cards of a report as compact columns: each text is stored once and referred to by its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats
from tdce.methods import MOST_REASONS, Line, Status
from tdce.report.histograms import Histogram
from tdce.report.language.speaker import Speaker, capitalise
from tdce.report.thresholds import score_thresholds
from tdce.report.view import View
from tdce.schema import Column, Numeric

STATUSES = tuple(status.value for status in Status)

Change = tuple[int, int]
"""The position of a feature among the visible ones, and the number of its new text."""


def person_cards(view: View, lines: Sequence[Sequence[Line]], speaker: Speaker) -> dict[str, Any]:
    """Everything that the cards show, sort and search, for the page's script; a value is the number of its text."""
    flat = [line for options in lines for line in options]
    explanation = view.explanation
    features, changes = _features_and_changes(view, flat, speaker)
    hidden = [i for i, name in enumerate(view.schema.names) if name in view.hidden]
    number = any(line.number for line in flat)
    scale = _scale(view, number)
    return {
        "options": view.question.n,
        "label": list(view.labels),
        "features": features,
        "status": "".join(str(STATUSES.index(status)) for status in explanation.status.reshape(-1).tolist()),
        "before": _scores(explanation.score_before, number, scale, speaker),
        "after": _scores(explanation.score_after.reshape(-1), number, scale, speaker),
        "thresholds": [
            _marks(score_thresholds(goal, _classes(view)), number, scale, speaker) for goal in view.goals.kinds
        ],
        "goal": _number_texts([speaker.target(options[0]) for options in lines]) | {"kind": view.goals.which.tolist()},
        "lead": _number_texts([speaker.summary(line) for line in flat]),
        "follows": _number_texts([speaker.consequences(line) for line in flat]),
        "typical": _number_texts([capitalise(speaker.standing(line)) for line in flat]),
        "plausibility": [
            None if np.isnan(p) else round(1000 * p) for p in explanation.plausibility.reshape(-1).tolist()
        ],
        "effort": [round(effort, 2) for effort in view.effort.reshape(-1).tolist()],
        "note": _number_texts(["" if line.status == Status.INFEASIBLE else speaker.note(line) for line in flat]),
        "loss": _losses(flat, changes, view) if speaker.audience == "analyst" else [],
        "reasons": _group_reasons(view) if speaker.audience == "analyst" else {},
        "changes": [[number for change in line_changes for number in change] for line_changes in changes],
        "unnamed": view.changed[:, :, hidden].sum(axis=2).reshape(-1).tolist() if hidden else [],
    }


def _group_reasons(view: View) -> dict[str, list[list[int]]]:
    """The principal reasons by method and person, as positions among the visible features."""
    positions = {column.name: position for position, (_, column) in enumerate(view.visible)}
    known = view.group_reasons or {}
    return {
        method: [[positions[name] for name, _ in some if name in positions][:MOST_REASONS] for some in everybody]
        for method, everybody in known.items()
    }


def _features_and_changes(
    view: View, lines: list[Line], speaker: Speaker
) -> tuple[list[dict[str, Any]], list[list[Change]]]:
    """The visible features, and the changes of each line, most important first."""
    features, changes = [], [list[Change]() for _ in lines]
    for position, (i, column) in enumerate(view.visible):
        feature, after, where = _feature(view, i, column, speaker)
        features.append(feature)
        for i_line, code in zip(where, after, strict=True):
            changes[i_line].append((position, code))
    positions = {column.name: position for position, (_, column) in enumerate(view.visible)}
    for line, line_changes in zip(lines, changes, strict=True):
        ranks = {positions[name]: rank for rank, (name, _) in enumerate(line.reasons) if name in positions}
        line_changes.sort(key=lambda change: ranks.get(change[0], len(ranks)))
    return features, changes


def _losses(lines: list[Line], changes: list[list[Change]], view: View) -> list[list[float | None]]:
    """The margin lost by reverting each of the most important changes, in their order; None for a change without an
    attribution, or for whose loss the model was not queried."""
    names = [column.name for _, column in view.visible]
    losses = []
    for line, line_changes in zip(lines, changes, strict=True):
        known = {name: loss for name, loss in line.reasons if name in names and not np.isnan(loss)}
        most = [names[position] for position, _ in line_changes[:MOST_REASONS]]
        losses.append([round(known[name], 2) if name in known else None for name in most])
    return losses


def _feature(view: View, i: int, column: Column, speaker: Speaker) -> tuple[dict[str, Any], list[int], list[int]]:
    """A feature's texts with everybody's own value; the new values, and the lines that they belong to."""
    where = np.flatnonzero(view.changed[:, :, i].reshape(-1))
    cells = [*view.rows[column.name], *view.written[column.name].iloc[where]]
    raw = np.concatenate([view.explanation.own[:, i], view.explanation.raw[:, :, i].reshape(-1)[where]])
    _, first, codes = np.unique(raw, return_index=True, return_inverse=True)  # NaNs are equal
    texts = [speaker.value(column.name, cells[at]) for at in first.tolist()]
    rows = len(view.rows)
    feature: dict[str, Any] = {
        "label": speaker.title(column.name),
        "number": column.numbers > 0,
        "texts": texts,
        "now": codes[:rows].tolist(),
    }
    if view.population is not None and len(where):
        feature |= _among_population(view.population[column.name], column, raw[first], speaker)
    return feature, codes[rows:].tolist(), where.tolist()


def _among_population(histogram: Histogram, column: Column, values: Floats, speaker: Speaker) -> dict[str, Any]:
    """The positions of values on the axis, and the share of each class below a number, or with the same category."""
    values = np.where(np.isin(values, column.marks), np.nan, values)
    shares = histogram.shares(values)
    among = {"share": [[None if np.isnan(share) else round(100 * share) for share in row] for row in shares.tolist()]}
    if not isinstance(column, Numeric):
        return among  # categories have no axis: each is counted
    at = [None if np.isnan(position) else round(100 * position, 1) for position in histogram.position(values).tolist()]
    return {**among, "at": at, "ends": _axis_ends(histogram, column, speaker)}


def _axis_ends(histogram: Histogram, column: Numeric, speaker: Speaker) -> list[str]:
    """The labels at the ends of an axis; ≤ and ≥ mark values beyond it."""
    low, high = histogram.ends
    first, last = (speaker.value(column.name, _plain(end)) for end in (low, high))
    return [f"≤ {first}" if column.low < low else first, f"≥ {last}" if column.high > high else last]


def _scores(score: Floats, number: bool, scale: tuple[float, float], speaker: Speaker) -> dict[str, Any]:
    """The texts of scores, their positions on the scale, and the number of each line's text."""
    values, codes = np.unique(score, return_inverse=True)
    marks = _marks(values.tolist(), number, scale, speaker)
    which, known = pd.factorize(pd.Series(list(zip(marks["texts"], marks["at"], strict=True)), dtype=object))
    return {"texts": [text for text, _ in known], "at": [at for _, at in known], "codes": which[codes].tolist()}


def _marks(values: list[float], number: bool, scale: tuple[float, float], speaker: Speaker) -> dict[str, Any]:
    """Scores as texts, and their positions on the scale in percent."""
    low, high = scale
    at = [round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 1) for value in values]
    return {"texts": [speaker.score(value, number) for value in values], "at": at}


def _scale(view: View, number: bool) -> tuple[float, float]:
    """The ends of the scale: 0 and 1 for a probability, else around all predictions and thresholds."""
    if not number:
        return 0.0, 1.0
    thresholds = [score for goal in view.goals.kinds for score in score_thresholds(goal, _classes(view))]
    scores = np.concatenate([view.explanation.score_before, view.explanation.score_after.reshape(-1), thresholds])
    low, high = float(scores.min()), float(scores.max())
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _classes(view: View) -> int:
    return 0 if view.context is None else view.context.classes


def _number_texts(texts: list[str]) -> dict[str, Any]:
    """The distinct texts, and for each text its number among them."""
    codes, known = pd.factorize(np.array(texts, dtype=object))
    return {"texts": list(known), "codes": codes.tolist()}


def _plain(value: float) -> float | int:
    value = round(value, 9)
    return int(value) if value.is_integer() else value
