"""Synthetic people: rows that the diffusion model draws, so that nobody's record has to be kept."""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor

from tdce._core import Floats, GeneratorDraws, Progress, one_thread
from tdce.diffusion.model import TabularDiffusion
from tdce.schema import ConstraintSet, Encoder

SYNTHETIC_ROWS = 8192
ROWS_AT_A_TIME = 1024  # people that are drawn at a time
STEPS = 40  # of the reverse walk


def classes_to_draw(y: Tensor, seed: int) -> Tensor:
    """(m,) by their shares among the training rows: two people for each row, at least a part, whole parts."""
    count = min(SYNTHETIC_ROWS, max(ROWS_AT_A_TIME, 2 * len(y)))
    which = torch.randint(
        len(y), (-(-count // ROWS_AT_A_TIME) * ROWS_AT_A_TIME,), generator=Generator().manual_seed(seed)
    )
    return y[which]


def draw_synthetic(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    y: Tensor,  # (m,) of these classes
    seed: int,
    progress: Progress,
) -> Floats:
    """(m or fewer, features) raw values on the grid and in the range of the data, who keep its laws; the same ones with
    any number of threads."""
    generator, parts = Generator().manual_seed(seed), torch.split(y, ROWS_AT_A_TIME)
    found = [np.zeros((0, len(encoder.schema)))]
    with one_thread(), progress.bar("synthetic people", len(parts)) as bar:
        for part in parts:
            found.append(encoder.unembed(diffusion.sample(GeneratorDraws(len(part), generator), STEPS, y=part)))
            bar.advance()
    columns = zip(encoder.columns, np.concatenate(found).T, strict=True)
    raw = np.stack([learned.nearest_known(values) for learned, values in columns], axis=1)
    return ConstraintSet.hard(encoder.schema.laws, encoder.schema.features).lawful(
        raw, lambda i, values: encoder.columns[i].knows(values)
    )
