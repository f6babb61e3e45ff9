"""The scores at which a goal is reached, for the scales of a report."""

from __future__ import annotations

from tdce.models import AllGoals, AtLeast, Between, Class, Goal, ModelDecides, Not, Range


def score_thresholds(goal: Goal, classes: int) -> list[float]:
    """The score to reach, or both ends of a band; empty where it depends on the scores of several classes.

    `classes`: the number of classes of the output that the goal is about.
    """
    if isinstance(goal, AllGoals):
        part, start, stop = goal.parts[0]
        return score_thresholds(part, (stop - start) // (2 if isinstance(part, ModelDecides) else 1))
    if isinstance(goal, Range):
        return [end for end in (goal.low, goal.high) if end is not None]
    if isinstance(goal, Between):
        return [goal.low, goal.high]
    if isinstance(goal, AtLeast):
        return [goal.p]
    if classes != 2:
        return []
    if isinstance(goal, ModelDecides):
        second = (goal.goal.of == 1) != isinstance(goal.goal, Not)
        return [goal.output.border if second else 1 - goal.output.border]
    return [0.5] if isinstance(goal, Class) else []
