"""S. Wachter, B. Mittelstadt, C. Russell: "Counterfactual explanations without opening the black box", 2017.

Gradient descent in feature space: argmin over x' of  lambda (f(x') - target)^2 + d(x, x'),  with lambda raised until
the decision changes; d is the L1 distance in units of each feature's median absolute deviation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from tdce._core import Noise
from tdce.methods.baselines.descent import Closest, descend
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.settings import POSITIVE, check_settings
from tdce.schema import Space


@dataclass(frozen=True)
class Wachter:
    """Wachter et al.: numbers move directly, categories through the logits of a softmax, so that gradients reach both.

    The paper instead runs one search per combination of categories, which is infeasible for more than a few. Its loss
    (f - target)^2 is `loss="squared"`.
    """

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    steps: int = 200
    rate: float = 0.1  # learning rate of Adam, falling to zero
    weight: float = 1.0  # lambda at the start
    growth: float = 1.2  # factor on lambda at every decision: up while the row is refused, else down
    every: int = 5  # steps between two decisions
    loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    distance: Literal["l1_mad", "l2"] = "l1_mad"
    soften: float = 0.1  # share of the uniform distribution in the initial categories; hard ones have no gradient
    task_: Task | None = field(default=None, repr=False)
    scale_: Tensor | None = field(default=None, repr=False)  # (width,) the cost of one unit of each column

    def __post_init__(self) -> None:
        check_settings(
            self, steps=(1, 10_000), rate=(POSITIVE, 1e3), weight=(0, 1e6), growth=(1, 10), every=(1, 10_000),
            soften=(POSITIVE, 1),
        )  # fmt: skip

    def fit(self, task: Task) -> Self:
        task.require_guide("wachter")
        if self.distance == "l2":
            return replace(self, task_=task)
        task.require_rows("Wachter's distance l1_mad")
        return replace(self, task_=task, scale_=inverse_mad(task.x, task.space))

    def search(self, query: Query, noise: Noise) -> Search:
        """Gradient descent in feature space. `noise` is not used: the search is deterministic."""
        task, x = task_of(self), query.x
        space, guide = task.space, task.require_guide("wachter")
        num, cat = space.split(x)
        start = space.join(num, ((1 - self.soften) * cat + self.soften * space.uniform).log())

        def row(at: Tensor) -> Tensor:
            num, logits = space.split(at)
            return torch.where(task.mutable, space.join(num, space.softmax(logits)), x)

        softened = row(start)  # distances are measured from here; otherwise the descent would first undo the softening

        def loss(x_cf: Tensor, weight: Tensor) -> Tensor:
            return self.weight * weight * self._miss(query.goals.loss(guide(x_cf))) + self._distance(x_cf, softened)

        closest = Closest(query, self._distance)
        return descend(start, row, loss, closest, self.steps, self.rate, self.every, self.growth)

    def _miss(self, surprise: Tensor) -> Tensor:
        return surprise if self.loss == "cross_entropy" else ((-surprise).exp() - 1).square()

    def _distance(self, a: Tensor, b: Tensor) -> Tensor:
        if self.distance == "l2":
            return (a - b).square().sum(dim=-1)
        assert self.scale_ is not None, "call fit first"
        return ((a - b).abs() * self.scale_).sum(dim=-1)


def inverse_mad(x: Tensor, space: Space) -> Tensor:
    """(width,) 1 / median |x - median x| of each number; 1/2 for category weights, so that a changed one costs 1.

    If more than half of the values are equal, the median deviation is zero; the mean deviation replaces it.
    """
    num, _ = space.split(x)
    away = (num - num.median(dim=0).values).abs()
    mad, mean = away.median(dim=0).values, away.mean(dim=0)
    mad = torch.where(mad > 0, mad, torch.where(mean > 0, mean, 1.0))
    return torch.cat([1 / mad, torch.full((space.cat,), 0.5)])
