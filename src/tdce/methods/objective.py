"""What a good answer is: near to the person in every feature, and likely by the diffusion model."""

from __future__ import annotations

import torch
from torch import Tensor

from tdce.diffusion.model import Errors
from tdce.methods.interface import Query, Task
from tdce.noise import Noise
from tdce.space import Space

NOISE = (0.1, 0.4)  # levels, as shares of T, from which a candidate must be denoised
COUNT = 0.5  # share of a cost that is due to changing a feature at all
ROWS = 16_384  # candidates that are denoised at a time


def costs(
    space: Space,
    x: Tensor,  # (n, width)
    x_cf: Tensor,  # (n, width)
) -> Tensor:
    """(n, features) of each change: half for making it at all, half for how far it goes. A number goes as far as the
    share of people that it passes, which no long tail distorts; another category is a whole step."""
    (num, cat), (num_cf, cat_cf) = space.split(x), space.split(x_cf)
    passed = torch.special.ndtr(num) - torch.special.ndtr(num_cf)  # encoded numbers are normal scores
    far = space.gathered(space.join(passed, cat - cat_cf).abs()).clamp(max=1.0)
    return torch.where(space.moved(x, x_cf), COUNT + (1 - COUNT) * far, 0.0)


class Objective:
    """J = closeness * cost + (1 - closeness) * energy, to be made small.

    The cost is the sum of `costs`. The energy is the sum of the denoising errors of all features at a little noise, the
    same noise for all candidates of one person. Only candidates of the same person are compared.
    """

    def __init__(self, task: Task, query: Query, noise: Noise, closeness: float, y: Tensor) -> None:
        self.y = y  # (n,) the class that each row is to get
        self.space, self.diffusion, self.x, self.closeness = task.space, task.diffusion, query.x, closeness
        self.draws = [(noise.normal(self.space.num), noise.gumbel(self.space.cat)) for _ in NOISE]

    def cost(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) of candidates (m, width) of the rows at `at`."""
        return costs(self.space, self.x[at], x_cf).sum(dim=1)

    def errors(self, x_cf: Tensor, at: Tensor) -> Errors:
        parts = [self._errors(*some) for some in zip(torch.split(x_cf, ROWS), torch.split(at, ROWS), strict=True)]
        return Errors(*map(torch.cat, zip(*parts, strict=True)))

    def _errors(self, x_cf: Tensor, at: Tensor) -> Errors:
        found = []
        for level, (normal, gumbel) in zip(NOISE, self.draws, strict=True):
            t = max(1, round(level * self.diffusion.schedule.times))
            found.append(self.diffusion.errors(x_cf, t, normal[at], gumbel[at], self.y[at]))
        return Errors(torch.stack([errors.each for errors in found]).mean(dim=0), found[-1].x_0)

    def energy(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,)"""
        return self.errors(x_cf, at).each.sum(dim=1)

    def total(self, cost: Tensor, energy: Tensor) -> Tensor:
        return self.closeness * cost + (1 - self.closeness) * energy
