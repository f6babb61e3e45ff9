"""What a good answer is: near to the person in every feature, and likely by the diffusion model."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tdce._core import Draws, Floats, Noise, pad_rows, unique_rows
from tdce.diffusion import TabularDiffusion
from tdce.methods.padding import first_copies, without_copies
from tdce.methods.protocol import Query, Task
from tdce.schema import ConstraintSet, Encoder, Space

NOISE = (0.3, 0.5, 0.7)  # levels, as shares of T, from which a candidate must be denoised
COUNT = 0.3  # of a change's cost, for making it at all; the rest is for how far it goes
SMOOTH = 2.0  # encoded rows that are nearer to each other get much the same noise, and so much the same answers
SOFT = 0.5  # the cost of breaking a law that nearly all rows of the table keep
ROWS = 1024  # candidates that are denoised at a time


def places(encoder: Encoder, x: Tensor) -> Tensor:
    """(n, width) -> (n, features): of a number the mean of the share of people below it and the share of the table's
    range below it, so that neither a long tail nor a crowd distorts it (encoded numbers are normal scores); of a
    category its rank. Two that differ by 1 or more are as far apart as can be."""
    space = encoder.space
    num, cat = space.split(x)
    place = (torch.special.ndtr(num) + encoder.of_range(num)) / 2
    return space.gathered(space.join(place, cat * torch.tensor(space.ranks, dtype=x.dtype)))


def costs(moved: Tensor, place: Tensor, place_cf: Tensor) -> Tensor:
    """(..., features) of each change: a part for making it at all, the rest for how far it goes."""
    return torch.where(moved, COUNT + (1 - COUNT) * (place - place_cf).abs().clamp(max=1.0), 0.0)


def energies(
    diffusion: TabularDiffusion,
    x: Tensor,  # (n, width)
    y: Tensor,  # (n,) the classes that they are taken for
    draws: list[tuple[Tensor, Tensor]],  # for each level the noise (n, num) and (n, cat)
    rows: int,  # those after so many are copies of the first
) -> Tensor:
    """(n,) the denoising errors of all features, the mean over the levels."""
    total, times = torch.zeros(len(x)), [max(1, round(level * diffusion.schedule.times)) for level in NOISE]
    for wrong in diffusion.errors_at(x, times, draws, y, rows):
        total += wrong.sum(dim=1)
    return total / len(NOISE)


def draws(space: Space, noise: Draws) -> list[tuple[Tensor, Tensor]]:
    return [(noise.normal(space.num), noise.gumbel(space.cat)) for _ in NOISE]


class Objective:
    """J = closeness * cost + (1 - closeness) * energy, to be made small.

    The cost is the sum of `costs`. The energy is the sum of the denoising errors of all features, given the class that
    is wanted, from the same noise for all candidates of one person. Only candidates of the same person are compared.
    """

    def __init__(self, task: Task, query: Query, noise: Noise, closeness: float, y: Tensor) -> None:
        self.space, self.diffusion, self.closeness = task.space, task.diffusion, closeness
        self.x, self.place = query.x, places(task.encoder, query.x)
        self.y = y  # (n,) the class that each row is to get
        self.twin = first_copies(query.x)
        self.weight = query.costs.expand(len(task.space.places))
        self.draws = draws(self.space, Noise(query.x, noise.seed, noise.part, SMOOTH))
        self.encoder, self.soft = (
            task.encoder,
            ConstraintSet.soft(task.encoder.schema.laws, task.encoder.schema.features),
        )

    def cost(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) of candidates (m, width) of the rows at `at`."""
        own, place = without_copies(x_cf, at, self.twin)
        full = own[pad_rows(torch.arange(len(own)))]  # so that few candidates are added up like many
        moved = self.space.moved(self.x[at[full]], x_cf[full])
        each = costs(moved, self.place[at[full]], places(self.encoder, x_cf[full]))
        cost = (each * self.weight).sum(dim=1)[place]
        return cost + SOFT * self._broken(x_cf, at) if self.soft.laws else cost

    def _broken(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) how many soft laws each breaks."""
        own = self._own[at.numpy()]
        return torch.from_numpy(self.soft.broken(self.encoder.unembed(x_cf), own).sum(axis=1)).float()

    @cached_property
    def _own(self) -> Floats:
        """(n, features)"""
        return self.encoder.unembed(self.x)

    def energy(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) computed once for each different candidate of a row: several ways may lead to the same."""
        first, place = unique_rows(torch.cat([self.twin[at, None].to(x_cf.dtype), x_cf], dim=1).numpy())
        own, found = torch.from_numpy(first), [torch.zeros(0)]
        for part in torch.split(torch.arange(len(own)), ROWS):
            some = own[pad_rows(part)]
            whose = at[some]
            noise = [(normal[whose], gumbel[whose]) for normal, gumbel in self.draws]
            found.append(energies(self.diffusion, x_cf[some], self.y[whose], noise, len(part))[: len(part)])
        return torch.cat(found)[place]

    def total(self, cost: Tensor, energy: Tensor) -> Tensor:
        return self.closeness * cost + (1 - self.closeness) * energy
