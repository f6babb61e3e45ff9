"""Tables without a scale or a grid, of which nothing is learned: an encoded number is the number itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from tdce._core.noise import Noise
from tdce.methods.protocol import Query, Search, Task
from tdce.models.model import Classify, NetworkModel
from tdce.models.oracle import Oracle
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import FittedNumeric, Numeric
from tdce.schema.columns.scale import Scale
from tdce.schema.encoder import Encoder

WHOLE = np.array([-16.0, 0.0, 16.0])  # powers of two: going there and back is exact


def encoder(numbers: str, **sizes: int) -> Encoder:
    """One number per letter, and categories with so many values each."""
    plain = [FittedNumeric(Numeric(name, low=-16, high=16), Scale(WHOLE, WHOLE, np.ones(1))) for name in numbers]
    words = [Categorical(name, tuple(range(size))).fit(np.arange(size, dtype=float)) for name, size in sizes.items()]
    return Encoder((*plain, *words))


def task(
    encoder: Encoder,
    classify: Classify,
    x: Tensor,
    mutable: Sequence[bool] | None = None,
    y: Tensor | None = None,
    classes: Sequence[int] = (0, 1),
) -> Task:
    """To explain this function of encoded rows; by default everything may change and all rows are of class 0."""
    oracle = Oracle(NetworkModel(classify, encoder.embed, tuple(classes)))
    free = torch.ones(encoder.space.width, dtype=torch.bool) if mutable is None else torch.tensor(mutable)
    return Task(encoder, oracle, classify, None, free, x, torch.zeros(len(x), dtype=torch.long) if y is None else y)


def above(limit: float) -> Classify:
    """A yes from this number on, the surer the larger it is."""
    return lambda x: torch.stack([torch.zeros(len(x)), x[:, 0] - limit + 0.5], dim=1)


@dataclass(frozen=True)
class Jump:
    """A method that sets the first number: one option per value, and in each draw the next of them."""

    to: tuple[float, ...]
    random: bool = False
    edition: int = 1
    has_tradeoff: bool = False
    task_: Task | None = None

    def fit(self, task: Task) -> "Jump":
        return replace(self, task_=task)

    def search(self, query: Query, noise: Noise) -> Search:
        values = (self.to[noise.part % len(self.to)],) if self.random else self.to
        x = query.x[:, None].repeat(1, len(values), 1)
        x[:, :, 0] = torch.tensor(values)
        yield query.ask(x)
        return x
