"""Keeping laws: proposals in which features that are tied to each other move together, less far, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import numpy as np

from tdce._core import Flags, Floats, Positions, same
from tdce.schema.columns.base import Column
from tdce.schema.constraints.laws import Bound, Law

PASSES = 3  # over all laws: keeping one may break another

Allows = Callable[[int, Floats, Positions], Flags]


class Room(Protocol):
    """What may be proposed to each of some rows."""

    def take(self, at: Positions) -> Self: ...  # to these rows
    def allows(
        self, column: int, values: Floats, rows: Positions
    ) -> Flags: ...  # (m,) these, to rows at positions (m,)
    def back(self, column: int, values: Floats, rows: Positions) -> Floats: ...  # see `Choices.back`


@dataclass(frozen=True)
class ConstraintSet:
    """Some laws about the columns of a raw matrix."""

    laws: tuple[Bound, ...] = ()

    @classmethod
    def hard(cls, laws: Iterable[Law], features: Sequence[Column]) -> ConstraintSet:
        """Those that no row of the table breaks."""
        return cls(tuple(law.bound(features) for law in laws if law.on and law.hard))

    @classmethod
    def soft(cls, laws: Iterable[Law], features: Sequence[Column]) -> ConstraintSet:
        """Those that a few rows break."""
        return cls(tuple(law.bound(features) for law in laws if law.on and not law.hard))

    def broken(self, raw: Floats, own: Floats) -> Flags:
        """(n, laws) which laws rows (n, features) break by a change: nobody need keep better what is as it was."""
        if not self.laws:
            return np.zeros((len(raw), 0), dtype=bool)
        changed = ~same(raw, own)
        return np.stack([law.broken(raw, own) & changed[:, law.columns].any(axis=1) for law in self.laws], axis=1)

    def kept(self, raw: Floats, own: Floats, room: Room) -> Floats:
        """The rows with every law kept: what is tied to a change follows it if it may; else a changed number comes back
        as far as it must; else the change is undone."""
        at = np.flatnonzero(self.broken(raw, own).any(axis=1))
        if len(at) == 0:
            return raw
        out, some, mine, room = raw.copy(), raw[at], own[at], room.take(at)
        for _ in range(PASSES):
            some = self._eased(self._followed(some, mine, room.allows), mine, room)
            if not self.broken(some, mine).any():
                break
        out[at] = self._undone(some, mine)
        return out

    def lawful(self, raw: Floats, knows: Callable[[int, Floats], Flags]) -> Floats:
        """Rows that were drawn and belong to nobody: with values changed so that they keep every law, without those for
        which that is not to be had."""
        strange = np.full_like(raw, np.inf)  # nobody's: every value is a change
        for _ in range(PASSES):
            raw = self._followed(raw, strange, lambda column, values, _: knows(column, values))
        return raw[~self.broken(raw, strange).any(axis=1)]

    def _followed(self, raw: Floats, own: Floats, allows: Allows) -> Floats:
        raw = raw.copy()
        for _ in range(PASSES):
            for law in self.laws:
                changed = ~same(raw, own)
                at = np.flatnonzero(law.broken(raw, own) & changed[:, law.columns].any(axis=1))
                for column, values in law.mends(raw[at], changed[at]) if len(at) else ():
                    with_it = raw[at].copy()
                    with_it[:, column] = values
                    good = ~np.isnan(values) & ~law.broken(with_it, own[at]) & law.broken(raw[at], own[at])
                    good[good] = allows(column, values[good], at[good]) | (values[good] == own[at[good], column])
                    raw[at[good], column] = values[good]
        return raw

    def _eased(self, raw: Floats, own: Floats, room: Room) -> Floats:
        raw = raw.copy()
        for law in self.laws:
            at = np.flatnonzero(law.broken(raw, own) & ~same(raw, own)[:, law.columns].all(axis=1))
            if len(at) == 0:
                continue
            proposed, mine, most = raw[at], own[at], np.full(len(at), -1.0)
            for way in law.eased(proposed, mine, partial(room.back, rows=at)):
                left = _left(way, proposed, mine)[:, law.columns].sum(axis=1)
                better = ~law.broken(way, mine) & (left > most)
                raw[at[better]], most[better] = way[better], left[better]
        return raw

    def _undone(self, raw: Floats, own: Floats) -> Floats:
        """Each turn undoes a change in every row that breaks a law, so there is an end: the person's own row."""
        while True:
            broken, back = self.broken(raw, own), np.zeros(raw.shape, dtype=bool)
            for law, mine in zip(self.laws, broken.T, strict=True):
                back[mine] |= law.undone(raw[mine], own[mine])
            if not back.any():
                return raw
            raw = np.where(back, own, raw)


def _left(raw: Floats, proposed: Floats, own: Floats) -> Floats:
    """(n, features) the share of each proposed change that is left in these rows."""
    share = np.abs(raw - own) / np.maximum(np.abs(proposed - own), 1e-300)
    return np.where(same(raw, proposed), 1.0, np.nan_to_num(share).clip(max=1.0))
