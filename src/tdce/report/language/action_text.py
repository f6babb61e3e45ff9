"""An action for many people in words: `duration: at most 12 months; credit amount: lower by 20 %`."""

from __future__ import annotations

import numpy as np

from tdce.methods import Action, Step
from tdce.report.language.formats import write_number, write_percent
from tdce.report.language.speaker import Speaker
from tdce.schema import Schema


def action_text(action: Action, schema: Schema, speaker: Speaker) -> str:
    """All steps of an action; steps that this audience may not read are only counted."""
    named = [step for step in action if speaker.may_name(schema.names[step.column])]
    points = [step_text(step, schema, speaker) for step in named]
    if len(named) < len(action):
        points.append(speaker.text("points_too" if points else "points_alone", count=len(action) - len(named)))
    return "; ".join(points)


def step_text(step: Step, schema: Schema, speaker: Speaker) -> str:
    column = schema[schema.names[step.column]]
    label = speaker.title(column.name)
    if step.how == "times":
        key, value = "lower" if step.value < 0 else "raise", write_percent(speaker.messages, abs(step.value))
        return speaker.text(f"action_{key}", label=label, value=value)
    cell = column.cells(np.array([abs(step.value) if step.how == "by" else step.value]))[0]
    if step.how == "by":
        dated = column.words.format in ("date", "year")  # a difference of dates is not a date
        value = write_number(speaker.messages, abs(step.value)) if dated else speaker.value(column.name, cell)
        return speaker.text("action_lower" if step.value < 0 else "action_raise", label=label, value=value)
    return speaker.text(f"action_{step.how.replace(' ', '_')}", label=label, value=speaker.value(column.name, cell))
