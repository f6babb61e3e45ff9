"""The lines of an answer as a table on the terminal."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from tdce.cli.shared import print_table

if TYPE_CHECKING:
    from rich.text import Text

    from tdce.explainer import Answer
    from tdce.methods import Line

STYLES = {"valid": "green", "best_effort": "yellow", "already": "dim", "infeasible": "red"}


def print_lines(answer: Answer) -> None:
    """Print one line per row and option with status, score, plausibility and safety, each change on its own line."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    numbers = any(line.number for options in answer.lines for line in options)
    titles = ["row", "option", "status", "prediction" if numbers else "score", "plausibility", "safety", "changes"]
    for title in titles:
        if title != "option" or answer.options > 1:
            table.add_column(title, no_wrap=title != "changes")
    for label, options in zip(answer.rows.index, answer.lines, strict=True):
        for option, line in enumerate(options):
            cells = [Text(str(label)), Text(str(option))][: 1 + (answer.options > 1)]
            cells += [
                Text(line.status, STYLES[line.status]),
                Text(f"{_score(line.before, line)} -> {_score(line.after, line)}"),
                *(Text("" if isnan(each) else f"{each:.2f}") for each in (line.plausibility, line.safety)),
                _changes(line),
            ]
            table.add_row(*cells)
    print_table(table)


def _changes(line: Line) -> Text:
    from rich.text import Text

    changes = [f"{name}: {_value(before)} -> {_value(after)}" for name, before, after in line.changes]
    text = Text("\n".join(changes))
    if line.note and line.status != "valid":
        text.append(f"{chr(10) if changes else ''}{line.note}", "dim")
    return text


def _score(score: float, line: Line) -> str:
    return f"{score:.6g}" if line.number else f"{score:.2f}"


def _value(value: Any) -> str:
    from pandas import isna

    if isna(value):
        return "missing"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
