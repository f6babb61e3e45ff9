"""`tdce bench` and `tdce figures`: the paper's experiment and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tdce._core import InputError, Progress, require_extra
from tdce.cli.shared import progress_mode, words_of

RESULTS = Path("results")
PICTURES = RESULTS / "figures"


def bench(
    data: Annotated[str, typer.Option(help="Data sets, separated by commas (default: all five)")] = "",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas, as search@0.25 (default: all)")] = "",
    masked: Annotated[str, typer.Option(help="Whether one feature is masked: both, yes or no")] = "both",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of unfavourable test rows")] = 1000,
    out: Annotated[Path, typer.Option(help="A folder; what is in it already is not run again")] = RESULTS,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, one thread each")] = 2,
) -> None:
    """Run the paper's experiment and write benchmark.csv, tables.md and environment.json."""
    require_extra("tdce bench", "paper", "sklearn")
    from tdce_reproduction.benchmark.run import BenchmarkSettings, run

    if masked not in ("both", "yes", "no"):
        raise InputError(f"masked {masked!r} must be both, yes or no")
    kinds = ("no", "yes") if masked == "both" else (masked,)
    setting = BenchmarkSettings(
        words_of(data) or BenchmarkSettings.data,
        words_of(methods) or BenchmarkSettings.methods,
        kinds,
        seeds,
        rows,
        out,
        workers,
    )
    run(setting, Progress(progress_mode()))
    Console().print(f"Written: {out / 'benchmark.csv'}, {out / 'tables.md'}", highlight=False, soft_wrap=True)


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
    require_extra("tdce figures", "paper", "matplotlib", "sklearn")
    from tdce_reproduction.figures import FIGURES, make
    from tdce_reproduction.figures.work import Work

    work = Work(out, data, seeds, rows, results, fresh, workers, Progress(progress_mode()))
    written = make(words_of(only) or tuple(FIGURES), work)
    Console().print(f"Written: {', '.join(map(str, written))}", highlight=False, soft_wrap=True)
