"""What is wanted of the model: a class, a class with at least some probability, any other class, a band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import torch
from torch import Tensor

from tdce._core import InputError, check_number

STANDOFF = 1e-6
"""A probability counts only this far beyond the border, so that another machine's last bits change no verdict."""

INNER = 0.25  # share of a band, at either end, in which a guide does not stop yet


class TargetPart(NamedTuple):
    """What is wanted of one output."""

    kind: str  # class, not, between, at_least, at_most or range
    of: Any = None  # the class, or the name of the number
    low: float | None = None  # a probability or a number
    high: float | None = None


class Goal(Protocol):
    """One goal for many rows: `p` are their probabilities, `logits` their logits or log probabilities, (n, classes).

    `of` is a class: the user's label, or, after `numbered`, its number.
    """

    @property
    def nearer(self) -> str: ...  # what a good change does; part of a message's key
    @property
    def shows(self) -> str: ...  # what its score is: a probability or a prediction
    @property
    def of(self) -> Any: ...

    @property
    def family(self) -> Goal:
        """A goal that the same changes lead to, and that many goals may share."""

    def numbered(self, number_of: Callable[[Any], int]) -> Goal:
        """The same goal by the number of its class."""

    def wanted(self, classes: Sequence[Any]) -> Any:
        """What people read: the class, or words."""

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        """The same, for whoever puts it into words: one of each output that it is about."""

    def met(self, p: Tensor) -> Tensor:
        """(n,) whether the model's answer is what is wanted."""

    def beyond(self, p: Tensor) -> Tensor:
        """(n,) how far beyond the border: in log odds, or in deviations of a number."""

    def gap(self, logits: Tensor) -> Tensor:
        """(n,) the same of logits; differentiable."""

    def loss(self, logits: Tensor) -> Tensor:
        """(n,) -log of the chance; differentiable."""

    def chance(self, p: Tensor) -> Tensor:
        """(n,) from 0 to 1, higher is nearer: usually the probability of what is wanted."""

    def shown(self, p: Tensor) -> Tensor:
        """(n,) the probability that people read as the score."""

    def towards(self, p: Tensor) -> Tensor:
        """(n,) the number of the class that leads there."""


@dataclass(frozen=True)
class Class:
    """The most probable class."""

    nearer: ClassVar[str] = "raises_probability"
    shows: ClassVar[str] = "probability"
    of: Any

    @property
    def family(self) -> Self:
        return self

    def numbered(self, number_of: Callable[[Any], int]) -> Self:
        return replace(self, of=number_of(self.of))

    def wanted(self, classes: Sequence[Any]) -> Any:
        return classes[self.of]

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        return (TargetPart("class", classes[self.of]),)

    def met(self, p: Tensor) -> Tensor:
        return p[:, self.of] >= others(p, self.of).amax(dim=1) + 2 * STANDOFF  # of two classes: 1/2 + STANDOFF

    def beyond(self, p: Tensor) -> Tensor:
        return self.gap(p.log())

    def gap(self, logits: Tensor) -> Tensor:
        return logits[:, self.of] - others(logits, self.of).amax(dim=1)

    def loss(self, logits: Tensor) -> Tensor:
        return -logits.log_softmax(dim=1)[:, self.of]

    def chance(self, p: Tensor) -> Tensor:
        return self.shown(p)

    def shown(self, p: Tensor) -> Tensor:
        return p[:, self.of]

    def towards(self, p: Tensor) -> Tensor:
        return torch.full((len(p),), self.of)


@dataclass(frozen=True)
class AtLeast(Class):
    """A class with at least this probability."""

    p: float

    def __post_init__(self) -> None:
        check_number("threshold", self.p, 0, 1 - 2 * STANDOFF, above=True)

    def met(self, p: Tensor) -> Tensor:
        return p[:, self.of] >= self.p + STANDOFF

    def gap(self, logits: Tensor) -> Tensor:
        return log_odds(logits, self.of) - logit(self.p)


@dataclass(frozen=True)
class Not(Class):
    """Any class except this one."""

    def wanted(self, classes: Sequence[Any]) -> Any:
        return f"anything but {classes[self.of]}"

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        return (TargetPart("not", classes[self.of]),)

    def met(self, p: Tensor) -> Tensor:
        return others(p, self.of).amax(dim=1) >= p[:, self.of] + 2 * STANDOFF

    def gap(self, logits: Tensor) -> Tensor:
        return -super().gap(logits)

    def loss(self, logits: Tensor) -> Tensor:
        return logits.logsumexp(dim=1) - others(logits, self.of).logsumexp(dim=1)

    def shown(self, p: Tensor) -> Tensor:
        return others(p, self.of, 0.0).sum(dim=1)

    def towards(self, p: Tensor) -> Tensor:
        return others(p, self.of).argmax(dim=1)


@dataclass(frozen=True)
class Between(Class):
    """A class with a probability from `low` to `high`."""

    nearer: ClassVar[str] = "nears_probability"
    low: float
    high: float

    def __post_init__(self) -> None:
        check_number("low", self.low, 0, 1)
        check_number("high", self.high, 0, 1)
        if self.high - self.low < 10 * STANDOFF:
            raise InputError(f"low is {self.low:g} and high {self.high:g}; low must be below high by at least 0.00001")

    def wanted(self, classes: Sequence[Any]) -> Any:
        return f"{classes[self.of]} at {100 * self.low:g} % to {100 * self.high:g} %"

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        return (TargetPart("between", classes[self.of], self.low, self.high),)

    def met(self, p: Tensor) -> Tensor:
        low, high = (self.low + STANDOFF if self.low > 0 else 0.0), (self.high - STANDOFF if self.high < 1 else 1.0)
        return (p[:, self.of] >= low) & (p[:, self.of] <= high)

    def gap(self, logits: Tensor) -> Tensor:
        odds = log_odds(logits, self.of)
        far = torch.full_like(odds, inf)  # an end at 0 or 1 is no border
        above = odds - logit(self.low) if self.low > 0 else far
        below = logit(self.high) - odds if self.high < 1 else far
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


@dataclass(frozen=True)
class Goals:
    """One goal per row."""

    kinds: tuple[Goal, ...]  # the different ones
    which: Tensor  # (n,) the number of each row's

    @classmethod
    def of(cls, each: Sequence[Goal]) -> Self:
        """From a list with one goal per row."""
        kinds = {goal: i for i, goal in enumerate(dict.fromkeys(each))}
        return cls(tuple(kinds), torch.tensor([kinds[goal] for goal in each], dtype=torch.long))

    @classmethod
    def all(cls, goal: Goal, rows: int) -> Self:
        return cls((goal,), torch.zeros(rows, dtype=torch.long))

    def __len__(self) -> int:
        return len(self.which)

    def take(self, at: Tensor) -> Goals:
        """The goals of some of the rows."""
        return Goals(self.kinds, self.which[at])

    def goal(self, row: int) -> Goal:
        return self.kinds[int(self.which[row])]

    def groups(self) -> list[tuple[Goal, Tensor]]:
        """Each goal that any row has, and (n,) which rows have it."""
        each = [(goal, self.which == i) for i, goal in enumerate(self.kinds)]
        return [(goal, whose) for goal, whose in each if whose.any()]

    def met(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.met(p), p)

    def margin(self, p: Tensor) -> Tensor:
        """(n,) how far beyond the border: at least 0 if and only if the goal is met."""
        far = self._each(lambda goal, p: goal.beyond(p), p)
        return torch.where(self.met(p), far.clamp_min(0.0), far.clamp(max=-STANDOFF))

    def gap(self, logits: Tensor) -> Tensor:
        return self._each(lambda goal, logits: goal.gap(logits), logits)

    def loss(self, logits: Tensor) -> Tensor:
        return self._each(lambda goal, logits: goal.loss(logits), logits)

    def chance(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.chance(p), p)

    def shown(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.shown(p), p)

    def towards(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.towards(p), p)

    def _each(self, function: Callable[[Goal, Tensor], Tensor], of: Tensor) -> Tensor:
        """(n,) every row's value by its own goal."""
        if len(self.kinds) == 1:
            return function(self.kinds[0], of)
        order = self.which.argsort(stable=True)
        parts = torch.split(of[order], self.which.bincount(minlength=len(self.kinds)).tolist())
        found = [function(goal, part) for goal, part in zip(self.kinds, parts, strict=True)]
        return torch.cat(found)[order.argsort()]


def others(values: Tensor, k: int, fill: float = -inf) -> Tensor:
    """(n, classes) with `fill` in the place of class k."""
    return values.index_fill(1, torch.tensor([k]), fill)


def log_odds(logits: Tensor, k: int) -> Tensor:
    """(n,) log(p / (1 - p)) of class k."""
    return logits[:, k] - others(logits, k).logsumexp(dim=1)


def logit(p: float) -> float:
    return log(p / (1 - p))
