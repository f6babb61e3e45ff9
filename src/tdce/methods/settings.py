"""Checks of a method's settings: each of the declared type, each number in its range."""

from __future__ import annotations

from dataclasses import fields
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tdce._core import check_choice, check_flag, check_integer, check_number, check_optional, check_sequence

POSITIVE = 1e-6  # the least value of a setting that must be greater than 0

Range = tuple[float, float]


def check_settings(method: Any, **ranges: Range) -> None:
    """Check every setting of a frozen dataclass against its type and range, and store it as a plain value; an error
    names the first that does not fit. Every number needs a range. For use in `__post_init__` only."""
    for name, kind in setting_types(method.__class__).items():
        object.__setattr__(method, name, _check(name, getattr(method, name), *ranges.get(name, ()), kind=kind))


@cache
def setting_types(method: Any) -> dict[str, Any]:
    """The settings of a method's class and their types; fields that end in _ are learned, not set."""
    types = get_type_hints(method)
    return {field.name: types[field.name] for field in fields(method) if not field.name.endswith("_")}


def _check(name: str, value: Any, *within: Any, kind: Any) -> Any:
    """The value in plain form; an error if it is not of this type."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return check_choice(name, value, parts)
    if NoneType in parts:
        return check_optional(name, value, partial(_check, kind=parts[0]), *within)
    if get_origin(kind) is tuple:
        return check_sequence(
            name, value, None if ... in parts else len(parts), partial(_check, kind=parts[0]), *within
        )
    if kind is bool:
        return check_flag(name, value)
    return check_integer(name, value, *within) if kind is int else check_number(name, value, *within)
