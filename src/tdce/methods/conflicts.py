"""Which rules stand in the way where no answer was found: a smallest set of them that leaves none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from tdce._core import Flags, Note, Positions, same
from tdce.methods.driver import explain
from tdce.methods.explanation import Explanation, Question, Status
from tdce.methods.protocol import Method
from tdce.schema import FeasibleSet

MOST_RULES = 12  # rules of which it is found out which ones stand in the way

Answered = Callable[[Positions, Flags], Flags]
"""(m,) whether there is an answer for rows at these positions (m,) under these of the rules (rules,) alone."""


def explain_conflicts(
    method: Method, rows: pd.DataFrame, feasible: FeasibleSet, question: Question, found: Explanation
) -> Explanation:
    """With the rules in the notes of rows without an answer; a row of which they leave nothing is infeasible."""
    rules = (*feasible.encoder.schema.rules, *question.rules)
    failed = np.flatnonzero(np.isin(found.status[:, 0], [Status.BEST_EFFORT, Status.INFEASIBLE]))
    if not rules or len(failed) == 0:
        return found
    without = replace(feasible.encoder, known=replace(feasible.encoder.schema, rules=()))

    def answered(at: Positions, kept: Flags) -> Flags:
        some = replace(question, goals=question.goals.take(torch.from_numpy(at)), options=1)
        fewer = FeasibleSet.of(
            without, rows.iloc[at], feasible.immutable, [r for r, k in zip(rules, kept, strict=True) if k]
        )
        return np.asarray(explain(method, fewer, some).status[:, 0] == Status.VALID)

    at = failed[answered(failed, np.zeros(len(rules), dtype=bool))]
    if len(at) == 0:
        return found
    said = (
        _said(rules, find_conflicts(answered, at, len(rules)))
        if len(rules) <= MOST_RULES
        else [_too_many(rules)] * len(at)
    )
    status, notes = found.status.copy(), found.notes.copy()
    for row, words in zip(at, said, strict=True):
        for option in range(notes.shape[1]):
            notes[row, option] = (*words, *notes[row, option])
    stuck = same(found.raw[at], found.own[at, None]).all(axis=2)
    status[at] = np.where(stuck, Status.INFEASIBLE.value, status[at])
    return replace(found, status=status, notes=notes)


class Conflict(NamedTuple):
    together: Flags  # (n, rules) with these alone there is no answer; without any one of these there is
    single: Flags  # (n, rules) without just this one of all rules there is an answer


def find_conflicts(answered: Answered, at: Positions, rules: int) -> Conflict:
    """Of rows that have an answer under no rule and none under all of them. Each rule is left out in turn, for good if
    there is no answer without it either; rows that have the same rules left are asked about together."""
    together = np.ones((len(at), rules), dtype=bool)
    single = np.stack([_answered(answered, at, ~without & together) for without in np.eye(rules, dtype=bool)], axis=1)
    for i in range(rules):
        loose = np.flatnonzero(~single[:, i])  # in the other rows it is needed, whatever else is left out
        fewer = together[loose]
        fewer[:, i] = False
        unknown = fewer.sum(axis=1) < rules - 1
        needed = np.zeros(len(loose), dtype=bool)
        needed[unknown] = _answered(answered, at[loose[unknown]], fewer[unknown])
        together[loose, i] = needed
    return Conflict(together, single)


def _answered(answered: Answered, at: Positions, kept: Flags) -> Flags:
    """(n,) whether rows have an answer, each under rules of its own (n, rules); under none of them all have one."""
    out = np.ones(len(at), dtype=bool)
    for some in np.unique(kept[kept.any(axis=1)], axis=0):
        mine = (kept == some).all(axis=1)
        out[mine] = answered(at[mine], some)
    return out


def _said(rules: tuple[str, ...], found: Conflict) -> list[list[Note]]:
    """(n,) what to say of each row."""
    names = np.array(rules, dtype=object)
    pairs = zip(found.together, found.single, strict=True)
    return [_about(tuple(names[together]), tuple(names[single])) for together, single in pairs]


def _about(together: tuple[str, ...], single: tuple[str, ...]) -> list[Note]:
    if len(together) == 1:
        return [Note("rule_without" if single else "rule_alone", rules=together)]  # alone: and so does another one
    said = [Note("rules_together", rules=together)]
    if single:
        said.append(Note("rules_without_any") if single == together else Note("rules_without", rules=single))
    return said


def _too_many(rules: tuple[str, ...]) -> list[Note]:
    return [Note("rules_many", values={"count": len(rules), "most": MOST_RULES})]
