"""The diffusion model of a whole table: Gaussian for the numbers, relaxed multinomial for the categories."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from tdce._core import Backbone, Draws, Progress, TrainingHistory, TrainingPlan, pad_rows, train
from tdce.diffusion import gaussian, multinomial
from tdce.diffusion.schedule import Schedule
from tdce.schema import Space

CATEGORY_WEIGHT = 0.1  # of the categories' KL relative to the numbers' squared error  PAPER[19]
CLASS_DROPOUT = 0.2  # share of the training rows whose class is hidden from the network
ROWS_PER_TIME = 8  # rows of a training batch that share a time, and so a time embedding


class Transition(NamedTuple):
    """p(x_s | x_t): a Gaussian for the numbers, log probabilities for the categories."""

    mu: Tensor  # (n, num)
    var: float
    log_pi: Tensor  # (n, cat)


class TabularDiffusion(nn.Module):
    """The forward process, the denoiser and the reverse process.

    The network may be conditioned on the class of a row (`y`); it then models that class alone. In training the class
    is sometimes hidden, so that the network also works without it.

    `tau` is the temperature of the relaxed categories, warm at t = T and cool at t = 0 (PAPER[8]). The network is
    trained on relaxed rows like those it sees when sampling.
    """

    low: Tensor
    high: Tensor
    uniform: Tensor
    levels: Tensor

    def __init__(
        self,
        space: Space,
        hidden: int = 256,
        blocks: int = 4,
        times: int = 1000,
        classes: int = 0,
        tau: tuple[float, float] = (0.5, 0.2),
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.space, self.schedule, self.tau, self.classes = space, Schedule.cosine(times), tau, classes
        self.settings = {"hidden": hidden, "blocks": blocks, "times": times, "classes": classes, "tau": list(tau)}
        generator = Generator().manual_seed(seed)
        self.network = Backbone(space.width + classes, space.width, hidden, blocks, generator, timed=True)
        self.register_buffer("low", torch.full((space.num,), -torch.inf))  # range of the encoded numbers
        self.register_buffer("high", torch.full((space.num,), torch.inf))
        self.register_buffer("uniform", space.uniform, persistent=False)
        self.register_buffer("levels", torch.tensor(self.schedule.alpha_bar), persistent=False)

    @property
    def exact(self) -> TabularDiffusion:
        """A copy in float64, made once for the current weights."""
        known: tuple[list[int], TabularDiffusion] | None = vars(self).get("_exact")
        versions = [weights._version for weights in self.parameters()]
        if known is None or known[0] != versions:
            vars(self).pop("_exact", None)
            known = vars(self)["_exact"] = versions, copy.deepcopy(self).double()
        return known[1]

    def temperature(self, t: int, tau: tuple[float, float] | None = None) -> float:
        """tau at time t: linear from cool at t = 0 to warm at t = T."""
        warm, cool = self.tau if tau is None else tau
        return cool + (warm - cool) * t / self.schedule.times

    def add_noise(self, x: Tensor, t: int, noise: Draws, tau: tuple[float, float] | None = None) -> Tensor:
        """A draw from q(x_t | x_0 = x), with categories as in eqn:re-param: alg:tabular_diff_ce, line 1."""
        if t == 0:
            return x
        (num, cat), a = self.space.split(x), self.schedule.alpha_bar[t]
        log_pi = multinomial.marginal(cat, a, self.uniform).log()
        gumbel = noise.gumbel(self.space.cat)
        return self.space.join(
            gaussian.add_noise(num, a, noise.normal(self.space.num)),
            multinomial.gumbel_softmax(log_pi, gumbel, self.temperature(t, tau), self.space),
        )

    def condition(self, x_t: Tensor, y: Tensor | None = None) -> Tensor:
        """(n, width + classes) the network's input: noisy rows, followed by one-hot classes. `y` (n,) are class
        numbers; the classes are all zeros where `y` is -1 or None."""
        known = torch.zeros(len(x_t), self.classes)
        if y is not None and self.classes:
            known = known.scatter_(1, y.clamp_min(0)[:, None], (y >= 0).float()[:, None])
        return torch.cat([x_t, known], dim=1)

    def denoise(self, x_t: Tensor, t: int, y: Tensor | None = None) -> Tensor:
        """f_dn(x_t) of eqn:rev_joint: the estimate of the clean row, with numbers within the data's range (PAPER[18])
        and soft categories."""
        eps, logits = self.space.split(self.network(self.condition(x_t, y), torch.tensor([t])))
        num = gaussian.remove_noise(x_t[:, : self.space.num], self.schedule.alpha_bar[t], eps)
        return self.space.join(num.clamp(self.low, self.high), self.space.softmax(logits))

    def transition(self, x_t: Tensor, x_0: Tensor, t: int, s: int, soft: bool = False) -> Transition:
        """p_theta(x_s | x_t) of eqn:rev_joint for s < t, given the estimate x_0 of the clean row.

        Bayes' rule takes the argmax of the relaxed categories, whose distribution is exactly the multinomial one
        (Gumbel-max); with `soft` it takes the relaxed vector itself, as the paper prints it.  PAPER[17]
        """
        (num_t, cat_t), (num_0, cat_0) = self.space.split(x_t), self.space.split(x_0)
        a_t, a_s = self.schedule.alpha_bar[t], self.schedule.alpha_bar[s]
        mu, var = gaussian.posterior(num_t, num_0, a_t, a_s)
        cat_t = cat_t if soft else self.space.one_hot(cat_t)
        return Transition(mu, var, multinomial.posterior(cat_t, cat_0, a_t, a_s, self.uniform, self.space))

    def errors(self, x: Tensor, t: int, normal: Tensor, gumbel: Tensor, y: Tensor | None = None) -> Tensor:
        """(n, features) the denoising errors of clean rows with this noise at time t: the squared error of eps for a
        number, the cross-entropy for a category. They are large for a row that is unlike the table."""
        return self.errors_at(x, [t], [(normal, gumbel)], y, len(x))[0]

    @torch.no_grad()
    def errors_at(
        self,
        x: Tensor,  # (n, width)
        times: Sequence[int],
        noise: Sequence[tuple[Tensor, Tensor]],  # (n, num) and (n, cat) for each time
        y: Tensor | None,
        rows: int,  # number of rows before the padding (copies of the first row)
    ) -> list[Tensor]:
        """`errors` at each of several times, in one pass of the network."""
        (num, cat), inputs = self.space.split(x), []
        for t, (normal, gumbel) in zip(times, noise, strict=True):
            a = self.schedule.alpha_bar[t]
            log_pi = multinomial.marginal(cat, a, self.uniform).log()
            soft = multinomial.gumbel_softmax(log_pi, gumbel, self.temperature(t), self.space)
            inputs.append(self.condition(self.space.join(gaussian.add_noise(num, a, normal), soft), y)[:rows])
        full = pad_rows(torch.arange(rows * len(times)))
        each = torch.tensor([rows] * (len(times) - 1) + [len(full) - rows * (len(times) - 1)])
        out = self.network(torch.cat(inputs)[full], torch.tensor(times), each)
        whole = torch.arange(len(x)).masked_fill(torch.arange(len(x)) >= rows, 0)
        errors = []
        for i, (normal, _) in enumerate(noise):
            eps, logits = self.space.split(out[i * rows + whole])
            of_weights = self.space.join((eps - normal).square_(), -cat * self.space.log_softmax(logits))
            errors.append(self.space.sum_by_feature(of_weights))
        return errors

    @torch.no_grad()
    def sample(
        self,
        noise: Draws,
        steps: int | None = None,
        soft: bool = False,
        y: Tensor | None = None,  # (n,) class numbers
    ) -> Tensor:
        """(n, width) synthetic rows, one per row of the noise: the reverse process from pure noise."""
        space = self.space
        num, u = noise.normal(space.num), self.uniform.log()
        x_t = space.join(num, multinomial.gumbel_softmax(u, noise.gumbel(space.cat), self.tau[0], space))
        for t, s in self.schedule.walk(1.0, steps):
            mu, var, log_pi = self.transition(x_t, self.denoise(x_t, t, y), t, s, soft)
            num = mu + var**0.5 * noise.normal(space.num)
            cat = multinomial.gumbel_softmax(log_pi, noise.gumbel(space.cat), self.temperature(s), space)
            x_t = space.join(num, cat)
        return space.join(space.split(x_t)[0], space.one_hot(space.split(x_t)[1]))

    def loss(self, x: Tensor, generator: Generator, y: Tensor | None = None) -> Tensor:
        """L_t of eq.elbo, mean over rows and random times: |eps - eps_hat|^2 per number plus T KL(q || p) per
        category."""
        num, cat = self.space.split(x)
        times = self.schedule.times
        m = -(-len(x) // ROWS_PER_TIME)
        strata = (torch.arange(m) + torch.rand(m, generator=generator)) / m  # times spread evenly over the batch
        t = 1 + (strata[torch.randperm(m, generator=generator)] * times).long().clamp(max=times - 1)
        at = t.repeat_interleave(ROWS_PER_TIME)[: len(x), None]
        a_t, a_s = self.levels[at], self.levels[at - 1]
        eps = torch.randn(num.shape, generator=generator)
        gumbel = -torch.log(torch.empty(cat.shape).exponential_(generator=generator).clamp_min(1e-20))
        tau = self.tau[1] + (self.tau[0] - self.tau[1]) * at / times
        soft = multinomial.gumbel_softmax(multinomial.marginal(cat, a_t, self.uniform).log(), gumbel, tau, self.space)
        x_t = self.space.join(gaussian.add_noise(num, a_t, eps), soft)

        if y is not None:
            y = torch.where(torch.rand(len(y), generator=generator) < CLASS_DROPOUT, -1, y)
        pad, inputs = -len(x) % ROWS_PER_TIME, self.condition(x_t, y)
        out = self.network(torch.cat([inputs, inputs[:pad]]) if pad else inputs, t)[: len(x)]
        eps_hat, logits = self.space.split(out)
        total: Tensor = out.new_zeros(())
        if self.space.num:
            total = total + (eps - eps_hat).square().mean()
        if self.space.cat:
            hard = self.space.one_hot(soft)
            true = multinomial.posterior(hard, cat, a_t, a_s, self.uniform, self.space)
            model = multinomial.posterior(hard, self.space.softmax(logits), a_t, a_s, self.uniform, self.space)
            total = total + CATEGORY_WEIGHT * times * multinomial.divergence(true, model).mean() / len(self.space.sizes)
        return total

    def fit(
        self,
        x: Tensor,  # (n, width)
        held_out: Tensor,  # (m, width)
        plan: TrainingPlan,
        seed: int,
        progress: Progress,
        y: tuple[Tensor, Tensor] | None = None,  # (n,) and (m,) the class numbers of both; None: without classes
    ) -> TrainingHistory:
        """Train on encoded rows."""
        num, times = self.space.split(x)[0], -(-2048 // len(held_out))
        checked = held_out.repeat(times, 1)[:8192]
        learned_y, checked_y = (None, None) if y is None else (y[0], y[1].repeat(times)[:8192])
        self.low, self.high = num.amin(dim=0), num.amax(dim=0)

        def loss(module: nn.Module, index: Tensor, generator: Generator) -> Tensor:
            known = None if learned_y is None else learned_y[index]
            return module.loss(x[index], generator, known)  # type: ignore[operator,no-any-return]

        return train(
            self,
            loss,
            lambda module: module.loss(checked, Generator().manual_seed(seed), checked_y),  # type: ignore[operator]
            len(x), plan, seed, progress, "diffusion model",
        )  # fmt: skip
