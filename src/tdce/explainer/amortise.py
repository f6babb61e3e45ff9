"""A network that has learned the method's own answers to synthetic people, for answers in one pass."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, InputError, Progress
from tdce.diffusion import draw_synthetic
from tdce.explainer.fitting import Fitted
from tdce.methods import DiffusionSearch, Method, Proposer, Question, Status, explain
from tdce.models import Goals, Oracle
from tdce.schema import FeasibleSet

PUPILS = 6_000  # refused people whose answers are learned, at most
MOST_DRAWN = 16_384  # people who are drawn to find so many
FEWEST = 20  # answers from which anything can be learned


def amortise(fitted: Fitted, method: Method, seed: int, progress: Progress) -> Fitted:
    """With a network that has learned what the method answers refused synthetic people."""
    assert isinstance(method, DiffusionSearch)
    began = time.monotonic()
    x, x_cf = search_answers(fitted, method, seed, progress)
    proposer = Proposer.fit(fitted.encoder.space, x, x_cf, method.closeness, seed, progress)
    seconds = round(fitted.report.get("seconds", 0.0) + time.monotonic() - began, 1)
    return replace(fitted, proposer=proposer, report=fitted.report | {"seconds": seconds})


def search_answers(fitted: Fitted, method: Method, seed: int, progress: Progress) -> tuple[Tensor, Tensor]:
    """(n, width) refused synthetic people, and what the method says to them."""
    goal, encoder = fitted.goal, fitted.encoder
    assert goal is not None
    people = _refused(fitted, seed, progress)
    feasible = FeasibleSet.of(encoder, encoder.decode(encoder.embed(people)))
    question = Question(Goals.all(goal, len(people)), seed=seed, costs=encoder.schema.costs)
    found = explain(method.fit(fitted.task(feasible.immutable, fast=False)), feasible, question, progress)
    valid = found.status[:, 0] == Status.VALID
    if valid.sum() < FEWEST:
        raise InputError(f"fast has nothing to learn from: of {len(people):,} refused synthetic people only "
                         f"{int(valid.sum())} could be answered; leave fast out")  # fmt: skip
    return encoder.embed(feasible.own[valid]).float(), encoder.embed(found.raw[valid, 0]).float()


def _refused(fitted: Fitted, seed: int, progress: Progress) -> Floats:
    """(at most PUPILS, features) synthetic people who do not meet the goal: those that there are, and more of their
    kind."""
    found = _without(fitted, fitted.synthetic)
    lacking, share = PUPILS - len(found), len(found) / max(1, len(fitted.synthetic))
    count = min(MOST_DRAWN, round(lacking / max(share, lacking / MOST_DRAWN))) if lacking > 0 else 0
    if count > 0:
        which = torch.randint(len(fitted.y), (count,), generator=torch.Generator().manual_seed(seed + 1))
        more = draw_synthetic(fitted.encoder, fitted.diffusion, fitted.y[which], seed + 1, progress)
        found = np.concatenate([found, _without(fitted, more)])
    return found[:PUPILS]


def _without(fitted: Fitted, people: Floats) -> Floats:
    assert fitted.goal is not None
    met = fitted.goal.met(Oracle(fitted.model).score(people)).numpy()
    return np.asarray(people[~met])
