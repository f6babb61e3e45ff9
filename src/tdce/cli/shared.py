"""Arguments, options and texts that several commands share.

Nothing in this room imports numpy, pandas, rich or torch before a command runs: help and shell completion answer at
once.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tdce._core import InputError, listing, show, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from tdce._core import Mode
    from tdce.datasets import Dialect
    from tdce.explainer import Explainer
    from tdce.methods import Question
    from tdce.models import Endpoint, Ensemble

ArtefactPath = Annotated[Path, typer.Argument(metavar="NAME.tdce", help="A fitted explainer, from `tdce fit`")]
TablePath = Annotated[
    Path, typer.Argument(metavar="TABLE", help="A table: .csv, .csv.gz or .parquet, or - for standard input")
]
RowsPath = Annotated[
    Path, typer.Argument(metavar="ROWS", help="Rows to explain: .csv, .csv.gz or .parquet, or - for standard input")
]
Immutable = Annotated[str, typer.Option(metavar="COLUMNS", help="Columns that must not change, separated by commas")]
Learn = Annotated[
    str, typer.Option(metavar="COLUMNS", help="Columns to learn although they look like ids, separated by commas")
]
Codes = Annotated[
    str,
    typer.Option("--categorical", metavar="COLUMNS", help="Columns whose numbers are codes, separated by commas"),
]
Sep = Annotated[str, typer.Option(metavar="CHAR", help="Separator of CSV files: one character, or the word tab")]
Decimal = Annotated[str, typer.Option(metavar="MARK", help="Decimal mark of CSV files: . or ,")]
ModelSource = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Your own model: FILE.onnx or http://HOST/PATH")
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header", metavar="'NAME: env:VARIABLE'",
        help="A header for --model http://HOST/PATH, with its value from the environment; may be repeated",
    ),
]  # fmt: skip
Language = Annotated[str, typer.Option(metavar="CODE", help="Language of the page: en or de, or with a region, de-CH")]
AudienceOption = Annotated[
    Literal["applicant", "analyst"], typer.Option(help="Reader of the page; an analyst may see more")
]
TrainingTable = Annotated[
    Path | None, typer.Option("--table", metavar="TABLE", help="The table that was learned, for --robust")
]
Robust = Annotated[
    int,
    typer.Option(
        min=0, metavar="N", show_default=False, help="Require 90 % of N models, retrained on --table, to accept"
    ),
]
CauseOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN=COLUMNS", help="What causes a column: income=education,hours; may be repeated"),
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="S", help="Seed: the same one gives the same result")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")]
PAGE = ".html"


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal or, in a file or pipe, wide enough to cut nothing."""
    from rich.console import Console

    for column in table.columns:
        column.overflow = "fold"  # long words continue on the next line
    console = Console() if sys.stdout.isatty() else Console(width=200)
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def say(text: str, indent: str = "", stderr: bool = False) -> None:
    """Print a paragraph: wrapped between words on a terminal, on one line elsewhere."""
    file = sys.stderr if stderr else sys.stdout
    if file.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    print(text, file=file)


def model_of(source: str | None, headers: list[str] | None) -> str | Endpoint | None:
    """The model that --model and --header describe."""
    if not headers:
        return source
    from tdce.models import Endpoint

    if source is None or "://" not in source:
        raise InputError("--header goes with the address of an endpoint: --model https://HOST/PATH")
    pairs = [header.partition(":") for header in headers]
    if not all(colon for _, colon, _ in pairs):
        raise InputError("--header must be a name, a colon and a variable: 'Authorization: Bearer env:VARIABLE'")
    return Endpoint(source, tuple((name.strip(), value.strip()) for name, _, value in pairs))


def retrained_ensemble(
    explainer: Explainer, question: Question, table: Path | None, dialect: Dialect
) -> tuple[Question, Ensemble | None]:
    """The question with its retraining filled in, and the retrained ensemble; None if the question wants none."""
    from tdce.datasets import read_table

    if question.robust is None or table is None:
        return question, None
    ensemble = explainer.retrain(read_table(table, explainer.schema, dialect), models=question.robust.models)
    return replace(question, robust=ensemble.retraining), ensemble


def require_table(table: Path | None, models: Mapping[str, int]) -> None:
    """Raise an error, before any work is done, if there is no table to retrain models on."""
    for option, count in models.items():
        if count and table is None:
            raise InputError(f"{option} retrains models, which takes the table that was learned: --table FILE")


def summary(rows: int, counts: Mapping[str, int]) -> str:
    """`5 rows, 5 lines: 5 valid.`"""
    words = {"valid": "valid", "best_effort": "best effort", "already": "already there", "infeasible": "infeasible"}
    parts = ", ".join(f"{count:,} {words[status]}" for status, count in counts.items())
    lines = sum(counts.values())
    return f"{rows:,} row{'s' * (rows != 1)}, {lines:,} line{'s' * (lines != 1)}: {parts}."


def progress_mode() -> Mode:
    """A bar on a terminal, plain lines in a log."""
    return "bar" if sys.stderr.isatty() else "lines"


def words_of(text: str) -> tuple[str, ...]:
    """`a,b` -> words."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def names_of(text: str, known: Any) -> list[Any]:
    """`a,b` -> names; a single name may contain a comma, and a whole number names a numbered column."""
    if not text:
        return []
    columns = {str(name): name for name in known}
    if text in columns:
        return [columns[text]]
    return [columns.get(name.strip(), name.strip()) for name in text.split(",") if name.strip()]


def column_of(option: str, text: str, known: Any) -> Any:
    """The single column that an option names; None if it names none."""
    if not text:
        return None
    name = names_of(text, known)[0] if names_of(text, known) else text
    if name not in known:
        raise InputError(
            f"{option}: there is no column {show(name)}; {suggest(name, known)}the rows have: {listing(known)}"
        )
    return name


def relations_of(option: str, texts: Sequence[str] | None, known: Any) -> dict[Any, list[Any]]:
    """`income=education,hours` -> a mapping from a column to others."""
    relations = {}
    for text in texts or ():
        name, equals, others = text.partition("=")
        columns = names_of(name.strip(), known)
        if not equals or len(columns) != 1:
            raise InputError(f"{option} {text!r} must be a column, = and others: {option} income=education,hours")
        relations[columns[0]] = names_of(others, known)
    return relations


def costs_of(text: str, known: Any) -> dict[Any, float]:
    """`a=5,b=0` -> a mapping."""
    costs = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, cost = part.rpartition("=")
        try:
            costs[names_of(name.strip(), known)[0]] = float(cost)
        except (ValueError, IndexError):
            raise InputError(f"cost {part!r} must be a column, = and a number, such as age=5") from None
    return costs
