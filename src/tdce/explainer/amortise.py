"""Amortised answers: a network learns the method's own answers to synthetic rows."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, InputError, Progress
from tdce.diffusion import draw_synthetic
from tdce.explainer.fitted import Fitted
from tdce.explainer.plans import TrainingPlans
from tdce.explainer.precedents import answer_rows
from tdce.methods import DiffusionSearch, Method, Proposer
from tdce.models import Oracle

MOST_DRAWN = 16_384  # synthetic rows that are drawn to find enough refused ones
FEWEST_ANSWERS = 20  # from which anything can be learned


def amortise(fitted: Fitted, method: Method, seed: int, plans: TrainingPlans, progress: Progress) -> Fitted:
    """Train a network on the method's answers to refused synthetic rows."""
    assert isinstance(method, DiffusionSearch)
    began = time.monotonic()
    x, x_cf = search_answers(fitted, method, seed, plans, progress)
    proposer = Proposer.fit(fitted.encoder.space, x, x_cf, method.closeness, seed, progress, plans.amortised)
    seconds = round(fitted.report.get("seconds", 0.0) + time.monotonic() - began, 1)
    return replace(fitted, proposer=proposer, report=fitted.report | {"seconds": seconds})


def search_answers(
    fitted: Fitted, method: Method, seed: int, plans: TrainingPlans, progress: Progress
) -> tuple[Tensor, Tensor]:
    """(n, width) refused synthetic rows, and the method's counterfactuals for them."""
    refused = _refused(fitted, seed, plans, progress)
    valid, answers = answer_rows(fitted, method, refused, seed, progress)
    if valid.sum() < FEWEST_ANSWERS:
        raise InputError(f"fast has nothing to learn from: of {len(refused):,} refused synthetic rows only "
                         f"{int(valid.sum())} could be answered; leave fast out")  # fmt: skip
    x, x_cf = (fitted.encoder.embed(rows[valid]).float() for rows in (refused, answers))
    return x, x_cf


def _refused(fitted: Fitted, seed: int, plans: TrainingPlans, progress: Progress) -> Floats:
    """(n, features) synthetic rows that do not meet the goal: those that there are, and more of their kind."""
    wanted, refused = plans.amortised_answers, _without_goal(fitted, fitted.synthetic)
    lacking, share = wanted - len(refused), len(refused) / max(1, len(fitted.synthetic))
    count = min(MOST_DRAWN, round(lacking / max(share, lacking / MOST_DRAWN))) if lacking > 0 else 0
    if count > 0:
        which = torch.randint(len(fitted.y), (count,), generator=torch.Generator().manual_seed(seed + 1))
        more = draw_synthetic(fitted.encoder, fitted.diffusion, fitted.y[which], seed + 1, progress, plans.sampling)
        refused = np.concatenate([refused, _without_goal(fitted, more)])
    return refused[:wanted]


def _without_goal(fitted: Fitted, rows: Floats) -> Floats:
    assert fitted.goal is not None
    met = fitted.goal.met(Oracle(fitted.model).score(rows)).numpy()
    return np.asarray(rows[~met])
