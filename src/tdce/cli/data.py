"""`tdce data`."""

from __future__ import annotations

from tdce.cli.shared import print_table


def data() -> None:
    """List the data sets, and whether each is present."""
    from rich.table import Table
    from rich.text import Text

    from tdce.datasets import catalogue

    table = Table("name", "rows", "columns", "source", "licence", "where", box=None, pad_edge=False)
    for entry in catalogue():
        style = "" if entry.present else "dim"
        cells = (entry.name, f"{entry.rows:,}", entry.columns, entry.source, entry.licence, entry.where)
        table.add_row(*(Text(cell) for cell in cells), style=style)
    print_table(table)
