"""Whether a row's bits depend on its batch in this machine's matrix products: what `tdce check` shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import nn

from tdce._core.deterministic import WIDTH, independent

USUAL = (16, 32, 48, 64, 96, 128, 192, 256)  # widths of networks, where no explainer says which are in use

OTHERS = (
    "ATEN_CPU_CAPABILITY=default",
    "ATEN_CPU_CAPABILITY=avx2",
    "MKL_ENABLE_INSTRUCTIONS=SSE4_2",
    "MKL_ENABLE_INSTRUCTIONS=AVX2",
    "MKL_CBWR=COMPATIBLE",
)
"""In a process's environment: it then leaves some of this processor's instructions unused, as on another one."""


class Trial(NamedTuple):
    """One shape of a product, as it is multiplied: both widths padded."""

    inner: int
    outer: int
    numbers: str  # float32 or float64
    independent: bool  # a row has the same bits at every place; if not, the exact way is taken, which is slower


def usual_widths() -> set[tuple[int, int]]:
    """From and to a network of 256, the default."""
    return {pair for width in USUAL for pair in ((width, 256), (256, width))}


def widths_of(modules: Iterable[nn.Module]) -> set[tuple[int, int]]:
    """Inputs and outputs of every layer."""
    layers = [layer for module in modules for layer in module.modules() if isinstance(layer, nn.Linear)]
    return {(layer.in_features, layer.out_features) for layer in layers}


def trials(widths: set[tuple[int, int]]) -> list[Trial]:
    """Layers of these widths and their gradients, in both layouts of the matrix."""
    padded = {(-(-a // WIDTH) * WIDTH, -(-b // WIDTH) * WIDTH) for a, b in widths}
    return [
        Trial(a, b, str(dtype).removeprefix("torch."), all(independent(a, b, dtype, way) for way in (False, True)))
        for dtype in (torch.float32, torch.float64)
        for a, b in sorted(padded | {(b, a) for a, b in padded})
    ]


def description() -> str:
    """The processor's instructions as torch uses them, the library of products, the threads."""
    library = "MKL" if torch.backends.mkl.is_available() else "no MKL"  # type: ignore[no-untyped-call]
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{instructions} instructions, {library}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)"
