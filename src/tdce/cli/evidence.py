"""`tdce verify` and `tdce keys`."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tdce
from tdce._core import InputError
from tdce.cli.shared import Decimal, Headers, ModelSource, Sep, model_of, print_table, say

if TYPE_CHECKING:
    from tdce.audit import Findings

MAX_SHOWN_PROBLEMS = 20


def verify(
    evidence: Annotated[Path, typer.Argument(metavar="EVIDENCE", help="A file from `tdce explain --evidence`")],
    artefact: Annotated[Path | None, typer.Option(metavar="NAME.tdce", help="The explainer that answered")] = None,
    rows: Annotated[
        Path | None, typer.Option(metavar="ROWS", help="The rows that were explained: replay the answers and compare")
    ] = None,
    table: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The table given with --robust: retrain the same models")
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(metavar="NAME.pub", help="The public key of the one who must have signed it")
    ] = None,
    secret: Annotated[
        Path | None, typer.Option(metavar="NAME.secret", help="The secret, if the evidence holds hashes, not values")
    ] = None,
    record_only: Annotated[bool, typer.Option("--record-only", help="Check only chain, format and signature")] = False,
    model: ModelSource = None,
    header: Headers = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with all problems")] = False,
) -> None:
    """Check evidence: is it complete, and does it still hold.

    Checks that no line was changed, that the model still decides as recorded and, with --rows, that the same question
    gives the same answers. Exits with 0 if all of it holds, and with 1 if something does not.
    """
    from tdce.datasets import Dialect, read_table

    if record_only and (artefact or rows or secret):
        raise InputError("--record-only checks neither decisions nor values; leave --artefact, --rows and --secret out")
    if not record_only and artefact is None:
        raise InputError("--artefact names the explainer that answered; --record-only checks the record without it")
    if table is not None and rows is None:
        raise InputError("--table is for replaying, which also takes the rows that were explained: --rows FILE")
    explainer = (
        None if artefact is None else tdce.Explainer.load(artefact, progress="silent", model=model_of(model, header))
    )
    frame, real = (
        None if path is None or explainer is None else read_table(path, explainer.schema, Dialect(sep, decimal))
        for path in (rows, table)
    )
    findings = tdce.verify(evidence, explainer, frame, table=real, public_key=public_key, secret=secret)
    if json:
        print(dumps(findings.to_json(), indent=2, ensure_ascii=False))
    else:
        _print_findings(findings, evidence, public_key is not None)
    if not findings.holds:
        raise typer.Exit(1)


def keys(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="Writes NAME.key, NAME.pub and NAME.secret")],
) -> None:
    """Make keys for evidence.

    NAME.key signs evidence, NAME.pub checks the signature, and NAME.secret keeps values out of it.
    """
    from tdce.audit import make_keys

    key, public, secret = make_keys(name)
    say(f"Written: {key} (signs: keep it to yourself), {public} (checks: give it to auditors), {secret} (hides "
        "values: whoever has it can find out whose hash is whose).")  # fmt: skip


def _print_findings(findings: Findings, evidence: Path, signer_known: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for name, words in findings.summary(signer_known):
        table.add_row(name, Text(words))
    well = "all is well" if findings.decisions is not None else "what was checked holds"
    print(f"{evidence}: {well if findings.holds else 'something does not hold'}")
    print_table(table)
    for problem in findings.problems[:MAX_SHOWN_PROBLEMS]:
        say(f"     {problem}", indent=5 * " ")
    if findings.count > MAX_SHOWN_PROBLEMS:
        print(f"     … and {findings.count - MAX_SHOWN_PROBLEMS:,} more; --json has them")
