"""Rules written as expressions, parsed once and then evaluated for whole tables.

    loan <= 5 * income
    0 <= trades_ok <= trades
    if job == "none" then missing(employer)
    `credit history` in ("good", "paid duly")
    age >= was(age)

As in SQL, a comparison with a missing value is unknown, and an unknown result breaks no rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tdce._core import Flags, Floats, InputError, Name, Value, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.grammar import Parser
from tdce.schema.constraints.statements import Interval, Rows, Statement

MAX_RULE_LENGTH = 10_000  # characters


@dataclass(frozen=True)
class Expression:
    """A rule parsed from text."""

    text: str
    columns: tuple[Name, ...]  # in order of first appearance
    statement: Statement = field(repr=False)

    @classmethod
    def parse(cls, text: str, features: Iterable[Column]) -> Expression:
        """Parse a rule about these columns; errors show the place of the mistake."""
        if not isinstance(text, str):
            raise InputError(f"the rule {show(text)} must be text, such as 'loan <= 5 * income'")
        text = text.strip()
        if len(text) > MAX_RULE_LENGTH:
            raise InputError(f"the rule {show(text)} has {len(text):,} characters; split it into several rules "
                             f"of at most {MAX_RULE_LENGTH:,} each")  # fmt: skip
        parser = Parser(text, features)
        return cls(text, statement=parser.parse(), columns=tuple(parser.columns))

    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n,) which proposed rows certainly break the rule, for people whose present rows are `own`."""
        with np.errstate(all="ignore"):
            truth = self.statement.truth(Rows(raw, own))
        return np.array(np.broadcast_to(truth.no, len(raw)))

    def narrow(self, low: Floats, high: Floats) -> Interval:
        """Each feature's range as left by the rule if nothing is missing; empty where low is above high."""
        return self.statement.narrow(low, high)

    def allowed(self, column: Name) -> set[Value] | None:
        """The categories allowed for a column; None: all."""
        return self.statement.allowed(column)
