"""A variational autoencoder for mixed tables, with an optional condition.

D. P. Kingma, M. Welling: "Auto-encoding variational Bayes", 2013.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import gaussian_nll_loss

from tdce._core import Progress, TrainingHistory, TrainingPlan, linear, train
from tdce.methods.protocol import Task
from tdce.schema import Space

STEPS = 1000  # maximum number of training steps
HELD_OUT = 0.1  # share of the rows for early stopping
MIN_DEVIATION = 0.05  # of a decoded number; a column of few values would drive the deviation to 0


class VAE(nn.Module):
    """q(z | x) = N(mu, var);  p(x | z): a Gaussian of learned deviation per number, a softmax per category.

    Columns in `given` are a condition: encoder and decoder see them, but they are not reconstructed.
    """

    given: Tensor

    def __init__(self, space: Space, latent: int, hidden: int, given: Tensor | None = None, seed: int = 0) -> None:
        super().__init__()
        self.space, self.latent = space, latent
        self.register_buffer("given", torch.zeros(space.width, dtype=torch.bool) if given is None else given)
        generator = Generator().manual_seed(seed)
        self.encoder = mlp(space.width, hidden, 2 * latent, generator)
        self.decoder = mlp(latent + int(self.given.sum()), hidden, space.width, generator)
        self.log_scale = nn.Parameter(torch.zeros(space.num))

    @classmethod
    def of(cls, task: Task, latent: int, hidden: int, given: Tensor | None = None) -> Self:
        """A VAE trained on the task's rows with its seed, once; methods with the same settings share it."""
        task.require_rows("a variational autoencoder (cchvae, revise, clue)")
        condition = None if given is None or not given.any() else tuple(given.tolist())
        key = (cls, latent, hidden, condition, task.seed)
        return task.memoise(key, lambda: cls._train(task, latent, hidden, given))

    @classmethod
    def _train(cls, task: Task, latent: int, hidden: int, given: Tensor | None) -> Self:
        vae = cls(task.space, latent, hidden, given, task.seed)
        order = torch.randperm(len(task.x), generator=Generator().manual_seed(task.seed))
        size = int(HELD_OUT * len(order))
        training, held_out = task.x[order[size:]], task.x[order[: size or None]]  # a tiny table serves as both
        batch = min(256, max(32, len(order) // 4))
        plan = TrainingPlan(steps=min(STEPS, max(200, 200 * len(order) // batch)), batch=batch, check_every=50)
        vae.fit(training, held_out, plan, task.seed, Progress("silent"))
        return vae

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, width) -> mean and log variance of z, (n, latent) each."""
        mu, log_var = self.encoder(x).chunk(2, dim=1)
        return mu, log_var

    def decode(self, z: Tensor, x: Tensor) -> Tensor:
        """(n, latent) and the rows of the condition -> (n, width): means, soft categories, given columns as in `x`."""
        num, logits = self.space.split(self._outputs(z, x))
        return torch.where(self.given, x, self.space.join(num, self.space.softmax(logits)))

    def loss(self, x: Tensor, generator: Generator) -> Tensor:
        """The mean over rows of the negative evidence lower bound, KL(q(z | x) || N(0, 1)) - E log p(x | z)."""
        mu, log_var = self.encode(x)
        z = mu + (log_var / 2).exp() * torch.randn(mu.shape, generator=generator)
        return (kl_from_normal(mu, log_var) - self.log_likelihood(x, z)).mean()

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        """(n,) log p(x | z), without the given columns."""
        (num, cat), (mean, logits) = self.space.split(x), self.space.split(self._outputs(z, x))
        var = self.log_scale.exp().clamp_min(MIN_DEVIATION).square().expand_as(num)
        gauss = -gaussian_nll_loss(mean, num, var, full=True, reduction="none")
        each = self.space.join(gauss, cat * self.space.log_softmax(logits))
        return each.masked_fill(self.given, 0.0).sum(dim=1)

    def fit(self, x: Tensor, held_out: Tensor, plan: TrainingPlan, seed: int, progress: Progress) -> TrainingHistory:
        """Train on encoded rows (n, width)."""
        checked = held_out.repeat(-(-1024 // len(held_out)), 1)[:4096]
        return train(
            self,
            lambda module, index, generator: module.loss(x[index], generator),  # type: ignore[operator]
            lambda module: module.loss(checked, Generator().manual_seed(seed)),  # type: ignore[operator]
            len(x), plan, seed, progress, "variational autoencoder",
        )  # fmt: skip

    def _outputs(self, z: Tensor, x: Tensor) -> Tensor:
        out: Tensor = self.decoder(torch.cat([z, x[:, self.given]], dim=1))
        return out


def kl_from_normal(mu: Tensor, log_var: Tensor) -> Tensor:
    """(n,) KL(N(mu, var) || N(0, 1)) = 1/2 sum(mu^2 + var - 1 - log var)"""
    return 0.5 * (mu.square() + log_var.exp() - 1 - log_var).sum(dim=1)


def mlp(inputs: int, hidden: int, outputs: int, generator: Generator) -> nn.Sequential:
    return nn.Sequential(
        linear(inputs, hidden, generator), nn.SiLU(),
        linear(hidden, hidden, generator), nn.SiLU(),
        linear(hidden, outputs, generator),
    )  # fmt: skip
