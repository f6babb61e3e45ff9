"""What evidence says, asked again: the model about every line, the whole question about every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tdce._core import Flags, Floats, InputError, round_scores, same, show
from tdce.audit.findings import Findings
from tdce.audit.reading import Problem
from tdce.audit.record import Record, answerer, differences, records
from tdce.explainer import Answer, Explainer, canonical, json_cells, row_hashes
from tdce.methods import Question, Status
from tdce.models import Ensemble, Goals, Oracle, describe_goal, target_from_json

CLOSE = 1e-6  # how far scores may be apart on another machine
SLACK = 1e-9  # of the numbers themselves
VERDICT = ("wanted", "status", "score_before", "score_after")
NOT_AGAIN = ("record", "number", "row", "previous", "hash")  # what the same question need not bring again


class ReplayInputs(NamedTuple):
    """What is there to ask again with."""

    rows: pd.DataFrame | None
    table: pd.DataFrame | None  # on which models were trained again
    secret: bytes | None


def _why_not_again(head: Record, table: pd.DataFrame | None) -> str | None:
    """Why the same question would not bring the same answers; None: it would."""
    robust = head["question"]["robust"]
    if robust is None:
        return None
    if robust["table"] is None:
        return "with robust, answers depend on models that were trained again, which no file holds"
    if table is None:
        return "with robust, answers depend on models that were trained again: give the table for that, --table"
    return None


class _Share(NamedTuple):
    """Of a budget, for rows that were asked about together."""

    line: int  # that says so; 0: none does
    rows: int
    max_model_rows: int


class Replay:
    """Of one file, block by block."""

    def __init__(
        self,
        found: Findings,
        head: Record,
        explainer: Explainer,
        given: ReplayInputs,
        ensemble: Ensemble | None,
        again: bool,
    ) -> None:
        self.found, self.head, self.explainer, self.rows = found, head, explainer, given.rows
        self.secret = given.secret if head["private"] else None
        self.question, self.ensemble = Question.from_json(head["question"]), ensemble
        self.names, self.options = head["columns"], self.question.n
        self.budget = self.question.max_model_rows  # of all blocks
        self.share = _Share(0, 0, 0)  # of the block that is being checked
        self.shared = 0  # of the budget, by all blocks so far
        self.places, self.wanted, self.seen = dict[str, int](), Counter[str](), Counter[str]()
        if given.rows is not None:
            own = json_cells(explainer.schema, explainer.fitted.encoder.read(given.rows))
            asked = row_hashes(explainer.schema, own, self.secret)
            self.wanted = Counter(asked)
            self.places = {each: i for i, each in reversed(list(enumerate(asked)))}  # the first of equal rows
            found.repeated = 0 if again else None
        if not head["private"] or found.repeated is not None:
            found.decisions = 0

    @classmethod
    def of(cls, found: Findings, head: Record, explainer: Explainer | None, given: ReplayInputs) -> Replay | None:
        """None if the lines say nothing that this explainer could check."""
        if explainer is None:
            found.notes.append("only the record itself was checked: chain, form, signature")
            return None
        if head["private"] and (given.secret is None or given.rows is None):
            raise InputError("this evidence is private: it holds hashes in place of values; give the rows and the "
                             "secret (--rows and --secret), or check the record alone (--record-only)")  # fmt: skip
        if not head["private"] and given.secret is not None:
            raise InputError("this evidence is not private; leave --secret out")
        explainer.fitted.model  # noqa: B018  # an error that says so if it is not at hand
        if not _agree(found, head, explainer):
            found.notes.append("verdicts and values were not checked, because the artefact does not fit the record")
            return None
        why, ensemble = _why_not_again(head, given.table), None
        if given.rows is not None and why is None and head["question"]["robust"] is not None:
            ensemble = _retrained(found, head["question"], explainer, given.table)
            why = None if ensemble is not None else "the table does not fit the record"
        if given.rows is not None and why is not None:
            found.notes.append(f"the question was not asked again: {why}")
        return cls(found, head, explainer, given, ensemble, why is None)

    def begin(self, line: int, record: Record) -> None:
        """The next block has a budget of its own: its rows were asked about together."""
        self.share = _Share(line, record["rows"], record["max_model_rows"])
        self.shared += record["max_model_rows"]
        if self.shared > (self.budget or 0):
            words = f"blocks up to here share {self.shared:,} rows of the model, but max_model_rows is {self.budget}"
            self.found.add(Problem(line, "max_model_rows", words))

    def block(self, block: list[tuple[int, Record]]) -> None:
        """Check some lines; rows of which an option is missing are named and left out."""
        kept = self._whole(block)
        self.seen.update(record["asked"] for _, record in kept if record["option"] == 0)
        if self.budget is not None:
            self._together(kept)
            return
        for some in _alike(kept):
            try:
                goal = target_from_json(some[0][1]["target"])
                answer = self._answer(some, goal)
                if not self.head["private"]:
                    self._verdicts(some, goal)
                self._again(some, answer)
            except InputError as error:
                if len(some) <= self.options:
                    self.found.add(Problem(some[0][0], "target", f"it cannot be asked again: {error}"))
                else:  # find out which
                    for i in range(0, len(some), self.options):
                        self._alone(some[i : i + self.options])

    def _together(self, kept: list[tuple[int, Record]]) -> None:
        """Rows that shared a budget: what each was answered depends on all of them and on their order."""
        rows, line = len(kept) // self.options, self.share.line or (kept[0][0] if kept else 0)
        if rows != self.share.rows:
            words = f"{self.share.rows:,} rows are to share a budget here, but {rows:,} whole ones follow"
            self.found.add(Problem(line, "rows", words))
        try:
            for some in [] if self.head["private"] else _alike(kept):
                self._verdicts(some, target_from_json(some[0][1]["target"]))
            known = all(record["asked"] in self.places for _, record in kept)
            answer = None
            if kept and known and rows == self.share.rows:
                goals = [target_from_json(record["target"]) for _, record in kept[:: self.options]]
                answer = self._answer(kept, goals if len(_alike(kept)) > 1 else goals[0], self.share.max_model_rows)
            self._again(kept, answer)
        except InputError as error:
            self.found.add(Problem(line, "target", f"this block cannot be asked again: {error}"))

    def _whole(self, block: list[tuple[int, Record]]) -> list[tuple[int, Record]]:
        """The lines of rows of which all options are there."""
        kept: list[tuple[int, Record]] = []
        for group in _rows(block):
            line, first = group[0]
            whole = [record["option"] for _, record in group] == list(range(self.options))
            if whole and all(record[name] == first[name] for _, record in group for name in ("asked", "row", "target")):
                kept += group
            else:
                words = f"its row has not the options 0 to {self.options - 1}, one line each"
                self.found.add(Problem(line, "option", words))
        return kept

    def _alone(self, some: list[tuple[int, Record]]) -> None:
        counted = self.seen.copy()
        self.block(some)
        self.seen = counted  # they were counted before

    def end(self) -> None:
        """Rows that nobody answered."""
        left = sum((self.wanted - self.seen).values())
        if left:
            words = f"{left:,} of the {self.wanted.total():,} rows given have no answer in the record"
            self.found.add(Problem(0, "", words))
        more = sum(count - self.wanted[each] for each, count in self.seen.items() if count > self.wanted[each] > 0)
        if more:
            self.found.add(Problem(0, "", f"rows that are answered more often than they were given: {more:,}"))

    def _verdicts(self, some: list[tuple[int, Record]], goal: Any) -> None:
        """Ask the model about the values of many lines, and about their rows as they were."""
        raw, own, changes = self._values(some)
        asked = row_hashes(self.explainer.schema, json_cells(self.explainer.schema, own))
        oracle = Oracle(self.explainer.fitted.model)
        goals = self._goals(goal, own, oracle)
        first, last = oracle(own, goals), oracle(raw, goals)
        before, after = (round_scores(goals.display_score(decision.score)).numpy() for decision in (first, last))
        already, met, still = first.met.numpy(), last.met.numpy(), same(raw, own).all(axis=1)
        fitting = {  # of each status, whether it is the right one
            Status.VALID: ~already & met,
            Status.BEST_EFFORT: ~already & ~met,
            Status.ALREADY: already & still,
            Status.INFEASIBLE: ~already & still,
        }
        wanted = self._wanted(goals)
        for i, (line, record) in enumerate(some):
            problems = []
            for name, says in (("score_before", before[i]), ("score_after", after[i])):
                if not _close(record[name], says):
                    problems.append(Problem(line, name, f"{name} is {record[name]}, but the model says {says}"))
            if not fitting[Status(record["status"])][i]:
                problems.append(
                    Problem(line, "status", f"status {record['status']} is not what the model's verdict gives")
                )
            if record["wanted"] != wanted[i]:
                problems.append(Problem(line, "wanted", f"wanted is {show(record['wanted'])}, not {show(wanted[i])}"))
            if not changes[i]:
                problems.append(Problem(line, "changes", "its changes do not lead to its values"))
            elif record["asked"] != asked[i]:
                problems.append(Problem(line, "asked", "its row has another hash than the row that was asked about"))
            self.found.add(*problems)
            self.found.decisions = (self.found.decisions or 0) + (not problems)

    def _values(self, some: list[tuple[int, Record]]) -> tuple[Floats, Floats, Flags]:
        """(n, features) the answers, and the rows as they were, by taking the changes back; (n,) whether these fit."""
        place = {name: i for i, name in enumerate(self.names)}
        after, before, fits = [], [], np.ones(len(some), dtype=bool)
        for i, (line, record) in enumerate(some):
            values, own = record["values"], list(record["values"])
            if len(values) != len(self.names):
                raise InputError(f"line {line} has {len(values)} values for {len(self.names)} columns")
            for name, was, now in record["changes"]:
                fits[i] &= name in place and canonical(values[place[name]]) == canonical(now) != canonical(was)
                if name in place:
                    own[place[name]] = was
            after.append(values)
            before.append(own)
        raw, own_raw = (self.explainer.fitted.encoder.read(self._frame(each)) for each in (after, before))
        return raw, own_raw, fits

    def _frame(self, values: list[list[Any]]) -> pd.DataFrame:
        return pd.DataFrame(values, columns=self.names, dtype=object)

    def _goals(self, goal: Any, own: Floats, oracle: Oracle) -> Goals:
        return self.explainer.fitted.resolve_goals(goal, self.question.threshold, own, oracle)

    def _wanted(self, goals: Goals) -> list[Any]:
        each = [describe_goal(goal, self.explainer.fitted.labels) for goal in goals.kinds]
        return [each[i] for i in goals.which.tolist()]

    def _answer(self, some: list[tuple[int, Record]], goal: Any, budget: int | None = None) -> Answer | None:
        """Ask again about those rows of the lines that were given."""
        places = [self.places[record["asked"]] for _, record in some[:: self.options] if record["asked"] in self.places]
        if self.rows is None or self.found.repeated is None or not places:
            return None
        question = replace(self.question, target=goal, max_model_rows=budget)
        return self.explainer.ask(self.rows.iloc[places], question, self.ensemble)

    def _again(self, some: list[tuple[int, Record]], answer: Answer | None) -> None:
        """Compare with what was answered now."""
        if self.rows is None:
            return
        for line, record in some[:: self.options]:
            if record["asked"] not in self.places:
                self.found.add(Problem(line, "asked", "the row that it answers is not among the rows given"))
        if answer is not None:
            kept = [each for each in some if each[1]["asked"] in self.places]
            for (line, record), now in zip(kept, records(answer, self.secret), strict=True):
                self._compare(line, record, now)

    def _compare(self, line: int, record: Record, now: Record) -> None:
        """One line and its repetition."""
        found, problems = self.found, []
        if self.head["private"] and record["values"] != now["values"]:
            problems.append(Problem(line, "values", "asked again, its values differ"))
        if not self.head["private"] and canonical(record["values"]) != canonical(now["values"]):
            off, largest = differences(record["values"], now["values"])
            problems.append(Problem(line, "values", f"asked again, {off} values differ, numbers by up to {largest:g}"))
            found.cells_off += off
            found.largest_off = max(found.largest_off, largest)
        for name, again in now.items():
            if name not in (*NOT_AGAIN, "values") and not _same(record[name], again):
                words = f"asked again, {name} is {show(again)}, not {show(record[name])}"
                problems.append(Problem(line, name, words))
        found.repeated = (found.repeated or 0) + (not problems)
        found.add(*problems)
        if self.head["private"]:
            said = any(problem.field in VERDICT for problem in problems)
            found.decisions = (found.decisions or 0) + (not said)


def _retrained(found: Findings, question: Record, explainer: Explainer, table: pd.DataFrame | None) -> Ensemble | None:
    """The models that were to accept the answers as well, trained once more; None: not on this table."""
    assert table is not None
    robust = question["robust"]
    ensemble = explainer.retrain(table, models=robust["models"], seed=robust["seed"])
    if asdict(ensemble.retraining) == robust:
        return ensemble
    found.add(Problem(1, "robust", "models were trained again on another table than the one given"))
    return None


def _agree(found: Findings, head: Record, explainer: Explainer) -> bool:
    """Whether the record is of this artefact, method and schema."""
    before = found.count
    for name, value in answerer(explainer.provenance, explainer.schema).items():
        if head[name] != value:
            words = f"its {name} is not that of the artefact given: {show(head[name])}, not {show(value)}"
            found.add(Problem(1, name, words))
    return found.count == before


def _rows(block: list[tuple[int, Record]]) -> Iterator[list[tuple[int, Record]]]:
    """The lines of each row: from one option 0 to the next."""
    start = 0
    for i, (_, record) in enumerate(block):
        if record["option"] == 0 and i > start:
            yield block[start:i]
            start = i
    if block[start:]:
        yield block[start:]


def _alike(some: list[tuple[int, Record]]) -> list[list[tuple[int, Record]]]:
    """The lines by what was asked for."""
    alike: dict[str, list[tuple[int, Record]]] = {}
    for each in some:
        alike.setdefault(canonical(each[1]["target"]), []).append(each)
    return list(alike.values())


def _same(one: Any, other: Any) -> bool:
    """Numbers as close as on another machine, all else exactly."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float | int) and not isinstance(other, bool):
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE + SLACK * max(abs(one), abs(other))
