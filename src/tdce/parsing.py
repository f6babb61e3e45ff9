"""What a column of a CSV file holds, decided over all of its cells, in however many parts they are read."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from tdce.cells import NUMBER, PADDED
from tdce.schema import Categorical, Column, Numeric

NO_NUMBER = {"", "na", "n/a", "nan", "null", "none"}  # in a column of numbers, these cells are missing too
COMMA_FOR_POINT = str.maketrans(",.", ".,")  # both ways: 1.234,5 is not a number
WHOLE = re.compile(r"[+-]?[0-9]+")


class Cells:
    """Text becomes whole numbers or numbers, if every cell is one; the feature's own categories, if it has words. If
    the feature holds numbers, cells that are not numbers stay text, for the reader to name.

    `see` every part first; then `parse` gives each part the dtype that the whole column would have."""

    def __init__(self, feature: Column | None, decimal: str = ".") -> None:
        self.feature, self.decimal = feature, decimal
        self.words: dict[str, Any] | None = None
        if isinstance(feature, Categorical) and any(isinstance(c, str | bool) for c in feature.categories):
            self.words = {str(c): c for c in feature.categories}
        self.examples: dict[type, Any] = {}  # one cell of each type, of a column that is not numeric
        self.numbers = self.odd = self.decimals = self.long = False  # whether some cell is so

    def see(self, column: pd.Series[Any]) -> None:
        if self.words is not None:
            cells = [self.words.get(cell, cell) for cell in column.unique()]
            self.examples |= {type(cell): cell for cell in cells}
            return
        for cell in self._numerals(column).unique():
            if not _is_number(cell):
                self.odd = True
            elif not WHOLE.fullmatch(cell):
                self.decimals = True
            elif not -(2**63) <= int(cell) < 2**63:
                self.long = True
            self.numbers = True

    def parse(self, column: pd.Series[Any]) -> pd.Series[Any]:
        if self.words is not None:
            words = self.words
            mapped = column.astype(object).map(lambda cell: words.get(cell, cell), na_action="ignore")
            return mapped.astype(pd.Series(list(self.examples.values()), dtype=object).infer_objects().dtype)
        if self.odd and self.feature is not None:
            return self._with_odd_cells(column)
        whole = not self.decimals
        if whole and self.long:
            whole = not isinstance(self.feature, Numeric)
        if self.odd or not self.numbers or (whole and self.long):  # a long identifier: a float would cut it short
            return column
        cells = self._numerals(column)
        values = {c: int(c) if whole else float(c) for c in cells.unique()}  # exact, which pandas before 3 is not
        parsed = pd.array([values[c] for c in cells], dtype="Int64" if whole else "Float64")
        return pd.Series(parsed, index=cells.index, name=column.name).reindex(column.index)

    def _numerals(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """What is not missing, in a column of numbers."""
        cells = column.dropna().astype(str).str.strip()
        cells = cells[~cells.str.lower().isin(NO_NUMBER)]
        return cells.str.translate(COMMA_FOR_POINT) if self.decimal == "," else cells

    def _with_odd_cells(self, column: pd.Series[Any]) -> pd.Series[Any]:
        cells = self._numerals(column)
        fits = cells.map(_is_number).astype(bool)
        mixed = column[cells.index].astype(object)
        mixed[fits] = cells[fits].map(float)
        return mixed.reindex(column.index)


def _is_number(cell: str) -> bool:
    return bool(NUMBER.fullmatch(cell)) and not PADDED.match(cell)
