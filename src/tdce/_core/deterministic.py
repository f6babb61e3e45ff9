"""Rows times a matrix, with the same bits for a row in any batch: only this module multiplies rows by a matrix.

A matrix product may give a row different last bits at another position in the batch, or in a batch of another size:
other code computes its edges. There are two ways to avoid that. `product`, for the networks, pads rows and widths so
that there are no odd edges; each process tests once per shape in use whether that is enough on this machine. `exact`
rounds both sides so far that no sum ever has to round: then no order matters, on any machine. It is slower; it is used
where the last bits decide (noise, neighbours), and where padding is not enough.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor
from torch.nn.functional import pad

WIDTH = 16  # both widths become a multiple of this: every row starts on a new cache line
ROWS = 64  # the number of rows becomes a multiple of this
BLOCK = 1024  # rows that are multiplied at a time, so that there are few shapes to test
TRIED = (64, 128, 320, 704)  # numbers of rows that are compared with a whole block
DIGITS = 53  # binary ones of a float64
TIE = 2.0**-16  # squared distances that differ by less are the same


def pad_rows(at: Tensor) -> Tensor:
    """Row numbers filled up to a multiple of 64 by repeating the first: code that works on one row, or on a few, may
    add up its columns in another order than code that works on many."""
    return torch.cat([at, at[:1].expand(-len(at) % ROWS)])


def product(rows: Tensor, matrix: Tensor) -> Tensor:
    """(n, inner) @ (inner, outer), as precise as the dtype."""
    (n, inner), outer = rows.shape, matrix.shape[1]
    if not (n and inner and outer):
        return rows.new_zeros(n, outer)
    turned = matrix.T.is_contiguous()  # then it is quicker to pad the other way round
    full, square = _padded(rows, ROWS), _padded(matrix.T, WIDTH).T if turned else _padded(matrix, WIDTH)
    if not independent(*square.shape, square.dtype, square.is_contiguous()):
        return exact_product(rows, matrix, parts=2 if rows.dtype == torch.float64 else 1)
    if len(full) <= BLOCK:
        out = full @ square
    else:
        out = full.new_empty(len(full), square.shape[1])
        for i in range(0, len(full), BLOCK):
            torch.mm(full[i : i + BLOCK], square, out=out[i : i + BLOCK])
    return out if out.shape == (n, outer) else out[:n, :outer].clone()


def exact_product(rows: Tensor, matrix: Tensor, parts: int = 1) -> Tensor:
    """(n, inner) @ (inner, outer) of rounded numbers, six or seven digits of each (`parts` times as many), without any
    further error that could depend on an order.

    Each row and each column is written in whole multiples of a power of two, so few that their products and all
    partial sums are whole numbers below 2^53, which a float64 holds; what is left over makes the next part.
    """
    bits = (DIGITS - matrix.shape[0].bit_length()) // 2
    lefts, rights = _whole(rows.double(), bits, 1, parts), _whole(matrix.double(), bits, 0, parts)
    total, *others = [(left @ right).mul_(a).mul_(b) for left, a in lefts for right, b in rights]
    for other in others:
        total += other
    return total.to(rows.dtype)


def squared_distances(rows: Tensor, others: Tensor) -> Tensor:
    """(n, m) between all pairs, float64, in whole multiples of `TIE`: then equal distances tie on every machine."""
    x, y = rows.double(), others.double()
    away = exact_product(x, y.T).mul_(-2).add_(x.square().sum(dim=1, keepdim=True)).add_(y.square().sum(dim=1))
    return away.clamp_min_(0).div_(TIE).round_()


def find_nearest(rows: Tensor, others: Tensor, count: int) -> Tensor:
    """(n, count) positions of the nearest of the others, nearest first; of equally near ones the earlier."""
    unique = torch.arange(len(others), dtype=torch.double) / len(others)  # less than one unit of distance
    found = [
        squared_distances(some, others).add_(unique).topk(count, largest=False).indices
        for some in torch.split(rows, 128)
    ]
    return torch.cat(found) if found else torch.zeros(0, count, dtype=torch.long)


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W' + b for a layer that is no longer trained: the gradient goes to x alone, by the same products."""
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
def independent(inner: int, outer: int, dtype: torch.dtype, contiguous: bool) -> bool:
    """Whether on this machine the bits of a row depend neither on its place nor on the number of rows: by trying."""
    draw = Generator().manual_seed(0)
    rows = torch.randn(BLOCK, inner, generator=draw, dtype=dtype)
    matrix = torch.randn(inner, outer, generator=draw, dtype=dtype)
    matrix = matrix if contiguous else matrix.T.contiguous().T
    whole = rows @ matrix
    turned = torch.equal((rows.flip(0) @ matrix).flip(0), whole)
    return turned and all(torch.equal(rows[-n:] @ matrix, whole[-n:]) for n in TRIED)


def _padded(x: Tensor, rows: int) -> Tensor:
    """With zeros up to full multiples, one row after another, beginning on a cache line."""
    more = (0, -x.shape[1] % WIDTH, 0, -len(x) % rows)
    if any(more):
        return pad(x, more)
    x = x.contiguous()
    return x.clone() if x.data_ptr() % 64 else x


def _whole(x: Tensor, bits: int, dim: int, parts: int) -> list[tuple[Tensor, Tensor]]:
    """As whole numbers up to 2^bits, and what one of them means in each row (dim 1) or column (dim 0); then the
    same for what is left over."""
    found: list[tuple[Tensor, Tensor]] = []
    while True:
        exponent = np.frexp(x.abs().amax(dim=dim, keepdim=True).numpy())[1] - bits
        unit = torch.from_numpy(np.ldexp(1.0, exponent))
        whole = (x * torch.from_numpy(np.ldexp(1.0, -exponent))).round_()
        found.append((whole, unit))
        if len(found) == parts:
            return found
        x = x - whole * unit
