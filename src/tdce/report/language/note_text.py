"""Remarks as a note: for people in their language, and for scripts in English."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from tdce._core import Name, Note, listing
from tdce.report.language.catalogue import Catalogue
from tdce.report.language.formats import write_number


class Namer(Protocol):
    """How names and numbers are written, and which may be."""

    def columns(self, names: Iterable[Name]) -> list[str]: ...  # those that may be named
    def rule(self, rule: str) -> str | None: ...  # None: it must not be quoted
    def value(self, feature: Name, cell: Any) -> str: ...
    def score(self, number: float) -> str: ...


def note_text(notes: Sequence[Note], messages: Catalogue, namer: Namer) -> str:
    """All of them, separated by `; `; a remark on what must not be named is left out."""
    return "; ".join(filter(None, (_said(note, messages, namer) for note in notes)))


def _said(note: Note, messages: Catalogue, namer: Namer) -> str:
    named = namer.columns(note.columns)
    if note.columns and not named:
        return messages.text("stuck_unnamed") if note.key == "stuck" else ""
    rules = [namer.rule(rule) or messages.text("unnamed_rule") for rule in note.rules]
    places: dict[str, str] = {key: _written(note, key, value, messages, namer) for key, value in note.values.items()}
    either = f" {messages.text('or')} ".join(dict.fromkeys(rules))
    return messages.text(note.key, columns=listing(named), rules=", ".join(rules), either=either, **places)


def _written(note: Note, key: str, value: Any, messages: Catalogue, namer: Namer) -> str:
    if key in ("value", "low", "high"):
        return namer.value(note.columns[0], value)
    if key in ("before", "after"):
        return namer.score(value)
    return write_number(messages, value) if isinstance(value, int) else str(value)


def mentions(text: str, name: str) -> bool:
    """Whether a text has the name in it, as a word of its own."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


class PlainNames:
    """For scripts: columns by their own names, without those that must never be named; numbers as Python has them."""

    def __init__(self, barred: Iterable[Name]) -> None:
        self.barred = tuple(barred)

    def columns(self, names: Iterable[Name]) -> list[str]:
        return [str(name) for name in names if name not in self.barred]

    def rule(self, rule: str) -> str | None:
        return None if any(mentions(rule, str(name)) for name in self.barred) else repr(rule)

    def value(self, feature: Name, cell: Any) -> str:
        return f"{cell:,.10g}" if isinstance(cell, float) else str(cell)

    def score(self, number: float) -> str:
        return f"{number:.3g}"
