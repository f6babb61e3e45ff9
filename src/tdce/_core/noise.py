"""Noise as a seeded function of the row: the same row gets the same noise in any batch.

The stream is built on the raw bits of NumPy's Philox, which stay the same between versions, and on the normal
quantile function. No global generator is used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from scipy.special import ndtri
from torch import Generator, Tensor

from tdce._core.deterministic import exact_product
from tdce._core.values import Floats

FREQUENCIES = 128  # of the random Fourier features
WORDS_PER_STEP = 4  # of 64 bits, of Philox


class Draws(Protocol):
    """Random numbers for some rows, drawn one tensor after another."""

    def normal(self, width: int) -> Tensor:
        """(n, width) the next standard normal draw."""

    def gumbel(self, width: int) -> Tensor:
        """(n, width) the next standard Gumbel draw."""


class GeneratorDraws:
    """Draws from a generator, for rows that are not part of a query."""

    def __init__(self, rows: int, generator: Generator) -> None:
        self.rows, self.generator = rows, generator

    def normal(self, width: int) -> Tensor:
        return torch.randn(self.rows, width, generator=self.generator)

    def gumbel(self, width: int) -> Tensor:
        exponential = torch.empty(self.rows, width).exponential_(generator=self.generator)
        return -torch.log(exponential.clamp_min(1e-20))


class Noise:
    """Standard normal draws, each a smooth random function of the row (random Fourier features).

    At every row the draws are exactly N(0, 1) over seeds, and successive draws are independent. Rows that are close on
    the scale of `length` share their noise; a tiny length makes the noise of different rows independent. Each `part` of
    a seed has its own noise.
    """

    def __init__(self, x: Tensor, seed: int, part: int = 0, length: float = 1e-3) -> None:
        self.x, self.seed, self.part, self.length = x, seed, part, length
        self._position = 0  # in the random stream
        omega = self._normals(x.shape[1], FREQUENCIES) / length
        phase = exact_product(x.double(), omega)  # double: at a tiny length the phases are large
        self._features = torch.cat([phase.cos(), phase.sin()], dim=1).float() / math.sqrt(FREQUENCIES)

    def normal(self, width: int) -> Tensor:
        """(n, width) the next draw."""
        return exact_product(self._features, self._normals(2 * FREQUENCIES, width))

    def uniform(self, width: int) -> Tensor:
        """(n, width) in (0, 1), through the normal distribution function."""
        uniform: Tensor = torch.special.ndtr(self.normal(width).double())
        return uniform.clamp(1e-12, 1 - 1e-12)

    def gumbel(self, width: int) -> Tensor:
        """(n, width) standard Gumbel: -log(-log(uniform))."""
        return (-torch.log(-torch.log(self.uniform(width)))).float()

    def _normals(self, rows: int, columns: int) -> Tensor:
        """(rows, columns) the next numbers of the stream."""
        first, self._position = self._position, self._position + rows * columns
        return _normals((self.seed, self.part), first, rows * columns).view(rows, columns)


@lru_cache(maxsize=256)  # every block of rows reads the same stream
def _normals(key: tuple[int, int], first: int, count: int) -> Tensor:
    """(count,) standard normal numbers of a stream, starting at number `first`."""
    return torch.from_numpy(ndtri(uniforms(key, first, count)))


def uniforms(key: tuple[int, int], first: int, count: int) -> Floats:
    """(count,) uniform numbers in (0, 1) of a stream, starting at number `first`."""
    bits = np.random.Philox(key=np.array(key, dtype=np.uint64)).advance(first // WORDS_PER_STEP)
    words = bits.random_raw(first % WORDS_PER_STEP + count)[first % WORDS_PER_STEP :]
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
