"""The reverse walk of the diffusion model for one person, frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce.cells import Floats
from tdce.columns import Numeric
from tdce.diffusion.multinomial import relaxed
from tdce.errors import LAST_SEED, names, number, optional, texts, whole
from tdce.explainer import Explainer
from tdce.fitting import Fitted
from tdce.goal import Goals
from tdce.judge import Judge, rounded
from tdce.limits import Limits
from tdce.methods import TDCEPaper
from tdce.noise import Noise
from tdce.products import even
from tdce.studio.rows import records
from tdce.studio.speaking import cells_of
from tdce.studio.trial import goals_for, typical_of
from tdce.words.catalogue import Catalogue

START = 0.5  # share of T to which the row is noised, if nobody asks for another
STEPS = 40

Seen = list[tuple[int, Tensor]]  # the time, and the estimate of the clean row (1, width)


def walked(
    explainer: Explainer,
    row: pd.DataFrame,
    words: Catalogue,
    target: Any = None,
    immutable: Any = (),
    rules: Any = (),
    threshold: Any = None,
    seed: Any = 0,
    closeness: Any = None,
) -> dict[str, Any]:
    """What the walk believes at each step, from noise to the row that it ends with; features that may not change are
    the person's own all the way."""
    fitted = explainer.fitted
    seed = whole("seed", seed, 0, LAST_SEED)
    start = 1 - optional("closeness", closeness, number, 0, 1) if closeness is not None else START
    limits = Limits.of(fitted.encoder, row, names("immutable", immutable), texts("rules", rules))
    goals = goals_for(fitted, limits.own, target, threshold)
    seen, last = (
        _guided(fitted, limits, goals, start, seed) if fitted.guide else _told(fitted, limits, goals, start, seed)
    )
    raw = np.concatenate([_on_grid(fitted, limits, x) for _, x in seen] + [limits.snap(last)])
    verdict = Judge(fitted.model)(raw, Goals(goals.kinds, goals.which.repeat(len(raw))))
    score, typical = rounded(goals.shown(verdict.score)).tolist(), typical_of(fitted, raw, goals, limits.own)
    values, x = records(fitted.encoder.write(raw, pd.DataFrame(index=range(len(raw))))), limits.x
    places = [_places(fitted, each, x) for each in [x_0 for _, x_0 in seen] + [fitted.encoder.embed(raw[-1:]).float()]]
    frames = [
        {"t": t, "score": score[i], "plausibility": typical[i], "values": values[i], "places": places[i]}
        for i, t in enumerate([t for t, _ in seen] + [0])
    ]
    labels = tuple(label for output in fitted.outputs for label in output.labels())
    return {
        "algorithm": words.text("studio_walk_guided" if fitted.guide else "studio_walk_told"),
        "target": cells_of([goals.goal(0).wanted(labels)])[0],
        "frames": frames[:-1],
        "returned": frames[-1],
        "met": bool(verdict.met[-1]),
    }


def _guided(fitted: Fitted, limits: Limits, goals: Goals, start: float, seed: int) -> tuple[Seen, Tensor]:
    seen: Seen = []
    method = TDCEPaper(steps=STEPS, watch_=lambda t, x_t, x_0: seen.append((t, x_0[:1].detach().clone())))
    ready = method.fit(fitted.task(limits.immutable))
    whole = even(torch.zeros(1, dtype=torch.long))  # rows come in blocks, as everywhere
    x = limits.x[whole]
    last = ready.walk(x, goals.take(whole), Noise(x, seed), start)
    return seen, last[:1].detach()


@torch.no_grad()
def _told(fitted: Fitted, limits: Limits, goals: Goals, start: float, seed: int) -> tuple[Seen, Tensor]:
    """`TabularDiffusion.sample` from the noised row, with what may not change blended in."""
    diffusion, space = fitted.diffusion, fitted.encoder.space
    whole = even(torch.zeros(1, dtype=torch.long))
    x, y = limits.x[whole], goals.towards(Judge(fitted.model).score(limits.own)).repeat(len(whole))
    noise, mutable = Noise(x, seed), ~space.mask(limits.immutable)
    times, seen = diffusion.schedule.walk(start, STEPS), Seen()
    x_t = diffusion.noised(x, times[0][0], noise) if times else x
    for t, s in times:
        x_0 = diffusion.denoised(x_t, t, y)
        seen.append((t, x_0[:1].clone()))
        mu, var, log_pi = diffusion.transition(x_t, x_0, t, s)
        num = mu + (var**0.5 if s else 0.0) * noise.normal(space.num)
        cat = relaxed(log_pi, noise.gumbel(space.cat), diffusion.temperature(s), space)
        x_t = torch.where(mutable, space.join(num, cat), diffusion.noised(x, s, noise))
    num, cat = space.split(x_t)
    last = torch.where(mutable, space.join(num, space.one_hot(cat)), x)[:1]
    return [*seen, (0, last)], last


def _on_grid(fitted: Fitted, limits: Limits, x_0: Tensor) -> Floats:
    """(1, features) the estimate as values; on its way it need keep no rule."""
    return np.where(limits.frozen, limits.own, fitted.encoder.unembed(x_0))


def _places(fitted: Fitted, x_0: Tensor, x: Tensor) -> dict[str, float]:
    """Of each feature, one number to draw."""
    encoder, space = fitted.encoder, fitted.encoder.space
    below = encoder.of_range(space.split(x_0)[0])[0]
    found, numbers = {}, 0
    for column in encoder.schema:
        columns = list(space.places[column.name])
        if isinstance(column, Numeric):
            found[str(column.name)] = round(float(below[numbers]), 4)
            numbers += 1
        else:
            found[str(column.name)] = round(1 - float((x_0 * x)[0, columns].sum()), 4)
    return found
