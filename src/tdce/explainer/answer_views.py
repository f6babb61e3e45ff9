"""Views of an answer: in a notebook, as plots, and by the burden of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tdce._core import InputError, Name, check_integer, html_card, is_name, listing, round_scores, same, show, suggest
from tdce.methods import Line, Status
from tdce.models import Goals, Model, Oracle
from tdce.report import Burden, Speaker, measure_burden, score_thresholds
from tdce.schema import ConstraintSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tdce.explainer.answer import Answer


class Asked(NamedTuple):
    """What plots need from the explainer: the model, and the constraints, which compute what follows from changes."""

    model: Model
    constraints: ConstraintSet


def answer_html(answer: Answer) -> str:
    """An HTML table with the changes and the scores of each line."""
    counts = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in answer.counts().items())
    columns = ("row", "option", "status", "what changes", "score", "safety")
    cells = [
        (label, o, line.status.replace("_", " "), _changes(line) or line.note, f"{line.before:.3g} → {line.after:.3g}",
         f"{line.safety:.0%}" if line.status == Status.VALID and not np.isnan(line.safety) else "")
        for label, options in zip(answer.rows.index, answer.lines, strict=True)
        for o, line in enumerate(options)
    ]  # fmt: skip
    return html_card(f"Answer for {len(answer.rows):,} rows", [counts], columns, cells, "to_frame()")


def answer_burden(answer: Answer, by: Name, speaker: Speaker | None = None) -> Burden:
    """The burden of the groups of a column, by first options; a speaker puts the groups' values into words."""
    found = answer.explanation
    decided = np.array([name not in answer.schema.followers for name in answer.features], dtype=bool)
    changed = ~same(found.raw[:, 0], found.own) & decided
    return measure_burden(
        answer.rows, by, found.status[:, 0] != Status.ALREADY, found.status[:, 0] == Status.VALID,
        found.distance[:, 0], changed.sum(axis=1), found.safety[:, 0],
        str if speaker is None else lambda cell: speaker.value(by, cell), answer.kind,
    )  # fmt: skip


def plot_line(answer: Answer, row: Any, option: int) -> Figure:
    """The waterfall of one line: the change that is worth most first, each together with what follows from it."""
    from tdce.report import PathStep, waterfall_figure

    at, o = _position(answer, row), check_integer("option", option, 0, answer.options - 1)
    if answer.asked is None:
        raise InputError(
            "the model, which is asked for the scores in between, is not at hand: this answer was pickled, or made by "
            "another process; ask again, explainer.explain(rows).plot()"
        )
    line, speaker = answer.lines[at][o], answer.speaker(audience="analyst")
    ranked = [name for name, _ in line.reasons]
    values = {name: f"{speaker.value(name, a)} → {speaker.value(name, b)}" for name, a, b in line.changes}
    decided = (name for name in values if name not in answer.schema.followers)
    order = sorted(decided, key=lambda name: ranked.index(name) if name in ranked else len(ranked))
    scores = _scores_between(answer, answer.asked, at, o, [answer.features.index(name) for name in order])
    steps = [PathStep(speaker.title(name), values[name], score) for name, score in zip(order, scores, strict=True)]
    title = f"{answer.rows.index[at]}: {line.status.replace('_', ' ')}"
    return waterfall_figure(line.before, steps, _thresholds(answer, at), line.number, title)


def plot_people(answer: Answer) -> Figure:
    """Each person's score before and after the first option, and the distance and safety of that option."""
    from tdce.report import people_figure

    found, some = answer.explanation, len(answer.rows) > 0
    thresholds = _thresholds(answer, 0) if some and len(answer.goals.kinds) == 1 else []
    return people_figure(
        [str(label) for label in answer.rows.index], found.score_before, found.score_after[:, 0], found.status[:, 0],
        found.distance[:, 0], found.safety[:, 0], thresholds, some and answer.lines[0][0].number,
    )  # fmt: skip


def _scores_between(answer: Answer, asked: Asked, at: int, option: int, order: list[int]) -> list[float]:
    """The score after each of the changes in these columns, made in this order; the last is the answer's score."""
    own, raw = answer.explanation.own[at], answer.explanation.raw[at, option]
    states = np.repeat(own[None], len(order), axis=0)
    for i, column in enumerate(order):
        states[i:, column] = raw[column]
    if not order:
        return []
    states = asked.constraints.follow(states, np.repeat(own[None], len(order), axis=0))
    states[-1] = raw
    goals = Goals((answer.goals.goal(at),), answer.goals.which.new_zeros(len(order)))
    scores: list[float] = round_scores(goals.display_score(Oracle(asked.model).score(states))).tolist()
    return scores


def _position(answer: Answer, row: Any) -> int:
    """The position of the row with this index label; None: the first row with a change."""
    index = answer.rows.index
    if not len(index):
        raise InputError("the answer has no rows; there is nothing to draw")
    if row is None:
        return int((~same(answer.explanation.raw[:, 0], answer.explanation.own)).any(axis=1).argmax())
    known = is_name(row) and not isinstance(row, bool)
    at = [i for i, label in enumerate(index) if known and bool(label == row)]
    if not at:
        raise InputError(f"there is no row {show(row)}; {suggest(row, index)}the answer has: {listing(index)}")
    return at[0]


def _thresholds(answer: Answer, at: int) -> list[float]:
    return score_thresholds(answer.goals.goal(at), 0 if answer.context is None else answer.context.classes)


def _changes(line: Line) -> str:
    return "; ".join(f"{name}: {before} → {after}" for name, before, after in line.changes)
