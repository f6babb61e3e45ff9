"""Run jobs in several processes and yield their results as they arrive."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from queue import Empty
from typing import Any

from tdce._core import exit_with_parent, ignore_sigint

JOIN_SECONDS = 10  # that a worker has to end by itself before it is killed


class _Done:
    """Sent by a worker at the end of its job."""


def stream(work: Callable[..., Iterator[Any]], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """Yield the items of `work(*job)` for every job, from up to `workers` processes. An error in one process stops all
    of them, as does the end of this process."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    waiting, running, left = list(jobs), 0, len(jobs)
    processes = []
    try:
        while left:
            while waiting and running < workers:
                process = context.Process(target=_worker, args=(queue, work, waiting.pop(0)), daemon=True)
                with ignore_sigint():
                    process.start()
                processes.append(process)
                running += 1
            try:
                item = queue.get(timeout=1)
            except Empty:
                _check_alive([process.exitcode for process in processes])
                continue
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, _Done):
                left, running = left - 1, running - 1
            else:
                yield item
    finally:
        for process in processes if left else ():
            process.terminate()
        for process in processes:
            process.join(JOIN_SECONDS)
            process.kill()


def _check_alive(codes: list[int | None]) -> None:
    """Raise an error unless every process is running (exit code None) or has finished (0), and one is running."""
    failures = [code for code in codes if code]
    if failures or None not in codes:
        raise ChildProcessError(
            f"a worker process died (exit code {failures[0] if failures else 0}). Finished work is saved: run the "
            "command again to continue, with --workers 1 if memory is short"
        )


def _worker(queue, work, job) -> None:  # type: ignore[no-untyped-def]
    exit_with_parent()
    try:
        for item in work(*job):
            queue.put(item)
        queue.put(_Done())
    except Exception as error:
        queue.put(error)
