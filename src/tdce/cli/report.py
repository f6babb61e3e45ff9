"""`tdce report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tdce
from tdce._core import InputError
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import (
    PAGE,
    ArtefactPath,
    AudienceOption,
    Decimal,
    Headers,
    Language,
    ModelSource,
    RowsPath,
    Sep,
    column_of,
    model_of,
    progress_mode,
    say,
    summary,
)
from tdce.cli.streams import DASH, input_file, output_file

MAX_MEASURED_ROWS = 1_000  # without --metrics: they take seconds, and 10,000 minutes


@with_question
def report(
    artefact: ArtefactPath,
    rows: RowsPath,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Output page, or - for standard output")],
    table: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Real people to compare with and to measure against")
    ] = None,
    *,
    flags: QuestionFlags,
    model: ModelSource = None,
    header: Headers = None,
    metrics: Annotated[
        bool | None, typer.Option("--metrics/--no-metrics", help="Include metrics (default: up to 1,000 rows)")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Headline of the page")] = None,
    burden: Annotated[
        str, typer.Option(metavar="COLUMN", help="Include what a yes asks of the groups of this column")
    ] = "",
    language: Language = "en",
    audience: AudienceOption = "analyst",
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Write a report: one HTML page about all rows.

    The page opens from disk. It has a card for each person and an overview of all of them. People are shown beside the
    real people of --table, else beside the training rows if NAME.tdce holds them, else beside synthetic rows.
    """
    from tdce.datasets import Dialect, check_writable, read_table
    from tdce.report import load_catalogue

    if out != DASH:
        check_writable(out, (PAGE,))
    load_catalogue(language)
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model_of(model, header))
    with input_file(rows) as source:
        frame = read_table(source, explainer.schema, dialect)
        by = column_of("--burden", burden, frame.columns)
        answer = explainer.ask(frame, flags.question(explainer))
    real = None if table is None else read_table(table, explainer.schema, dialect)
    measured, left_out = {}, ""
    if metrics or (metrics is None and len(frame) <= MAX_MEASURED_ROWS):
        try:
            measured = explainer.evaluate(answer, real)
        except InputError as error:
            if metrics:
                raise
            left_out = f" Metrics are left out: {error}."
    population = None if real is None else explainer.population(real)
    with output_file(out, PAGE) as page:
        answer.to_html(
            page, title=title, language=language, audience=audience, metrics=measured, population=population, burden=by
        )
    written = "" if out == DASH else f" Written: {out} (open it in a browser)"
    say(f"{summary(len(frame), answer.counts())}{left_out}{written}", stderr=out == DASH)
