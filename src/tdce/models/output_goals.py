"""Goals beyond the most probable class: numbers in a range, a model's own decision, several outputs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from tdce._core import InputError, check_number, check_optional
from tdce.models.goals import STANDOFF, Class, Goal, Not, TargetPart, logit
from tdce.models.outputs import Output


@dataclass(frozen=True)
class Range:
    """A predicted number from `low` to `high`, either of which may be left out: `Range(620, 680)`, `Range(high=8)`."""

    nearer: ClassVar[str] = "nears_prediction"
    shows: ClassVar[str] = "prediction"
    low: float | None = None
    high: float | None = None
    output: Output = Output()  # what it is about; known when it is asked for
    up: bool = True  # whether the way there is upwards; known when the row is

    def __post_init__(self) -> None:
        check_optional("low", self.low, check_number, -inf, inf)
        check_optional("high", self.high, check_number, -inf, inf)
        if self.low is None and self.high is None:
            raise InputError("Range() allows any number; give low, high or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InputError(f"low is {self.low:g} and high {self.high:g}; low must be at most high")

    @property
    def of(self) -> int:
        return 0

    @property
    def family(self) -> Range:
        """A quarter of all people meet it."""
        low, high = self.output.edges[-1], self.output.edges[0]
        return replace(self, low=low if self.up else None, high=None if self.up else high)

    def numbered(self, number_of: Callable[[Any], int]) -> Self:
        return self

    def wanted(self, classes: Sequence[Any]) -> Any:
        name = f"{classes[0]} " if classes[0] else ""
        if self.low is None or self.high is None:
            return f"{name}at least {self.low:,.10g}" if self.high is None else f"{name}at most {self.high:,.10g}"
        return f"{name}{self.low:,.10g} to {self.high:,.10g}"

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        kind = "at_least" if self.high is None else "at_most" if self.low is None else "range"
        return (TargetPart(kind, classes[0] or None, self.low, self.high),)

    def met(self, p: Tensor) -> Tensor:
        low, high = self._ends
        return (p[:, 0] >= low) & (p[:, 0] <= high)

    def beyond(self, p: Tensor) -> Tensor:
        low, high = self._ends
        return torch.minimum(p[:, 0] - low, high - p[:, 0]) / self.output.spread

    def gap(self, logits: Tensor) -> Tensor:
        return self.beyond(logits)

    def loss(self, logits: Tensor) -> Tensor:
        return (-self.beyond(logits)).clamp_min(0.0)

    def chance(self, p: Tensor) -> Tensor:
        return (-self.loss(p)).exp()

    def shown(self, p: Tensor) -> Tensor:
        return p[:, 0]

    def towards(self, p: Tensor) -> Tensor:
        return self.output.group(p[:, :1].clamp(*self._ends))

    @property
    def _ends(self) -> tuple[float, float]:
        return (-inf if self.low is None else self.low), (inf if self.high is None else self.high)


@dataclass(frozen=True)
class Change:
    """A predicted number that is higher (or, if negative, lower) than the row's own: by at least an amount,
    `Change(500)`, or a share of it, `Change(share=-0.1)`."""

    by: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.by is None) == (self.share is None):
            raise InputError("Change needs an amount, Change(500), or a share, Change(share=-0.1)")
        for name in ("by", "share"):
            if check_optional(name, getattr(self, name), check_number, -inf, inf) == 0:
                raise InputError(f"{name} is 0; give how much the prediction is to rise, or to fall if negative")

    def range(self, now: float) -> Range:
        """Of a row whose prediction is `now`."""
        by = self.by if self.share is None else self.share * abs(now)
        assert by is not None
        return Range(low=now + by) if by > 0 else Range(high=now + by)


@dataclass(frozen=True)
class ModelDecides:
    """A class, or any other one, by what the model says itself, whatever its probabilities are."""

    goal: Class  # or Not
    output: Output

    @property
    def nearer(self) -> str:
        return self.goal.nearer

    @property
    def shows(self) -> str:
        return self.goal.shows

    @property
    def of(self) -> Any:
        return self.goal.of

    @property
    def family(self) -> Self:
        return self

    def numbered(self, number_of: Callable[[Any], int]) -> Self:
        return replace(self, goal=self.goal.numbered(number_of))

    def wanted(self, classes: Sequence[Any]) -> Any:
        return self.goal.wanted(classes)

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        return self.goal.asks(classes)

    def met(self, p: Tensor) -> Tensor:
        said = p[:, len(self.output.classes) + self.goal.of] > 0.5
        return ~said if isinstance(self.goal, Not) else said

    def beyond(self, p: Tensor) -> Tensor:
        """By probabilities, from where the model seems to turn."""
        away = self.gap(p[:, : len(self.output.classes)].log())
        return torch.where(self.met(p), away.clamp_min(0.0), away.clamp(max=-STANDOFF))

    def gap(self, logits: Tensor) -> Tensor:
        shift = logit(self.output.border) if len(self.output.classes) == 2 else 0.0
        return self.goal.gap(logits) - (shift if (self.goal.of == 1) != isinstance(self.goal, Not) else -shift)

    def loss(self, logits: Tensor) -> Tensor:
        return self.goal.loss(logits[:, : len(self.output.classes)])

    def chance(self, p: Tensor) -> Tensor:
        return self.goal.chance(p[:, : len(self.output.classes)])

    def shown(self, p: Tensor) -> Tensor:
        return self.goal.shown(p[:, : len(self.output.classes)])

    def towards(self, p: Tensor) -> Tensor:
        return self.goal.towards(p[:, : len(self.output.classes)])


@dataclass(frozen=True)
class AllGoals:
    """Goals about several outputs, each about its own columns of the scores; the first one is shown."""

    parts: tuple[tuple[Goal, int, int], ...]  # a goal, its first column and the one after its last
    first: Output

    @property
    def nearer(self) -> str:
        return "nears_all"

    @property
    def shows(self) -> str:
        return self.parts[0][0].shows

    @property
    def of(self) -> Any:
        return self.parts[0][0].of

    @property
    def family(self) -> AllGoals:
        return replace(self, parts=tuple((goal.family, start, stop) for goal, start, stop in self.parts))

    def numbered(self, number_of: Callable[[Any], int]) -> Self:
        return self

    def wanted(self, classes: Sequence[Any]) -> Any:
        return " and ".join(str(goal.wanted(classes[start:stop])) for goal, start, stop in self.parts)

    def asks(self, classes: Sequence[Any]) -> tuple[TargetPart, ...]:
        return tuple(each for goal, start, stop in self.parts for each in goal.asks(classes[start:stop]))

    def met(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.met(p), p)).all(dim=0)

    def beyond(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.beyond(p), p)).amin(dim=0)

    def gap(self, logits: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, logits: goal.gap(logits), logits)).amin(dim=0)

    def loss(self, logits: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, logits: goal.loss(logits), logits)).sum(dim=0)

    def chance(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.chance(p), p)).prod(dim=0)

    def shown(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.shown(p), p)[0]

    def towards(self, p: Tensor) -> Tensor:
        """The group of the first output: the one that is wanted, or the row's own."""
        goal, start, stop = self.parts[0]
        return goal.towards(p[:, start:stop]) if start == 0 else self.first.group(p)

    def _each(self, function: Callable[[Goal, Tensor], Tensor], p: Tensor) -> list[Tensor]:
        return [function(goal, p[:, start:stop]) for goal, start, stop in self.parts]
