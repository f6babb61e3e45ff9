"""`tdce report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from tdce.explainer import Answer

MAX_MEASURED_ROWS = 1_000  # for metrics without --metrics: 1,000 rows take seconds, 10,000 minutes


@with_question
def report(
    artefact: ArtefactPath,
    rows: RowsPath,
    out: Annotated[
        Path,
        typer.Option(
            metavar="OUT",
            help="FILE.html, or - for standard output; with --audience applicant a folder or FILE.zip, a page for each",
        ),
    ],
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
    reasons: Annotated[
        bool | None,
        typer.Option("--reasons/--no-reasons", help="Compare reasons by three methods (default: up to 1,000 rows)"),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column with what people are called; the model must not see it"),
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
    """Write a page about all rows, or one for each applicant.

    The page opens from disk. It says what was found, has a card for each person and an overview of all of them. People
    are shown beside the real people of --table, else beside the training rows if NAME.tdce holds them, else beside
    synthetic rows.
    """
    from tdce.datasets import Dialect, check_pages, check_writable, read_table
    from tdce.report import MAX_COMPARED_PEOPLE, load_catalogue, person_labels

    applicants = audience == "applicant"
    if applicants and out == DASH:
        raise InputError("--audience applicant writes a page for each person; name a folder or FILE.zip: --out FOLDER")
    if applicants:
        check_pages(out, 1)
    elif out != DASH:
        check_writable(out, (PAGE,))
    load_catalogue(language)
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model_of(model, header))
    with input_file(rows) as source:
        frame = read_table(source, explainer.schema, dialect)
        by = column_of("--burden", burden, frame.columns)
        person_labels(frame, id, explainer.schema.names)
        if applicants:
            check_pages(out, len(frame))
        answer = explainer.ask(frame, flags.question(explainer))
    real = None if table is None else read_table(table, explainer.schema, dialect)
    measured, left_out = {}, ""
    if not applicants and (metrics or (metrics is None and len(frame) <= MAX_MEASURED_ROWS)):
        try:
            measured = explainer.evaluate(answer, real)
        except InputError as error:
            if metrics:
                raise
            left_out = f" Metrics are left out: {error}."
    population = None if real is None else explainer.population(real)
    with output_file(out, PAGE) as page:
        answer.to_html(
            page, id=id, title=title, language=language, audience=audience, metrics=measured, population=population,
            reasons=reasons, burden=by,
        )  # fmt: skip
    written = "" if out == DASH else f" Written: {out}{'' if applicants else ' (open it in a browser)'}"
    compared = not applicants and (len(frame) <= MAX_COMPARED_PEOPLE if reasons is None else reasons)
    agree = _agreement(answer) if compared and answer.shortfall is not None else ""
    say(f"{summary(len(frame), answer.counts())}{left_out}{agree}{written}", stderr=out == DASH)


def _agreement(answer: Answer) -> str:
    """Print how often the methods of principal reasons agree on the first reason."""
    pairs = [each for each in answer.compare_reasons() if each.people]
    shares = ", ".join(f"{each.one} and {each.other} {100 * each.first:.0f} %" for each in pairs)
    return f" First principal reason the same by two methods: {shares}." if pairs else ""
