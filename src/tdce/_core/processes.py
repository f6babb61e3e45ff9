"""Processes that work for another one: they leave Ctrl-C to it, and end when it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread


@contextmanager
def ignore_sigint() -> Iterator[None]:
    """Ctrl-C goes to every process of a terminal; a worker started in here leaves it to its parent."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows, where Ctrl-C reaches the workers too
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def exit_with_parent() -> None:
    """End this process, by way of every `finally`, when it is asked to and when the one that started it is gone."""
    signal.signal(signal.SIGTERM, _end)
    Thread(target=_wait_for_parent, daemon=True).start()


def _end(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second request must not disturb the end
    sys.exit(1)


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
