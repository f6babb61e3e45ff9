"""Goals in words: the short text of a goal, its parts for reports, and the keys of messages about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tdce.models.goals import Between, Class, Goal, Not
from tdce.models.output_goals import AllGoals, ModelDecides, Range


class TargetPart(NamedTuple):
    """The part of a target that is about one output."""

    kind: str  # class, not, between, at_least, at_most or range
    of: Any = None  # the class, or the name of the predicted number
    low: float | None = None  # a probability or a number
    high: float | None = None


def describe_goal(goal: Goal, labels: Sequence[Any]) -> Any:
    """A goal for people: the class itself, or a short English text. `labels` are the names of the score columns."""
    match goal:
        case AllGoals():
            return " and ".join(str(describe_goal(each, labels[start:stop])) for each, start, stop in goal.parts)
        case ModelDecides():
            return describe_goal(goal.goal, labels)
        case Range():
            return _describe_range(goal, labels[0])
        case Between():
            return f"{labels[goal.of]} at {100 * goal.low:g} % to {100 * goal.high:g} %"
        case Not():
            return f"anything but {labels[goal.of]}"
        case Class():
            return labels[goal.of]
    raise _unknown(goal)


def target_parts(goal: Goal, labels: Sequence[Any]) -> tuple[TargetPart, ...]:
    """A goal as data, for a report in any language: one part for each output that it is about."""
    match goal:
        case AllGoals():
            return tuple(part for each, start, stop in goal.parts for part in target_parts(each, labels[start:stop]))
        case ModelDecides():
            return target_parts(goal.goal, labels)
        case Range():
            kind = "at_least" if goal.high is None else "at_most" if goal.low is None else "range"
            return (TargetPart(kind, labels[0] or None, goal.low, goal.high),)
        case Between():
            return (TargetPart("between", labels[goal.of], goal.low, goal.high),)
        case Not():
            return (TargetPart("not", labels[goal.of]),)
        case Class():
            return (TargetPart("class", labels[goal.of]),)
    raise _unknown(goal)


def progress_key(goal: Goal) -> str:
    """The effect of a change in the right direction, as part of a message's key, e.g. `raises_probability`."""
    match goal:
        case AllGoals():
            return "nears_all"
        case ModelDecides():
            return progress_key(goal.goal)
        case Range():
            return "nears_prediction"
        case Between():
            return "nears_probability"
        case Class():
            return "raises_probability"
    raise _unknown(goal)


def score_kind(goal: Goal) -> str:
    """The kind of score shown to people: `probability` or `prediction`."""
    match goal:
        case AllGoals():
            return score_kind(goal.parts[0][0])
        case ModelDecides():
            return score_kind(goal.goal)
        case Range():
            return "prediction"
        case Class():
            return "probability"
    raise _unknown(goal)


def _describe_range(goal: Range, label: Any) -> str:
    name = f"{label} " if label else ""
    if goal.low is None or goal.high is None:
        return f"{name}at least {goal.low:,.10g}" if goal.high is None else f"{name}at most {goal.high:,.10g}"
    return f"{name}{goal.low:,.10g} to {goal.high:,.10g}"


def _unknown(goal: Goal) -> TypeError:
    return TypeError(f"goal_wording.py has no words for {type(goal).__name__}; add a case for it to each function")
