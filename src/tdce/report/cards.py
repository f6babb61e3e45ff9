"""The people of a report as compact columns: every text once, and for each person its number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats
from tdce.methods import MOST_REASONS, Line, Status
from tdce.report.borders import borders
from tdce.report.histograms import Spread
from tdce.report.language.speaker import Speaker
from tdce.report.view import View
from tdce.schema import Column, Numeric

STATUSES = tuple(status.value for status in Status)


def person_cards(view: View, lines: Sequence[Sequence[Line]], speaker: Speaker) -> dict[str, Any]:
    """All that cards show, sort and search; a value is the number of its text in its column."""
    flat = [line for options in lines for line in options]
    found = view.explanation
    features, changes = [], [list[tuple[int, int]]() for _ in flat]
    for place, (i, column) in enumerate(view.shown):
        feature, after, where = _feature(view, i, column, speaker)
        features.append(feature)
        for at, code in zip(where, after, strict=True):
            changes[at].append((place, code))
    places = {column.name: place for place, (_, column) in enumerate(view.shown)}
    for line, some in zip(flat, changes, strict=True):  # what counts most comes first
        ranks = {places[name]: rank for rank, (name, _) in enumerate(line.reasons) if name in places}
        some.sort(key=lambda change: ranks.get(change[0], len(ranks)))
    hidden = [i for i, name in enumerate(view.schema.names) if name in view.barred]
    number = any(line.number for line in flat)
    scale = _scale(view, number)
    return {
        "options": view.question.options,
        "label": [label if isinstance(label, str) else _label(label) for label in view.rows.index],
        "features": features,
        "status": "".join(str(STATUSES.index(status)) for status in found.status.reshape(-1).tolist()),
        "before": _scores(found.score_before, number, scale, speaker),
        "after": _scores(found.score_after.reshape(-1), number, scale, speaker),
        "borders": [
            _marks(borders(goal, _classes(view)), number, scale, speaker) for goal in view.question.goals.kinds
        ],
        "goal": _coded([speaker.target(options[0]) for options in lines])
        | {"kind": view.question.goals.which.tolist()},
        "headline": _coded([_start(speaker.headline(line)) for line in flat]),
        "typical": _coded([_start(speaker.typical(line.plausibility)) for line in flat]),
        "plausibility": [None if np.isnan(p) else round(1000 * p) for p in found.plausibility.reshape(-1).tolist()],
        "effort": [round(each, 2) for each in view.effort.reshape(-1).tolist()],
        "note": _coded(["" if line.status == Status.INFEASIBLE else speaker.note(line) for line in flat]),
        "loss": _losses(flat, changes, view) if speaker.audience == "analyst" else [],
        "changes": [[number for change in some for number in change] for some in changes],
        "unnamed": view.changed[:, :, hidden].sum(axis=2).reshape(-1).tolist() if hidden else [],
    }


def _losses(lines: list[Line], changes: list[list[tuple[int, int]]], view: View) -> list[list[float | None]]:
    """What giving back each of the changes that count most would cost, in the order of the changes; not of those that
    are no principal reason, or of which the model was not asked."""
    names, found = [column.name for _, column in view.shown], []
    for line, some in zip(lines, changes, strict=True):
        known = {name: loss for name, loss in line.reasons if name in names and not np.isnan(loss)}
        found.append(
            [round(known[names[place]], 2) if names[place] in known else None for place, _ in some[:MOST_REASONS]]
        )
    return found


def _feature(view: View, i: int, column: Column, speaker: Speaker) -> tuple[dict[str, Any], list[int], list[int]]:
    """A feature's texts and everybody's own value; the new values, and the lines that they belong to."""
    where = np.flatnonzero(view.changed[:, :, i].reshape(-1))
    cells = [*view.rows[column.name], *view.written[column.name].iloc[where]]
    raw = np.concatenate([view.explanation.own[:, i], view.explanation.raw[:, :, i].reshape(-1)[where]])
    _, first, codes = np.unique(raw, return_index=True, return_inverse=True)  # missing ones are equal
    texts = [speaker.value(column.name, cells[at]) for at in first.tolist()]
    rows = len(view.rows)
    feature: dict[str, Any] = {
        "label": speaker.title(column.name),
        "number": column.numbers > 0,
        "texts": texts,
        "now": codes[:rows].tolist(),
    }
    if view.population is not None and len(where):
        feature |= _beside(view.population[column.name], column, raw[first], speaker)
    return feature, codes[rows:].tolist(), where.tolist()


def _beside(spread: Spread, column: Column, values: Floats, speaker: Speaker) -> dict[str, Any]:
    """Where the values stand among people, and how many of each class are below a number, or say the same."""
    values = np.where(np.isin(values, column.marks), np.nan, values)
    places, shares = spread.place(values), spread.below(values)
    return {
        "at": [None if np.isnan(place) else round(100 * place, 1) for place in places.tolist()],
        "share": [[None if np.isnan(share) else round(100 * share) for share in row] for row in shares.tolist()],
        "ends": _ends(spread, column, speaker) if isinstance(column, Numeric) else ["", ""],
    }


def _ends(spread: Spread, column: Numeric, speaker: Speaker) -> list[str]:
    """What stands at the ends of an axis; a sign says that there is more beyond."""
    low, high = spread.ends
    first, last = (speaker.value(column.name, _plain(end)) for end in (low, high))
    return [f"≤ {first}" if column.low < low else first, f"≥ {last}" if column.high > high else last]


def _scores(score: Floats, number: bool, scale: tuple[float, float], speaker: Speaker) -> dict[str, Any]:
    """Texts, places on the scale and everybody's number of them."""
    values, codes = np.unique(score, return_inverse=True)
    marks = _marks(values.tolist(), number, scale, speaker)
    which, known = pd.factorize(pd.Series(list(zip(marks["texts"], marks["at"], strict=True)), dtype=object))
    return {"texts": [text for text, _ in known], "at": [at for _, at in known], "codes": which[codes].tolist()}


def _marks(values: list[float], number: bool, scale: tuple[float, float], speaker: Speaker) -> dict[str, Any]:
    low, high = scale
    at = [round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 1) for value in values]
    return {"texts": [speaker.score(value, number) for value in values], "at": at}


def _scale(view: View, number: bool) -> tuple[float, float]:
    """From 0 to 1, or around all numbers that are predicted or wanted."""
    if not number:
        return 0.0, 1.0
    wanted = [border for goal in view.question.goals.kinds for border in borders(goal, _classes(view))]
    every = np.concatenate([view.explanation.score_before, view.explanation.score_after.reshape(-1), wanted])
    low, high = float(every.min()), float(every.max())
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _classes(view: View) -> int:
    return 0 if view.context is None else view.context.classes


def _coded(texts: list[str]) -> dict[str, Any]:
    codes, known = pd.factorize(np.array(texts, dtype=object))
    return {"texts": list(known), "codes": codes.tolist()}


def _label(label: Any) -> str:
    return " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _start(text: str) -> str:
    """As the start of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def _plain(value: float) -> float | int:
    value = round(value, 9)
    return int(value) if value.is_integer() else value
