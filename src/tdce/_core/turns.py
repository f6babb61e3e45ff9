"""Turns: long work pauses between two queries of a model, to check whether others should go first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_local = threading.local()  # this thread's `pause`, if it takes turns with others


@contextmanager
def taking_turns(pause: Callable[[], None]) -> Iterator[None]:
    """In this thread, call `pause` before every query of a model. It may wait, or raise an error to abandon the work;
    it does not affect what is computed."""
    _local.pause = pause
    try:
        yield
    finally:
        del _local.pause


def let_others_go_first() -> None:
    """Call this thread's `pause`, if any; to be called before every query of a model."""
    if (pause := getattr(_local, "pause", None)) is not None:
        pause()
