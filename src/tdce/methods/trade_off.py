"""The trade-off at several positions at once: one pool of answers, from which every position takes its best.

With one pool, the distance of the best answer never rises towards closeness 1 and its energy never falls: if it did,
exchanging two answers would improve one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tdce._core import Floats, Noise
from tdce.methods.explanation import Explanation, Status
from tdce.methods.objective import Objective, PricedRows, feature_costs
from tdce.methods.protocol import Task
from tdce.methods.question import DEFAULT_SAFETY, Question
from tdce.models import Goals
from tdce.schema import FeasibleSet


def choose_along(
    task: Task,
    feasible: FeasibleSet,
    goals: Goals,
    question: Question,
    positions: Sequence[float],
    explanations: Sequence[Explanation],  # one option per row, asked at each position
) -> list[Explanation]:
    """For each position and row, the answer of any position that is best at this one.

    All positions want the same of safety: as much as the answer in the middle has, up to what the question asks for.
    """
    valid = np.stack([each.status[:, 0] == Status.VALID for each in explanations])  # (positions, rows)
    safety = np.stack([np.nan_to_num(each.safety[:, 0]) for each in explanations])
    cost, energy = _price(task, feasible, goals, question, explanations)
    wanted = DEFAULT_SAFETY if question.safety is None else question.safety
    middle = len(positions) // 2
    floor = np.where(valid[middle], np.minimum(safety[middle], wanted), 0.0)
    allowed = valid & (safety >= floor)
    found = []
    for i, closeness in enumerate(positions):
        total = np.where(allowed, closeness * cost + (1 - closeness) * energy, np.inf)
        best = np.where(allowed.any(axis=0), total.argmin(axis=0), i)
        found.append(_pick(explanations, best))
    return found


def _price(
    task: Task, feasible: FeasibleSet, goals: Goals, question: Question, explanations: Sequence[Explanation]
) -> tuple[Floats, Floats]:
    """(positions, rows) the cost and the energy of every answer, with the noise that its search had."""
    x, rows = feasible.x, torch.arange(len(feasible.x))
    target = goals.target_class(task.oracle.score(feasible.own))
    priced = PricedRows(x, feature_costs(task.encoder, question.costs))
    objective = Objective(task, priced, Noise(x, question.seed, 0), 1.0, target)
    x_cf = [task.encoder.embed(each.raw[:, 0]).float() for each in explanations]
    cost, energy = (
        [measure(each, rows).double().numpy() for each in x_cf] for measure in (objective.cost, objective.energy)
    )
    return np.stack(cost), np.stack(energy)


def _pick(explanations: Sequence[Explanation], which: NDArray[np.int64]) -> Explanation:
    """Each row as in the explanation with this number."""
    parts: dict[str, Any] = {}
    for each in fields(Explanation):
        arrays = [getattr(explanation, each.name) for explanation in explanations]
        parts[each.name] = None if arrays[0] is None else np.stack(arrays)[which, np.arange(len(which))]
    return Explanation(**parts)
