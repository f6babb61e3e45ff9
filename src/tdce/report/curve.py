"""The score along one feature of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tdce._core import Flags, Floats


class Curve(NamedTuple):
    """The score along one feature, all others as they are but for what follows from it."""

    values: Floats | Sequence[str]  # numbers in ascending order, or categories
    score: Floats
    met: Flags
    allowed: Flags  # whether an answer may propose the value to this person
    own: int  # the position of the person's own value; -1: not known
    flips: tuple[float, ...]  # the numbers with the wanted decision that are nearest to one without it
