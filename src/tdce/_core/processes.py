"""Worker processes: they leave Ctrl-C to their parent, and exit when the parent does."""

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
    """Make workers started in this context leave Ctrl-C, which all processes of a terminal get, to their parent."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows, where Ctrl-C reaches the workers too
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def exit_with_parent() -> None:
    """Exit this process on SIGTERM or when its parent is gone, running every `finally`."""
    signal.signal(signal.SIGTERM, _exit)
    Thread(target=_wait_for_parent, daemon=True).start()


def _exit(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    sys.exit(1)


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
