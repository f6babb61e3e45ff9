"""Rules for JSON that is not trusted: exactly these names, each with such a value."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tdce._core.arguments import is_integer
from tdce._core.errors import InputError
from tdce._core.values import is_number


class Rule(NamedTuple):
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def integer_rule(low: int, high: int) -> Rule:
    return Rule(f"a whole number from {low} to {high}", lambda v: is_integer(v) and low <= v <= high)


def or_null(rule: Rule) -> Rule:
    return Rule(f"{rule.words}, or null", lambda v: v is None or rule.holds(v))


def number_rule(low: float, high: float) -> Rule:
    return Rule(f"a number from {low:g} to {high:g}", lambda v: is_number(v) and low <= v <= high)


TEXT = Rule("text", lambda v: isinstance(v, str))
FLAG = Rule("true or false", lambda v: isinstance(v, bool))
OBJECT = Rule("an object", lambda v: isinstance(v, dict))
NAME = Rule("text or a whole number", lambda v: isinstance(v, str) or is_integer(v))
LIST = Rule("a list", lambda v: isinstance(v, list))


def check_json(value: Any, rules: Mapping[str, Any] | Rule, where: str) -> None:
    """The JSON against its rules, from the outside in."""
    if isinstance(rules, Rule):
        if not rules.holds(value):
            raise InputError(f"its {where} is {reprlib.repr(value)}, not {rules.words}")
        return
    if not isinstance(value, dict):
        raise InputError(f"its {where} is {reprlib.repr(value)}, not an object")
    same_names(value, rules, f"value of {where}" if where else "content")
    for name, inner in rules.items():
        check_json(value[name], inner, f"{where} {name}".strip())


def same_names(found: Mapping[str, Any], wanted: Mapping[str, Any], what: str) -> None:
    for name in wanted:
        if name not in found:
            raise InputError(f"its {what} has no {name!r}")
    for name in found:
        if name not in wanted:
            raise InputError(f"its {what} has {reprlib.repr(name)}, which is not known")


def strict_json(text: bytes) -> Any:
    """JSON as tdce writes it, else a ValueError: no name twice in an object, nothing infinite, text that is text."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_number, parse_float=_number)
        json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name appears twice")
    return dict(pairs)


def _number(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a number")
    return value
