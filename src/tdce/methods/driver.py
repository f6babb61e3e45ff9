"""The one place that seeds a method, drives its search, keeps the limits and judges what is returned: `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tdce._core import Flags, Floats, Noise, Note, Positions, Progress, Threads, pad_rows, round_scores, same
from tdce.diffusion import rate_plausibility
from tdce.methods.amortised import Amortised
from tdce.methods.attribution import change_losses
from tdce.methods.attribution import shown_margin as margin_of
from tdce.methods.explanation import Explanation, Question, Status
from tdce.methods.padding import without_copies
from tdce.methods.protocol import Dialogue, Method, Query, Reply, Request, Task, task_of
from tdce.methods.search import DiffusionSearch
from tdce.methods.selection import choose_options, count_distinct, draws_for
from tdce.models import Decision, Goal, Goals, Oracle
from tdce.schema import FeasibleSet

BLOCK = 1024  # rows in one query of a method
TOGETHER = 4  # blocks whose searches run side by side
SETTLED = 16_384  # candidates that are put on the grid at a time

Result = TypeVar("Result")


class Block(NamedTuple):
    """The rows of one query."""

    feasible: FeasibleSet
    goals: Goals
    rows: int | None = None  # those after them are copies of the first; None: there are none

    @classmethod
    def of(cls, feasible: FeasibleSet, goals: Goals, at: Positions) -> Block:
        """Some rows, filled up to a multiple of 64."""
        whole = pad_rows(torch.from_numpy(at))
        return cls(feasible.take(whole.numpy()), goals.take(whole), len(at))

    def once(self, ask: Request) -> tuple[Request, Tensor]:
        """What is asked without the copies, and (m,) where each of all is found in that."""
        if self.rows is None or self.rows == len(self.goals):
            return ask, torch.arange(len(ask.at))
        rows = torch.arange(len(self.goals))
        own, place = without_copies(ask.x, ask.at, torch.where(rows < self.rows, rows, 0))
        return ask._replace(x=ask.x[own], at=ask.at[own]), place

    def settled(self, ask: Request) -> Floats:
        """(m, k, features) the candidates as they would be returned."""
        m, k, width = ask.x.shape
        flat, whose = ask.x.reshape(m * k, width), ask.at.repeat_interleave(k).numpy()
        raw = [self._settled(flat[i], whose[i], ask.on_grid_only) for i in _parts(np.arange(m * k), SETTLED)]
        return np.concatenate(raw).reshape(m, k, -1)

    def _settled(self, x: Tensor, whose: Positions, on_grid_only: bool) -> Floats:
        everyone = len(whose) == len(self.goals) and (whose == np.arange(len(whose))).all()
        feasible = self.feasible if everyone else self.feasible.take(whose)
        if not on_grid_only:
            return feasible.snap(x)
        return np.where(feasible.frozen, feasible.own, feasible.encoder.unembed(x))


def explain(
    method: Method, feasible: FeasibleSet, question: Question, progress: Progress | None = None, reasons: bool = False
) -> Explanation:
    """Counterfactuals of every row: snapped to the data's grid, within the limits, judged by the real model; with
    `reasons`, the model is also asked what each change is worth."""
    task, own, goals = task_of(method), feasible.own, question.goals
    oracle = task.oracle
    first = oracle.decide_alone(own, goals)
    before, already = round_scores(goals.shown(first.score)).numpy(), first.met.numpy()
    chance = round_scores(goals.chance(first.score)).numpy()
    free = np.zeros(len(own), dtype=bool)
    oracle.reserved = len(own) * question.options * (draws_for(question.options) if method.random else 1)
    for at in _parts(np.arange(len(own)), BLOCK):
        free[at] = feasible.take(at).free().any(axis=1)

    near = margin_of(first.score, goals).numpy()
    start = own, before, already, near
    raw, after, valid, far = (np.repeat(each[:, None], question.options, axis=1) for each in start)
    for searching in _passes(method, question):
        groups = _parts(np.flatnonzero(~valid[:, 0] & free), BLOCK * TOGETHER)
        threads = Threads(len(groups))
        with (progress or Progress("silent")).bar("counterfactuals", len(groups)) as bar:
            for group in groups:
                parts = _parts(group, BLOCK)
                blocks = [Block.of(feasible, goals, at) for at in parts]
                talks = [
                    _options(searching, block, _Start(own[at], before[at], chance[at], _padded(first, at)), question)
                    for block, at in zip(blocks, parts, strict=True)
                ]
                with threads.block():
                    found = drive(talks, blocks, oracle)
                for at, best in zip(parts, found, strict=True):
                    raw[at], after[at], valid[at], far[at] = best
                bar.advance()

    status = np.where(valid, Status.VALID.value, Status.BEST_EFFORT.value).astype("<U12")
    status[already] = Status.ALREADY
    status[~already & ~free] = Status.INFEASIBLE
    plausible = _plausible(task, raw, goals.towards(first.score))
    oracle.reserved = 0
    notes = _remarks(feasible, goals, raw, status, before, after)
    if oracle.exhausted:
        spent = Note("budget", values={"rows": oracle.budget})
        for i, j in np.argwhere(status == Status.BEST_EFFORT).tolist():
            notes[i, j] = (*notes[i, j], spent)
    loss = change_losses(oracle, own, raw, goals, near, far) if reasons else None
    return Explanation(own, raw, status, before, after, plausible, notes, loss)


def drive(talks: Sequence[Dialogue[Result]], blocks: Sequence[Block], oracle: Oracle) -> list[Result]:
    """Run searches side by side: what all of them ask in a round is one call of the judge."""
    results: dict[int, Result] = {}
    asked: dict[int, Request] = {}

    def go_on(i: int, reply: Reply | None) -> None:
        try:
            asked[i] = talks[i].send(reply)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            results[i] = end.value
            asked.pop(i, None)

    for i in range(len(talks)):
        go_on(i, None)
    while asked:
        everything = [(i, *blocks[i].once(ask)) for i, ask in asked.items()]
        round_of = [(i, ask) for i, ask, _ in everything]
        raws = [blocks[i].settled(ask) for i, ask in round_of]
        goals = [blocks[i].goals.take(ask.at.repeat_interleave(ask.x.shape[1])) for i, ask in round_of]
        flat = [raw.reshape(-1, raw.shape[2]) for raw in raws]
        turns = None if any(ask.last for _, ask in round_of) else np.concatenate([_turns(ask) for _, ask in round_of])
        decision = oracle(np.concatenate(flat), Goals(goals[0].kinds, torch.cat([each.which for each in goals])), turns)
        parts = [torch.split(each, [len(rows) for rows in flat]) for each in decision]
        for (i, _, place), raw, score, met, margin in zip(everything, raws, *parts, strict=True):
            m, k, _ = raw.shape
            embed = blocks[i].feasible.encoder.embed
            decisions = met.view(m, k)[place], margin.view(m, k)[place], score.view(m, k, -1)[place]
            go_on(i, Reply(raw, place, *decisions, embed))
    return [results[i] for i in range(len(talks))]


def _passes(method: Method, question: Question) -> tuple[Method, ...]:
    """The method; before it one pass, if a network has learned the method's answers to just this question."""
    task = task_of(method)
    known = task.proposals
    if known is None or not isinstance(method, DiffusionSearch) or question.options > 1 or question.budget is not None:
        return (method,)
    closeness = method.closeness if question.closeness is None else question.closeness
    asked = closeness, question.goals.kinds, dict(question.costs)
    return (Amortised(task), method) if asked == (known.closeness, (known.goal,), dict(known.costs)) else (method,)


class _Start(NamedTuple):
    own: Floats  # (rows, features)
    shown: Floats  # (rows,) the probability of what is wanted
    chance: Floats  # (rows,)
    decision: Decision  # on the rows of the block


class _Found(NamedTuple):
    raw: Floats  # (rows, options, features)
    after: Floats  # (rows, options)
    valid: Flags
    margin: Floats


def _options(method: Method, block: Block, start: _Start, question: Question) -> Dialogue[_Found]:
    """The answers for one block of rows: all that the method has at once, or those chosen from several draws."""
    feasible, goals, own, draws = block.feasible, block.goals, start.own, []
    costs = torch.tensor([question.costs.get(name, 1.0) for name in feasible.encoder.schema.names], dtype=torch.float)
    query = Query(
        feasible.x, start.decision, goals, feasible.encoded_bounds(), question.closeness, question.options, costs
    )
    for option in range(draws_for(question.options) if method.random else 1):
        x_cf = yield from method.search(query, Noise(feasible.x, question.seed, option))
        if not torch.isfinite(x_cf).all():
            raise FloatingPointError(f"{type(method).__name__} returned a value that is not a number")
        reply = yield query.ask(x_cf)._replace(last=True)
        for i in range(reply.raw.shape[1]):
            score = reply.score[:, i]
            shown, chance = (
                round_scores(each)[: len(own)].numpy() for each in (goals.shown(score), goals.chance(score))
            )
            raw, met = reply.raw[: len(own), i], goals.met(score)[: len(own)].numpy()
            worse = ~met & (chance <= start.chance)  # than nothing: not proposed
            far = margin_of(score, goals)[: len(own)].numpy()
            draws.append(_Found(np.where(worse[:, None], own, raw), np.where(worse, start.shown, shown), met, far))
    raw, after, valid, far = (np.stack(each, axis=1) for each in zip(*draws, strict=True))
    order = np.arange(question.options)[None].repeat(len(own), axis=0).clip(max=raw.shape[1] - 1)
    if method.random:
        order = choose_options(feasible.encoder, own, raw, valid, question.options)
    return _Found(
        np.take_along_axis(raw, order[:, :, None], axis=1),
        np.take_along_axis(after, order, axis=1),
        np.take_along_axis(valid, order, axis=1),
        np.take_along_axis(far, order, axis=1),
    )


def _plausible(task: Task, raw: Floats, towards: Tensor) -> Floats:
    """(rows, options) how plausible each is in the class that was wanted for its row."""
    rows, options, features = raw.shape
    if len(task.energy_quantiles) == 0:
        return np.full((rows, options), np.nan)
    wanted = towards.repeat_interleave(options)
    flat = rate_plausibility(task.encoder, task.diffusion, task.energy_quantiles, raw.reshape(-1, features), wanted)
    return flat.reshape(rows, options)


def _remarks(
    feasible: FeasibleSet, goals: Goals, raw: Floats, status: NDArray[np.str_], before: Floats, after: Floats
) -> NDArray[np.object_]:
    """(rows, options) why there is no counterfactual or too few, and which of the row's values were never learned."""
    options, different = status.shape[1], count_distinct(raw)
    moved = np.asarray(~same(raw, feasible.own[:, None]).all(axis=2))
    notes = np.empty(status.shape, dtype=object)
    for i, unfamiliar in enumerate(feasible.encoder.unfamiliar(feasible.own)):
        for j, state in enumerate(status[i].tolist()):
            said = feasible.notes() if state == Status.INFEASIBLE else []
            if state == Status.BEST_EFFORT:
                said += _shortfall(feasible, goals.goal(i), before[i], after[i, j] if moved[i, j] else None)
            if state in (Status.VALID, Status.BEST_EFFORT) and different[i] < options:
                count = {"options": options, "different": int(different[i])}
                said.append(Note("options_alike" if different[i] == 1 else "options_few", values=count))
            notes[i, j] = (*said, *unfamiliar)
    return notes


def _shortfall(feasible: FeasibleSet, goal: Goal, before: float, after: float | None) -> list[Note]:
    """What was reached (None: nothing) where the model still says no."""
    if after is None:
        said = Note(f"nothing_{goal.nearer}", values={"before": float(before)})
    else:
        moves = "raises" if after > before else "lowers"
        said = Note(f"only_{moves}_{goal.shows}", values={"before": float(before), "after": float(after)})
    return [said, *feasible.immutable_notes()]


def _turns(ask: Request) -> Positions:
    """(m * k,) of each candidate, its number among those of its row."""
    whose = ask.at.repeat_interleave(ask.x.shape[1]).numpy()
    order = np.argsort(whose, kind="stable")
    turn = np.empty(len(whose), dtype=np.int64)
    turn[order] = np.arange(len(whose)) - np.searchsorted(whose[order], whose[order])
    return turn


def _padded(decision: Decision, at: Positions) -> Decision:
    """On some rows, filled up like their block."""
    whole = pad_rows(torch.from_numpy(at))
    return Decision(*(each[whole] for each in decision))


def _parts(at: Positions, size: int) -> list[Positions]:
    """Row numbers, `size` at a time."""
    return [at[i : i + size] for i in range(0, len(at), size)]
