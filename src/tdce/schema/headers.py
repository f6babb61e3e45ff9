"""Whether the first line of a table is its header or its first row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tdce._core import NUMBER_TEXT, listing

HEADER_ROWS = 1_000  # of a table to compare with its header
MIN_HEADER_ROWS = 5  # with fewer, there is no verdict
MIN_DATA_NAMES = 2  # names that look like data, at least,
MIN_DATA_SHARE = 0.5  # and their share of all names, if none looks like a name
MAX_REPEATED = 0.5  # largest share of distinct cells for values to count as repeating


def find_headerless(
    header: Sequence[str],
    columns: Sequence[Sequence[str]],  # the first cells of each, as text
) -> str | None:
    """The evidence that the names in a header are the cells of a row, or None.

    A word above numbers, or above repeating words that do not include it, is a name. A number above numbers, or a word
    above words, is data if it occurs among them; so is a decimal within their range. Numbers in equal steps, such as
    years, are names.
    """
    if max(map(len, columns), default=0) < MIN_HEADER_ROWS or _in_equal_steps(header):
        return None
    data = list[str]()
    for name, cells in zip(header, columns, strict=True):
        looks = _looks_like_data(name.strip(), [cell.strip() for cell in cells if cell.strip()])
        if looks is False:
            return None
        data += [name.strip()] if looks else []
    if len(data) < max(MIN_DATA_NAMES, MIN_DATA_SHARE * len(header)):
        return None
    return f"the names {listing(map(repr, data), most=4)} look like values of their columns"


def _looks_like_data(name: str, cells: Sequence[str]) -> bool | None:
    """Whether a name looks like a value of its column; None if that cannot be told."""
    if not name or not cells:
        return None
    if not all(map(NUMBER_TEXT.fullmatch, cells)):
        if name in cells:
            return True
        return None if len(set(cells)) > MAX_REPEATED * len(cells) else False
    if not NUMBER_TEXT.fullmatch(name):
        return False
    number, numbers = float(name), [float(cell) for cell in cells]
    if number in numbers or (not number.is_integer() and min(numbers) <= number <= max(numbers)):
        return True
    return None


def _in_equal_steps(header: Sequence[str]) -> bool:
    """Whether the names are whole numbers in equal steps: 0, 1, 2 or 2019, 2020, 2021."""
    if not all(name.isdecimal() for name in header):
        return False
    steps = np.unique(np.diff([float(name) for name in header]))
    return len(steps) == 1 and steps[0] > 0
