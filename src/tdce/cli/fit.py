"""`tdce fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import tdce
from tdce._core import InputError
from tdce.cli.shared import (
    Codes,
    Decider,
    Decimal,
    Immutable,
    Learn,
    SeedOption,
    Sep,
    TablePath,
    names_of,
    progress_mode,
)
from tdce.datasets import Dialect, check_writable, read_table
from tdce.schema import Schema


def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(help="Where to write the fitted explainer, NAME.tdce")],
    label: Annotated[str | None, typer.Option(help="The column that the model predicts")] = None,
    favourable: Annotated[str | None, typer.Option(help="The favourable label, or 'at least 620'")] = None,
    model: Decider = None,
    immutable: Immutable = "",
    learn: Learn = "",
    categorical: Codes = "",
    schema: Annotated[Path | None, typer.Option(help="A schema written by `tdce schema`, perhaps edited")] = None,
    seed: SeedOption = 0,
    sep: Sep = ",",
    decimal: Decimal = ".",
    keep_rows: Annotated[bool, typer.Option("--keep-rows", help="Keep the training rows in NAME.tdce")] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="Also train a network for amortised answers, thousands of rows a second")
    ] = False,
) -> None:
    """Learn a table: a classifier of its label (or, with --model, none) and a diffusion model of its rows."""
    check_writable(out, endings=None)
    if label is None and model is None:
        raise InputError("--label names the column that is predicted; without one, give a model: --model FILE.onnx")
    dialect = Dialect(sep, decimal)
    given = None if schema is None else _read_schema(schema)
    frame = read_table(table, given, dialect)
    explainer = tdce.Explainer(model=model, seed=seed, keep_rows=keep_rows, fast=fast, progress=progress_mode())
    frozen, learned, codes = (names_of(text, frame.columns) for text in (immutable, learn, categorical))
    explainer.fit(
        frame, label=label, favourable=favourable, schema=given, immutable=frozen, learn=learned, categorical=codes
    )
    explainer.save(out)
    report, right = explainer.report, ""
    if report["accuracy"] is not None:
        right = (
            f" The {'classifier' if model is None else 'model'} is right on {100 * report['accuracy']:.1f} % of "
            f"{report['test_rows']:,} {'unseen rows' if model is None else 'rows'} (always predicting the most common "
            f"class: {100 * report['commonest_class']:.1f} %)."
        )
    Console().print(
        f"{report['rows']:,} rows learned in {report['seconds']:.0f} s.{right}"
        f"{_laws_found(explainer.schema, out)} Written: {out}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _laws_found(schema: Schema, out: Path) -> str:
    count = len(schema.laws)
    return f" {count} law{'s' * (count > 1)} found between its columns: `tdce schema {out}`." if count else ""


def _read_schema(path: Path) -> Schema:
    try:
        return Schema.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise InputError(f"the schema {path} cannot be read: {error}") from None
