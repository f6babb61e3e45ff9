"""Evidence: whole, checkable elsewhere, and nothing in it can be altered, dropped or inserted unseen."""

import copy
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import lending
import pandas as pd
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from test_cli import run

import tdce
from tdce import InputError, verify
from tdce.audit import keys, reading, verification
from tdce.audit.chain import GENESIS_HASH, Chain, ChainState, seal_line
from tdce.audit.findings import Findings
from tdce.audit.record import block_lines
from tdce.audit.replay import Lines, Replay
from tdce.batch.ray import _renumber_evidence
from tdce.explainer.digests import canonical
from tdce.methods.search import DiffusionSearch
from tdce.models.targets import target_from_json, target_to_json

QUESTION = {"n": 2, "immutable": ["age"], "rules": ["debt <= 9000"], "costs": {"income": 2.0}, "seed": 3}
LINKS = {"record", "number", "previous", "hash", "lines"}


class Case:
    """One explainer, its file, some rows, their evidence."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.artefact = folder, folder / "lending.tdce"
        lending.explainer().save(self.artefact)
        self.explainer = tdce.Explainer.load(self.artefact, progress="silent")
        self.rows = lending.refused(self.explainer, 3)
        self.answer = self.explainer.explain(self.rows, **QUESTION)
        self.key, self.pub, self.secret = keys.make_keys(folder / "bank")
        self.path, self.private = folder / "evidence.jsonl", folder / "private.jsonl"
        self.answer.to_evidence(self.path, sign=self.key)
        self.answer.to_evidence(self.private, sign=self.key, secret=self.secret)

    def lines(self, private: bool = False) -> list[str]:
        return (self.private if private else self.path).read_text("utf-8").splitlines(keepends=True)

    def check(self, lines: list[str] | bytes, rows: bool = True, private: bool = False, **more: Any) -> Findings:
        path = self.folder / "tampered.jsonl"
        path.write_bytes(lines if isinstance(lines, bytes) else "".join(lines).encode())
        secret = self.secret if private else None
        return verify(path, self.explainer, self.rows if rows else None, secret=secret, **more)


@pytest.fixture(scope="module")
def case(tmp_path_factory) -> Case:
    return Case(tmp_path_factory.mktemp("evidence"))


def linked(records: list[dict[str, Any]]) -> list[str]:
    """What somebody without a key can do: all hashes and numbers made anew."""
    texts, head = [], GENESIS_HASH
    for number, record in enumerate(records):
        record = {**record, "number": number, "previous": head}
        record.pop("hash", None)
        if record["record"] == "end":
            record |= {"lines": number, "signature": None}
        text, head = seal_line(canonical(record))
        texts.append(text)
    return texts


def cached_ask(explainer: tdce.Explainer) -> Callable[..., tdce.Answer]:
    """Its `ask`, which answers the same question only once."""
    answers: dict[str, tdce.Answer] = {}

    def ask(rows: pd.DataFrame, *words: Any) -> tdce.Answer:
        question = rows.to_csv() + repr(words)
        if question not in answers:
            answers[question] = tdce.Explainer.ask(explainer, rows, *words)
        return answers[question]

    return ask


EMPTY = {
    "rules": ["income <= 900"], "note": "nothing", "target": "no", "closeness": 0.1, "threshold": 0.9,
    "max_model_rows": 5000, "robust": {"models": 3, "seed": 1, "table": "0" * 64}, "versions": {"x": "1"},
    "output": "rate", "signature": {},
}  # fmt: skip


def altered(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every leaf of a record in turn: where it is, and the record with another value there."""
    for key, value in record.items() if isinstance(record, dict) else enumerate(record):
        if isinstance(value, dict | list) and value:
            others = ((way, changed) for way, changed in altered(value, (*path, key)))
        else:
            others = iter([((*path, key), other(key, value))])
        for way, changed in others:
            whole = copy.deepcopy(record)
            whole[key] = changed
            yield way, whole


def other(key: Any, value: Any) -> Any:
    if value in (None, "") or isinstance(value, dict | list):
        return EMPTY.get(key, 0.5)
    if isinstance(value, bool):
        return not value
    if key == "written":
        return "2020-01-01T00:00:00Z"
    if key == "status":
        return "already" if value != "already" else "valid"
    if isinstance(value, float):
        return round(value + (0.25 if value < 0.7 else -0.25), 6)
    if isinstance(value, int):
        return value + 1
    return ("1" if value[0] == "0" else "0") + value[1:] if len(value) >= 64 else value + "x"


def test_evidence_holds_and_says_what_was_checked(case):
    found = verify(case.path, case.explainer, case.rows, public_key=case.pub)
    assert found.problems == []
    assert (found.lines, found.answers, found.rows, found.complete) == (8, 6, 3, True)
    assert (found.decisions, found.replayed, found.different_cells) == (6, 6, 0)
    assert found.signed_by == keys.load_public_key(case.pub)
    without = verify(case.path, case.explainer)
    assert (without.holds, without.decisions, without.replayed) == (True, 6, None)
    assert found.notes == without.notes == []


def test_a_record_says_what_the_answer_says(case):
    records, frame = case.answer.evidence(), case.answer.to_frame()
    assert [json.loads(line) for line in linked(records)] == records
    lines = [record for record in records if record["record"] == "answer"]
    for name in ("row", "option", "status", "score_before", "score_after", "plausibility", "safety", "note"):
        assert [record[name] for record in lines] == frame[name].tolist()
    assert [record["values"] for record in lines] == frame[list(case.explainer.schema.names)].to_numpy().tolist()
    changes = [tuple(change) for record in lines for change in record["changes"]]
    assert changes == list(case.answer.changes()[["feature", "before", "after"]].itertuples(index=False, name=None))
    reasons = [tuple(reason) for record in lines for reason in record["reasons"]]
    assert reasons == list(case.answer.reasons()[["feature", "loss"]].itertuples(index=False, name=None))
    head = records[0]
    assert head["artefact"] == hashlib.sha256(case.artefact.read_bytes()).hexdigest()
    asked = {name: QUESTION[name] for name in ("n", "immutable", "rules", "seed")}
    assert {name: head["question"][name] for name in asked} == asked
    assert head["question"]["costs"] == [["income", 2.0]]


@pytest.mark.parametrize("private", [False, True])
def test_every_record_is_as_the_schema_says(case, private):
    schema = json.loads((files("tdce.audit") / "schema.json").read_text("utf-8"))
    check = jsonschema.Draft202012Validator(schema)
    for line in case.lines(private):
        check.validate(json.loads(line))


@pytest.mark.parametrize("private", [False, True])
def test_the_schema_and_the_reader_refuse_the_same(case, private):
    """Each field with a value of another kind, and each field left out."""
    schema = json.loads((files("tdce.audit") / "schema.json").read_text("utf-8"))
    check = jsonschema.Draft202012Validator(schema)
    for number, line in enumerate(case.lines(private)):
        record = json.loads(line)
        for key in record:
            for wrong in (
                {**record, key: {"a": []}},
                {k: v for k, v in record.items() if k != key},
                {**record, "new": 1},
            ):
                body = {k: v for k, v in wrong.items() if k != "hash"}
                text = seal_line(canonical(body))[0] if key != "hash" else json.dumps(wrong)
                refused, _ = reading._parse_line(f"{text.strip()}\n".encode(), number, private)
                if wrong.get("target") == {"a": []}:  # which goals there are, only the reader of goals knows
                    assert check.is_valid(json.loads(text))
                else:
                    assert refused is None
                    assert not check.is_valid(json.loads(text))


@pytest.mark.parametrize("private", [False, True])
def test_a_change_in_any_field_is_found(case, private, tmp_path):
    lines, fields = case.lines(private), set()
    for at in (0, 1, len(lines) - 1):
        for way, record in altered(json.loads(lines[at])):
            text = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
            assert text != lines[at]
            (tmp_path / "e.jsonl").write_text("".join([*lines[:at], text, *lines[at + 1 :]]), encoding="utf-8")
            found = verify(tmp_path / "e.jsonl", None)
            assert {at + 1, at + 2} & {problem.line for problem in found.problems}, way
            fields.add((at, way[0]))
    assert {name for at, name in fields if at == 1} == {
        "record",
        *reading.RECORD_FIELDS["answer"],
        *reading.LINK_FIELDS,
    }


@pytest.mark.parametrize("private", [False, True])
def test_a_change_in_a_record_that_was_linked_anew_is_found_by_model_and_rows(case, private, monkeypatch):
    """But for what they cannot know, which a signature is for."""
    monkeypatch.setattr(case.explainer, "ask", cached_ask(case.explainer))
    records = [json.loads(line) for line in case.lines(private)]
    unseen = set()
    for at in (0, 1):
        for way, record in altered(records[at]):
            if way[0] in LINKS:
                continue
            lines = linked([*records[:at], record, *records[at + 1 :]])
            found = case.check(lines, rows=private, private=private) if way[0] != "private" else Findings(count=1)
            if found.holds and not private:
                found = case.check(lines)
            if found.holds:
                unseen.add(way[0])
    assert unseen == {"written", "machine", "question"}


def test_a_record_that_was_linked_anew_has_no_signature_of_the_signer(case):
    records = [json.loads(line) for line in case.lines()]
    assert case.check(linked(records)).holds
    stripped = case.check(linked(records), public_key=case.pub)
    assert [problem.message for problem in stripped.problems] == ["it is not signed, but a public key was given"]
    kept = linked(records[:-1])
    end = {**records[-1], "previous": json.loads(kept[-1])["hash"]}
    records[0]["written"] = "2020-01-01T00:00:00Z"
    anew = linked(records[:-1])
    end = {**records[-1], "previous": json.loads(anew[-1])["hash"]}
    end.pop("hash")
    found = case.check([*anew, seal_line(canonical(end))[0]], public_key=case.pub)
    assert [problem.message for problem in found.problems] == ["the signature does not match the lines"]


def test_a_signature_of_somebody_else_is_named(case, tmp_path):
    _, pub, _ = keys.make_keys(tmp_path / "other")
    found = verify(case.path, case.explainer, public_key=pub)
    assert "signed with another key" in str(found.problems[0])
    assert verify(case.path, None, public_key=case.pub).holds


def test_a_signature_is_of_the_number_of_lines_and_the_last_hash_as_the_page_says(case):
    """With the library alone, so that others can check it too."""
    before, end = (json.loads(line) for line in case.lines()[-2:])
    key = load_pem_public_key(case.pub.read_bytes())
    text = f"tdce evidence 4\n{end['lines']}\n{before['hash']}\n"
    assert end["lines"] == len(case.lines()) - 1
    key.verify(bytes.fromhex(end["signature"]["value"]), text.encode())  # raises if it does not hold
    assert keys.signature_holds(end["signature"]["key"], end["signature"]["value"], text.encode())
    for other in (text.replace(f"\n{end['lines']}\n", "\n"), text.replace(f"\n{end['lines']}\n", "\n9\n")):
        assert not keys.signature_holds(end["signature"]["key"], end["signature"]["value"], other.encode())


def test_lines_that_are_dropped_inserted_swapped_or_repeated_are_found(case):
    lines = case.lines()
    last = len(lines) - 1
    for i in range(len(lines)):
        dropped = case.check([*lines[:i], *lines[i + 1 :]], rows=False)
        assert not dropped.holds
        assert not case.check([*lines[:i], lines[i], *lines[i:]], rows=False).holds
        if i < last:
            swapped = [*lines[:i], lines[i + 1], lines[i], *lines[i + 2 :]]
            assert not case.check(swapped, rows=False).holds
    short = case.check(lines[:-1], rows=False)
    assert "not complete" in str(short.problems[-1])
    half = case.check("".join(lines).encode()[:-40], rows=False)
    assert "ends within this line" in str(half.problems[0])


def test_rows_and_options_that_are_dropped_and_linked_anew_are_found_with_the_rows(case):
    records = [json.loads(line) for line in case.lines()]
    row = case.check(linked([*records[:1], *records[3:]]))
    assert [problem.message for problem in row.problems] == ["1 of the 3 rows given have no answer in the record"]
    twice = case.check(linked([*records[:3], *records[1:]]))
    assert [problem.message for problem in twice.problems] == [
        "rows that are answered more often than they were given: 1"
    ]
    option = case.check(linked([*records[:2], *records[3:]]), rows=False)
    assert [(problem.line, problem.field) for problem in option.problems] == [(2, "option")]


def test_an_answer_that_is_valid_but_was_not_given_is_found_with_the_rows(case):
    """Income so high that the model says yes: the decision holds, the answer is another."""
    records = [json.loads(line) for line in case.lines()]
    line, names = records[1], records[0]["columns"]
    own = {name: before for name, before, _ in line["changes"]}
    row = [own.get(name, value) for name, value in zip(names, line["values"], strict=True)]
    richer = [9000 if name == "income" else value for name, value in zip(names, row, strict=True)]
    frame = pd.DataFrame([richer], columns=names)
    line["values"], line["changes"] = richer, [["income", row[names.index("income")], 9000]]
    line["score_after"] = float(case.explainer.predict_proba(frame)["yes"].iloc[0])
    assert case.check(linked(records), rows=False).holds
    found = case.check(linked(records))
    assert found.replayed == 5
    assert found.different_cells >= 1
    assert found.largest_difference > 100
    assert "values differ" in str(next(problem for problem in found.problems if problem.field == "values"))


def test_evidence_of_a_fitted_explainer_holds_for_the_one_that_is_loaded(tmp_path):
    """Also if words were given in another order than that of the file."""
    label = {"en": "the income", "de": "das Einkommen"}
    made = lending.explainer().with_words({"income": {"label": label}}, outcomes={"yes": {"en": "Yes", "de": "Ja"}})
    rows = lending.refused(made, 2)
    made.explain(rows).to_evidence(tmp_path / "evidence.jsonl")
    made.save(tmp_path / "a.tdce")
    found = tdce.verify(tmp_path / "evidence.jsonl", tdce.Explainer.load(tmp_path / "a.tdce"), rows)
    assert (found.problems, found.replayed) == ([], 2)


def test_whose_row_it_is_only_a_signature_can_prove(case):
    records = [json.loads(line) for line in case.lines()]
    for record in records[1:3]:
        record["row"] = "somebody else"
    assert case.check(linked(records)).holds
    assert not case.check(linked(records), public_key=case.pub).holds


def test_rules_that_the_answers_do_not_keep_are_found_with_the_rows(case):
    records = [json.loads(line) for line in case.lines()]
    records[0]["question"]["rules"] = ["income <= 100 + 0 * debt"]
    assert not case.check(linked(records)).holds


def test_private_evidence_holds_no_value_and_is_verified_with_the_secret(case, tmp_path):
    text = case.private.read_text("utf-8")
    records = [json.loads(line) for line in case.lines(private=True)]
    for record in records[1:-1]:
        assert {type(record[name]) for name in ("row", "asked", "values", "note")} == {str}
        assert all(name in records[0]["columns"] for name in record["changes"])
    for value in {str(cell) for row in case.answer.written.to_numpy().tolist() for cell in row if len(str(cell)) > 4}:
        assert value not in text
    found = verify(case.private, case.explainer, case.rows, secret=case.secret)
    assert (found.holds, found.decisions, found.replayed) == (True, 6, 6)
    _, _, another = keys.make_keys(tmp_path / "other")
    wrong = verify(case.private, case.explainer, case.rows, secret=another)
    assert "not among the rows given" in str(wrong.problems[0])
    with pytest.raises(InputError, match="give the rows and the secret"):
        verify(case.private, case.explainer)
    assert verify(case.private, None).holds


def test_a_note_with_values_is_hidden_too(case):
    odd = case.rows.assign(age=150)
    answer = case.explainer.explain(odd)
    assert all("150" in note for note in answer.to_frame()["note"])
    lines = [json.loads(line) for line in Chain(keys.load_secret(case.secret)).answer_lines(answer)]
    assert {len(line["note"]) for line in lines[1:]} == {64}
    assert [line["note"] for line in answer.evidence()[1:-1]] == answer.to_frame()["note"].tolist()
    assert {record["note"] for record in map(json.loads, case.lines(private=True)[1:-1])} == {""}, "no note, no hash"


def test_blocks_give_the_same_bytes_as_the_whole_also_after_a_kill(case, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    whole = Chain()
    text = "".join(whole.answer_lines(case.answer)) + whole.end()
    assert '"written":"2023-11-14T22:13:20Z"' in text
    state, blocks = ChainState(), ""
    for i in range(3):
        chain = Chain(state=state)  # each as if by a new process
        block = case.explainer.explain(case.rows.iloc[[i]], **QUESTION)
        blocks += "".join(chain.answer_lines(pickle.loads(pickle.dumps(block))))
        state = ChainState(**json.loads(json.dumps(asdict(chain.state))))
    assert blocks + Chain(state=state).end() == text


def test_blocks_made_in_any_order_and_linked_later_give_the_same_bytes(case, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    whole, later = Chain(), Chain()
    text = "".join(whole.answer_lines(case.answer)) + whole.end()
    blocks = {i: "".join(block_lines(case.explainer.explain(case.rows.iloc[[i]], **QUESTION))) for i in (2, 0, 1)}
    linked = [line for i in range(3) for line in later.link(blocks[i].splitlines(keepends=True))]
    assert "".join(linked) + later.end() == text


def test_blocks_that_share_a_budget_are_one_record(case):
    chain = Chain()
    for i, share in enumerate((20, 30)):
        block = case.explainer.explain(case.rows.iloc[[i]], max_model_rows=share)
        assert json.loads(next(block_lines(block)))["about"]["question"]["max_model_rows"] == share
        assert json.loads(next(block_lines(block, budget=50)))["about"]["question"]["max_model_rows"] == 50
        lines = list(chain.link(block_lines(block, budget=50)))
    assert [json.loads(line)["record"] for line in lines] == ["block", "answer"]
    with pytest.raises(InputError, match="another question"):
        list(chain.answer_lines(block))


def test_a_block_from_another_machine_is_marked_and_one_about_something_else_refused(case):
    chain = Chain()
    lines = list(chain.answer_lines(case.answer))
    came = case.answer.provenance
    lines += chain.answer_lines(
        replace(case.answer, provenance=replace(came, machine={**came.machine, "instructions": "AVX2"}))
    )
    lines += [chain.end()]
    assert [json.loads(line)["record"] for line in lines].count("machine") == 1
    found = case.check(lines, rows=False)
    assert found.holds
    assert [each["instructions"] for each in found.other_machines] == ["AVX2"]
    with pytest.raises(InputError, match="another question"):
        list(chain.answer_lines(case.explainer.explain(case.rows, seed=4)))
    with pytest.raises(InputError, match="no answer"):
        Chain().end()


def test_equal_rows_are_answered_and_verified_each(case, tmp_path):
    twice = pd.concat([case.rows, case.rows.iloc[:1]])
    case.explainer.explain(twice).to_evidence(tmp_path / "e.jsonl")
    found = verify(tmp_path / "e.jsonl", case.explainer, twice)
    assert (found.holds, found.replayed) == (True, 4)
    fewer = verify(tmp_path / "e.jsonl", case.explainer, pd.concat([twice, twice]))
    assert [problem.message for problem in fewer.problems] == ["4 of the 8 rows given have no answer in the record"]


@pytest.mark.parametrize(
    ("label", "written"),
    [("Zoë", "Zoë"), (7, 7), (1.5, 1.5), (float("nan"), "nan"), (("a", 1), "('a', 1)"),
     (pd.Timestamp("2026-01-31"), "2026-01-31 00:00:00")],
    ids=str,
)  # fmt: skip
def test_any_index_label_is_written(case, label, written):
    row = case.rows.iloc[:1].set_axis(pd.Index([label], dtype=object, tupleize_cols=False))
    assert case.explainer.explain(row).evidence()[1]["row"] == written


@pytest.fixture
def replayed(monkeypatch) -> list[list[int]]:
    """The options of the lines that are replayed at a time."""
    seen, check = list[list[int]](), Replay.check_block

    def watched(replay: Replay, lines: Lines) -> None:
        seen.append([record["option"] for _, record in lines])
        check(replay, lines)

    monkeypatch.setattr(Replay, "check_block", watched)
    return seen


def test_many_blocks_are_verified_like_one(case, replayed, monkeypatch):
    monkeypatch.setattr(verification, "REPLAY_LINES", 2)
    found = verify(case.path, case.explainer, case.rows.iloc[::-1])
    assert (found.holds, found.decisions, found.replayed) == (True, 6, 6)
    assert replayed == [[0, 1]] * 3


def test_lines_of_a_row_without_end_are_not_all_kept(case, replayed, monkeypatch):
    monkeypatch.setattr(verification, "REPLAY_LINES", 2)
    monkeypatch.setattr(verification, "MOST_OPTIONS", 3)
    head, first, second, *_, end = (json.loads(line) for line in case.lines())
    assert not case.check(linked([head, first, *[second] * 11, end]), rows=False).holds
    assert [len(each) for each in replayed] == [5, 5, 2]


def test_rows_that_share_a_budget_are_replayed_together_however_many(case, replayed, monkeypatch, tmp_path):
    monkeypatch.setattr(verification, "REPLAY_LINES", 2)
    case.explainer.explain(case.rows, max_model_rows=100_000).to_evidence(tmp_path / "e.jsonl")
    assert verify(tmp_path / "e.jsonl", case.explainer, case.rows).holds
    assert replayed == [[], [0, 0, 0]]


GOALS = ["no", tdce.AtLeast("yes", 0.8), tdce.Not("no"), tdce.Between("yes", 0.5, 0.9)]


@pytest.mark.parametrize("target", [*GOALS, [GOALS[1], "yes", GOALS[2]]], ids=str)
def test_every_goal_is_recorded_and_replayed(case, target, tmp_path):
    path = tmp_path / "e.jsonl"
    case.explainer.explain(case.rows, target=target).to_evidence(path)
    found = verify(path, case.explainer, case.rows)
    assert found.problems == []
    assert found.replayed == 3


@pytest.mark.parametrize(
    "target", ["at least 620", tdce.Range(high=8), tdce.Change(500), tdce.Change(share=-0.1)], ids=str
)
def test_goals_of_numbers_and_of_several_outputs_survive_json(target):
    entry = json.loads(json.dumps(target_to_json(target)))
    assert target_from_json(entry) == target
    both = {"approve": "yes", "rate": target}
    assert target_from_json(json.loads(json.dumps(target_to_json(both)))) == both


def amount(frame: pd.DataFrame) -> Any:
    return frame["income"] * 3.0 - frame["debt"]


def test_a_model_of_the_users_is_named_and_must_be_brought(tmp_path):
    table = lending.table(300).drop(columns="decision")
    made = tdce.Explainer(model=amount, hidden=16, steps=20, progress="silent").fit(table)
    made.save(tmp_path / "m.tdce")
    rows = table.head(3)
    made.explain(rows, target=tdce.Change(500)).to_evidence(tmp_path / "e.jsonl")
    head = json.loads((tmp_path / "e.jsonl").read_text("utf-8").splitlines()[0])
    assert (head["model"][0]["kind"], head["model"][0]["name"]) == ("function", "amount")
    again = tdce.Explainer.load(tmp_path / "m.tdce", progress="silent", model=amount)
    found = verify(tmp_path / "e.jsonl", again, rows)
    assert found.problems == []
    assert (found.decisions, found.replayed) == (3, 3)
    with pytest.raises(InputError, match="which the file does not contain"):
        verify(tmp_path / "e.jsonl", tdce.Explainer.load(tmp_path / "m.tdce", progress="silent"))


def decision(frame: pd.DataFrame) -> Any:
    return (frame["income"] - frame["debt"] > 1000).map({True: "yes", False: "no"})


def test_a_decision_with_several_outputs_is_verified(tmp_path):
    table = lending.table(300).drop(columns="decision")
    models = {"approve": decision, "amount": amount}
    made = tdce.Explainer(model=models, hidden=16, steps=20, progress="silent").fit(table)
    assert made.predict(table).tolist() == decision(table).tolist()
    rows = table[(decision(table) == "no").to_numpy()].head(3)
    answer = made.explain(rows, target={"approve": "yes", "amount": tdce.Range(low=5000)})
    answer.to_evidence(tmp_path / "e.jsonl")
    found = verify(tmp_path / "e.jsonl", made, rows)
    assert found.problems == []
    assert (found.decisions, found.replayed) == (3, 3)


def test_every_status_is_verified(case, tmp_path):
    frame = lending.table(40, seed=5).drop(columns="decision")
    mixed = case.explainer.explain(frame, rules=["income <= 2500", "debt >= 500"], max_model_rows=None)
    stuck = case.explainer.explain(frame, immutable=["income", "debt", "housing", "age"])
    seen = set()
    for answer in (mixed, stuck):
        answer.to_evidence(tmp_path / "e.jsonl")
        found = verify(tmp_path / "e.jsonl", case.explainer, frame)
        assert found.problems == []
        assert found.decisions == found.replayed == 40
        seen |= set(answer.counts())
    assert seen >= {"valid", "already", "infeasible"}


def test_another_artefact_is_named(case, tmp_path):
    other = case.explainer.with_words({"income": {"label": "the pay"}})
    found = verify(case.path, other)
    assert {problem.field for problem in found.problems} == {"artefact", "schema"}
    assert found.decisions is None
    slower = copy.copy(case.explainer)
    slower.method = DiffusionSearch(closeness=0.5)
    assert {problem.field for problem in verify(case.path, slower).problems} == {"artefact", "method"}


def test_the_hash_of_an_artefact_is_known_before_it_is_saved(case, tmp_path):
    made = case.explainer.with_words({"income": {"label": "the pay"}})
    before = made.provenance.artefact
    made.save(tmp_path / "a.tdce")
    after = hashlib.sha256((tmp_path / "a.tdce").read_bytes()).hexdigest()
    assert before == after == made.provenance.artefact == tdce.Explainer.load(tmp_path / "a.tdce").provenance.artefact
    made.keep_rows = not made.keep_rows
    assert made.provenance.artefact != after


def test_an_explainer_that_was_sent_to_another_machine_names_that_one(case, monkeypatch):
    here, sent = case.explainer.provenance, copy.copy(case.explainer)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: "NEON")
    assert sent.provenance.machine["instructions"] == "NEON"
    assert sent.provenance == replace(here, machine={**here.machine, "instructions": "NEON"})


def test_an_explainer_that_cannot_be_saved_gives_answers_but_no_evidence(case):
    class Mine(DiffusionSearch):
        pass

    mine = copy.copy(case.explainer)
    mine.method = Mine()
    answer = mine.explain(case.rows)
    for unknown in (answer, replace(answer, provenance=None)):
        with pytest.raises(InputError, match="cannot be saved"):
            unknown.evidence()


@pytest.mark.parametrize("private", [False, True])
def test_with_a_budget_the_rows_that_shared_it_are_replayed_together(case, private, tmp_path):
    """Two blocks, as `tdce explain` makes them: one with enough, one with other goals and too little."""
    secret = case.secret if private else None
    rows, hidden = lending.refused(case.explainer, 9), None if secret is None else keys.load_secret(secret)
    chain, lines = Chain(hidden), []
    for at, share, target in (
        (slice(0, 5), 2900, "yes"),
        (slice(5, 9), 60, ["yes", tdce.AtLeast("yes", 0.7)] * 2),
    ):
        answer = case.explainer.explain(rows.iloc[at], target=target, max_model_rows=share)
        lines += chain.link(block_lines(answer, hidden, budget=3000))
    lines += [chain.end()]
    said = [json.loads(line).get("status", "") for line in lines]
    assert said == ["", "", *["valid"] * 5, "", *["best_effort"] * 4, ""]
    (tmp_path / "e.jsonl").write_text("".join(lines), encoding="utf-8")
    found = verify(tmp_path / "e.jsonl", case.explainer, rows.sample(frac=1, random_state=0), secret=secret)
    assert (found.problems, found.decisions, found.replayed, found.notes) == ([], 9, 9, [])
    part = verify(tmp_path / "e.jsonl", case.explainer, rows.iloc[:8], secret=secret)
    assert {problem.field for problem in part.problems} == {"asked"}
    assert part.replayed == 5


def test_budgets_that_do_not_add_up_are_found(case, tmp_path):
    """Linked anew: no word of who shared it, too few rows, more than there was, one where there was none."""
    case.explainer.explain(case.rows, max_model_rows=60).to_evidence(tmp_path / "e.jsonl")
    records = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text("utf-8").splitlines()]
    head, block, *answers = records
    assert case.check(linked(records)).holds
    free = {**head, "question": {**head["question"], "max_model_rows": None}}
    for spoilt, line, field in (
        ([head, *answers], 2, "rows"),
        ([head, answers[0], answers[-1]], 2, "rows"),
        ([head, {**block, "rows": 2}, *answers], 2, "rows"),
        ([head, {**block, "max_model_rows": 61}, *answers], 2, "max_model_rows"),
        ([free, block, *answers], 2, "max_model_rows"),
    ):
        assert (line, field) in {(problem.line, problem.field) for problem in case.check(linked(spoilt)).problems}
    less = case.check(linked([head, {**block, "max_model_rows": 5}, *answers]))
    assert "cannot be replayed: max_model_rows is 5" in str(less.problems[0])


def test_each_field_of_a_block_is_as_the_schema_says_and_hangs_in_the_chain(case, tmp_path):
    case.explainer.explain(case.rows, max_model_rows=60).to_evidence(tmp_path / "e.jsonl")
    lines = (tmp_path / "e.jsonl").read_text("utf-8").splitlines(keepends=True)
    schema = json.loads((files("tdce.audit") / "schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(json.loads(lines[1]))
    fields = set()
    for way, record in altered(json.loads(lines[1])):
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        (tmp_path / "e.jsonl").write_text("".join([lines[0], text, *lines[2:]]), encoding="utf-8")
        assert {2, 3} & {problem.line for problem in verify(tmp_path / "e.jsonl", None).problems}, way
        fields.add(way[0])
    assert fields == {"record", *reading.RECORD_FIELDS["block"], *reading.LINK_FIELDS}


def test_robust_answers_are_replayed_with_models_that_are_retrained(case, tmp_path):
    ensemble = case.explainer.retrain(lending.table(300), models=2, seed=5)
    case.explainer.explain(case.rows, robust=ensemble).to_evidence(tmp_path / "e.jsonl")
    found = verify(tmp_path / "e.jsonl", case.explainer, case.rows, table=lending.table(300))
    assert (found.holds, found.decisions, found.replayed, found.notes) == (True, 3, 3, [])
    found = verify(tmp_path / "e.jsonl", case.explainer, case.rows)
    assert (found.holds, found.decisions, found.replayed) == (True, 3, None)
    assert "the question was not replayed: with robust" in found.notes[0]
    assert "give the table they were trained on, --table" in found.notes[0]
    other = lending.table(300)
    other.loc[299, "decision"] = "no" if other.loc[299, "decision"] == "yes" else "yes"
    found = verify(tmp_path / "e.jsonl", case.explainer, case.rows, table=other)
    assert (found.holds, found.replayed, found.problems[0].field) == (False, None, "robust")


def test_models_that_were_given_are_in_no_file_and_so_nothing_is_replayed(case, tmp_path):
    ensemble = replace(case.explainer.retrain(lending.table(300), models=1), retraining=None)
    case.explainer.explain(case.rows, robust=ensemble).to_evidence(tmp_path / "e.jsonl")
    found = verify(tmp_path / "e.jsonl", case.explainer, case.rows, table=lending.table(300))
    assert (found.holds, found.decisions, found.replayed) == (True, 3, None)
    assert "models that no file holds" in found.notes[0]
    assert verify(tmp_path / "e.jsonl", case.explainer).notes == []  # nobody asked for it


def test_on_the_command_line_robust_answers_are_verified_in_another_process(case, tmp_path):
    case.explainer.save(tmp_path / "a.tdce")
    case.rows.to_csv(tmp_path / "rows.csv", index=False)
    lending.table(300).to_csv(tmp_path / "table.csv", index=False)
    shared = ("--artefact", "a.tdce", "--table", "table.csv")
    done = tdce_in(tmp_path, "explain", "a.tdce", "rows.csv", "--robust", 2, *shared[2:], "--out", "a.csv",
                   "--evidence", "e.jsonl")  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = tdce_in(tmp_path, "verify", "e.jsonl", "--rows", "rows.csv", *shared)
    assert (done.returncode, "3 of 3 reproduced to the bit" in done.stdout) == (0, True), done.stdout
    done = tdce_in(tmp_path, "verify", "e.jsonl", *shared)
    assert (done.returncode, "--rows FILE" in done.stderr) == (2, True)


def tdce_in(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tdce", *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


HOSTILE = {
    "empty": b"",
    "no JSON": b"income,debt\n1,2\n",
    "a list": b"[1]\n",
    "deep": b"[" * 100_000 + b"\n",
    "not UTF-8": b'{"record":"\xff"}\n',
    "half a character": b'{"record":"\\ud800"}\n',
    "a name twice": b'{"record":"head","record":"head"}\n',
    "NaN": b'{"record":NaN}\n',
    "infinite": b'{"record":1e999}\n',
    "a huge number": b'{"record":' + b"9" * 5000 + b"}\n",
    "unknown": b'{"record":"letter"}\n',
    "too long": b'{"record":"' + b"x" * (2**24) + b'"}\n',
    "blank lines": b"\n\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_evidence_is_named_with_its_line(case, name):
    found = case.check(HOSTILE[name])
    assert not found.holds
    assert found.problems[0].line == (0 if name == "empty" else 1)


@pytest.mark.parametrize("value", [10**200, -1, True, None, [], "x", {"a": 1}, 1e308], ids=str)
def test_a_wrong_value_in_any_field_of_a_line_linked_anew_ends_in_no_traceback(case, value):
    records = [json.loads(line) for line in case.lines()]
    for at in (0, 1):
        for key in (key for key in records[at].keys() - LINKS if records[at][key] != value):
            changed = [*records[:at], {**records[at], key: value}, *records[at + 1 :]]
            try:
                found = case.check(linked(changed), rows=False)
            except InputError as error:
                assert "this evidence is private" in str(error)  # noqa: PT017
                continue
            unchecked = (
                "row",
                "note",
                "reasons",
                "reasons_passing",
                "reasons_applicants",
                "plausibility",
                "safety",
            )  # with the rows: see above
            assert not found.holds or key in unchecked, key


def test_keys_are_private_and_never_replaced(case, tmp_path):
    assert [path.stat().st_mode & 0o777 for path in (case.key, case.secret)] == [0o600, 0o600]
    with pytest.raises(InputError, match="never replaced"):
        keys.make_keys(case.folder / "bank")
    with pytest.raises(InputError, match="not a private key"):
        keys.load_signer(case.pub)
    with pytest.raises(InputError, match="not a public key"):
        keys.load_public_key(case.secret)
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        keys.load_secret(case.key)
    with pytest.raises(InputError, match="cannot be read"):
        keys.load_secret(tmp_path / "none")


def test_signing_without_its_library_says_how_to_get_it(case, monkeypatch, tmp_path):
    monkeypatch.setattr(keys, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"tdce\[evidence\]"):
        case.answer.to_evidence(tmp_path / "e.jsonl", sign=case.key)
    case.answer.to_evidence(tmp_path / "e.jsonl", secret=case.secret)


def test_the_chain_can_be_checked_by_the_few_lines_of_the_page(case):
    page = (Path(__file__).parents[1] / "docs" / "evidence.md").read_text("utf-8")
    (code,) = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code, case.path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    broken = case.folder / "broken.jsonl"
    broken.write_text(case.path.read_text("utf-8").replace("valid", "Valid", 1), encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", code, broken], capture_output=True, text=True, check=False)
    assert "AssertionError" in done.stderr


def test_one_process_writes_and_others_verify_also_on_another_kind_of_machine(case, tmp_path):
    case.rows.to_csv(tmp_path / "rows.csv", index=False)
    wrote = run(
        "explain", case.artefact, "rows.csv", "-n", 2, "--out", "out.csv", "--evidence", "e.jsonl", "--sign", case.key,
        cwd=tmp_path,
    )  # fmt: skip
    assert wrote.returncode == 0, wrote.stderr
    assert "Written: out.csv, e.jsonl" in wrote.stdout
    words = ("verify", "e.jsonl", "--artefact", case.artefact, "--rows", "rows.csv", "--public-key", case.pub)
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all is well" in done.stdout
    assert "6 of 6 reproduced to the bit" in done.stdout
    kind = {"ATEN_CPU_CAPABILITY": "default", "PYTHONPATH": str(Path(tdce.__file__).parents[1])}  # of machine
    argv = [sys.executable, "-m", "tdce", *map(str, words)]
    done = subprocess.run(argv, cwd=tmp_path, env=os.environ | kind, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "this is DEFAULT" in done.stdout
    text = (tmp_path / "e.jsonl").read_text("utf-8")
    (tmp_path / "e.jsonl").write_text(text.replace('"status":"valid"', '"status":"best_effort"', 1), encoding="utf-8")
    done = run(*words, "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["problems"][0]["line"] == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["verify", "none.jsonl", "--record-only"], "there is no file none.jsonl"),
        (["verify", "none.jsonl"], "--artefact names"),
        (["verify", "none.jsonl", "--record-only", "--rows", "r.csv"], "leave --artefact"),
        (["explain", "none.tdce", "r.csv", "--out", "a.csv", "--sign", "k"], "--evidence FILE"),
        (["explain", "none.tdce", "r.csv", "--out", "a.csv", "--evidence", "a.csv"], "name two files"),
        (["explain", "none.tdce", "r.csv", "--out", "a.csv", "--evidence", "e", "--sign", "k"], "key k cannot be read"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_is_one_line(words, says, tmp_path):
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_block_that_an_engine_cut_in_two_keeps_what_it_began_with():
    about, other = '{"about":{},"machine":{"tdce":"1"}}\n', '{"about":{},"machine":{"tdce":"2"}}\n'
    first, second, third = (f'{{"row":{i},"asked":"{name}"}}\n' for i, name in enumerate("abc"))
    head, lines = _renumber_evidence("", [about + first], [7], None)
    assert lines == [about, '{"row":7,"asked":"a"}\n']
    head, lines = _renumber_evidence(head, [second, other + third], [8, 9], None)
    assert (head, lines) == (other, [about, '{"row":8,"asked":"b"}\n', other, '{"row":9,"asked":"c"}\n'])
