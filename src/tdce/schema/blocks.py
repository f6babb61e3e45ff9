"""Operations on all blocks of category weights at once: one call per block size instead of one per block.

Small blocks of one size are transposed to (size, blocks * rows), so that the processor works along the rows: a softmax
over four adjacent weights takes as long as one over sixteen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from tdce._core import PADDED_ROWS

SMALL = 15  # weights of a block that is transposed, at most


@dataclass(frozen=True)
class Blocks:
    """Blocks of these sizes, side by side in rows (n, weights)."""

    sizes: tuple[int, ...]

    def softmax(self, logits: Tensor) -> Tensor:
        return self._each(torch.softmax, logits)

    def log_softmax(self, logits: Tensor) -> Tensor:
        return self._each(torch.log_softmax, logits)

    def one_hot(self, weights: Tensor) -> Tensor:
        """1 at the (first) largest weight of each block, 0 elsewhere."""
        return self._each(_first_largest, weights)

    def _each(self, function: Callable[[Tensor, int], Tensor], cat: Tensor) -> Tensor:
        """(n, weights) -> (n, weights): apply a function of a matrix and the dimension along which its block lies."""
        if not self.sizes or not len(cat):
            return cat
        small, large, place = self._columns
        if len(large) == 0:
            return self._turned(function, cat)
        sizes = [size for size in self.sizes if size > SMALL]
        parts = [function(block, 1) for block in torch.split(cat.index_select(1, large), sizes, dim=1)]
        if len(small) == 0:
            return torch.cat(parts, dim=1)
        done = torch.cat([self._turned(function, cat.index_select(1, small)), *parts], dim=1)
        return done.index_select(1, place)

    def _turned(self, function: Callable[[Tensor, int], Tensor], cat: Tensor) -> Tensor:
        """Apply the function to small blocks only, transposed."""
        n, (order, place, groups) = len(cat), self._small
        full = n + -n % PADDED_ROWS  # other code may compute the last few numbers of a vector, with other rounding
        turned = cat.T.contiguous() if n == full else pad(cat.T, (0, full - n))
        parts = torch.split(turned.index_select(0, order), [size * count for size, count in groups])
        done = [function(part.view(size, -1), 0).view(-1, full) for part, (size, _) in zip(parts, groups, strict=True)]
        return torch.cat(done).index_select(0, place).T[:n].contiguous()

    @cached_property
    def _columns(self) -> tuple[Tensor, Tensor, Tensor]:
        """The columns of small blocks, those of large ones, and each column's position with the large ones last."""
        size = torch.tensor(self.sizes).repeat_interleave(torch.tensor(self.sizes))
        small, large = (which.nonzero().squeeze(1) for which in (size <= SMALL, size > SMALL))
        return small, large, torch.cat([small, large]).argsort()

    @cached_property
    def _small(self) -> tuple[Tensor, Tensor, list[tuple[int, int]]]:
        """For the weights of small blocks: their order by size, then place in the block; the position of each in that
        order; and the sizes with their numbers of blocks."""
        small = [size for size in self.sizes if size <= SMALL]
        key = torch.tensor([(SMALL + 1) * size + place for size in small for place in range(size)])
        order = key.argsort(stable=True)
        return order, order.argsort(), [(size, small.count(size)) for size in sorted(set(small))]


def _first_largest(block: Tensor, dim: int) -> Tensor:
    largest = block == block.amax(dim=dim, keepdim=True)
    return (largest & (largest.cumsum(dim=dim, dtype=torch.int32) == 1)).to(block.dtype)
