"""Long work in several processes: what each job yields, as it comes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from queue import Empty
from typing import Any


class _Done:
    """A job has come to its end."""


def stream(work: Callable[..., Iterator[Any]], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """The items of `work(*job)` for every job, from `workers` processes; an error in one of them ends all."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    waiting, running, left = list(jobs), 0, len(jobs)
    processes = []
    try:
        while left:
            while waiting and running < workers:
                process = context.Process(target=_worker, args=(queue, work, waiting.pop(0)), daemon=True)
                process.start()
                processes.append(process)
                running += 1
            try:
                found = queue.get(timeout=1)
            except Empty:
                lost = [p for p in processes if p.exitcode not in (None, 0)]
                if lost:
                    raise RuntimeError(f"a worker process died with exit code {lost[0].exitcode}") from None
                continue
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, _Done):
                left, running = left - 1, running - 1
            else:
                yield found
    finally:
        for process in processes:
            process.terminate()


def _worker(queue, work, job) -> None:  # type: ignore[no-untyped-def]
    try:
        for item in work(*job):
            queue.put(item)
        queue.put(_Done())
    except Exception as error:
        queue.put(error)
