"""What a column of a CSV file holds, decided over all of its cells, in however many parts they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import NUMBER, PADDED, Positions
from tdce.schema import Categorical, Column, Numeric

NO_NUMBER = {"", "na", "n/a", "nan", "null", "none"}  # in a column of numbers, these cells are missing too
COMMA_FOR_POINT = str.maketrans(",.", ".,")  # both ways: 1.234,5 is not a number
WHOLE = re.compile(r"[+-]?[0-9]+")
SHORT = re.compile(r"-?(0|[1-9][0-9]{0,17})")  # most whole numbers, at one glance


class CsvColumn:
    """Text becomes whole numbers or numbers, if every cell is one; the feature's own categories, if it has words. If
    the feature holds numbers, cells that are not numbers stay text, for the reader to name.

    `see` every part first; then `parse` gives each part the dtype that the whole column would have. Either looks at
    each different cell once: there are few of them."""

    def __init__(self, feature: Column | None, decimal: str = ".") -> None:
        self.feature, self.decimal = feature, decimal
        self.words: dict[str, Any] | None = None
        if isinstance(feature, Categorical) and any(isinstance(c, str | bool) for c in feature.categories):
            self.words = {str(c): c for c in feature.categories}
        self.examples: dict[type, Any] = {}  # one cell of each type, of a column that is not numeric
        self.numbers = self.odd = self.decimals = self.long = False  # whether some cell is so

    def see(self, column: pd.Series[Any]) -> None:
        at, cells = _different(column)
        if self.words is not None:
            found = [self.words.get(cell, cell) for cell in cells] + [np.nan] * bool((at < 0).any())
            self.examples |= {type(cell): cell for cell in found}
            return
        for cell in filter(None, map(self._numeral, cells)):
            self.numbers = True
            if SHORT.fullmatch(cell):
                continue
            if not _is_number(cell):
                self.odd = True
            elif not WHOLE.fullmatch(cell):
                self.decimals = True
            elif not -(2**63) <= int(cell) < 2**63:
                self.long = True

    def add(self, other: CsvColumn) -> None:
        """See what another has seen of the same column."""
        self.examples |= other.examples
        for each in ("numbers", "odd", "decimals", "long"):
            setattr(self, each, getattr(self, each) or getattr(other, each))

    def parse(self, column: pd.Series[Any]) -> pd.Series[Any]:
        if self.words is not None:
            return self._with_words(column, self.words)
        if self.odd and self.feature is not None:
            return self._with_odd_cells(column)
        whole = not self.decimals
        if whole and self.long:
            whole = not isinstance(self.feature, Numeric)
        if self.odd or not self.numbers or (whole and self.long):  # a long identifier: a float would cut it short
            return column
        at, cells = _different(column)
        numerals = [*map(self._numeral, cells), None]  # the last one is for -1, missing
        gone = np.array([each is None for each in numerals])
        number = int if whole else float  # exact, which pandas before 3 is not
        values = np.array([0 if each is None else number(each) for each in numerals], dtype="i8" if whole else "f8")
        made = (pd.arrays.IntegerArray if whole else pd.arrays.FloatingArray)(values[at], gone[at])
        return pd.Series(made, index=column.index, name=column.name)

    def _numeral(self, cell: str) -> str | None:
        """The text of a number; None: missing, in a column of numbers."""
        cell = cell.strip()
        if cell.lower() in NO_NUMBER:
            return None
        return cell.translate(COMMA_FOR_POINT) if self.decimal == "," else cell

    def _with_words(self, column: pd.Series[Any], words: Mapping[str, Any]) -> pd.Series[Any]:
        at, cells = _different(column)
        found = [words.get(cell, cell) for cell in cells] + [np.nan] * bool((at < 0).any())
        dtype = pd.Series(list(self.examples.values()), dtype=object).infer_objects().dtype
        made = pd.Series(found, dtype=object).astype(dtype).array.take(at % max(len(found), 1))
        return pd.Series(made, index=column.index, name=column.name)

    def _with_odd_cells(self, column: pd.Series[Any]) -> pd.Series[Any]:
        at, cells = _different(column)
        found = np.full(len(cells) + 1, np.nan, dtype=object)  # the last one is for -1, missing
        for i, cell in enumerate(cells):
            numeral = self._numeral(cell)
            if numeral is not None:
                found[i] = float(numeral) if _is_number(numeral) else cell
        return pd.Series(found[at], index=column.index, name=column.name, dtype=object)


def _different(column: pd.Series[Any]) -> tuple[Positions, list[str]]:
    """(n,) which of the column's different cells each is, -1 where it is missing; and these."""
    at, cells = pd.factorize(column)
    return at, cells.tolist()


def _is_number(cell: str) -> bool:
    return bool(NUMBER.fullmatch(cell)) and not PADDED.match(cell)
