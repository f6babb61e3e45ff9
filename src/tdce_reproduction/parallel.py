"""Long work in several processes: what each job yields, as it comes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from queue import Empty
from typing import Any

from tdce._core import exit_with_parent, ignore_sigint

PATIENCE = 10  # seconds that a worker has to end by itself


class _Done:
    """A job has come to its end."""


def stream(work: Callable[..., Iterator[Any]], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """The items of `work(*job)` for every job, from `workers` processes; an error in one of them ends all of them, and
    so does any end of this process."""
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
                found = queue.get(timeout=1)
            except Empty:
                _check_alive([process.exitcode for process in processes])
                continue
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, _Done):
                left, running = left - 1, running - 1
            else:
                yield found
    finally:
        for process in processes if left else ():
            process.terminate()
        for process in processes:
            process.join(PATIENCE)
            process.kill()


def _check_alive(codes: list[int | None]) -> None:
    """All processes still run (None) or have come to their ends (0)."""
    died = [code for code in codes if code]
    if died or None not in codes:
        raise ChildProcessError(
            f"a worker process died (exit code {died[0] if died else 0}). What was finished is kept: run the command "
            "again to continue from there, with --workers 1 if memory is short"
        )


def _worker(queue, work, job) -> None:  # type: ignore[no-untyped-def]
    exit_with_parent()
    try:
        for item in work(*job):
            queue.put(item)
        queue.put(_Done())
    except Exception as error:
        queue.put(error)
