"""
Add your own method
===================

A method is a frozen dataclass with ``fit`` and ``search``. This one, complete, proposes the nearest training row that the model accepts; everything
else (grid, constraints, decisions, statuses, reports) is done for it.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch

import tdce
from tdce._core import Noise, find_nearest
from tdce.methods.protocol import Query, Search, Task, task_of
from tdce.methods.settings import check_settings


@dataclass(frozen=True)
class Nearest:
    """The nearest training row that the model accepts."""

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False  # whether another draw may give another answer
    has_tradeoff: ClassVar[bool] = False  # whether it heeds query.closeness
    candidates: int = 50
    task_: Task | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(self, candidates=(1, 1000))  # every number has a range

    def fit(self, task: Task) -> Self:
        task.require_rows("Nearest")
        return replace(self, task_=task)

    def search(self, query: Query, noise: Noise) -> Search:
        task = task_of(self)
        near = task.x[find_nearest(query.x, task.x, min(self.candidates, len(task.x)))]  # (n, candidates, width)
        reply = yield query.ask(torch.where(task.mutable, near, query.x[:, None]))
        return reply.row(reply.met.int().argmax(dim=1))  # the first that is accepted


# %%
# ``search`` is a generator. It yields candidates, is sent the model's decisions on them as they would be returned, and returns one row each.

data = tdce.load("german")
explainer = tdce.Explainer(Nearest(candidates=30), steps=200, hidden=64)
explainer.fit(data.part("train"), label=data.label, favourable="good", schema=data.schema)
people = data.part("test").drop(columns=data.label)
refused = people[explainer.predict(people) == "bad"]
answer = explainer.explain(refused)
print(answer.counts())

# %%
# Beside the default method, with the same model and table:

default = tdce.Explainer()
default.fitted_ = explainer.fitted_
for name, each in {"nearest": answer, "search": default.explain(refused)}.items():
    frame = each.to_frame()
    changed = each.changes().groupby("row").size().mean()
    print(f"{name}: {(frame['status'] == 'valid').mean():.0%} valid, {changed:.1f} changes")

# %%
# To give it a name, add it to ``METHODS`` in ``tdce/methods/registry.py``; one test then checks that it keeps the contract of all methods
# (:doc:`/contributing`).
