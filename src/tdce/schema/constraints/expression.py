"""Rules that a user writes as text, read once and then computed for whole tables.

    loan <= 5 * income
    0 <= trades_ok <= trades
    if job == "none" then missing(employer)
    `credit history` in ("good", "paid duly")
    age >= was(age)

As in SQL, a comparison with a missing value is unknown, and what is unknown breaks no rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tdce._core import Flags, Floats, InputError, Name, Value, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.grammar import Parser
from tdce.schema.constraints.statements import Interval, Rows, Statement

LONGEST = 10_000  # characters


@dataclass(frozen=True)
class Expression:
    """A rule that was read from text."""

    text: str
    columns: tuple[Name, ...]  # in the order of first appearance
    statement: Statement = field(repr=False)

    @classmethod
    def parse(cls, text: str, features: Iterable[Column]) -> Expression:
        """Read a rule about these columns; the error shows the place of a mistake."""
        if not isinstance(text, str):
            raise InputError(f"the rule {show(text)} must be text, such as 'loan <= 5 * income'")
        text = text.strip()
        if len(text) > LONGEST:
            raise InputError(f"the rule {show(text)} has {len(text):,} characters; give it as several rules "
                             f"of at most {LONGEST:,} each")  # fmt: skip
        parser = Parser(text, features)
        return cls(text, statement=parser.whole(), columns=tuple(parser.columns))

    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n,) for which of the proposed rows, to people who have `own` now, it is false for certain."""
        with np.errstate(all="ignore"):
            truth = self.statement.truth(Rows(raw, own))
        return np.array(np.broadcast_to(truth.no, len(raw)))

    def narrowed(self, low: Floats, high: Floats) -> Interval:
        """What it leaves of a range of each feature if nothing is missing; nothing is left where low is above high."""
        return self.statement.narrowed(low, high)

    def allowed(self, column: Name) -> set[Value] | None:
        """The categories that it leaves a column on its own; None: all of them."""
        return self.statement.allowed(column)
