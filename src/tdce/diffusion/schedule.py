"""The noise schedule: how much of a row remains at each time (cosine; Nichol & Dhariwal 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tdce._core import InputError


@dataclass(frozen=True)
class Schedule:
    """alpha_bar[t] for t = 0 (the clean row) to T (noise), as plain floats."""

    alpha_bar: tuple[float, ...]

    @classmethod
    def cosine(cls, times: int = 1000, offset: float = 0.008) -> Schedule:
        """The cosine schedule with T = `times` steps."""

        def level(t: int) -> float:
            return math.cos((t / times + offset) / (1 + offset) * math.pi / 2) ** 2

        alpha_bar = [1.0]
        for t in range(1, times + 1):
            beta = min(1 - level(t) / level(t - 1), 0.999)
            alpha_bar.append(alpha_bar[-1] * (1 - beta))
        return cls(tuple(alpha_bar))

    @property
    def times(self) -> int:
        """T, the number of steps."""
        return len(self.alpha_bar) - 1

    def alpha(self, t: int, s: int | None = None) -> float:
        """How much of x_s remains in x_t for s < t (by default s = t - 1): alpha_bar_t / alpha_bar_s."""
        return self.alpha_bar[t] / self.alpha_bar[t - 1 if s is None else s]

    def walk(self, start: float = 1.0, steps: int | None = None) -> list[tuple[int, int]]:
        """The reverse walk as pairs (t, s), from t = start * T down to s = 0, in `steps` strides (None: all)."""
        if not 0 <= start <= 1:
            raise InputError(f"start is {start}; it must be between 0 (the row itself) and 1 (pure noise)")
        if steps is not None and steps < 1:
            raise InputError(f"steps is {steps}; it must be at least 1, or None for all {self.times}")
        first = round(start * self.times)
        count = first if steps is None else min(steps, first)
        times = np.unique(np.rint(np.linspace(0, first, count + 1)).astype(int)).tolist()[::-1]
        return list(pairwise(times))
