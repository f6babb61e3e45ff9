"""Synthetic people: rows that the diffusion model draws, so that nobody's record has to be kept."""

from __future__ import annotations

import numpy as np
import torch
from torch import Generator, Tensor

from tdce.cells import Floats
from tdce.diffusion.model import TabularDiffusion
from tdce.encoder import Encoder
from tdce.laws.keeping import Keeping
from tdce.noise import Stream
from tdce.progress import Progress
from tdce.threads import one_thread

MOST = 8192
PART = 1024  # people that are drawn at a time
STEPS = 40  # of the reverse walk


def classes_to_draw(y: Tensor, seed: int) -> Tensor:
    """(m,) by their shares among the training rows: two people for each row, at least a part, whole parts."""
    count = min(MOST, max(PART, 2 * len(y)))
    which = torch.randint(len(y), (-(-count // PART) * PART,), generator=Generator().manual_seed(seed))
    return y[which]


def drawn(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    y: Tensor,  # (m,) of these classes
    seed: int,
    progress: Progress,
) -> Floats:
    """(m or fewer, features) raw values on the grid and in the range of the data, who keep its laws; the same ones with
    any number of threads."""
    generator, parts = Generator().manual_seed(seed), torch.split(y, PART)
    found = [np.zeros((0, len(encoder.schema)))]
    with one_thread(), progress.bar("synthetic people", len(parts)) as bar:
        for part in parts:
            found.append(encoder.unembed(diffusion.sample(Stream(len(part), generator), STEPS, y=part)))
            bar.advance()
    columns = zip(encoder.columns, np.concatenate(found).T, strict=True)
    raw = np.stack([learned.nearest_known(values) for learned, values in columns], axis=1)
    return Keeping.hard(encoder.schema.laws, encoder.schema.features).lawful(
        raw, lambda i, values: encoder.columns[i].knows(values)
    )
