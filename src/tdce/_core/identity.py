"""An object as a key of a cache: the same as itself alone, whatever it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Held = TypeVar("Held")


@dataclass(frozen=True, eq=False)
class ByIdentity(Generic[Held]):
    """It is held as long as the key is, so that no other object can come to its place in memory."""

    held: Held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)
