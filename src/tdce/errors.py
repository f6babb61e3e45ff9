"""The one error that speaks to the user: it names the column, the value and the way out."""

from numbers import Integral
from typing import Any


class InputError(ValueError):
    """Something in the user's table, file or arguments is wrong; the command line exits with 2."""


def is_whole(value: Any) -> bool:
    """Whether an argument is a whole number; flags are not numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def listing(values: object, most: int = 12) -> str:
    """A short list of values for an error message, e.g. `own, rent, free`."""
    words = [str(v) for v in values]  # type: ignore[attr-defined]
    more = f", … ({len(words) - most} more)" if len(words) > most else ""
    return ", ".join(words[:most]) + more
