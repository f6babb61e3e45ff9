"""The similarity of synthetic rows to the table: column by column, and in the correlations between columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import ks_2samp
from torch import Tensor

from tdce.metrics import jensen_shannon
from tdce.schema import Space


@dataclass(frozen=True)
class Fidelity:
    """Distances of synthetic rows from the table: 0 is perfect, and those of unseen real rows show what is good."""

    ks: float  # numbers: Kolmogorov-Smirnov distance, mean over columns
    js: float  # categories: Jensen-Shannon divergence (base 2), mean over blocks
    correlation_gap: float  # the largest difference between two correlation coefficients


def fidelity(space: Space, sample: Tensor, reference: Tensor) -> Fidelity:
    """Compare encoded rows (n, width) with encoded reference rows (m, width)."""
    num, cat = space.split(sample.double())
    num_ref, cat_ref = space.split(reference.double())
    ks = [ks_2samp(num[:, i].numpy(), num_ref[:, i].numpy()).statistic for i in range(space.num)]
    js = [
        jensen_shannon(p.mean(dim=0).numpy(), q.mean(dim=0).numpy())
        for p, q in zip(space.blocks(cat), space.blocks(cat_ref), strict=True)
    ]
    return Fidelity(_mean(ks), _mean(js), _correlation_gap(sample, reference))


def _correlation_gap(sample: Tensor, reference: Tensor) -> float:
    """The largest gap over pairs of columns that vary in both tables; rare one-hot columns (under 2 %) are left out."""
    mean = reference.mean(dim=0)
    usual = (reference.std(dim=0) > 0) & (sample.std(dim=0) > 0)
    binary = ((reference == 0) | (reference == 1)).all(dim=0)
    keep = usual & (~binary | ((mean > 0.02) & (mean < 0.98)))
    if keep.sum() < 2:
        return 0.0
    gap = torch.corrcoef(sample[:, keep].double().T) - torch.corrcoef(reference[:, keep].double().T)
    return float(gap.abs().max())


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else 0.0
