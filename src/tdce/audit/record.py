"""One answer as records: what is in a line of evidence, and the one way to write and to hash it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import pandas as pd

from tdce._core import InputError, Name, plain, same, show
from tdce.explainer import Cell, Provenance, canonical, digest, json_cells, json_label, row_hashes
from tdce.methods import MOST_REASONS, Explanation, Line, Question
from tdce.schema import Schema

FORMAT = 1
ABOUT = '{"about":'  # how the first line of a piece begins
ASKED = ',"asked":'  # what follows the label in the line of an answer

Record = dict[str, Any]


class Answered(Protocol):
    """What evidence needs of an answer."""

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


def block_lines(answer: Answered, secret: bytes | None = None, budget: int | None = None) -> Iterator[str]:
    """One block of answers, not yet linked, so that blocks can be made in any order and by any process: a line about
    question and machine, then one per answer. `budget`: of all blocks together, if each was given a share of it."""
    came, share = origin(answer), answer.question.max_model_rows
    first = {"about": about(answer, secret is not None, budget), "machine": dict(came.machine)}
    if share is not None:
        first["block"] = {"rows": len(answer.rows), "max_model_rows": share}
    yield canonical(first) + "\n"
    for record in records(answer, secret):
        yield canonical(record) + "\n"


def relabelled(line: str, label: Any, secret: bytes | None = None) -> str:
    """A line of a piece about another row: whoever made it counted the rows of its block only."""
    own = canonical(json_label(label) if secret is None else digest("label", json_label(label), secret))
    _, asked, rest = line.partition(ASKED)
    return f'{{"row":{own}{asked}{rest}'


def about(answer: Answered, private: bool, budget: int | None = None) -> Record:
    """What the first line says, besides when and where: what was asked of all rows, and what answered."""
    question = answer.question.to_json()
    del question["target"]  # each line has its own
    if budget is not None:
        question["max_model_rows"] = budget
    return {**answerer(origin(answer), answer.schema), "question": question, "private": private}


def answerer(came: Provenance, schema: Schema) -> Record:
    """What answered: names and hashes of artefact, model, schema and method."""
    return {
        "artefact": came.artefact,
        "model": [dict(each) for each in came.models],
        "schema": came.schema,
        "laws": came.laws,
        "columns": list(schema.names),
        "method": {"name": came.method, "settings": dict(came.settings)},
    }


def origin(answer: Answered) -> Provenance:
    came = answer.provenance
    if came is None or not came.artefact:
        raise InputError("this answer comes from an explainer that cannot be saved, so nobody could check its "
                         "evidence; use a method of tdce.methods.METHODS")  # fmt: skip
    return came


def records(answer: Answered, secret: bytes | None = None) -> Iterator[Record]:
    """One per line of the answer, without its place in a chain. With a secret, no value of the row or of the answer
    is in them, only keyed hashes."""
    schema, found = answer.schema, answer.explanation
    rows, options, features = found.raw.shape
    own = json_cells(schema, found.own)
    asked = row_hashes(schema, own, secret)
    after = json_cells(schema, found.raw.reshape(rows * options, features))
    names, changed = schema.names, ~same(found.raw, found.own[:, None])
    target = answer.question.to_json()["target"]
    private = secret is not None
    for r, (lines, label) in enumerate(zip(answer.lines, answer.rows.index, strict=True)):
        for o, line in enumerate(lines):
            values = after[r * options + o]
            changes = [[names[c], own[r][c], values[c]] for c in np.flatnonzero(changed[r, o]).tolist()]
            yield {
                "row": digest("label", json_label(label), secret) if private else json_label(label),
                "asked": asked[r],
                "option": o,
                "target": target[r] if isinstance(target, list) else target,
                "wanted": plain(line.target),
                "status": line.status,
                "score_before": line.before,
                "score_after": line.after,
                "plausibility": _number(line.plausibility),
                "values": digest("values", values, secret) if private else values,
                "changes": [name for name, *_ in changes] if private else changes,
                "reasons": [[name, _number(loss)] for name, loss in line.reasons[:MOST_REASONS]],
                "note": digest("note", line.note, secret) if private and line.note else line.note,
            }


def now() -> str:
    """UTC; SOURCE_DATE_EPOCH, in seconds, sets it where the same bytes are wanted again."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.now(UTC) if given is None else datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"SOURCE_DATE_EPOCH is {show(given)}; it must be a whole number of seconds since 1970"
        ) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def differences(one: Sequence[Cell], other: Sequence[Cell]) -> tuple[int, float]:
    """How many cells differ, and the largest difference of two numbers."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if (type(a), a) != (type(b), b)]  # 1 is not True
    gaps = [abs(a - b) for a, b in pairs if _counts(a) and _counts(b)]  # type: ignore[operator]
    return len(pairs), max(gaps, default=0.0)


def _counts(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
