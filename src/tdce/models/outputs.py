"""What a model says, and goals about it: numbers in a range, one of several outputs, all of several goals at once.

The scores of a row stand side by side, (n, columns): the probabilities of an output's classes (and, where the model
does not just take the most probable one, which class it says), or a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tdce._core import Value

GROUPS = 4  # of people with like numbers, whom the diffusion model is told apart


@dataclass(frozen=True)
class Output:
    """One thing that a model says: a class out of several, or a number."""

    name: str = ""  # where there are several
    classes: tuple[Value, ...] = ()  # none: a number
    decides: bool = False  # whether the model has its own way from probabilities to a class
    border: float = 0.5  # then: the probability of the second class where it seems to turn
    spread: float = 1.0  # the deviation of a number over the table
    edges: tuple[float, ...] = ()  # of a number: where its groups end

    @property
    def columns(self) -> int:
        return max(1, len(self.classes) * (1 + self.decides))

    @property
    def groups(self) -> int:
        return len(self.classes) or len(self.edges) + 1

    def group(self, score: Tensor) -> Tensor:
        """(n,) the class that it says, or the group of the number."""
        if not self.classes:
            return torch.bucketize(score[:, 0].contiguous(), torch.tensor(self.edges, dtype=score.dtype))
        return score[:, -len(self.classes) : self.columns].argmax(dim=1)

    def labels(self) -> tuple[Any, ...]:
        """What its columns are called."""
        return self.classes * (1 + self.decides) or (self.name,)
