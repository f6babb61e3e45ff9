"""The unchanged rows, for comparison: the value of each metric for rows without any change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from tdce._core import Noise
from tdce.methods import Query, Search, Task


@dataclass(frozen=True)
class Unchanged:
    """A method that changes nothing; its metrics are over all rows, although none is valid."""

    edition: ClassVar[int] = 1
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    task_: Task | None = field(default=None, repr=False)

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    def search(self, query: Query, noise: Noise) -> Search:
        return query.x
        yield  # makes it a generator, although it never queries the model
