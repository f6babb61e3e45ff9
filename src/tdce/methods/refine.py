"""Any method followed by the refinement of the default search: the same last resort, objective and steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch

from tdce._core import Noise
from tdce.methods.candidates import STANDARD_POSITION, Candidates
from tdce.methods.objective import Objective
from tdce.methods.protocol import Method, Query, Search, Task, task_of
from tdce.methods.search import DiffusionSearch


@dataclass(frozen=True)
class Refined:
    """For fair comparisons: `wachter+` in the benchmark is `Refined(Wachter())`."""

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
        task, default = task_of(self), DiffusionSearch().fit(task_of(self))
        x_cf = yield from self.method.search(query, noise)
        closeness = default.closeness if query.closeness is None else query.closeness
        objective = Objective(task, query, noise, query.goals.target_class(query.decision.score))
        candidates = Candidates(task, query, objective)
        yield from default.ask(query, candidates, x_cf, torch.arange(len(x_cf)))
        yield from default.last_resort(query, candidates.unsolved(), candidates, noise)
        near = yield from default.refine(query, candidates, tuple({closeness, STANDARD_POSITION}))
        return near.answer(closeness)
