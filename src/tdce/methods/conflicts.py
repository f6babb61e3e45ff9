"""Conflicting rules of rows without an answer: a minimal set of rules under which none exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from tdce._core import Flags, Note, Positions, same
from tdce.methods.driver import explain
from tdce.methods.explanation import Explanation, Status
from tdce.methods.protocol import Method
from tdce.methods.question import Question
from tdce.models import Goals
from tdce.schema import FeasibleSet

MOST_RULES = 12  # with more, conflicting rules are not told apart

HasAnswer = Callable[[Positions, Flags], Flags]
"""Whether the rows at these positions (m,) have an answer under these rules (rules,) alone, as flags (m,)."""


def explain_conflicts(
    method: Method,
    rows: pd.DataFrame,
    feasible: FeasibleSet,
    goals: Goals,
    question: Question,
    explanation: Explanation,
) -> Explanation:
    """Add conflicting rules to the notes of rows without an answer.

    A row for which its rules allow no change is infeasible.
    """
    rules = (*feasible.encoder.schema.rules, *question.rules)
    failed = np.flatnonzero(np.isin(explanation.status[:, 0], [Status.BEST_EFFORT, Status.INFEASIBLE]))
    if not rules or len(failed) == 0:
        return explanation
    without_rules = replace(feasible.encoder, full_schema=replace(feasible.encoder.schema, rules=()))
    one_option = replace(question, n=1)

    def has_answer(at: Positions, kept: Flags) -> Flags:
        some_rules = [rule for rule, keep in zip(rules, kept, strict=True) if keep]
        looser = FeasibleSet.of(without_rules, rows.iloc[at], feasible.immutable, some_rules)
        found = explain(method, looser, goals.take(torch.from_numpy(at)), one_option)
        return np.asarray(found.status[:, 0] == Status.VALID)

    at = failed[has_answer(failed, np.zeros(len(rules), dtype=bool))]
    if len(at) == 0:
        return explanation
    reasons = [_too_many(rules)] * len(at)
    if len(rules) <= MOST_RULES:
        reasons = _notes(rules, find_conflicts(has_answer, at, len(rules)))
    status, notes = explanation.status.copy(), explanation.notes.copy()
    for row, reason in zip(at, reasons, strict=True):
        for option in range(notes.shape[1]):
            notes[row, option] = (*reason, *notes[row, option])
    stuck = same(explanation.raw[at], explanation.own[at, None]).all(axis=2)
    status[at] = np.where(stuck, Status.INFEASIBLE.value, status[at])
    return replace(explanation, status=status, notes=notes)


class Conflict(NamedTuple):
    together: Flags  # (n, rules) the rules of a minimal conflict: no answer under them, one without any of them
    single: Flags  # (n, rules) rules without which alone there is an answer


def find_conflicts(has_answer: HasAnswer, at: Positions, rules: int) -> Conflict:
    """The conflicts of rows that have an answer without rules but none with all of them, by a deletion filter.

    Each rule is left out in turn, for good if there is still no answer. Rows with the same rules left are tried
    together.
    """
    together = np.ones((len(at), rules), dtype=bool)
    single = np.stack([_try(has_answer, at, ~without & together) for without in np.eye(rules, dtype=bool)], axis=1)
    for i in range(rules):
        loose = np.flatnonzero(~single[:, i])  # in all other rows the rule is in every conflict
        fewer = together[loose]
        fewer[:, i] = False
        unknown = fewer.sum(axis=1) < rules - 1
        needed = np.zeros(len(loose), dtype=bool)
        needed[unknown] = _try(has_answer, at[loose[unknown]], fewer[unknown])
        together[loose, i] = needed
    return Conflict(together, single)


def _try(has_answer: HasAnswer, at: Positions, kept: Flags) -> Flags:
    """(n,) whether rows have an answer, each under its own rules (n, rules); without rules, all have one."""
    answers = np.ones(len(at), dtype=bool)
    for rules in np.unique(kept[kept.any(axis=1)], axis=0):
        mine = (kept == rules).all(axis=1)
        answers[mine] = has_answer(at[mine], rules)
    return answers


def _notes(rules: tuple[str, ...], conflict: Conflict) -> list[list[Note]]:
    """(n,) the notes of each row."""
    names = np.array(rules, dtype=object)
    pairs = zip(conflict.together, conflict.single, strict=True)
    return [_row_notes(tuple(names[together]), tuple(names[single])) for together, single in pairs]


def _row_notes(together: tuple[str, ...], single: tuple[str, ...]) -> list[Note]:
    if len(together) == 1:
        return [Note("rule_without" if single else "rule_alone", rules=together)]  # alone: another one conflicts, too
    notes = [Note("rules_together", rules=together)]
    if single:
        notes.append(Note("rules_without_any") if single == together else Note("rules_without", rules=single))
    return notes


def _too_many(rules: tuple[str, ...]) -> list[Note]:
    return [Note("rules_many", values={"count": len(rules), "most": MOST_RULES})]
