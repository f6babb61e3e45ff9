"""Lines of evidence made by hand, without a model: how they are linked, read, and which of them are refused."""

import copy
import hashlib
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tdce import InputError, verify
from tdce.audit import keys, reading
from tdce.audit.chain import GENESIS_HASH, Chain, ChainState, seal_line
from tdce.audit.reading import Problem, read_lines
from tdce.audit.record import EVIDENCE_FORMAT, differences, relabel, timestamp
from tdce.audit.replay import _same
from tdce.explainer.digests import canonical, digest

HEX = "0123456789abcdef" * 4
MACHINE = {"tdce": "1", "python": "3.12", "torch": "2", "numpy": "2", "instructions": "AVX2"}
ELSEWHERE = {**MACHINE, "instructions": "NEON"}
QUESTION = {
    "n": 2, "immutable": ["age"], "rules": ["debt <= 9000"], "costs": [["income", 2.0]], "seed": 3, "closeness": 0.5,
    "threshold": 0.7, "safety": 0.8, "max_model_rows": 60, "robust": {"models": 3, "seed": 1, "table": HEX},
}  # fmt: skip
ABOUT = {
    "artefact": HEX,
    "model": [{"output": "", "kind": "network", "name": "", "digest": HEX, "versions": {}}],
    "schema": HEX, "laws": HEX, "columns": ["age", "income", 7], "method": {"name": "tdce", "settings": {}},
    "question": QUESTION, "private": False,
}  # fmt: skip
ANSWER = {
    "row": 1, "asked": HEX, "option": 0, "target": None, "wanted": "yes", "status": "valid", "score_before": 0.2,
    "score_after": 0.9, "plausibility": None, "safety": 0.9, "values": [30, None, "x"],
    "changes": [["income", 1, None]], "reasons": [["income", 0.5]],
    "reasons_passing": [["debt", 0.25]], "reasons_applicants": None, "note": "",
}  # fmt: skip
PRIVATE = {**ANSWER, "row": HEX, "values": HEX, "changes": ["income"], "note": HEX}
BLOCK = {"rows": 2, "max_model_rows": 30}


def block(machine: dict = MACHINE, answers: int = 2, about: dict = ABOUT, **more: Any) -> list[str]:
    """The lines of a block, not yet linked."""
    head = {"about": about, "machine": machine, **more}
    return [canonical(head) + "\n", *(canonical({**ANSWER, "row": i}) + "\n" for i in range(answers))]


def kinds(lines: list[str]) -> list[str]:
    return [json.loads(line)["record"] for line in lines]


# how they are linked


def test_each_line_holds_its_number_the_hash_before_and_its_own():
    chain = Chain()
    lines = [*chain.link(block()), chain.end()]
    assert kinds(lines) == ["head", "answer", "answer", "end"]
    previous = GENESIS_HASH
    for number, line in enumerate(lines):
        record = json.loads(line)
        assert (record["number"], record["previous"]) == (number, previous)
        previous = record["hash"]
        text = line.replace(f',"hash":"{previous}"', "").removesuffix("\n")
        assert previous == hashlib.sha256(text.encode()).hexdigest()
    assert chain.state.lines == 4
    assert (record["lines"], record["signature"]) == (3, None)


def test_a_machine_is_named_where_it_differs_from_the_one_before():
    chain = Chain()
    lines = [
        line for machine in (MACHINE, MACHINE, ELSEWHERE, ELSEWHERE, MACHINE) for line in chain.link(block(machine))
    ]
    answers = ["answer"] * 2
    assert kinds(lines) == ["head", *answers, *answers, "machine", *answers, *answers, "machine", *answers]
    named = [json.loads(line)["machine"] for line in lines if '"machine":{' in line]
    assert named == [MACHINE, ELSEWHERE, MACHINE]


def test_a_share_of_the_budget_is_a_line_before_its_answers():
    chain = Chain()
    lines = [*chain.link(block(block=BLOCK)), *chain.link(block(ELSEWHERE, block=BLOCK))]
    assert kinds(lines) == ["head", "block", "answer", "answer", "machine", "block", "answer", "answer"]
    assert json.loads(lines[5]).items() >= BLOCK.items()


def test_a_block_about_something_else_is_refused_wherever_it_comes():
    chain = Chain()
    list(chain.link(block()))
    before = chain.state
    with pytest.raises(InputError, match="this answer is to another question, or by another explainer"):
        list(chain.link(block(about={**ABOUT, "laws": HEX[::-1]})))
    assert chain.state == before
    with pytest.raises(InputError, match="there is no answer to write evidence of"):
        Chain().end()


def test_a_chain_goes_on_from_its_state_to_the_byte(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    whole, state, parts = Chain(), ChainState(), list[str]()
    machines = (MACHINE, ELSEWHERE, ELSEWHERE)
    text = [line for machine in machines for line in whole.link(block(machine))]
    for machine in machines:
        chain = Chain(state=state)
        parts += chain.link(block(machine))
        state = chain.state
    assert parts == text
    assert Chain(state=state).end() == whole.end()


def test_a_signature_holds_for_these_lines_only(tmp_path):
    key, pub, _ = keys.make_keys(tmp_path / "mine")
    _, other, _ = keys.make_keys(tmp_path / "other")
    chain = Chain()
    lines = list(chain.link(block()))
    lines.append(chain.end(keys.load_signer(key)))
    path = written(tmp_path, lines)
    assert verify(path, None, public_key=pub).problems == []
    assert verify(path, None).signed_by == keys.load_public_key(pub)
    wrong = verify(path, None, public_key=other)
    assert [(each.line, each.field) for each in wrong.problems] == [(4, "signature")]
    assert wrong.problems[0].message.startswith("it is signed with another key, ")
    end = json.loads(lines[-1])
    anew = linked([{**json.loads(line), "previous": ""} for line in [lines[0], *lines[2:-1]]])
    last = {**end, "number": 2, "lines": 2, "previous": json.loads(anew[-1])["hash"]}
    last.pop("hash")
    short = verify(written(tmp_path, [*anew, seal_line(canonical(last))[0]]), None)
    assert [str(each) for each in short.problems] == ["line 3: the signature does not match the lines"]


# what they say


def test_a_label_is_replaced_and_nothing_else():
    line, secret = canonical(ANSWER) + "\n", b"s" * 32
    assert relabel(line, "Zoë") == canonical({**ANSWER, "row": "Zoë"}) + "\n"
    assert relabel(line, 7, secret) == canonical({**ANSWER, "row": digest("label", 7, secret)}) + "\n"
    assert relabel(line, ("a", 1)) == canonical({**ANSWER, "row": "('a', 1)"}) + "\n"


@pytest.mark.parametrize(
    ("one", "other", "count", "gap"),
    [
        ([1, "a", None], [1, "a", None], 0, 0.0),
        ([1, 2.5, "a"], [4, 1.5, "b"], 3, 3.0),
        ([4, 0.0], [1, -1.0], 2, 3.0),
        ([True, 1], [1, True], 2, 0.0),  # a flag is no number
        ([1, 2.0], [1.0, 2], 2, 0.0),
        ([None, "a"], [5, 7], 2, 0.0),
        ([True, 0.5], [5, False], 2, 0.0),
    ],
)
def test_differences_are_counted_and_the_largest_of_two_numbers_is_told(one, other, count, gap):
    assert differences(one, other) == differences(other, one) == (count, gap)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (0.5, 0.5 + 9e-7, True), (0.5, 0.5 + 2e-6, False), (1e6, 1e6 + 9e-4, True), (-1e6, -1e6 - 2e-3, False),
        (1.0, 1, True), (1.0, True, False), (1, True, False), (1, 2, False), (0.5, "0.5", False), (None, None, True),
        ("a", "a", True), ("a", "b", False), ([0.5, "a"], [0.5 + 9e-7, "a"], True), ([0.5], [0.5, "a"], False),
        ([["a", 0.5]], [["a", 0.7]], False), (["a"], "a", False), ("a", ["a"], False),
    ],
)  # fmt: skip
def test_replayed_numbers_may_differ_as_on_another_machine_and_nothing_else(one, other, expected):
    assert _same(one, other) is expected


def test_the_time_is_that_of_the_environment_or_now(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert timestamp() == "2023-11-14T22:13:20Z"
    for wrong in ("soon", "", "1.5", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(InputError, match=r"SOURCE_DATE_EPOCH is .*; it must be a whole number of seconds"):
            timestamp()
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", timestamp())


# how they are read


def linked(records: list[dict[str, Any]]) -> list[str]:
    """All hashes, numbers and links made anew."""
    lines, previous = [], GENESIS_HASH
    for number, record in enumerate(records):
        line, previous = seal_line(
            canonical({k: v for k, v in record.items() if k != "hash"} | {"number": number, "previous": previous})
        )
        lines.append(line)
    return lines


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "e.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def problems(folder: Path, lines: list[str]) -> list[tuple[int, str]]:
    found = [problem for line in read_lines(written(folder, lines)) for problem in line.problems]
    assert all(problem.message for problem in found)
    return [(problem.line, problem.field) for problem in found]


NOTHING_BUT_LINES = "only the record itself was checked: chain, form, signature"


@pytest.fixture
def lines() -> list[str]:
    """A head, three answers, another machine, two answers, the end."""
    chain = Chain()
    return [*chain.link(block(answers=3)), *chain.link(block(ELSEWHERE)), chain.end()]


def test_what_was_written_is_read_without_a_problem(lines, tmp_path):
    read = list(read_lines(written(tmp_path, lines)))
    assert [line.line for line in read] == list(range(1, 9))
    assert [line.record for line in read] == [json.loads(line) for line in lines]
    assert problems(tmp_path, lines) == []
    found = verify(tmp_path / "e.jsonl", None)
    assert (found.holds, found.lines, found.answers, found.rows, found.complete) == (True, 8, 5, 5, True)
    assert found.written == json.loads(lines[0])["written"]
    assert found.other_machines == [MACHINE, ELSEWHERE]
    assert (found.signed_by, found.notes, found.decisions, found.replayed) == ("", [NOTHING_BUT_LINES], None, None)


def test_a_line_that_is_missing_repeated_or_moved_is_named(lines, tmp_path):
    assert problems(tmp_path, [*lines[:2], *lines[3:]]) == [(3, "number"), (3, "previous"), (7, "lines")]
    assert problems(tmp_path, [*lines[:3], *lines[2:]]) == [(4, "number"), (4, "previous"), (9, "lines")]
    assert problems(tmp_path, [*lines[:2], lines[3], lines[2], *lines[4:]]) == [
        (3, "number"), (3, "previous"), (4, "number"), (4, "previous"), (5, "number"), (5, "previous"),
    ]  # fmt: skip
    assert problems(tmp_path, lines[1:])[:2] == [(1, "record"), (1, "number")]
    assert problems(tmp_path, [*lines, lines[-1]]) == [
        (9, "record"), (9, "number"), (9, "previous"), (9, "lines"),
    ]  # fmt: skip


def test_a_second_first_line_is_named(lines, tmp_path):
    records = [json.loads(line) for line in lines]
    twice = linked([records[0], records[1], records[0], {**records[-1], "lines": 3}])
    assert problems(tmp_path, twice) == [(3, "record")]
    later = {**records[0], "written": "2000-01-01T00:00:00Z"}
    found = verify(written(tmp_path, linked([*records[:2], later, {**records[-1], "lines": 3}])), None)
    assert (found.written, found.answers) == (records[0]["written"], 1)
    late = linked([records[1], records[0], {**records[-1], "lines": 2}])
    assert problems(tmp_path, late) == [(1, "record"), (2, "record")]
    messages = [str(problem) for line in read_lines(tmp_path / "e.jsonl") for problem in line.problems]
    assert messages == ["line 1: it is not a first line of evidence", "line 2: there is a second first line"]
    after = linked([records[0], {**records[-1], "lines": 1}, records[1]])
    assert problems(tmp_path, after) == [(3, "record")]


def test_a_line_that_cannot_be_read_breaks_its_own_link_and_the_next(lines, tmp_path):
    assert problems(tmp_path, [*lines[:2], "nonsense\n", *lines[3:]]) == [(3, ""), (4, "previous")]
    assert problems(tmp_path, [*lines[:2], lines[2].replace("valid", "Valid"), *lines[3:]]) == [
        (3, "status"), (4, "previous"),
    ]  # fmt: skip


def test_altered_content_and_another_way_to_write_it_are_told_apart(lines, tmp_path):
    altered = lines[2].replace('"wanted":"yes"', '"wanted":"yet"')
    assert problems(tmp_path, [*lines[:2], altered, *lines[3:]]) == [(3, "hash")]
    for other in (
        lines[2].replace('"wanted":"yes"', '"wanted": "yes"'),
        lines[2].replace('"wanted":"yes"', '"wanted":"\\u0079es"'),
        lines[2].replace("\n", "\r\n"),
    ):
        assert other != lines[2]
        assert problems(tmp_path, [*lines[:2], other, *lines[3:]]) == [(3, "")]
    moved = lines[2].replace('"option":0,"target":null', '"target":null,"option":0')
    assert problems(tmp_path, [*lines[:2], moved, *lines[3:]]) == [(3, "hash")]


def test_a_record_without_its_end_is_not_complete(lines, tmp_path):
    found = verify(written(tmp_path, lines[:-1]), None)
    assert (found.complete, found.lines) == (False, 7)
    (problem,) = found.problems
    assert (problem.line, problem.field, str(problem)) == (
        0, "", "the record is not complete: it has no last line; lines may have been dropped at its end",
    )  # fmt: skip
    (empty,) = verify(written(tmp_path, []), None).problems
    assert str(empty) == "the file is empty"
    cut = verify(written(tmp_path, [*lines[:-1], lines[-1][:-1]]), None)
    assert str(cut.problems[0]) == "line 8: the file ends within this line"
    assert not cut.complete


def test_a_first_line_that_does_not_hold_is_noted_once_and_others_are_not(lines, tmp_path):
    note = "decisions and values were not checked, because the first line does not hold"
    assert verify(written(tmp_path, ["{}\n", *lines[1:]]), None).notes == [note]
    assert verify(written(tmp_path, [*lines[:1], "{}\n", "{}\n", *lines[3:]]), None).notes == [NOTHING_BUT_LINES]


def test_a_line_may_be_so_long_and_after_a_longer_one_nothing_is_read(lines, tmp_path, monkeypatch):
    longest = max(range(8), key=lambda i: len(lines[i]))
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", len(lines[longest].encode()))
    assert problems(tmp_path, lines) == []
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", len(lines[longest].encode()) - 1)
    read = list(read_lines(written(tmp_path, lines)))
    assert (len(read), read[-1].record) == (longest + 1, None)
    assert "what follows is not read" in str(read[-1].problems[0])


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.jsonl cannot be read: No such file or directory"):
        list(read_lines(tmp_path / "nothing.jsonl"))


def test_a_problem_of_the_whole_file_has_no_line():
    assert str(Problem(0, "", "it is empty")) == "it is empty"
    assert str(Problem(3, "hash", "it was altered")) == "line 3: it was altered"


# which values they may hold

LINK = {"number": 1, "previous": HEX, "hash": HEX}
RECORDS: dict[str, dict[str, Any]] = {
    "head": {"record": "head", "format": 4, "written": "2026-01-31T09:30:00Z", **ABOUT, "machine": MACHINE, **LINK},
    "machine_line": {"record": "machine", "machine": MACHINE, **LINK},
    "block": {"record": "block", **BLOCK, **LINK},
    "answer": {"record": "answer", **ANSWER, **LINK},
    "private_answer": {"record": "answer", **PRIVATE, **LINK},
    "end": {
        "record": "end", "lines": 1, "signature": {"algorithm": "Ed25519", "key": HEX, "value": HEX * 2}, **LINK,
    },
}  # fmt: skip
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 99, 100, 101, -0.5, 0.5, 1.5, "", "a", "valid", "already", "infeasible", "Valid",
    "best_effort", HEX, HEX.upper(), HEX[1:], HEX + "0", HEX * 2, HEX * 2 + "0", "2026-01-31T09:30:00Z", "2026-01-31",
    "2026-01-31T09:30:00Z2", "Ed25519", [], ["a"], [1], [None], ["a", None], [True], [0.5], [[]], ["a", []], [[], "a"],
    [{}], [["a"]], [["a", 1]], [["a", None]], [["a", True]], [["a", "b"]], [[1, 1]], [[None, 1]], [[0.5, 1]],
    [["a", 1], ["b"]], [["a", 1], "b"], [["a", 1]] * 4, [["a", 1]] * 5, [["a", 1, None]], [["a", 1, []]], ["ab"],
    [["a", [], 1]], [[None, 1, 2]], [["a", 1, 2], ["b", 1]], [["a", 1, 2, 3]], "ab", {}, {"a": "b"},
]  # fmt: skip
UNSAID = {("model",), ("model", 0)}  # the reader is content with a list


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record that the schema describes."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if path[-1:] in (("settings",), ("versions",)):
            continue
        yield (*path, key)
        if isinstance(inner, dict) or key == "model":
            yield from places(inner, (*path, key))


def with_value(record: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(record)
    inner: Any = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def is_read(record: dict[str, Any], private: bool) -> bool:
    """Whether the reader takes it for a record, whatever its hash."""
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
    return reading._parse_line(line.encode(), 1, private)[0] is not None


@pytest.mark.parametrize("kind", RECORDS)
def test_the_reader_and_the_schema_accept_the_same_values(kind):
    schema = json.loads((files("tdce.audit") / "schema.json").read_text("utf-8"))
    assert schema["title"].endswith(f"format {EVIDENCE_FORMAT}")
    record, private, accepted = RECORDS[kind], kind == "private_answer", 0
    assert is_read(record, private)
    for path in places(record):
        if path in UNSAID or path[-1] == "record":
            continue
        field = schema["$defs"][kind]["properties"][path[0]]
        check = jsonschema.Draft202012Validator({**field, "$defs": schema["$defs"]})
        for value in VALUES:
            changed = with_value(record, path, value)
            read = is_read(changed, private)
            assert read == check.is_valid(changed[path[0]]), (path, value)
            accepted += read
    assert accepted > len(record)


@pytest.mark.parametrize(
    ("kind", "path", "accepted", "refused"),
    [
        ("answer", ("number",), 2**53, 2**53 + 1),
        ("answer", ("option",), 99, 100),
        ("answer", ("score_after",), 1e150, 1.01e150),
        ("answer", ("score_before",), -1e150, -1.01e150),
        ("answer", ("plausibility",), 1.0, 1.0000001),
        ("answer", ("plausibility",), 0.0, -1e-9),
        ("answer", ("safety",), 1.0, 1.0000001),
        ("answer", ("safety",), 0.0, -1e-9),
        ("answer", ("reasons",), [["a", 1e150]] * 4, [["a", 1.01e150]]),
        ("answer", ("reasons_passing",), None, [["a"]]),
        ("answer", ("reasons_applicants",), [], [["a", 1.0]] * 5),
        ("head", ("question", "seed"), 2**64 - 1, 2**64),
        ("head", ("question", "safety"), 1, 1.0000001),
        ("head", ("question", "max_model_rows"), 2**53, 2**53 + 1),
        ("head", ("question", "robust", "models"), 2**53, 2**53 + 1),
        ("head", ("question", "robust", "seed"), 2**64 - 1, 2**64),
        ("head", ("question", "costs"), [["a", -1e150]], [["a", -1.01e150]]),
        ("block", ("rows",), 2**53, 2**53 + 1),
        ("end", ("lines",), 2**53, 2**53 + 1),
        ("end", ("lines",), 0, -1),
    ],
)  # fmt: skip
def test_numbers_have_bounds(kind, path, accepted, refused):
    assert is_read(with_value(RECORDS[kind], path, accepted), False)
    assert not is_read(with_value(RECORDS[kind], path, refused), False)


@pytest.mark.parametrize("kind", RECORDS)
def test_every_field_is_needed_none_is_added_and_the_problem_names_it(kind):
    record = RECORDS[kind]
    for path in places(record):
        if isinstance(path[-1], int):
            continue
        for changed in (with_value(record, (*path[:-1], "more"), 1), with_value(record, path, {"x": [{}]})):
            if path not in UNSAID and path[-1] not in ("settings", "versions", "target"):
                line = json.dumps(changed, separators=(",", ":")) + "\n"
                found, (problem,) = reading._parse_line(line.encode(), 6, kind == "private_answer")
                assert (found, problem.line) == (None, 7)
        missing = copy.deepcopy(record)
        inner: Any = missing
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        line = json.dumps(missing, separators=(",", ":")) + "\n"
        found, (problem,) = reading._parse_line(line.encode(), 6, kind == "private_answer")
        assert (found, problem.line) == (None, 7)
        if len(path) == 1:
            assert problem.field == path[0]
            assert path[0] in problem.message or path[0] == "record"


def test_only_answers_of_a_private_record_hold_hashes(lines, tmp_path):
    assert is_read(RECORDS["private_answer"], True)
    assert not is_read(RECORDS["private_answer"], False)
    assert not is_read(RECORDS["answer"], True)
    assert is_read({**RECORDS["private_answer"], "note": ""}, True)
    records = [json.loads(line) for line in lines]
    records[0]["private"] = True
    assert {line for line, field in problems(tmp_path, linked(records)) if field != "previous"} == {2, 3, 4, 6, 7}
    hidden = [records[0], *({**each, **PRIVATE} if each["record"] == "answer" else each for each in records[1:])]
    assert problems(tmp_path, linked(hidden)) == []


def test_a_file_is_needed_and_an_explainer_is_one(tmp_path, lines):
    with pytest.raises(InputError, match=r"there is no file .*none\.jsonl; `tdce explain … --evidence none\.jsonl`"):
        verify(tmp_path / "none.jsonl", None)
    with pytest.raises(InputError, match=r"explainer is 'a\.tdce'; load the one that answered"):
        verify(written(tmp_path, lines), "a.tdce")  # type: ignore[arg-type]
