"""`tdce explain`: any number of rows, here or on Ray, as a table or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

import tdce
from tdce._core import InputError, Progress, require_extra
from tdce.batch import BlockRecord, check_folder
from tdce.cli.question import QuestionFlags, with_question
from tdce.cli.shared import (
    PAGE,
    Decider,
    Decimal,
    Language,
    ModelPath,
    RealTable,
    Robust,
    Sep,
    Whom,
    progress_mode,
    require_table,
    retrained_ensemble,
    summary,
)
from tdce.datasets import WRITABLE, Dialect, check_writable, suffix_of
from tdce.report import load_catalogue

PAGE_ROWS = 10_000  # at most, on a page


@with_question
def explain(
    artefact: ModelPath,
    rows: Annotated[
        str,
        typer.Argument(
            metavar="ROWS",
            help="The rows: .csv, .csv.gz, .parquet, a folder of them, or a pattern such as '2024/*.csv'",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write: .csv, .csv.gz, .parquet, .jsonl or .html")],
    *,
    asked: QuestionFlags,
    model: Decider = None,
    robust: Robust = 0,
    table: RealTable = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say how often the model was queried")] = False,
    language: Language = "en",
    audience: Whom = "applicant",
    evidence: Annotated[Path | None, typer.Option(help="Also write a record that `tdce verify` checks")] = None,
    sign: Annotated[Path | None, typer.Option(help="Sign it: a private key made by `tdce keys`")] = None,
    secret: Annotated[Path | None, typer.Option(help="Hold no values in it, only hashes made with this secret")] = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, one thread each")] = 1,
    part_rows: Annotated[
        int | None, typer.Option(min=1, help="Write a folder of files with about so many of the rows each")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Who runs the workers: this machine, or a Ray cluster (tdce[ray])")
    ] = "local",
) -> None:
    """Say for each row what would have to be different.

    Any number of rows, in constant memory. A run that was stopped goes on when the same command is given again.
    """
    page = out.name.lower().endswith(PAGE)
    if part_rows is None:
        check_writable(out, (*WRITABLE, PAGE))
    elif page:
        raise InputError("--part-rows goes with tables, not with a page; name a file that ends with .csv, for instance")
    else:
        suffix_of(out, WRITABLE)
        check_folder(out)
    _check_evidence(evidence, out, sign, secret)
    require_table(table, {"--robust": robust})
    if table is not None and not robust:
        raise InputError("--table is for models that are trained again; say how many: --robust 10")
    load_catalogue(language)  # an unknown one is named before the work
    from tdce.batch import EvidenceOptions, RunOptions, explain_table
    from tdce.datasets import ChunkedTable, find_tables

    progress, dialect = Progress(progress_mode()), Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress.mode if page else "silent", model=model)
    question = asked.question(explainer, robust)
    if engine == "ray":
        require_extra("--engine ray", "ray", "ray")
        if page:
            raise InputError("--engine ray writes tables, not a page; name a file that ends with .csv, for instance")
        if question.max_model_rows is not None:
            raise InputError(
                "--max-model-rows needs to know the number of rows, which --engine ray does not count first"
            )
    question, ensemble = retrained_ensemble(explainer, question, table, dialect)
    recorded = None if evidence is None else EvidenceOptions(evidence, sign, secret)
    run = RunOptions(artefact, out, question, dialect, model, workers, part_rows, recorded)
    if engine == "ray":
        from tdce.batch import explain_parquet

        _print_total(explain_parquet(run, rows, progress, ensemble), False, out, evidence)
        return
    chunks = ChunkedTable(find_tables(Path(rows)), explainer.schema, dialect)
    tell = progress.now_and_then("checked {:,} rows")
    chunks.survey(lambda frame: (explainer.fitted.encoder.read(frame), tell(chunks.rows + len(frame))))
    if page:
        if chunks.rows > PAGE_ROWS:
            raise InputError(f"{chunks.rows:,} rows are too many for a page, which has at most {PAGE_ROWS:,}; name a "
                             "file that ends with .csv or .parquet, or explain some of the rows")  # fmt: skip
        frame = next(chunks.chunks(size=chunks.rows))[1]
        answer = explainer.ask(frame, question, ensemble)
        answer.to_html(out, language=language, audience=audience)
        if evidence is not None:
            answer.to_evidence(evidence, sign=sign, secret=secret)
        total = BlockRecord(1, 0, chunks.rows, answer.counts(), answer.model_calls, answer.model_rows)
    else:
        total = explain_table(run, explainer, chunks, progress, ensemble)
    _print_total(total, verbose, out, evidence)


def _check_evidence(evidence: Path | None, out: Path, sign: Path | None, secret: Path | None) -> None:
    """Before the work: whether the evidence can be written, and its keys be read."""
    from tdce.audit import keys

    if evidence is None:
        if sign is not None or secret is not None:
            raise InputError("--sign and --secret are about evidence; name its file too: --evidence FILE")
        return
    check_writable(evidence, endings=None)
    if evidence.absolute() == out.absolute():
        raise InputError(f"--out and --evidence are both {out}; name two files")
    if sign is not None:
        keys.load_signer(sign)
    if secret is not None:
        keys.load_secret(secret)


def _print_total(total: BlockRecord, verbose: bool, out: Path, evidence: Path | None = None) -> None:
    asked = f" The model was queried {total.model_calls:,} times for {total.model_rows:,} rows." if verbose else ""
    written = out if evidence is None else f"{out}, {evidence}"
    Console().print(f"{summary(total.rows, total.counts)}{asked} Written: {written}", highlight=False, soft_wrap=True)
