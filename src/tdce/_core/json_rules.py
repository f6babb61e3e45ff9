"""Rules for untrusted JSON: exactly these names, each with a value of this form."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tdce._core.arguments import is_integer
from tdce._core.errors import InputError
from tdce._core.values import is_number


class JsonRule(NamedTuple):
    """A requirement on a value, in words and as a predicate."""

    words: str
    holds: Callable[[Any], bool]


def json_integer(low: int, high: int) -> JsonRule:
    return JsonRule(f"a whole number from {low} to {high}", lambda v: is_integer(v) and low <= v <= high)


def json_number(low: float, high: float) -> JsonRule:
    return JsonRule(f"a number from {low:g} to {high:g}", lambda v: is_number(v) and low <= v <= high)


def json_or_null(rule: JsonRule) -> JsonRule:
    return JsonRule(f"{rule.words}, or null", lambda v: v is None or rule.holds(v))


JSON_TEXT = JsonRule("text", lambda v: isinstance(v, str))
JSON_FLAG = JsonRule("true or false", lambda v: isinstance(v, bool))
JSON_OBJECT = JsonRule("an object", lambda v: isinstance(v, dict))
JSON_NAME = JsonRule("text or a whole number", lambda v: isinstance(v, str) or is_integer(v))
JSON_LIST = JsonRule("a list", lambda v: isinstance(v, list))


def check_json(value: Any, rules: Mapping[str, Any] | JsonRule, where: str) -> None:
    """Check a JSON value against its rules, from the outermost level inwards."""
    if isinstance(rules, JsonRule):
        if not rules.holds(value):
            raise InputError(f"its {where} is {reprlib.repr(value)}, not {rules.words}")
        return
    if not isinstance(value, dict):
        raise InputError(f"its {where} is {reprlib.repr(value)}, not an object")
    check_json_names(value, rules, f"value of {where}" if where else "content")
    for name, inner in rules.items():
        check_json(value[name], inner, f"{where} {name}".strip())


def check_json_names(entry: Mapping[str, Any], expected: Mapping[str, Any], what: str) -> None:
    """Check that an object has exactly the expected names."""
    for name in expected:
        if name not in entry:
            raise InputError(f"its {what} has no {name!r}")
    for name in entry:
        if name not in expected:
            raise InputError(f"its {what} has {reprlib.repr(name)}, which is not known")


def parse_strict_json(text: bytes) -> Any:
    """Parse JSON strictly, or raise a ValueError: no duplicate names, no infinite numbers, only valid Unicode."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_number, parse_float=_number)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be encoded
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
