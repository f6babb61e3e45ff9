"""The backbone of denoiser and classifier: a residual network with long skips, a "U-net" for tables.  PAPER[9]"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import silu

from tdce._core.deterministic import affine


class Backbone(nn.Module):
    """(n, width) -> (n, outputs). The first half of the blocks feeds the second half, mirrored, by addition.

    With `timed`, a time embedding is added; it is computed once per time in `t`, not per row. The network takes rows
    from any device and returns them there, wherever its own weights are.
    """

    def __init__(
        self, width: int, outputs: int, hidden: int, blocks: int, generator: Generator, timed: bool = False
    ) -> None:
        super().__init__()
        self.inputs = linear(width, hidden, generator)
        self.time = TimeEmbedding(hidden, generator) if timed else None
        self.blocks = nn.ModuleList(Block(hidden, generator) for _ in range(blocks))
        self.norm = nn.LayerNorm(hidden)
        self.outputs = linear(hidden, outputs, generator)

    def forward(self, x: Tensor, t: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        """x: (n, width); t: (m,) times: the first rows[0] rows are at t[0], and so on; by default n / m at each."""
        device = self.inputs.weight.device
        h = self.inputs(x.to(device))
        if self.time is not None and t is not None:
            shift, each = self.time(t.to(device)), len(x) // len(t) if rows is None else rows.to(device)
            h += shift if len(t) == 1 else shift.repeat_interleave(each, dim=0, output_size=len(x))
        skips: list[Tensor] = []
        for i, block in enumerate(self.blocks):
            if i < len(self.blocks) // 2:
                skips.append(h)
            elif skips and i >= len(self.blocks) - len(skips):
                h += skips.pop()
            h = block(h)
        out: Tensor = self.outputs(activate(self.norm(h)))
        return out.to(x.device)


class Block(nn.Module):
    """h + W2 silu(W1 norm(h))"""

    def __init__(self, hidden: int, generator: Generator) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.first = linear(hidden, hidden, generator)
        self.second = linear(hidden, hidden, generator)

    def forward(self, h: Tensor) -> Tensor:
        out: Tensor = self.second(activate(self.first(self.norm(h))))
        out += h
        return out


class TimeEmbedding(nn.Module):
    """(m,) times -> (m, hidden): sines and cosines of many periods, then two layers."""

    def __init__(self, hidden: int, generator: Generator, periods: int = 64) -> None:
        super().__init__()
        self.periods = periods
        self.first = linear(2 * periods, hidden, generator)
        self.second = linear(hidden, hidden, generator)

    def forward(self, t: Tensor) -> Tensor:
        rate = torch.exp(-math.log(10_000) * torch.arange(self.periods, dtype=torch.double) / self.periods).to(t.device)
        phase = (t[:, None] * rate).to(self.first.weight.dtype)
        out: Tensor = self.second(silu(self.first(torch.cat([phase.cos(), phase.sin()], dim=1))))
        return out


def activate(h: Tensor) -> Tensor:
    """silu(h), in place where no gradient needs h."""
    return silu(h, inplace=not torch.is_grad_enabled())


class Linear(nn.Linear):
    """A linear layer: once it is trained, a row's outputs have the same bits in any batch."""

    def reset_parameters(self) -> None:
        """Do nothing: `linear` initialises the weights from its generator."""

    def forward(self, x: Tensor) -> Tensor:
        if self.weight.requires_grad:  # in training only the whole batch matters
            return super().forward(x)
        return affine(x, self.weight, self.bias)


def linear(inputs: int, outputs: int, generator: Generator) -> Linear:
    """A linear layer initialised from the given generator alone."""
    layer = Linear(inputs, outputs)
    bound = 1 / math.sqrt(max(inputs, 1))
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer
