"""`tdce schema`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tdce
from tdce._core import InputError, listing, suggest
from tdce.cli.ask import ask_roles, check_terminal
from tdce.cli.shared import CauseOption, Codes, Decimal, JsonFlag, Learn, Sep, names_of, print_table, relations_of, say
from tdce.cli.streams import DASH, input_file

if TYPE_CHECKING:
    from tdce.schema import Schema


def schema(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="A table: .csv, .csv.gz or .parquet, or - for standard input; or a fitted NAME.tdce"
        ),
    ],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The label column, which is left out")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the schema as JSON, to edit and give to `tdce fit`")
    ] = None,
    json: JsonFlag = False,
    learn: Learn = "",
    categorical: Codes = "",
    follows: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=COLUMNS", help="Which column of a law follows the others: price=paid,months"),
    ] = None,
    cause: CauseOption = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for the role of each column on the terminal, then write the schema")
    ] = False,
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Show how the columns of a table are understood.

    Lists kinds, ranges, categories and roles, the laws found between columns, and hints.
    """
    from tdce.datasets import Dialect, check_writable, read_table, write_whole
    from tdce.schema import Schema, find_pass_through, profile_columns

    if ask:
        check_terminal()
    if out is not None and out != DASH:
        check_writable(out, endings=None)
    if table.suffix == ".tdce":
        inferred, hints = tdce.Explainer.load(table).schema, list[str]()
    else:
        with input_file(table) as source:
            frame = read_table(source, dialect=Dialect(sep, decimal))
        if label is not None and label not in frame.columns:
            known = f"{suggest(label, frame.columns)}the table has: {listing(frame.columns)}"
            raise InputError(f"there is no label column {label!r}; {known}")
        learned, codes = names_of(learn, frame.columns), names_of(categorical, frame.columns)
        inferred = Schema.infer(frame, label, learn=learned, categorical=codes)
        passed = find_pass_through(frame, label, {*learned, *codes})
        hints = profile_columns(frame, inferred, label, passed, proposed=inferred.immutable)
    for name, sources in relations_of("--follows", follows, inferred.names).items():
        inferred = inferred.change(name, follows=sources)
    if cause:
        inferred = inferred.with_causes(relations_of("--cause", cause, inferred.names))
    if ask:
        inferred, hints = ask_roles(inferred, hints), []
    if out is not None and out != DASH:
        write_whole(out, inferred.to_json().encode())
        print(f"Written: {out}")
        _print_hints(hints)
    elif json or ask or out == DASH:
        print(inferred.to_json(), end="")
    else:
        _print_schema(inferred)
        _print_hints(hints)


def _print_schema(schema: Schema) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("column", "kind", "values", "may change", box=None, pad_edge=False)
    for row in schema.describe():
        table.add_row(*(Text(cell) for cell in row))
    print_table(table)
    if schema.laws:
        print("\nLaws, which every answer keeps (those with exceptions: if it can):")
    for number, sentence in enumerate(schema.sentences()):
        say(f"{number:3}  {sentence}", indent=5 * " ")


def _print_hints(hints: list[str]) -> None:
    if hints:
        print("\nHints, each with the way out:")
    for hint in hints:
        say(f"     {hint}", indent=5 * " ")
