"""TDCE, Algorithm 1 of "Tabular Diffusion Counterfactual Explanations", line by line.

Every loose part of the paper is an argument of `Guided`; docs/paper.md lists the readings by number. Two sets
of them have names: `GUIDED`, which comes nearest to what the paper reports (`guided`), and `GUIDED_LITERAL`, the loop
to the letter (`guided_literal`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor

from tdce._core import TAU_RANGE, Noise
from tdce.diffusion import relaxed
from tdce.methods.protocol import Query, Search, Task, Watch, task_of, unwatched
from tdce.methods.settings import check_settings
from tdce.models import Goals


@dataclass(frozen=True)
class Guided:
    """Noise the row to a start level, then walk back, each step pulled towards the target class."""

    edition: ClassVar[int] = 2  # raised when its answers change
    random: ClassVar[bool] = True
    has_tradeoff: ClassVar[bool] = True  # 0 starts from pure noise (typical of the target class), 1 from the row itself
    start: float = 0.5  # share of T at which the walk begins: 0 gives the row back, 1 is pure noise  PAPER[7]
    steps: int | None = 50  # strides of the walk; None takes every one of the T times
    guidance: float = 1.0  # lambda: weight of the classifier's gradient  PAPER[6]
    proximity: float = 1.0  # weight of the distance term: 1 as in the equation, 0 as in Algorithm 1  PAPER[3]
    tau: tuple[float, float] | None = None  # temperature, warm to cool; None: as in training  PAPER[8]
    through_denoiser: bool = True  # back-propagate through f_dn, or take f_dn(x_t) as a constant plus x_t
    sigma: Literal["variance", "deviation"] = "deviation"  # what line 6 takes for Sigma  PAPER[6]
    cat_scale: Literal["lambda", "norm", "norm_pi"] = "norm"  # of g_cat: lambda, times the norm of mu_cat  PAPER[6]
    cat_gradient: Literal["denoised", "noisy"] = "denoised"  # where g_cat is taken  PAPER[5]
    blend: Literal["noised", "exact"] = "noised"  # what immutable features are blended with on the way  PAPER[2]
    loop_noise: bool = True  # noise in every step but the last, or none after line 1  PAPER[4]
    last_noise: bool = False  # noise in the last step too  PAPER[4]
    soft_posterior: bool = False  # the relaxed vector itself in Bayes' rule, not its argmax  PAPER[17]
    task_: Task | None = field(default=None, repr=False)
    watch_: Watch = field(default=unwatched, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, start=(0, 1), steps=(1, 10_000), guidance=(0, 1e3), proximity=(0, 1e3), tau=TAU_RANGE)

    def fit(self, task: Task) -> Self:
        task.require_guide("Algorithm 1")
        return replace(self, task_=task)

    def search(self, query: Query, noise: Noise) -> Search:
        """It asks the judge nothing on its way."""
        start = self.start if query.closeness is None else 1 - query.closeness
        return self.walk(query.x, query.goals, noise, start)
        yield  # makes it a search

    def walk(self, x: Tensor, goals: Goals, noise: Noise, start: float) -> Tensor:
        """Algorithm 1."""
        task = task_of(self)
        space, diffusion, mutable = task.space, task.diffusion, task.mutable
        walk, frozen = diffusion.schedule.walk(start, self.steps), not mutable.all()
        x_t = diffusion.noised(x, walk[0][0], noise, self.tau) if walk else x  # line 1
        for t, s in walk:  # line 2
            x_0, g_num, g_cat = self.gradients(x_t, t, x, goals)  # lines 3, 4
            self.watch_(t, x_t, x_0)
            mu, var, log_pi = diffusion.transition(x_t, x_0, t, s, self.soft_posterior)  # line 5
            sigma = var if self.sigma == "variance" else var**0.5  # PAPER[6]
            num = mu + sigma * mu.norm(dim=1, keepdim=True) * g_num  # line 6
            log_pi = log_pi + self.guidance * self.norm_cat(log_pi) * g_cat  # line 7
            if self.loop_noise and (s > 0 or self.last_noise):
                num = num + var**0.5 * noise.normal(space.num)  # PAPER[4]
                cat = relaxed(log_pi, noise.gumbel(space.cat), diffusion.temperature(s, self.tau), space)
            else:
                cat = space.softmax(log_pi)
            x_t = space.join(num, cat)
            if frozen:
                original = diffusion.noised(x, s, noise, self.tau) if self.blend == "noised" else x  # PAPER[2]
                x_t = torch.where(mutable, x_t, original)  # line 8
        self.watch_(0, x_t, x_t)
        num, cat = space.split(x_t)
        return torch.where(mutable, space.join(num, space.one_hot(cat)), x)

    def norm_cat(self, log_pi: Tensor) -> Tensor | float:
        """(n, 1) the norm of mu_cat, over all categories of a row.  PAPER[6]

        The paper does not define mu_cat. Line 7 adds the gradient to it, the equation to log pi: so it is log pi, the
        log probabilities of the posterior. "norm_pi" takes the posterior's mean instead, the probabilities."""
        if self.cat_scale == "lambda":
            return 1.0
        mu_cat = log_pi if self.cat_scale == "norm" else log_pi.exp()
        norm: Tensor = mu_cat.norm(dim=1, keepdim=True)
        return norm

    def gradients(self, x_t: Tensor, t: int, x: Tensor, goals: Goals) -> Gradients:
        """The denoised row and the guided direction: g_num = unit(grad log p) - proximity * unit(grad d)."""
        task = task_of(self)
        space, diffusion, guide = task.space, task.diffusion, task.require_guide("Algorithm 1")
        with torch.enable_grad():
            at = x_t.detach().requires_grad_()
            if self.through_denoiser:
                x_0 = diffusion.denoised(at, t)
            else:
                with torch.no_grad():
                    estimate = diffusion.denoised(at, t)
                x_0 = estimate + (at - at.detach())
            log_p = -goals.loss(guide(x_0)).sum()
            distance = (x_0 - x)[:, : space.num].square().sum()
            g_log_p, g_x_0 = torch.autograd.grad(log_p, [at, x_0], retain_graph=True)
            g_distance = torch.autograd.grad(distance, at)[0] if space.num else torch.zeros_like(at)
            if self.cat_gradient == "noisy":
                log_p = -goals.loss(guide(at)).sum()
                g_x_0 = torch.autograd.grad(log_p, at)[0]
        g_num = self.guidance * unit(g_log_p[:, : space.num]) - self.proximity * unit(g_distance[:, : space.num])
        return Gradients(x_0.detach(), g_num, g_x_0[:, space.num :])


@dataclass(frozen=True)
class GuidedLiteral(Guided):
    """The same by the letter of Algorithm 1: from pure noise, without a distance term and without noise on the way."""

    start: float = 1.0  # share of T at which the walk begins: T itself  PAPER[7]
    proximity: float = 0.0  # weight of the distance term: line 3 has none  PAPER[3]
    sigma: Literal["variance", "deviation"] = "variance"  # what line 6 takes for Sigma: the covariance  PAPER[6]
    loop_noise: bool = False  # noise in every step but the last: lines 6 and 7 have none  PAPER[4]


GUIDED, GUIDED_LITERAL = Guided(), GuidedLiteral()


class Gradients(NamedTuple):
    x_0: Tensor  # (n, width) f_dn(x_t)
    num: Tensor  # (n, num)
    cat: Tensor  # (n, cat)


def unit(gradient: Tensor) -> Tensor:
    """Each row divided by its norm; a zero gradient stays zero."""
    length: Tensor = gradient.norm(dim=1, keepdim=True)
    return gradient / length.clamp_min(1e-12)
