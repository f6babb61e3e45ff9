"""Where on the scale of its score a goal is reached."""

from __future__ import annotations

from tdce.models import AllGoals, AtLeast, Between, Class, Goal, ModelDecides, Not, Range


def borders(goal: Goal, classes: int) -> list[float]:
    """The score, or both ends of a band; none where it depends on several classes. `classes`: of the output that it is
    about."""
    if isinstance(goal, AllGoals):
        part, start, stop = goal.parts[0]
        return borders(part, (stop - start) // (2 if isinstance(part, ModelDecides) else 1))
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
