"""Verify evidence: is the record complete, does the model still decide as recorded, is a replay the same."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pandas as pd

from tdce._core import InputError, check_path, show
from tdce.audit import keys
from tdce.audit.chain import ChainState, signed_bytes
from tdce.audit.findings import Findings
from tdce.audit.reading import LineRead, Problem, read_lines
from tdce.audit.record import Record
from tdce.audit.replay import Lines, Replay, ReplayInputs
from tdce.explainer import Explainer, machine
from tdce.methods import GROUPS, MOST_OPTIONS, ReasonsTally

REPLAY_LINES = 4096  # replayed at a time


def verify(
    path: str | os.PathLike[str],
    explainer: Explainer | None,
    rows: pd.DataFrame | None = None,
    *,
    table: pd.DataFrame | None = None,
    public_key: str | os.PathLike[str] | None = None,
    secret: str | os.PathLike[str] | None = None,
) -> Findings:
    """Verify a file of evidence, as `tdce verify` does (docs/evidence.md). In the result, `problems` lists what does
    not hold, and `holds` is true if there are none. Memory grows with `rows`, not with the file.

    - `explainer`: the one that answered, loaded from its file; None: check only the record itself.
    - `rows`: the rows that were explained; the question is replayed for them, and the answers are compared.
    - `table`: the table, with its label, on which the models of `robust` were retrained.
    - `public_key`: a file with the public key of the expected signer.
    - `secret`: a file with the secret, for evidence that holds hashes in place of values.
    """
    signer = None if public_key is None else keys.load_public_key(public_key)
    inputs = ReplayInputs(rows, table, None if secret is None else keys.load_secret(secret))
    evidence = check_path("evidence", path)
    if not isinstance(explainer, Explainer | None):
        raise InputError(f"explainer is {show(explainer)}; load the one that answered: Explainer.load(path)")
    if not evidence.is_file():
        raise InputError(f"there is no file {evidence}; `tdce explain … --evidence {evidence.name}` writes one")
    findings = Findings()
    _check_lines(findings, read_lines(evidence), explainer, inputs, signer)
    if findings.lines == 0:
        findings.add(Problem(0, "", "the file is empty"))
    elif not findings.complete:
        message = "the record is not complete: it has no last line; lines may have been dropped at its end"
        findings.add(Problem(0, "", message))
    if public_key is not None and findings.complete and not findings.signed_by:
        findings.add(Problem(findings.lines, "signature", "it is not signed, but a public key was given"))
    return findings


def _check_lines(
    findings: Findings,
    lines: Iterable[LineRead],
    explainer: Explainer | None,
    inputs: ReplayInputs,
    public_key: str | None,
) -> None:
    replay: Replay | None = None
    waiting: Lines = []  # answers not yet replayed
    previous, tally = ChainState(), ReasonsTally()
    for line, record, problems in lines:
        findings.lines = line
        findings.add(*problems)
        if problems and line == 1:
            findings.notes.append("decisions and values were not checked, because the first line does not hold")
        if record is None:
            continue
        kind = record["record"]
        if kind == "head" and line == 1:
            findings.written = record["written"]
            replay = None if problems else Replay.of(findings, record, explainer, inputs)
        if kind in ("head", "machine") and record["machine"] not in (machine(), *findings.other_machines):
            findings.other_machines.append(record["machine"])
        if kind == "block" and replay is not None:
            replay.check_block(waiting)
            waiting = []
            replay.begin_block(line, record)
        if kind == "answer":
            full = len(waiting) >= (REPLAY_LINES if record["option"] == 0 else REPLAY_LINES + MOST_OPTIONS)
            if replay is not None and full and replay.budget is None:
                replay.check_block(waiting)
                waiting = []
            findings.answers += 1
            findings.rows += record["option"] == 0
            if record["option"] == 0 and None not in (by_group := [record[f"reasons_{by}"] for by in GROUPS]):
                tally.add({"way": record["reasons"], **dict(zip(GROUPS, by_group, strict=True))})
            waiting += [(line, record)] if replay is not None else []
        if kind == "end":
            findings.complete = True
            _check_signature(findings, line, record, previous, public_key)
        previous = ChainState(line, record["hash"])
    findings.reasons = [each for each in tally.agreement() if each.people]
    if replay is not None:
        replay.check_block(waiting)
        replay.finish()


def _check_signature(findings: Findings, line: int, end: Record, before: ChainState, public_key: str | None) -> None:
    signature = end["signature"]
    if signature is None:
        return
    findings.signed_by = signature["key"]
    if public_key not in (None, findings.signed_by):
        findings.add(Problem(line, "signature", f"it is signed with another key, {findings.signed_by[:16]}…"))
    elif not keys.signature_holds(findings.signed_by, signature["value"], signed_bytes(before)):
        findings.add(Problem(line, "signature", "the signature does not match the lines"))
