"""Does evidence hold: is the record whole, does the model still say so, is the answer the same when asked again."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pandas as pd

from tdce._core import InputError, check_path, show
from tdce.audit import keys
from tdce.audit.chain import State, signed
from tdce.audit.findings import Findings
from tdce.audit.reading import Problem, Read, lines
from tdce.audit.record import Record
from tdce.audit.replay import Replay, ReplayInputs
from tdce.explainer import Explainer, machine
from tdce.methods import MOST_OPTIONS

BLOCK = 4096  # answers that are checked at a time


def verify(
    path: str | os.PathLike[str],
    explainer: Explainer | None,
    rows: pd.DataFrame | None = None,
    *,
    table: pd.DataFrame | None = None,
    public_key: str | os.PathLike[str] | None = None,
    secret: str | os.PathLike[str] | None = None,
) -> Findings:
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
    where = check_path("evidence", path)
    if not isinstance(explainer, Explainer | None):
        raise InputError(f"explainer is {show(explainer)}; load the one that answered: Explainer.load(path)")
    if not where.is_file():
        raise InputError(f"there is no file {where}; `tdce explain … --evidence {where.name}` writes one")
    found = Findings()
    _verify(found, lines(where), explainer, ReplayInputs(rows, table, hidden), public)
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
    found: Findings,
    every: Iterable[Read],
    explainer: Explainer | None,
    given: ReplayInputs,
    public_key: str | None,
) -> None:
    check: Replay | None = None
    block: list[tuple[int, Record]] = []
    previous = State()
    for line, record, problems in every:
        found.lines = line
        found.add(*problems)
        if problems and line == 1:
            found.notes.append("verdicts and values were not checked, because the first line does not hold")
        if record is None:
            continue
        kind = record["record"]
        if kind == "head" and line == 1:
            found.written = record["written"]
            check = None if problems else Replay.of(found, record, explainer, given)
        if kind in ("head", "machine") and record["machine"] != machine() and record["machine"] not in found.elsewhere:
            found.elsewhere.append(record["machine"])
        if kind == "block" and check is not None:
            check.block(block)
            block = []
            check.begin(line, record)
        if kind == "answer":
            full = len(block) >= (BLOCK if record["option"] == 0 else BLOCK + MOST_OPTIONS)
            if check is not None and full and check.budget is None:
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


def _signature(found: Findings, line: int, end: Record, before: State, public_key: str | None) -> None:
    signature = end["signature"]
    if signature is None:
        return
    found.signed_by = signature["key"]
    if public_key not in (None, found.signed_by):
        found.add(Problem(line, "signature", f"it is signed with another key, {found.signed_by[:16]}…"))
    elif not keys.holds(found.signed_by, signature["value"], signed(before)):
        found.add(Problem(line, "signature", "the signature does not match the lines"))
