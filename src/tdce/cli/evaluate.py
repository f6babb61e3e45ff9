"""`tdce evaluate`."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import tdce
from tdce._core import InputError
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import (
    Decider,
    Decimal,
    ModelPath,
    Robust,
    RowsPath,
    Sep,
    progress_mode,
    require_table,
    retrained_ensemble,
    summary,
    wide_console,
)
from tdce.datasets import Dialect, read_table


@with_question
def evaluate(
    artefact: ModelPath,
    rows: RowsPath,
    table: Annotated[Path | None, typer.Option(help="The table that was learned, to measure against its rows")] = None,
    *,
    asked: QuestionFlags,
    model: Decider = None,
    robust: Robust = 0,
    retrain: Annotated[
        int, typer.Option(min=0, help="Retrain this many models on --table: do they accept the answers?")
    ] = 0,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")] = False,
) -> None:
    """Measure the explanations of ROWS by the paper's metrics and some more.

    With --table, some of these compare them with rows of it that were held out from training. Without, and if NAME.tdce
    holds no training row, they are measured against its synthetic people.
    """
    from tdce.metrics import MEANING

    require_table(table, {"--robust": robust, "--retrain": retrain})
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model)
    frame = read_table(rows, explainer.schema, dialect)
    real = None if table is None else read_table(table, explainer.schema, dialect)
    question, ensemble = retrained_ensemble(explainer, asked.question(explainer, robust), table, dialect)
    answer = explainer.ask(frame, question, ensemble)
    found = explainer.evaluate(answer, real, retrain=retrain)
    if not found:
        raise InputError(f"there is nothing to measure: all {len(frame)} rows are in the target class already")
    fitted = explainer.fitted
    if real is None and len(fitted.raw) == 0:
        Console(stderr=json).print(
            f"{artefact} holds no training row: measured against its {len(fitted.synthetic):,} synthetic people; "
            "--table FILE measures against real ones.",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    if json:
        print(dumps(found, indent=2))
        return
    shown = Table("metric", "value", "good", "meaning", box=None, pad_edge=False)
    for name, value in found.items():
        good, meaning = MEANING[name]
        shown.add_row(name, f"{value:.4g}", good, meaning)
    wide_console().print(shown)
    Console().print(summary(len(frame), answer.counts()), highlight=False, soft_wrap=True)
