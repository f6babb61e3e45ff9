"""Counterfactuals that should survive retraining: accepted by the model and by nine in ten of an ensemble."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from tdce._core import Note, Progress
from tdce.methods.driver import explain
from tdce.methods.explanation import Explanation, Status
from tdce.methods.protocol import Method
from tdce.methods.question import Question
from tdce.models import Ensemble, Goals
from tdce.schema import FeasibleSet


def explain_robustly(
    method: Method,  # whose oracle has the ensemble
    alone: Method,  # the same method without the ensemble
    ensemble: Ensemble,
    feasible: FeasibleSet,
    goals: Goals,
    question: Question,
    progress: Progress,
) -> Explanation:
    """Find counterfactuals that nine in ten of the ensemble accept; where there are none, those of the model alone.

    The notes say how many models of the ensemble accept each.
    """
    explanation = explain(method, feasible, goals, question, progress, attribute=True)
    searched = np.isin(explanation.status[:, 0], [Status.VALID, Status.BEST_EFFORT])
    weak = np.flatnonzero(searched & (count_accepting(ensemble, explanation, goals)[:, 0] < ensemble.required_votes))
    if len(weak):
        their_goals = goals.take(torch.from_numpy(weak))
        usual = explain(alone, feasible.take(weak), their_goals, question, progress, attribute=True)
        explanation = explanation.put(weak, usual)
    counts, notes = count_accepting(ensemble, explanation, goals), explanation.notes.copy()
    for i, j in np.argwhere(explanation.status == Status.VALID).tolist():
        count = int(counts[i, j])
        bound = lower_bound(count, len(ensemble))
        note = Note("held", values={"count": count, "models": len(ensemble), "bound": bound})
        notes[i, j] = (*notes[i, j], note)
    return replace(explanation, notes=notes)


def lower_bound(count: int, models: int) -> float:
    """The 95 % lower confidence bound on the share of all retrained models that accept an answer if `count` of `models`
    do (Clopper and Pearson 1934). All of 29 prove 0.90."""
    from scipy.special import betaincinv  # imported here, to spare other questions the time

    return float(betaincinv(count, models - count + 1, 0.05)) if count else 0.0


def count_accepting(ensemble: Ensemble, explanation: Explanation, goals: Goals) -> NDArray[np.int64]:
    """(rows, options) the number of models of the ensemble that accept each line."""
    rows, options, features = explanation.raw.shape
    each = goals.take(torch.arange(rows).repeat_interleave(options))
    return ensemble.votes(explanation.raw.reshape(-1, features), each).numpy().reshape(rows, options)
