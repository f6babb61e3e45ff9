"""Notes put into words: for people in their language, and for scripts in English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tdce._core import Name, Note, listing
from tdce.report.language.catalogue import Catalogue
from tdce.report.language.formats import write_number, write_percent


class Namer(Protocol):
    """How names and numbers in a note are written, and which names may appear."""

    def columns(self, names: Iterable[Name]) -> list[str]: ...  # only those that may be named
    def rule(self, rule: str) -> str | None: ...  # None: must not be quoted
    def value(self, feature: Name, cell: Any) -> str: ...
    def score(self, number: float) -> str: ...


def note_text(notes: Sequence[Note], messages: Catalogue, namer: Namer) -> str:
    """All notes, joined by `; `, without those about columns that must not be named."""
    return "; ".join(filter(None, (_one_note(note, messages, namer) for note in notes)))


def mentions(text: str, name: str) -> bool:
    """Whether a text contains the name as a separate word."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


class PlainNames:
    """For scripts: plain column names, except of columns that must never be named, and numbers as in Python."""

    def __init__(self, hidden: Iterable[Name]) -> None:
        self.hidden = tuple(hidden)

    def columns(self, names: Iterable[Name]) -> list[str]:
        return [str(name) for name in names if name not in self.hidden]

    def rule(self, rule: str) -> str | None:
        return None if any(mentions(rule, str(name)) for name in self.hidden) else repr(rule)

    def value(self, feature: Name, cell: Any) -> str:
        return f"{cell:,.10g}" if isinstance(cell, float) else str(cell)

    def score(self, number: float) -> str:
        return f"{number:.3g}"


def _one_note(note: Note, messages: Catalogue, namer: Namer) -> str:
    columns = namer.columns(note.columns)
    if note.columns and not columns:
        return messages.text("stuck_unnamed") if note.key == "stuck" else ""
    rules = [namer.rule(rule) or messages.text("unnamed_rule") for rule in note.rules]
    values: dict[str, str] = {key: _value(note, key, value, messages, namer) for key, value in note.values.items()}
    either = f" {messages.text('or')} ".join(dict.fromkeys(rules))
    return messages.text(note.key, columns=listing(columns), rules=", ".join(rules), either=either, **values)


def _value(note: Note, key: str, value: Any, messages: Catalogue, namer: Namer) -> str:
    if key in ("value", "low", "high"):
        return namer.value(note.columns[0], value)
    if key in ("before", "after"):
        return namer.score(value)
    if key in ("safety", "bound"):
        return write_percent(messages, value, "rounded_share")
    return write_number(messages, value) if isinstance(value, int) else str(value)
