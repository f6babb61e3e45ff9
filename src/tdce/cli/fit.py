"""`tdce fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tdce
from tdce._core import InputError
from tdce.cli.shared import (
    CauseOption,
    Codes,
    Decimal,
    Headers,
    Immutable,
    Learn,
    ModelSource,
    SeedOption,
    Sep,
    TablePath,
    model_of,
    names_of,
    progress_mode,
    relations_of,
    say,
)
from tdce.cli.streams import DASH, input_file

if TYPE_CHECKING:
    from tdce.schema import Schema

ACCURACY = {
    "unseen": "The classifier is right on {share:.1f} % of {rows:,} unseen rows",
    "learned": "The classifier is right on {share:.1f} % of the {rows:,} rows that it learned",
    "given": "The model agrees with the label on {share:.1f} % of {rows:,} rows, which it may have learned",
}
"""By the rows that it was measured on."""


def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(metavar="NAME.tdce", help="Output file for the fitted explainer")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that the model predicts")] = None,
    favourable: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The favourable label, or 'at least 620'")
    ] = None,
    model: ModelSource = None,
    header: Headers = None,
    immutable: Immutable = "",
    actionable: Annotated[
        str, typer.Option(metavar="COLUMNS", help="Columns that may change although nobody seems able to: age, …")
    ] = "",
    cause: CauseOption = None,
    learn: Learn = "",
    categorical: Codes = "",
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A schema from `tdce schema --out`, as it is or edited")
    ] = None,
    seed: SeedOption = 0,
    sep: Sep = ",",
    decimal: Decimal = ".",
    keep_rows: Annotated[bool, typer.Option("--keep-rows", help="Keep the training rows in NAME.tdce")] = False,
    exact: Annotated[
        bool, typer.Option("--exact", help="Keep values that fewer than five people have: ends, rare categories")
    ] = False,
) -> None:
    """Learn a table and write a fitted explainer.

    Trains a diffusion model of the rows and, without --model, a classifier of the label.
    """
    from tdce.datasets import Dialect, check_writable, read_table

    if out == DASH:
        raise InputError("--out cannot be -; name a file, NAME.tdce")
    check_writable(out, endings=None)
    if label is None and model is None:
        raise InputError("--label names the column that is predicted; without one, give a model: --model FILE.onnx")
    dialect = Dialect(sep, decimal)
    given = None if schema is None else _read_schema(schema)
    with input_file(table) as source:
        frame = read_table(source, given, dialect)
    explainer = tdce.Explainer(
        model=model_of(model, header), seed=seed, keep_rows=keep_rows, exact=exact, progress=progress_mode()
    )
    frozen, opened, learned, codes = (
        names_of(text, frame.columns) for text in (immutable, actionable, learn, categorical)
    )
    explainer.fit(
        frame, label=label, favourable=favourable, schema=given, immutable=frozen, learn=learned, categorical=codes,
        actionable=opened, causes=relations_of("--cause", cause, frame.columns) if cause else None,
    )  # fmt: skip
    explainer.save(out)
    report, accuracy = explainer.report, ""
    if report["accuracy"] is not None:
        accuracy = (
            f" {ACCURACY[report['accuracy_rows']].format(share=100 * report['accuracy'], rows=report['test_rows'])} "
            f"(always predicting the most common class: {100 * report['commonest_class']:.1f} %)."
        )
    say(f"Fitted to {report['rows']:,} rows in {report['seconds']:.0f} s.{accuracy}"
        f"{_laws_found(explainer.schema, out)} Written: {out}")  # fmt: skip


def _laws_found(schema: Schema, out: Path) -> str:
    count = len(schema.laws)
    return f" {count} law{'s' * (count > 1)} found between its columns: `tdce schema {out}`." if count else ""


def _read_schema(path: Path) -> Schema:
    from tdce.schema import Schema

    try:
        return Schema.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise InputError(f"the schema {path} cannot be read: {error}") from None
