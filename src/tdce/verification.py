"""Does evidence hold: is the record whole, does the model still say so, is the answer the same when asked again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tdce.answer import Answer
from tdce.cells import Flags, Floats, same
from tdce.committee import Committee
from tdce.errors import InputError, file_path, shown
from tdce.evidence import keys
from tdce.evidence.chain import State, signed
from tdce.evidence.reading import Problem, Read, lines
from tdce.evidence.record import Record, canonical, cells, differences, hashes, records
from tdce.evidence.verified import Verified
from tdce.explainer import Explainer
from tdce.explanation import Status
from tdce.goal import Goals
from tdce.judge import Judge, rounded
from tdce.options import MOST_OPTIONS
from tdce.provenance import machine
from tdce.targets import from_entry, goals_of

BLOCK = 4096  # answers that are checked at a time
CLOSE = 1e-6  # how far scores may be apart on another machine
SLACK = 1e-9  # of the numbers themselves
VERDICT = ("wanted", "status", "score_before", "score_after")
NOT_AGAIN = ("record", "number", "row", "previous", "hash")  # what the same question need not bring again


def verify(
    path: str | os.PathLike[str],
    explainer: Explainer | None,
    rows: pd.DataFrame | None = None,
    *,
    table: pd.DataFrame | None = None,
    public_key: str | os.PathLike[str] | None = None,
    secret: str | os.PathLike[str] | None = None,
) -> Verified:
    """Check a file of evidence, as `tdce verify` does; docs/evidence.md. What does not hold is in `problems` of what is
    returned, and `holds` says whether there are none. Memory grows with `rows`, not with the file.

    - `explainer`: the one that answered, loaded from its file; None: only the record itself is checked.
    - `rows`: as they were asked about; the question is asked again, and the answers are compared.
    - `table`: with the label, on which models were trained again that were to accept the answers as well (`robust`).
    - `public_key`: a file with the key of who must have signed it.
    - `secret`: a file with the secret of evidence that holds no values.
    """
    public = None if public_key is None else keys.public(public_key)
    hidden = None if secret is None else keys.secret(secret)
    where = file_path("evidence", path)
    if not isinstance(explainer, Explainer | None):
        raise InputError(f"explainer is {shown(explainer)}; load the one that answered: Explainer.load(path)")
    if not where.is_file():
        raise InputError(f"there is no file {where}; `tdce explain … --evidence {where.name}` writes one")
    found = Verified()
    _verify(found, lines(where), explainer, Given(rows, table, hidden), public)
    if found.lines == 0:
        found.add(Problem(0, "", "the file is empty"))
    elif not found.complete:
        found.add(
            Problem(0, "", "the record is not complete: it has no last line; lines may have been dropped at its end")
        )
    if public_key is not None and found.complete and not found.signed_by:
        found.add(Problem(found.lines, "signature", "it is not signed, but a public key was given"))
    return found


def _verify(
    found: Verified,
    every: Iterable[Read],
    explainer: Explainer | None,
    given: Given,
    public_key: str | None,
) -> None:
    check: _Check | None = None
    block: list[tuple[int, Record]] = []
    previous = State()
    for line, record, problems in every:
        found.lines = line
        found.add(*problems)
        if problems and line == 1:
            found.remarks.append("verdicts and values were not checked, because the first line does not hold")
        if record is None:
            continue
        kind = record["record"]
        if kind == "head" and line == 1:
            found.written = record["written"]
            check = None if problems else _Check.of(found, record, explainer, given)
        if kind in ("head", "machine") and record["machine"] != machine() and record["machine"] not in found.elsewhere:
            found.elsewhere.append(record["machine"])
        if kind == "answer":
            full = len(block) >= (BLOCK if record["option"] == 0 else BLOCK + MOST_OPTIONS)
            if check is not None and full:
                check.block(block)
                block = []
            found.answers += 1
            found.rows += record["option"] == 0
            block += [(line, record)] if check is not None else []
        if kind == "end":
            found.complete = True
            _signature(found, line, record, previous, public_key)
        previous = State(line, record["hash"])
    if check is not None:
        check.block(block)
        check.end()


def _signature(found: Verified, line: int, end: Record, before: State, public_key: str | None) -> None:
    signature = end["signature"]
    if signature is None:
        return
    found.signed_by = signature["key"]
    if public_key not in (None, found.signed_by):
        found.add(Problem(line, "signature", f"it is signed with another key, {found.signed_by[:16]}…"))
    elif not keys.holds(found.signed_by, signature["value"], signed(before)):
        found.add(Problem(line, "signature", "the signature does not match the lines"))


class Given(NamedTuple):
    """What is there to ask again with."""

    rows: pd.DataFrame | None
    table: pd.DataFrame | None  # on which models were trained again
    secret: bytes | None


def _why_not_again(head: Record, table: pd.DataFrame | None) -> str | None:
    """Why the same question would not bring the same answers; None: it would."""
    question = head["question"]
    if question["max_model_rows"] is not None:
        return "with max_model_rows, answers depend on the rows that were asked about together"
    if question["robust"] is None:
        return None
    if question["retraining"] is None:
        return "with robust, answers depend on models that were trained again, which no file holds"
    if table is None:
        return "with robust, answers depend on models that were trained again: give the table for that, --table"
    return None


class _Check:
    """What needs the explainer, block by block."""

    def __init__(
        self,
        found: Verified,
        head: Record,
        explainer: Explainer,
        given: Given,
        committee: Committee | None,
        again: bool,
    ) -> None:
        self.found, self.head, self.explainer, self.rows = found, head, explainer, given.rows
        self.secret = given.secret if head["private"] else None
        self.names, self.options, self.committee = head["columns"], head["question"]["n"], committee
        self.places, self.wanted, self.seen = dict[str, int](), Counter[str](), Counter[str]()
        if given.rows is not None:
            own = cells(explainer.schema, explainer.fitted.encoder.read(given.rows))
            asked = hashes(explainer.schema, own, self.secret)
            self.wanted = Counter(asked)
            self.places = {each: i for i, each in reversed(list(enumerate(asked)))}  # the first of equal rows
            found.repeated = 0 if again else None
        if not head["private"] or found.repeated is not None:
            found.verdicts = 0

    @classmethod
    def of(cls, found: Verified, head: Record, explainer: Explainer | None, given: Given) -> _Check | None:
        """None if the lines say nothing that this explainer could check."""
        if explainer is None:
            found.remarks.append("only the record itself was checked: chain, form, signature")
            return None
        if head["private"] and (given.secret is None or given.rows is None):
            raise InputError("this evidence is private: it holds hashes in place of values; give the rows and the "
                             "secret (--rows and --secret), or check the record alone (--record-only)")  # fmt: skip
        if not head["private"] and given.secret is not None:
            raise InputError("this evidence is not private; leave --secret out")
        explainer.fitted.model  # noqa: B018  # an error that says so if it is not at hand
        if not _agree(found, head, explainer):
            found.remarks.append("verdicts and values were not checked, because the artefact does not fit the record")
            return None
        why, committee = _why_not_again(head, given.table), None
        if given.rows is not None and why is None and head["question"]["robust"] is not None:
            committee = _committee(found, head["question"], explainer, given.table)
            why = None if committee is not None else "the table does not fit the record"
        if given.rows is not None and why is not None:
            found.remarks.append(f"the question was not asked again: {why}")
        return cls(found, head, explainer, given, committee, why is None)

    def block(self, block: list[tuple[int, Record]]) -> None:
        """Whole rows with all their options; others are named and left out."""
        kept: list[tuple[int, Record]] = []
        for group in _rows(block):
            line, first = group[0]
            whole = [record["option"] for _, record in group] == list(range(self.options))
            if whole and all(record[name] == first[name] for _, record in group for name in ("asked", "row", "target")):
                kept += group
            else:
                words = f"its row has not the options 0 to {self.options - 1}, one line each"
                self.found.add(Problem(line, "option", words))
        self.seen.update(record["asked"] for _, record in kept if record["option"] == 0)
        alike: dict[str, list[tuple[int, Record]]] = {}
        for each in kept:
            alike.setdefault(canonical(each[1]["target"]), []).append(each)
        for some in alike.values():
            try:
                goal = from_entry(some[0][1]["target"])
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
        asked = hashes(self.explainer.schema, cells(self.explainer.schema, own))
        judge = Judge(self.explainer.fitted.model)
        goals = self._goals(goal, own, judge)
        first, last = judge(own, goals), judge(raw, goals)
        before, after = (rounded(goals.shown(verdict.score)).numpy() for verdict in (first, last))
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
                problems.append(Problem(line, "wanted", f"wanted is {shown(record['wanted'])}, not {shown(wanted[i])}"))
            if not changes[i]:
                problems.append(Problem(line, "changes", "its changes do not lead to its values"))
            elif record["asked"] != asked[i]:
                problems.append(Problem(line, "asked", "its row has another hash than the row that was asked about"))
            self.found.add(*problems)
            self.found.verdicts = (self.found.verdicts or 0) + (not problems)

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

    def _goals(self, goal: Any, own: Floats, judge: Judge) -> Goals:
        fitted, threshold = self.explainer.fitted, self.head["question"]["threshold"]
        return goals_of(goal, threshold, fitted.favourable, fitted.outputs, len(own), lambda: judge.score(own))

    def _wanted(self, goals: Goals) -> list[Any]:
        labels = tuple(label for output in self.explainer.fitted.outputs for label in output.labels())
        each = [goal.wanted(labels) for goal in goals.kinds]
        return [each[i] for i in goals.which.tolist()]

    def _answer(self, some: list[tuple[int, Record]], goal: Any) -> Answer | None:
        """Ask again about those rows of the lines that were given."""
        places = [self.places[record["asked"]] for _, record in some[:: self.options] if record["asked"] in self.places]
        if self.rows is None or self.found.repeated is None or not places:
            return None
        question = self.head["question"]
        return self.explainer.explain(
            self.rows.iloc[places], goal, self.options, question["immutable"], question["rules"],
            dict(map(tuple, question["costs"])), question["seed"], question["closeness"], question["threshold"],
            None, self.committee,
        )  # fmt: skip

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
                words = f"asked again, {name} is {shown(again)}, not {shown(record[name])}"
                problems.append(Problem(line, name, words))
        found.repeated = (found.repeated or 0) + (not problems)
        found.add(*problems)
        if self.head["private"]:
            said = any(problem.field in VERDICT for problem in problems)
            found.verdicts = (found.verdicts or 0) + (not said)


def _committee(found: Verified, question: Record, explainer: Explainer, table: pd.DataFrame | None) -> Committee | None:
    """The models that were to accept the answers as well, trained once more; None: not on this table."""
    assert table is not None
    made = explainer.retrain(table, question["robust"], question["retraining"]["seed"])
    if made.retraining == question["retraining"]:
        return made
    found.add(Problem(1, "retraining", "models were trained again on another table than the one given"))
    return None


def _agree(found: Verified, head: Record, explainer: Explainer) -> bool:
    """Whether the record is of this artefact, method and schema."""
    came, before = explainer.provenance, found.count
    expected = {
        "artefact": came.artefact,
        "model": [dict(each) for each in came.models],
        "schema": came.schema,
        "laws": came.laws,
        "columns": list(explainer.schema.names),
        "method": {"name": came.method, "settings": dict(came.settings)},
    }
    for name, value in expected.items():
        if head[name] != value:
            words = f"its {name} is not that of the artefact given: {shown(head[name])}, not {shown(value)}"
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


def _same(one: Any, other: Any) -> bool:
    """Numbers as close as on another machine, all else exactly."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float | int) and not isinstance(other, bool):
        return _close(one, other)
    return type(one) is type(other) and bool(one == other)


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= CLOSE + SLACK * max(abs(one), abs(other))
