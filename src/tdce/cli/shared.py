"""What several commands take and say: arguments, options, summaries."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from tdce._core import InputError, Mode
from tdce.datasets import Dialect, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdce.explainer import Explainer
    from tdce.methods import Question
    from tdce.models import Ensemble

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="A table: .csv, .csv.gz or .parquet")]
RowsPath = Annotated[Path, typer.Argument(metavar="ROWS", help="The rows to explain: .csv, .csv.gz or .parquet")]
ModelPath = Annotated[Path, typer.Argument(metavar="NAME.tdce", help="An explainer written by `tdce fit`")]
Immutable = Annotated[str, typer.Option(help="Columns that never change, separated by commas")]
Learn = Annotated[str, typer.Option(help="Row numbers and ids to learn nevertheless, separated by commas")]
Codes = Annotated[str, typer.Option("--categorical", help="Columns whose numbers are codes, separated by commas")]
Sep = Annotated[str, typer.Option(help="The separator of cells in CSV files: one character, or the word tab")]
Decimal = Annotated[str, typer.Option(help="The decimal mark in CSV files: . or ,")]
Decider = Annotated[str | None, typer.Option("--model", help="A model of your own: FILE.onnx, or http://…/score")]
Language = Annotated[str, typer.Option(help="The language of a page: en, de, or with a region, de-CH")]
Whom = Annotated[Literal["applicant", "analyst"], typer.Option(help="Who reads a page; an analyst may see more")]
RealTable = Annotated[Path | None, typer.Option("--table", help="The table that was learned")]
Robust = Annotated[int, typer.Option(min=0, help="Require 90 % of this many models, retrained on --table, to accept")]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same result")]
PAGE = ".html"


def wide_console() -> Console:
    """As wide as the terminal; in a file or a pipe wide enough that nothing is cut."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def retrained_ensemble(
    explainer: Explainer, question: Question, table: Path | None, dialect: Dialect
) -> tuple[Question, Ensemble | None]:
    """The ensemble that should accept the answers, if the question wants one, and the question that names it."""
    if question.robust is None or table is None:
        return question, None
    ensemble = explainer.retrain(read_table(table, explainer.schema, dialect), models=question.robust.models)
    return replace(question, robust=ensemble.retraining), ensemble


def require_table(table: Path | None, models: Mapping[str, int]) -> None:
    """Before the work: whether there is what models are trained on again."""
    for option, count in models.items():
        if count and table is None:
            raise InputError(f"{option} trains models again, which takes the table that was learned: --table FILE")


def summary(rows: int, counts: Mapping[str, int]) -> str:
    """`5 rows, 5 lines: 5 valid.`"""
    words = {"valid": "valid", "best_effort": "best effort", "already": "already there", "infeasible": "infeasible"}
    parts = ", ".join(f"{count:,} {words[status]}" for status, count in counts.items())
    return f"{rows:,} rows, {sum(counts.values()):,} lines: {parts}."


def progress_mode() -> Mode:
    return "bar" if sys.stderr.isatty() else "lines"


def words_of(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def names_of(text: str, known: Any) -> list[Any]:
    """`a,b` -> names; a single name may itself have a comma, a whole number names a numbered column."""
    if not text:
        return []
    columns = {str(name): name for name in known}
    if text in columns:
        return [columns[text]]
    return [columns.get(name.strip(), name.strip()) for name in text.split(",") if name.strip()]


def costs_of(text: str, known: Any) -> dict[Any, float]:
    """`a=5,b=0` -> a mapping."""
    found = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, cost = part.rpartition("=")
        try:
            found[names_of(name.strip(), known)[0]] = float(cost)
        except (ValueError, IndexError):
            raise InputError(f"cost {part!r} must be a column, = and a number, such as age=5") from None
    return found
