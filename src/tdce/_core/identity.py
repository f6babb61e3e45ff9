"""An object as a key of a cache, compared by identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Object = TypeVar("Object")


@dataclass(frozen=True, eq=False)
class ByIdentity(Generic[Object]):
    """Equal only to a key of the same object. It keeps the object alive, so that no other can take its address."""

    value: Object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
