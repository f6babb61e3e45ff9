"""The roles of columns, that is whether and how they may change, and proposing one from a column's name and values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, get_args

from tdce._core import InputError, Name, listing, show, suggest

if TYPE_CHECKING:
    from tdce.schema.columns.base import Column

Role = Literal["actionable", "immutable", "follows", "passes with time", "history", "identifier"]
ROLES: tuple[Role, ...] = get_args(Role)
SETTABLE: tuple[Role, ...] = tuple(role for role in ROLES if role != "follows")  # a law implies that one
FROZEN: tuple[Role, ...] = ("immutable", "identifier")  # always immutable
ONLY_UP: tuple[Role, ...] = ("passes with time", "history")  # may only increase, even if not immutable

UPPER, LOWER = "A-ZÄÖÜ", "a-zäöüß"
WORD_BOUNDARY = re.compile(f"(?<=[{LOWER}])(?=[{UPPER}])|(?<=[{UPPER}])(?=[{UPPER}][{LOWER}])")
SPELLING = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
MAX_WORDS_NOTHING = 4  # of a category such as "no known savings account"
YEARS = 1900, 2100  # numbers between these are years, not durations


def check_role(name: Name, role: Any) -> Role:
    """Check that a user may set this role."""
    if isinstance(role, str) and role == "follows":
        raise InputError(f"{name!r}: the role 'follows' comes from a law of the table and is not set; "
                         f"known: {listing(SETTABLE)}")  # fmt: skip
    for known in SETTABLE:
        if isinstance(role, str) and role == known:
            return known
    raise InputError(f"{name!r}: there is no role {show(role)}; {suggest(role, SETTABLE)}known: {listing(SETTABLE)}")


def propose_role(column: Column) -> tuple[Role, bool]:
    """Propose a role from a column's name and values, with whether it is certain. A certain role other than
    "actionable" means that nobody can change the column at will."""
    text = spell(column.name)
    if _is_age(text):
        return "passes with time", True
    if _has("protected", "names", text) or _has_protected_categories(column):
        return "immutable", True
    if is_bodily(column.name):
        return "immutable", True
    if _has("passes with time", "certain", text):
        return ("history" if _holds_years(column) else "passes with time"), True
    if _has("history", "certain", text):
        return "history", not _has("history", "present", text)
    if _has("outcome", "names", text):
        return "history", _has("outcome", "past", text)
    if _has("protected", "doubtful", text):
        return "immutable", False
    if _has("passes with time", "doubtful", text) and _is_ordered(column):
        return "passes with time", False
    if _has("history", "doubtful", text):
        return "history", False
    if _has("identifier", "doubtful", text):
        return "identifier", False
    return "actionable", True


def is_protected(name: Name) -> bool:
    """Whether a name denotes a protected attribute of a person: sex, race, religion, age, …"""
    text = spell(name)
    return _has("protected", "names", text) or (_is_age(text) and not _has("age", "accounts", text))


def is_bodily(name: Name) -> bool:
    """Whether a name denotes what nobody can change about their body: height, a blood group, …"""
    text = spell(name)
    return _has("body", "names", text) and not _has("body", "things", text) and not _has("age", "owned", text)


def is_outcome(name: Name) -> bool:
    """Whether a name denotes something known only after the decision: recoveries, charged off, …"""
    text = spell(name)
    return _has("outcome", "names", text) and not _has("outcome", "past", text)


def is_result(name: Name) -> bool:
    """Whether a name denotes a result computed from other columns: a total, an average, a ratio, …"""
    return _has("result", "names", spell(name))


def is_attained(name: Name) -> bool:
    """Whether a name denotes something that can rise but hardly fall: education, a degree, …"""
    return _has("rises", "names", spell(name))


def is_nothing(name: Name, category: Any) -> bool:
    """Whether a category says that a person lacks something good to have: no account; savings: none. Having no other
    debt is not meant."""
    text, words = spell(category), spell(category).split()
    if text in _words("nothing", "bare"):
        return _has("nothing", "things", spell(name))
    if text in _words("nothing", "always"):
        return True
    without = 2 <= len(words) <= MAX_WORDS_NOTHING and words[0] in _words("nothing", "without")
    return without and words[-1] in _words("nothing", "things")


def never_categories(categories: Iterable[Any]) -> list[Any]:
    """Those that nobody can enter, because they deny a past: "never smoked", if another one is "formerly smoked"."""
    texts = {category: spell(category) for category in categories}
    if not any(_has("never", "before", text) for text in texts.values()):
        return []
    return [category for category, text in texts.items() if _has("never", "never", text)]


def split_name(name: Name) -> list[str]:
    """The words of a column's name in lower case: native_country and NativeCountry have two."""
    return [word.lower() for word in re.split(r"[\W\d_]+", WORD_BOUNDARY.sub(" ", str(name))) if word]


def spell(name: Any) -> str:
    """The words of a name, separated by spaces, with umlauts spelled out."""
    return " ".join(split_name(name)).translate(SPELLING)


def _is_age(text: str) -> bool:
    return _has("age", "names", text) and not _has("age", "owned", text)


def _has_protected_categories(column: Column) -> bool:
    """Whether most of the categories are words for sexes, marital states or origins."""
    categories = [spell(value) for value in getattr(column, "categories", ())]
    if " ".join(sorted(categories)) in _words("protected", "codes"):
        return True
    found = sum(_has("protected", "categories", text) for text in categories)
    return found >= 2 and 2 * found >= len(categories)


def _holds_years(column: Column) -> bool:
    low, high = column.bounds
    return column.kind == "numeric" and YEARS[0] <= low and high <= YEARS[1]


def _is_ordered(column: Column) -> bool:
    return column.kind == "numeric" or bool(getattr(column, "order", ()))


def _has(section: str, key: str, text: str) -> bool:
    """Whether a spelled name contains a phrase from one of these lists of the vocabulary."""
    return bool(_pattern(section, key).search(text))


@cache
def _pattern(section: str, key: str) -> re.Pattern[str]:
    phrases = "|".join(re.escape(phrase).replace(r"\*", "[^ ]*") for phrase in _vocabulary()[section][key])
    return re.compile(f"(?<![^ ])(?:{phrases})(?![^ ])")


@cache
def _words(section: str, key: str) -> frozenset[str]:
    return frozenset(_vocabulary()[section][key])


@cache
def _vocabulary() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(files("tdce.schema").joinpath("roles.toml").read_text(encoding="utf-8"))
