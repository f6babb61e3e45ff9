"""Escape text that a spreadsheet would run as a formula, by an apostrophe before it."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # also full-width, which some versions accept
PLAIN_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")  # -5 is a number, not a formula


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy in which no text and no column name begins like a formula; numbers are unchanged."""
    safe = frame.rename(columns={name: escape_formula(name) for name in frame.columns})
    for i, dtype in enumerate(safe.dtypes):
        if not is_numeric_dtype(dtype) and not is_bool_dtype(dtype):
            cells = safe.iloc[:, i].astype(object)
            safe.isetitem(i, cells.map(escape_formula, na_action="ignore").array)
    return safe


def escape_formula(cell: Any) -> Any:
    """The cell, with an apostrophe before text that begins like a formula."""
    if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) and not PLAIN_NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
