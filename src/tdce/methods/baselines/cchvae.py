"""C-CHVAE: M. Pawelczyk, K. Broelemann, G. Kasneci, "Learning model-agnostic counterfactual explanations for tabular
data", 2020.

A variational autoencoder is conditioned on the immutable features. Spheres around the row grow in its latent space
until a decoded point falls into the target class. The method needs only the model's decisions, no gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from tdce._core import Noise
from tdce.methods.baselines.descent import Closest, l1
from tdce.methods.baselines.vae import VAE
from tdce.methods.protocol import Query, Search, Task
from tdce.methods.settings import POSITIVE, check_settings


@dataclass(frozen=True)
class CCHVAE:
    """C-CHVAE: the closest candidate in the target class from the first ring around the mean of q(z | x, immutable)
    that has one."""

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = True
    has_tradeoff: ClassVar[bool] = False
    candidates: int = 32  # points per ring
    rings: int = 16
    width: float = 0.5  # of a ring
    latent: int = 8
    hidden: int = 128
    task_: Task | None = field(default=None, repr=False)
    vae_: VAE | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(
            self, candidates=(1, 10_000), rings=(1, 1000), width=(POSITIVE, 10), latent=(1, 64), hidden=(1, 4096)
        )

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task, vae_=VAE.of(task, self.latent, self.hidden, given=~task.mutable))

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        x, vae, k = query.x, self.vae_, self.candidates
        assert vae is not None, "call fit first"
        closest, mu = Closest(query, l1), vae.encode(x)[0]
        x_cf, condition = x, x.repeat_interleave(k, dim=0)
        for ring in range(self.rings):
            solved = closest.solved
            if solved.all():
                break
            z = mu[:, None] + shell(noise, k, self.latent, self.width * ring, self.width * (ring + 1))
            yield from closest.offer(vae.decode(z.flatten(0, 1), condition).view(len(x), k, -1))
            x_cf = torch.where(solved[:, None], x_cf, closest.x_cf)  # a later ring never replaces an earlier answer
        return x_cf


def shell(noise: Noise, points: int, latent: int, low: float, high: float) -> Tensor:
    """(n, points, latent) uniform in the volume between two spheres: r^d is uniform between low^d and high^d."""
    direction = noise.normal(points * latent).view(-1, points, latent)
    length: Tensor = direction.norm(dim=2, keepdim=True)
    r = (low**latent + (high**latent - low**latent) * noise.uniform(points)).pow(1 / latent).float()
    return direction / length * r[:, :, None]
