"""Answers that would still hold if the model were trained again, where there are any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from tdce.committee import Committee
from tdce.explaining import explain
from tdce.explanation import Explanation, Question, Status
from tdce.goal import Goals
from tdce.limits import Limits
from tdce.methods.interface import Method
from tdce.progress import Progress
from tdce.remarks import Remark


def explain_robustly(
    method: Method,  # whose judge has the committee
    alone: Method,  # the same method by the model alone
    committee: Committee,
    limits: Limits,
    question: Question,
    progress: Progress,
) -> Explanation:
    """Answers that the model and nearly all of the committee accept; where none was found, those of the model alone.
    The notes say how many of the committee accept each."""
    found = explain(method, limits, question, progress, reasons=True)
    asked = np.isin(found.status[:, 0], [Status.VALID, Status.BEST_EFFORT])
    weak = np.flatnonzero(asked & (held(committee, found, question.goals)[:, 0] < committee.needed))
    if len(weak):
        some = replace(question, goals=question.goals.take(torch.from_numpy(weak)))
        found = found.put(weak, explain(alone, limits.take(weak), some, progress, reasons=True))
    counts, remarks = held(committee, found, question.goals), found.remarks.copy()
    for i, j in np.argwhere(found.status == Status.VALID).tolist():
        said = Remark("held", values={"count": int(counts[i, j]), "models": len(committee)})
        remarks[i, j] = (*remarks[i, j], said)
    return replace(found, remarks=remarks)


def held(committee: Committee, found: Explanation, goals: Goals) -> NDArray[np.int64]:
    """(rows, options) how many of the committee accept each line."""
    rows, options, features = found.raw.shape
    each = goals.take(torch.arange(rows).repeat_interleave(options))
    return committee.accepting(found.raw.reshape(-1, features), each).numpy().reshape(rows, options)
