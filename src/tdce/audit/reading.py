"""Read untrusted evidence line by line; check the form of each line and its link to the one before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tdce._core import (
    JSON_FLAG,
    JSON_LIST,
    JSON_NAME,
    JSON_OBJECT,
    JSON_TEXT,
    LARGEST_VALUE,
    LAST_SEED,
    InputError,
    JsonRule,
    check_json,
    is_value,
    json_integer,
    json_number,
    json_or_null,
    listing,
    parse_strict_json,
)
from tdce.audit.chain import GENESIS_HASH, seal_line
from tdce.audit.record import EVIDENCE_FORMAT, Record
from tdce.explainer import canonical
from tdce.methods import GROUPS, MOST_OPTIONS, MOST_REASONS, Status

MAX_LINE_BYTES = 2**24
MAX_COUNT = 2**53

HASH = JsonRule("64 hexadecimal digits", lambda v: isinstance(v, str) and re.fullmatch("[0-9a-f]{64}", v) is not None)
COUNT = json_integer(0, MAX_COUNT)
BUDGET = json_integer(1, MAX_COUNT)
SCORE = json_number(-LARGEST_VALUE, LARGEST_VALUE)
SHARE = json_or_null(json_number(0, 1))
VERSION = JsonRule(str(EVIDENCE_FORMAT), lambda v: v is not True and v == EVIDENCE_FORMAT)
VALUE = JsonRule("text, a number or true/false", is_value)
STATUS = JsonRule(f"one of {listing(Status)}", lambda v: isinstance(v, str) and v in list(Status))
TIME = JsonRule(
    "a time such as 2026-01-31T09:30:00Z",
    lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", v) is not None,
)
TEXTS = JsonRule("a list of texts", lambda v: isinstance(v, list) and all(isinstance(each, str) for each in v))
NAMES = JsonRule("a list of names", lambda v: isinstance(v, list) and all(map(JSON_NAME.holds, v)))
TARGET = JsonRule("a class, a goal or null", lambda v: v is None or is_value(v) or isinstance(v, dict))
CELLS = JsonRule(
    "a list of values", lambda v: isinstance(v, list) and all(each is None or is_value(each) for each in v)
)
REASONS = JsonRule(
    f"a list of at most {MOST_REASONS} pairs, a name and a number or null",
    lambda v: (
        isinstance(v, list)
        and len(v) <= MOST_REASONS
        and all(_is_pair(each) and (each[1] is None or SCORE.holds(each[1])) for each in v)
    ),
)
COSTS = JsonRule(
    "a list of pairs, a name and a number",
    lambda v: isinstance(v, list) and all(_is_pair(each) and SCORE.holds(each[1]) for each in v),
)
CHANGES = JsonRule(
    "a list of changes: a name, the value before and the value after",
    lambda v: isinstance(v, list) and all(_is_named_list(each, 3) and CELLS.holds(each[1:]) for each in v),
)
SIGNATURE = {
    "algorithm": JsonRule("Ed25519", lambda v: v == "Ed25519"),
    "key": HASH,
    "value": JsonRule(
        "128 hexadecimal digits", lambda v: isinstance(v, str) and bool(re.fullmatch("[0-9a-f]{128}", v))
    ),
}
MACHINE = dict.fromkeys(("tdce", "python", "torch", "numpy", "instructions"), JSON_TEXT)
QUESTION = {
    "n": json_integer(1, MOST_OPTIONS),
    "immutable": NAMES,
    "rules": TEXTS,
    "costs": COSTS,
    "seed": json_integer(0, LAST_SEED),
    "closeness": SHARE,
    "threshold": SHARE,
    "safety": SHARE,
    "max_model_rows": json_or_null(BUDGET),
    "robust": json_or_null(JSON_OBJECT),
}
RETRAINING = {
    "models": json_integer(1, MAX_COUNT),
    "seed": json_or_null(json_integer(0, LAST_SEED)),
    "table": json_or_null(HASH),
}
MODEL = {"output": JSON_TEXT, "kind": JSON_TEXT, "name": JSON_TEXT, "digest": JSON_TEXT, "versions": JSON_OBJECT}
LINK_FIELDS = {"previous": HASH, "hash": HASH}
RECORD_FIELDS: dict[str, dict[str, Any]] = {
    "head": {
        "number": COUNT, "format": VERSION, "written": TIME, "artefact": HASH, "model": JSON_LIST, "schema": HASH,
        "laws": HASH, "columns": NAMES, "method": {"name": JSON_TEXT, "settings": JSON_OBJECT},
        "question": QUESTION, "private": JSON_FLAG, "machine": MACHINE,
    },
    "machine": {"number": COUNT, "machine": MACHINE},
    "block": {"number": COUNT, "rows": COUNT, "max_model_rows": BUDGET},
    "answer": {
        "number": COUNT, "row": VALUE, "asked": HASH, "option": json_integer(0, MOST_OPTIONS - 1), "target": TARGET,
        "wanted": VALUE, "status": STATUS, "score_before": SCORE, "score_after": SCORE, "plausibility": SHARE,
        "safety": SHARE,
        "values": CELLS, "changes": CHANGES, "reasons": REASONS,
        **{f"reasons_{by}": json_or_null(REASONS) for by in GROUPS}, "note": JSON_TEXT,
    },
    "end": {"number": COUNT, "lines": COUNT, "signature": json_or_null(JSON_OBJECT)},
}  # fmt: skip
"""The fields of each kind of record, all of them required; schema.json says the same to other programs."""

PRIVATE_FIELDS = {  # of an answer with hashes in place of values
    "row": HASH,
    "values": HASH,
    "changes": NAMES,
    "note": JsonRule("a hash, or empty", lambda v: v == "" or HASH.holds(v)),
}


class Problem(NamedTuple):
    """Something that does not hold."""

    line: int  # from 1; 0: the whole file
    field: str  # empty: the whole line
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


class LineRead(NamedTuple):
    """One line of evidence as read."""

    line: int
    record: Record | None  # None: not a record of evidence
    problems: list[Problem]


def read_lines(path: Path) -> Iterator[LineRead]:
    """Read every line of a file, with the problems of its form and its link. Memory does not grow with the file."""
    previous, private, last, expected = GENESIS_HASH, False, "", 0
    for place, content in enumerate(_split(path)):
        record, problems = _parse_line(content, place, private)
        if record is not None:
            kind = record["record"]
            if (place == 0) != (kind == "head"):
                message = "it is not a first line of evidence" if place == 0 else "there is a second first line"
                problems.append(Problem(place + 1, "record", message))
            if last == "end":
                problems.append(Problem(place + 1, "record", "it comes after the last line"))
            if record["number"] != expected:
                problems.append(Problem(place + 1, "number", f"its number is {record['number']}, not {expected}"))
            if record["previous"] != previous:
                message = "it does not follow the line before: a line was altered, dropped, inserted or moved"
                problems.append(Problem(place + 1, "previous", message))
            if kind == "end" and record["lines"] != place:
                message = f"it says that there are {record['lines']:,} lines before it, but there are {place:,}"
                problems.append(Problem(place + 1, "lines", message))
            private = record["private"] if kind == "head" else private
            previous, last, expected = record["hash"], kind, record["number"]
        expected += 1
        yield LineRead(place + 1, record, problems)


def _split(path: Path) -> Iterator[bytes]:
    """The lines of a file, up to the first one that is too long."""
    try:
        with path.open("rb") as file:
            while content := file.readline(MAX_LINE_BYTES + 1):
                yield content
                if len(content) > MAX_LINE_BYTES:
                    return
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _parse_line(content: bytes, number: int, private: bool) -> tuple[Record | None, list[Problem]]:
    """The record of a line if the form is right, and the problems of the line."""

    def reject(message: str, field: str = "") -> tuple[None, list[Problem]]:
        return None, [Problem(number + 1, field, message)]

    if len(content) > MAX_LINE_BYTES:
        return reject(f"it is longer than {MAX_LINE_BYTES:,} bytes; what follows is not read")
    if not content.endswith(b"\n"):
        return reject("the file ends within this line")
    try:
        record = parse_strict_json(content)
    except ValueError as error:
        return reject(f"it is not strict JSON ({error})")
    if (
        not isinstance(record, dict)
        or not isinstance(record.get("record"), str)
        or record["record"] not in RECORD_FIELDS
    ):
        return reject(f"it is not a record of evidence; known: {listing(RECORD_FIELDS)}", "record")
    kind = record["record"]
    fields = {"record": JSON_TEXT, **RECORD_FIELDS[kind], **LINK_FIELDS}
    if private and kind == "answer":
        fields |= PRIVATE_FIELDS
    try:
        check_json(record, fields, "")
        for model in record["model"] if kind == "head" else ():
            check_json(model, MODEL, "model")
        if kind == "head" and record["question"]["robust"] is not None:
            check_json(record["question"]["robust"], RETRAINING, "question.robust")
        if kind == "end" and record["signature"] is not None:
            check_json(record["signature"], SIGNATURE, "signature")
    except InputError as error:
        return reject(str(error), _field(str(error), fields))
    line, own_hash = seal_line(canonical({key: value for key, value in record.items() if key != "hash"}))
    if line.replace(own_hash, record["hash"]).encode() != content:
        return record, [Problem(number + 1, "", "it is not written as tdce writes a line")]
    if record["hash"] != own_hash:
        return record, [Problem(number + 1, "hash", "it was altered: its content does not match its hash")]
    return record, []


def _field(message: str, fields: Record) -> str:
    """The field that a message is about."""
    return next((name for name in fields if re.search(rf"\b{name}\b", message)), "")


def _is_named_list(value: Any, size: int) -> bool:
    return isinstance(value, list) and len(value) == size and JSON_NAME.holds(value[0])


def _is_pair(value: Any) -> bool:
    return _is_named_list(value, 2)
