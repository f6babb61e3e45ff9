"""The trade-off at several positions at once: one pool of answers, from which every position takes its best.

With one pool, the distance of the best answer never rises towards closeness 1 and its energy never falls: if it did,
exchanging two answers would improve one of them. What a position takes over from another one may have changes that it
does not need here; without them it is an answer more in the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tdce._core import Flags, Floats, Noise, Positions, pad_rows, same
from tdce.methods.candidates import Candidates
from tdce.methods.driver import QUERY_ROWS, explain
from tdce.methods.explanation import Explanation, Status
from tdce.methods.objective import Objective, PricedRows, feature_costs
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.question import DEFAULT_SAFETY, Question
from tdce.methods.search import DiffusionSearch
from tdce.models import Goals
from tdce.schema import FeasibleSet


def choose_along(
    task: Task,
    feasible: FeasibleSet,
    goals: Goals,
    question: Question,
    positions: Sequence[float],
    explanations: Sequence[Explanation],  # one option per row, asked at each position
) -> list[Explanation]:
    """For each position and row, the answer of any position that is best at this one, without needless changes.

    All positions want the same of safety: as much as the answer in the middle has, up to what the question asks for.
    """
    pool, wanted = list(explanations), DEFAULT_SAFETY if question.safety is None else question.safety
    middle = explanations[len(positions) // 2]
    known = middle.status[:, 0] == Status.VALID
    floor = np.where(known, np.minimum(np.nan_to_num(middle.safety[:, 0]), wanted), 0.0)
    cost, energy = _price(task, feasible, goals, question, pool)
    everyone = np.arange(len(feasible.own))
    minimal = np.repeat(
        np.eye(len(positions), dtype=bool)[:, :, None], len(everyone), axis=2
    )  # (positions, pool, rows)
    while True:
        allowed = _allowed(pool, floor)
        found = []
        for i, closeness in enumerate(positions):
            total = np.where(allowed, closeness * cost + (1 - closeness) * energy, np.inf)
            best = np.where(allowed.any(axis=0), total.argmin(axis=0), i)
            found.append(_pick(pool, best))
            at = np.flatnonzero(~minimal[i, best, everyone] & allowed.any(axis=0))
            minimal[i, best, everyone] = True
            fewer = _with_fewer_changes(task, feasible, goals, replace(question, closeness=closeness), found[i], at)
            if fewer is not None:
                pool.append(fewer)
                minimal = np.concatenate([minimal, np.zeros((len(positions), 1, len(everyone)), dtype=bool)], axis=1)
                minimal[i, -1] = True
        if len(pool) == len(cost):
            return found
        more = _price(task, feasible, goals, question, pool[len(cost) :])
        cost, energy = (np.concatenate(each) for each in zip((cost, energy), more, strict=True))


@dataclass(frozen=True)
class Settled:
    """The end of the search alone: answers with changes reverted for as long as that lowers the objective."""

    edition: ClassVar[int] = DiffusionSearch.edition
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = True
    x_cf: Tensor  # (n, width) an answer to each row of a query
    task_: Task | None = field(default=None, repr=False)

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        task, at = task_of(self), torch.arange(len(query.x))
        assert query.closeness is not None
        objective = Objective(task, query, noise, query.closeness, query.goals.target_class(query.decision.score))
        near = Candidates(task, query, objective)
        reply = yield query.ask(self.x_cf[pad_rows(torch.arange(len(self.x_cf)))])
        accepted = near.screen(reply, at)
        near.add(reply.x[accepted, 0], at[accepted], reply.margin[accepted, 0])
        near = yield from DiffusionSearch().fit(task).settle(query, near, lambda near: near.best(1), worth=0.0)
        return near.best_answer()


def _with_fewer_changes(
    task: Task, feasible: FeasibleSet, goals: Goals, question: Question, found: Explanation, at: Positions
) -> Explanation | None:
    """An explanation with changes of the rows at `at` reverted for as long as that lowers their objective; None if none
    is."""
    fewer = found
    for some in np.split(at, range(QUERY_ROWS, len(at), QUERY_ROWS)) if len(at) else ():
        settled = Settled(task.encoder.embed(found.raw[some, 0]).float()).fit(task)
        part, rows = feasible.take(some), goals.take(torch.from_numpy(some))
        fewer = fewer.put(some, explain(settled, part, rows, question, attribute=found.loss is not None))
    return None if same(fewer.raw, found.raw).all() else fewer


def _allowed(pool: Sequence[Explanation], floor: Floats) -> Flags:
    """(pool, rows) which answers are valid and as safe as this floor (rows,)."""
    valid = np.stack([each.status[:, 0] == Status.VALID for each in pool])
    return valid & (np.stack([np.nan_to_num(each.safety[:, 0]) for each in pool]) >= floor)


def _price(
    task: Task, feasible: FeasibleSet, goals: Goals, question: Question, explanations: Sequence[Explanation]
) -> tuple[Floats, Floats]:
    """(positions, rows) the cost and the energy of every answer, with the noise that its search had."""
    x, rows = feasible.x, torch.arange(len(feasible.x))
    target = goals.target_class(task.oracle.score(feasible.own))
    priced = PricedRows(x, feature_costs(task.encoder, question.costs))
    objective = Objective(task, priced, Noise(x, question.seed, 0), 1.0, target)
    x_cf = [task.encoder.embed(each.raw[:, 0]).float() for each in explanations]
    cost, energy = (
        [measure(each, rows).double().numpy() for each in x_cf] for measure in (objective.cost, objective.energy)
    )
    return np.stack(cost), np.stack(energy)


def _pick(explanations: Sequence[Explanation], which: NDArray[np.int64]) -> Explanation:
    """Each row as in the explanation with this number."""
    parts: dict[str, Any] = {}
    for each in fields(Explanation):
        arrays = [getattr(explanation, each.name) for explanation in explanations]
        parts[each.name] = None if arrays[0] is None else np.stack(arrays)[which, np.arange(len(which))]
    return Explanation(**parts)
