"""The command line: each command reads files, calls one public function and writes whole files.

What needs torch is imported by the command that needs it, so that the others answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tdce
from tdce.carried import carried
from tdce.data import catalogue
from tdce.errors import InputError, require_engine, require_paper, require_studio
from tdce.hints import hints
from tdce.journal import Entry, check_folder
from tdce.progress import Mode, Progress
from tdce.schema import Schema
from tdce.tables import WRITABLE, Dialect, check_writable, read_table, suffix_of, write_whole
from tdce.words.catalogue import catalogue as messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tdce.evidence.verified import Verified
    from tdce.explainer import Explainer

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="What would have to be different for a yes: counterfactual explanations for tables.",
)  # fmt: skip

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="A table: .csv, .csv.gz or .parquet")]
RowsPath = Annotated[Path, typer.Argument(metavar="ROWS", help="The rows to explain: .csv, .csv.gz or .parquet")]
ModelPath = Annotated[Path, typer.Argument(metavar="NAME.tdce", help="An explainer written by `tdce fit`")]
Immutable = Annotated[str, typer.Option(help="Columns that never change, separated by commas")]
Learn = Annotated[str, typer.Option(help="Row numbers and ids to learn nevertheless, separated by commas")]
Codes = Annotated[str, typer.Option("--categorical", help="Columns whose numbers are codes, separated by commas")]
Options = Annotated[int, typer.Option("-n", "--options", min=1, help="Counterfactuals per row")]
Closeness = Annotated[float | None, typer.Option(help="From 0 (typical of the target class) to 1 (nearest to the row)")]
Sep = Annotated[str, typer.Option(help="The separator of cells in CSV files: one character, or the word tab")]
Decimal = Annotated[str, typer.Option(help="The decimal mark in CSV files: . or ,")]
Threshold = Annotated[float | None, typer.Option(help="Probability from which on the answer counts as a yes")]
Rules = Annotated[
    list[str] | None, typer.Option("--rule", help="What must hold, as 'loan <= 5 * income'; may be repeated")
]
Costs = Annotated[str, typer.Option(help="What changing a column costs, if not 1: age=5,phone=0")]
Decider = Annotated[str | None, typer.Option("--model", help="A model of your own: FILE.onnx, or http://…/score")]
Budget = Annotated[int | None, typer.Option(min=1, help="Ask the model about at most so many rows")]
Wanted = Annotated[
    str | None,
    typer.Option(help="The wanted label (default: the favourable one), or 'at least 620', '+500', 'not bad'"),
]
Language = Annotated[str, typer.Option(help="The language of a page: en, de, or with a region, de-CH")]
Whom = Annotated[Literal["applicant", "analyst"], typer.Option(help="Who reads a page; an analyst may see more")]
RealTable = Annotated[Path | None, typer.Option("--table", help="The table that was learned")]
Robust = Annotated[
    int, typer.Option(min=0, help="Answers that nearly all of so many models accept that are trained again on --table")
]
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same result")]

STOPPED = (130, 143)  # the exit codes after Ctrl-C (typer's) and after a request to end (SIGTERM)
PAGE = ".html"
MEASURED = 1_000  # rows of a report that are measured unasked: seconds, where 10,000 take minutes
SHOWN = 20  # problems of evidence that are printed
PAGE_ROWS = 10_000  # at most, on a page
RESULTS = Path("results")
PICTURES = RESULTS / "figures"


def main() -> None:
    """Run a command; a wrong input, or a file that cannot be read or written, ends it with one line and exit code 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED[1]))
    code, words = _run()
    if words:
        print(f"tdce: {words}", file=sys.stderr)
    sys.exit(code)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="A folder for the rows, the page and the fitted explainer")] = Path("demo"),
) -> None:
    """Show everything on the embedded data: fit, explain five refused applicants, write a page."""
    from tdce.demo import run

    run(out, Console(), _progress())


@app.command()
def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(help="Where to write the fitted explainer, NAME.tdce")],
    label: Annotated[str | None, typer.Option(help="The column that the model predicts")] = None,
    favourable: Annotated[str | None, typer.Option(help="The label that people hope for, or 'at least 620'")] = None,
    model: Decider = None,
    immutable: Immutable = "",
    learn: Learn = "",
    categorical: Codes = "",
    schema: Annotated[Path | None, typer.Option(help="A schema written by `tdce schema`, perhaps edited")] = None,
    seed: SeedOption = 0,
    sep: Sep = ",",
    decimal: Decimal = ".",
    keep_rows: Annotated[bool, typer.Option("--keep-rows", help="Keep the training rows in NAME.tdce")] = False,
) -> None:
    """Learn a table: a classifier of its label (or, with --model, none) and a diffusion model of its rows."""
    check_writable(out, endings=None)
    if label is None and model is None:
        raise InputError("--label names the column that is predicted; without one, give a model: --model FILE.onnx")
    dialect = Dialect(sep, decimal)
    given = None if schema is None else _read_schema(schema)
    frame = read_table(table, given, dialect)
    explainer = tdce.Explainer(model=model, seed=seed, keep_rows=keep_rows, progress=_progress())
    frozen, learned, codes = (_names(text, frame.columns) for text in (immutable, learn, categorical))
    explainer.fit(frame, label, favourable, given, frozen, learned, codes)
    explainer.save(out)
    report, right = explainer.report, ""
    if report["accuracy"] is not None:
        right = (
            f" The {'classifier' if model is None else 'model'} is right on {100 * report['accuracy']:.1f} % of "
            f"{report['test_rows']:,} {'unseen rows' if model is None else 'rows'} (always predicting the most common "
            f"class: {100 * report['commonest_class']:.1f} %)."
        )
    Console().print(
        f"{report['rows']:,} rows learned in {report['seconds']:.0f} s.{right}"
        f"{_laws_found(explainer.schema, out)} Written: {out}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


@app.command()
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
    target: Wanted = None,
    n: Options = 1,
    immutable: Immutable = "",
    rule: Rules = None,
    costs: Costs = "",
    seed: SeedOption = 0,
    closeness: Closeness = None,
    threshold: Threshold = None,
    model: Decider = None,
    max_model_rows: Budget = None,
    robust: Robust = 0,
    table: RealTable = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say how often the model was asked")] = False,
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
    _check_table(table, {"--robust": robust})
    if table is not None and not robust:
        raise InputError("--table is for models that are trained again; say how many: --robust 10")
    messages(language)  # an unknown one is named before the work
    from tdce.blocks import Asked, Check, explain_block
    from tdce.overnight import Keeping, Run, explain_table
    from tdce.streams import Stream, files_of

    progress, dialect = Progress(_progress()), Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress.mode if page else "silent", model=model)
    names = explainer.schema.names
    asked = Asked(
        target, n, tuple(_names(immutable, names)), tuple(rule or ()), _costs(costs, names), seed, closeness, threshold
    )
    if engine == "ray":
        require_engine("ray")
        if page:
            raise InputError("--engine ray writes tables, not a page; name a file that ends with .csv, for instance")
        if max_model_rows is not None:
            raise InputError(
                "--max-model-rows needs to know the number of rows, which --engine ray does not count first"
            )
    committee = _retrained(explainer, robust, table, dialect)
    retraining = None if committee is None or table is None else f"{robust} on {sha256(table.read_bytes()).hexdigest()}"
    keeping = None if evidence is None else Keeping(evidence, sign, secret)
    run = Run(artefact, out, asked, dialect, model, max_model_rows, workers, part_rows, keeping, retraining)
    if engine == "ray":
        from tdce.ray import explain_parquet

        _print_total(explain_parquet(run, rows, progress, committee), False, out, evidence)
        return
    stream = Stream(files_of(Path(rows)), explainer.schema, dialect)
    stream.survey(Check(explainer, asked, progress.now_and_then("checked {:,} rows")))
    if page:
        if stream.rows > PAGE_ROWS:
            raise InputError(f"{stream.rows:,} rows are too many for a page, which has at most {PAGE_ROWS:,}; name a "
                             "file that ends with .csv or .parquet, or explain some of the rows")  # fmt: skip
        frame = next(stream.blocks(size=stream.rows))[1]
        answer = explain_block(explainer, frame, asked, max_model_rows, committee)
        answer.to_html(out, language=language, audience=audience)
        if evidence is not None:
            answer.to_evidence(evidence, sign=sign, secret=secret)
        total = Entry(1, 0, stream.rows, answer.counts(), answer.model_calls, answer.model_rows)
    else:
        total = explain_table(run, explainer, stream, progress, committee)
    _print_total(total, verbose, out, evidence)


@app.command()
def report(
    artefact: ModelPath,
    rows: RowsPath,
    out: Annotated[Path, typer.Option(help="Where to write the page, FILE.html")],
    table: Annotated[
        Path | None, typer.Option(help="Real people to show everybody beside, and to measure with")
    ] = None,
    target: Wanted = None,
    n: Options = 1,
    immutable: Immutable = "",
    rule: Rules = None,
    costs: Costs = "",
    seed: SeedOption = 0,
    closeness: Closeness = None,
    threshold: Threshold = None,
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
    from tdce.evaluation import evaluate as measured

    check_writable(out, (PAGE,))
    messages(language)
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=_progress(), model=model)
    frame = read_table(rows, explainer.schema, dialect)
    real = None if table is None else read_table(table, explainer.schema, dialect)
    names = explainer.schema.names
    answer = explainer.explain(
        frame, target, n, _names(immutable, names), rule or (), _costs(costs, names), seed, closeness, threshold
    )  # fmt: skip
    found, left_out = {}, ""
    if metrics or (metrics is None and len(frame) <= MEASURED):
        try:
            found = measured(explainer, answer, real)
        except InputError as error:
            if metrics:
                raise
            left_out = f" Metrics are left out: {error}."
    answer.to_html(
        out, title, language, audience, metrics=found, population=None if real is None else explainer.population(real)
    )
    Console().print(
        f"{_summary(len(frame), answer.counts())}{left_out} Written: {out} (open it in a browser)",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


@app.command()
def evaluate(
    artefact: ModelPath,
    rows: RowsPath,
    table: Annotated[Path | None, typer.Option(help="The table that was learned, to measure against its rows")] = None,
    target: Wanted = None,
    n: Options = 1,
    immutable: Immutable = "",
    rule: Rules = None,
    costs: Costs = "",
    seed: SeedOption = 0,
    closeness: Closeness = None,
    threshold: Threshold = None,
    model: Decider = None,
    robust: Robust = 0,
    retrain: Annotated[int, typer.Option(min=0, help="Train so many models again on --table: do answers hold?")] = 0,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")] = False,
) -> None:
    """Measure the explanations of ROWS by the paper's metrics and some more.

    With --table, some of these compare them with rows of it that were held out from training. Without, and if NAME.tdce
    holds no training row, they are measured against its synthetic people.
    """
    from tdce.evaluation import evaluate as measured
    from tdce.metrics import MEANING

    _check_table(table, {"--robust": robust, "--retrain": retrain})
    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=_progress(), model=model)
    frame = read_table(rows, explainer.schema, dialect)
    real = None if table is None else read_table(table, explainer.schema, dialect)
    names = explainer.schema.names
    answer = explainer.explain(
        frame, target, n, _names(immutable, names), rule or (), _costs(costs, names), seed, closeness, threshold, None,
        _retrained(explainer, robust, table, dialect),
    )  # fmt: skip
    found = measured(explainer, answer, real, retrain)
    if not found:
        raise InputError(f"there is nothing to measure: all {len(frame)} rows are in the target class already")
    fitted = explainer.fitted
    if real is None and len(fitted.raw) == 0:
        Console(stderr=json).print(
            f"{artefact} holds no training row: measured against its {len(fitted.people):,} synthetic people; "
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
    _console_for_tables().print(shown)
    Console().print(_summary(len(frame), answer.counts()), highlight=False, soft_wrap=True)


@app.command()
def serve(
    artefact: ModelPath,
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine a token and TLS are needed")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free")] = 8484,
    rows: Annotated[Path | None, typer.Option(help="People to pick from (default: synthetic ones)")] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="A name by which clients call this host; may be repeated")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="TDCE_TOKEN", show_envvar=True, help="What clients must know")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate, .pem")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, .pem")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Beyond this machine without TLS")] = False,
    log_values: Annotated[bool, typer.Option("--log-values", help="Log what was asked, with people's values")] = False,
    model: Decider = None,
    threads: Annotated[int, typer.Option(min=1, max=256, help="Threads of one answer")] = 1,
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Open the studio and the HTTP API: pages for people, JSON for programs."""
    require_studio("tdce serve")
    from tdce.studio.serve import serve as answer
    from tdce.studio.setting import Setting

    setting = Setting(host, port, tuple(name or ()), token, tls_cert, tls_key, insecure, log_values)
    explainer = tdce.Explainer.load(artefact, progress="silent", model=model)
    people = None if rows is None else read_table(rows, explainer.schema, Dialect(sep, decimal))

    def ready(address: str) -> None:
        print(f"The studio is at {address} (Ctrl-C stops it)", flush=True)

    answer(explainer, setting, people, threads, ready)


@app.command()
def bench(
    data: Annotated[str, typer.Option(help="Data sets, separated by commas (default: all five)")] = "",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas, as tdce@0.25 (default: all)")] = "",
    masked: Annotated[str, typer.Option(help="Whether one feature is masked: both, yes or no")] = "both",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of unfavourable test rows")] = 1000,
    out: Annotated[Path, typer.Option(help="A folder; what is in it already is not run again")] = RESULTS,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, one thread each")] = 2,
) -> None:
    """Run the paper's experiment and write benchmark.csv, tables.md and environment.json."""
    require_paper("tdce bench", "sklearn")
    from tdce.paper.benchmark import Setting, run

    if masked not in ("both", "yes", "no"):
        raise InputError(f"masked {masked!r} must be both, yes or no")
    kinds = ("no", "yes") if masked == "both" else (masked,)
    setting = Setting(
        _words(data) or Setting.data, _words(methods) or Setting.methods, kinds, seeds, rows, out, workers
    )
    run(setting, Progress(_progress()))
    Console().print(f"Written: {out / 'benchmark.csv'}, {out / 'tables.md'}", highlight=False, soft_wrap=True)


@app.command()
def figures(
    only: Annotated[str, typer.Option(help="Some of pipeline,simplex,kl,correlations,tau,person (default: all)")] = "",
    data: Annotated[str, typer.Option(help="The data set for correlations and tau")] = "lcd",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, for correlations and tau")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of unfavourable test rows")] = 1000,
    out: Annotated[Path, typer.Option(help="A folder for the pictures and their data")] = PICTURES,
    results: Annotated[Path, typer.Option(help="Folder of `tdce bench`: fitted explainers, earlier data")] = RESULTS,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure correlations and tau again (an hour on LCD)")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, one thread each")] = 2,
) -> None:
    """Make the paper's figures: NAME.png, NAME.svg and their data, NAME.csv.

    Earlier measurements for correlations and tau, in the folder itself or in RESULTS/figures, are used again.
    """
    require_paper("tdce figures", "matplotlib", "sklearn")
    from tdce.paper.figures import FIGURES, Work, make

    work = Work(out, data, seeds, rows, results, fresh, workers, Progress(_progress()))
    written = make(_words(only) or tuple(FIGURES), work)
    Console().print(f"Written: {', '.join(map(str, written))}", highlight=False, soft_wrap=True)


@app.command()
def schema(
    table: TablePath,
    label: Annotated[str | None, typer.Option(help="The label column, which is left out")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the schema as JSON, to edit and give to `tdce fit`")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")] = False,
    learn: Learn = "",
    categorical: Codes = "",
    sep: Sep = ",",
    decimal: Decimal = ".",
) -> None:
    """Show how each column of a table (or of a fitted NAME.tdce) is understood."""
    if out is not None:
        check_writable(out, endings=None)
    if table.suffix == ".tdce":
        found, noticed = tdce.Explainer.load(table).schema, list[str]()
    else:
        frame = read_table(table, dialect=Dialect(sep, decimal))
        if label is not None and label not in frame.columns:
            raise InputError(f"there is no label column {label!r}; the table has: {', '.join(map(str, frame.columns))}")
        learned, codes = _names(learn, frame.columns), _names(categorical, frame.columns)
        found = Schema.infer(frame, label, learn=learned, categorical=codes)
        noticed = hints(frame, found, label, carried(frame, label, {*learned, *codes}))
    if out is not None:
        write_whole(out, found.to_json().encode())
        Console().print(f"Written: {out}", highlight=False, soft_wrap=True)
        _print_hints(noticed)
    elif json:
        print(found.to_json(), end="")
    else:
        _print_schema(found)
        _print_hints(noticed)


@app.command()
def verify(
    evidence: Annotated[Path, typer.Argument(metavar="FILE", help="Written by `tdce explain --evidence`")],
    artefact: Annotated[Path | None, typer.Option(metavar="NAME.tdce", help="The explainer that answered")] = None,
    rows: Annotated[Path | None, typer.Option(help="The rows as they were asked about: ask again, and compare")] = None,
    table: Annotated[
        Path | None, typer.Option(help="What --robust was given as --table: train these models again")
    ] = None,
    public_key: Annotated[Path | None, typer.Option(help="The key of who must have signed it")] = None,
    secret: Annotated[Path | None, typer.Option(help="The secret, if it holds no values")] = None,
    record_only: Annotated[bool, typer.Option("--record-only", help="Check chain, form and signature alone")] = False,
    model: Decider = None,
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with all problems")] = False,
) -> None:
    """Check evidence: is the record whole, does the model still say so, are answers the same again (with --rows).

    Exit code 0 only if all of it holds, 1 if something does not.
    """
    if record_only and (artefact or rows or secret):
        raise InputError("--record-only checks neither verdicts nor values; leave --artefact, --rows and --secret out")
    if not record_only and artefact is None:
        raise InputError("--artefact names the explainer that answered; --record-only checks the record without it")
    if table is not None and rows is None:
        raise InputError("--table is for asking again, which also takes the rows that were asked about: --rows FILE")
    explainer = None if artefact is None else tdce.Explainer.load(artefact, progress="silent", model=model)
    frame, real = (
        None if path is None or explainer is None else read_table(path, explainer.schema, Dialect(sep, decimal))
        for path in (rows, table)
    )
    found = tdce.verify(evidence, explainer, frame, table=real, public_key=public_key, secret=secret)
    if json:
        print(dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        _print_verified(found, evidence, public_key is not None)
    if not found.holds:
        raise typer.Exit(1)


@app.command()
def keys(
    name: Annotated[Path, typer.Argument(metavar="NAME", help="Of the files: NAME.key, NAME.pub and NAME.secret")],
) -> None:
    """Make keys for evidence: NAME.key signs it, NAME.pub checks it, NAME.secret hides its values."""
    from tdce.evidence.keys import make

    key, pub, secret = make(name)
    Console().print(
        f"Written: {key} (signs: keep it to yourself), {pub} (checks: give it to whoever checks), {secret} (hides "
        "values: whoever has it can find out whose hash is whose).",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


@app.command()
def data() -> None:
    """List the data sets: where each comes from, and whether it is present."""
    table = Table("name", "rows", "columns", "source", "licence", "where", box=None, pad_edge=False)
    for entry in catalogue():
        style = "" if entry.present else "dim"
        cells = (entry.name, f"{entry.rows:,}", entry.columns, entry.source, entry.licence, entry.where)
        table.add_row(*(Text(cell) for cell in cells), style=style)
    _console_for_tables().print(table)


@app.command()
def check(
    model: Annotated[Path | None, typer.Argument(metavar="[NAME.tdce]", help="A fitted explainer")] = None,
) -> None:
    """Check that a row's bits do not depend on its batch on this machine: in NAME.tdce, or in usual sizes."""
    from tdce.machine import description, trials, usual_widths, widths_of

    fitted = None if model is None else tdce.Explainer.load(model).fitted_
    widths = (
        usual_widths()
        if fitted is None
        else widths_of([m for m in (fitted.classifier, fitted.diffusion) if m is not None])
    )
    table = Table("inner width", "outer width", "numbers", "way", box=None, pad_edge=False)
    found = trials(widths)
    for trial in found:
        table.add_row(
            str(trial.inner), str(trial.outer), trial.numbers, "padded" if trial.independent else "exact (slower)"
        )
    _console_for_tables().print(table)
    apart = sum(trial.independent for trial in found)
    Console().print(
        f"{description()}: in {apart} of {len(found)} padded shapes a row has the same bits at every position; the "
        "others are computed the exact way, in which it always has.",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _run() -> tuple[Any, str]:
    """The command's exit code, and its last message."""
    try:
        try:
            app()
        finally:
            _flush()
    except InputError as error:
        return 2, str(error)
    except BrokenPipeError:  # the reader has gone, as in `tdce data | head -1`
        return 1, ""
    except (FloatingPointError, ChildProcessError) as error:
        return 1, str(error)
    except OSError as error:
        return 2, f"{error.filename or 'standard output'}: {error.strerror}"
    except SystemExit as end:
        return end.code, "stopped; nothing is half-written" if end.code in STOPPED else ""
    return 0, ""


def _flush() -> None:
    """Write out what was printed while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is left is lost: Python must not try again
        if isinstance(error, BrokenPipeError):
            raise
        raise InputError(f"standard output cannot be written: {error.strerror}") from None


def _check_evidence(evidence: Path | None, out: Path, sign: Path | None, secret: Path | None) -> None:
    """Before the work: whether the evidence can be written, and its keys be read."""
    from tdce.evidence import keys

    if evidence is None:
        if sign is not None or secret is not None:
            raise InputError("--sign and --secret are about evidence; name its file too: --evidence FILE")
        return
    check_writable(evidence, endings=None)
    if evidence.absolute() == out.absolute():
        raise InputError(f"--out and --evidence are both {out}; name two files")
    if sign is not None:
        keys.signer(sign)
    if secret is not None:
        keys.secret(secret)


def _print_verified(found: Verified, evidence: Path, known: bool) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, words in found.summary(known):
        table.add_row(name, Text(words))
    console = _console_for_tables()
    well = "all is well" if found.verdicts is not None else "what was checked holds"
    console.print(Text(f"{evidence}: {well if found.holds else 'something does not hold'}"))
    console.print(table)
    for problem in found.problems[:SHOWN]:
        console.print(Text(f"     {problem}"), soft_wrap=True)
    if found.count > SHOWN:
        console.print(f"     … and {found.count - SHOWN:,} more; --json has them", highlight=False)


def _laws_found(schema: Schema, out: Path) -> str:
    count = len(schema.laws)
    return f" {count} law{'s' * (count > 1)} found between its columns: `tdce schema {out}`." if count else ""


def _print_schema(schema: Schema) -> None:
    table = Table("column", "kind", "values", "may change", box=None, pad_edge=False)
    for row in schema.describe():
        table.add_row(*(Text(cell) for cell in row))
    console = _console_for_tables()
    console.print(table)
    if schema.laws:
        console.print("\nLaws, which every answer keeps (those with exceptions: if it can):")
    for number, sentence in enumerate(schema.sentences()):
        console.print(Text(f"{number:3}  {sentence}"), soft_wrap=True)


def _print_hints(hints: list[str]) -> None:
    console = Console()
    if hints:
        console.print("\nHints, each with the way out:")
    for hint in hints:
        console.print(Text(f"     {hint}"), soft_wrap=True)


def _console_for_tables() -> Console:
    """As wide as the terminal; in a file or a pipe wide enough that nothing is cut."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def _retrained(explainer: Explainer, models: int, table: Path | None, dialect: Dialect) -> Any:
    """The committee that is to accept the answers as well; None: none is asked for."""
    if models == 0 or table is None:
        return None
    return explainer.retrain(read_table(table, explainer.schema, dialect), models)


def _check_table(table: Path | None, models: Mapping[str, int]) -> None:
    """Before the work: whether there is what models are trained on again."""
    for option, count in models.items():
        if count and table is None:
            raise InputError(f"{option} trains models again, which takes the table that was learned: --table FILE")


def _print_total(total: Entry, verbose: bool, out: Path, evidence: Path | None = None) -> None:
    asked = f" The model was asked {total.calls:,} times about {total.asked:,} rows." if verbose else ""
    written = out if evidence is None else f"{out}, {evidence}"
    Console().print(f"{_summary(total.rows, total.counts)}{asked} Written: {written}", highlight=False, soft_wrap=True)


def _summary(rows: int, counts: Mapping[str, int]) -> str:
    words = {"valid": "valid", "best_effort": "best effort", "already": "already there", "infeasible": "infeasible"}
    said = ", ".join(f"{count:,} {words[status]}" for status, count in counts.items())
    return f"{rows:,} rows, {sum(counts.values()):,} lines: {said}."


def _progress() -> Mode:
    return "bar" if sys.stderr.isatty() else "lines"


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _names(text: str, known: Any) -> list[Any]:
    """`a,b` -> names; a single name may itself have a comma, a whole number names a numbered column."""
    if not text:
        return []
    columns = {str(name): name for name in known}
    if text in columns:
        return [columns[text]]
    return [columns.get(name.strip(), name.strip()) for name in text.split(",") if name.strip()]


def _costs(text: str, known: Any) -> dict[Any, float]:
    """`a=5,b=0` -> a mapping."""
    found = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, cost = part.rpartition("=")
        try:
            found[_names(name.strip(), known)[0]] = float(cost)
        except (ValueError, IndexError):
            raise InputError(f"cost {part!r} must be a column, = and a number, such as age=5") from None
    return found


def _read_schema(path: Path) -> Schema:
    try:
        return Schema.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise InputError(f"the schema {path} cannot be read: {error}") from None
