"""The settings of a method: each of the kind that its class says, each number in a range that it can work with."""

from __future__ import annotations

from dataclasses import fields
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tdce._core import check_choice, check_flag, check_integer, check_number, check_optional, check_sequence

LEAST = 1e-6  # of what must be more than nothing

Range = tuple[float, float]


def check_settings(method: Any, **ranges: Range) -> None:
    """Put every setting of a frozen class into its plain form, or name the first that is of another kind or out of its
    range; every number has a range. Only for `__post_init__`."""
    for name, kind in setting_types(method.__class__).items():
        object.__setattr__(method, name, _plain(name, getattr(method, name), *ranges.get(name, ()), kind=kind))


@cache
def setting_types(method: Any) -> dict[str, Any]:
    """The settings of a class of methods and their types; names that end in _ are learned."""
    types = get_type_hints(method)
    return {field.name: types[field.name] for field in fields(method) if not field.name.endswith("_")}


def _plain(name: str, value: Any, *within: Any, kind: Any) -> Any:
    """The value as its type says, if it is that."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return check_choice(name, value, parts)
    if NoneType in parts:
        return check_optional(name, value, partial(_plain, kind=parts[0]), *within)
    if get_origin(kind) is tuple:
        return check_sequence(
            name, value, None if ... in parts else len(parts), partial(_plain, kind=parts[0]), *within
        )
    if kind is bool:
        return check_flag(name, value)
    return check_integer(name, value, *within) if kind is int else check_number(name, value, *within)
