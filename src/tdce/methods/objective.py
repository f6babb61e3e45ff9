"""The objective of a counterfactual: close to the row in every feature, and plausible by the diffusion model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from tdce._core import Draws, Floats, Name, Noise, pad_rows, round_scores, unique_rows
from tdce.diffusion import NOISE_LEVELS, TabularDiffusion
from tdce.methods.padding import first_copies, without_copies
from tdce.methods.protocol import Query, Task
from tdce.models import safety_margin
from tdce.schema import ConstraintSet, Encoder, Space

FIXED_COST = 0.3  # part of a change's cost for making it at all; the rest depends on its size
FAR = 2.0  # standard deviations of a number, beyond which a change costs more
FAR_COST = 0.25  # for each further standard deviation
ATYPICAL = 0.9  # share of the class; energy beyond this quantile counts more
ATYPICAL_WEIGHT = 3.0  # by this factor
SAFETY_WEIGHT = 10.0  # penalty per unit of missing safety
NOISE_LENGTH = 2.0  # encoded rows nearer than this get similar noise, and so similar answers
SOFT_LAW_PENALTY = 0.5  # the cost of breaking a law that nearly all rows of the table keep
DENOISE_BATCH_ROWS = 1024  # candidates that are denoised at a time


class Priced(Protocol):
    """Rows, and the cost of changing each feature; a query has both."""

    @property
    def x(self) -> Tensor: ...
    @property
    def costs(self) -> Tensor: ...


class PricedRows(NamedTuple):
    x: Tensor
    costs: Tensor


class Objective:
    """J = closeness * cost + (1 - closeness) * energy + a penalty for too little safety, to be minimised over the
    candidates that the model accepts, at any position of the trade-off.

    The cost is d(x, x_cf) of eqn:cf_obj: the sum of `change_costs` over all features but followers, weighted by the
    user's costs, plus a penalty for every soft law broken. The energy is the denoising error of all features, given the
    target class; the part above both the row's own energy and that of nearly all rows of the class counts several
    times. The penalty is proportional to the missing safety. All candidates of a row get the same noise; only
    candidates of the same row are compared.
    """

    def __init__(self, task: Task, query: Priced, noise: Noise, y: Tensor) -> None:
        self.space, self.diffusion, self.encoder = task.space, task.diffusion, task.encoder
        self.x, self.position = query.x, feature_positions(task.encoder, query.x)
        self.follows = task.follows
        self.y = y  # (n,) the target class of each row
        self.quantiles = task.energy_quantiles
        self.first_copy = first_copies(query.x)
        self.weights = query.costs.expand(len(task.space.places)) * ~task.follows
        self._draws = Noise(query.x, noise.seed, noise.part, NOISE_LENGTH)
        self.soft_laws = ConstraintSet.soft(task.encoder.schema.laws, task.encoder.schema.features)

    def cost(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) the cost of candidates (m, width) of the rows at `at`."""
        own, place = without_copies(x_cf, at, self.first_copy)
        full = own[pad_rows(torch.arange(len(own)))]  # so that the sum does not depend on the number of candidates
        moved = self.space.moved(self.x[at[full]], x_cf[full])
        each = change_costs(moved, self.position[at[full]], feature_positions(self.encoder, x_cf[full]))
        cost = (each * self.weights).sum(dim=1)[place]
        return cost + SOFT_LAW_PENALTY * self._soft_laws_broken(x_cf, at) if self.soft_laws.constraints else cost

    def energy(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) the energy of candidates (m, width) of the rows at `at`."""
        return self.weigh(self.errors(x_cf, at), at)

    def errors(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) the denoising errors of candidates, computed once for each distinct candidate of a row."""
        first, place = unique_rows(torch.cat([self.first_copy[at, None].to(x_cf.dtype), x_cf], dim=1).numpy())
        distinct, energy = torch.from_numpy(first), [torch.zeros(0)]
        for part in torch.split(torch.arange(len(distinct)), DENOISE_BATCH_ROWS):
            some = distinct[pad_rows(part)]
            rows = at[some]
            noise = [(normal[rows], gumbel[rows]) for normal, gumbel in self.noise]
            energy.append(denoising_energy(self.diffusion, x_cf[some], self.y[rows], noise, len(part))[: len(part)])
        return torch.cat(energy)[place]

    def weigh(self, error: Tensor, at: Tensor) -> Tensor:
        """(m, ...) the energy of candidates with this denoising error (m, ...) for the rows at `at` (m,)."""
        beyond = error - self.tolerated[at].view(-1, *(1,) * (error.dim() - 1))
        return error + ATYPICAL_WEIGHT * beyond.clamp_min(0.0)

    @staticmethod
    def total(cost: Tensor, energy: Tensor | float, closeness: float, shortfall: Tensor | float = 0.0) -> Tensor:
        """The objective J."""
        return closeness * cost + (1 - closeness) * energy + SAFETY_WEIGHT * shortfall

    def _soft_laws_broken(self, x_cf: Tensor, at: Tensor) -> Tensor:
        """(m,) the number of soft laws that each candidate breaks."""
        own = self._own[at.numpy()]
        return torch.from_numpy(self.soft_laws.broken(self.encoder.unembed(x_cf), own).sum(axis=1)).float()

    @cached_property
    def tolerated(self) -> Tensor:
        """(n,) the error above which the excess counts several times: that of nearly all rows of the class or, if
        larger, the row's own, since nobody has to become more typical than they are."""
        typical = typical_energy(self.quantiles, self.y)
        return (
            torch.maximum(typical, self.errors(self.x, torch.arange(len(self.x)))) if len(self.quantiles) else typical
        )

    @cached_property
    def noise(self) -> list[tuple[Tensor, Tensor]]:
        """For each noise level, (n, num) and (n, cat) noise, the same for all candidates of a row."""
        return draw_noise(self.space, self._draws)

    @cached_property
    def _own(self) -> Floats:
        """(n, features) the raw rows."""
        return self.encoder.unembed(self.x)


def typical_energy(quantiles: Tensor, y: Tensor) -> Tensor:
    """(n,) the `ATYPICAL` quantile of the energies of each class y (n,); infinite if none were measured."""
    if quantiles.numel() == 0:
        return torch.full((len(y),), torch.inf)
    return quantiles[y, round(ATYPICAL * (quantiles.shape[1] - 1))].float()


def feature_costs(encoder: Encoder, costs: Mapping[Name, float]) -> Tensor:
    """(features,) the user's cost of changing each feature, by default 1."""
    return torch.tensor([costs.get(name, 1.0) for name in encoder.schema.names], dtype=torch.float)


def measure_distance(task: Task, x: Tensor, raw: Floats, costs: Mapping[Name, float]) -> Floats:
    """(n, options) the cost of answers raw (n, options, features) to rows x (n, width), rounded to six decimals: the
    distance in reports, on pages and in the trade-off."""
    n, options, _ = raw.shape
    rows = PricedRows(x, feature_costs(task.encoder, costs))
    objective = Objective(task, rows, Noise(x, 0), torch.zeros(n, dtype=torch.long))
    each = [objective.cost(task.encoder.embed(raw[:, i]).float(), torch.arange(n)) for i in range(options)]
    return round_scores(torch.stack(each, dim=1).double()).numpy() if each and n else np.zeros((n, options))


def added_energy(task: Task, x: Tensor, x_cf: Tensor, y: Tensor) -> Tensor:
    """(n, k) the energy of answers x_cf (n, k, width) minus that of rows x (n, width), for target classes y (n,)."""
    rows = torch.arange(len(x))
    objective = Objective(task, PricedRows(x, torch.ones(())), Noise(x, 0), y)
    own = objective.energy(x, rows)
    return torch.stack([objective.energy(each, rows) - own for each in x_cf.unbind(dim=1)], dim=1)


def safety_shortfall(task: Task, query: Query, x_cf: Tensor, margin: Tensor, at: Tensor) -> Tensor:
    """(m,) how far the safety of candidates (m, width) of the rows at `at` is below the wanted one, at least 0."""
    if task.second_opinion is None or query.safety == 0:
        return torch.zeros(len(at))
    outputs = task.oracle.model.outputs
    safety = task.second_opinion.safety(margin, x_cf, query.goals.take(at), outputs)
    return (query.safety - safety).clamp_min(0.0).float()


def needed_margin(task: Task, query: Query) -> Tensor:
    """(n,) the margin by which each row's candidates should be accepted for the wanted safety."""
    if task.second_opinion is None or query.safety == 0:
        return torch.zeros(len(query.x))
    units = [task.second_opinion.unit(goal, task.oracle.model.outputs) for goal in query.goals.kinds]
    needed = (safety_margin(query.safety) / torch.tensor(units))[query.goals.which]
    return torch.minimum(needed, query.goals.width.float() / 2)


def feature_positions(encoder: Encoder, x: Tensor) -> Tensor:
    """(n, width) -> (n, features, 2): the position of each value among all values of its feature.

    The first entry is, for a number, the mean of its quantile and of its place in the table's range, so that neither a
    long tail nor a dense region distorts it (encoded numbers are normal scores); for a category, its rank. Values that
    differ by 1 or more are maximally far apart. The second is a number in standard deviations of the table.
    """
    space = encoder.space
    num, cat = space.split(x)
    position = (torch.special.ndtr(num) + encoder.range_share(num)) / 2
    places = space.join(position, cat * torch.tensor(space.ranks, dtype=x.dtype))
    deviations = space.join(encoder.deviations(num), torch.zeros_like(cat))
    return torch.stack([space.sum_by_feature(places), space.sum_by_feature(deviations)], dim=-1)


def change_costs(moved: Tensor, position: Tensor, position_cf: Tensor) -> Tensor:
    """(..., features) the cost of each change: a fixed part, a part for its size among the table's values, and a part
    for going further than nearly all of them are apart."""
    near, far = (position - position_cf).abs().unbind(dim=-1)
    beyond = torch.where(near < 1, (far - FAR).clamp_min(0.0), 0.0)  # to or from a mark, there are no numbers between
    return torch.where(moved, FIXED_COST + (1 - FIXED_COST) * near.clamp(max=1.0) + FAR_COST * beyond, 0.0)


def denoising_energy(
    diffusion: TabularDiffusion,
    x: Tensor,  # (n, width)
    y: Tensor,  # (n,) their classes
    noise: list[tuple[Tensor, Tensor]],  # for each level, (n, num) and (n, cat)
    rows: int,  # number of rows before the padding (copies of the first row)
) -> Tensor:
    """(n,) the denoising error, summed over the features, mean over the noise levels."""
    total, times = torch.zeros(len(x)), [max(1, round(level * diffusion.schedule.times)) for level in NOISE_LEVELS]
    for errors in diffusion.errors_at(x, times, noise, y, rows):
        total += errors.sum(dim=1)
    return total / len(NOISE_LEVELS)


def draw_noise(space: Space, draws: Draws) -> list[tuple[Tensor, Tensor]]:
    """For each noise level, (n, num) normal and (n, cat) Gumbel noise."""
    return [(draws.normal(space.num), draws.gumbel(space.cat)) for _ in NOISE_LEVELS]
