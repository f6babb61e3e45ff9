"""The driver of all methods: it seeds, snaps to the grid, enforces constraints and queries the model for decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tdce._core import (
    Flags,
    Floats,
    Noise,
    Note,
    Positions,
    Progress,
    Threads,
    pad_rows,
    rank_within,
    round_scores,
    same,
)
from tdce.diffusion import rate_plausibility
from tdce.methods.attribution import change_losses, shown_margin
from tdce.methods.dialogues import Dialogues
from tdce.methods.explanation import LOW_SAFETY, Explanation, Status
from tdce.methods.objective import feature_costs, measure_distance
from tdce.methods.padding import without_copies
from tdce.methods.protocol import Dialogue, Method, Query, Reply, Request, Result, Task, task_of
from tdce.methods.question import DEFAULT_SAFETY, Question
from tdce.methods.selection import choose_options, count_distinct, draws_for
from tdce.models import Decision, Goal, Goals, Oracle, progress_key, score_kind
from tdce.schema import Constraint, FeasibleSet

QUERY_ROWS = 1024  # rows in one query of a method
QUERIES_AT_A_TIME = 4  # queries whose searches run side by side
SNAPPED_AT_A_TIME = 16_384  # candidates snapped at a time


def explain(
    method: Method,
    feasible: FeasibleSet,
    goals: Goals,
    question: Question,
    progress: Progress | None = None,
    attribute: bool = False,
    along: tuple[float, ...] = (),
) -> Explanation:
    """Find counterfactuals for every row: on the data's grid, within the feasible set, decided by the real model.

    With `attribute`, the model is also queried for what each change is worth. With `along`, there is one counterfactual
    per position of the trade-off, in place of options.
    """
    task, own = task_of(method), feasible.own
    oracle, n = task.oracle, len(along) or question.n
    first = oracle.decide_alone(own, goals)
    before, already = round_scores(goals.display_score(first.score)).numpy(), first.met.numpy()
    chance = round_scores(goals.chance(first.score)).numpy()
    free = np.zeros(len(own), dtype=bool)
    oracle.reserve(len(own) * n * (draws_for(n) if method.random else 1))
    for at in _parts(np.arange(len(own)), QUERY_ROWS):
        free[at] = feasible.take(at).can_change().any(axis=1)

    margin_before = shown_margin(first.score, goals).numpy()
    start = own, before, already, margin_before
    raw, after, valid, margin_after = (np.repeat(each[:, None], n, axis=1) for each in start)
    groups = _parts(np.flatnonzero(~already & free), QUERY_ROWS * QUERIES_AT_A_TIME)
    threads = Threads(len(groups))
    with (progress or Progress("silent")).bar("counterfactuals", len(groups)) as bar:
        for group in groups:
            parts = _parts(group, QUERY_ROWS)
            blocks = [Block.of(feasible, goals, at) for at in parts]
            searches = [
                _options(method, block, _Start(own[at], before[at], chance[at], _padded(first, at)), question, along)
                for block, at in zip(blocks, parts, strict=True)
            ]
            with threads.block():
                results = drive(searches, blocks, oracle)
            for at, found in zip(parts, results, strict=True):
                raw[at], after[at], valid[at], margin_after[at] = found
            bar.advance()

    status = np.where(valid, Status.VALID.value, Status.BEST_EFFORT.value).astype("<U12")
    status[already] = Status.ALREADY
    status[~already & ~free] = Status.INFEASIBLE
    plausibility = _plausibility(task, raw, goals.target_class(first.score))
    safety, distance = _safety(task, raw, margin_after, goals), _distance(task, feasible, raw, question)
    oracle.reserve(0)
    notes = _notes(feasible, goals, raw, status, before, after, question.n)
    for i, j in np.argwhere((status == Status.VALID) & (safety < LOW_SAFETY)).tolist():
        notes[i, j] = (*notes[i, j], Note("barely", values={"safety": float(safety[i, j])}))
    if oracle.exhausted:
        spent = Note("budget", values={"rows": oracle.budget})
        for i, j in np.argwhere(status == Status.BEST_EFFORT).tolist():
            notes[i, j] = (*notes[i, j], spent)
    losses = (
        change_losses(oracle, feasible.constraints, own, raw, goals, margin_before, margin_after) if attribute else None
    )
    return Explanation(own, raw, status, before, after, plausibility, notes, losses, safety, distance)


def drive(searches: Sequence[Dialogue[Result]], blocks: Sequence[Block], oracle: Oracle) -> list[Result]:
    """Run searches side by side, with all their requests of a round in one call of the oracle."""
    several = Dialogues(searches)
    while several.requests:
        everything = [(i, *blocks[i].without_padding(request)) for i, request in several.requests.items()]
        this_round = [(i, request) for i, request, _ in everything]
        raws = [blocks[i].snap(request) for i, request in this_round]
        goals = [blocks[i].goals.take(request.at.repeat_interleave(request.x.shape[1])) for i, request in this_round]
        flat = [raw.reshape(-1, raw.shape[2]) for raw in raws]
        ranks = None
        if not any(request.last for _, request in this_round):
            ranks = np.concatenate([_ranks(request) for _, request in this_round])
        decision = oracle(np.concatenate(flat), Goals(goals[0].kinds, torch.cat([each.which for each in goals])), ranks)
        parts = [torch.split(each, [len(rows) for rows in flat]) for each in decision]
        for (i, request, place), raw, score, met, margin in zip(everything, raws, *parts, strict=True):
            m, k, _ = raw.shape
            decisions = met.view(m, k)[place], margin.view(m, k)[place], score.view(m, k, -1)[place]
            embed = blocks[i].feasible.embed
            several.resume(i, Reply(raw, place, *decisions, request.at.numpy(), embed))
    return [several.results[i] for i in range(len(searches))]


class Block(NamedTuple):
    """The rows of one query, with their feasible set and goals."""

    feasible: FeasibleSet
    goals: Goals
    rows: int | None = None  # number of rows before the padding (copies of the first row); None: no padding

    @classmethod
    def of(cls, feasible: FeasibleSet, goals: Goals, at: Positions) -> Block:
        """The rows at these positions, padded to a multiple of 64."""
        padded = pad_rows(torch.from_numpy(at))
        return cls(feasible.take(padded.numpy()), goals.take(padded), len(at))

    def without_padding(self, request: Request) -> tuple[Request, Tensor]:
        """The request without the candidates of padding rows, and (m,) the place of each candidate in it."""
        if self.rows is None or self.rows == len(self.goals):
            return request, torch.arange(len(request.at))
        rows = torch.arange(len(self.goals))
        own, place = without_copies(request.x, request.at, torch.where(rows < self.rows, rows, 0))
        return request._replace(x=request.x[own], at=request.at[own]), place

    def snap(self, request: Request) -> Floats:
        """(m, k, features) the candidates as they would be returned."""
        m, k, width = request.x.shape
        flat, whose = request.x.reshape(m * k, width), request.at.repeat_interleave(k).numpy()
        parts = _parts(np.arange(m * k), SNAPPED_AT_A_TIME)
        raw = [self._snap(flat[at], whose[at], request.on_grid_only) for at in parts]
        return np.concatenate(raw).reshape(m, k, -1)

    def _snap(self, x: Tensor, whose: Positions, on_grid_only: bool) -> Floats:
        if not on_grid_only:
            return self.feasible.snap(x, whose)
        return np.where(self.feasible.frozen, self.feasible.own[whose], self.feasible.encoder.unembed(x))


class _Start(NamedTuple):
    """The rows of a block before any change."""

    own: Floats  # (rows, features)
    score: Floats  # (rows,) as shown
    chance: Floats  # (rows,)
    decision: Decision  # on all rows of the block, padding included


class _Options(NamedTuple):
    raw: Floats  # (rows, options, features)
    score: Floats  # (rows, options) as shown
    valid: Flags
    margin: Floats


def _options(
    method: Method, block: Block, start: _Start, question: Question, along: tuple[float, ...]
) -> Dialogue[_Options]:
    """The answers for one block of rows: all options of a deterministic method, or a choice from several draws."""
    feasible, goals, own, n, draws = block.feasible, block.goals, start.own, len(along) or question.n, []
    costs = feature_costs(feasible.encoder, question.costs)
    wanted = DEFAULT_SAFETY if question.safety is None else question.safety
    bounds = feasible.encoded_bounds()
    query = Query(feasible.x, start.decision, goals, bounds, question.closeness, n, wanted, costs, along)
    for draw in range(draws_for(n) if method.random else 1):
        x_cf = yield from method.search(query, Noise(feasible.x, question.seed, draw))
        if not torch.isfinite(x_cf).all():
            raise FloatingPointError(f"{type(method).__name__} returned a value that is not a number")
        reply = yield query.ask(x_cf)._replace(last=True)
        for i in range(reply.raw.shape[1]):
            score = reply.score[:, i]
            shown, chance = (
                round_scores(each)[: len(own)].numpy() for each in (goals.display_score(score), goals.chance(score))
            )
            raw, met = reply.raw[: len(own), i], goals.met(score)[: len(own)].numpy()
            worse = ~met & (chance <= start.chance)  # than the unchanged row: not proposed
            margin = shown_margin(score, goals)[: len(own)].numpy()
            draws.append(_Options(np.where(worse[:, None], own, raw), np.where(worse, start.score, shown), met, margin))
    raw, shown, valid, margin = (np.stack(each, axis=1) for each in zip(*draws, strict=True))
    order = np.arange(n)[None].repeat(len(own), axis=0).clip(max=raw.shape[1] - 1)
    if method.random:
        order = choose_options(feasible.encoder, own, raw, valid, n)
    return _Options(
        np.take_along_axis(raw, order[:, :, None], axis=1),
        np.take_along_axis(shown, order, axis=1),
        np.take_along_axis(valid, order, axis=1),
        np.take_along_axis(margin, order, axis=1),
    )


def _plausibility(task: Task, raw: Floats, target_class: Tensor) -> Floats:
    """(rows, options) the plausibility in each row's target class."""
    rows, options, features = raw.shape
    if len(task.energy_quantiles) == 0:
        return np.full((rows, options), np.nan)
    flat = rate_plausibility(
        task.encoder, task.diffusion, task.energy_quantiles, raw.reshape(-1, features),
        target_class.repeat_interleave(options),
    )  # fmt: skip
    return flat.reshape(rows, options)


def _safety(task: Task, raw: Floats, margin: Floats, goals: Goals) -> Floats:
    """(rows, options) the forecast probability that a retrained model accepts each answer, given its margin."""
    rows, options, features = raw.shape
    if task.second_opinion is None:
        return np.full((rows, options), np.nan)
    parts = []
    for at in _parts(np.arange(rows * options), SNAPPED_AT_A_TIME):
        x = task.encoder.embed(raw.reshape(-1, features)[at]).float()
        own = goals.take(torch.from_numpy(at // options))
        by = torch.from_numpy(margin.reshape(-1)[at])
        parts.append(task.second_opinion.safety(by, x, own, task.oracle.model.outputs).numpy())
    return np.concatenate([np.zeros(0), *parts]).reshape(rows, options)


def _distance(task: Task, feasible: FeasibleSet, raw: Floats, question: Question) -> Floats:
    """(rows, options) the total cost of the changes."""
    parts = _parts(np.arange(len(raw)), QUERY_ROWS)
    each = [measure_distance(task, feasible.take(at).x, raw[at], question.costs) for at in parts]
    return np.concatenate([np.zeros((0, raw.shape[1])), *each])


def _notes(
    feasible: FeasibleSet,
    goals: Goals,
    raw: Floats,
    status: NDArray[np.str_],
    before: Floats,
    after: Floats,
    options: int,  # number asked for
) -> NDArray[np.object_]:
    """(rows, options) why there is no counterfactual or too few, and which values of the row were not learned."""
    distinct = count_distinct(raw)
    moved = np.asarray(~same(raw, feasible.own[:, None]).all(axis=2))
    notes = np.empty(status.shape, dtype=object)
    for i, unfamiliar in enumerate(feasible.encoder.unfamiliar(feasible.own)):
        for j, state in enumerate(status[i].tolist()):
            own = feasible.notes() if state == Status.INFEASIBLE else []
            if state == Status.BEST_EFFORT:
                own += _shortfall(feasible, goals.goal(i), before[i], after[i, j] if moved[i, j] else None)
            if state in (Status.VALID, Status.BEST_EFFORT) and distinct[i] < options:
                count = {"options": options, "different": int(distinct[i])}
                own.append(Note("options_alike" if distinct[i] == 1 else "options_few", values=count))
            notes[i, j] = (*own, *unfamiliar)
    for law in feasible.encoder.schema.laws:
        if law.on and law.hard:
            for i, j in np.argwhere(_contradicted(law.bind(feasible.encoder.schema.features), raw)).tolist():
                notes[i, j] = (*notes[i, j], Note("contradicts", law.columns, (str(law),)))
    return notes


def _contradicted(law: Constraint, raw: Floats) -> Flags:
    """(rows, options) answers that contradict a law, because the row itself does."""
    return law.contradicted(raw.reshape(-1, raw.shape[2])).reshape(raw.shape[:2])


def _shortfall(feasible: FeasibleSet, goal: Goal, before: float, after: float | None) -> list[Note]:
    """Notes on a row that is still refused: the score reached (`after`; None: no change helps), immutable columns."""
    if after is None:
        note = Note(f"nothing_{progress_key(goal)}", values={"before": float(before)})
    else:
        moves = "raises" if after > before else "lowers"
        note = Note(f"only_{moves}_{score_kind(goal)}", values={"before": float(before), "after": float(after)})
    return [note, *feasible.immutable_notes()]


def _ranks(request: Request) -> Positions:
    """(m * k,) the rank of each candidate among those of its row."""
    return rank_within(request.at.repeat_interleave(request.x.shape[1])).numpy()


def _padded(decision: Decision, at: Positions) -> Decision:
    """The decision on the rows at these positions, padded like their block."""
    padded = pad_rows(torch.from_numpy(at))
    return Decision(*(each[padded] for each in decision))


def _parts(at: Positions, size: int) -> list[Positions]:
    """Positions, `size` at a time."""
    return [at[i : i + size] for i in range(0, len(at), size)]
