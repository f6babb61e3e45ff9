"""The result of a search for each row and option, as plain values without a reference to the explainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tdce._core import Flags, Floats, Name, Note, Positions
from tdce.models import TargetPart

LOW_SAFETY = 0.75
"""Below this safety, a note says that an answer is barely accepted."""


class Status(StrEnum):
    """The status of a row's option."""

    VALID = "valid"  # the goal is met
    BEST_EFFORT = "best_effort"  # the goal is not met; this comes nearest
    ALREADY = "already"  # the row itself meets the goal
    INFEASIBLE = "infeasible"  # nothing may change


@dataclass(frozen=True)
class Explanation:
    """The result for each row and option; arrays are (rows, options), values (rows, options, features)."""

    own: Floats  # (rows, features) the rows themselves
    raw: Floats
    status: NDArray[np.str_]  # values of `Status`
    score_before: Floats  # (rows,)
    score_after: Floats
    plausibility: Floats  # share of real rows of the target class that are less typical; NaN: not known
    notes: NDArray[np.object_]  # tuples of `Note`: the reason, and others
    loss: Floats | None = None  # (rows, options, features) what each change is worth; NaN: no change, or not queried
    safety: Floats = None  # type: ignore[assignment]  # probability that a retrained model accepts it; NaN: not known
    distance: Floats = None  # type: ignore[assignment]  # total cost of the changes, see `Objective`; NaN: not known

    def __post_init__(self) -> None:
        for name in ("safety", "distance"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.full(self.status.shape, np.nan))

    def take(self, at: Flags | Positions) -> Explanation:
        """The part of some rows."""
        return Explanation(
            self.own[at], self.raw[at], self.status[at], self.score_before[at], self.score_after[at],
            self.plausibility[at], self.notes[at], None if self.loss is None else self.loss[at], self.safety[at],
            self.distance[at],
        )  # fmt: skip

    def option(self, i: int) -> Explanation:
        """The part of one option."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        per_row = ("own", "score_before")
        return Explanation(
            **{key: part if key in per_row or part is None else part[:, i : i + 1] for key, part in parts.items()}
        )

    def put(self, at: Positions, other: Explanation) -> Explanation:
        """A copy with another explanation in place of these rows."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, whole in parts.items():
            if whole is not None:
                parts[name] = whole.copy()
                parts[name][at] = getattr(other, name)
        return Explanation(**parts)


class Line(NamedTuple):
    """One option for one row."""

    status: str
    target: Any
    before: float  # the model's probability of the target, or the number it predicts
    after: float
    plausibility: float  # NaN: not known
    changes: list[tuple[Name, Any, Any]]  # feature, value before, value after
    note: str  # for scripts, as in `Answer.to_frame`
    number: bool = False  # whether before and after are predicted numbers, not probabilities
    reasons: Sequence[tuple[Name, float]] = ()  # changed features that may be named, most important first, each with
    # the margin that reverting it would cost (NaN: not queried)
    notes: tuple[Note, ...] = ()  # the note in structured form
    wanted: tuple[TargetPart, ...] = ()  # the target in structured form
    safety: float = float("nan")  # probability that a retrained model accepts it
