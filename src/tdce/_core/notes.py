"""Remarks about a line of an answer, before anybody has put them into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tdce._core.values import Name


class Note(NamedTuple):
    key: str  # of a message in the catalogues of `words`
    columns: tuple[Name, ...] = ()  # that it speaks of
    rules: tuple[str, ...] = ()  # that it quotes
    values: Mapping[str, Any] = {}  # for the message's places
