"""The judge: the only caller of the model that decides, on rows exactly as they would be returned."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, Positions, unique_rows
from tdce.models.ensemble import Ensemble
from tdce.models.goals import Goals
from tdce.models.model import Model

Made = TypeVar("Made")


class Decision(NamedTuple):
    score: Tensor  # (n, columns) what the model says: probabilities, or numbers
    met: Tensor  # (n,) whether the goal is met
    margin: Tensor  # (n,) how far beyond the border, at least 0 if and only if it is met


@dataclass
class Usage:
    """How often the model was queried."""

    calls: int = 0
    rows: int = 0  # different rows per call, over all calls


class Oracle:
    """Asks the model about many rows at once, about each different row once per call, and counts."""

    def __init__(self, model: Model, budget: int | None = None, ensemble: Ensemble | None = None) -> None:
        self.model = model
        self.usage = Usage()
        self.ensemble = ensemble  # models that are to say the same, nearly all of them
        self.budget = budget  # of rows that are paid for; None: no end
        self._reserved = 0  # of the budget, for decisions on what is returned
        self.exhausted = False  # whether something was not asked because the budget was used up
        self._spent = 0
        self._paid: set[Hashable] = set()

    @property
    def remaining(self) -> float:
        """How many rows it may still ask about, besides those that it keeps some of the budget for."""
        return inf if self.budget is None else max(0, self.budget - self._spent - self._reserved)

    def reserve(self, rows: int) -> None:
        """Keep this much of the budget for decisions on what is returned."""
        self._reserved = rows

    def without_ensemble(self) -> Oracle:
        """The same model alone; its queries are counted here, too."""
        alone = Oracle(self.model, self.budget)
        alone.usage = self.usage
        return alone

    def __call__(self, raw: Floats, goals: Goals, turn: Positions | None = None) -> Decision:
        """Of raw rows (n, features), each by its own goal. With `turn` they may be too many for the budget: those with
        a later turn are then refused unasked."""
        if turn is not None and len(raw) > self.remaining:
            return self._some(raw, goals, turn)
        decision = self.decide_alone(raw, goals)
        if self.ensemble is None or not decision.met.any():
            return decision
        at = decision.met.nonzero().squeeze(1)
        theirs = self.ensemble.margin(raw[at.numpy()], goals.take(at))
        margin = decision.margin.index_copy(0, at, torch.minimum(decision.margin[at], theirs))
        return Decision(decision.score, margin >= 0, margin)

    def decide_alone(self, raw: Floats, goals: Goals) -> Decision:
        """By the model itself, whatever a committee says."""
        p = self.score(raw)
        return Decision(p, goals.met(p), goals.margin(p))

    def score(self, raw: Floats) -> Tensor:
        """(n, columns) what the model says."""
        first, place = unique_rows(raw)
        self.usage.calls += 1
        self.usage.rows += len(first)
        self._spent += len(first)
        return torch.from_numpy(self.model.score(raw[first]))[place]

    def charge(self, what: Hashable, rows: int, measure: Callable[[], Made]) -> Made:
        """Something that is measured once and remembered: it costs every question the same, known or not."""
        before = self._spent
        made = measure()
        self._spent = before + (0 if what in self._paid else rows)
        self._paid.add(what)
        return made

    def _some(self, raw: Floats, goals: Goals, turn: Positions) -> Decision:
        first, place = unique_rows(raw)
        order = np.lexsort((first, turn[first]))
        number = np.empty(len(first), dtype=np.int64)  # of each different row in that order
        number[order] = np.arange(len(first))
        asked = number[place] < self.remaining
        self.exhausted |= not asked.all()
        p = torch.zeros(len(raw), sum(output.columns for output in self.model.outputs), dtype=torch.double)
        met, margin = torch.zeros(len(raw), dtype=torch.bool), torch.full((len(raw),), -inf, dtype=torch.double)
        if asked.any():
            at = torch.from_numpy(np.flatnonzero(asked))
            decision = self(raw[asked], goals.take(at))
            for whole, part in zip((p, met, margin), decision, strict=True):
                whole[at] = part
        return Decision(p, met, margin)

    def predict(self, raw: Floats) -> Tensor:
        """(n,) the numbers of the classes that the model says, or of the groups of its numbers."""
        return self.model.outputs[0].group(self.score(raw))
