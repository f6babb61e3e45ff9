"""Synthetic rows: draws from the diffusion model, kept in place of real records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from torch import Generator, Tensor

from tdce._core import Flags, Floats, GeneratorDraws, Positions, Progress, one_thread
from tdce.diffusion.model import TabularDiffusion
from tdce.schema import MIN_PEOPLE, ConstraintSet, Encoder

REDRAWS = 4  # of rows that equal those of fewer than five people
MIN_SHARE_LEFT = 0.1  # of the rows; if fewer would be left, rows that equal people's stay


@dataclass(frozen=True)
class SamplingPlan:
    """How many synthetic rows are drawn, and how."""

    rows: int = 8192  # maximum number
    batch: int = 1024  # rows drawn at a time
    steps: int = 40  # of the reverse process


def classes_to_draw(y: Tensor, seed: int, plan: SamplingPlan | None = None) -> Tensor:
    """(m,) class numbers of the synthetic rows, with the class shares of the training rows (n,): two per training row
    up to the maximum, rounded up to whole batches."""
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
    people: Floats | None = None,  # (n, features) raw rows of real people, which synthetic rows should not copy
) -> Floats:
    """(m or fewer, features) raw values on the grid and in the range of the data. They keep its laws: values that break
    one are repaired, and rows that cannot be repaired are left out. The rows do not depend on the number of threads.

    Rows that equal those of fewer than five `people` are kept only as often as new people would have such rows; the
    excess is redrawn a few times, and then left out. If all were left out, their absence would show who was learned.
    """
    plan = plan or SamplingPlan()
    generator = Generator().manual_seed(seed)
    with one_thread():
        raw, kept = _draw(encoder, diffusion, y, generator, progress, plan)
        if people is None:
            return raw[kept]
        few, expected = rows_of_few(people), share_by_chance(people)
        for _ in range(REDRAWS):
            at = _excess(raw, kept, few, expected, generator)
            if len(at) == 0:
                break
            raw[at], kept[at] = _draw(encoder, diffusion, y[torch.from_numpy(at)], generator, progress, plan)
    out = kept.copy()
    out[_excess(raw, kept, few, expected, generator)] = False
    return raw[out if out.sum() >= MIN_SHARE_LEFT * kept.sum() else kept]


def share_by_chance(people: Floats) -> float:
    """How often a new person's row equals that of fewer than five people, estimated by how often one of `people` has
    the row of one to four others."""
    times = Counter(row_bytes(people))
    return sum(count for count in times.values() if 1 < count <= MIN_PEOPLE) / max(len(people), 1)


def rows_of_few(people: Floats) -> set[bytes]:
    """The rows, as bytes, that fewer than five people have."""
    return {row for row, count in Counter(row_bytes(people)).items() if count < MIN_PEOPLE}


def row_bytes(raw: Floats) -> list[bytes]:
    """Each row as bytes, the same for equal rows; missing is a value."""
    whole = np.where(np.isnan(raw), np.nan, raw) + 0.0  # one kind of NaN, no -0.0
    return [row.tobytes() for row in whole]


def _excess(raw: Floats, kept: Flags, few: set[bytes], expected: float, generator: Generator) -> Positions:
    """Positions of excess rows: a random sample of the rows that equal those of few people, as large as the excess."""
    at = np.flatnonzero(kept & np.array([row in few for row in row_bytes(raw)], dtype=bool))
    count = len(at) - int(expected * kept.sum())
    return np.sort(at[torch.randperm(len(at), generator=generator).numpy()[: max(count, 0)]])


def _draw(
    encoder: Encoder,
    diffusion: TabularDiffusion,
    y: Tensor,
    generator: Generator,
    progress: Progress,
    plan: SamplingPlan,
) -> tuple[Floats, Flags]:
    """Draw (m, features) rows of these classes, and say which of them keep the laws."""
    parts, batches = torch.split(y, plan.batch), [np.zeros((0, len(encoder.schema)))]
    with progress.bar("synthetic rows", len(parts)) as bar:
        for part in parts:
            x_0 = diffusion.sample(GeneratorDraws(len(part), generator), plan.steps, y=part)
            batches.append(encoder.unembed(x_0))
            bar.advance()
    raw = encoder.nearest_known(np.concatenate(batches))
    return ConstraintSet.hard(encoder.schema.laws, encoder.schema.features).fix_synthetic(
        raw, lambda i, values: encoder.columns[i].knows(values)
    )
