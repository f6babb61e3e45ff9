"""Which rules stand in the way where no answer was found: without one of them there would be one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from tdce.cells import Flags, same
from tdce.explaining import explain
from tdce.explanation import Explanation, Question, Status
from tdce.limits import Limits
from tdce.methods.interface import Method

MOST = 12  # rules that are left out one at a time


def blamed(method: Method, rows: pd.DataFrame, limits: Limits, question: Question, found: Explanation) -> Explanation:
    """With the rules in the notes of rows without an answer; a row of which they leave nothing is infeasible."""
    rules = (*limits.encoder.schema.rules, *question.rules)
    failed = np.flatnonzero(np.isin(found.status[:, 0], [Status.BEST_EFFORT, Status.INFEASIBLE]))
    if not rules or len(failed) == 0:
        return found
    without = replace(limits.encoder, known=replace(limits.encoder.schema, rules=()))
    some = replace(question, goals=question.goals.take(torch.from_numpy(failed)), options=1)

    def answered(kept: Sequence[str]) -> Flags:
        """(failed,) whether there is an answer under these rules alone."""
        fewer = Limits.of(without, rows.iloc[failed], limits.immutable, kept)
        return np.asarray(explain(method, fewer, some).status[:, 0] == Status.VALID)

    free = answered(())
    alone = [free & answered([*rules[:i], *rules[i + 1 :]]) for i in range(len(rules))] if len(rules) <= MOST else []
    status, note = found.status.copy(), found.note.copy()
    for k in np.flatnonzero(free):
        guilty = [rule for rule, without_it in zip(rules, alone, strict=False) if without_it[k]]
        row = failed[k]
        for option in range(note.shape[1]):
            note[row, option] = "; ".join(filter(None, [_said(guilty, len(rules)), note[row, option]]))
            if same(found.raw[row, option], found.own[row]).all():
                status[row, option] = Status.INFEASIBLE
    return replace(found, status=status, note=note)


def _said(guilty: list[str], rules: int) -> str:
    if not guilty:
        return "the rule stands in the way" if rules == 1 else "several rules together stand in the way"
    if len(guilty) == 1:
        return f"without the rule {guilty[0]!r} there is an answer"
    return f"there is an answer without one of the rules {', '.join(map(repr, guilty))}"
