"""The source of principal reasons that compare people with others: the model, and the people to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

import numpy as np

from tdce._core import AnyFrame, Floats, as_pandas, few_threads
from tdce.explainer.fitted import Fitted
from tdce.methods import Explanation, Status, group_shortfalls
from tdce.models import Goals, Oracle


@dataclass(frozen=True, eq=False)
class ReasonSource:
    """A fitted explainer, and what a question has left of its query budget."""

    fitted: Fitted
    remaining: float  # rows; infinite: no budget

    @few_threads()
    def shortfalls(self, explanation: Explanation, goals: Goals, table: AnyFrame | None = None) -> Floats | None:
        """`group_shortfalls` against the people of a table, or synthetic rows; None: the budget does not suffice.

        The synthetic rows are those of the artefact, so that the same artefact gives the same reasons again.
        """
        fitted = self.fitted
        oracle = Oracle(fitted.model, None if isinf(self.remaining) else int(self.remaining))
        people = fitted.synthetic
        if table is not None:
            people = fitted.encoder.read(as_pandas(table, "table"))
        if table is None and fitted.synthetic_scores is not None:
            scores = fitted.synthetic_scores
        elif len(people) > oracle.remaining:
            return None
        else:
            scores = oracle.score(people)
        refused = np.asarray(explanation.status[:, 0] != Status.ALREADY)
        return group_shortfalls(oracle, fitted.encoder, explanation.own, goals, refused, people, scores)
