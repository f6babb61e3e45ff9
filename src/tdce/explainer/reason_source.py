"""What an answer asks for principal reasons that compare people with others: the model, and who there is to compare."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

import numpy as np
import pandas as pd

from tdce._core import Floats, check_table, few_threads
from tdce.explainer.fitted import Fitted
from tdce.methods import Explanation, Status, group_shortfalls
from tdce.models import Goals, Oracle


@dataclass(frozen=True, eq=False)
class ReasonSource:
    """A fitted explainer, and how many rows of the query budget a question has left."""

    fitted: Fitted
    remaining: float  # infinite: no budget

    @few_threads()
    def shortfalls(self, explanation: Explanation, goals: Goals, table: pd.DataFrame | None = None) -> Floats | None:
        """`group_shortfalls` beside the people of a table, or beside synthetic rows; None: the budget does not suffice.

        The synthetic rows are those of the artefact, so that whoever has it finds the same reasons again.
        """
        fitted = self.fitted
        oracle = Oracle(fitted.model, None if isinf(self.remaining) else int(self.remaining))
        people = fitted.synthetic
        if table is not None:
            check_table(table)
            people = fitted.encoder.read(table)
        if table is None and fitted.synthetic_scores is not None:
            scores = fitted.synthetic_scores
        elif len(people) > oracle.remaining:
            return None
        else:
            scores = oracle.score(people)
        refused = np.asarray(explanation.status[:, 0] != Status.ALREADY)
        return group_shortfalls(oracle, fitted.encoder, explanation.own, goals, refused, people, scores)
