"""Answers in one pass: a network proposes, the model judges. Who gets none from it is left to the search."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from tdce._core import Noise
from tdce.methods.candidates import MIN_MARGIN, round_numbers
from tdce.methods.protocol import Dialogue, Method, Query, Search, Task, task_of
from tdce.methods.question import Question
from tdce.methods.search import DiffusionSearch
from tdce.models import Goals

COUNT = 4  # sets of features that are proposed
WIDE, WIDER = 1.15, 1.6  # how much further than learned the numbers go: answers are near the edge of the verdict
TRIES = (((0, WIDE),), ((0, WIDER), *((k, scale) for k in range(1, COUNT) for scale in (WIDE, WIDER))))
NEARER = 2  # times that numbers are then brought nearer
INSIDE = 0.05  # in log odds, where they are to come to


@dataclass(frozen=True)
class Amortised:
    """Sets of features that the network ranks first, with the values that it would give them. A row of which the model
    accepts none keeps its own values."""

    edition: ClassVar[int] = 1  # raised when its answers change
    random: ClassVar[bool] = False
    has_tradeoff: ClassVar[bool] = False
    task_: Task | None = field(default=None, repr=False)

    def fit(self, task: Task) -> Self:
        return replace(self, task_=task)

    @torch.no_grad()
    def search(self, query: Query, noise: Noise) -> Search:
        task, x, rows = task_of(self), query.x, torch.arange(len(query.x))
        proposals = task.proposals
        assert proposals is not None
        sets = proposals.ranked(x, task.free, COUNT)
        answer, before = x, query.decision.margin.float()
        found, after = torch.zeros(len(x), dtype=torch.bool), before
        for tries in TRIES:
            at, some = rows[~found], [(k, scale) for k, scale in tries if k < sets.shape[1]]
            if len(at) == 0 or not some:
                continue
            tried = [round_numbers(task.space, x[at], proposals.rows(x[at], sets[at, k], scale)) for k, scale in some]
            reply = yield query.ask(torch.stack(tried, dim=1), at)
            good = reply.met & (reply.margin >= MIN_MARGIN)
            which, lucky = good.int().argmax(dim=1), good.any(dim=1)  # the first that is accepted
            margin = reply.margin.gather(1, which[:, None])[:, 0].float()
            answer = answer.index_copy(0, at[lucky], reply.row(which)[lucky])
            after = after.index_copy(0, at[lucky], margin[lucky])
            found = found.index_fill(0, at[lucky], True)
        return (yield from nearer(task, query, answer, found, before, after))


def nearer(task: Task, query: Query, answer: Tensor, found: Tensor, before: Tensor, after: Tensor) -> Dialogue[Tensor]:
    """(n, width) with numbers brought towards the row, to where the margin should be small if it grew in a straight
    line (regula falsi)."""
    space, encoder = task.space, task.encoder
    whole = encoder.marked(query.x) | encoder.marked(answer)  # nothing lies between it and a number
    number = (torch.arange(space.width) < space.num) & ~whole & (answer != query.x)
    at = (found & number.any(dim=1)).nonzero().squeeze(1)
    own, end, number = query.x[at], answer[at], number[at]
    low, high = torch.zeros(len(at)), torch.ones(len(at))
    under, over = before[at].float() - INSIDE, after[at].float() - INSIDE
    for _ in range(NEARER if len(at) else 0):
        share = (low - (high - low) * under / (over - under).clamp_min(1e-6)).clamp(0.0, 1.0)
        share = torch.minimum(torch.maximum(share, low), high)[:, None]
        reply = yield query.ask(round_numbers(space, own, torch.where(number, own + share * (end - own), end)), at)
        good, margin = reply.met[:, 0] & (reply.margin[:, 0] >= MIN_MARGIN), reply.margin[:, 0].float() - INSIDE
        answer = answer.index_copy(0, at[good], reply.x[good, 0])
        low, high = torch.where(good, low, share[:, 0]), torch.where(good, share[:, 0], high)
        under, over = torch.where(good, under, margin), torch.where(good, margin, over)
    return answer


def amortised_pass(method: Method, question: Question, goals: Goals) -> Amortised | None:
    """The network's pass before the search, if the network has learned that method's answers to just this question."""
    task = task_of(method)
    learned = task.proposals
    if learned is None or not isinstance(method, DiffusionSearch) or question.n > 1:
        return None
    if question.max_model_rows is not None:
        return None
    closeness = method.closeness if question.closeness is None else question.closeness
    asked = closeness, goals.kinds, dict(question.costs)
    return Amortised(task) if asked == (learned.closeness, (learned.goal,), dict(learned.costs)) else None
