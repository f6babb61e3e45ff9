"""How plausible a row is: the share of real people of a class whom the diffusion model finds less typical.

A row is typical of a class if a denoiser that is told the class restores it well from noise. Its energy is the sum of
the denoising errors of all features; what an energy means is read from the energies of held-out people of that class,
of whom only quantiles are kept.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, Noise, Progress, pad_rows, round_scores
from tdce.diffusion.model import TabularDiffusion
from tdce.diffusion.synthetic import draw_synthetic
from tdce.schema import Encoder

LEVELS = (0.3, 0.5, 0.7)  # of the noise, as shares of T
DRAWS = 2  # of noise at each level
KNOTS = 129  # quantiles that are kept of each class
FEWEST = 20  # held-out people of a class; if there are fewer, synthetic ones are the reference
SYNTHETIC = 256
SEED = 7_211  # of the noise, which is a function of the row alone
ROWS = 256  # that are denoised at a time, each six times
BESIDE = 1e-3  # how far beyond the last knot nobody is left


def rate_plausibility(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    typical: Tensor,  # (classes, KNOTS)
    raw: Floats,  # (n, features)
    y: Tensor,  # (n,) the class that each row is compared with
) -> Floats:
    """(n,) from 0 to 1, six decimals: 1 minus the distribution function of the energies of real people."""
    energy, found = energies(encoder, diffusion, raw, y).numpy(), np.empty(len(raw))
    for k in sorted(set(y.tolist())):  # a loop over classes
        of_class = (y == k).numpy()
        found[of_class] = 1 - _distribution(typical[k].numpy(), energy[of_class])
    return round_scores(torch.from_numpy(found)).numpy()


@torch.no_grad()
def energies(encoder: Encoder, diffusion: TabularDiffusion, raw: Floats, y: Tensor) -> Tensor:
    """(n,) the denoising errors of all features, mean over levels and draws; the same in any batch, and computed in
    float64, so that six decimals are the same on every machine."""
    found = [torch.zeros(0, dtype=torch.double)]
    for at in torch.split(torch.arange(len(raw)), ROWS):
        some = pad_rows(at)
        found.append(_energies(diffusion.exact, encoder.embed(raw[some.numpy()]).float(), y[some], len(at))[: len(at)])
    return torch.cat(found)


def _energies(double: TabularDiffusion, x: Tensor, y: Tensor, rows: int) -> Tensor:
    """(n,) of which the first `rows` are different."""
    stream, space, total = Noise(x, SEED), double.space, torch.zeros(len(x), dtype=torch.double)
    times = [max(1, round(level * double.schedule.times)) for level in LEVELS for _ in range(DRAWS)]
    noise = [(stream.normal(space.num).double(), stream.gumbel(space.cat).double()) for _ in times]
    for wrong in double.errors_at(x.double(), times, noise, y, rows):
        total += wrong.sum(dim=1)
    return total / len(times)


def reference(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    raw: Floats,  # (n, features) people whom the diffusion model was not trained on
    y: Tensor,  # (n,) their classes
    classes: int,
    seed: int,
    progress: Progress,
) -> Tensor:
    """(classes, KNOTS) float64: quantiles of the energies of each class, from the most typical to the least."""
    knots = []
    for k in range(classes):
        people = raw[(y == k).numpy()]
        if len(people) < FEWEST:
            people = draw_synthetic(encoder, diffusion, torch.full((SYNTHETIC,), k), seed, progress)
        energy = energies(encoder, diffusion, people, torch.full((len(people),), k))
        knots.append(np.quantile(energy.numpy(), np.linspace(0, 1, KNOTS)))
    return torch.from_numpy(np.maximum.accumulate(np.stack(knots), axis=1))


def _distribution(knots: Floats, energy: Floats) -> Floats:
    """The share of people with less energy, in straight lines between the knots; of people with as much, a half."""
    at, which, times = np.unique(knots, return_inverse=True, return_counts=True)
    level = np.bincount(which, np.linspace(0, 1, len(knots))) / times
    at = np.concatenate([at[:1] - BESIDE, at, at[-1:] + BESIDE])
    return np.asarray(np.interp(energy, at, np.concatenate([[0.0], level, [1.0]])))
