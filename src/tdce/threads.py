"""How many threads to work with: as many as turn out to be fastest, here and now."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

TRIED = 2  # blocks with each number of threads


class Threads:
    """Times the first blocks of a long piece of work with all threads and with one, and keeps to the faster.

    These matrices are small: on a quiet machine a second thread helps a little, on a busy one it costs a lot. Results
    do not depend on it, to the bit.
    """

    def __init__(self, blocks: int) -> None:
        self.usual = torch.get_num_threads()
        worth_it = self.usual > 1 and blocks > 2 * TRIED + 1
        self.plan = [self.usual, *[self.usual, 1] * TRIED] if worth_it else []  # the first is a warm-up
        self.seconds: dict[int, list[float]] = {}

    @contextmanager
    def block(self) -> Iterator[None]:
        """Around the work on one block."""
        trial = self.plan.pop(0) if self.plan else None
        warm = trial is not None and len(self.plan) == 2 * TRIED
        torch.set_num_threads(trial or self.best())
        began = time.perf_counter()
        try:
            yield
        finally:
            torch.set_num_threads(self.usual)
        if trial is not None and not warm:
            self.seconds.setdefault(trial, []).append(time.perf_counter() - began)

    def best(self) -> int:
        return min(self.seconds, key=lambda count: min(self.seconds[count]), default=self.usual)


@contextmanager
def one_thread() -> Iterator[None]:
    """For what must come out the same on every machine: sums in training depend on the number of threads."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(usual)
