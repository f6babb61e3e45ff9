"""The messages of one language, from one file beside this one: a further language is a further file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tdce._core import InputError, listing, show

if TYPE_CHECKING:
    from babel import Locale

FOLDER = files("tdce.report.language")
LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_]([A-Za-z]{2}))?")

Message = str | dict[str, str]
"""A text with places in braces; or one for each form of the plural, by its name: one, other, …"""


@dataclass(frozen=True, eq=False)
class Catalogue:
    language: str  # "de", or with a region: "de-CH"
    messages: dict[str, Message]

    @property
    def tongue(self) -> str:
        """Without a region."""
        return self.language.replace("_", "-").split("-")[0]

    def text(self, key: str, **values: Any) -> str:
        """A message with these values in its places; if it has forms, the one for the value `count`."""
        if key not in self.messages:
            raise InputError(f"the catalogue of {self.language!r} has no message {key!r}; add it to {self.tongue}.toml")
        message = self.messages[key]
        if not isinstance(message, str):
            message = message.get(self.locale.plural_form(values["count"]), message["other"])
        try:
            return message.format(**values)
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"the message {key!r} of {self.language!r} cannot be filled in: {error}") from None

    @property
    def locale(self) -> Locale:
        return _locale(self.language, self.text("locale"))

    def listed(self, parts: list[str], last: str = "and") -> str:
        """`a, b and c`"""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {self.text(last)} {parts[-1]}"


def languages() -> tuple[str, ...]:
    """Those that there is a file for."""
    return tuple(sorted(each.name.removesuffix(".toml") for each in FOLDER.iterdir() if each.name.endswith(".toml")))


def catalogue(language: str) -> Catalogue:
    """Of a language, `de`, perhaps with the region whose numbers and dates are written: `de-CH`."""
    known, found = languages(), LANGUAGE.fullmatch(language) if isinstance(language, str) else None
    if found is None or found[1] not in known:
        raise InputError(f"language is {show(language)}; known: {listing(known)}")
    made = _read(language, found[1])
    made.locale  # noqa: B018  # an unknown region is named now
    return made


@cache
def _read(language: str, tongue: str) -> Catalogue:
    return Catalogue(language, tomllib.loads(FOLDER.joinpath(f"{tongue}.toml").read_text(encoding="utf-8")))


@cache
def _locale(language: str, usual: str) -> Locale:
    from babel import Locale, UnknownLocaleError  # here: whoever reads no words need not wait for it

    found = LANGUAGE.fullmatch(language)
    assert found is not None
    try:
        return Locale.parse(f"{found[1]}_{found[2].upper()}" if found[2] else usual)
    except UnknownLocaleError:
        raise InputError(f"language is {language!r}, but nothing is known of its region; use {found[1]!r}") from None
