"""Amortised answers: a network proposes, the model decides; rows it cannot solve fall back to the search."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from tdce._core import Noise
from tdce.methods.candidates import MIN_MARGIN, round_numbers
from tdce.methods.objective import safety_shortfall
from tdce.methods.protocol import Dialogue, Method, Query, Search, Task, task_of
from tdce.methods.question import DEFAULT_SAFETY, Question
from tdce.methods.search import DiffusionSearch
from tdce.models import Goals

PROPOSED_SETS = 4  # of features, for each row
OVERSHOOT = (1.15, 1.6)  # times the learned change of numbers: learned answers are near the decision boundary
ROUNDS = (  # of queries: pairs of a set's rank and an overshoot
    ((0, OVERSHOOT[0]),),
    ((0, OVERSHOOT[1]), *((k, scale) for k in range(1, PROPOSED_SETS) for scale in OVERSHOOT)),
)
INTERPOLATIONS = 2  # of numbers towards the row
AIMED_MARGIN = 0.05  # in log odds, at which these aim


@dataclass(frozen=True)
class Amortised:
    """The sets of features that the network ranks first, changed to the values that it proposes. A row for which the
    model accepts none comes back as it is, and is left to the search."""

    edition: ClassVar[int] = 2  # raised when its answers change
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
        sets = proposals.rank_sets(x, task.free, PROPOSED_SETS)
        answer, before = x, query.decision.margin.float()
        solved, after = torch.zeros(len(x), dtype=torch.bool), before
        for pairs in ROUNDS:
            at, some = rows[~solved], [(k, scale) for k, scale in pairs if k < sets.shape[1]]
            if len(at) == 0 or not some:
                continue
            x_cf = torch.stack([proposals.propose(x[at], sets[at, k], scale) for k, scale in some], dim=1)
            reply = yield query.ask(round_numbers(task.space, x[at, None], x_cf), at)
            each = at.repeat_interleave(len(some))
            lacking = safety_shortfall(task, query, reply.x.flatten(0, 1), reply.margin.flatten(), each)
            accepted = reply.met & (reply.margin >= MIN_MARGIN) & (lacking == 0).view_as(reply.met)
            first, any_accepted = accepted.int().argmax(dim=1), accepted.any(dim=1)
            margin = reply.margin.gather(1, first[:, None])[:, 0].float()
            answer = answer.index_copy(0, at[any_accepted], reply.row(first)[any_accepted])
            after = after.index_copy(0, at[any_accepted], margin[any_accepted])
            solved = solved.index_fill(0, at[any_accepted], True)
        return (yield from interpolate(task, query, answer, solved, before, after))


def interpolate(
    task: Task,
    query: Query,
    answer: Tensor,  # (n, width)
    solved: Tensor,  # (n,) which answers the model accepts
    before: Tensor,  # (n,) the margins of the rows
    after: Tensor,  # (n,) the margins of the answers
) -> Dialogue[Tensor]:
    """(n, width) the answers with numbers moved towards the row, to where the margin would be small if it were linear
    in between (regula falsi)."""
    space, encoder = task.space, task.encoder
    marked = encoder.is_mark(query.x) | encoder.is_mark(answer)  # no number lies between
    number = (torch.arange(space.width) < space.num) & ~marked & (answer != query.x)
    at = (solved & number.any(dim=1)).nonzero().squeeze(1)
    own, end, number = query.x[at], answer[at], number[at]
    low, high = torch.zeros(len(at)), torch.ones(len(at))
    under, over = before[at].float() - AIMED_MARGIN, after[at].float() - AIMED_MARGIN
    for _ in range(INTERPOLATIONS if len(at) else 0):
        share = (low - (high - low) * under / (over - under).clamp_min(1e-6)).clamp(0.0, 1.0)
        share = torch.minimum(torch.maximum(share, low), high)[:, None]
        reply = yield query.ask(round_numbers(space, own, torch.where(number, own + share * (end - own), end)), at)
        lacking = safety_shortfall(task, query, reply.x[:, 0], reply.margin[:, 0], at)
        accepted = reply.met[:, 0] & (reply.margin[:, 0] >= MIN_MARGIN) & (lacking == 0)
        margin = reply.margin[:, 0].float() - AIMED_MARGIN
        answer = answer.index_copy(0, at[accepted], reply.x[accepted, 0])
        low, high = torch.where(accepted, low, share[:, 0]), torch.where(accepted, share[:, 0], high)
        under, over = torch.where(accepted, under, margin), torch.where(accepted, margin, over)
    return answer


def amortised_pass(method: Method, question: Question, goals: Goals) -> Amortised | None:
    """The network's pass before the search, if the network has learned that method's answers to just this question,
    however many options are asked for: it has the first."""
    task = task_of(method)
    learned = task.proposals
    if learned is None or not isinstance(method, DiffusionSearch):
        return None
    if question.max_model_rows is not None or question.safety not in (None, DEFAULT_SAFETY):
        return None
    closeness = method.closeness if question.closeness is None else question.closeness
    asked = closeness, goals.kinds, dict(question.costs)
    return Amortised(task) if asked == (learned.closeness, (learned.goal,), dict(learned.costs)) else None
