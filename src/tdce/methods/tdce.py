"""TDCE, the method that users get: the paper's diffusion, guided at its denoised estimate.

A ladder of short walks, each from a little more noise, takes every row to the target class; what is left over starts
from real rows of that class; then each row comes back as near to the person as the verdict and `closeness` allow.
docs/method.md has the reasons and the measurements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from tdce.diffusion.multinomial import TINY
from tdce.errors import MOST
from tdce.limits import Reach
from tdce.methods.algorithm1 import unit
from tdce.methods.base import Task, Watch, padded, unwatched
from tdce.methods.neighbours import Typical, nearest
from tdce.methods.pullback import come_back, restore
from tdce.methods.settings import LEAST, check
from tdce.noise import Noise

CANDIDATES = 256  # real rows that are tried for a query on the last rung, nearest first
PUSHES = 3  # of the numbers, once the categories are settled
LEAST_SHARE = 1e-3  # of a category that no neighbour has
TASTE = 2.0  # how unequal the features are to a second or later option
GROWTH = 3.0  # of the strength, from rung to rung
AIM = 0.7  # of the way from the typical row to the query, at most: an aim further on makes no nearer answers


@dataclass(frozen=True)
class TDCE:
    """Aim, climb, start from real rows where that failed, come back."""

    edition: ClassVar[int] = 1  # raised when its answers change
    closeness: float = 0.9  # the dial: 0 is typical of the target class, 1 as close as possible
    confidence: float = 0.75  # the target's probability that a walk is guided to
    ladder: tuple[float, ...] = (0.3, 0.6, 0.9)  # start levels; only rows not yet valid go on
    steps: int = 6  # strides of a walk
    guidance: float = 0.15  # length of a step of the numbers along the unit gradient, in deviations
    sway: float = 10.0  # weight of the gradient in the logits of the categories
    pull: float = 0.8  # share of the way to the aim that the estimate is drawn at every stride
    neighbours: int = 100  # real rows of the target class that make the typical row around a query
    keep: float = 0.0  # share of the query's own value in its numbers, where they do not tell the classes apart
    factors: int | None = None  # main directions of the class in which typical rows differ fully; None: all
    spread: float = 1.0  # how far the typical rows' numbers are stretched: averaging draws them together
    length: float = 1.0  # of the noise field: rows much closer than this get nearly the same noise
    task_: Task | None = field(default=None, repr=False)
    reach_: Reach | None = field(default=None, repr=False)
    changed_: Tensor | None = field(default=None, repr=False)
    watch_: Watch = field(default=unwatched, repr=False)

    def __post_init__(self) -> None:
        check(
            self, closeness=(0, 1), confidence=(0, 1), ladder=(LEAST, 1), steps=(1, 10_000), guidance=(0, 1e3),
            sway=(0, 1e3), pull=(0, 1), neighbours=(1, MOST), keep=(0, 1), factors=(1, MOST), spread=(0, 1e3),
            length=(LEAST, 1e6),
        )  # fmt: skip

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def generate(self, x: Tensor, target: Tensor, noise: Noise) -> Tensor:
        taste = self.taste(noise) if noise.key[1] else None  # a later option has its own, and starts nearer the query
        aim_share = min(2 * self.closeness, AIM if taste is None else 1.0)  # first the dial moves the aim,
        back_share = max(2 * self.closeness - AIM, 0.0) / (2 - AIM)  # then it says how far to come back
        x_cf = self.climb(x, target, self.aim(x, target, aim_share, noise, taste), noise)
        x_cf = self.last_rung(x, target, x_cf, noise)
        return come_back(self.task, x, x_cf, target, back_share, taste) if back_share else x_cf

    def taste(self, noise: Noise) -> Tensor:
        """(n, features) which features an option likes to change: at random, and less so where it was done before."""
        like = noise.normal(len(self.task.space.members))
        return like if self.changed_ is None else like - self.changed_.clamp(max=1.0)

    def aim(self, x: Tensor, target: Tensor, share: float, noise: Noise, taste: Tensor | None = None) -> Aim:
        """Where the estimate is drawn to: `share` of the way from the typical row of the target class to the query; to
        the query itself where there are no real rows to know the typical one by."""
        if share < 1 and self.task.has_rows:
            typical = Typical(self.neighbours, self.confidence, self.keep, self.factors, self.spread)
            u = noise.field(2 + len(self.ladder), self.length).uniform(1)
            x = torch.lerp(typical.rows(self.task, x, target, u), x, share)
        num, prior = self.task.space.split(x)
        return self.aimed(num, prior, taste)

    def aimed(self, num: Tensor, prior: Tensor, taste: Tensor | None = None) -> Aim:
        """An aim at these numbers and shares of the categories, as far as the rows may go."""
        like = torch.zeros(len(num), len(self.task.space.members)) if taste is None else taste
        weight = (TASTE * like).exp()[:, self.task.space.owner]
        low, high, allowed = self.reach_ or Reach.whole(self.task.diffusion.low, self.task.diffusion.high, prior)
        log_prior = torch.where(allowed, prior.clamp_min(LEAST_SHARE), TINY).log()
        return Aim(num.clamp(low, high), log_prior, low, high, weight)

    def climb(self, x: Tensor, target: Tensor, aim: Aim, noise: Noise) -> Tensor:
        """Walk from each rung in turn with more strength than from the one before; a row stays where it is valid."""
        x_cf = x
        for rung, start in enumerate(self.ladder):
            left = ~self.task.accepts(x_cf, target)
            if not left.any():
                break
            at = padded(left.nonzero().squeeze(1))
            field = noise.field(1 + rung, self.length, at)
            walked = self.walk(x[at], target[at], aim.take(at), field, start, GROWTH**rung)
            x_cf = torch.where(left[:, None], restore(self.task, x, x_cf.index_copy(0, at, walked)), x_cf)
        return x_cf

    def last_rung(self, x: Tensor, target: Tensor, x_cf: Tensor, noise: Noise) -> Tensor:
        """Where no walk arrived: the nearest real row that the model accepts with the immutable features put in, then
        noised and denoised where the verdict allows it, so that nobody's record is handed out."""
        task, left = self.task, ~self.task.accepts(x_cf, target)
        if not left.any() or not task.has_rows:
            return x_cf
        at = padded(left.nonzero().squeeze(1))
        rows, known = nearest(task, x[at], target[at], CANDIDATES)
        waiting = left
        for j in range(int(known.max())):
            candidate = restore(task, x, x_cf.index_copy(0, at, rows[:, j]))
            found = waiting & task.accepts(candidate, target)
            x_cf, waiting = torch.where(found[:, None], candidate, x_cf), waiting & ~found
            if not waiting.any():
                break
        field = noise.field(1 + len(self.ladder), self.length, at)
        walked = self.walk(
            x_cf[at], target[at], self.aimed(*task.space.split(x_cf)).take(at), field, self.ladder[0], 1.0
        )
        fresh = restore(task, x, x_cf.index_copy(0, at, walked))
        return torch.where((left & task.accepts(fresh, target))[:, None], fresh, x_cf)

    def walk(self, x: Tensor, target: Tensor, aim: Aim, noise: Noise, start: float, strength: float) -> Tensor:
        """Noise the aim to the start level, then stride back, each time with a guided estimate of the clean row."""
        space, diffusion, mutable = self.task.space, self.task.diffusion, self.task.mutable
        strides = diffusion.schedule.walk(start, self.steps)
        x_t = space.join(aim.num, space.split(x)[1])
        x_t = diffusion.noised(x_t, strides[0][0], noise) if strides else x_t  # none: the start rounds to nothing
        for t, s in strides:
            x_0 = self.guided(diffusion.denoised(x_t, t), target, aim, strength)
            self.watch_(t, x_t, x_0)
            x_t = diffusion.stride(x_t, torch.where(mutable, x_0, x), t, s, noise)
        num, cat = space.split(x_t)
        x_cf = torch.where(mutable, space.join(num, space.one_hot(cat)), x)
        for _ in range(PUSHES):
            x_cf = self.pushed(x_cf, target, aim, strength)
        self.watch_(0, x_cf, x_cf)
        return x_cf

    def guided(self, x_0: Tensor, target: Tensor, aim: Aim, strength: float) -> Tensor:
        """The denoised estimate drawn towards the aim, then moved along the classifier's gradient."""
        space = self.task.space
        num, cat = space.split(x_0)
        logits = cat.clamp_min(TINY).log()
        num, logits = torch.lerp(num, aim.num, self.pull), torch.lerp(logits, aim.log_prior, self.pull)
        g_num, g_cat = space.split(strength * self.gradient(space.join(num, space.softmax(logits)), target, aim))
        num = (num + self.guidance * g_num).clamp(aim.low, aim.high)
        return space.join(num, space.softmax(logits + self.sway * g_cat))

    def pushed(self, x_cf: Tensor, target: Tensor, aim: Aim, strength: float) -> Tensor:
        """The numbers moved along the gradient, as far as they may go."""
        space = self.task.space
        num, cat = space.split(x_cf)
        num = num + self.guidance * strength * space.split(self.gradient(x_cf, target, aim))[0]
        return torch.where(self.task.mutable, space.join(num.clamp(aim.low, aim.high), cat), x_cf)

    def gradient(self, x: Tensor, target: Tensor, aim: Aim) -> Tensor:
        """Of log p(target), the numbers' part as a unit vector over those that can follow it, times how much is needed:
        0 for a confident row."""
        space, threshold = self.task.space, self.task.threshold or 0.0
        goal = max(self.confidence, threshold + 0.1 * (1 - threshold))
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            log_p = self.task.classifier(at).log_softmax(dim=1).gather(1, target[:, None])
            (g,) = torch.autograd.grad(log_p.sum(), at)
        g_num, g_cat = space.split(torch.where(self.task.mutable, g * aim.weight, 0.0))
        num, _ = space.split(x)
        stuck = ((num <= aim.low) & (g_num < 0)) | ((num >= aim.high) & (g_num > 0))
        g_num = torch.where(stuck, 0.0, g_num)
        return (1 - log_p.detach().exp() / goal).clamp_min(0.0) * space.join(unit(g_num), g_cat)

    @property
    def task(self) -> Task:
        assert self.task_ is not None, "call fit first"
        return self.task_

    def closer(self, closeness: float) -> Self:
        return replace(self, closeness=closeness)

    def within(self, settle: Callable[[Tensor], Tensor], reach: Reach, changed: Tensor) -> Self:
        """The same for one block of rows: walking within their reach, judging each as `settle` would return it, knowing
        how often the options before changed which feature (n, features)."""
        return replace(self, task_=replace(self.task, settle=settle), reach_=reach, changed_=changed)


class Aim(NamedTuple):
    num: Tensor  # (n, num)
    log_prior: Tensor  # (n, cat) of the categories
    low: Tensor  # (n, num) and no further
    high: Tensor
    weight: Tensor  # (n, width) of the gradient: which features an option likes to change

    def take(self, at: Tensor) -> Aim:
        return Aim(*(each[at] for each in self))
