"""Deterministic matrix products: a row's result has the same bits in any batch. All matrix products are made here.

A matrix product may give a row different last bits at another position in the batch, or in a batch of another size,
because its edges are computed by different code. There are two remedies. `product`, for the networks, pads rows and
widths so that there are no odd edges; each process tests once per shape whether that suffices on this machine.
`exact_product` rounds both factors so that no sum has to be rounded: the order of summation then does not matter, on
any machine. It is slower, and used where the last bits matter (noise, neighbours) and where padding does not suffice.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

PADDED_WIDTH = 16  # both widths are padded to a multiple of this, so that every row starts on a new cache line
PADDED_ROWS = 64  # the number of rows is padded to a multiple of this
BLOCK_ROWS = 1024  # rows multiplied at a time, so that there are few shapes to test
TRIAL_ROWS = (64, 128, 320, 704)  # numbers of rows whose products are compared with those of a whole block
MANTISSA_BITS = 53  # of a float64
DISTANCE_UNIT = 2.0**-16  # squared distances that differ by less are equal
CACHE_LINE = 64  # bytes
NEIGHBOUR_ROWS = 128  # rows whose distances to all others are held in memory at a time


def pad_rows(at: Tensor) -> Tensor:
    """Row numbers padded to a multiple of 64 by repeating the first, since code for a few rows may add up columns in
    another order than code for many."""
    return torch.cat([at, at[:1].expand(-len(at) % PADDED_ROWS)])


def product(rows: Tensor, matrix: Tensor) -> Tensor:
    """(n, inner) @ (inner, outer) in the precision of the dtype."""
    (n, inner), outer = rows.shape, matrix.shape[1]
    if not (n and inner and outer):
        return rows.new_zeros(n, outer)
    transposed = matrix.T.is_contiguous()  # then it is quicker to pad the transpose
    left = _pad(rows, PADDED_ROWS)
    right = _pad(matrix.T, PADDED_WIDTH).T if transposed else _pad(matrix, PADDED_WIDTH)
    if not is_batch_independent(*right.shape, right.dtype, right.is_contiguous(), str(right.device)):
        return exact_product(rows, matrix, parts=2 if rows.dtype == torch.float64 else 1)
    if len(left) <= BLOCK_ROWS:
        out = left @ right
    else:
        out = left.new_empty(len(left), right.shape[1])
        for i in range(0, len(left), BLOCK_ROWS):
            torch.mm(left[i : i + BLOCK_ROWS], right, out=out[i : i + BLOCK_ROWS])
    return out if out.shape == (n, outer) else out[:n, :outer].clone()


def exact_product(rows: Tensor, matrix: Tensor, parts: int = 1) -> Tensor:
    """(n, inner) @ (inner, outer) of numbers rounded to six or seven digits (`parts` times as many), without any
    further error that could depend on the order of summation.

    Each row and each column is written in integer multiples of a power of two, small enough that all products and
    partial sums are integers below 2^53, which a float64 holds; the remainder makes the next part.
    """
    bits = (MANTISSA_BITS - matrix.shape[0].bit_length()) // 2
    lefts, rights = _split_whole(rows.double(), bits, 1, parts), _split_whole(matrix.double(), bits, 0, parts)
    total, *others = [(left @ right).mul_(a).mul_(b) for left, a in lefts for right, b in rights]
    for other in others:
        total += other
    return total.to(rows.dtype)


def squared_distances(rows: Tensor, others: Tensor) -> Tensor:
    """(n, m) squared distances, float64, in integer multiples of `DISTANCE_UNIT`, so that ties are exact."""
    x, y = rows.double(), others.double()
    distance = exact_product(x, y.T).mul_(-2).add_(x.square().sum(dim=1, keepdim=True)).add_(y.square().sum(dim=1))
    return distance.clamp_min_(0).div_(DISTANCE_UNIT).round_()


def find_nearest(rows: Tensor, others: Tensor, count: int) -> Tensor:
    """(n, count) positions of the nearest of the others, nearest first; ties go to the earlier one."""
    tie_break = torch.arange(len(others), dtype=torch.double) / len(others)  # less than one unit of distance
    nearest = [
        squared_distances(some, others).add_(tie_break).topk(count, largest=False).indices
        for some in torch.split(rows, NEIGHBOUR_ROWS)
    ]
    return torch.cat(nearest) if nearest else torch.zeros(0, count, dtype=torch.long)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W' + b for a layer whose training is over: only x has a gradient, computed by the same products."""
    if not torch.is_grad_enabled():
        return product(x, weight.T).add_(bias)
    out: Tensor = _Affine.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return out


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(weight)
        return product(x, weight.T).add_(bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (weight,) = ctx.saved_tensors
        return product(gradients[0], weight), None, None


@cache
def is_batch_independent(inner: int, outer: int, dtype: torch.dtype, contiguous: bool, device: str = "cpu") -> bool:
    """Whether, by trial on this machine, a row's bits depend neither on its position nor on the number of rows."""
    generator = Generator().manual_seed(0)
    rows = torch.randn(BLOCK_ROWS, inner, generator=generator, dtype=dtype).to(device)
    matrix = torch.randn(inner, outer, generator=generator, dtype=dtype).to(device)
    matrix = matrix if contiguous else matrix.T.contiguous().T
    whole = rows @ matrix
    same_reversed = torch.equal((rows.flip(0) @ matrix).flip(0), whole)
    return same_reversed and all(torch.equal(rows[-n:] @ matrix, whole[-n:]) for n in TRIAL_ROWS)


def _pad(x: Tensor, rows: int) -> Tensor:
    """x padded with zeros to full multiples, contiguous and aligned to a cache line."""
    padding = (0, -x.shape[1] % PADDED_WIDTH, 0, -len(x) % rows)
    if any(padding):
        return pad(x, padding)
    x = x.contiguous()
    return x.clone() if x.data_ptr() % CACHE_LINE else x


def _split_whole(x: Tensor, bits: int, dim: int, parts: int) -> list[tuple[Tensor, Tensor]]:
    """x as integers up to 2^bits with a unit for each row (dim 1) or column (dim 0); then the same for the remainder,
    `parts` times in all."""
    split: list[tuple[Tensor, Tensor]] = []
    while True:
        exponent = np.frexp(x.abs().amax(dim=dim, keepdim=True).cpu().numpy())[1] - bits
        unit = torch.from_numpy(np.ldexp(1.0, exponent)).to(x.device)
        whole = (x * torch.from_numpy(np.ldexp(1.0, -exponent)).to(x.device)).round_()
        split.append((whole, unit))
        if len(split) == parts:
            return split
        x = x - whole * unit
