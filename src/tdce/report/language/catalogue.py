"""The messages of one language, from a TOML file beside this module: another language is another file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from tdce._core import InputError, listing, show, suggest

if TYPE_CHECKING:
    from babel import Locale

FOLDER = files("tdce.report.language")
LANGUAGE = re.compile(r"([a-z]{2,3})(?:[-_]([A-Za-z]{2}))?")

Message = str | dict[str, str]
"""A text with placeholders in braces; or one text for each plural form, by its name: one, other, …"""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The messages of a language, and the locale in which it writes numbers and dates."""

    language: str  # "de", or with a region: "de-CH"
    messages: dict[str, Message]

    @classmethod
    def parse(cls, language: str, text: str) -> Self:
        """Parse the messages of a file."""
        try:
            messages = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the catalogue of {language!r} is not valid TOML: {show(error, 200, str)}") from None
        for key, message in messages.items():
            forms = message if isinstance(message, dict) else {"other": message}
            if "other" not in forms or not all(isinstance(form, str) for form in forms.values()):
                raise InputError(f"the message {show(key)} of {language!r} is {show(message)}; it must be a text, or "
                                 "texts for plural forms, one of them 'other'")  # fmt: skip
        return cls(language, messages)

    @property
    def base_language(self) -> str:
        """The language without a region."""
        return self.language.replace("_", "-").split("-")[0]

    @property
    def locale(self) -> Locale:
        return _locale(self.language, self.text("locale"))

    def text(self, key: str, **values: Any) -> str:
        """A message with its placeholders filled in, in the plural form for `count` if it has several forms."""
        if key not in self.messages:
            file = f"{self.base_language}.toml"
            raise InputError(f"the catalogue of {self.language!r} has no message {key!r}; add it to {file}")
        message = self.messages[key]
        try:
            if not isinstance(message, str):
                message = message.get(self.locale.plural_form(values["count"]), message["other"])
            return message.format(**values)
        except (LookupError, ValueError, AttributeError, TypeError) as error:
            raise InputError(f"the message {key!r} of {self.language!r} cannot be filled in: {error}") from None

    def join(self, parts: list[str], last: str = "and") -> str:
        """Join parts to a list in a sentence: `a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {self.text(last)} {parts[-1]}"


def languages() -> tuple[str, ...]:
    """The languages that have a file."""
    return tuple(sorted(each.name.removesuffix(".toml") for each in FOLDER.iterdir() if each.name.endswith(".toml")))


def load_catalogue(language: str) -> Catalogue:
    """Load the messages of a language such as `de`, optionally with a region for numbers and dates: `de-CH`."""
    known, match = languages(), LANGUAGE.fullmatch(language) if isinstance(language, str) else None
    if match is None or match[1] not in known:
        raise InputError(f"language is {show(language)}; {suggest(language, known)}known: {listing(known)}")
    loaded = _read(language, match[1])
    loaded.locale  # noqa: B018  # raises now if the region is unknown
    return loaded


@cache
def _read(language: str, base_language: str) -> Catalogue:
    return Catalogue.parse(language, FOLDER.joinpath(f"{base_language}.toml").read_text(encoding="utf-8"))


@cache
def _locale(language: str, usual: str) -> Locale:
    from babel import Locale, UnknownLocaleError  # slow to import, and not always needed

    match = LANGUAGE.fullmatch(language)
    assert match is not None
    try:
        return Locale.parse(f"{match[1]}_{match[2].upper()}" if match[2] else usual)
    except (UnknownLocaleError, ValueError):
        raise InputError(f"language is {language!r}, whose region is unknown; use {match[1]!r}") from None
