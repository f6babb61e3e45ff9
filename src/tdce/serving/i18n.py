"""The language of the pages: which one a request asks for, and its texts."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from tdce.report import Message, languages, load_catalogue

LANGUAGE_COOKIE = "tdce-language"  # the choice on a page; it holds a language and nothing else
MESSAGE_PREFIX = "studio_"  # of the messages that the pages use
SHARED_MESSAGES = ("quoted", "not_known", "yes", "no")  # other messages that they use
DEFAULT_LANGUAGE = "en"


def request_language(request: Request) -> str:
    """The language in the address, else the one chosen before, else the one the browser prefers."""
    chosen = (request.query_params.get("lang"), request.cookies.get(LANGUAGE_COOKIE))
    known = languages()
    for wanted in (*chosen, *parse_accept_language(request.headers.get("accept-language", ""))):
        if (language := (wanted or "").lower().split("-")[0]) in known:
            return language
    return DEFAULT_LANGUAGE


def parse_accept_language(header: str) -> list[str]:
    """The languages of `Accept-Language`, by descending weight: `de-CH, fr;q=0.7`; weight 0 excludes one."""
    weighted = []
    for part in header.split(","):
        name, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=")) if rest else 1.0
        except ValueError:
            weight = 0.0
        if name and 0 < weight <= 1:
            weighted.append((-weight, name.strip()))
    return [name for _, name in sorted(weighted, key=lambda each: each[0])]


def page_words(language: str) -> dict[str, Any]:
    """The texts of the pages, and the locale of their numbers."""
    catalogue = load_catalogue(language)
    return {
        "language": catalogue.language,
        "locale": str(catalogue.locale).replace("_", "-"),
        "languages": {each: load_catalogue(each).text("name") for each in languages()},
        "messages": _messages(catalogue.messages),
    }


def _messages(every: dict[str, Message]) -> dict[str, Message]:
    """The messages of a catalogue that the pages use, without their prefix."""
    own = {
        key.removeprefix(MESSAGE_PREFIX): message for key, message in every.items() if key.startswith(MESSAGE_PREFIX)
    }
    return own | {key: every[key] for key in SHARED_MESSAGES}
