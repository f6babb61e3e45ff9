"""The error for wrong input, which names the column, the value and the remedy, and helpers for its text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Any

LONGEST_TYPO, MOST_COMPARED = 100, 2_000  # letters and names; beyond these, a suggestion would take too long


class InputError(ValueError):
    """Wrong input from the user: a table, a file or an argument. The command line exits with 2.

    `case` and `facts` are the message as data, for rewording it, e.g. in another language.
    """

    def __init__(self, message: str = "", case: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.case, self.facts = case, facts


class NotFittedError(InputError, AttributeError):
    """The explainer has not been fitted yet."""


def show(value: Any, most: int = 80, spell: Callable[[Any], str] = repr) -> str:
    """A value as text for a message, on one line of at most `most` characters."""
    try:
        text = " ".join(spell(plain(value)).splitlines())
    except Exception:  # a number of 5,000 digits, lists nested too deep, a user's class
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plain(value: Any) -> Any:
    """A cell as a plain Python value: NumPy scalars are unwrapped, narrow floats by their shortest decimal text."""
    import numpy as np  # imported here, since errors alone do not need it

    if isinstance(value, np.floating) and value.itemsize < 8:
        return float(str(value))  # a float32 of 0.1 is 0.1, not 0.10000000149011612
    return value.item() if isinstance(value, np.generic) else value


def closest(value: Any, known: Iterable[Any], cutoff: float = 0.6) -> Any:
    """The known name or value most similar to this one, ignoring case, or None."""
    text = show(value, LONGEST_TYPO, str).casefold()
    by_text = {str(each).casefold(): each for each in islice(known, MOST_COMPARED)}
    matches = get_close_matches(text, by_text, n=1, cutoff=cutoff)
    return by_text[matches[0]] if matches else None


def suggest(value: Any, known: Iterable[Any], spell: Callable[[Any], str] = show, cutoff: float = 0.6) -> str:
    """`did you mean 'income'? ` for an error about an unknown name, to stand before the list of known ones."""
    match = closest(value, known, cutoff)
    return "" if match is None else f"did you mean {spell(match)}? "


def listing(values: object, most: int = 12) -> str:
    """The first `most` values for a message, e.g. `own, rent, free`."""
    texts = [show(v, spell=str) for v in values]  # type: ignore[attr-defined]
    more = f", … ({len(texts) - most} more)" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
