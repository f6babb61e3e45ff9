"""Argument checks: each returns the argument as a plain value, or raises an error that says what is expected."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tdce._core.errors import InputError, listing, show, suggest

LARGEST_COUNT = 1_000_000
"""Larger counts and weights are taken to be mistakes."""

WIDEST_LAYER = 16_384
"""The maximum width of a network's layer."""

LAST_SEED = 2**64 - 1

TAU_RANGE = (0.01, 100.0)
"""The range of temperatures of the relaxed categories."""

Choice = TypeVar("Choice", bound=str)
Kind = TypeVar("Kind")


def check_integer(name: str, value: Any, low: int, high: int = LARGEST_COUNT) -> int:
    """The argument as an integer from `low` to `high`; flags and text do not count as numbers."""
    if is_integer(value) and low <= value <= high:
        return int(value)
    raise InputError(f"{name} is {show(value)}; it must be a whole number from {low} to {high}")


def is_integer(value: Any) -> bool:
    """Whether a value is an integer; flags do not count as numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_number(
    name: str, value: Any, low: float, high: float = LARGEST_COUNT, above: bool = False, below: bool = False
) -> float:
    """The argument as a finite number from `low` to `high`; `above` and `below` exclude the ends."""
    if isinstance(value, Real) and not isinstance(value, bool) and bool(low <= value <= high):  # type: ignore[operator]
        plain = _finite(value)
        if plain is not None and not (above and plain == low) and not (below and plain == high):
            return plain
    if math.isinf(low) and math.isinf(high):
        raise InputError(f"{name} is {show(value)}; it must be a finite number")
    first, last = "above" if above else "at least" if below else "from", "below" if below else "at most"
    ends = f"{first} {low:g} {f'and {last}' if above or below else 'to'} {high:,.15g}"
    raise InputError(f"{name} is {show(value)}; it must be a number {ends}")


def _finite(value: Real) -> float | None:
    try:
        plain = float(value)
    except OverflowError:  # an integer of more than 308 digits
        return None
    return plain if math.isfinite(plain) else None


def check_choice(name: str, value: Choice, choices: Iterable[str]) -> Choice:
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    raise InputError(f"{name} is {show(value)}; {suggest(value, known)}it must be one of {listing(known)}")


def check_flag(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputError(f"{name} is {show(value)}; it must be True or False")


def check_sequence(
    name: str, value: Any, size: int | None, check: Callable[..., Any], *bounds: Any, **options: Any
) -> tuple[Any, ...]:
    """The argument as a tuple of `size` values (None: one or more) that each pass the check."""
    if not isinstance(value, list | tuple) or (len(value) != size if size else not value):
        raise InputError(f"{name} is {show(value)}; it must be a list of {size or 'one or more'} values")
    return tuple(check(name, each, *bounds, **options) for each in value)


def check_optional(name: str, value: Any, check: Callable[..., Any], *bounds: Any, **options: Any) -> Any:
    """None, or the argument if it passes the check."""
    return None if value is None else check(name, value, *bounds, **options)


def check_names(what: str, value: Any) -> tuple[Hashable, ...]:
    """The argument as a tuple of column names; a single name is not a list."""
    names = _list_of("names", what, value)
    for name in names:
        if not is_name(name):
            raise InputError(f"{what} has {show(name)}, which is not a column name; give a list of names")
    return names


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a column, i.e. be looked up."""
    try:
        hash(value)
    except Exception:  # a list in a tuple, lists nested too deep, a user's class
        return False
    return True


def check_texts(what: str, value: Any) -> tuple[str, ...]:
    """The argument as a tuple of texts; a single text is not a list."""
    texts = _list_of("texts", what, value)
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"{what} has {show(text)}; each must be text, such as 'loan <= 5 * income'")
    return texts


def _list_of(kind: str, what: str, value: Any) -> tuple[Any, ...]:
    scalar = isinstance(value, str | bytes) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if scalar or not isinstance(value, Iterable):
        raise InputError(f"{what} must be a list of {kind}: {what}=[{show(value)}]")
    return tuple(value)


def check_text(name: str, value: Any) -> str:
    """The argument as text that UTF-8 can encode."""
    if isinstance(value, str) and value.encode(errors="replace").decode() == value:  # no lone surrogate
        return value
    raise InputError(f"{name} is {show(value)}; it must be text")


def check_mapping(name: str, value: Any, contents: str) -> Mapping[Any, Any]:
    """The argument as a mapping; `contents` describes its keys and values."""
    if isinstance(value, Mapping):
        return value
    raise InputError(f"{name} is {show(value)}; it must be a mapping from {contents}")


def check_type(name: str, value: Any, kind: type[Kind], way_out: str) -> Kind:
    """The argument, if it is of this class; `way_out` says how to get one."""
    if isinstance(value, kind):
        return value
    raise InputError(f"{name} is {show(value)}; {way_out}")


def check_path(name: str, value: Any) -> Path:
    """The argument as a path that the system accepts, whether or not the file exists."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or "\0" in text:
        raise InputError(f"{name} is {show(value)}; it must be the name of a file")
    try:
        os.lstat(text)
    except UnicodeEncodeError:
        raise InputError(f"{name} is {show(value)}, which cannot be the name of a file; correct it") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{name} is {show(text)}, which is too long for the name of a file") from None
    return Path(text)
