"""Rules for JSON that is not trusted: exactly these names, each with such a value."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tdce.cells import is_number
from tdce.errors import InputError, is_whole


class Rule(NamedTuple):
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def whole_number(low: int, high: int) -> Rule:
    return Rule(f"a whole number from {low} to {high}", lambda v: is_whole(v) and low <= v <= high)


def or_null(rule: Rule) -> Rule:
    return Rule(f"{rule.words}, or null", lambda v: v is None or rule.holds(v))


def number(low: float, high: float) -> Rule:
    return Rule(f"a number from {low:g} to {high:g}", lambda v: is_number(v) and low <= v <= high)


TEXT = Rule("text", lambda v: isinstance(v, str))
FLAG = Rule("true or false", lambda v: isinstance(v, bool))
OBJECT = Rule("an object", lambda v: isinstance(v, dict))
NAME = Rule("text or a whole number", lambda v: isinstance(v, str) or is_whole(v))
LIST = Rule("a list", lambda v: isinstance(v, list))


def follow(value: Any, rules: Mapping[str, Any] | Rule, where: str) -> None:
    """The JSON against its rules, from the outside in."""
    if isinstance(rules, Rule):
        if not rules.holds(value):
            raise InputError(f"its {where} is {reprlib.repr(value)}, not {rules.words}")
        return
    if not isinstance(value, dict):
        raise InputError(f"its {where} is {reprlib.repr(value)}, not an object")
    same_names(value, rules, f"value of {where}" if where else "content")
    for name, inner in rules.items():
        follow(value[name], inner, f"{where} {name}".strip())


def same_names(found: Mapping[str, Any], wanted: Mapping[str, Any], what: str) -> None:
    for name in wanted:
        if name not in found:
            raise InputError(f"its {what} has no {name!r}")
    for name in found:
        if name not in wanted:
            raise InputError(f"its {what} has {reprlib.repr(name)}, which is not known")
