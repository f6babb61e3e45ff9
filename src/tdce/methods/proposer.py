"""The network behind amortised answers: it has learned which features the search changes together, and to what."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from tdce._core import Backbone, Name, Progress, TrainingPlan, train
from tdce.models import Goal
from tdce.schema import Space

MAX_SETS = 128  # of features: the commonest among the answers
HIDDEN, BLOCKS = 128, 2
HELD_OUT_EVERY = 10  # one answer in ten is for early stopping


class Proposer(nn.Module):
    """Encoded rows -> logits of sets of features to change; rows and such a set -> values of all features."""

    sets: Tensor
    closeness: Tensor

    def __init__(self, space: Space, sets: Tensor, closeness: float, seed: int = 0) -> None:
        super().__init__()
        self.space = space
        self.register_buffer("sets", sets)  # (s, features) float, 1 or 0
        self.register_buffer("closeness", torch.tensor(closeness, dtype=torch.double))  # of the learned answers
        draw = Generator().manual_seed(seed)
        self.which = Backbone(space.width, len(sets), HIDDEN, BLOCKS, draw)
        self.what = Backbone(space.width + sets.shape[1], space.width, HIDDEN, BLOCKS, draw)

    def values(self, x: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """For rows (n, width) and the features to change (n, features): the changes of the numbers (n, num) and the
        logits of the categories (n, cat)."""
        return self.space.split(self.what(torch.cat([x, chosen], dim=1)))

    def loss(self, x: Tensor, x_cf: Tensor, number: Tensor) -> Tensor:
        """Of rows (n, width), their answers and (n,) the numbers of the sets that these change."""
        chosen = self.sets[number]
        change, logits = self.values(x, chosen)
        (own, _), (num, cat) = self.space.split(x), self.space.split(x_cf)
        errors = self.space.join((own + change - num).abs(), -cat * self.space.log_softmax(logits))
        changes = (self.space.sum_by_feature(errors) * chosen).sum(dim=1).mean()
        loss: Tensor = cross_entropy(self.which(x), number) + changes
        return loss

    @classmethod
    def fit(
        cls, space: Space, x: Tensor, x_cf: Tensor, closeness: float, seed: int, progress: Progress, plan: TrainingPlan
    ) -> Self:
        """Learn from rows (n, width) and their answers, at least one of which changes something."""
        moved = space.moved(x, x_cf).numpy()
        sets, which, times = np.unique(moved, axis=0, return_inverse=True, return_counts=True)
        which = which.reshape(-1)  # NumPy 2.0 returns a column
        common = np.sort(np.argsort(-times, kind="stable")[:MAX_SETS])
        usable = torch.from_numpy(np.isin(which, common))
        x, x_cf, number = x[usable], x_cf[usable], torch.from_numpy(np.searchsorted(common, which))[usable]
        proposer = cls(space, torch.from_numpy(sets[common]).float(), closeness, seed)
        order = torch.randperm(len(x), generator=Generator().manual_seed(seed))
        held_out, training = order[::HELD_OUT_EVERY], order[torch.arange(len(order)) % HELD_OUT_EVERY > 0]
        training = training if len(training) else held_out

        def loss(module: nn.Module, index: Tensor, _: Generator | None = None) -> Tensor:
            return module.loss(x[index], x_cf[index], number[index])  # type: ignore[operator,no-any-return]

        def training_loss(module: nn.Module, index: Tensor, draw: Generator) -> Tensor:
            return loss(module, training[index], draw)

        def held_out_loss(module: nn.Module) -> Tensor:
            return loss(module, held_out)

        train(proposer, training_loss, held_out_loss, len(training), plan, seed, progress, "amortised network")
        return proposer


@dataclass(frozen=True)
class Proposals:
    """A proposer and the question that it has learned to answer."""

    network: Proposer
    goal: Goal
    costs: Mapping[Name, float]  # of changing a feature, where not 1

    @property
    def closeness(self) -> float:
        return float(self.network.closeness)

    @cached_property
    def exact(self) -> Proposer:
        """Its copy in float64, whose values are the same on every machine."""
        return copy.deepcopy(self.network).double()

    def rank_sets(self, x: Tensor, free: Tensor, count: int) -> Tensor:
        """(n, up to count) the numbers of the best sets for rows (n, width), among those of free features (features,)
        only."""
        possible = self.network.sets[:, ~free].sum(dim=1) == 0
        logits = self.exact.which(x.double()).masked_fill(~possible, -torch.inf)
        best: Tensor = logits.topk(min(count, int(possible.sum())), dim=1).indices
        return best

    def propose(self, x: Tensor, sets: Tensor, scale: float) -> Tensor:
        """(n, width) the rows with the features of these sets (n,) changed, numbers by `scale` times the learned
        change."""
        chosen, space = self.exact.sets[sets], self.network.space
        change, logits = self.exact.values(x.double(), chosen)
        values = space.join(space.split(x)[0] + scale * change, space.one_hot(logits)).float()
        return torch.where(chosen[:, space.owner] > 0, values, x)
