"""A line of an answer in plain words."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from tdce.explanation import Line, Status


def sentence(line: Line) -> str:
    """`The answer would be “good” (31 % to 62 %): duration months 24 instead of 48.`"""
    parts = "; ".join(bullet(*change) for change in line.changes)
    return f"{headline(line)}: {parts}." if parts else f"{headline(line)}."


def headline(line: Line) -> str:
    """What becomes of the answer, with the model's probability of the wanted one, or its number."""
    before, after = score(line.before, line.number), score(line.after, line.number)
    if line.status == Status.ALREADY:
        return f"the answer is already “{line.target}” ({before})"
    if line.status == Status.INFEASIBLE:
        return f"nothing can change ({line.note})"
    if line.status == Status.VALID:
        return f"the answer would be “{line.target}” ({before} to {after})"
    if not line.changes:
        return f"no change was found that brings the answer nearer to “{line.target}” ({before})"
    return f"still not “{line.target}”, but nearer ({before} to {after})"


def score(number: float, predicted: bool) -> str:
    """A probability in percent, or a predicted number."""
    if not predicted:
        return f"{100 * number:.0f} %"
    return f"{number:,.0f}" if abs(number) >= 1e4 else f"{number:.4g}"


def bullet(feature: Any, before: Any, after: Any) -> str:
    """`duration months 24 instead of 48`"""
    if pd.isna(before):
        return f"{spoken(feature)} {_quoted(after)}, not known so far"
    return f"{spoken(feature)} {_quoted(after)} instead of {_quoted(before)}"


def typical(plausibility: float) -> str:
    """`more typical than 37 % of real people with the wanted outcome`; nothing if it is not known"""
    if math.isnan(plausibility):
        return ""
    share = (
        f"more typical than {min(100 * plausibility, 99):.0f} %" if plausibility >= 0.01 else "less typical than 99 %"
    )
    return f"{share} of real people with the wanted outcome"


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
    return f"{int(number):,}" if number.is_integer() and abs(number) < 1e15 else f"{number:,.10g}"


def _quoted(cell: Any) -> str:
    return f"“{cell}”" if isinstance(cell, str) else value(cell)
