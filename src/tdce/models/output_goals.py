"""Goals about other outputs: numbers in a range, a class by the model's own decision, several outputs at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Self

import torch
from torch import Tensor

from tdce._core import InputError, check_number, check_optional, plain, round_scores
from tdce.models.goals import STANDOFF, Class, Goal, Not, logit, signed_margin
from tdce.models.outputs import Output


@dataclass(frozen=True, repr=False)
class Range:
    """A predicted number from `low` to `high`, either of which may be left out: `Range(620, 680)`, `Range(high=8)`."""

    low: float | None = None
    high: float | None = None
    output: Output = field(default=Output())  # the output it is about; set when the target is resolved
    up: bool = True  # whether the prediction has to rise; set when the row is known

    def __post_init__(self) -> None:
        check_optional("low", self.low, check_number, -inf, inf)
        check_optional("high", self.high, check_number, -inf, inf)
        if self.low is None and self.high is None:
            raise InputError("Range() allows every number; give low, high or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise InputError(f"low is {self.low:g} and high {self.high:g}; low must be at most high")

    def __repr__(self) -> str:
        """The expression that makes it, e.g. `Range(620, 680)` or `Range(high=8)`."""
        low, high = plain(self.low), plain(self.high)
        if low is not None and high is not None:
            return f"Range({low!r}, {high!r})"
        return f"Range(high={high!r})" if low is None else f"Range(low={low!r})"

    @property
    def of(self) -> int:
        return 0

    @property
    def family(self) -> Range:
        """The range above the third quartile, or below the first if on the way down: a quarter of all rows meet it."""
        low, high = self.output.edges[-1], self.output.edges[0]
        return replace(self, low=low if self.up else None, high=None if self.up else high)

    def with_class_number(self, number_of: Callable[[Any], int]) -> Self:
        return self

    def met(self, p: Tensor) -> Tensor:
        low, high = self._ends
        return (p[:, 0] >= low) & (p[:, 0] <= high)

    def raw_margin(self, p: Tensor) -> Tensor:
        low, high = self._ends
        return torch.minimum(p[:, 0] - low, high - p[:, 0]) / self.output.spread

    def shown_margin(self, p: Tensor) -> Tensor:
        return round_scores(signed_margin(self, p))

    def logit_margin(self, logits: Tensor) -> Tensor:
        return self.raw_margin(logits)

    def loss(self, logits: Tensor) -> Tensor:
        return (-self.raw_margin(logits)).clamp_min(0.0)

    def chance(self, p: Tensor) -> Tensor:
        return (-self.loss(p)).exp()

    def display_score(self, p: Tensor) -> Tensor:
        return p[:, 0]

    def target_class(self, p: Tensor) -> Tensor:
        return self.output.group(p[:, :1].clamp(*self._ends))

    @property
    def width(self) -> float:
        low, high = self._ends
        return (high - low) / self.output.spread

    def overshot(self, p: Tensor) -> Tensor:
        return p[:, 0] > self._ends[1]

    @property
    def _ends(self) -> tuple[float, float]:
        return (-inf if self.low is None else self.low), (inf if self.high is None else self.high)


@dataclass(frozen=True, repr=False)
class Change:
    """A prediction above or (if negative) below the row's own: by at least an amount, `Change(500)`, or by at least a
    share of it, `Change(share=-0.1)`."""

    by: float | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.by is None) == (self.share is None):
            raise InputError("Change needs either an amount, Change(500), or a share, Change(share=-0.1)")
        for name in ("by", "share"):
            if check_optional(name, getattr(self, name), check_number, -inf, inf) == 0:
                raise InputError(f"{name} is 0; give how much the prediction should rise, or fall if negative")

    def __repr__(self) -> str:
        """The expression that makes it, e.g. `Change(500)` or `Change(share=-0.1)`."""
        return f"Change({plain(self.by)!r})" if self.share is None else f"Change(share={plain(self.share)!r})"

    def range(self, now: float) -> Range:
        """The range for a row whose prediction is `now`."""
        now = check_number("now", now, -inf, inf)
        by = self.by if self.share is None else self.share * abs(now)
        assert by is not None
        return Range(low=now + by) if by > 0 else Range(high=now + by)


@dataclass(frozen=True)
class ModelDecides:
    """A class, or any other one, by the model's own decision instead of its probabilities."""

    goal: Class  # or Not
    output: Output

    @property
    def of(self) -> Any:
        return self.goal.of

    @property
    def family(self) -> Self:
        return self

    def with_class_number(self, number_of: Callable[[Any], int]) -> Self:
        return replace(self, goal=self.goal.with_class_number(number_of))

    def met(self, p: Tensor) -> Tensor:
        chosen = p[:, len(self.output.classes) + self.goal.of] > 0.5
        return ~chosen if isinstance(self.goal, Not) else chosen

    def raw_margin(self, p: Tensor) -> Tensor:
        """The margin from the probability at which the model seems to change its decision."""
        margin = self.logit_margin(p[:, : len(self.output.classes)].log())
        return torch.where(self.met(p), margin.clamp_min(0.0), margin.clamp(max=-STANDOFF))

    def shown_margin(self, p: Tensor) -> Tensor:
        return signed_margin(self, round_scores(p))

    def logit_margin(self, logits: Tensor) -> Tensor:
        shift = logit(self.output.border) if len(self.output.classes) == 2 else 0.0
        second = (self.goal.of == 1) != isinstance(self.goal, Not)  # whether the second class is wanted
        return self.goal.logit_margin(logits) - (shift if second else -shift)

    def loss(self, logits: Tensor) -> Tensor:
        return self.goal.loss(logits[:, : len(self.output.classes)])

    def chance(self, p: Tensor) -> Tensor:
        return self.goal.chance(p[:, : len(self.output.classes)])

    def display_score(self, p: Tensor) -> Tensor:
        return self.goal.display_score(p[:, : len(self.output.classes)])

    def target_class(self, p: Tensor) -> Tensor:
        return self.goal.target_class(p[:, : len(self.output.classes)])

    @property
    def width(self) -> float:
        return inf

    def overshot(self, p: Tensor) -> Tensor:
        return torch.zeros(len(p), dtype=torch.bool)


@dataclass(frozen=True)
class AllGoals:
    """Several goals at once, each about its own columns of the scores; the score shown is that of the first."""

    parts: tuple[tuple[Goal, int, int], ...]  # a goal, its first column and the column after its last
    first: Output

    @property
    def of(self) -> Any:
        return self.parts[0][0].of

    @property
    def family(self) -> AllGoals:
        return replace(self, parts=tuple((goal.family, start, stop) for goal, start, stop in self.parts))

    def with_class_number(self, number_of: Callable[[Any], int]) -> Self:
        return self

    def met(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.met(p), p)).all(dim=0)

    def raw_margin(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.raw_margin(p), p)).amin(dim=0)

    def shown_margin(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.shown_margin(p), p)).amin(dim=0)

    def logit_margin(self, logits: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, logits: goal.logit_margin(logits), logits)).amin(dim=0)

    def loss(self, logits: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, logits: goal.loss(logits), logits)).sum(dim=0)

    def chance(self, p: Tensor) -> Tensor:
        return torch.stack(self._each(lambda goal, p: goal.chance(p), p)).prod(dim=0)

    def display_score(self, p: Tensor) -> Tensor:
        return self._each(lambda goal, p: goal.display_score(p), p)[0]

    def target_class(self, p: Tensor) -> Tensor:
        """The class (or group) of the first output: the wanted one, or the row's own if no goal is about it."""
        goal, start, stop = self.parts[0]
        return goal.target_class(p[:, start:stop]) if start == 0 else self.first.group(p)

    @property
    def width(self) -> float:
        return min(goal.width for goal, _, _ in self.parts)

    def overshot(self, p: Tensor) -> Tensor:
        """(n,) whether the scores are beyond the upper end of the narrowest band."""
        narrowest = min(range(len(self.parts)), key=lambda i: self.parts[i][0].width)
        return self._each(lambda goal, p: goal.overshot(p), p)[narrowest]

    def _each(self, function: Callable[[Goal, Tensor], Tensor], p: Tensor) -> list[Tensor]:
        return [function(goal, p[:, start:stop]) for goal, start, stop in self.parts]
