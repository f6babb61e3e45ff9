"""Algorithm 1 for users: the best of several walks by the default search's objective, refined like its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from tdce._core import Noise
from tdce.methods.algorithm1 import Guided, last_of
from tdce.methods.protocol import Query, Search, task_of
from tdce.methods.refine import best_refined
from tdce.methods.search import DiffusionSearch

LARGEST_WALKS = 1_000


@dataclass(frozen=True)
class GuidedSearch(Guided):
    """Several walks of `Guided` for each row; the best that the model accepts is refined. Unlike `Guided`, it takes
    account of costs and safety, and closeness has the same meaning as for `search`."""

    edition: ClassVar[int] = 100 * Guided.edition + DiffusionSearch.edition  # of its walks and of its refinement
    random: ClassVar[bool] = False  # one search gives all options
    walks: int = 4

    def __post_init__(self) -> None:
        self.check(walks=(1, LARGEST_WALKS))

    def search(self, query: Query, noise: Noise) -> Search:
        count = self.walks * query.options
        parts = [Noise(query.x, noise.seed, noise.part * count + k, self.noise_length) for k in range(count)]
        ends = [last_of(self.walk(query.x, query.goals, part, self.start)) for part in parts]
        with torch.no_grad():
            return (yield from best_refined(task_of(self), query, noise, torch.stack(ends, dim=1)))
