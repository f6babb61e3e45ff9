"""The one error that speaks to the user, naming the column, the value and the remedy, and checks of arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from importlib.util import find_spec
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

MOST = 1_000_000
"""A count or a weight beyond this is a slip."""

WIDEST = 16_384
"""No layer of a network is wider."""

LAST_SEED = 2**64 - 1

TAU_RANGE = (0.01, 100.0)
"""For a temperature of the relaxed categories."""

Choice = TypeVar("Choice", bound=str)

EXTRA = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}
"""The libraries of the extra `tdce[paper]`: by the name of the import, and by the name of the package."""

STUDIO = {"fastapi": "fastapi", "uvicorn": "uvicorn", "prometheus_client": "prometheus-client"}
"""Those of the extra `tdce[studio]`."""


class InputError(ValueError):
    """Something in the user's table, file or arguments is wrong; the command line exits with 2."""


def whole(name: str, value: Any, low: int, high: int = MOST) -> int:
    """The argument as a whole number from `low` to `high`; flags and text are not numbers."""
    if is_whole(value) and low <= value <= high:
        return int(value)
    raise InputError(f"{name} is {shown(value)}; it must be a whole number from {low} to {high}")


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number; flags are not numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def number(name: str, value: Any, low: float, high: float = MOST, above: bool = False, below: bool = False) -> float:
    """The argument as a finite number from `low` to `high`; `above` and `below` leave the ends themselves out."""
    if isinstance(value, Real) and not isinstance(value, bool) and bool(low <= value <= high):  # type: ignore[operator]
        plain = float(value)
        if not (above and plain == low) and not (below and plain == high):
            return plain
    first, last = "above" if above else "at least" if below else "from", "below" if below else "at most"
    ends = f"{first} {low:g} {f'and {last}' if above or below else 'to'} {high:,.15g}"
    raise InputError(f"{name} is {shown(value)}; it must be a number {ends}")


def one_of(name: str, value: Choice, choices: Iterable[str]) -> Choice:
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    raise InputError(f"{name} is {shown(value)}; it must be one of {listing(known)}")


def flag(name: str, value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InputError(f"{name} is {shown(value)}; it must be True or False")


def several(
    name: str, value: Any, size: int | None, check: Callable[..., Any], *limits: Any, **more: Any
) -> tuple[Any, ...]:
    """A list or tuple of values that each pass the check: `size` of them, or one or more (None)."""
    if not isinstance(value, list | tuple) or (len(value) != size if size else not value):
        raise InputError(f"{name} is {shown(value)}; it must be a list of {size or 'one or more'} values")
    return tuple(check(name, each, *limits, **more) for each in value)


def optional(name: str, value: Any, check: Callable[..., Any], *limits: Any, **more: Any) -> Any:
    """None, or a value that passes the check."""
    return None if value is None else check(name, value, *limits, **more)


def names(what: str, value: Any) -> tuple[Hashable, ...]:
    """A list of column names; a single name is not a list."""
    found = _list_of("names", what, value)
    for name in found:
        if not isinstance(name, Hashable):
            raise InputError(f"{what} has {shown(name)}, which is not a column name; give a list of names")
    return found


def texts(what: str, value: Any) -> tuple[str, ...]:
    """A list of texts; a single text is not a list."""
    found = _list_of("texts", what, value)
    for text in found:
        if not isinstance(text, str):
            raise InputError(f"{what} has {shown(text)}; each must be text, such as 'loan <= 5 * income'")
    return found


def _list_of(kind: str, what: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"{what} must be a list of {kind}: {what}=[{shown(value)}]")
    return tuple(value)


def file_path(name: str, value: Any) -> Path:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str) and "\0" not in text:
        return Path(text)
    raise InputError(f"{name} is {shown(value)}; it must be the name of a file")


def require_paper(what: str, *modules: str) -> None:
    """An error that says what to install if one of the extra's libraries is missing."""
    for module in modules:
        if find_spec(module) is None:
            raise InputError(f"{what} needs {EXTRA[module]}; install it with `pip install 'tdce[paper]'`")


def require_studio(what: str) -> None:
    """The same for the extra `tdce[studio]`."""
    for module, package in STUDIO.items():
        if find_spec(module) is None:
            raise InputError(f"{what} needs {package}; install it with `pip install 'tdce[studio]'`")


def require_engine(module: str) -> None:
    """An error that says what to install if an engine is missing."""
    if find_spec(module) is None:
        extra = {"ray": "ray", "pyspark": "spark"}[module]
        raise InputError(f"this needs {module}; install it with `pip install 'tdce[{extra}]'`")


def shown(value: Any, most: int = 80, spell: Callable[[Any], str] = repr) -> str:
    """Any value for a message, on one line and cut short."""
    try:
        text = " ".join(spell(value.item() if isinstance(value, np.generic) else value).splitlines())
    except Exception:  # a number of 5,000 digits, lists a thousand deep, a class of someone's own
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def listing(values: object, most: int = 12) -> str:
    """A short list of values for an error message, e.g. `own, rent, free`."""
    words = [str(v) for v in values]  # type: ignore[attr-defined]
    more = f", … ({len(words) - most} more)" if len(words) > most else ""
    return ", ".join(words[:most]) + more
