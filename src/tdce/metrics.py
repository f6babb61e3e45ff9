"""One pure function per metric: the paper's seven, then those that it leaves out.  PAPER[10]

`x` are queries and `x_cf` their counterfactuals, row by row. L2, diversity and instability read standardised numbers
(n, num); JS and the autoencoders' metrics read encoded rows (n, width).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tdce.cells import Floats, same
from tdce.space import Space

Autoencoder = Callable[[Tensor], Tensor]
EPSILON = 1e-6


def l2(x: Tensor, x_cf: Tensor) -> float:
    """How far the numbers moved: mean |x - x_cf|^2. Lower is better."""
    return _mean((x - x_cf).square().sum(dim=1))


def diversity(x_cf: Tensor) -> float:
    """How varied the counterfactuals are: sum over i < j of |x_i - x_j|, divided by N (N - 1). Higher is better."""
    n = len(x_cf)
    return torch.pdist(x_cf.double()).sum().item() / (n * (n - 1)) if n > 1 and x_cf.shape[1] else 0.0


def instability(x: Tensor, x_near: Tensor, x_cf: Tensor, x_near_cf: Tensor) -> float:
    """How much the answers for similar rows differ: mean |x_cf - x_near_cf| / (1 + |x - x_near|). Lower is better.

    `x_near` is the nearest row that the model puts in the same class as x.
    """
    return _mean((x_cf - x_near_cf).norm(dim=1) / (1 + (x - x_near).norm(dim=1)))


def js(space: Space, x_cf: Tensor, target_rows: Tensor) -> float:
    """How far the categories are from those of the target class: Jensen-Shannon divergence in bits, the mean over
    categorical features. Lower is better."""
    blocks = zip(space.blocks(space.split(x_cf)[1]), space.blocks(space.split(target_rows)[1]), strict=True)
    found = [jensen_shannon(p.double().mean(dim=0).numpy(), q.double().mean(dim=0).numpy()) for p, q in blocks]
    return float(np.mean(found)) if found else 0.0


def jensen_shannon(p: Floats, q: Floats) -> float:
    """JS(p || q) in bits: the mean KL of p and q from their mixture; 0 for equal, 1 for disjoint."""
    mixture = (p + q) / 2

    def kl(a: Floats) -> float:
        at = a > 0
        return float((a[at] * np.log2(a[at] / mixture[at])).sum())

    return (kl(p) + kl(q)) / 2


def im1(x_cf: Tensor, of_target: Autoencoder, of_origin: Autoencoder) -> Tensor:
    """(n,) |x - AE_t(x)|^2 / |x - AE_o(x)|^2: whether the target class's autoencoder explains the row better than the
    original class's (Van Looveren & Klaise 2021). Below 1 is better; the ratio has a heavy tail."""
    return _squared(x_cf - of_target(x_cf)) / (_squared(x_cf - of_origin(x_cf)) + EPSILON)


def im2(x_cf: Tensor, of_target: Autoencoder, of_all: Autoencoder) -> Tensor:
    """(n,) |AE_t(x) - AE(x)|^2 / |x|_1: whether the target class and all the data agree on it. Lower is better."""
    return _squared(of_target(x_cf) - of_all(x_cf)) / (x_cf.abs().sum(dim=1) + EPSILON)


def validity(valid: NDArray[np.bool_]) -> float:
    """The share of counterfactuals that the model puts in the target class. Higher is better."""
    return float(valid.mean()) if len(valid) else 0.0


def sparsity(raw: Floats, raw_cf: Floats) -> float:
    """How many features changed, on average. Lower is better."""
    return float((~same(raw, raw_cf)).sum(axis=1).mean()) if len(raw) else 0.0


def overlap(changed: NDArray[np.bool_], others: NDArray[np.bool_]) -> Floats:
    """(...) the Jaccard index of two sets of features (..., features): shared over all; two empty sets are alike."""
    union = (changed | others).sum(axis=-1)
    return np.where(union > 0, (changed & others).sum(axis=-1) / np.maximum(union, 1), 1.0)


def option_spread(raw: Floats, raw_cf: Floats) -> float:
    """How different a row's options are: 1 minus the overlap of the features that two of them change, the mean over
    pairs and rows; `raw_cf` is (rows, options, features). Higher is better."""
    changed, options = ~same(raw_cf, raw[:, None]), raw_cf.shape[1]
    alike = [overlap(changed[:, apart:], changed[:, :-apart]).sum() for apart in range(1, options)]
    return 1 - float(sum(alike)) / (len(raw) * options * (options - 1) / 2) if len(raw) and alike else 0.0


def realism(x_cf: Tensor, target_rows: Tensor) -> float:
    """The mean distance from a counterfactual to the nearest real row of the target class. Lower is better."""
    return _mean(nearest_rows(x_cf, target_rows)[0])


def copies(raw_cf: Floats, raw_rows: Floats) -> float:
    """The share of counterfactuals that are identical to a training row. Lower is better, for privacy."""
    known = {row.tobytes() for row in np.nan_to_num(raw_rows, nan=-np.inf) + 0.0}
    return float(np.mean([row.tobytes() in known for row in np.nan_to_num(raw_cf, nan=-np.inf) + 0.0]))


def nearest_rows(points: Tensor, rows: Tensor, k: int = 1) -> tuple[Tensor, Tensor]:
    """(n, k) distances and positions of the k nearest rows, some points at a time."""
    k = min(k, len(rows))
    found = [torch.cdist(some, rows).topk(k, largest=False) for some in torch.split(points, 256)]
    return torch.cat([d for d, _ in found]), torch.cat([i for _, i in found])


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(dim=1)


def _mean(values: Tensor) -> float:
    return values.double().mean().item() if len(values) else 0.0
