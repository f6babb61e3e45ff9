"""A pool of worker processes that answer blocks one after the other. A worker that dies is replaced, and its block
retried."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.process import BaseProcess
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

from tdce._core import exit_with_parent, ignore_sigint

MAX_ATTEMPTS = 3  # at a block, before it is blamed for the deaths of its workers
JOIN_SECONDS = 10.0  # for a worker to end by itself
POLL_SECONDS = 0.2  # between a waiting thread's checks whether the pool has stopped


class WorkerPool:
    """Worker processes that each call `make(*settings)` once, for the function that does their jobs."""

    def __init__(self, make: Callable[..., Callable[..., Any]], settings: tuple[Any, ...], workers: int) -> None:
        self.make, self.settings, self.workers = make, settings, workers
        self._jobs: Queue[Any] = Queue(workers)  # bounded, like the results, so that memory does not grow with the work
        self._results: Queue[Any] = Queue(workers)
        self._stopped = Event()
        self._processes: set[BaseProcess] = set()

    def results(self, jobs: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """The results of all jobs, in order of completion; an error in one job ends all. A worker gets its next job
        only when the caller has asked for the result after that worker's last one, so that no worker runs ahead of what
        the caller has dealt with."""
        supervisors = [Thread(target=self._supervise, daemon=True) for _ in range(self.workers)]
        feeder = Thread(target=self._feed, args=(jobs,), daemon=True)
        try:
            for thread in (feeder, *supervisors):
                thread.start()
            running = self.workers
            while running:
                result, consumed = self._results.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    running -= 1
                else:
                    yield result
                consumed.set()
        finally:
            self._stopped.set()
            for process in list(self._processes):
                process.terminate()
            for thread in (feeder, *supervisors):
                thread.join(JOIN_SECONDS)

    def _feed(self, jobs: Iterable[tuple[Any, ...]]) -> None:
        """Queue all jobs, then one None per worker."""
        try:
            for job in jobs:
                if not self._put(self._jobs, job):
                    return
        except BaseException as error:
            self._put(self._results, (error, Event()))
            return
        for _ in range(self.workers):
            self._put(self._jobs, None)

    def _supervise(self) -> None:
        """Run one worker process: send it jobs, pass on its results, replace it when it dies."""
        context = multiprocessing.get_context("spawn")
        process, pipe = None, None
        try:
            while (job := self._get()) is not None:
                for attempt in range(1, MAX_ATTEMPTS + 1):
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
                        while not pipe.poll(POLL_SECONDS):
                            if self._stopped.is_set():
                                return
                        result = pipe.recv()
                        break
                    except (EOFError, OSError):  # it died
                        process.join(JOIN_SECONDS)
                        result = ChildProcessError(
                            f"a worker process died {attempt} times (exit code {process.exitcode}) on the same rows. "
                            "What was finished is kept: run the command again to resume, with --workers 1 if memory is "
                            "short"
                        )
                        self._processes.discard(process)
                        process = None
                consumed = Event()
                self._put(self._results, (result, consumed))
                while not consumed.wait(POLL_SECONDS):
                    if self._stopped.is_set():
                        return
            self._put(self._results, (None, Event()))
        except BaseException as error:
            self._put(self._results, (error, Event()))
        finally:
            if process is not None:
                process.terminate()
                process.join(JOIN_SECONDS)
                process.kill()

    def _get(self) -> Any:
        """The next job; None if there is none, or the pool has stopped."""
        while not self._stopped.is_set():
            try:
                return self._jobs.get(timeout=POLL_SECONDS)
            except Empty:
                continue
        return None

    def _put(self, queue: Queue[Any], item: Any) -> bool:
        """Put an item into a queue; return False if the pool has stopped."""
        while not self._stopped.is_set():
            try:
                queue.put(item, timeout=POLL_SECONDS)
                return True
            except Full:
                continue
        return False


def _work(pipe: Any, make: Callable[..., Callable[..., Any]], settings: tuple[Any, ...]) -> None:
    """The loop of a worker, in its own process."""
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
            result = work(*job)
        except Exception as error:
            result = error
        pipe.send(result)
