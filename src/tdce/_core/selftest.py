"""The self-test behind `tdce check`: whether a row's bits depend on its batch in this machine's matrix products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import nn

from tdce._core.deterministic import PADDED_WIDTH, is_batch_independent

USUAL_WIDTHS = (16, 32, 48, 64, 96, 128, 192, 256)  # layer widths to test if no explainer is given
DEFAULT_HIDDEN = 256

OTHER_PROCESSORS = (
    "ATEN_CPU_CAPABILITY=default",
    "ATEN_CPU_CAPABILITY=avx2",
    "MKL_ENABLE_INSTRUCTIONS=SSE4_2",
    "MKL_ENABLE_INSTRUCTIONS=AVX2",
    "MKL_CBWR=COMPATIBLE",
)
"""Environment variables that make a process run as on a CPU with fewer instructions."""


class Trial(NamedTuple):
    """The result for one shape of a product, with both widths padded."""

    inner: int
    outer: int
    numbers: str  # float32 or float64
    independent: bool  # whether a row has the same bits at every position; if not, the slower exact product is used


def default_layer_shapes() -> set[tuple[int, int]]:
    """(inputs, outputs) of layers into and out of a network of the default width."""
    return {pair for width in USUAL_WIDTHS for pair in ((width, DEFAULT_HIDDEN), (DEFAULT_HIDDEN, width))}


def layer_shapes(modules: Iterable[nn.Module]) -> set[tuple[int, int]]:
    """(inputs, outputs) of every linear layer."""
    layers = [layer for module in modules for layer in module.modules() if isinstance(layer, nn.Linear)]
    return {(layer.in_features, layer.out_features) for layer in layers}


def run_trials(shapes: set[tuple[int, int]]) -> list[Trial]:
    """Trials of layers of these shapes and their gradients, in both memory layouts of the matrix."""
    padded = {(_round_up(a), _round_up(b)) for a, b in shapes}
    return [
        Trial(
            a,
            b,
            str(dtype).removeprefix("torch."),
            all(is_batch_independent(a, b, dtype, contiguous) for contiguous in (False, True)),
        )
        for dtype in (torch.float32, torch.float64)
        for a, b in sorted(padded | {(b, a) for a, b in padded})
    ]


def describe_machine() -> str:
    """The CPU instructions that torch uses, the matrix library, torch's version and the number of threads."""
    library = "MKL" if torch.backends.mkl.is_available() else "no MKL"  # type: ignore[no-untyped-call]
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{instructions} instructions, {library}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)"


def _round_up(width: int) -> int:
    return -(-width // PADDED_WIDTH) * PADDED_WIDTH
