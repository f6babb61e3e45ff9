"""The plausibility of a row: the share of real rows of a class that the diffusion model finds less typical.

A row is typical of a class if the denoiser, conditioned on the class, restores it well from noise. The energy of a row
is the sum of the denoising errors of its features. It is compared with the energies of held-out rows of the class, of
which only quantiles are kept.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, InputError, Noise, Progress, listing, pad_rows, round_scores
from tdce.diffusion.model import TabularDiffusion
from tdce.diffusion.synthetic import draw_synthetic
from tdce.schema import Encoder, pool_sorted

NOISE_LEVELS = (0.3, 0.5, 0.7)  # shares of T at which a row is noised and denoised, here and in the search
DRAWS_PER_LEVEL = 2  # of noise
ENERGY_QUANTILES = 129  # kept per class
MIN_REFERENCE_ROWS = 20  # held-out rows of a class; with fewer, synthetic rows are the reference
SYNTHETIC_REFERENCE_ROWS = 256
NOISE_SEED = 7_211  # of the noise, which is a function of the row alone
DENOISING_BATCH_ROWS = 256  # each is denoised six times
TAIL_WIDTH = 1e-3  # energy beyond the outer quantiles at which the distribution function reaches 0 and 1


def rate_plausibility(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    energy_quantiles: Tensor,  # (classes, ENERGY_QUANTILES)
    raw: Floats,  # (n, features)
    y: Tensor,  # (n,) the class that each row is compared with
) -> Floats:
    """(n,) the plausibility from 0 to 1, to six decimals: 1 minus the distribution function of the energies of real
    rows; 0 for a row that contradicts a law of the table."""
    energy, plausibility = energies(encoder, diffusion, raw, y).numpy(), np.empty(len(raw))
    for k in sorted(set(y.tolist())):  # a loop over classes
        of_class = (y == k).numpy()
        plausibility[of_class] = 1 - _distribution(energy_quantiles[k].numpy(), energy[of_class])
    plausibility[encoder.laws.contradicted(raw).any(axis=1)] = 0.0
    return round_scores(torch.from_numpy(plausibility)).numpy()


@torch.no_grad()
def energies(encoder: Encoder, diffusion: TabularDiffusion, raw: Floats, y: Tensor) -> Tensor:
    """(n,) the energies: the sum of the denoising errors of all features, mean over levels and draws. They are the same
    in any batch, and computed in float64 so that six decimals are the same on every machine."""
    batches = [torch.zeros(0, dtype=torch.double)]
    for at in torch.split(torch.arange(len(raw)), DENOISING_BATCH_ROWS):
        some = pad_rows(at)
        x = encoder.embed(raw[some.numpy()]).float()
        batches.append(_energies(diffusion.exact, x, y[some], len(at))[: len(at)])
    return torch.cat(batches)


def measure_energy_quantiles(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    raw: Floats,  # (n, features) rows that the diffusion model was not trained on
    y: Tensor,  # (n,) their classes
    classes: int,
    seed: int,
    progress: Progress,
    pooled: bool = False,
) -> Tensor:
    """(classes, ENERGY_QUANTILES) float64: quantiles of the energies of each class, from the most typical row to the
    least typical; `pooled`: from means of five rows each, so that none is the value of one person."""
    quantiles = []
    for k in range(classes):
        reference = raw[(y == k).numpy()]
        if len(reference) < MIN_REFERENCE_ROWS:
            reference = draw_synthetic(encoder, diffusion, torch.full((SYNTHETIC_REFERENCE_ROWS,), k), seed, progress)
        if len(reference) == 0:
            laws = listing(str(law) for law in encoder.schema.laws if law.on and law.hard)
            raise InputError(f"no synthetic row keeps all laws of the schema ({laws}); switch off those that do not "
                             "hold in the table: schema.without_laws(number)")  # fmt: skip
        energy = energies(encoder, diffusion, reference, torch.full((len(reference),), k))
        quantiles.append(_quantiles(energy.numpy(), pooled))
    return torch.from_numpy(np.maximum.accumulate(np.stack(quantiles), axis=1))


def _quantiles(energy: Floats, pooled: bool) -> Floats:
    levels = np.linspace(0, 1, ENERGY_QUANTILES)
    if not pooled:
        return np.quantile(energy, levels)
    means, at = pool_sorted(energy)
    inside = np.interp(levels, at, means)
    if len(means) > 1:  # extrapolate the outer slopes to both ends
        slopes = np.diff(means)[[0, -1]] / np.diff(at)[[0, -1]]
        inside += np.minimum(levels - at[0], 0) * slopes[0] + np.maximum(levels - at[-1], 0) * slopes[1]
    return inside


def _energies(double: TabularDiffusion, x: Tensor, y: Tensor, rows: int) -> Tensor:
    """(n,) the energies; rows after the first `rows` are padding (copies of the first row)."""
    stream, space, total = Noise(x, NOISE_SEED), double.space, torch.zeros(len(x), dtype=torch.double)
    times = [max(1, round(level * double.schedule.times)) for level in NOISE_LEVELS for _ in range(DRAWS_PER_LEVEL)]
    noise = [(stream.normal(space.num).double(), stream.gumbel(space.cat).double()) for _ in times]
    for errors in double.errors_at(x.double(), times, noise, y, rows):
        total += errors.sum(dim=1)
    return total / len(times)


def _distribution(quantiles: Floats, energy: Floats) -> Floats:
    """The distribution function of energies, linear between their quantiles; where quantiles coincide, their mean
    level."""
    at, which, times = np.unique(quantiles, return_inverse=True, return_counts=True)
    level = np.bincount(which, np.linspace(0, 1, len(quantiles))) / times
    at = np.concatenate([at[:1] - TAIL_WIDTH, at, at[-1:] + TAIL_WIDTH])
    return np.asarray(np.interp(energy, at, np.concatenate([[0.0], level, [1.0]])))
