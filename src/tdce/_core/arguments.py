"""Checks of arguments: each returns the plain value, or says what is wrong and what is expected."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tdce._core.errors import InputError, listing, show

LARGEST_COUNT = 1_000_000
"""A count or a weight beyond this is a slip."""


WIDEST_LAYER = 16_384
"""No layer of a network is wider."""


LAST_SEED = 2**64 - 1


TAU_RANGE = (0.01, 100.0)
"""For a temperature of the relaxed categories."""


Choice = TypeVar("Choice", bound=str)


def check_integer(name: str, value: Any, low: int, high: int = LARGEST_COUNT) -> int:
    """The argument as a whole number from `low` to `high`; flags and text are not numbers."""
    if is_integer(value) and low <= value <= high:
        return int(value)
    raise InputError(f"{name} is {show(value)}; it must be a whole number from {low} to {high}")


def is_integer(value: Any) -> bool:
    """Whether a value is a whole number; flags are not numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_number(
    name: str, value: Any, low: float, high: float = LARGEST_COUNT, above: bool = False, below: bool = False
) -> float:
    """The argument as a finite number from `low` to `high`; `above` and `below` leave the ends themselves out."""
    if isinstance(value, Real) and not isinstance(value, bool) and bool(low <= value <= high):  # type: ignore[operator]
        plain = float(value)
        if not (above and plain == low) and not (below and plain == high):
            return plain
    first, last = "above" if above else "at least" if below else "from", "below" if below else "at most"
    ends = f"{first} {low:g} {f'and {last}' if above or below else 'to'} {high:,.15g}"
    raise InputError(f"{name} is {show(value)}; it must be a number {ends}")


def check_choice(name: str, value: Choice, choices: Iterable[str]) -> Choice:
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    raise InputError(f"{name} is {show(value)}; it must be one of {listing(known)}")


def check_flag(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputError(f"{name} is {show(value)}; it must be True or False")


def check_sequence(
    name: str, value: Any, size: int | None, check: Callable[..., Any], *feasible: Any, **more: Any
) -> tuple[Any, ...]:
    """A list or tuple of values that each pass the check: `size` of them, or one or more (None)."""
    if not isinstance(value, list | tuple) or (len(value) != size if size else not value):
        raise InputError(f"{name} is {show(value)}; it must be a list of {size or 'one or more'} values")
    return tuple(check(name, each, *feasible, **more) for each in value)


def check_optional(name: str, value: Any, check: Callable[..., Any], *feasible: Any, **more: Any) -> Any:
    """None, or a value that passes the check."""
    return None if value is None else check(name, value, *feasible, **more)


def check_names(what: str, value: Any) -> tuple[Hashable, ...]:
    """A list of column names; a single name is not a list."""
    found = _list_of("names", what, value)
    for name in found:
        if not isinstance(name, Hashable):
            raise InputError(f"{what} has {show(name)}, which is not a column name; give a list of names")
    return found


def check_texts(what: str, value: Any) -> tuple[str, ...]:
    """A list of texts; a single text is not a list."""
    found = _list_of("texts", what, value)
    for text in found:
        if not isinstance(text, str):
            raise InputError(f"{what} has {show(text)}; each must be text, such as 'loan <= 5 * income'")
    return found


def _list_of(kind: str, what: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{what} must be a list of {kind}: {what}=[{show(value)}]")
    return tuple(value)


def check_path(name: str, value: Any) -> Path:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str) and "\0" not in text:
        return Path(text)
    raise InputError(f"{name} is {show(value)}; it must be the name of a file")
