"""Small tables for notebooks, in the notebook's colours, light or dark; cells are text, never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SHOWN_LINES = 12
LONGEST_CELL = 140  # characters
CELL = "padding:.15em .6em;text-align:left;vertical-align:top;border-bottom:1px solid rgba(127,127,127,.35)"
TABLE = "border-collapse:collapse;margin:.3em 0;color:inherit;background:transparent"


def html_card(
    title: str,
    facts: Iterable[str],
    columns: Sequence[str],
    lines: Sequence[Sequence[Any]],
    more: str = "",
    most: int = SHOWN_LINES,
) -> str:
    """A title, facts and the first lines of a table as HTML; `more` says where the rest is."""
    shown = lines[:most]
    left = len(lines) - len(shown)
    head = "".join(f'<th scope="col" style="{CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{escape(shorten(cell))}</td>' for cell in line) + "</tr>"
        for line in shown
    )
    rest = f"<p>… {left:,} more{escape(f': {more}' if more else '')}</p>" if left else ""
    table = f'<table style="{TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>' if shown else ""
    said = "".join(f"<p style='margin:.2em 0'>{escape(fact)}</p>" for fact in facts if fact)
    head = f'<p style="margin:.2em 0"><b>{escape(title)}</b></p>'
    return f'<div class="tdce" style="font-size:.9em">{head}{said}{table}{rest}</div>'


def shorten(cell: Any) -> str:
    """A cell as text of a bounded length."""
    text = f"{cell:.3g}" if isinstance(cell, float) else str(cell)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
