"""`tdce data`."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tdce.cli.shared import wide_console
from tdce.datasets import catalogue


def data() -> None:
    """List the data sets: where each comes from, and whether it is present."""
    table = Table("name", "rows", "columns", "source", "licence", "where", box=None, pad_edge=False)
    for entry in catalogue():
        style = "" if entry.present else "dim"
        cells = (entry.name, f"{entry.rows:,}", entry.columns, entry.source, entry.licence, entry.where)
        table.add_row(*(Text(cell) for cell in cells), style=style)
    wide_console().print(table)
