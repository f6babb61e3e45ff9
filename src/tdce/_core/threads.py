"""The number of torch threads: whichever turns out to be faster, all or one.

Torch keeps the number separately for each thread of the process, so setting it for a moment disturbs no other thread,
except one that starts in that moment and inherits it. Therefore only the main thread tries other numbers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

TRIAL_BLOCKS = 2  # with each number of threads

if hasattr(os, "register_at_fork"):  # a forked process has lost the other threads and would wait for them
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


class Threads:
    """Times the first blocks of long work with all threads and with one, and keeps the faster setting.

    These matrices are small: on a quiet machine a second thread helps a little, on a busy one it costs a lot. Results
    have the same bits either way. In threads other than the main one, as in a server, the number is left alone.
    """

    def __init__(self, blocks: int) -> None:
        self.usual = torch.get_num_threads()
        in_main = threading.current_thread() is threading.main_thread()
        worth_it = in_main and self.usual > 1 and blocks > 2 * TRIAL_BLOCKS + 1
        self.plan = [self.usual, *[self.usual, 1] * TRIAL_BLOCKS] if worth_it else []  # the first is a warm-up
        self.seconds: dict[int, list[float]] = {}

    @contextmanager
    def block(self) -> Iterator[None]:
        """Around the work on one block."""
        trial = self.plan.pop(0) if self.plan else None
        warm_up = trial is not None and len(self.plan) == 2 * TRIAL_BLOCKS
        began = time.perf_counter()
        with _threads(trial or self.best()):
            yield
        if trial is not None and not warm_up:
            self.seconds.setdefault(trial, []).append(time.perf_counter() - began)

    def best(self) -> int:
        return min(self.seconds, key=lambda count: min(self.seconds[count]), default=self.usual)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread, for what must be the same on every machine: sums in training depend on the number of threads."""
    with _threads(1):
        yield


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
