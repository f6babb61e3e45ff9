"""The one error that speaks to the user, naming the column, the value and the remedy, and checks of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class InputError(ValueError):
    """Something in the user's table, file or arguments is wrong; the command line exits with 2."""


class NotFittedError(InputError, AttributeError):
    """Something was asked of an explainer that has learned nothing yet."""


def show(value: Any, most: int = 80, spell: Callable[[Any], str] = repr) -> str:
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
