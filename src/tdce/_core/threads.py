"""The number of torch threads: one, or all where long work turns out to be faster with them.

Torch keeps this number separately for each thread of the process, so setting it for a moment affects no other thread,
except one that starts in that moment and inherits it. Only the main thread therefore tries other numbers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

TRIAL_BLOCKS = 2  # with each number of threads
MIN_GAIN = 1.25  # least speed-up by all threads over one; threads that wait for each other still use the CPU

if hasattr(os, "register_at_fork"):  # a forked process lacks the other threads and would wait for them
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class _State(threading.local):
    usual: int | None = None  # the user's number, while `few_threads` has set another
    chosen: bool = False  # whether `Threads` has set the number for everything inside


_state = _State()


class Threads:
    """Times the first blocks of long work with all threads and with one, and keeps all only if they are much faster.

    The matrices are small: a second thread helps a little on an idle machine, and costs a lot on a busy one. Short work
    therefore has one thread. Results have the same bits either way. In threads other than the main one, as in a server,
    and inside a block of longer work, the number is left unchanged.
    """

    def __init__(self, blocks: int) -> None:
        fixed = _left_alone()
        self.usual = torch.get_num_threads() if fixed else _state.usual or torch.get_num_threads()
        self.few = self.usual if fixed else 1
        worth_it = not fixed and self.usual > 1 and blocks > 2 * TRIAL_BLOCKS + 1
        self.plan = [self.usual, *[self.usual, 1] * TRIAL_BLOCKS] if worth_it else []  # the first is a warm-up
        self.seconds: dict[int, list[float]] = {}

    @contextmanager
    def block(self) -> Iterator[None]:
        """Context of the work on one block."""
        trial = self.plan.pop(0) if self.plan else None
        warm_up = trial is not None and len(self.plan) == 2 * TRIAL_BLOCKS
        began, before = time.perf_counter(), _state.chosen
        with _threads(trial or self.best()):
            _state.chosen = True
            try:
                yield
            finally:
                _state.chosen = before
        if trial is not None and not warm_up:
            self.seconds.setdefault(trial, []).append(time.perf_counter() - began)

    def best(self) -> int:
        if len(self.seconds) < 2:
            return self.few
        all_threads, one = min(self.seconds[self.usual]), min(self.seconds[1])
        return self.usual if MIN_GAIN * all_threads < one else 1


@contextmanager
def few_threads() -> Iterator[None]:
    """One thread for a whole call, except for blocks that `Threads` finds to be faster with more."""
    if _left_alone() or _state.usual is not None:
        yield
        return
    _state.usual = torch.get_num_threads()
    try:
        with _threads(1):
            yield
    finally:
        _state.usual = None


@contextmanager
def usual_threads() -> Iterator[None]:
    """The user's number of threads within `few_threads`, since the user's model may be large."""
    with _threads(_state.usual or torch.get_num_threads()):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, for results that must be the same everywhere: sums in training depend on the number of threads."""
    with _threads(1):
        yield


def _left_alone() -> bool:
    """Whether the number must be left unchanged."""
    return _state.chosen or threading.current_thread() is not threading.main_thread()


@contextmanager
def _threads(count: int) -> Iterator[None]:
    usual = torch.get_num_threads()
    if count == usual:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
