"""`tdce bench` and `tdce figures`: reproduce the paper's experiment and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tdce._core import InputError, require_extra
from tdce.cli.shared import progress_mode, words_of

RESULTS = Path("results")
FIGURES_FOLDER = RESULTS / "figures"


def bench(
    data: Annotated[str, typer.Option(help="Data sets, separated by commas (default: all)")] = "",
    methods: Annotated[
        str,
        typer.Option(
            help="Methods, separated by commas (default: all); search@0.25 sets the closeness, search@0.25@0 also the "
            "wanted safety, wachter+ adds refinement"
        ),
    ] = "",
    masked: Annotated[str, typer.Option(help="Make one feature immutable: yes, no or both")] = "both",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of refused test rows to explain")] = 1000,
    out: Annotated[Path, typer.Option(help="Output folder; results in it that are up to date are reused")] = RESULTS,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, each with one thread")] = 2,
) -> None:
    """Run the paper's experiment.

    Writes benchmark.csv, tables.md and environment.json. A run that was stopped continues where it was:
    start it again with the same --out.
    """
    require_extra("tdce bench", "paper", "sklearn")
    from tdce._core import Progress
    from tdce_reproduction.benchmark.run import BenchmarkSettings, run

    if masked not in ("both", "yes", "no"):
        raise InputError(f"--masked is {masked!r}; it must be yes, no or both")
    settings = BenchmarkSettings(
        words_of(data) or BenchmarkSettings.data,
        words_of(methods) or BenchmarkSettings.methods,
        ("no", "yes") if masked == "both" else (masked,),
        seeds,
        rows,
        out,
        workers,
    )
    run(settings, Progress(progress_mode()))
    print(f"Written: {out / 'benchmark.csv'}, {out / 'tables.md'}")


def figures(
    only: Annotated[
        str,
        typer.Option(
            help="Figures, separated by commas: pipeline,simplex,kl,correlations,tau,person,frontier (default: all)"
        ),
    ] = "",
    data: Annotated[str, typer.Option(help="Data set for correlations and tau")] = "lcd",
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds for correlations and tau")] = 5,
    rows: Annotated[int, typer.Option(min=1, help="Maximum number of refused test rows to explain")] = 1000,
    out: Annotated[Path, typer.Option(help="Output folder for the figures and their data")] = FIGURES_FOLDER,
    results: Annotated[
        Path, typer.Option(help="Folder of `tdce bench`, with fitted explainers and earlier data")
    ] = RESULTS,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure correlations and tau again (takes an hour on lcd)")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes, each with one thread")] = 2,
) -> None:
    """Make the paper's figures.

    Writes NAME.png, NAME.svg and their data, NAME.csv. Data of correlations and tau that are in --out or in
    the folder figures of --results are reused.
    """
    require_extra("tdce figures", "paper", "matplotlib", "sklearn")
    from tdce._core import Progress
    from tdce_reproduction.figures import FIGURES, make_figures
    from tdce_reproduction.figures.workspace import Workspace

    workspace = Workspace(out, data, seeds, rows, results, fresh, workers, Progress(progress_mode()))
    written = make_figures(words_of(only) or tuple(FIGURES), workspace)
    print(f"Written: {', '.join(map(str, written))}")
