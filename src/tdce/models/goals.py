"""Goals about classes: a class, a class with a minimum probability, any other class, a band of probability.

A goal is mathematics only; its wording is in `goal_wording.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from math import inf, log
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from tdce._core import InputError, check_number, plain, round_scores

STANDOFF = 1e-6
"""How far a probability must be beyond the border to count, so that decisions are the same on every machine."""

INNER = 0.25  # share of a band, at each end, within which the loss still pulls inwards


class Goal(Protocol):
    """One goal for many rows.

    `p` are the model's scores of the rows, (n, columns): probabilities of classes, or predicted numbers. `logits` are
    logits or log probabilities, (n, classes).
    """

    @property
    def of(self) -> Any:
        """The class: the user's value, or, after `with_class_number`, its number."""

    @property
    def family(self) -> Goal:
        """The goal that represents its family: goals that the same changes lead to, and that share their exemplars."""

    def with_class_number(self, number_of: Callable[[Any], int]) -> Goal:
        """The same goal with the number of its class in place of the user's value."""

    def met(self, p: Tensor) -> Tensor:
        """(n,) whether the goal is met."""

    def raw_margin(self, p: Tensor) -> Tensor:
        """(n,) how far the scores are beyond the border, in log odds or in standard deviations of a number. At the
        border, its sign may disagree with `met`; `Goals.margin` corrects that."""

    def shown_margin(self, p: Tensor) -> Tensor:
        """(n,) the margin of rounded scores, the same on every machine: probabilities to six decimals, a number to six
        decimals of its standard deviation. At least 0 if and only if these meet the goal."""

    def logit_margin(self, logits: Tensor) -> Tensor:
        """(n,) the raw margin from logits; differentiable."""

    def loss(self, logits: Tensor) -> Tensor:
        """(n,) -log of the chance, from logits; differentiable."""

    def chance(self, p: Tensor) -> Tensor:
        """(n,) from 0 to 1, the nearness to the goal: usually the probability of the target."""

    def display_score(self, p: Tensor) -> Tensor:
        """(n,) the score shown to people: the probability of the target, or the prediction."""

    def target_class(self, p: Tensor) -> Tensor:
        """(n,) the number of the class, or of the group of a predicted number, whose rows are nearest to the goal."""

    @property
    def width(self) -> float:
        """Width of a band in units of the margin; infinite if the goal does not have two ends."""

    def overshot(self, p: Tensor) -> Tensor:
        """(n,) whether the scores are beyond the upper end of a band."""


@dataclass(frozen=True, repr=False)
class Class:
    """The most probable class."""

    of: Any

    def __repr__(self) -> str:
        """The expression that makes it, e.g. `AtLeast('good', 0.8)`."""
        return f"{type(self).__name__}({', '.join(repr(plain(getattr(self, each.name))) for each in fields(self))})"

    @property
    def family(self) -> Self:
        return self

    def with_class_number(self, number_of: Callable[[Any], int]) -> Self:
        return replace(self, of=number_of(self.of))

    def met(self, p: Tensor) -> Tensor:
        return p[:, self.of] >= others(p, self.of).amax(dim=1) + 2 * STANDOFF  # of two classes: 1/2 + STANDOFF

    def raw_margin(self, p: Tensor) -> Tensor:
        return self.logit_margin(p.log())

    def shown_margin(self, p: Tensor) -> Tensor:
        return signed_margin(self, round_scores(p))

    def logit_margin(self, logits: Tensor) -> Tensor:
        return logits[:, self.of] - others(logits, self.of).amax(dim=1)

    def loss(self, logits: Tensor) -> Tensor:
        return -logits.log_softmax(dim=1)[:, self.of]

    def chance(self, p: Tensor) -> Tensor:
        return self.display_score(p)

    def display_score(self, p: Tensor) -> Tensor:
        return p[:, self.of]

    def target_class(self, p: Tensor) -> Tensor:
        return torch.full((len(p),), self.of)

    @property
    def width(self) -> float:
        return inf

    def overshot(self, p: Tensor) -> Tensor:
        return torch.zeros(len(p), dtype=torch.bool)


@dataclass(frozen=True, repr=False)
class AtLeast(Class):
    """A class with at least this probability: `AtLeast("good", 0.8)`."""

    p: float

    def __post_init__(self) -> None:
        check_number("threshold", self.p, 0, 1 - 2 * STANDOFF, above=True)

    def met(self, p: Tensor) -> Tensor:
        return p[:, self.of] >= self.p + STANDOFF

    def logit_margin(self, logits: Tensor) -> Tensor:
        return log_odds(logits, self.of) - logit(self.p)


@dataclass(frozen=True, repr=False)
class Not(Class):
    """Any class except this one: `Not("bad")`."""

    def met(self, p: Tensor) -> Tensor:
        return others(p, self.of).amax(dim=1) >= p[:, self.of] + 2 * STANDOFF

    def logit_margin(self, logits: Tensor) -> Tensor:
        return -super().logit_margin(logits)

    def loss(self, logits: Tensor) -> Tensor:
        return logits.logsumexp(dim=1) - others(logits, self.of).logsumexp(dim=1)

    def display_score(self, p: Tensor) -> Tensor:
        return others(p, self.of, 0.0).sum(dim=1)

    def target_class(self, p: Tensor) -> Tensor:
        return others(p, self.of).argmax(dim=1)


@dataclass(frozen=True, repr=False)
class Between(Class):
    """A class with a probability from `low` to `high`: `Between("good", 0.4, 0.6)`."""

    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("low", self.low, 0, 1)
        check_number("high", self.high, 0, 1)
        if self.high - self.low < 10 * STANDOFF:
            raise InputError(f"low is {self.low:g} and high {self.high:g}; low must be below high by at least 0.00001")

    def met(self, p: Tensor) -> Tensor:
        low, high = (self.low + STANDOFF if self.low > 0 else 0.0), (self.high - STANDOFF if self.high < 1 else 1.0)
        return (p[:, self.of] >= low) & (p[:, self.of] <= high)

    def logit_margin(self, logits: Tensor) -> Tensor:
        odds = log_odds(logits, self.of)
        unbounded = torch.full_like(odds, inf)  # an end at 0 or 1 is not a border
        above = odds - logit(self.low) if self.low > 0 else unbounded
        below = logit(self.high) - odds if self.high < 1 else unbounded
        return torch.minimum(above, below)

    def loss(self, logits: Tensor) -> Tensor:
        total, edge = logits.logsumexp(dim=1), INNER * (self.high - self.low)
        log_p, log_q = logits[:, self.of] - total, others(logits, self.of).logsumexp(dim=1) - total
        loss = torch.zeros_like(total)
        if self.low > 0:
            loss = loss + (log(self.low + edge) - log_p).clamp_min(0.0)
        if self.high < 1:
            loss = loss + (log(1 - self.high + edge) - log_q).clamp_min(0.0)
        return loss

    def chance(self, p: Tensor) -> Tensor:
        return (-self.loss(p.log())).exp()

    @property
    def width(self) -> float:
        return logit(self.high) - logit(self.low) if self.low > 0 and self.high < 1 else inf

    def overshot(self, p: Tensor) -> Tensor:
        return p[:, self.of] > self.high


@dataclass(frozen=True)
class Goals:
    """One goal per row."""

    kinds: tuple[Goal, ...]  # the distinct goals
    which: Tensor  # (n,) the position of each row's goal in `kinds`

    @classmethod
    def of(cls, each: Sequence[Goal]) -> Self:
        """Make goals from one goal per row."""
        kinds = {goal: i for i, goal in enumerate(dict.fromkeys(each))}
        return cls(tuple(kinds), torch.tensor([kinds[goal] for goal in each], dtype=torch.long))

    @classmethod
    def all(cls, goal: Goal, rows: int) -> Self:
        """The same goal for every row."""
        return cls((goal,), torch.zeros(rows, dtype=torch.long))

    def __len__(self) -> int:
        return len(self.which)

    def take(self, at: Tensor) -> Goals:
        """The goals of some of the rows."""
        return Goals(self.kinds, self.which[at])

    def goal(self, row: int) -> Goal:
        return self.kinds[int(self.which[row])]

    def groups(self) -> list[tuple[Goal, Tensor]]:
        """Each goal that some row has, and (n,) which rows have it."""
        each = [(goal, self.which == i) for i, goal in enumerate(self.kinds)]
        return [(goal, has_goal) for goal, has_goal in each if has_goal.any()]

    def met(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.met(p), p)

    def margin(self, p: Tensor) -> Tensor:
        """(n,) how far the scores are beyond the border: at least 0 if and only if the goal is met."""
        return self._each(signed_margin, p)

    def shown_margin(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.shown_margin(p), p)

    def logit_margin(self, logits: Tensor) -> Tensor:
        return self._each(lambda goal, logits: goal.logit_margin(logits), logits)

    def loss(self, logits: Tensor) -> Tensor:
        return self._each(lambda goal, logits: goal.loss(logits), logits)

    def chance(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.chance(p), p)

    def display_score(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.display_score(p), p)

    def target_class(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.target_class(p), p)

    def overshot(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.overshot(p), p)

    @property
    def width(self) -> Tensor:
        """(n,) the width of each row's band; infinite if its goal is not a band."""
        return torch.tensor([goal.width for goal in self.kinds], dtype=torch.double)[self.which]

    def _each(self, function: Callable[[Goal, Tensor], Tensor], scores: Tensor) -> Tensor:
        """(n,) the function of each row's scores, by the row's own goal."""
        if len(self.kinds) == 1:
            return function(self.kinds[0], scores)
        order = self.which.argsort(stable=True)
        parts = torch.split(scores[order], self.which.bincount(minlength=len(self.kinds)).tolist())
        values = [function(goal, part) for goal, part in zip(self.kinds, parts, strict=True)]
        return torch.cat(values)[order.argsort()]


def signed_margin(goal: Goal, p: Tensor) -> Tensor:
    """(n,) the margin of scores (n, columns): at least 0 if and only if the goal is met."""
    raw = goal.raw_margin(p)
    return torch.where(goal.met(p), raw.clamp_min(0.0), raw.clamp(max=-STANDOFF))


def others(values: Tensor, k: int, fill: float = -inf) -> Tensor:
    """(n, classes) the values with `fill` in the column of class k."""
    return values.index_fill(1, torch.tensor([k]), fill)


def log_odds(logits: Tensor, k: int) -> Tensor:
    """(n,) log(p / (1 - p)) of class k."""
    return logits[:, k] - others(logits, k).logsumexp(dim=1)


def logit(p: float) -> float:
    """log(p / (1 - p))"""
    return log(p / (1 - p))
