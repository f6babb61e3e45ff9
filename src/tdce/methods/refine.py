"""Any method with the default method's way back: the same fallback, the same objective, the same steps nearer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch

from tdce._core import Noise
from tdce.methods.candidates import Candidates
from tdce.methods.objective import Objective
from tdce.methods.protocol import Method, Query, Search, Task, task_of
from tdce.methods.search import DiffusionSearch


@dataclass(frozen=True)
class Refined:
    """For fair comparisons: `wachter+` in the benchmark is `Refined(Wachter())`."""

    edition: ClassVar[int] = DiffusionSearch.edition  # whose way back it is
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = True
    method: Method
    task_: Task | None = field(default=None, repr=False)

    def fit(self, task: Task) -> Self:
        made = self.method.fit(task)
        return replace(self, method=made, task_=replace(task_of(made), synthetic=task.synthetic))

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        task, ours = task_of(self), DiffusionSearch().fit(task_of(self))
        x_cf = yield from self.method.search(query, noise)
        closeness = ours.closeness if query.closeness is None else query.closeness
        aim = Objective(task, query, noise, closeness, query.goals.towards(query.own.score))
        asked = Candidates(query, aim)
        reply, at = (yield query.ask(x_cf)), torch.arange(len(x_cf))
        good = asked.accepted(reply, at)
        asked.keep(reply.x[good, 0], at[good])
        yield from ours.last_resort(query, asked.lacking(), asked, noise)
        near = yield from ours.refine(query, asked.best(ours.beam), lambda some: some.best(ours.beam))
        return near.first()
