"""The autoencoder behind IM1 and IM2. Its bottleneck is narrower than the data; otherwise the ratios would explode."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import silu

from tdce._core import Progress, TrainingHistory, TrainingPlan, linear, train


class Autoencoder(nn.Module):
    """(n, width) -> (n, width) through `bottleneck` numbers."""

    def __init__(self, width: int, bottleneck: int, hidden: int = 64, seed: int = 0) -> None:
        super().__init__()
        generator = Generator().manual_seed(seed)
        sizes = [width, hidden, bottleneck, hidden, width]
        self.layers = nn.ModuleList(linear(a, b, generator) for a, b in pairwise(sizes))

    def forward(self, x: Tensor) -> Tensor:
        first, narrow, second, last = self.layers
        out: Tensor = last(silu(second(narrow(silu(first(x))))))
        return out

    def fit(self, x: Tensor, seed: int, plan: TrainingPlan) -> TrainingHistory:
        """Least squares on encoded rows; every tenth row is held out for early stopping."""
        held_out = torch.arange(len(x)) % 10 == 0
        rows, checked = (x[~held_out], x[held_out]) if len(x) >= 50 else (x, x)
        return train(
            self,
            lambda module, index, _: _error(module, rows[index]),
            lambda module: _error(module, checked),
            len(rows), plan, seed, Progress("silent"), "autoencoder",
        )  # fmt: skip


def _error(module: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = (module(x) - x).square().sum(dim=1).mean()
    return out
