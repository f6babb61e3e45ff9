"""The device of the networks: the CPU or a GPU. Everything else is computed on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tdce._core.errors import InputError, show
from tdce._core.network import Backbone


def check_device(name: Any) -> str:
    """The name of a device, if this machine has it: `cpu`, `cuda`, or `cuda:1` for the second GPU."""
    try:
        device = torch.device(name if isinstance(name, str) else "")
    except RuntimeError:
        raise InputError(f"device is {show(name)}; it must be 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device={name!r} is not supported: answers need float64 and the same bits in any batch; "
                         "use device='cpu' or 'cuda'")  # fmt: skip
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={name!r} is not available: torch sees no GPU; use device='cpu'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device={name!r} is not available: torch sees {torch.cuda.device_count()} GPU(s), counted "
                         "from 0")  # fmt: skip
    return str(name)


def place_networks(module: nn.Module | None, device: str | torch.device) -> None:
    """Move the networks inside a module to a device; they take rows from the CPU and return them to it."""
    for part in () if module is None else module.modules():
        if isinstance(part, Backbone):
            part.to(device)
