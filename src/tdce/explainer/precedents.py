"""Precedents: what the search answers to synthetic rows, found once so that similar rows may take it over."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from tdce._core import Flags, Floats, Progress
from tdce.explainer.fitted import Fitted
from tdce.methods import DiffusionSearch, Method, Question, Status, explain
from tdce.models import Goals, Oracle
from tdce.schema import FeasibleSet


def add_precedents(fitted: Fitted, count: int, seed: int, progress: Progress) -> Fitted:
    """With the answers of the default search to refused synthetic rows, at most this many; none if nothing is known to
    be favourable."""
    if fitted.goal is None or count == 0:
        return fitted
    began = time.monotonic()
    score = fitted.synthetic_scores
    met = fitted.goal.met(Oracle(fitted.model).score(fitted.synthetic) if score is None else score)
    rows = np.flatnonzero(~met.numpy())[:count]
    answered, answers = answer_rows(fitted, DiffusionSearch(), fitted.synthetic[rows], seed, progress)
    seconds = round(fitted.report["seconds"] + time.monotonic() - began, 1)
    known = fitted.encoder.nearest_known(answers[answered])  # a range may go further than what was learned
    return replace(fitted, precedents=(rows[answered], known), report=fitted.report | {"seconds": seconds})


def answer_rows(fitted: Fitted, method: Method, rows: Floats, seed: int, progress: Progress) -> tuple[Flags, Floats]:
    """(n,) which of these refused rows (n, features) get a counterfactual, and (n, features) it; features that follow
    others stay as they are, since they are computed, not proposed."""
    assert fitted.goal is not None
    encoder = fitted.encoder
    feasible = FeasibleSet.of(encoder, encoder.decode(encoder.embed(rows)))
    ready = method.fit(fitted.task(feasible.immutable, fast=False))
    question = Question(seed=seed, costs=encoder.schema.costs)
    explanation = explain(ready, feasible, Goals.all(fitted.goal, len(rows)), question, progress)
    raw, followers = explanation.raw[:, 0].copy(), feasible.constraints.followers
    raw[:, followers] = feasible.own[:, followers]
    return explanation.status[:, 0] == Status.VALID, raw
