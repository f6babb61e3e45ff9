"""`tdce demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tdce.cli.shared import progress_mode


def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Output folder for the answers, the page and the fitted explainer")
    ] = Path("demo"),
) -> None:
    """Fit, explain, evaluate and report on embedded data."""
    from rich.console import Console

    from tdce.demo import run

    run(out, Console(), progress_mode())
