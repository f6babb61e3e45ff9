"""The feasible set: the values that may be proposed for each queried row without breaking a constraint."""

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
    """The bounds of encoded rows."""

    low: Tensor  # (n, num) encoded numbers
    high: Tensor  # (n, num)
    allowed: Tensor  # (n, cat) bool


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The queried rows and, for each of their features, the values that a counterfactual may have.

    A value is the row's own, or it is on the grid, in the range, in the direction and among the allowed categories,
    and fits the column's dtype. Missing is never proposed, immutable features keep their values, and no change may
    break a law or a rule.

    Everything but the raw values is computed on first use: with many rows, work on some at a time (`take`).
    """

    encoder: Encoder
    own: Floats  # (n, features)
    columns: tuple[FittedColumn, ...]  # for the dtypes of the rows
    constraints: ConstraintSet  # laws without exceptions, then rules

    @classmethod
    def of(
        cls, encoder: Encoder, frame: pd.DataFrame, immutable: Iterable[Name] = (), rules: Sequence[str] = ()
    ) -> FeasibleSet:
        """The feasible set of a frame's rows; `immutable` and `rules` are added to those of the schema."""
        frozen = tuple(immutable)
        encoder.schema.check_immutable(frozen)
        own = encoder.read(frame)
        dtypes = tuple(_dtype_key(frame[name].dtype) for name in encoder.schema.names)
        columns, constraints = _columns_and_constraints(ByIdentity(encoder), dtypes, frozen, tuple(rules))
        return cls(encoder, own, columns, constraints)

    @property
    def immutable(self) -> tuple[Name, ...]:
        return tuple(fitted.column.name for fitted in self.columns if fitted.column.immutable)

    def take(self, at: Flags | Positions) -> FeasibleSet:
        """The feasible set of some rows, which keeps what was already computed."""
        part = replace(self, own=self.own[at])
        if "x" in vars(self):
            vars(part)["x"] = self.x[torch.from_numpy(at)]
        if "allowed_values" in vars(self):
            vars(part)["allowed_values"] = tuple(allowed.take(at) for allowed in self.allowed_values)
        return part

    @cached_property
    def x(self) -> Tensor:
        """(n, width) the rows, encoded for networks."""
        return self.encoder.embed(self.own).float()

    @cached_property
    def allowed_values(self) -> tuple[AllowedValues, ...]:
        """The values that could be proposed for each feature if none were immutable."""
        return tuple(fitted.allowed_values(own) for fitted, own in zip(self.columns, self.own.T, strict=True))

    def can_change(self) -> Flags:
        """(n, features) which features have another value that may be proposed; followers have none."""
        free = ~self.frozen
        free[self.constraints.followers] = False
        return np.stack([allowed.can_change() for allowed in self.allowed_values], axis=1) & free

    def snap(self, x_cf: Tensor, at: Positions | None = None) -> Floats:
        """Encoded proposals (m, width) for the rows at these positions (m,), by default all -> raw values (m, features)
        within the feasible set. Only features that differ from the row are processed, usually few."""
        at = np.arange(len(self.own)) if at is None else at
        own, whole = self.own[at], x_cf.detach().double().cpu().numpy()
        moved = ~self.encoder.same(x_cf, self.x[torch.from_numpy(at)]) & ~self.frozen
        raw, spans = own.copy(), self.encoder.space.spans
        for i in np.flatnonzero(moved.any(axis=0)).tolist():
            rows = np.flatnonzero(moved[:, i])
            raw[rows, i] = self.allowed_values[i].take(at[rows]).snap(whole[rows][:, spans[i]])
        return self.constraints.repair(raw, own, replace(self, own=own))

    def embed(self, raw: Floats, at: Positions) -> Tensor:
        """Raw values (m, features) for the rows at these positions (m,) -> encoded (m, width). Only features that
        differ from the row are encoded anew."""
        x, moved = self.x[torch.from_numpy(at)], ~same(raw, self.own[at])
        for i in np.flatnonzero(moved.any(axis=0)).tolist():
            rows, places = np.flatnonzero(moved[:, i]), self.encoder.space.spans[i]
            values = torch.from_numpy(self.encoder.columns[i].embed(raw[rows, i])).float()
            x[torch.from_numpy(rows)[:, None], torch.arange(self.encoder.space.width)[places]] = values
        return x

    def encoded_bounds(self) -> EncodedBounds:
        """The lowest and highest numbers of the encoded rows, and which category weights may be 1."""
        parts = zip(*(allowed.encoded_bounds() for allowed in self.allowed_values), strict=True)
        low, high, allowed = (torch.from_numpy(np.concatenate(each, axis=1)) for each in parts)
        return EncodedBounds(low.float(), high.float(), allowed)

    def contains(self, raw: Floats) -> Flags:
        """(n,) whether every value is the row's own or may be proposed, and no change breaks a constraint."""
        columns = zip(self.allowed_values, raw.T, strict=True)
        proposable = np.stack([allowed.allows(values) for allowed, values in columns], axis=1)
        within = (same(raw, self.own) | (proposable & ~self.frozen)).all(axis=1)
        return np.asarray(within & ~self.constraints.broken(raw, self.own).any(axis=1))

    def notes(self) -> list[Note]:
        """Notes on why nothing in a row can change."""
        stuck = tuple(fitted.column.name for fitted in self.columns if not fitted.column.immutable)
        if not stuck:
            return [Note("all_immutable")]
        return [Note("stuck", stuck), *self.immutable_notes()]

    def immutable_notes(self) -> list[Note]:
        return [Note("immutable", self.immutable)] if self.immutable else []

    def allows(self, column: int, values: Floats, rows: Positions) -> Flags:
        """(m,) whether these values (m,) of a column may be proposed for the rows at these positions (m,)."""
        return np.asarray(self._allowed_values(column, rows).allows(values) & ~self.frozen[column])

    def towards_own(self, column: int, values: Floats, rows: Positions) -> Floats:
        """(m,) the first proposable value on the way from these values of a column to the rows' own."""
        own = self.own[rows, column]
        return own if self.frozen[column] else self._allowed_values(column, rows).towards_own(values)

    def _allowed_values(self, column: int, rows: Positions) -> AllowedValues:
        return self.columns[column].allowed_values(self.own[rows, column])

    @property
    def frozen(self) -> Flags:
        """(features,) which features are immutable."""
        return np.array([fitted.column.immutable for fitted in self.columns])


@lru_cache(maxsize=8)  # the next block of a table has the same dtypes
def _columns_and_constraints(
    key: ByIdentity[Encoder], dtypes: tuple[tuple[Any, Any], ...], frozen: tuple[Name, ...], rules: tuple[str, ...]
) -> tuple[tuple[FittedColumn, ...], ConstraintSet]:
    """The columns, narrowed by the rules, and the constraints: the same for all rows stored in these dtypes."""
    encoder, schema = key.value, key.value.schema
    stored = zip(schema.names, encoder.columns, dtypes, strict=True)
    columns = tuple(column.for_rows(dtype, name in frozen) for name, column, (dtype, _) in stored)
    parsed = [parse_rule(rule, schema.features) for rule in (*schema.rules, *rules)]
    narrowed = narrow_columns(parsed, [fitted.column for fitted in columns])
    columns = tuple(replace(fitted, column=column) for fitted, column in zip(columns, narrowed, strict=True))
    laws = ConstraintSet.hard(schema.laws, schema.features)
    bound = tuple(law.for_cells(columns) for law in laws.constraints)
    return columns, ConstraintSet((*bound, *(rule.without(laws.followers) for rule in parsed)))


def _dtype_key(dtype: Any) -> tuple[Any, Any]:
    """A cache key for a dtype, with the order of its categories, which pandas ignores in comparisons."""
    return dtype, tuple(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else ()
