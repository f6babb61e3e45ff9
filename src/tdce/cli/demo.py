"""`tdce demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tdce.cli.shared import progress_mode


def demo(
    out: Annotated[Path, typer.Option(help="A folder for the rows, the page and the fitted explainer")] = Path("demo"),
) -> None:
    """Show everything on the embedded data: fit, explain five refused applicants, write a page."""
    from tdce.demo import run

    run(out, Console(), progress_mode())
