"""`tdce evaluate`."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

import tdce
from tdce._core import InputError
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import (
    ArtefactPath,
    Decimal,
    Headers,
    JsonFlag,
    ModelSource,
    Robust,
    RowsPath,
    Sep,
    model_of,
    print_table,
    progress_mode,
    require_table,
    retrained_ensemble,
    say,
    summary,
)
from tdce.cli.streams import input_file


@with_question
def evaluate(
    artefact: ArtefactPath,
    rows: RowsPath,
    table: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The table that was learned, to measure against its rows")
    ] = None,
    *,
    flags: QuestionFlags,
    model: ModelSource = None,
    header: Headers = None,
    robust: Robust = 0,
    retrain: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", show_default=False, help="Measure how many of N models, retrained on --table, accept"
        ),
    ] = 0,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: JsonFlag = False,
) -> None:
    """Measure the answers by the paper's metrics, and more.

    With --table, some metrics compare the answers with rows of the table that were held out from training. Without it,
    and if NAME.tdce holds no training rows, they are measured against its synthetic rows.
    """
    from tdce.datasets import Dialect, read_table
    from tdce.metrics import MEANING

    require_table(table, {"--robust": robust, "--retrain": retrain})
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model_of(model, header))
    question = flags.question(explainer, robust)
    with input_file(rows) as source:
        frame = read_table(source, explainer.schema, dialect)
        real = None if table is None else read_table(table, explainer.schema, dialect)
        question, ensemble = retrained_ensemble(explainer, question, table, dialect)
        answer = explainer.ask(frame, question, ensemble)
    measured = explainer.evaluate(answer, real, retrain=retrain)
    if not measured:
        raise InputError(f"there is nothing to measure: all {len(frame)} rows are in the target class already")
    fitted = explainer.fitted
    if real is None and len(fitted.raw) == 0:
        say(
            f"{artefact} holds no training rows: measured against its {len(fitted.synthetic):,} synthetic rows; "
            "--table FILE measures against real ones.",
            stderr=json,
        )
    if json:
        print(dumps(measured, indent=2))
        return
    from rich.table import Table

    shown = Table("metric", "value", "good", "meaning", box=None, pad_edge=False)
    for name, value in measured.items():
        good, meaning = MEANING[name]
        shown.add_row(name, f"{value:.4g}", good, meaning)
    print_table(shown)
    say(summary(len(frame), answer.counts()))
