"""`tdce schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tdce
from tdce._core import InputError
from tdce.cli.shared import Codes, Decimal, Learn, Sep, TablePath, names_of, wide_console
from tdce.datasets import Dialect, check_writable, read_table, write_whole
from tdce.schema import Schema, find_pass_through, profile_columns


def schema(
    table: TablePath,
    label: Annotated[str | None, typer.Option(help="The label column, which is left out")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the schema as JSON, to edit and give to `tdce fit`")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")] = False,
    learn: Learn = "",
    categorical: Codes = "",
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Show how each column of a table (or of a fitted NAME.tdce) is understood."""
    if out is not None:
        check_writable(out, endings=None)
    if table.suffix == ".tdce":
        found, noticed = tdce.Explainer.load(table).schema, list[str]()
    else:
        frame = read_table(table, dialect=Dialect(sep, decimal))
        if label is not None and label not in frame.columns:
            raise InputError(f"there is no label column {label!r}; the table has: {', '.join(map(str, frame.columns))}")
        learned, codes = names_of(learn, frame.columns), names_of(categorical, frame.columns)
        found = Schema.infer(frame, label, learn=learned, categorical=codes)
        noticed = profile_columns(frame, found, label, find_pass_through(frame, label, {*learned, *codes}))
    if out is not None:
        write_whole(out, found.to_json().encode())
        Console().print(f"Written: {out}", highlight=False, soft_wrap=True)
        _print_hints(noticed)
    elif json:
        print(found.to_json(), end="")
    else:
        _print_schema(found)
        _print_hints(noticed)


def _print_schema(schema: Schema) -> None:
    table = Table("column", "kind", "values", "may change", box=None, pad_edge=False)
    for row in schema.describe():
        table.add_row(*(Text(cell) for cell in row))
    console = wide_console()
    console.print(table)
    if schema.laws:
        console.print("\nLaws, which every answer keeps (those with exceptions: if it can):")
    for number, sentence in enumerate(schema.sentences()):
        console.print(Text(f"{number:3}  {sentence}"), soft_wrap=True)


def _print_hints(hints: list[str]) -> None:
    console = Console()
    if hints:
        console.print("\nHints, each with the way out:")
    for hint in hints:
        console.print(Text(f"     {hint}"), soft_wrap=True)
