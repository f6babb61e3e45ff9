"""`tdce monitor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tdce
from tdce.cli.shared import (
    PAGE,
    ArtefactPath,
    Decimal,
    Headers,
    JsonFlag,
    ModelSource,
    Sep,
    TablePath,
    model_of,
    print_table,
    progress_mode,
    say,
)
from tdce.cli.streams import DASH, input_file, output_file

if TYPE_CHECKING:
    from tdce.explainer import Drift

CHANGED = 1  # the exit code


def monitor(
    artefact: ArtefactPath,
    table: TablePath,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The label column (default: the learned one, if it is there)")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page as well, or - for standard output")
    ] = None,
    model: ModelSource = None,
    header: Headers = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: JsonFlag = False,
) -> None:
    """Check whether a table is still like the one that was learned.

    Exit code 0: it is; 1: it has changed. Columns, ranges, categories, laws, the distribution of plausibility and, with
    labels, the accuracy are compared with what the artefact knows.
    """
    from tdce.datasets import Dialect, check_writable, read_table

    if out is not None and out != DASH:
        check_writable(out, (PAGE,))
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model_of(model, header))
    with input_file(table) as source:
        drift = explainer.monitor(read_table(source, explainer.schema, Dialect(sep, decimal)), label=label)
    if out is not None:
        with output_file(out, PAGE) as page:
            drift.to_html(page, title=f"Is {table.name} still the table that {artefact.name} learned?")
    if json:
        print(drift.to_json())
    elif out != DASH:
        _print_drift(drift, out)
    if drift.changed:
        raise typer.Exit(CHANGED)


def _print_drift(drift: Drift, out: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    if drift.changed:
        table = Table("changed", "check", "learned", "now", box=None, pad_edge=False)
        for each in drift.changes:
            table.add_row(*(Text(text) for text in (each.subject, each.check, each.learned, each.now)))
        print_table(table)
    for note in drift.notes:
        say(f"Note: {note}.")
    verdict = "the table has changed" if drift.changed else "the table is like the one that was learned"
    written = "" if out is None else f" Written: {out} (open it in a browser)"
    say(f"{drift.rows:,} rows, {len(drift.changes)} of {len(drift.findings)} checks changed: {verdict}.{written}")
