"""Turns: long work stops between two queries of a model to ask whether others should go first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_local = threading.local()  # `pause` of this thread, if it takes turns with others


@contextmanager
def taking_turns(pause: Callable[[], None]) -> Iterator[None]:
    """In this thread, call `pause` before every query of a model. It may wait, or raise to give the work up; it changes
    nothing that the work computes."""
    _local.pause = pause
    try:
        yield
    finally:
        del _local.pause


def let_others_go_first() -> None:
    """Called before every query of a model."""
    if (pause := getattr(_local, "pause", None)) is not None:
        pause()
