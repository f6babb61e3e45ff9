"""What a search found for each row and option: plain values, without a way back to the explainer."""

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
"""Below this safety an answer is barely accepted, and a note says so."""


class Status(StrEnum):
    """What became of a row's option."""

    VALID = "valid"  # the model says what is wanted
    BEST_EFFORT = "best_effort"  # it does not, but this is the nearest that was found
    ALREADY = "already"  # the model says it about the row as it is
    INFEASIBLE = "infeasible"  # nothing may change


@dataclass(frozen=True)
class Explanation:
    """What was found for each row and option; arrays are (rows, options), values (rows, options, features)."""

    own: Floats  # (rows, features) of the rows themselves
    raw: Floats
    status: NDArray[np.str_]  # values of `Status`
    score_before: Floats  # (rows,)
    score_after: Floats
    plausibility: Floats  # share of real people of the target class who are less typical; NaN if that is not known
    notes: NDArray[np.object_]  # tuples of `Note`: the reason, and others
    loss: Floats | None = None  # (rows, options, features) of what a changed one is worth; NaN: no change, or not asked
    safety: Floats = None  # type: ignore[assignment]  # how likely a model trained again accepts it; NaN: not known
    distance: Floats = None  # type: ignore[assignment]  # the cost of all changes, see `Objective`; NaN: not known

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
        """Each row with this option alone."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        per_row = ("own", "score_before")
        return Explanation(
            **{key: part if key in per_row or part is None else part[:, i : i + 1] for key, part in parts.items()}
        )

    def put(self, at: Positions, other: Explanation) -> Explanation:
        """With another explanation in the place of these rows."""
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
    before: float  # the model's probability of the target, or its number
    after: float
    plausibility: float  # NaN: not known
    changes: list[tuple[Name, Any, Any]]  # feature, value before, value after
    note: str  # for scripts, as in `Answer.to_frame`
    number: bool = False  # whether before and after are predicted numbers, not probabilities
    reasons: Sequence[tuple[Name, float]] = ()  # changed features, the one that counts most first, with
    # the margin that giving it back would cost (NaN: not asked); none that must not be named
    notes: tuple[Note, ...] = ()  # what the note says
    wanted: tuple[TargetPart, ...] = ()  # what the target says
    safety: float = float("nan")  # how likely a model trained again accepts it
