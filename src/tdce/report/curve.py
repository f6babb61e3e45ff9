"""The score along one feature of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tdce._core import Flags, Floats


class Curve(NamedTuple):
    """The score along one feature, with all others unchanged except those that follow it."""

    values: Floats | Sequence[str]  # numbers in ascending order, or categories
    score: Floats
    met: Flags
    allowed: Flags  # whether an answer may propose the value to this person
    own: int  # the position of the person's own value; -1: not known
    flips: tuple[float, ...]  # for numbers: the values with the wanted decision closest to one without it
