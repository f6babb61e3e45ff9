"""The language of the pages: which one somebody reads, and the words of it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from tdce.report import Message, languages, load_catalogue

COOKIE = "tdce-language"  # what was chosen on a page; it holds a language and nothing else
PREFIX = "studio_"  # of the messages that the pages use
SHARED = ("quoted", "not_known", "yes", "no")  # besides
USUAL = "en"


def request_language(request: Request) -> str:
    """What the address asks for, or what was chosen before, or what the browser prefers."""
    asked = (request.query_params.get("lang"), request.cookies.get(COOKIE))
    known = languages()
    for wanted in (*asked, *preferred(request.headers.get("accept-language", ""))):
        if (tongue := (wanted or "").lower().split("-")[0]) in known:
            return tongue
    return USUAL


def preferred(header: str) -> list[str]:
    """The languages of `Accept-Language`, the dearest first: `de-CH, fr;q=0.7`; one of weight 0 is not wanted."""
    found = []
    for part in header.split(","):
        name, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=")) if rest else 1.0
        except ValueError:
            weight = 0.0
        if name and 0 < weight <= 1:
            found.append((-weight, name.strip()))
    return [name for _, name in sorted(found, key=lambda each: each[0])]


def words_of(language: str) -> dict[str, Any]:
    """All that the pages say, and how numbers are written."""
    told = load_catalogue(language)
    return {
        "language": told.language,
        "locale": str(told.locale).replace("_", "-"),
        "languages": {each: load_catalogue(each).text("name") for each in languages()},
        "messages": _messages(told.messages),
    }


def _messages(every: dict[str, Message]) -> dict[str, Message]:
    own = {key.removeprefix(PREFIX): message for key, message in every.items() if key.startswith(PREFIX)}
    return own | {key: every[key] for key in SHARED}
