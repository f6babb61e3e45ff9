"""Processes that each answer one block after the other. One that dies is replaced, and its block is given out again."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.process import BaseProcess
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

from tdce._core import exit_with_parent, ignore_sigint

TRIES = 3  # of a block, before it is blamed for the deaths of its workers
PATIENCE = 10.0  # seconds that a worker has to end by itself
LOOK = 0.2  # seconds after which a waiting thread looks whether all is over


class WorkerPool:
    """`make(*settings)` is called once in each process and returns the function that does the jobs."""

    def __init__(self, make: Callable[..., Callable[..., Any]], settings: tuple[Any, ...], workers: int) -> None:
        self.make, self.settings, self.workers = make, settings, workers
        self._jobs: Queue[Any] = Queue(workers)  # bounded, like the results: memory does not grow with the work
        self._results: Queue[Any] = Queue(workers)
        self._over = Event()
        self._processes: set[BaseProcess] = set()

    def results(self, jobs: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Of all jobs, as they come. An error in a job ends all of them. A worker is given its next job when whoever
        took its result has come back for another: so nobody is ahead of what has been dealt with."""
        keepers = [Thread(target=self._keep, daemon=True) for _ in range(self.workers)]
        reader = Thread(target=self._read, args=(jobs,), daemon=True)
        try:
            for thread in (reader, *keepers):
                thread.start()
            running = self.workers
            while running:
                found, taken = self._results.get()
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    running -= 1
                else:
                    yield found
                taken.set()
        finally:
            self._over.set()
            for process in list(self._processes):
                process.terminate()
            for thread in (reader, *keepers):
                thread.join(PATIENCE)

    def _read(self, jobs: Iterable[tuple[Any, ...]]) -> None:
        try:
            for job in jobs:
                if not self._put(self._jobs, job):
                    return
        except BaseException as error:
            self._put(self._results, (error, Event()))
            return
        for _ in range(self.workers):
            self._put(self._jobs, None)

    def _keep(self) -> None:
        """One worker, from the side of this process."""
        context = multiprocessing.get_context("spawn")
        process, pipe = None, None
        try:
            while (job := self._get()) is not None:
                for tried in range(1, TRIES + 1):
                    if process is None:
                        pipe, theirs = context.Pipe()
                        process = context.Process(target=_work, args=(theirs, self.make, self.settings), daemon=True)
                        with ignore_sigint():
                            process.start()
                        theirs.close()
                        self._processes.add(process)
                    try:
                        assert pipe is not None
                        pipe.send(job)
                        while not pipe.poll(LOOK):
                            if self._over.is_set():
                                return
                        found = pipe.recv()
                        break
                    except (EOFError, OSError):  # it died
                        process.join(PATIENCE)
                        found = ChildProcessError(
                            f"a worker process died {tried} times (exit code {process.exitcode}) over the same rows. "
                            "What was finished is kept: run the command again to continue from there, with --workers 1 "
                            "if memory is short"
                        )
                        self._processes.discard(process)
                        process = None
                taken = Event()
                self._put(self._results, (found, taken))
                while not taken.wait(LOOK):
                    if self._over.is_set():
                        return
            self._put(self._results, (None, Event()))
        except BaseException as error:
            self._put(self._results, (error, Event()))
        finally:
            if process is not None:
                process.terminate()
                process.join(PATIENCE)
                process.kill()

    def _get(self) -> Any:
        while not self._over.is_set():
            try:
                return self._jobs.get(timeout=LOOK)
            except Empty:
                continue
        return None

    def _put(self, queue: Queue[Any], item: Any) -> bool:
        while not self._over.is_set():
            try:
                queue.put(item, timeout=LOOK)
                return True
            except Full:
                continue
        return False


def _work(pipe: Any, make: Callable[..., Callable[..., Any]], settings: tuple[Any, ...]) -> None:
    """In the worker's own process."""
    exit_with_parent()
    try:
        work = make(*settings)
    except Exception as error:
        pipe.recv()
        pipe.send(error)
        return
    while True:
        job = pipe.recv()
        try:
            found = work(*job)
        except Exception as error:
            found = error
        pipe.send(found)
