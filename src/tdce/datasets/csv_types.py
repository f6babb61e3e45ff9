"""The types of CSV columns, determined by all cells of a column, however many parts it is read in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import NUMBER_TEXT, ZERO_PADDED, Positions
from tdce.schema import Categorical, Column, Numeric

MISSING_NUMBERS = {"", "na", "n/a", "nan", "null", "none"}  # cells that are missing in a numeric column
COMMA_FOR_POINT = str.maketrans(",.", ".,")  # both ways, so that 1.234,5 is not a number
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
SHORT_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # most whole numbers, as a quick test


class CsvColumn:
    """The type of a column: whole numbers or numbers, if every cell is one; the feature's categories, if these are text
    or flags; otherwise text. In a numeric feature, cells that are not numbers stay text, so that `Column.read` can
    report them.

    Call `see` on every part first; then `parse` gives each part the dtype of the whole column. Both process each
    distinct cell once, because there are few."""

    def __init__(self, feature: Column | None, decimal: str = ".") -> None:
        self.feature, self.decimal = feature, decimal
        self.categories: dict[str, Any] | None = None
        if isinstance(feature, Categorical) and any(isinstance(c, str | bool) for c in feature.categories):
            self.categories = {str(c): c for c in feature.categories}
        self.examples: dict[type, Any] = {}  # one cell of each type, in a column with categories
        self.numbers = self.odd = self.decimals = self.long = False  # whether any cell is a number, is not one, …

    def see(self, column: pd.Series[Any]) -> None:
        """Record what a part of the column holds."""
        at, cells = _distinct_cells(column)
        if self.categories is not None:
            known = [self.categories.get(cell, cell) for cell in cells] + [np.nan] * bool((at < 0).any())
            self.examples |= {type(cell): cell for cell in known}
            return
        for cell in filter(None, map(self._numeral, cells)):
            self.numbers = True
            if SHORT_NUMBER.fullmatch(cell):
                continue
            if not _is_number(cell):
                self.odd = True
            elif not WHOLE_NUMBER.fullmatch(cell):
                self.decimals = True
            elif not -(2**63) <= int(cell) < 2**63:
                self.long = True

    def add(self, other: CsvColumn) -> None:
        """Merge what another object has seen of the same column."""
        self.examples |= other.examples
        for each in ("numbers", "odd", "decimals", "long"):
            setattr(self, each, getattr(self, each) or getattr(other, each))

    def parse(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Convert a part of the column to the dtype of the whole."""
        if self.categories is not None:
            return self._parse_categories(column, self.categories)
        if self.odd and self.feature is not None:
            return self._parse_odd_cells(column)
        whole = not self.decimals
        if whole and self.long:
            whole = not isinstance(self.feature, Numeric)
        if self.odd or not self.numbers or (whole and self.long):  # a float would truncate a long identifier
            return column
        at, cells = _distinct_cells(column)
        numerals = [*map(self._numeral, cells), None]  # the last entry is for -1, missing
        missing = np.array([each is None for each in numerals])
        number = int if whole else float  # exact, unlike pandas before 3
        values = np.array([0 if each is None else number(each) for each in numerals], dtype="i8" if whole else "f8")
        parsed = (pd.arrays.IntegerArray if whole else pd.arrays.FloatingArray)(values[at], missing[at])
        return pd.Series(parsed, index=column.index, name=column.name)

    def _numeral(self, cell: str) -> str | None:
        """The cell with a decimal point, as in a numeric column; None if missing."""
        cell = cell.strip()
        if cell.lower() in MISSING_NUMBERS:
            return None
        return cell.translate(COMMA_FOR_POINT) if self.decimal == "," else cell

    def _parse_categories(self, column: pd.Series[Any], categories: Mapping[str, Any]) -> pd.Series[Any]:
        at, cells = _distinct_cells(column)
        known = [categories.get(cell, cell) for cell in cells] + [np.nan] * bool((at < 0).any())
        dtype = pd.Series(list(self.examples.values()), dtype=object).infer_objects().dtype
        parsed = pd.Series(known, dtype=object).astype(dtype).array.take(at % max(len(known), 1))
        return pd.Series(parsed, index=column.index, name=column.name)

    def _parse_odd_cells(self, column: pd.Series[Any]) -> pd.Series[Any]:
        at, cells = _distinct_cells(column)
        parsed = np.full(len(cells) + 1, np.nan, dtype=object)  # the last entry is for -1, missing
        for i, cell in enumerate(cells):
            numeral = self._numeral(cell)
            if numeral is not None:
                parsed[i] = float(numeral) if _is_number(numeral) else cell
        return pd.Series(parsed[at], index=column.index, name=column.name, dtype=object)


def _distinct_cells(column: pd.Series[Any]) -> tuple[Positions, list[str]]:
    """(n,) each cell's position among the distinct cells, -1 if missing; and the distinct cells."""
    at, cells = pd.factorize(column)
    return at, cells.tolist()


def _is_number(cell: str) -> bool:
    return bool(NUMBER_TEXT.fullmatch(cell)) and not ZERO_PADDED.match(cell)
