"""`tdce check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import tdce
from tdce.cli.shared import wide_console


def check(
    model: Annotated[Path | None, typer.Argument(metavar="[NAME.tdce]", help="A fitted explainer")] = None,
) -> None:
    """Check that a row's bits do not depend on its batch on this machine: in NAME.tdce, or in usual sizes."""
    from tdce._core import default_layer_shapes, describe_machine, layer_shapes, run_trials

    fitted = None if model is None else tdce.Explainer.load(model).fitted_
    shapes = (
        default_layer_shapes()
        if fitted is None
        else layer_shapes([m for m in (fitted.classifier, fitted.diffusion) if m is not None])
    )
    table = Table("inner width", "outer width", "numbers", "way", box=None, pad_edge=False)
    found = run_trials(shapes)
    for trial in found:
        table.add_row(
            str(trial.inner), str(trial.outer), trial.numbers, "padded" if trial.independent else "exact (slower)"
        )
    wide_console().print(table)
    apart = sum(trial.independent for trial in found)
    Console().print(
        f"{describe_machine()}: in {apart} of {len(found)} padded shapes a row has the same bits at every position; "
        "the others are computed the exact way, in which it always has.",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
