"""Notes about a line of an answer, structured until a report puts them into words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tdce._core.values import Name


class Note(NamedTuple):
    key: str  # of a message in the catalogues, report/language/*.toml
    columns: tuple[Name, ...] = ()  # columns that it names
    rules: tuple[str, ...] = ()  # rules that it quotes
    values: Mapping[str, Any] = {}  # values for the message's placeholders
