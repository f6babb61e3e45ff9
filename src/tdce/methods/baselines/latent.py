"""Gradient search in the latent space of a variational autoencoder: REVISE and CLUE, which differ in their loss.

S. Joshi, O. Koyejo, W. Vijitbenjaronk, B. Kim, J. Ghosh: "Towards realistic individual recourse and actionable
explanations in black-box decision making systems", 2019.
J. Antorán, U. Bhatt, T. Adel, A. Weller, J. M. Hernández-Lobato: "Getting a CLUE: a method for explaining uncertainty
estimates", 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from tdce._core import Noise
from tdce.methods.baselines.descent import Closest, descend, l1
from tdce.methods.baselines.vae import VAE
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.settings import POSITIVE, check_settings


@dataclass(frozen=True)
class Revise:
    """argmin over z of  -log p(target | G(z)) + proximity |G(z) - x|_1,  from the mean of q(z | x)."""

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    proximity: float = 0.3  # lambda of the paper
    steps: int = 150
    rate: float = 0.1  # learning rate of Adam, falling to zero
    every: int = 5  # steps between two decisions
    growth: float = 1.1  # factor on the target's weight: up while a row is refused, else down; 1 as published
    latent: int = 8
    hidden: int = 128
    task_: Task | None = field(default=None, repr=False)
    vae_: VAE | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(
            self, proximity=(0, 1e3), steps=(1, 10_000), rate=(POSITIVE, 1e3), every=(1, 10_000), growth=(1, 10),
            latent=(1, 1024), hidden=(1, 4096), pull=(0, 1e3),
        )  # fmt: skip

    def fit(self, task: Task) -> Self:
        task.require_guide(type(self).__name__)
        return replace(self, task_=task, vae_=VAE.of(task, self.latent, self.hidden))

    def loss(self, logits: Tensor, miss: Tensor, away: Tensor, weight: Tensor) -> Tensor:
        """(n,) from logits (n, classes), the goal's loss, distances and weights (n,) of decoded rows."""
        return weight * miss + self.proximity * away

    def search(self, query: Query, noise: Noise) -> Search:
        """Gradient descent in z. During it, decoded rows have soft categories, but the row's own immutable columns.
        `noise` is not used."""
        assert self.vae_ is not None, "call fit first"
        task, vae, x = task_of(self), self.vae_, query.x
        guide = task.require_guide(type(self).__name__)

        def row(z: Tensor) -> Tensor:
            return torch.where(task.mutable, vae.decode(z, x), x)

        def loss(x_cf: Tensor, weight: Tensor) -> Tensor:
            logits = guide(x_cf)
            return self.loss(logits, query.goals.loss(logits), l1(x_cf, x), weight)

        closest = Closest(query, l1)
        return descend(vae.encode(x)[0], row, loss, closest, self.steps, self.rate, self.every, self.growth)


@dataclass(frozen=True)
class Clue(Revise):
    """argmin over z of  H(y | G(z)) + proximity |G(z) - x|_1 - pull log p(target | G(z)),  from the mean of q(z | x).

    CLUE explains uncertainty: its first two terms lead to a row of any class that the model is certain about. The third
    term is an addition of this library; without it, the answers would not be counterfactuals.
    """

    pull: float = 1.0  # weight of the pull towards the target class; 0 as published

    def loss(self, logits: Tensor, miss: Tensor, away: Tensor, weight: Tensor) -> Tensor:
        return entropy(logits) + self.proximity * away + self.pull * weight * miss


def entropy(logits: Tensor) -> Tensor:
    """(n,) -sum p log p"""
    log_p = logits.log_softmax(dim=1)
    return -(log_p.exp() * log_p).sum(dim=1)
