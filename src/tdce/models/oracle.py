"""The oracle: the only caller of the explained model, on rows exactly as they would be returned."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, Positions, let_others_go_first, unique_rows
from tdce.models.ensemble import Ensemble
from tdce.models.goals import Goals
from tdce.models.model import AdaptedModel, Model

CHECK_ROWS = 1_000_000  # queried rows after which a user's model is checked for changes again

Measured = TypeVar("Measured")


class Decision(NamedTuple):
    """The model's scores of rows, and whether these meet the rows' goals."""

    score: Tensor  # (n, columns) probabilities or predicted numbers
    met: Tensor  # (n,) whether the goal is met
    margin: Tensor  # (n,) how far beyond the border; at least 0 if and only if the goal is met


@dataclass
class Usage:
    """How often the model was queried."""

    calls: int = 0
    rows: int = 0  # distinct rows of each call, over all calls


class Oracle:
    """Queries the model, once per call for each distinct row, and counts the queries."""

    def __init__(self, model: Model, budget: int | None = None, ensemble: Ensemble | None = None) -> None:
        self.model = model
        self.usage = Usage()
        self.ensemble = ensemble  # retrained models, nine in ten of which must agree
        self.budget = budget  # the query budget, in rows; None: unlimited
        self._reserved = 0  # part of the budget kept for decisions on what is returned
        self.exhausted = False  # whether a row was not queried because the budget was spent
        self._spent = 0
        self._unchecked: float = inf  # rows queried since the model was last checked
        self._paid: set[Hashable] = set()

    @property
    def remaining(self) -> float:
        """Number of rows that may still be queried, without the reserved part of the budget."""
        return inf if self.budget is None else max(0, self.budget - self._spent - self._reserved)

    def reserve(self, rows: int) -> None:
        """Reserve this many rows of the budget for decisions on what is returned."""
        self._reserved = rows

    def without_ensemble(self) -> Oracle:
        """An oracle of the model alone; its queries are counted here, too."""
        alone = Oracle(self.model, self.budget)
        alone.usage, alone._unchecked = self.usage, self._unchecked
        return alone

    def __call__(self, raw: Floats, goals: Goals, turn: Positions | None = None) -> Decision:
        """Decide on raw rows (n, features), each by its own goal. With `turn`, the rows may exceed the budget; those
        with the latest turns are then refused without a query."""
        if turn is not None and len(raw) > self.remaining:
            return self._decide_within_budget(raw, goals, turn)
        decision = self.decide_alone(raw, goals)
        if self.ensemble is None or not decision.met.any():
            return decision
        at = decision.met.nonzero().squeeze(1)
        ensemble_margin = self.ensemble.margin(raw[at.numpy()], goals.take(at))
        margin = decision.margin.index_copy(0, at, torch.minimum(decision.margin[at], ensemble_margin))
        return Decision(decision.score, margin >= 0, margin)

    def decide_alone(self, raw: Floats, goals: Goals) -> Decision:
        """Decide by the model alone, without the ensemble."""
        p = self.score(raw)
        return Decision(p, goals.met(p), goals.margin(p))

    def score(self, raw: Floats) -> Tensor:
        """(n, columns) the model's scores."""
        let_others_go_first()
        first, place = unique_rows(raw)
        self._check_model(len(first))
        self.usage.calls += 1
        self.usage.rows += len(first)
        self._spent += len(first)
        return torch.from_numpy(self.model.score(raw[first]))[place]

    def _check_model(self, rows: int) -> None:
        """Check before the first query, and every `CHECK_ROWS` rows, that a user's model has not changed since `fit`.
        These queries are not counted: no answer may depend on them."""
        if isinstance(self.model, AdaptedModel) and rows and self._unchecked >= CHECK_ROWS:
            self.model.check_unchanged()
            self._unchecked = 0
        self._unchecked += rows

    def charge(self, what: Hashable, rows: int, measure: Callable[[], Measured]) -> Measured:
        """Return a result that may be cached, and charge `rows` for it, so that every question pays the same price
        whether or not it was known already."""
        before = self._spent
        result = measure()
        self._spent = before + (0 if what in self._paid else rows)
        self._paid.add(what)
        return result

    def _decide_within_budget(self, raw: Floats, goals: Goals, turn: Positions) -> Decision:
        first, place = unique_rows(raw)
        order = np.lexsort((first, turn[first]))
        number = np.empty(len(first), dtype=np.int64)  # the rank of each distinct row in that order
        number[order] = np.arange(len(first))
        queried = number[place] < self.remaining
        self.exhausted |= not queried.all()
        p = torch.zeros(len(raw), sum(output.columns for output in self.model.outputs), dtype=torch.double)
        met, margin = torch.zeros(len(raw), dtype=torch.bool), torch.full((len(raw),), -inf, dtype=torch.double)
        if queried.any():
            at = torch.from_numpy(np.flatnonzero(queried))
            decision = self(raw[queried], goals.take(at))
            for whole, part in zip((p, met, margin), decision, strict=True):
                whole[at] = part
        return Decision(p, met, margin)

    def predict(self, raw: Floats) -> Tensor:
        """(n,) the numbers of the predicted classes, or of the groups of the predicted numbers."""
        return self.model.outputs[0].group(self.score(raw))
