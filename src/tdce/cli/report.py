"""`tdce report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import tdce
from tdce._core import InputError
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import PAGE, Decider, Decimal, Language, ModelPath, RowsPath, Sep, Whom, progress_mode, summary
from tdce.datasets import Dialect, check_writable, read_table
from tdce.report import load_catalogue

MEASURED = 1_000  # rows of a report that are measured unasked: seconds, where 10,000 take minutes


@with_question
def report(
    artefact: ModelPath,
    rows: RowsPath,
    out: Annotated[Path, typer.Option(help="Where to write the page, FILE.html")],
    table: Annotated[
        Path | None, typer.Option(help="Real people to show everybody beside, and to measure with")
    ] = None,
    *,
    asked: QuestionFlags,
    model: Decider = None,
    metrics: Annotated[
        bool | None, typer.Option("--metrics/--no-metrics", help="Measure too (default: up to 1,000 rows)")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The headline of the page")] = None,
    language: Language = "en",
    audience: Whom = "analyst",
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Write a report on ROWS: one page that opens from disk, with a card for each person and all of them together.

    Everybody is shown beside real people of --table, or of the training rows if NAME.tdce holds them, or else beside
    synthetic ones.
    """
    check_writable(out, (PAGE,))
    load_catalogue(language)
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model)
    frame = read_table(rows, explainer.schema, dialect)
    real = None if table is None else read_table(table, explainer.schema, dialect)
    answer = explainer.ask(frame, asked.question(explainer))
    found, left_out = {}, ""
    if metrics or (metrics is None and len(frame) <= MEASURED):
        try:
            found = explainer.evaluate(answer, real)
        except InputError as error:
            if metrics:
                raise
            left_out = f" Metrics are left out: {error}."
    answer.to_html(
        out,
        title=title,
        language=language,
        audience=audience,
        metrics=found,
        population=None if real is None else explainer.population(real),
    )
    Console().print(
        f"{summary(len(frame), answer.counts())}{left_out} Written: {out} (open it in a browser)",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
