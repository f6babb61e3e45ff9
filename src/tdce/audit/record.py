"""Records: what a line of evidence holds about an answer, and its one written form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, plain, same, show
from tdce.explainer import Cell, Provenance, canonical, digest, json_cells, json_label, row_hashes
from tdce.methods import GROUPS, MOST_REASONS, Explanation, Line, Question, ReasonMethod, Reasons
from tdce.schema import Schema

EVIDENCE_FORMAT = 4
BLOCK_PREFIX = '{"about":'  # the beginning of a block's head line
AFTER_LABEL = ',"asked":'  # what follows the label in the line of an answer

Record = dict[str, Any]


class AnswerLike(Protocol):
    """What evidence needs from an answer."""

    @property
    def rows(self) -> pd.DataFrame: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def question(self) -> Question: ...
    @property
    def explanation(self) -> Explanation: ...
    @property
    def provenance(self) -> Provenance | None: ...
    @property
    def lines(self) -> list[list[Line]]: ...
    @property
    def group_reasons(self) -> dict[ReasonMethod, list[Reasons]] | None: ...


def block_lines(answer: AnswerLike, secret: bytes | None = None, budget: int | None = None) -> Iterator[str]:
    """The lines of one block: a head line about question and machine, then one line per answer. They are not yet
    linked, so that any process can make blocks in any order. `budget`: that of all blocks, if each has a share."""
    provenance, share = require_provenance(answer), answer.question.max_model_rows
    head = {"about": describe_run(answer, secret is not None, budget), "machine": dict(provenance.machine)}
    if share is not None:
        head["block"] = {"rows": len(answer.rows), "max_model_rows": share}
    yield canonical(head) + "\n"
    for record in answer_records(answer, secret):
        yield canonical(record) + "\n"


def relabel(line: str, label: Any, secret: bytes | None = None) -> str:
    """The line of an answer with another row label, because its maker knew only the rows of one block."""
    text = canonical(json_label(label) if secret is None else digest("label", json_label(label), secret))
    _, separator, rest = line.partition(AFTER_LABEL)
    return f'{{"row":{text}{separator}{rest}'


def describe_run(answer: AnswerLike, private: bool, budget: int | None = None) -> Record:
    """The content of the first line besides time and place: the question about all rows, and what answered it."""
    question = answer.question.to_json()
    del question["target"]  # each line has its own
    if budget is not None:
        question["max_model_rows"] = budget
    return {**describe_explainer(require_provenance(answer), answer.schema), "question": question, "private": private}


def describe_explainer(provenance: Provenance, schema: Schema) -> Record:
    """Names and hashes of artefact, model, schema and method."""
    return {
        "artefact": provenance.artefact,
        "model": [dict(each) for each in provenance.models],
        "schema": provenance.schema,
        "laws": provenance.laws,
        "columns": list(schema.names),
        "method": {"name": provenance.method, "settings": dict(provenance.settings)},
    }


def require_provenance(answer: AnswerLike) -> Provenance:
    """The provenance of an answer; raise an error if there is none to check."""
    provenance = answer.provenance
    if provenance is None or not provenance.artefact:
        raise InputError("this answer comes from an explainer that cannot be saved, so its evidence could not be "
                         "checked; use a method of tdce.methods.METHODS")  # fmt: skip
    return provenance


def answer_records(answer: AnswerLike, secret: bytes | None = None) -> Iterator[Record]:
    """One record per line of the answer, without its place in a chain. With a secret, keyed hashes replace all values
    of the row and of the answer."""
    schema, explanation = answer.schema, answer.explanation
    rows, options, features = explanation.raw.shape
    own = json_cells(schema, explanation.own)
    hashes = row_hashes(schema, own, secret)
    after = json_cells(schema, explanation.raw.reshape(rows * options, features))
    names, changed = schema.names, ~same(explanation.raw, explanation.own[:, None])
    target = answer.question.to_json()["target"]
    private, compared = secret is not None, answer.group_reasons
    for r, (lines, label) in enumerate(zip(answer.lines, answer.rows.index, strict=True)):
        for o, line in enumerate(lines):
            values = after[r * options + o]
            changes = [[names[c], own[r][c], values[c]] for c in np.flatnonzero(changed[r, o]).tolist()]
            yield {
                "row": digest("label", json_label(label), secret) if private else json_label(label),
                "asked": hashes[r],
                "option": o,
                "target": target[r] if isinstance(target, list) else target,
                "wanted": plain(line.target),
                "status": line.status,
                "score_before": line.before,
                "score_after": line.after,
                "plausibility": _number(line.plausibility),
                "safety": _number(line.safety),
                "values": digest("values", values, secret) if private else values,
                "changes": [name for name, *_ in changes] if private else changes,
                "reasons": _principal(line.reasons),
                **{f"reasons_{by}": None if compared is None else _principal(compared[by][r]) for by in GROUPS},
                "note": digest("note", line.note, secret) if private and line.note else line.note,
            }


def timestamp() -> str:
    """The time in UTC; for reproducible files, the environment variable SOURCE_DATE_EPOCH sets it, in seconds."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.now(UTC) if given is None else datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"SOURCE_DATE_EPOCH is {show(given)}; it must be a whole number of seconds since 1970"
        ) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def differences(one: Sequence[Cell], other: Sequence[Cell]) -> tuple[int, float]:
    """The number of cells that differ, and the largest difference of two numbers."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if (type(a), a) != (type(b), b)]  # 1 is not True
    gaps = [abs(a - b) for a, b in pairs if _is_number(a) and _is_number(b)]  # type: ignore[operator]
    return len(pairs), max(gaps, default=0.0)


def _principal(reasons: Sequence[tuple[Name, float]]) -> list[list[Any]]:
    return [[name, _number(loss)] for name, loss in reasons[:MOST_REASONS]]


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
