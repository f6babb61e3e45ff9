"""Replay evidence: let the model decide on every line again, and ask the question again for every row."""

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
from tdce.audit.record import Record, answer_records, describe_explainer, differences
from tdce.explainer import Answer, Explainer, canonical, json_cells, row_hashes
from tdce.methods import Question, Status
from tdce.models import Ensemble, Goals, Oracle, describe_goal, target_from_json

SCORE_TOLERANCE = 1e-6  # between scores on different machines
RELATIVE_TOLERANCE = 1e-9
DECISION_FIELDS = ("wanted", "status", "score_before", "score_after")
NOT_COMPARED = ("record", "number", "row", "previous", "hash")  # may differ in a replay

Lines = list[tuple[int, Record]]  # of answers, with line numbers


class ReplayInputs(NamedTuple):
    """What a replay needs besides the evidence and the explainer."""

    rows: pd.DataFrame | None
    table: pd.DataFrame | None  # on which the ensemble was retrained
    secret: bytes | None


class _BudgetShare(NamedTuple):
    """A block's share of the query budget."""

    line: int  # that states it; 0: none
    rows: int
    max_model_rows: int


class Replay:
    """The replay of one file, block by block; adds to `findings`."""

    def __init__(
        self,
        findings: Findings,
        head: Record,
        explainer: Explainer,
        inputs: ReplayInputs,
        ensemble: Ensemble | None,
        replayable: bool,  # whether the same question gives the same answers
    ) -> None:
        self.findings, self.head, self.explainer, self.rows = findings, head, explainer, inputs.rows
        self.secret = inputs.secret if head["private"] else None
        self.question, self.ensemble = Question.from_json(head["question"]), ensemble
        self.names, self.options = head["columns"], self.question.n
        self.budget = self.question.max_model_rows  # of all blocks
        self.share = _BudgetShare(0, 0, 0)  # of the block being checked
        self.spent = 0  # the sum of shares so far
        self.places = dict[str, int]()  # of the given rows, by hash
        self.expected, self.seen = Counter[str](), Counter[str]()  # rows by hash
        if inputs.rows is not None:
            own = json_cells(explainer.schema, explainer.fitted.encoder.read(inputs.rows))
            hashes = row_hashes(explainer.schema, own, self.secret)
            self.expected = Counter(hashes)
            self.places = {each: i for i, each in reversed(list(enumerate(hashes)))}  # the first of equal rows
            findings.replayed = 0 if replayable else None
        if not head["private"] or findings.replayed is not None:
            findings.decisions = 0

    @classmethod
    def of(cls, findings: Findings, head: Record, explainer: Explainer | None, inputs: ReplayInputs) -> Replay | None:
        """Prepare the replay of a file; None if this explainer cannot check it."""
        if explainer is None:
            findings.notes.append("only the record itself was checked: chain, form, signature")
            return None
        if head["private"] and (inputs.secret is None or inputs.rows is None):
            raise InputError("this evidence is private: it holds hashes in place of values; give the rows and the "
                             "secret (--rows and --secret), or check the record alone (--record-only)")  # fmt: skip
        if not head["private"] and inputs.secret is not None:
            raise InputError("this evidence is not private; leave --secret out")
        explainer.fitted.model  # noqa: B018  # raises an error if the model must be given
        if not _check_explainer(findings, head, explainer):
            findings.notes.append("decisions and values were not checked, because the artefact does not fit the record")
            return None
        obstacle, ensemble = _replay_obstacle(head, inputs.table), None
        if inputs.rows is not None and obstacle is None and head["question"]["robust"] is not None:
            ensemble = _retrain(findings, head["question"], explainer, inputs.table)
            obstacle = None if ensemble is not None else "the table does not fit the record"
        if inputs.rows is not None and obstacle is not None:
            findings.notes.append(f"the question was not replayed: {obstacle}")
        return cls(findings, head, explainer, inputs, ensemble, obstacle is None)

    def begin_block(self, line: int, record: Record) -> None:
        """Begin a block of rows that were explained together and share a part of the query budget."""
        self.share = _BudgetShare(line, record["rows"], record["max_model_rows"])
        self.spent += record["max_model_rows"]
        if self.spent > (self.budget or 0):
            message = f"blocks up to here share {self.spent:,} rows of the model, but max_model_rows is {self.budget}"
            self.findings.add(Problem(line, "max_model_rows", message))

    def check_block(self, lines: Lines) -> None:
        """Check some lines; report and skip rows with missing options."""
        complete = self._complete_rows(lines)
        self.seen.update(record["asked"] for _, record in complete if record["option"] == 0)
        if self.budget is not None:
            self._check_together(complete)
            return
        for group in _group_by_target(complete):
            try:
                goal = target_from_json(group[0][1]["target"])
                answer = self._replay(group, goal)
                if not self.head["private"]:
                    self._check_decisions(group, goal)
                self._compare_lines(group, answer)
            except InputError as error:
                if len(group) <= self.options:
                    self.findings.add(Problem(group[0][0], "target", f"it cannot be replayed: {error}"))
                else:  # find out which one fails
                    for i in range(0, len(group), self.options):
                        self._check_row(group[i : i + self.options])

    def finish(self) -> None:
        """Report rows with no answer, or with too many."""
        missing = sum((self.expected - self.seen).values())
        if missing:
            message = f"{missing:,} of the {self.expected.total():,} rows given have no answer in the record"
            self.findings.add(Problem(0, "", message))
        extra = sum(count - self.expected[each] for each, count in self.seen.items() if count > self.expected[each] > 0)
        if extra:
            self.findings.add(Problem(0, "", f"rows that are answered more often than they were given: {extra:,}"))

    def _check_together(self, complete: Lines) -> None:
        """Check rows that shared a budget: each answer depends on all of them and their order."""
        rows, line = len(complete) // self.options, self.share.line or (complete[0][0] if complete else 0)
        if rows != self.share.rows:
            message = f"{self.share.rows:,} rows are to share a budget here, but {rows:,} complete ones follow"
            self.findings.add(Problem(line, "rows", message))
        try:
            groups = _group_by_target(complete)
            for group in [] if self.head["private"] else groups:
                self._check_decisions(group, target_from_json(group[0][1]["target"]))
            given = all(record["asked"] in self.places for _, record in complete)
            answer = None
            if complete and given and rows == self.share.rows:
                goals = [target_from_json(record["target"]) for _, record in complete[:: self.options]]
                answer = self._replay(complete, goals if len(groups) > 1 else goals[0], self.share.max_model_rows)
            self._compare_lines(complete, answer)
        except InputError as error:
            self.findings.add(Problem(line, "target", f"this block cannot be replayed: {error}"))

    def _complete_rows(self, lines: Lines) -> Lines:
        """The lines of the rows that have all options."""
        complete: Lines = []
        for group in _group_by_row(lines):
            line, first = group[0]
            whole = [record["option"] for _, record in group] == list(range(self.options))
            if whole and all(record[name] == first[name] for _, record in group for name in ("asked", "row", "target")):
                complete += group
            else:
                message = f"its row does not have the options 0 to {self.options - 1}, one line each"
                self.findings.add(Problem(line, "option", message))
        return complete

    def _check_row(self, lines: Lines) -> None:
        """Check the lines of one row without counting it again."""
        counted = self.seen.copy()
        self.check_block(lines)
        self.seen = counted

    def _check_decisions(self, lines: Lines, goal: Any) -> None:
        """Query the model for the answers in many lines, and for their original rows."""
        raw, own, changes = self._values(lines)
        hashes = row_hashes(self.explainer.schema, json_cells(self.explainer.schema, own))
        oracle = Oracle(self.explainer.fitted.model)
        goals = self._goals(goal, own, oracle)
        first, last = oracle(own, goals), oracle(raw, goals)
        before, after = (round_scores(goals.display_score(decision.score)).numpy() for decision in (first, last))
        already, met, unchanged = first.met.numpy(), last.met.numpy(), same(raw, own).all(axis=1)
        correct = {  # whether each status would be right
            Status.VALID: ~already & met,
            Status.BEST_EFFORT: ~already & ~met,
            Status.ALREADY: already & unchanged,
            Status.INFEASIBLE: ~already & unchanged,
        }
        wanted = self._wanted(goals)
        for i, (line, record) in enumerate(lines):
            problems = []
            for name, score in (("score_before", before[i]), ("score_after", after[i])):
                if not _close(record[name], score):
                    problems.append(Problem(line, name, f"{name} is {record[name]}, but the model says {score}"))
            if not correct[Status(record["status"])][i]:
                message = f"status {record['status']} does not follow from the model's decision"
                problems.append(Problem(line, "status", message))
            if record["wanted"] != wanted[i]:
                problems.append(Problem(line, "wanted", f"wanted is {show(record['wanted'])}, not {show(wanted[i])}"))
            if not changes[i]:
                problems.append(Problem(line, "changes", "its changes do not lead to its values"))
            elif record["asked"] != hashes[i]:
                problems.append(Problem(line, "asked", "its row does not have the hash of the row that was explained"))
            self.findings.add(*problems)
            self.findings.decisions = (self.findings.decisions or 0) + (not problems)

    def _values(self, lines: Lines) -> tuple[Floats, Floats, Flags]:
        """(n, features) the answers, and the original rows by reverting the changes; (n,) whether the changes fit."""
        place = {name: i for i, name in enumerate(self.names)}
        after, before, fits = [], [], np.ones(len(lines), dtype=bool)
        for i, (line, record) in enumerate(lines):
            values, own = record["values"], list(record["values"])
            if len(values) != len(self.names):
                raise InputError(f"line {line} has {len(values)} values for {len(self.names)} columns")
            for name, old, new in record["changes"]:
                fits[i] &= name in place and canonical(values[place[name]]) == canonical(new) != canonical(old)
                if name in place:
                    own[place[name]] = old
            after.append(values)
            before.append(own)
        raw, own_raw = (self.explainer.fitted.encoder.read(self._frame(each)) for each in (after, before))
        return raw, own_raw, fits

    def _frame(self, values: list[list[Any]]) -> pd.DataFrame:
        return pd.DataFrame(values, columns=self.names, dtype=object)

    def _goals(self, goal: Any, own: Floats, oracle: Oracle) -> Goals:
        return self.explainer.fitted.resolve_goals(goal, self.question.threshold, own, oracle)

    def _wanted(self, goals: Goals) -> list[Any]:
        kinds = [describe_goal(goal, self.explainer.fitted.labels) for goal in goals.kinds]
        return [kinds[i] for i in goals.which.tolist()]

    def _replay(self, lines: Lines, goal: Any, budget: int | None = None) -> Answer | None:
        """Ask the question again for those rows of the lines that were given."""
        rows = (record["asked"] for _, record in lines[:: self.options])
        places = [self.places[each] for each in rows if each in self.places]
        if self.rows is None or self.findings.replayed is None or not places:
            return None
        question = replace(self.question, target=goal, max_model_rows=budget)
        return self.explainer.ask(self.rows.iloc[places], question, self.ensemble)

    def _compare_lines(self, lines: Lines, answer: Answer | None) -> None:
        """Compare lines with their replay."""
        if self.rows is None:
            return
        for line, record in lines[:: self.options]:
            if record["asked"] not in self.places:
                self.findings.add(Problem(line, "asked", "the row that it answers is not among the rows given"))
        if answer is not None:
            given = [each for each in lines if each[1]["asked"] in self.places]
            for (line, record), now in zip(given, answer_records(answer, self.secret), strict=True):
                self._compare(line, record, now)

    def _compare(self, line: int, record: Record, now: Record) -> None:
        """Compare one line with its replay."""
        findings, problems = self.findings, []
        if self.head["private"] and record["values"] != now["values"]:
            problems.append(Problem(line, "values", "replayed, its values differ"))
        if not self.head["private"] and canonical(record["values"]) != canonical(now["values"]):
            cells, largest = differences(record["values"], now["values"])
            message = f"replayed, {cells} values differ, numbers by up to {largest:g}"
            problems.append(Problem(line, "values", message))
            findings.different_cells += cells
            findings.largest_difference = max(findings.largest_difference, largest)
        for name, value in now.items():
            if name not in (*NOT_COMPARED, "values") and not _same(record[name], value):
                message = f"replayed, {name} is {show(value)}, not {show(record[name])}"
                problems.append(Problem(line, name, message))
        findings.replayed = (findings.replayed or 0) + (not problems)
        findings.add(*problems)
        if self.head["private"]:
            differs = any(problem.field in DECISION_FIELDS for problem in problems)
            findings.decisions = (findings.decisions or 0) + (not differs)


def _replay_obstacle(head: Record, table: pd.DataFrame | None) -> str | None:
    """Why the same question would not give the same answers; None if it would."""
    robust = head["question"]["robust"]
    if robust is None:
        return None
    if robust["table"] is None:
        return "with robust, answers depend on an ensemble of models that no file holds"
    if table is None:
        return "with robust, answers depend on retrained models: give the table they were trained on, --table"
    return None


def _retrain(findings: Findings, question: Record, explainer: Explainer, table: pd.DataFrame | None) -> Ensemble | None:
    """Retrain the ensemble that had to accept the answers; None if this is not its table."""
    assert table is not None
    robust = question["robust"]
    ensemble = explainer.retrain(table, models=robust["models"], seed=robust["seed"])
    if asdict(ensemble.retraining) == robust:
        return ensemble
    findings.add(Problem(1, "robust", "the models were retrained on another table than the one given"))
    return None


def _check_explainer(findings: Findings, head: Record, explainer: Explainer) -> bool:
    """Whether the record names this artefact, method and schema."""
    before = findings.count
    for name, value in describe_explainer(explainer.provenance, explainer.schema).items():
        if head[name] != value:
            message = f"its {name} is not that of the artefact given: {show(head[name])}, not {show(value)}"
            findings.add(Problem(1, name, message))
    return findings.count == before


def _group_by_row(lines: Lines) -> Iterator[Lines]:
    """The lines of each row, from one option 0 to the next."""
    start = 0
    for i, (_, record) in enumerate(lines):
        if record["option"] == 0 and i > start:
            yield lines[start:i]
            start = i
    if lines[start:]:
        yield lines[start:]


def _group_by_target(lines: Lines) -> list[Lines]:
    """Group lines by target."""
    groups: dict[str, Lines] = {}
    for each in lines:
        groups.setdefault(canonical(each[1]["target"]), []).append(each)
    return list(groups.values())


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers may differ as they do between machines."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float | int) and not isinstance(other, bool):
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= SCORE_TOLERANCE + RELATIVE_TOLERANCE * max(abs(one), abs(other))
