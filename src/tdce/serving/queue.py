"""The queue of the one thread that explains. Requests with the same question are answered in one call.

An answer does not depend on the rows beside it, so batching requests changes nothing but the time.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from tdce._core import InputError
from tdce.explainer import Answer, Explainer
from tdce.methods import Question
from tdce.serving.batching import split_answer

BATCH_WINDOW_SECONDS = 0.004  # that the first request waits for others
MAX_BATCH_ROWS = 1_024  # that are explained in one call
MAX_BLOCK_WAIT_SECONDS = 2.0  # after which a block of a job has its turn although requests wait


class QueueFullError(Exception):
    """More rows are waiting than the queue holds."""


@dataclass(eq=False)
class QueueItem:
    """A request: rows and a question, or any other work."""

    rows: pd.DataFrame | None
    question: Question | None
    work: Callable[[], Any] | None = None
    work_rows: int = 1  # that the work is about
    result: Future[Any] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        return max(1, self.work_rows if self.rows is None else len(self.rows))

    @cached_property
    def key(self) -> Any:
        """Equal for requests that can be answered in one call; None: this one is answered alone."""
        question = self.question
        if self.rows is None or question is None or len(self.rows) == 0:
            return None
        if question.max_model_rows is not None or isinstance(question.target, tuple):
            return None
        return json.dumps(question.to_json(), sort_keys=True, default=str), tuple(map(str, self.rows.dtypes))


class ExplainQueue:
    """Takes requests and returns futures of their results."""

    def __init__(self, explainer: Explainer, max_rows: int, on_batch: Callable[[int, int], None] | None = None) -> None:
        self.explainer, self.max_rows = explainer, max_rows
        self.on_batch = on_batch or (lambda requests, rows: None)  # called with the size of every batch
        self._requests: deque[QueueItem] = deque()
        self._blocks: deque[QueueItem] = deque()  # of jobs, for when no request waits
        self._change = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._work, name="tdce-explain", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows in the queue."""
        with self._change:
            return sum(item.size for item in self._requests)

    def explain(self, rows: pd.DataFrame, question: Question) -> Future[Answer]:
        """The answer of `Explainer.ask`."""
        return self._enqueue(QueueItem(rows, question), self._requests)

    def explain_block(self, rows: pd.DataFrame, question: Question) -> Future[Answer]:
        """The same, when no request waits."""
        return self._enqueue(QueueItem(rows, replace(question, max_model_rows=None)), self._blocks)

    def run(self, work: Callable[[], Any], rows: int = 1) -> Future[Any]:
        """Other work that takes a while, about so many rows."""
        return self._enqueue(QueueItem(None, None, work, rows), self._requests)

    def close(self) -> None:
        """Stop after the current work; what still waits is cancelled."""
        with self._change:
            self._open = False
            for item in (*self._requests, *self._blocks):
                item.result.cancel()
            self._requests.clear()
            self._blocks.clear()
            self._change.notify_all()
        self._thread.join(timeout=60)

    def _enqueue(self, item: QueueItem, queue: deque[QueueItem]) -> Future[Any]:
        with self._change:
            if not self._open or (
                queue is self._requests and queue and sum(i.size for i in queue) + item.size > self.max_rows
            ):
                raise QueueFullError
            queue.append(item)
            self._change.notify_all()
        return item.result

    def _work(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            batch = [item for item in batch if item.result.set_running_or_notify_cancel()]
            if batch:
                self._serve(batch)

    def _next_batch(self) -> list[QueueItem] | None:
        """Requests that are answered in one call, in the order of their arrival; None: the queue is closed."""
        with self._change:
            while self._open and not self._requests and not self._blocks:
                self._change.wait()
            if not self._open:
                return None
            late = self._blocks and time.monotonic() - self._blocks[0].arrived > MAX_BLOCK_WAIT_SECONDS
            if not self._requests or late:
                return [self._blocks.popleft()]
            left = BATCH_WINDOW_SECONDS - (time.monotonic() - self._requests[0].arrived)
        if left > 0:
            time.sleep(left)
        with self._change:
            if not self._requests:
                return []
            first = self._requests.popleft()
            if first.key is None:
                return [first]
            chosen, rows = [first], first.size
            for item in list(self._requests):
                if item.key == first.key and rows + item.size <= MAX_BATCH_ROWS and not item.result.cancelled():
                    chosen.append(item)
                    rows += item.size
            taken = set(map(id, chosen))
            left_over = [item for item in self._requests if id(item) not in taken]
            self._requests.clear()  # the same object, which other threads use
            self._requests.extend(left_over)
            return chosen

    def _serve(self, items: list[QueueItem]) -> None:
        try:
            results = self._compute(items)
        except InputError as error:
            if len(items) == 1:
                items[0].result.set_exception(error)
            else:  # one of them is wrong: each gets its own result or error
                for item in items:
                    self._serve([item])
        except Exception as error:
            for item in items:
                item.result.set_exception(error)
        else:
            for item, result in zip(items, results, strict=True):
                item.result.set_result(result)

    def _compute(self, items: list[QueueItem]) -> list[Any]:
        """The result of each request."""
        first = items[0]
        if first.work is not None:
            return [first.work()]
        frames = [item.rows for item in items if item.rows is not None]
        whole = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        self.on_batch(len(items), len(whole))
        assert first.question is not None
        answer = self.explainer.ask(whole, first.question)
        return [answer] if len(items) == 1 else list(split_answer(answer, frames))
