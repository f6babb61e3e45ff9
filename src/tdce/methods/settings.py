"""The settings of a method: each of the kind that its class says, each number in a range that it can work with."""

from __future__ import annotations

from functools import cache
from numbers import Real
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tdce.errors import InputError, is_whole, listing

MANY = 1_000_000_000
LEAST = 1e-6  # of what must be more than nothing
LONGEST = 100  # of a list of numbers

Range = tuple[float, float]


def check(method: Any, **ranges: Range) -> None:
    """Name the first setting that is of another kind or out of its range; every number has one."""
    for name, kind in kinds(method.__class__).items():
        wanted = _wanted(getattr(method, name), kind, ranges.get(name))
        if wanted:
            raise InputError(f"{name} {getattr(method, name)!r:.80} must {wanted}")


@cache
def kinds(method: Any) -> dict[str, Any]:
    """The settings of a class of methods and their types; names that end in _ are learned."""
    return {name: kind for name, kind in get_type_hints(method).items() if not name.endswith("_")}


def _wanted(value: Any, kind: Any, within: Range | None) -> str:
    """What the value must be, or no word if it is that."""
    parts = get_args(kind)
    if kind is bool:
        return "" if isinstance(value, bool) else "be true or false"
    if get_origin(kind) is Literal:
        return "" if isinstance(value, str) and value in parts else f"be one of {listing(parts)}"
    if NoneType in parts:
        wanted = "" if value is None else _wanted(value, parts[0], within)
        return f"{wanted}, or be left out (None)" if wanted else ""
    assert within is not None, "a number needs a range"
    if get_origin(kind) is tuple:
        size = len(parts) if ... not in parts else None
        fits = isinstance(value, tuple) and (len(value) == size if size else len(value) <= LONGEST)
        many = f"{size} numbers" if size else f"up to {LONGEST} numbers"
        wanted = "" if fits else f"be {many}"
        return wanted or next(filter(None, (_wanted(v, parts[0], within) for v in value)), "")
    low, high = within
    if kind is int:
        return "" if is_whole(value) and low <= value <= high else f"be a whole number from {low:,} to {high:,}"
    number = isinstance(value, Real) and not isinstance(value, bool)
    return "" if number and low <= value <= high else f"lie between {low:g} and {high:g}"
