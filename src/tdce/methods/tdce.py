"""TDCE, the method that users get: the paper's diffusion, guided at its denoised estimate.

A ladder of short walks, each from a little more noise, takes every row to the target class; what is left over starts
from real rows of that class; then each row comes back as near to the person as the verdict and `closeness` allow.
docs/method.md has the reasons and the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from tdce.diffusion.multinomial import TINY
from tdce.errors import MOST
from tdce.goal import Goals
from tdce.limits import Reach
from tdce.methods.algorithm1 import unit
from tdce.methods.interface import Query, Search, Talk, Task, Watch, task_of, unwatched
from tdce.methods.neighbours import Typical, nearest_accepted
from tdce.methods.pullback import cheapest_first, coarse, come_back
from tdce.methods.settings import LEAST, check
from tdce.noise import Noise
from tdce.products import even

CANDIDATES = 256  # real rows that are tried for a query on the last rung, nearest first
PUSHES = 3  # of the numbers, once the categories are settled
LEAST_SHARE = 1e-3  # of a category that no neighbour has
PREFERENCE = 2.0  # how unequal the features are to a second or later option
GROWTH = 3.0  # of the strength, from rung to rung
AIM = 0.7  # of the way from the typical row to the query, at most: an aim further on makes no nearer answers


@dataclass(frozen=True)
class TDCE:
    """Aim, climb, start from real rows where that failed, come back."""

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = True
    has_dial: ClassVar[bool] = True
    closeness: float = 0.9  # the dial: 0 is typical of the target class, 1 as close as possible
    confidence: float = 0.75  # the target's probability that a walk is guided to
    ladder: tuple[float, ...] = (0.3, 0.6, 0.9)  # start levels; only rows not yet valid go on
    steps: int = 6  # strides of a walk
    guidance: float = 0.15  # length of a step of the numbers along the unit gradient, in deviations
    cat_guidance: float = 10.0  # weight of the gradient in the logits of the categories
    pull: float = 0.8  # share of the way to the aim that the estimate is drawn at every stride
    neighbours: int = 100  # real rows of the target class that make the typical row around a query
    own_share: float = 0.0  # share of the query's own value in its numbers, where they do not tell the classes apart
    factors: int | None = None  # main directions of the class in which typical rows differ fully; None: all
    spread: float = 1.0  # how far the typical rows' numbers are stretched: averaging draws them together
    length: float = 1.0  # of the noise field: rows much closer than this get nearly the same noise
    task_: Task | None = field(default=None, repr=False)
    watch_: Watch = field(default=unwatched, repr=False)

    def __post_init__(self) -> None:
        check(
            self, closeness=(0, 1), confidence=(0, 1), ladder=(LEAST, 1), steps=(1, 10_000), guidance=(0, 1e3),
            cat_guidance=(0, 1e3), pull=(0, 1), neighbours=(1, MOST), own_share=(0, 1), factors=(1, MOST),
            spread=(0, 1e3), length=(LEAST, 1e6),
        )  # fmt: skip

    def fit(self, task: Task) -> Self:
        task.lead("tdce")
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        closeness = self.closeness if query.closeness is None else query.closeness
        likes = self.likes(query, noise) if query.option else None  # a later option starts nearer the query
        aim_share = min(2 * closeness, 1.0 if query.option else AIM)  # first the dial moves the aim,
        back_share = max(2 * closeness - AIM, 0.0) / (2 - AIM)  # then it says how far to come back
        x_cf, left = yield from self.climb(query, self.aim(query, aim_share, noise, likes), noise)
        x_cf = yield from self.last_rung(query, x_cf, left, noise)
        if back_share == 0:
            return x_cf
        task = task_of(self)

        def turns(x_cf: Tensor) -> Tensor:
            if likes is None:
                return cheapest_first(query, task.space, task.lead("tdce"), x_cf)
            return likes.argsort(dim=1, stable=True)  # what is liked least goes back first

        return (yield from come_back(query, task.space, x_cf, back_share, turns))

    def likes(self, query: Query, noise: Noise) -> Tensor:
        """(n, features) how much an option likes to change each feature: random, and less if earlier options did."""
        return noise.normal(len(task_of(self).space.members)) - query.changed.clamp(max=1.0)

    def aim(self, query: Query, share: float, noise: Noise, likes: Tensor | None = None) -> Aim:
        """Where the estimate is drawn to: `share` of the way from the typical row of what is wanted to the query; to
        the query itself if there are no real rows."""
        task, x = task_of(self), query.x
        if share < 1 and task.has_rows:
            typical = Typical(self.neighbours, self.confidence, self.own_share, self.factors, self.spread)
            u = noise.field(2 + len(self.ladder), self.length).uniform(1)
            x = torch.lerp(typical.rows(task, x, query.goals, u), x, share)
        return self.aimed(x, query.reach, likes)

    def aimed(self, x: Tensor, reach: Reach, likes: Tensor | None = None) -> Aim:
        """An aim at these numbers and shares of the categories, as far as the rows may go."""
        space = task_of(self).space
        num, prior = space.split(x)
        likes = torch.zeros(len(num), len(space.members)) if likes is None else likes
        weight = (PREFERENCE * likes).exp()[:, space.owner]
        log_prior = torch.where(reach.allowed, prior.clamp_min(LEAST_SHARE), TINY).log()
        return Aim(num.clamp(reach.low, reach.high), log_prior, reach.low, reach.high, weight)

    def climb(self, query: Query, aim: Aim, noise: Noise) -> Talk[tuple[Tensor, Tensor]]:
        """Walk from each rung in turn with more strength than from the one before; a row stays where it is valid.

        With the rows, (n,) which of them are not."""
        x_cf, left = query.x, torch.ones(len(query.x), dtype=torch.bool)
        for rung, start in enumerate(self.ladder):
            if not left.any():
                break
            at = even(left.nonzero().squeeze(1))
            field = noise.field(1 + rung, self.length, at)
            walked = self.walk(query.x[at], query.goals.take(at), aim.take(at), field, start, GROWTH**rung)
            judged = yield query.ask(coarse(task_of(self).space, query.x[at], walked), at)
            x_cf = x_cf.index_copy(0, at, judged.x[:, 0])
            left = left.index_copy(0, at, ~judged.met[:, 0])
        return x_cf, left

    def last_rung(self, query: Query, x_cf: Tensor, left: Tensor, noise: Noise) -> Search:
        """Where no walk arrived: the nearest real row that the model accepts with the immutable features put in, then
        noised and denoised if the verdict allows it, so that nobody's record is given away."""
        task = task_of(self)
        if not left.any() or not task.has_rows:
            return x_cf
        at = even(left.nonzero().squeeze(1))
        x, goals = query.x[at], query.goals.take(at)
        rows = nearest_accepted(task, x, goals, CANDIDATES)
        judged = yield query.ask(coarse(task.space, x[:, None], rows), at)
        first = judged.met.int().argmax(dim=1)  # the nearest of those that are met
        x_cf = x_cf.index_copy(0, at, torch.where(judged.met.any(dim=1)[:, None], judged.row(first), x_cf[at]))
        field = noise.field(1 + len(self.ladder), self.length, at)
        aim = self.aimed(x_cf, query.reach).take(at)
        walked = self.walk(x_cf[at], goals, aim, field, self.ladder[0], 1.0)
        fresh = yield query.ask(coarse(task.space, x, walked), at)
        return x_cf.index_copy(0, at, torch.where(fresh.met, fresh.x[:, 0], x_cf[at]))

    def walk(self, x: Tensor, goals: Goals, aim: Aim, noise: Noise, start: float, strength: float) -> Tensor:
        """Noise the aim to the start level, then stride back, each time with a guided estimate of the clean row."""
        task = task_of(self)
        space, diffusion, mutable = task.space, task.diffusion, task.mutable
        strides = diffusion.schedule.walk(start, self.steps)
        x_t = space.join(aim.num, space.split(x)[1])
        x_t = diffusion.noised(x_t, strides[0][0], noise) if strides else x_t  # none: the start rounds to nothing
        for t, s in strides:
            x_0 = self.guided(diffusion.denoised(x_t, t), goals, aim, strength)
            self.watch_(t, x_t, x_0)
            x_t = diffusion.stride(x_t, torch.where(mutable, x_0, x), t, s, noise)
        num, cat = space.split(x_t)
        x_cf = torch.where(mutable, space.join(num, space.one_hot(cat)), x)
        for _ in range(PUSHES):
            x_cf = self.pushed(x_cf, goals, aim, strength)
        self.watch_(0, x_cf, x_cf)
        return x_cf

    def guided(self, x_0: Tensor, goals: Goals, aim: Aim, strength: float) -> Tensor:
        """The denoised estimate drawn towards the aim, then moved along the guide's gradient."""
        space = task_of(self).space
        num, cat = space.split(x_0)
        logits = cat.clamp_min(TINY).log()
        num, logits = torch.lerp(num, aim.num, self.pull), torch.lerp(logits, aim.log_prior, self.pull)
        g_num, g_cat = space.split(strength * self.gradient(space.join(num, space.softmax(logits)), goals, aim))
        num = (num + self.guidance * g_num).clamp(aim.low, aim.high)
        return space.join(num, space.softmax(logits + self.cat_guidance * g_cat))

    def pushed(self, x_cf: Tensor, goals: Goals, aim: Aim, strength: float) -> Tensor:
        """The numbers moved along the gradient, as far as they may go."""
        space = task_of(self).space
        num, cat = space.split(x_cf)
        num = num + self.guidance * strength * space.split(self.gradient(x_cf, goals, aim))[0]
        return torch.where(task_of(self).mutable, space.join(num.clamp(aim.low, aim.high), cat), x_cf)

    def gradient(self, x: Tensor, goals: Goals, aim: Aim) -> Tensor:
        """The gradient of the log chance, its numbers as a unit vector over those that can follow it, times how much is
        needed: 0 for a confident row."""
        task = task_of(self)
        space, guide = task.space, task.lead("tdce")
        with torch.enable_grad():
            at = x.detach().requires_grad_()
            log_chance = -goals.loss(guide(at))
            (g,) = torch.autograd.grad(log_chance.sum(), at)
        g_num, g_cat = space.split(torch.where(task.mutable, g * aim.weight, 0.0))
        num, _ = space.split(x)
        stuck = ((num <= aim.low) & (g_num < 0)) | ((num >= aim.high) & (g_num > 0))
        g_num = torch.where(stuck, 0.0, g_num)
        needed = (1 - log_chance.detach().exp() / goals.enough(self.confidence)).clamp_min(0.0)
        return needed[:, None] * space.join(unit(g_num), g_cat)


class Aim(NamedTuple):
    num: Tensor  # (n, num)
    log_prior: Tensor  # (n, cat) of the categories
    low: Tensor  # (n, num) and no further
    high: Tensor
    weight: Tensor  # (n, width) of the gradient: which features an option likes to change

    def take(self, at: Tensor) -> Aim:
        return Aim(*(each[at] for each in self))
