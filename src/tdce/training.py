"""One training loop for every network: Adam, clipping, averaged weights, early stopping on held-out rows."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from tdce.progress import Progress
from tdce.threads import one_thread


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train."""

    steps: int = 1500
    batch: int = 1024
    rate: float = 4e-3
    decay: float = 1e-4  # weight decay
    average: float = 0.995  # of the exponential moving average of the weights
    clip: float = 1.0
    check_every: int = 100
    patience: int = 6  # checks without a better held-out loss before stopping


@dataclass(frozen=True)
class History:
    """The held-out loss at each check, and the step whose weights were kept."""

    checks: tuple[tuple[int, float], ...]
    best_step: int
    best_loss: float


def train(
    module: nn.Module,
    loss: Callable[[nn.Module, Tensor, Generator], Tensor],  # of these row numbers; the mean over them
    held_out: Callable[[nn.Module], Tensor],
    rows: int,
    plan: Plan,
    seed: int,
    progress: Progress,
    title: str,
) -> History:
    """Train in place; at the end the module holds the averaged weights of the best check.

    The same seed gives the same batches and noise, and any number of threads the same weights. A loss that is no longer
    finite stops with an error.
    """
    generator = Generator().manual_seed(seed)
    averaged = copy.deepcopy(module).requires_grad_(False)
    optimiser = torch.optim.AdamW(module.parameters(), lr=plan.rate, weight_decay=plan.decay, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, plan.steps))
    batch = min(plan.batch, rows)
    order = torch.empty(0, dtype=torch.long)
    checks: list[tuple[int, float]] = []
    best_step, best_loss, best = 0, math.inf, copy.deepcopy(averaged.state_dict())

    with one_thread(), progress.bar(title, plan.steps) as bar:
        for step in range(1, plan.steps + 1):
            if len(order) < batch:
                order = torch.randperm(rows, generator=generator)
            index, order = order[:batch], order[batch:]
            value = loss(module, index, generator)
            if not torch.isfinite(value):
                raise FloatingPointError(
                    f"{title}: the loss is {value.item()} at step {step}; check the table for columns with extreme "
                    f"values, or try a learning rate below {plan.rate}"
                )
            optimiser.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(module.parameters(), plan.clip)
            optimiser.step()
            schedule.step()
            _average(averaged, module, min(plan.average, step / (step + 10)))
            if step % plan.check_every == 0 or step == plan.steps:
                with torch.no_grad():
                    checks.append((step, held_out(averaged).item()))
                if checks[-1][1] < best_loss:
                    best_step, best_loss = checks[-1]
                    best = copy.deepcopy(averaged.state_dict())
                elif step - best_step >= plan.patience * plan.check_every:
                    break
            bar.advance(f"held-out loss {best_loss:.3f}" if checks else "")
    module.load_state_dict(best)
    module.eval().requires_grad_(False)
    return History(tuple(checks), best_step, best_loss)


def _rate(step: int, steps: int) -> float:
    """Warm up over 50 steps, then a cosine down to nearly nothing."""
    warm = min(1.0, (step + 1) / 50)
    return warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0))))


@torch.no_grad()
def _average(averaged: nn.Module, module: nn.Module, keep: float) -> None:
    torch._foreach_lerp_(list(averaged.parameters()), list(module.parameters()), 1 - keep)
