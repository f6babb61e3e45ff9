"""`tdce letters`."""

from __future__ import annotations

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
    ModelSource,
    RowsPath,
    Sep,
    model_of,
    names_of,
    progress_mode,
    say,
    summary,
    words_of,
)
from tdce.cli.streams import DASH, input_file


@with_question
def letters(
    artefact: ArtefactPath,
    rows: RowsPath,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder, with a file for each person")],
    *,
    flags: QuestionFlags,
    id: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Column that names the files (default: row numbers)")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="COLUMN", help="Column with people's names, for the salutation")
    ] = None,
    forms: Annotated[
        str, typer.Option("--format", metavar="FORMATS", help="Some of html, txt and docx, separated by commas")
    ] = "html",
    language: Annotated[
        str, typer.Option(metavar="CODE", help="Language of the letters: en or de, or with a region, de-CH")
    ] = "en",
    template: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A Jinja template in place of ours (docs/language.md)")
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="DATE", help="Date of the letters, such as 2026-01-31 (default: today)")
    ] = None,
    sender: Annotated[
        list[str] | None, typer.Option(metavar="LINE", help="Who writes; repeat it for further lines")
    ] = None,
    contact: Annotated[str, typer.Option(metavar="TEXT", help="Whom to ask: an office, an address, a number")] = "",
    subject: Annotated[str, typer.Option(metavar="TEXT", help="The line above the salutation")] = "",
    model: ModelSource = None,
    header: Headers = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Write a letter to each person, with reasons and what would help.

    The folder appears when all letters are written, and never replaces another. With the same --date, the same rows
    give the same files.
    """
    from tdce.datasets import Dialect, check_new_folder, read_table
    from tdce.report import Template, check_date, check_forms, load_catalogue, person_ids

    if out == DASH:
        raise InputError("--out cannot be -; name a folder")
    check_new_folder(out)
    wanted = check_forms(words_of(forms))
    load_catalogue(language)
    check_date(date)
    Template.read(template)
    explainer = tdce.Explainer.load(artefact, progress=progress_mode(), model=model_of(model, header))
    with input_file(rows) as source:
        frame = read_table(source, explainer.schema, Dialect(sep, decimal))
    id_column, name_column = (_column(text, frame.columns) for text in (id, name))
    person_ids(frame, id_column)  # raises an error before the work if the ids cannot name the files
    answer = explainer.ask(frame, flags.question(explainer))
    written = answer.to_letters(
        out, language, forms=wanted, id=id_column, template=template, date=date, sender="\n".join(sender or ()),
        contact=contact, subject=subject, name=name_column,
    )  # fmt: skip
    files = f"{len(written):,} file{'s' * (len(written) != 1)}"
    say(f"{summary(len(frame), answer.counts())} Written: {out} ({files})")


def _column(text: str | None, known: object) -> object:
    """A column by its name; a whole number may name a numbered one."""
    return None if text is None else next(iter(names_of(text, known)), text)
