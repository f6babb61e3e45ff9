"""What may be proposed for each queried row: the schema's rules, met by every line that is returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce._core import ByIdentity, Flags, Floats, Name, Note, Positions, same
from tdce.schema.columns.base import AllowedValues, FittedColumn
from tdce.schema.constraints.repair import ConstraintSet
from tdce.schema.constraints.rules import narrow_columns, parse_rule
from tdce.schema.encoder import Encoder


class EncodedBounds(NamedTuple):
    low: Tensor  # (n, num) encoded numbers
    high: Tensor  # (n, num)
    allowed: Tensor  # (n, cat) bool


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The queried rows and, for each of their features, what a counterfactual may say instead.

    It holds only the raw values until something is asked of it: with many rows, ask about some at a time (`take`).

    A value is the row's own, or it is on the grid, in the range, in the direction, among the allowed categories, and
    fits the column's dtype. Missing is never proposed. Immutable features keep their own value. No change breaks a law
    or a rule.
    """

    encoder: Encoder
    own: Floats  # (n, features)
    columns: tuple[FittedColumn, ...]  # as the rows store them
    laws: ConstraintSet

    @classmethod
    def of(
        cls, encoder: Encoder, frame: pd.DataFrame, immutable: Iterable[Name] = (), rules: Sequence[str] = ()
    ) -> FeasibleSet:
        """The limits of a frame's rows, with some features immutable and some rules besides those of the schema."""
        frozen = tuple(immutable)
        encoder.schema.check_immutable(frozen)
        own = encoder.read(frame)
        columns, laws = _standing(ByIdentity(encoder), tuple(_key(frame[name].dtype) for name in encoder.schema.names),
                                  frozen, tuple(rules))  # fmt: skip
        return cls(encoder, own, columns, laws)

    @property
    def immutable(self) -> tuple[Name, ...]:
        return tuple(learned.column.name for learned in self.columns if learned.column.immutable)

    def take(self, at: Flags | Positions) -> FeasibleSet:
        """The limits of some of the rows; what is known of them already is handed on."""
        part = replace(self, own=self.own[at])
        if "x" in vars(self):
            vars(part)["x"] = self.x[torch.from_numpy(at)]
        if "choices" in vars(self):
            vars(part)["choices"] = tuple(choices.take(at) for choices in self.choices)
        return part

    @cached_property
    def x(self) -> Tensor:
        """(n, width) the rows as networks see them."""
        return self.encoder.embed(self.own).float()

    @cached_property
    def choices(self) -> tuple[AllowedValues, ...]:
        """What could be proposed in each feature if none were immutable."""
        return tuple(learned.choices(own) for learned, own in zip(self.columns, self.own.T, strict=True))

    def free(self) -> Flags:
        """(n, features): which features have any other value that may be proposed."""
        return np.stack([choices.free() for choices in self.choices], axis=1) & ~self.frozen

    def snap(self, x_cf: Tensor) -> Floats:
        """Encoded proposals (n, width) -> raw values (n, features) that keep every rule."""
        parts = zip(self.choices, self.encoder.parts(x_cf), strict=True)
        raw = np.stack([choices.snap(part) for choices, part in parts], axis=1)
        raw = np.where(self.encoder.same(x_cf, self.x) | self.frozen, self.own, raw)
        return self.laws.kept(raw, self.own, self)

    def encoded_bounds(self) -> EncodedBounds:
        """How far the encoded rows may go: the lowest and highest numbers, and which category weights may be 1."""
        parts = zip(*(choices.encoded_bounds() for choices in self.choices), strict=True)
        low, high, allowed = (torch.from_numpy(np.concatenate(each, axis=1)) for each in parts)
        return EncodedBounds(low.float(), high.float(), allowed)

    def kept(self, raw: Floats) -> Flags:
        """(n,): whether every value is the row's own or may be proposed, and no change breaks a law or a rule."""
        allowed = np.stack([c.allows(values) for c, values in zip(self.choices, raw.T, strict=True)], axis=1)
        values = (same(raw, self.own) | (allowed & ~self.frozen)).all(axis=1)
        return np.asarray(values & ~self.laws.broken(raw, self.own).any(axis=1))

    def notes(self) -> list[Note]:
        """Why nothing can change in a row that is not free."""
        stuck = tuple(learned.column.name for learned in self.columns if not learned.column.immutable)
        if not stuck:
            return [Note("all_immutable")]
        return [Note("stuck", stuck), *self.immutable_notes()]

    def immutable_notes(self) -> list[Note]:
        return [Note("immutable", self.immutable)] if self.immutable else []

    def allows(self, column: int, values: Floats, rows: Positions) -> Flags:
        """Whether these values of a column may be proposed to these rows."""
        return np.asarray(self._choices(column, rows).allows(values) & ~self.frozen[column])

    def back(self, column: int, values: Floats, rows: Positions) -> Floats:
        """The nearest that may be proposed to these rows on the way from these values of a column to their own."""
        own = self.own[rows, column]
        return own if self.frozen[column] else self._choices(column, rows).back(values)

    def _choices(self, column: int, rows: Positions) -> AllowedValues:
        return self.columns[column].choices(self.own[rows, column])

    @property
    def frozen(self) -> Flags:
        """(features,) which of them are immutable."""
        return np.array([learned.column.immutable for learned in self.columns])


@lru_cache(maxsize=8)  # the next block of a table has the same
def _standing(
    whose: ByIdentity[Encoder], dtypes: tuple[tuple[Any, Any], ...], frozen: tuple[Name, ...], rules: tuple[str, ...]
) -> tuple[tuple[FittedColumn, ...], ConstraintSet]:
    """What holds for all rows that are stored in these dtypes: the columns as they store them, laws and rules."""
    encoder, schema = whose.held, whose.held.schema
    named = zip(schema.names, encoder.columns, dtypes, strict=True)
    columns = tuple(column.stored(dtype, name in frozen) for name, column, (dtype, _) in named)
    given = [parse_rule(rule, schema.features) for rule in (*schema.rules, *rules)]
    within = narrow_columns(given, [learned.column for learned in columns])
    columns = tuple(replace(each, column=column) for each, column in zip(columns, within, strict=True))
    laws = ConstraintSet.hard(schema.laws, schema.features)
    return columns, replace(laws, laws=(*laws.laws, *given))


def _key(dtype: Any) -> tuple[Any, Any]:
    """A dtype, and in which order its categories are, which does not matter to pandas."""
    return dtype, tuple(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else ()
