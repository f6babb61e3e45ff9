"""Repair proposals that break a constraint: the features that it ties change together, change less, or stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import numpy as np

from tdce._core import Flags, Floats, Positions, same
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import Constraint, FollowerConstraint, Law

PASSES = 3  # over all constraints, because repairing one may break another

Allows = Callable[[int, Floats, Positions], Flags]


class Feasible(Protocol):
    """The part of `FeasibleSet` that a repair needs."""

    def take(self, at: Positions) -> Self: ...
    def allows(self, column: int, values: Floats, rows: Positions) -> Flags: ...
    def towards_own(self, column: int, values: Floats, rows: Positions) -> Floats: ...


@dataclass(frozen=True)
class ConstraintSet:
    """Laws and rules bound to the columns of a raw matrix.

    If a row's own number is so large that a sum overflows, the constraint does not count as broken.
    """

    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def hard(cls, laws: Iterable[Law], features: Sequence[Column]) -> ConstraintSet:
        """The laws without exceptions in the table."""
        return cls(_parts(law.bind(features) for law in laws if law.on and law.hard))

    @classmethod
    def soft(cls, laws: Iterable[Law], features: Sequence[Column]) -> ConstraintSet:
        """The laws with a few exceptions in the table."""
        return cls(_parts(law.bind(features) for law in laws if law.on and not law.hard))

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def contradicted(self, raw: Floats) -> Flags:
        """(n, constraints) which constraints rows (n, features) break, with no original rows to compare with."""
        return np.stack([np.zeros(len(raw), dtype=bool), *(c.contradicted(raw) for c in self.constraints)], axis=1)[
            :, 1:
        ]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n, constraints) which constraints the rows (n, features) break by a change; violations are ignored where
        none of a constraint's columns changed."""
        if not self.constraints:
            return np.zeros((len(raw), 0), dtype=bool)
        return np.stack([c.broken(raw, own) & ~_same(raw, own, c).all(axis=1) for c in self.constraints], axis=1)

    @property
    def followers(self) -> list[int]:
        """The columns that are computed from others."""
        return sorted({c.follower for c in self._following})

    @property
    def _following(self) -> list[FollowerConstraint]:
        return [c for c in self.constraints if isinstance(c, FollowerConstraint)]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def follow(self, raw: Floats, own: Floats) -> Floats:
        """The rows (n, features) with all followers recomputed, whether or not their values may be proposed."""
        following = self._following
        raw = raw.copy() if following else raw
        for _ in following:  # a follower may follow another
            before = raw.copy()
            for constraint in following:
                value, follower = constraint.expected(raw, own), constraint.follower
                raw[:, follower] = np.where(np.isnan(value), own[:, follower], value)
            if same(raw, before).all():
                break
        return raw

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def repair(self, raw: Floats, own: Floats, feasible: Feasible) -> Floats:
        """Make the rows keep every constraint: features tied to a change follow it if allowed; otherwise changed
        numbers move back as far as needed; otherwise changes are reverted."""
        at = np.flatnonzero(self.broken(raw, own).any(axis=1))
        if len(at) == 0:
            return raw
        out, rows, rows_own, feasible = raw.copy(), raw[at], own[at], feasible.take(at)
        for _ in range(PASSES):
            rows = self._relax(self._fix(rows, rows_own, feasible.allows), rows_own, feasible)
            if not self.broken(rows, rows_own).any():
                break
        out[at] = self._revert(rows, rows_own)
        return out

    def repair_synthetic(self, raw: Floats, knows: Callable[[int, Floats], Flags]) -> Floats:
        """Make synthetic rows keep every constraint, and drop those that cannot be fixed."""
        fixed, keeps = self.fix_synthetic(raw, knows)
        return fixed[keeps]

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def fix_synthetic(self, raw: Floats, knows: Callable[[int, Floats], Flags]) -> tuple[Floats, Flags]:
        """Like `repair_synthetic`, but keep all rows; also return which of them keep every constraint."""
        own = np.full_like(raw, np.inf)  # no own rows: every value counts as a change
        for _ in range(PASSES):
            raw = self._fix(raw, own, lambda column, values, _: knows(column, values))
        return raw, np.asarray(~self.broken(raw, own).any(axis=1))

    def _fix(self, raw: Floats, own: Floats, allows: Allows) -> Floats:
        """Apply, for each broken constraint, the first fix that is allowed and helps."""
        raw = raw.copy()
        for _ in range(PASSES):
            for constraint in self.constraints:
                at = np.flatnonzero(constraint.broken(raw, own) & ~_same(raw, own, constraint).all(axis=1))
                changed = ~same(raw[at], own[at])
                for column, values in constraint.fixes(raw[at], own[at], changed) if len(at) else ():
                    fixed = raw[at].copy()
                    fixed[:, column] = values
                    helps = ~np.isnan(values) & ~constraint.broken(fixed, own[at]) & constraint.broken(raw[at], own[at])
                    helps[helps] = allows(column, values[helps], at[helps]) | (values[helps] == own[at[helps], column])
                    raw[at[helps], column] = values[helps]
        return raw

    def _relax(self, raw: Floats, own: Floats, feasible: Feasible) -> Floats:
        """Move changed numbers back to where each constraint holds, as little as possible."""
        raw = raw.copy()
        for constraint in self.constraints:
            at = np.flatnonzero(constraint.broken(raw, own) & ~_same(raw, own, constraint).all(axis=1))
            if len(at) == 0:
                continue
            proposed, rows_own, most = raw[at], own[at], np.full(len(at), -1.0)
            for relaxed in constraint.relax(proposed, rows_own, partial(feasible.towards_own, rows=at)):
                left = _share_left(relaxed, proposed, rows_own)[:, constraint.columns].sum(axis=1)
                better = ~constraint.broken(relaxed, rows_own) & (left > most)
                raw[at[better]], most[better] = relaxed[better], left[better]
        return raw

    def _revert(self, raw: Floats, own: Floats) -> Floats:
        """Revert changes until no constraint is broken. Each pass reverts some in every such row, so it ends."""
        while True:
            broken, reverted = self.broken(raw, own), np.zeros(raw.shape, dtype=bool)
            for constraint, rows in zip(self.constraints, broken.T, strict=True):
                reverted[rows] |= constraint.reverted(raw[rows], own[rows])
            if not reverted.any():
                return raw
            raw = np.where(reverted, own, raw)


def _parts(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    return tuple(part for constraint in constraints for part in constraint.parts())


def _same(raw: Floats, own: Floats, constraint: Constraint) -> Flags:
    """(n, columns) which of a constraint's columns are unchanged."""
    columns = list(constraint.columns)
    return same(raw[:, columns], own[:, columns])


def _share_left(raw: Floats, proposed: Floats, own: Floats) -> Floats:
    """(n, features) the share of each proposed change that these rows still have."""
    share = np.abs(raw - own) / np.maximum(np.abs(proposed - own), 1e-300)
    return np.where(same(raw, proposed), 1.0, np.nan_to_num(share).clip(max=1.0))
