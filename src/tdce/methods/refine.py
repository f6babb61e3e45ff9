"""Refinement of any method's answers like those of the default search: same last resort, objective and steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor

from tdce._core import Noise
from tdce.methods.candidates import STANDARD_POSITION, Candidates
from tdce.methods.objective import Objective
from tdce.methods.protocol import Method, Query, Search, Task, task_of
from tdce.methods.search import DiffusionSearch


@dataclass(frozen=True)
class Refined:
    """A method with its answers refined, for fair comparisons: the benchmark's `wachter+` is `Refined(Wachter())`."""

    edition: ClassVar[int] = DiffusionSearch.edition  # its refinement is that of the search
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = True
    method: Method
    task_: Task | None = field(default=None, repr=False)

    def fit(self, task: Task) -> Self:
        fitted = self.method.fit(task)
        return replace(self, method=fitted, task_=replace(task_of(fitted), synthetic=task.synthetic))

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        x_cf = yield from self.method.search(query, noise)
        return (yield from best_refined(task_of(self), query, noise, x_cf[:, None]))


def best_refined(
    task: Task,
    query: Query,
    noise: Noise,
    x_cf: Tensor,  # (n, k, width) k answers for each row
) -> Search:
    """The best of each row's answers by the objective, refined; the last resort where the model accepts none. With
    several options, also answers that change other features; with several positions of the trade-off, one for each."""
    default = DiffusionSearch().fit(task)
    closeness = default.closeness if query.closeness is None else query.closeness
    asked = query.along or (closeness,)
    objective = Objective(task, query, noise, query.goals.target_class(query.decision.score))
    candidates = Candidates(task, query, objective)
    at = torch.arange(len(x_cf)).repeat_interleave(x_cf.shape[1])
    yield from default.ask(query, candidates, x_cf.flatten(0, 1), at)
    yield from default.last_resort(query, candidates.unsolved(), candidates)
    near = yield from default.refine(query, candidates, tuple(sorted({STANDARD_POSITION, *asked})))
    if query.along:
        return torch.stack([near.answer(each) for each in asked], dim=1)
    answer = near.answer(closeness)
    if query.options == 1:
        return answer
    yield from default.settle(
        query, near, partial(Candidates.diverse, count=3 * query.options, first=answer, closeness=closeness)
    )
    return near.answers(query.options, answer, closeness)
