"""`tdce explain`: any number of rows, here or on Ray, to a table, a page, standard output or the terminal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import tdce
from tdce._core import InputError, require_extra
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import (
    PAGE,
    ArtefactPath,
    AudienceOption,
    Decimal,
    Headers,
    Language,
    ModelSource,
    Robust,
    Sep,
    TrainingTable,
    model_of,
    progress_mode,
    require_table,
    retrained_ensemble,
    say,
    summary,
)
from tdce.cli.streams import DASH, input_file, output_file

if TYPE_CHECKING:
    import pandas as pd

    from tdce._core import Progress
    from tdce.batch import BlockRecord
    from tdce.datasets import ChunkedTable, Dialect
    from tdce.explainer import Answer, Explainer
    from tdce.methods import Question
    from tdce.models import Ensemble

MAX_PAGE_ROWS = 10_000
MAX_SHOWN_LINES = 200  # on the terminal


@with_question
def explain(
    artefact: ArtefactPath,
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS",
            help="Rows to explain: .csv, .csv.gz, .parquet, a folder of them, a pattern such as '2024/*.csv', or - for "
            "standard input",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output file: .csv, .csv.gz, .parquet, .jsonl or .html, or - for CSV on standard output (default: "
            "show the first 200 lines)",
        ),
    ] = None,
    *,
    flags: QuestionFlags,
    model: ModelSource = None,
    header: Headers = None,
    robust: Robust = 0,
    table: TrainingTable = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print how often the model was queried")] = False,
    language: Language = "en",
    audience: AudienceOption = "analyst",
    evidence: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write evidence that `tdce verify` checks")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Sign the evidence with a private key from `tdce keys`")
    ] = None,
    secret: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep values out of the evidence: hash them with a secret from `tdce keys`"),
    ] = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    excel_safe: Annotated[
        bool,
        typer.Option(
            "--excel-safe", help="In CSV, put ' before text that a spreadsheet would run: after =, +, -, @, tab, return"
        ),
    ] = False,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Number of processes, one thread each")] = 1,
    part_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Write a folder of files, each with the answers to about N rows"),
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Run the workers on this machine or on a Ray cluster (tdce[ray])")
    ] = "local",
) -> None:
    """Find what would have to be different, for each row.

    Takes any number of rows in constant memory. A file appears under its name only when it is complete; run the same
    command again to resume a run that was stopped. Neither holds for --out -: the answers are sent when all of them are
    there, but the reader may get only a part.
    """
    from tdce._core import Progress
    from tdce.batch import EvidenceOptions, RunOptions, explain_table
    from tdce.datasets import Dialect, check_pages
    from tdce.report import load_catalogue

    page = out is not None and out.name.lower().endswith(PAGE)
    _check_out(out, page, part_rows)
    if excel_safe and (out is None or not (out == DASH or out.name.lower().endswith((".csv", ".csv.gz")))):
        raise InputError("--excel-safe is about CSV; name a file that ends with .csv or .csv.gz, or leave it out")
    _check_evidence(evidence, out, sign, secret)
    if out is None:
        needed = {"--evidence": evidence, "--workers": workers > 1, "--engine ray": engine == "ray"}
        for option, given in needed.items():
            if given:
                raise InputError(f"{option} needs a file for the answers: --out FILE")
    require_table(table, {"--robust": robust})
    if table is not None and not robust:
        raise InputError("--table is for retrained models; say how many: --robust 10")
    load_catalogue(language)  # raises an error for an unknown one before the work
    progress, dialect = Progress(progress_mode()), Dialect(sep, decimal, excel_safe)
    whole = page or out is None  # answered in one call
    source_model = model_of(model, header)
    explainer = tdce.Explainer.load(artefact, progress=progress.mode if whole else "silent", model=source_model)
    question = flags.question(explainer, robust)
    if engine == "ray":
        _check_ray(page, rows, question)
    question, ensemble = retrained_ensemble(explainer, question, table, dialect)
    recorded = None if evidence is None else EvidenceOptions(evidence, sign, secret)
    with input_file(Path(rows)) as source:
        if out is None:
            _show(explainer, question, ensemble, _survey(source, explainer, dialect, progress), verbose)
            return
        with output_file(out, ".csv") as target:
            run = RunOptions(
                artefact, target, question, dialect, source_model, workers, part_rows, recorded, resumable=out != DASH
            )
            if engine == "ray":
                from tdce.batch import explain_parquet

                total = explain_parquet(run, rows, progress, ensemble)
            elif page:
                chunks = _survey(source, explainer, dialect, progress)
                if audience == "applicant":
                    check_pages(target, chunks.rows)
                answer = explainer.ask(_page_rows(chunks), question, ensemble)
                answer.to_html(target, language=language, audience=audience)
                if evidence is not None:
                    answer.to_evidence(evidence, sign=sign, secret=secret)
                total = _record(answer)
            else:
                chunks = _survey(source, explainer, dialect, progress)
                total = explain_table(run, explainer, chunks, progress, ensemble)
    written = ", ".join(str(path) for path in (out, evidence) if path is not None and path != DASH)
    say(f"{_total(total, verbose)}{f' Written: {written}' if written else ''}", stderr=out == DASH)


def _check_out(out: Path | None, page: bool, part_rows: int | None) -> None:
    """Raise an error, before any work is done, if the answers cannot be written there."""
    from tdce.batch import check_checkpoint, check_folder
    from tdce.datasets import WRITABLE, check_writable, suffix_of

    if part_rows is not None:
        if out is None or out == DASH:
            raise InputError("--part-rows writes a folder; name it: --out FOLDER.csv")
        if page:
            raise InputError("--part-rows goes with tables, not with a page; name a file that ends with .csv, "
                             "for instance")  # fmt: skip
        suffix_of(out, WRITABLE)
        check_folder(out)
    elif out is not None and out != DASH:
        check_writable(out, (*WRITABLE, PAGE))
        if not page:
            check_checkpoint(out)


def _check_evidence(evidence: Path | None, out: Path | None, sign: Path | None, secret: Path | None) -> None:
    """Raise an error, before any work is done, if the evidence cannot be written or its keys cannot be read."""
    from tdce.audit import keys
    from tdce.datasets import check_writable

    if evidence is None:
        if sign is not None or secret is not None:
            raise InputError("--sign and --secret are about evidence; name its file too: --evidence FILE")
        return
    if evidence == DASH:
        raise InputError("--evidence cannot be -; name a file")
    check_writable(evidence, endings=None)
    if out is not None and evidence.absolute() == out.absolute():
        raise InputError(f"--out and --evidence are both {out}; name two files")
    if sign is not None:
        keys.load_signer(sign)
    if secret is not None:
        keys.load_secret(secret)


def _check_ray(page: bool, rows: str, question: Question) -> None:
    require_extra("--engine ray", "ray", "ray")
    if page:
        raise InputError("--engine ray writes tables, not a page; name a file that ends with .csv, for instance")
    if Path(rows) == DASH:
        raise InputError("--engine ray reads files, not standard input; name them")
    if question.max_model_rows is not None:
        raise InputError("--max-model-rows needs to know the number of rows, which --engine ray does not count first")


def _survey(source: Path, explainer: Explainer, dialect: Dialect, progress: Progress) -> ChunkedTable:
    """Survey the rows: each is read once and must fit the schema."""
    from tdce.datasets import ChunkedTable, find_tables

    chunks = ChunkedTable(find_tables(source), explainer.schema, dialect)
    tell = progress.throttled("checked {:,} rows")
    chunks.survey(lambda frame: (explainer.fitted.encoder.read(frame), tell(chunks.rows + len(frame))))
    return chunks


def _page_rows(chunks: ChunkedTable) -> pd.DataFrame:
    if chunks.rows > MAX_PAGE_ROWS:
        raise InputError(f"{chunks.rows:,} rows are too many for a page, which has at most {MAX_PAGE_ROWS:,}; name a "
                         "file that ends with .csv or .parquet, or explain some of the rows")  # fmt: skip
    return next(chunks.chunks(size=chunks.rows))[1]


def _show(
    explainer: Explainer, question: Question, ensemble: Ensemble | None, chunks: ChunkedTable, verbose: bool
) -> None:
    """Answer the first rows and show them on the terminal."""
    from tdce.cli.lines import print_lines

    question.check_budget(chunks.rows)
    frame = next(chunks.chunks(size=max(1, MAX_SHOWN_LINES // question.n)))[1]
    if question.max_model_rows is not None:
        share = question.max_model_rows * len(frame) // chunks.rows
        question = replace(question, max_model_rows=share)
    answer = explainer.ask(frame, question, ensemble)
    print_lines(answer)
    more = chunks.rows - len(frame)
    rest = f" {more:,} more rows are not shown; --out FILE explains all {chunks.rows:,}." if more else ""
    say(f"{_total(_record(answer), verbose)}{rest}")


def _record(answer: Answer) -> BlockRecord:
    from tdce.batch import BlockRecord

    return BlockRecord(1, 0, len(answer.rows), answer.counts(), answer.model_calls, answer.model_rows)


def _total(total: BlockRecord, verbose: bool) -> str:
    queries = f" The model was queried {total.model_calls:,} times for {total.model_rows:,} rows." if verbose else ""
    return f"{summary(total.rows, total.counts)}{queries}"
