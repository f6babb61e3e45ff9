"""The command line: each command reads files, calls one public function and writes whole files.

What needs torch is imported by the command that needs it, so that the others answer at once.
"""

from __future__ import annotations

import os
import signal
import sys
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
from tdce.errors import InputError, require_paper
from tdce.hints import hints
from tdce.journal import Entry, check_folder
from tdce.progress import Mode, Progress
from tdce.schema import Schema
from tdce.tables import WRITABLE, Dialect, check_writable, read_table, suffix_of, write_whole
from tdce.words.catalogue import catalogue as messages

if TYPE_CHECKING:
    from collections.abc import Mapping

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
SeedOption = Annotated[int, typer.Option(min=0, help="The same seed gives the same result")]

STOPPED = (130, 143)  # the exit codes after Ctrl-C (typer's) and after a request to end (SIGTERM)
PAGE = ".html"
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
    verbose: Annotated[bool, typer.Option("--verbose", help="Say how often the model was asked")] = False,
    language: Language = "en",
    audience: Whom = "applicant",
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
    messages(language)  # an unknown one is named before the work
    from tdce.blocks import Asked, Check, explain_block
    from tdce.overnight import Run, explain_table
    from tdce.streams import Stream, files_of

    progress, dialect = Progress(_progress()), Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=progress.mode if page else "silent", model=model)
    names = explainer.schema.names
    asked = Asked(
        target, n, tuple(_names(immutable, names)), tuple(rule or ()), _costs(costs, names), seed, closeness, threshold
    )
    if engine == "ray":
        if page:
            raise InputError("--engine ray writes tables, not a page; name a file that ends with .csv, for instance")
        if max_model_rows is not None:
            raise InputError(
                "--max-model-rows needs to know the number of rows, which --engine ray does not count first"
            )
        from tdce.ray import explain_parquet

        total = explain_parquet(Run(artefact, out, asked, dialect, model, None, workers, part_rows), rows, progress)
        _print_total(total, verbose=False, out=out)
        return
    stream = Stream(files_of(Path(rows)), explainer.schema, dialect)
    stream.survey(Check(explainer, asked, progress.now_and_then("checked {:,} rows")))
    if page:
        if stream.rows > PAGE_ROWS:
            raise InputError(f"{stream.rows:,} rows are too many for a page, which has at most {PAGE_ROWS:,}; name a "
                             "file that ends with .csv or .parquet, or explain some of the rows")  # fmt: skip
        frame = next(stream.blocks(size=stream.rows))[1]
        answer = explain_block(explainer, frame, asked, max_model_rows)
        answer.to_html(out, language=language, audience=audience)
        total = Entry(1, 0, stream.rows, answer.counts(), answer.model_calls, answer.model_rows)
    else:
        run = Run(artefact, out, asked, dialect, model, max_model_rows, workers, part_rows)
        total = explain_table(run, explainer, stream, progress)
    _print_total(total, verbose, out)


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
    sep: Sep = ",",
    decimal: Decimal = ".",
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")] = False,
) -> None:
    """Measure the explanations of ROWS by the paper's metrics and some more.

    With --table, some of these compare them with rows of it that were held out from training. Without, and if NAME.tdce
    holds no training row, they are measured against its synthetic people.
    """
    from tdce.evaluation import MEANING
    from tdce.evaluation import evaluate as measured

    dialect = Dialect(sep, decimal)
    explainer = tdce.Explainer.load(artefact, progress=_progress(), model=model)
    frame = read_table(rows, explainer.schema, dialect)
    real = None if table is None else read_table(table, explainer.schema, dialect)
    names = explainer.schema.names
    answer = explainer.explain(
        frame, target, n, _names(immutable, names), rule or (), _costs(costs, names), seed, closeness, threshold
    )  # fmt: skip
    found = measured(explainer, answer, real)
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


def _print_total(total: Entry, verbose: bool, out: Path) -> None:
    asked = f" The model was asked {total.calls:,} times about {total.asked:,} rows." if verbose else ""
    Console().print(f"{_summary(total.rows, total.counts)}{asked} Written: {out}", highlight=False, soft_wrap=True)


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
