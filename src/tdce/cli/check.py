"""`tdce check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tdce
from tdce.cli.shared import print_table, say


def check(
    artefact: Annotated[
        Path | None,
        typer.Argument(metavar="NAME.tdce", show_default=False, help="A fitted explainer (default: usual sizes)"),
    ] = None,
) -> None:
    """Check this machine: a row's bits must not depend on its batch."""
    from rich.table import Table

    from tdce._core import default_layer_shapes, describe_machine, layer_shapes, run_trials

    fitted = None if artefact is None else tdce.Explainer.load(artefact).fitted_
    shapes = (
        default_layer_shapes()
        if fitted is None
        else layer_shapes([m for m in (fitted.classifier, fitted.diffusion) if m is not None])
    )
    table = Table("inner width", "outer width", "numbers", "way", box=None, pad_edge=False)
    trials = run_trials(shapes)
    for trial in trials:
        table.add_row(
            str(trial.inner), str(trial.outer), trial.numbers, "padded" if trial.independent else "exact (slower)"
        )
    print_table(table)
    independent = sum(trial.independent for trial in trials)
    say(f"{describe_machine()}: in {independent} of {len(trials)} padded shapes a row has the same bits at every "
        "position; the others are computed the exact way, in which it always has.")  # fmt: skip
