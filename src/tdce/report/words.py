"""A line of an answer in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from tdce.answer import Line


def sentence(line: Line) -> str:
    """`The answer would be “good” with duration from 48 to 24 (31 % to 62 %).`"""
    parts = [_phrase(*change) for change in line.changes]
    before, after = f"{100 * line.before:.0f} %", f"{100 * line.after:.0f} %"
    if line.status == "already":
        return f"The answer is already “{line.target}” ({before})."
    if line.status == "infeasible":
        return f"Nothing can change: {line.note}."
    if line.status == "valid":
        return f"The answer would be “{line.target}” with {_join(parts)} ({before} to {after})."
    if not parts:
        return f"No change was found that brings the answer nearer to “{line.target}” ({before})."
    return f"The answer would be nearer to “{line.target}”, but not there, with {_join(parts)} ({before} to {after})."


def spoken(name: Any) -> str:
    """A column's name as words."""
    return str(name).replace("_", " ")


def value(cell: Any) -> str:
    """A cell as people write it: thousands apart, no needless decimals."""
    if pd.isna(cell):
        return "not known"
    if isinstance(cell, str | bool) or not hasattr(cell, "__float__"):
        return str(cell)
    number = float(cell)
    return f"{int(number):,}" if number.is_integer() else f"{number:,.10g}"


def _phrase(feature: Any, before: Any, after: Any) -> str:
    quote = "“{}”" if isinstance(after, str) else "{}"
    if pd.isna(before):
        return f"{spoken(feature)}, not known so far, being {quote.format(value(after))}"
    return f"{spoken(feature)} {quote.format(value(after))} instead of {quote.format(value(before))}"


def _join(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
