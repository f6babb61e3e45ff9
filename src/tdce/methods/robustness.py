"""Answers that would still hold if the model were trained again, where there are any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from tdce._core import Note, Progress
from tdce.methods.driver import explain
from tdce.methods.explanation import Explanation, Question, Status
from tdce.methods.protocol import Method
from tdce.models import Ensemble, Goals
from tdce.schema import FeasibleSet


def explain_robustly(
    method: Method,  # whose judge has the committee
    alone: Method,  # the same method by the model alone
    ensemble: Ensemble,
    feasible: FeasibleSet,
    question: Question,
    progress: Progress,
) -> Explanation:
    """Answers that the model and nearly all of the committee accept; where none was found, those of the model alone.
    The notes say how many of the committee accept each."""
    found = explain(method, feasible, question, progress, reasons=True)
    asked = np.isin(found.status[:, 0], [Status.VALID, Status.BEST_EFFORT])
    weak = np.flatnonzero(asked & (count_accepting(ensemble, found, question.goals)[:, 0] < ensemble.needed))
    if len(weak):
        some = replace(question, goals=question.goals.take(torch.from_numpy(weak)))
        found = found.put(weak, explain(alone, feasible.take(weak), some, progress, reasons=True))
    counts, notes = count_accepting(ensemble, found, question.goals), found.notes.copy()
    for i, j in np.argwhere(found.status == Status.VALID).tolist():
        said = Note("held", values={"count": int(counts[i, j]), "models": len(ensemble)})
        notes[i, j] = (*notes[i, j], said)
    return replace(found, notes=notes)


def count_accepting(ensemble: Ensemble, found: Explanation, goals: Goals) -> NDArray[np.int64]:
    """(rows, options) how many of the committee accept each line."""
    rows, options, features = found.raw.shape
    each = goals.take(torch.arange(rows).repeat_interleave(options))
    return ensemble.accepting(found.raw.reshape(-1, features), each).numpy().reshape(rows, options)
