"""The reverse walk of the diffusion model for one row, frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce._core import (
    Floats,
    Noise,
    pad_rows,
    round_scores,
)
from tdce.diffusion import gumbel_softmax
from tdce.explainer import Explainer, Fitted
from tdce.methods import Guided, Question, Walk
from tdce.models import Goals, Oracle, describe_goal
from tdce.report import Catalogue
from tdce.schema import FeasibleSet, Numeric
from tdce.serving.json_rows import frame_to_json, values_to_json
from tdce.serving.what_if import rate_rows

DEFAULT_START = 0.5  # the share of T to which the row is noised, if no closeness is given
WALK_STEPS = 40

Estimates = list[tuple[int, Tensor]]  # the time, and the estimate of the clean row (1, width)


def reverse_walk(
    explainer: Explainer,
    row: pd.DataFrame,
    catalogue: Catalogue,
    question: Question,
) -> dict[str, Any]:
    """The walk's estimate of the clean row at each step, from noise to the final row. Immutable features keep the row's
    values throughout."""
    fitted = explainer.fitted
    start, seed = DEFAULT_START if question.closeness is None else 1 - question.closeness, question.seed
    feasible = FeasibleSet.of(fitted.encoder, row, question.immutable, question.rules)
    goals = fitted.resolve_goals(question.target, question.threshold, feasible.own)
    walk = _guided_walk if fitted.guide else _conditioned_walk
    estimates, last = walk(fitted, feasible, goals, start, seed)
    raw = np.concatenate([_estimate_values(fitted, feasible, x) for _, x in estimates] + [feasible.snap(last)])
    decision = Oracle(fitted.model)(raw, Goals(goals.kinds, goals.which.repeat(len(raw))))
    score = round_scores(goals.display_score(decision.score)).tolist()
    plausibility = rate_rows(fitted, raw, goals, feasible.own)
    values, x = frame_to_json(fitted.encoder.write(raw, pd.DataFrame(index=range(len(raw))))), feasible.x
    positions = [
        _positions(fitted, each, x) for each in [x_0 for _, x_0 in estimates] + [fitted.encoder.embed(raw[-1:]).float()]
    ]
    frames = [
        {"t": t, "score": score[i], "plausibility": plausibility[i], "values": values[i], "places": positions[i]}
        for i, t in enumerate([t for t, _ in estimates] + [0])
    ]
    return {
        "algorithm": catalogue.text("studio_walk_guided" if fitted.guide else "studio_walk_conditioned"),
        "target": values_to_json([describe_goal(goals.goal(0), fitted.labels)])[0],
        "frames": frames[:-1],
        "returned": frames[-1],
        "met": bool(decision.met[-1]),
    }


def _guided_walk(
    fitted: Fitted, feasible: FeasibleSet, goals: Goals, start: float, seed: int
) -> tuple[Estimates, Tensor]:
    """The walk of Algorithm 1, guided by the gradient of the model."""
    method = Guided(steps=WALK_STEPS).fit(fitted.task(feasible.immutable))
    whole = pad_rows(torch.zeros(1, dtype=torch.long))  # padded to a whole block, as everywhere
    x = feasible.x[whole]
    return _collect(method.walk(x, goals.take(whole), Noise(x, seed), start))


def _collect(walk: Walk) -> tuple[Estimates, Tensor]:
    """The estimates for the first row at every step of a walk, and its end."""
    estimates: Estimates = []
    while True:
        try:
            t, _, x_0 = next(walk)
        except StopIteration as end:
            return estimates, end.value[:1].detach()
        estimates.append((t, x_0[:1].detach().clone()))


@torch.no_grad()
def _conditioned_walk(
    fitted: Fitted, feasible: FeasibleSet, goals: Goals, start: float, seed: int
) -> tuple[Estimates, Tensor]:
    """The walk without gradients: `TabularDiffusion.sample` from the noised row, with immutable features blended in."""
    diffusion, space = fitted.diffusion, fitted.encoder.space
    whole = pad_rows(torch.zeros(1, dtype=torch.long))
    x, y = feasible.x[whole], goals.target_class(Oracle(fitted.model).score(feasible.own)).repeat(len(whole))
    noise, mutable = Noise(x, seed), ~space.mask(feasible.immutable)
    times, estimates = diffusion.schedule.walk(start, WALK_STEPS), Estimates()
    x_t = diffusion.add_noise(x, times[0][0], noise) if times else x
    for t, s in times:
        x_0 = diffusion.denoise(x_t, t, y)
        estimates.append((t, x_0[:1].clone()))
        mu, var, log_pi = diffusion.transition(x_t, x_0, t, s)
        num = mu + (var**0.5 if s else 0.0) * noise.normal(space.num)
        cat = gumbel_softmax(log_pi, noise.gumbel(space.cat), diffusion.temperature(s), space)
        x_t = torch.where(mutable, space.join(num, cat), diffusion.add_noise(x, s, noise))
    num, cat = space.split(x_t)
    last = torch.where(mutable, space.join(num, space.one_hot(cat)), x)[:1]
    return [*estimates, (0, last)], last


def _estimate_values(fitted: Fitted, feasible: FeasibleSet, x_0: Tensor) -> Floats:
    """(1, features) an estimate as raw values; constraints need not hold during the walk."""
    return np.where(feasible.frozen, feasible.own, fitted.encoder.unembed(x_0))


def _positions(fitted: Fitted, x_0: Tensor, x: Tensor) -> dict[str, float]:
    """One number per feature, for drawing."""
    encoder, space = fitted.encoder, fitted.encoder.space
    below = encoder.range_share(space.split(x_0)[0])[0]
    positions, numbers = {}, 0
    for column in encoder.schema:
        columns = list(space.places[column.name])
        if isinstance(column, Numeric):
            positions[str(column.name)] = round(float(below[numbers]), 4)
            numbers += 1
        else:
            positions[str(column.name)] = round(1 - float((x_0 * x)[0, columns].sum()), 4)
    return positions
