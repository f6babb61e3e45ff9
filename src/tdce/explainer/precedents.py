"""Precedents: answers of the search to synthetic rows, found once in `fit` and tried for similar rows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch

from tdce._core import Positions, Progress
from tdce.explainer.fitted import Fitted, StoredPrecedents
from tdce.methods import MANY_FEATURES, PRECEDENT_POSITIONS, DiffusionSearch, Question, Status, added_energy, explain
from tdce.models import Goals, Oracle
from tdce.schema import FeasibleSet

FIRST_PRECEDENTS = 256  # found without precedents; the search for the others uses these


class _Search(DiffusionSearch):
    """The default search, without the steps that the standard position does not need."""

    combined: ClassVar[int] = 0


def add_precedents(fitted: Fitted, count: int, seed: int, progress: Progress) -> Fitted:
    """Add the answers of the default search to at most `count` refused synthetic rows; none if no favourable goal is
    known."""
    count = affordable(count, len(fitted.encoder.columns))
    if fitted.goal is None or count == 0:
        return fitted
    began = time.monotonic()
    score = fitted.synthetic_scores
    met = fitted.goal.met(Oracle(fitted.model).score(fitted.synthetic) if score is None else score)
    rows = np.flatnonzero(~met.numpy())[:count]
    found = answer_rows(fitted, rows[:FIRST_PRECEDENTS], seed, progress)
    if count > FIRST_PRECEDENTS:
        more = answer_rows(replace(fitted, precedents=found), rows[FIRST_PRECEDENTS:], seed, progress)
        found = StoredPrecedents(
            np.concatenate([found.rows, more.rows]), np.concatenate([found.answers, more.answers]),
            torch.cat([found.energy, more.energy]),
        )  # fmt: skip
    seconds = round(fitted.report["seconds"] + time.monotonic() - began, 1)
    return replace(fitted, precedents=found, report=fitted.report | {"seconds": seconds})


def affordable(count: int, features: int) -> int:
    """The number of precedents for a table with so many features: the work for each grows with the square of the width,
    so a wide table gets fewer, and none where they would be fewer than `FIRST_PRECEDENTS`."""
    if features <= MANY_FEATURES:
        return count
    within = count * MANY_FEATURES**2 // features**2
    return within if within >= FIRST_PRECEDENTS else 0


def answer_rows(fitted: Fitted, rows: Positions, seed: int, progress: Progress) -> StoredPrecedents:
    """The answers of the default search to the synthetic rows at these positions, where it finds one. Followers keep
    their values, since they are computed, not proposed."""
    assert fitted.goal is not None
    encoder = fitted.encoder
    feasible = FeasibleSet.of(encoder, encoder.decode(encoder.embed(fitted.synthetic[rows])))
    task, question = fitted.task(feasible.immutable), Question(seed=seed, costs=encoder.schema.costs)
    goals, method = Goals.all(fitted.goal, len(rows)), _Search().fit(task)
    explanation = explain(method, feasible, goals, question, progress, along=PRECEDENT_POSITIONS)
    answered = (explanation.status == Status.VALID).all(axis=1)
    raw, followers = explanation.raw[answered], feasible.constraints.followers
    raw[:, :, followers] = feasible.own[answered][:, None, followers]
    known = encoder.nearest_known(raw.reshape(-1, raw.shape[2])).reshape(raw.shape)  # a feasible range may be wider
    y = goals.target_class(task.oracle.score(feasible.own))[torch.from_numpy(answered)]
    x_cf = encoder.embed(known.reshape(-1, raw.shape[2])).float().view(*raw.shape[:2], encoder.space.width)
    return StoredPrecedents(rows[answered], known, added_energy(task, feasible.x[answered], x_cf, y))
