"""`tdce verify` and `tdce keys`."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tdce
from tdce._core import InputError
from tdce.cli.shared import Decider, Decimal, Sep, wide_console
from tdce.datasets import Dialect, read_table

if TYPE_CHECKING:
    from tdce.audit import Findings

SHOWN = 20  # problems of evidence that are printed


def verify(
    evidence: Annotated[Path, typer.Argument(metavar="FILE", help="Written by `tdce explain --evidence`")],
    artefact: Annotated[Path | None, typer.Option(metavar="NAME.tdce", help="The explainer that answered")] = None,
    rows: Annotated[Path | None, typer.Option(help="The rows as they were asked about: ask again, and compare")] = None,
    table: Annotated[
        Path | None, typer.Option(help="What --robust was given as --table: train these models again")
    ] = None,
    public_key: Annotated[Path | None, typer.Option(help="The key of who must have signed it")] = None,
    secret: Annotated[Path | None, typer.Option(help="The secret, if it holds no values")] = None,
    record_only: Annotated[bool, typer.Option("--record-only", help="Check chain, form and signature alone")] = False,
    model: Decider = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with all problems")] = False,
) -> None:
    """Check evidence: is the record whole, does the model still say so, are answers the same again (with --rows).

    Exit code 0 only if all of it holds, 1 if something does not.
    """
    if record_only and (artefact or rows or secret):
        raise InputError("--record-only checks neither decisions nor values; leave --artefact, --rows and --secret out")
    if not record_only and artefact is None:
        raise InputError("--artefact names the explainer that answered; --record-only checks the record without it")
    if table is not None and rows is None:
        raise InputError("--table is for asking again, which also takes the rows that were asked about: --rows FILE")
    explainer = None if artefact is None else tdce.Explainer.load(artefact, progress="silent", model=model)
    frame, real = (
        None if path is None or explainer is None else read_table(path, explainer.schema, Dialect(sep, decimal))
        for path in (rows, table)
    )
    found = tdce.verify(evidence, explainer, frame, table=real, public_key=public_key, secret=secret)
    if json:
        print(dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        _print_verified(found, evidence, public_key is not None)
    if not found.holds:
        raise typer.Exit(1)


def keys(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="Of the files: NAME.key, NAME.pub and NAME.secret")],
) -> None:
    """Make keys for evidence: NAME.key signs it, NAME.pub checks it, NAME.secret hides its values."""
    from tdce.audit import make_keys

    key, pub, secret = make_keys(name)
    Console().print(
        f"Written: {key} (signs: keep it to yourself), {pub} (checks: give it to whoever checks), {secret} (hides "
        "values: whoever has it can find out whose hash is whose).",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _print_verified(found: Findings, evidence: Path, known: bool) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, words in found.summary(known):
        table.add_row(name, Text(words))
    console = wide_console()
    well = "all is well" if found.decisions is not None else "what was checked holds"
    console.print(Text(f"{evidence}: {well if found.holds else 'something does not hold'}"))
    console.print(table)
    for problem in found.problems[:SHOWN]:
        console.print(Text(f"     {problem}"), soft_wrap=True)
    if found.count > SHOWN:
        console.print(f"     … and {found.count - SHOWN:,} more; --json has them", highlight=False)
