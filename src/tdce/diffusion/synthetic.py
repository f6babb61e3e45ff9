"""Synthetic rows: draws from the diffusion model, kept in place of anybody's record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from tdce._core import Floats, GeneratorDraws, Progress, one_thread
from tdce.diffusion.model import TabularDiffusion
from tdce.schema import ConstraintSet, Encoder


@dataclass(frozen=True)
class SamplingPlan:
    """How many synthetic rows are drawn, and how."""

    rows: int = 8192  # at most
    batch: int = 1024  # rows that are drawn at a time
    steps: int = 40  # of the reverse process


def classes_to_draw(y: Tensor, seed: int, plan: SamplingPlan | None = None) -> Tensor:
    """(m,) class numbers of synthetic rows, by the shares of the classes among the training rows (n,): two for each
    training row up to the maximum, rounded up to whole batches."""
    plan = plan or SamplingPlan()
    count = min(plan.rows, max(plan.batch, 2 * len(y)))
    which = torch.randint(len(y), (-(-count // plan.batch) * plan.batch,), generator=Generator().manual_seed(seed))
    return y[which]


def draw_synthetic(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    y: Tensor,  # (m,) class numbers
    seed: int,
    progress: Progress,
    plan: SamplingPlan | None = None,
) -> Floats:
    """(m or fewer, features) raw values on the grid and in the range of the data. They keep its laws: values that break
    one are repaired, and rows that cannot be repaired left out. The rows are the same with any number of threads."""
    plan = plan or SamplingPlan()
    generator, parts = Generator().manual_seed(seed), torch.split(y, plan.batch)
    batches = [np.zeros((0, len(encoder.schema)))]
    with one_thread(), progress.bar("synthetic rows", len(parts)) as bar:
        for part in parts:
            x_0 = diffusion.sample(GeneratorDraws(len(part), generator), plan.steps, y=part)
            batches.append(encoder.unembed(x_0))
            bar.advance()
    columns = zip(encoder.columns, np.concatenate(batches).T, strict=True)
    raw = np.stack([learned.nearest_known(values) for learned, values in columns], axis=1)
    return ConstraintSet.hard(encoder.schema.laws, encoder.schema.features).repair_synthetic(
        raw, lambda i, values: encoder.columns[i].knows(values)
    )
