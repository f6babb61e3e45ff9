"""An answer as a report shows it: what changed and by how much, in the features that the reader may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tdce._core import Flags, Floats, Name, same
from tdce.methods import Agreement, Explanation, Question, ReasonMethod, Reasons, Status
from tdce.models import Goals
from tdce.report.context import Context
from tdce.report.histograms import Population
from tdce.report.language.note_text import mentions
from tdce.schema import Column, Schema


@dataclass(frozen=True, eq=False)
class View:
    """The rows, their counterfactuals, and which features may be named."""

    rows: pd.DataFrame
    written: pd.DataFrame  # the counterfactuals in the input's dtypes, one line per row and option
    schema: Schema
    question: Question
    goals: Goals  # one per row
    explanation: Explanation
    context: Context | None
    population: Population | None
    hidden: frozenset[Name]  # features that this reader may not see
    model_calls: int
    model_rows: int
    labels: Sequence[str]  # (rows,) people's labels, for headings
    id: Name | None = None  # the column of the labels; None: the index
    group_reasons: Mapping[ReasonMethod, Sequence[Reasons]] | None = None  # compared with a group; None: not known
    agreement: Sequence[Agreement] = ()  # of these methods with each other and with the reasons of the way

    @property
    def visible(self) -> list[tuple[int, Column]]:
        """The features that may be named, with their positions."""
        return [(i, column) for i, column in enumerate(self.schema) if column.name not in self.hidden]

    def may_quote(self, text: str) -> bool:
        """Whether a text names no hidden feature."""
        return not any(mentions(text, str(name)) for name in self.hidden)

    @cached_property
    def changed(self) -> Flags:
        """(rows, options, features) which values differ from the row's own."""
        return ~same(self.explanation.raw, self.explanation.own[:, None])

    @property
    def decided(self) -> Flags:
        """(rows, options, features) which values differ from the row's own, without followers."""
        follows = np.array([name in self.schema.followers for name in self.schema.names], dtype=bool)
        return np.asarray(self.changed & ~follows)

    @property
    def needs_change(self) -> Flags:
        """(rows,) which rows do not have the wanted decision yet."""
        return np.asarray(self.explanation.status[:, 0] != Status.ALREADY)

    @property
    def valid(self) -> Flags:
        """(rows,) whose first option is accepted."""
        return np.asarray(self.explanation.status[:, 0] == Status.VALID)

    @property
    def effort(self) -> Floats:
        """(rows, options) the distance that the search minimises, with the costs of changes."""
        return self.explanation.distance
