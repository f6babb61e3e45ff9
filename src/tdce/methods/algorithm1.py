"""Algorithm 1 of "Tabular Diffusion Counterfactual Explanations", line by line (alg:tabular_diff_ce).

Where the paper is ambiguous, the reading is a setting of `Guided`; docs/paper.md lists the readings as PAPER[n]. Two
sets of settings have names: `GUIDED` was chosen on validation rows to reproduce the paper's results (benchmarks/
guided_settings.py), `GUIDED_LITERAL` follows the printed loop to the letter.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor

from tdce._core import TAU_RANGE, Noise
from tdce.diffusion import gumbel_softmax
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.settings import check_settings
from tdce.models import Goals

INDEPENDENT, SHARED = 1e-3, 1e6  # noise lengths at which no two rows share noise, and at which all do

Walk = Generator[tuple[int, Tensor, Tensor], None, Tensor]
"""A reverse walk: yields (t, x_t, x_0) at every step, with x_0 the estimate of the clean rows, and returns the last x.
"""


@dataclass(frozen=True)
class Guided:
    """Add noise to the row up to a start level, then denoise it step by step, guided towards the target class."""

    edition: ClassVar[int] = 3  # raised when its answers change
    random: ClassVar[bool] = True
    has_tradeoff: ClassVar[bool] = True  # 0 starts from pure noise (typical of the target class), 1 from the row itself
    start: float = 0.6  # share of T at which the walk begins: 0 returns the row itself, 1 is pure noise  PAPER[7]
    steps: int | None = 50  # steps of the walk; None takes all T
    guidance: float = 1.15  # weight of the classifier's gradient  PAPER[6]
    cat_guidance: float = 1.0  # lambda: factor on this gradient for categories  PAPER[6]
    proximity: float = 1.0  # weight of the distance term: 1 as in the equation, 0 as in Algorithm 1  PAPER[3]
    tau: tuple[float, float] | None = (5.0, 5.0)  # temperature at t = T and at t = 0; None: as in training  PAPER[8]
    through_denoiser: bool = True  # back-propagate through f_dn, or take f_dn(x_t) as a constant plus x_t
    sigma: Literal["variance", "deviation"] = "deviation"  # what line 6 takes for Sigma  PAPER[6]
    cat_scale: Literal["lambda", "norm", "norm_pi"] = "norm_pi"  # of g_cat: lambda, times the norm of mu_cat  PAPER[6]
    cat_gradient: Literal["through", "denoised", "noisy"] = "denoised"  # what g_cat is the gradient of  PAPER[5]
    blend: Literal["noised", "exact", "x_t"] = "noised"  # values of immutable features during the walk  PAPER[2]
    loop_noise: bool = True  # noise in every step but the last, or none after line 1  PAPER[4]
    last_noise: bool = False  # also noise in the last step  PAPER[4]
    soft_posterior: bool = False  # Bayes' rule takes the relaxed vector itself, not its argmax  PAPER[17]
    noise_length: float = 2.0  # distance within which rows share noise; SHARED: all rows do  PAPER[4]
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.check()

    def check(self, **more: tuple[float, float]) -> None:
        """Check every setting against its range."""
        check_settings(
            self, start=(0, 1), steps=(1, 10_000), guidance=(0, 1e3), cat_guidance=(0, 1e3), proximity=(0, 1e3),
            tau=TAU_RANGE, noise_length=(INDEPENDENT, SHARED), **more,
        )  # fmt: skip

    def fit(self, task: Task) -> Self:
        task.require_guide("Algorithm 1")
        return replace(self, task_=task)

    def search(self, query: Query, noise: Noise) -> Search:
        start = self.start if query.closeness is None else 1 - query.closeness
        noise = Noise(query.x, noise.seed, noise.part, self.noise_length)
        return last_of(self.walk(query.x, query.goals, noise, start))
        yield  # makes it a generator, although it never queries the model

    def walk(self, x: Tensor, goals: Goals, noise: Noise, start: float) -> Walk:
        """Algorithm 1 (alg:tabular_diff_ce): a draw from eqn:rev_joint, for categories from eqn:rev_gum, which relaxes
        eqn:cat_guid_rev. Yields (t, x_t, x_0) at every step, returns the counterfactuals.
        """
        task = task_of(self)
        space, diffusion, mutable = task.space, task.diffusion, task.mutable
        times, frozen = diffusion.schedule.walk(start, self.steps), not mutable.all()
        x_t = diffusion.add_noise(x, times[0][0], noise, self.tau) if times else x  # line 1
        for t, s in times:  # line 2
            x_0, g_num, g_cat = self.gradients(x_t, t, x, goals)  # lines 3, 4
            yield t, x_t, x_0
            mu, var, log_pi = diffusion.transition(x_t, x_0, t, s, self.soft_posterior)  # line 5
            sigma = var if self.sigma == "variance" else var**0.5  # PAPER[6]
            num = mu + sigma * mu.norm(dim=1, keepdim=True) * g_num  # line 6, eqn:cont_guided
            strength = self.guidance * self.cat_guidance * self.norm_cat(log_pi)
            log_pi = log_pi + strength * g_cat  # line 7: eqn:cat_approx + eqn:cls_taylor
            if self.loop_noise and (s > 0 or self.last_noise):
                num = num + var**0.5 * noise.normal(space.num)  # eqn:cls_guid_rev  PAPER[4]
                cat = gumbel_softmax(log_pi, noise.gumbel(space.cat), diffusion.temperature(s, self.tau), space)
            else:
                cat = space.softmax(log_pi)
            original = self.original(x, x_t, s, noise) if frozen else x_t
            x_t = torch.where(mutable, space.join(num, cat), original)  # line 8
        yield 0, x_t, x_t
        num, cat = space.split(x_t)
        return torch.where(mutable, space.join(num, space.one_hot(cat)), x)

    def original(self, x: Tensor, x_t: Tensor, s: int, noise: Noise) -> Tensor:
        """(n, width) what line 8 blends in: the row noised to time s, the row itself, or x_t.  PAPER[2]"""
        if self.blend == "noised":
            return task_of(self).diffusion.add_noise(x, s, noise, self.tau)
        return x if self.blend == "exact" else x_t

    def norm_cat(self, log_pi: Tensor) -> Tensor | float:
        """(n, 1) the norm of mu_cat, over all categories of a row.  PAPER[6]

        The paper does not define mu_cat. Line 7 adds the gradient to mu_cat, the equation adds it to log pi; mu_cat is
        therefore read as log pi, the posterior's log probabilities. "norm_pi" takes the probabilities instead.
        """
        if self.cat_scale == "lambda":
            return 1.0
        mu_cat = log_pi if self.cat_scale == "norm" else log_pi.exp()
        norm: Tensor = mu_cat.norm(dim=1, keepdim=True)
        return norm

    def gradients(self, x_t: Tensor, t: int, x: Tensor, goals: Goals) -> Gradients:
        """The denoised rows x_0 and the guided directions, lines 3 and 4.

        eqn:cont_guided: g_num = unit(grad log p(y | f_dn(x_t))) - proximity * unit(grad d(x, f_dn(x_t)));
        eqn:cls_taylor: g_cat is the gradient of log p(y | f_dn(x_t)) with respect to x_t ("through" the denoiser) or to
        f_dn(x_t) ("denoised"), or that of log p(y | x_t) ("noisy").
        """
        task = task_of(self)
        space, diffusion, guide = task.space, task.diffusion, task.require_guide("Algorithm 1")
        with torch.enable_grad():
            at = x_t.detach().requires_grad_()
            if self.through_denoiser:
                x_0 = diffusion.denoise(at, t)
            else:
                with torch.no_grad():
                    estimate = diffusion.denoise(at, t)
                x_0 = estimate + (at - at.detach())
            log_p = -goals.loss(guide(x_0)).sum()
            distance = (x_0 - x)[:, : space.num].square().sum()
            g_log_p, g_x_0 = torch.autograd.grad(log_p, [at, x_0], retain_graph=True)
            weighs = space.num and self.proximity
            g_distance = torch.autograd.grad(distance, at)[0] if weighs else torch.zeros_like(at)
            g_cat = g_log_p if self.cat_gradient == "through" else g_x_0
            if self.cat_gradient == "noisy":
                g_cat = torch.autograd.grad(-goals.loss(guide(at)).sum(), at)[0]
        g_num = self.guidance * unit(g_log_p[:, : space.num]) - self.proximity * unit(g_distance[:, : space.num])
        return Gradients(x_0.detach(), g_num, g_cat[:, space.num :])


@dataclass(frozen=True)
class GuidedLiteral(Guided):
    """Algorithm 1 to the letter: every one of the T steps from pure noise, without a distance term and without noise in
    the loop, g_cat at the noisy vector, the soft vector in Bayes' rule, and x_t in line 8."""

    start: float = 1.0  # share of T at which the walk begins: T itself  PAPER[7]
    steps: int | None = None  # all of them
    guidance: float = 1.0  # weight of the classifier's gradient: lines 6 and 7 have none
    tau: tuple[float, float] | None = None  # temperature of line 1: as in training  PAPER[8]
    cat_guidance: float = 1.0  # lambda: only the equation has it  PAPER[6]
    proximity: float = 0.0  # weight of the distance term: line 3 has none  PAPER[3]
    sigma: Literal["variance", "deviation"] = "variance"  # what line 6 takes for Sigma: the covariance  PAPER[6]
    cat_scale: Literal["lambda", "norm", "norm_pi"] = "norm"  # of g_cat: the norm of mu_cat  PAPER[6]
    cat_gradient: Literal["through", "denoised", "noisy"] = "noisy"  # what g_cat is the gradient of: line 4  PAPER[5]
    blend: Literal["noised", "exact", "x_t"] = "x_t"  # values of immutable features during the walk: line 8  PAPER[2]
    loop_noise: bool = False  # noise in every step but the last: lines 6 and 7 have none  PAPER[4]
    soft_posterior: bool = True  # Bayes' rule takes the relaxed vector itself  PAPER[17]
    noise_length: float = INDEPENDENT  # no two rows share the noise of line 1


GUIDED, GUIDED_LITERAL = Guided(), GuidedLiteral()


class Gradients(NamedTuple):
    """The result of `Guided.gradients`."""

    x_0: Tensor  # (n, width) f_dn(x_t)
    num: Tensor  # (n, num)
    cat: Tensor  # (n, cat)


def last_of(walk: Walk) -> Tensor:
    """Run a walk to its end and return the result."""
    while True:
        try:
            next(walk)
        except StopIteration as end:
            x_cf: Tensor = end.value
            return x_cf


def unit(gradient: Tensor) -> Tensor:
    """Each row divided by its norm; a zero gradient stays zero."""
    length: Tensor = gradient.norm(dim=1, keepdim=True)
    return gradient / length.clamp_min(1e-12)
