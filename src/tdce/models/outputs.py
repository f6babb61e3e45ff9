"""The outputs of a model, and how its scores are laid out.

The scores of rows are (n, columns), with the columns of all outputs side by side. An output with classes has their
probabilities and, if the model does not always choose the most probable class, also its choice as a one-hot vector. A
predicted number has one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10
from typing import Any

import torch
from torch import Tensor

from tdce._core import Value

NUMBER_GROUPS = 4  # quantile groups of a predicted number: classes for the diffusion model


@dataclass(frozen=True)
class Output:
    """One output of a model: a class out of several, or a number."""

    name: str = ""  # if there are several
    classes: tuple[Value, ...] = ()  # empty: a number
    decides: bool = False  # whether the model may choose another class than the most probable one
    border: float = 0.5  # if so, the probability of the second class at which its choice seems to change
    spread: float = 1.0  # standard deviation of a number over the table
    edges: tuple[float, ...] = ()  # borders of a number's groups

    @property
    def columns(self) -> int:
        """Number of its columns in the scores."""
        return max(1, len(self.classes) * (1 + self.decides))

    @property
    def groups(self) -> int:
        """Number of its classes, or of the groups of its number."""
        return len(self.classes) or len(self.edges) + 1

    def group(self, score: Tensor) -> Tensor:
        """(n,) the number of the predicted class, or of the group of the predicted number. `score` begins with its own
        columns; those of further outputs may follow."""
        if not self.classes:
            return torch.bucketize(score[:, 0].contiguous(), torch.tensor(self.edges, dtype=score.dtype))
        return score[:, self.columns - len(self.classes) : self.columns].argmax(dim=1)

    def rounded(self, number: float) -> float:
        """A predicted number rounded to six decimals, or to six decimals of its spread if that is below 1."""
        return round(number, 6 - min(0, floor(log10(self.spread))))

    def labels(self) -> tuple[Any, ...]:
        """The names of its columns."""
        return self.classes * (1 + self.decides) or (self.name,)
