"""The queue of the one explainer: fair turns, so that no request has to wait for all of another one.

Requests are answered in separate threads, of which one runs at a time. Between two queries of the model it gives way if
its turn is over and others wait: alternately to requests without a turn yet, small ones first, and to those that have
begun. Small requests with the same question are answered in one call. Neither the rows explained with it nor the turns
affect an answer, only when it arrives.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from tdce._core import InputError, taking_turns
from tdce.explainer import Answer, Explainer
from tdce.methods import Question
from tdce.serving.batching import split_answer

BATCH_WINDOW_SECONDS = 0.004  # for which the first request waits for others
TURN_SECONDS = 0.3  # after which a request gives way at its next query of the model
SMALL_LINES = 12  # rows times options of a small request
SMALL_TURN_SECONDS = 2.0  # for a small request, usually enough for all of it
MAX_BATCH_ROWS = 1_024  # explained in one call
MAX_LARGE = 4  # begun requests that are not small; each holds its rows in memory
FIRST_SECONDS = 0.5  # for a small request, before any has been measured
MAX_BEGUN = 32  # begun requests, each in a thread
PATIENCE_SECONDS = 2.0  # after which a job's block or a large request has its turn even if others wait


class QueueFullError(Exception):
    """The queue is full; `seconds`: until there should be room."""

    def __init__(self, seconds: int) -> None:
        super().__init__("the queue is full")
        self.seconds = seconds


class _DroppedError(Exception):
    """Nobody waits for this work any more."""


@dataclass(eq=False)
class QueueItem:
    """A request: rows and a question, or other work."""

    rows: pd.DataFrame | None
    question: Question | None
    work: Callable[[], Any] | None = None
    work_rows: int = 1  # that other work is about
    is_block: bool = False  # of a job; gives way to all requests
    result: Future[Any] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """The number of rows."""
        return max(1, self.work_rows if self.rows is None else len(self.rows))

    @property
    def lines(self) -> int:
        """The number of rows times options."""
        return self.size * (1 if self.question is None else self.question.n)

    @property
    def is_small(self) -> bool:
        return self.lines <= SMALL_LINES

    @cached_property
    def key(self) -> Any:
        """Equal for requests that can be answered in one call; None if this one is answered alone."""
        question = self.question
        if self.rows is None or question is None or len(self.rows) == 0 or not self.is_small or self.is_block:
            return None
        if question.max_model_rows is not None or isinstance(question.target, tuple):
            return None
        return json.dumps(question.to_json(), sort_keys=True, default=str), tuple(map(str, self.rows.dtypes))


@dataclass(eq=False)
class Batch:
    """Requests answered in one call, and their turns."""

    items: list[QueueItem]
    go: threading.Event = field(default_factory=threading.Event)  # set during its turn
    has_begun: bool = False
    began: float = 0.0  # start of the present turn
    last: float = 0.0  # end of the previous turn
    seconds: float = 0.0  # of all its turns

    @property
    def lines(self) -> int:
        return sum(item.lines for item in self.items)

    @property
    def is_block(self) -> bool:
        return self.items[0].is_block

    @property
    def is_dropped(self) -> bool:
        return all(item.result.cancelled() for item in self.items)


class ExplainQueue:
    """Take requests and return futures of their results."""

    def __init__(self, explainer: Explainer, max_rows: int, on_batch: Callable[[int, int], None] | None = None) -> None:
        self.explainer, self.max_rows = explainer, max_rows
        self.on_batch = on_batch or (lambda requests, rows: None)  # called with the size of every batch
        self.pace = Pace()
        self._waiting: list[QueueItem] = []  # requests and blocks that have not begun, in order of arrival
        self._begun: list[Batch] = []  # in order of their last turns
        self._now: Batch | None = None  # whose turn it is
        self._newcomer_was_last = False
        self._change = threading.Condition()
        self._open = True
        self._dispatcher = threading.Thread(target=self._dispatch, name="tdce-turns", daemon=True)
        self._dispatcher.start()

    @property
    def waiting(self) -> int:
        """Rows of requests that have not begun."""
        with self._change:
            return sum(item.size for item in self._requests)

    def seconds_left(self) -> int:
        """An estimate of the time for the present requests, from past ones; at least a second."""
        with self._change:
            return self._seconds_left()

    def explain(self, rows: pd.DataFrame, question: Question) -> Future[Answer]:
        """The answer of `Explainer.ask`."""
        return self._enqueue(QueueItem(rows, question))

    def explain_block(self, rows: pd.DataFrame, question: Question) -> Future[Answer]:
        """The answer to a block of a job, when no request waits."""
        return self._enqueue(QueueItem(rows, replace(question, max_model_rows=None), is_block=True))

    def run(self, work: Callable[[], Any], rows: int = 1) -> Future[Any]:
        """The result of other work on this many rows."""
        return self._enqueue(QueueItem(None, None, work, rows))

    def close(self) -> None:
        """Drop all work; what has begun stops at its next query of the model."""
        with self._change:
            self._open = False
            for item in (*self._waiting, *(each for batch in self._begun for each in batch.items)):
                item.result.cancel()
            self._waiting.clear()
            for batch in self._begun:
                batch.go.set()
            self._change.notify_all()
        self._dispatcher.join(timeout=60)

    @property
    def _requests(self) -> list[QueueItem]:
        return [item for item in self._waiting if not item.is_block]

    def _enqueue(self, item: QueueItem) -> Future[Any]:
        with self._change:
            waiting = self._requests
            full = not item.is_block and waiting and sum(each.size for each in waiting) + item.size > self.max_rows
            if not self._open or full:
                raise QueueFullError(self._seconds_left())
            self._waiting.append(item)
            self._change.notify_all()
        return item.result

    def _seconds_left(self) -> int:
        items: dict[Any, int] = {}  # lines of requests that are answered in one call
        for item in self._requests:
            items[item.key or item] = items.get(item.key or item, 0) + item.lines
        left = sum(max(0.0, self.pace.seconds(batch.lines) - batch.seconds) for batch in self._begun)
        return max(1, math.ceil(left + sum(map(self.pace.seconds, items.values()))))

    # Turns

    def _dispatch(self) -> None:
        """Give the batches their turns, one after the other."""
        while True:
            with self._change:
                while self._open and (self._now is not None or not (self._waiting or self._begun)):
                    self._change.wait()
                if not self._open:
                    return
                newest = min((item.arrived for item in self._requests), default=0.0)
            if (left := BATCH_WINDOW_SECONDS - (time.monotonic() - newest)) > 0:
                time.sleep(left)
            with self._change:
                self._waiting = [item for item in self._waiting if not item.result.cancelled()]
                batch = self._next_batch() if self._open else None
                if batch is None:
                    continue
                self._now, batch.began = batch, time.monotonic()
                if batch.has_begun:
                    batch.go.set()
                else:
                    batch.has_begun = True
                    self._begun.append(batch)
                    # a daemon: a model that never answers must not keep the process alive
                    threading.Thread(target=self._answer, args=(batch,), name="tdce-explain", daemon=True).start()

    def _next_batch(self) -> Batch | None:
        """The batch whose turn is next. Newcomers and begun requests alternate; blocks come when no request is left, or
        after a while."""
        begun = [batch for batch in self._begun if not batch.is_block]
        large = sum(batch.lines > SMALL_LINES for batch in begun)
        new = [item for item in self._requests if item.is_small or large < MAX_LARGE]
        new = sorted(new, key=lambda item: not (item.is_small or self._is_late(item))) if len(begun) < MAX_BEGUN else []
        blocks: list[Batch | QueueItem] = [batch for batch in self._begun if batch.is_block]
        blocks += [item for item in self._waiting if item.is_block] if not blocks else []
        if blocks and (not (begun or new) or self._is_late(blocks[0])):
            first = blocks[0]
            return first if isinstance(first, Batch) else self._take(first)
        self._newcomer_was_last = bool(new) and not (begun and self._newcomer_was_last)
        if self._newcomer_was_last:
            return self._take(new[0])
        return begun[0] if begun else None

    def _is_late(self, waiting: Batch | QueueItem) -> bool:
        since = waiting.last if isinstance(waiting, Batch) else waiting.arrived
        return time.monotonic() - since > PATIENCE_SECONDS

    def _take(self, first: QueueItem) -> Batch:
        """Take a waiting request, with those that can be answered in the same call."""
        chosen, rows = [first], first.size
        if first.key is not None:
            for item in self._waiting:
                if item is not first and item.key == first.key and rows + item.size <= MAX_BATCH_ROWS:
                    chosen.append(item)
                    rows += item.size
        taken = set(chosen)
        self._waiting = [item for item in self._waiting if item not in taken]
        return Batch(chosen)

    def _pause(self, batch: Batch) -> None:
        """Give way, between two queries of the model, if the turn is over and others wait. A small newcomer need not
        wait for the end of the turn, unless the last request to get one was a newcomer, too."""
        if batch.is_dropped:
            raise _DroppedError
        with self._change:
            seconds = SMALL_TURN_SECONDS if batch.lines <= SMALL_LINES else TURN_SECONDS
            is_over = time.monotonic() - batch.began > seconds and (self._waiting or len(self._begun) > 1)
            small = not self._newcomer_was_last and any(item.is_small for item in self._requests)
            if not (is_over or small):
                return
            batch.go.clear()
            self._end_turn(batch)
            self._begun.remove(batch)
            self._begun.append(batch)
        batch.go.wait()
        if batch.is_dropped:
            raise _DroppedError

    def _end_turn(self, batch: Batch) -> None:
        batch.last = time.monotonic()
        batch.seconds += batch.last - batch.began
        self._now = None
        self._change.notify_all()

    # Answers

    def _answer(self, batch: Batch) -> None:
        """Compute the results of a batch, in a separate thread."""
        try:
            with taking_turns(lambda: self._pause(batch)):
                self._serve(batch.items)
        except _DroppedError:
            for item in batch.items:
                _finish(item.result)
        finally:
            with self._change:
                self._end_turn(batch)
                self._begun.remove(batch)
                if not batch.is_dropped:
                    self.pace.learn(batch.lines, batch.seconds)

    def _serve(self, items: list[QueueItem]) -> None:
        try:
            results = self._compute(items)
        except InputError as error:
            if len(items) == 1:
                _finish(items[0].result, error=error)
            else:  # one is wrong: each gets its own result or error
                for item in items:
                    self._serve([item])
        except _DroppedError:
            raise
        except Exception as error:
            for item in items:
                _finish(item.result, error=error)
        else:
            for item, result in zip(items, results, strict=True):
                _finish(item.result, result)

    def _compute(self, items: list[QueueItem]) -> list[Any]:
        """Compute the result of each request."""
        first = items[0]
        if first.work is not None:
            return [first.work()]
        frames = [item.rows for item in items if item.rows is not None]
        whole = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        self.on_batch(len(items), len(whole))
        assert first.question is not None
        answer = self.explainer.ask(whole, first.question)
        return [answer] if len(items) == 1 else list(split_answer(answer, frames))


class Pace:
    """How long requests take, from recent ones: the seconds of a small one, and the seconds per line of others."""

    def __init__(self) -> None:
        self._small: float | None = None
        self._per_line: float | None = None

    def learn(self, lines: int, seconds: float) -> None:
        if lines <= SMALL_LINES:
            self._small = seconds if self._small is None else (seconds + self._small) / 2
        else:
            pace = seconds / lines
            self._per_line = pace if self._per_line is None else (pace + self._per_line) / 2

    def seconds(self, lines: int) -> float:
        small = FIRST_SECONDS if self._small is None else self._small
        if lines <= SMALL_LINES:
            return small
        return lines * small / SMALL_LINES if self._per_line is None else lines * self._per_line


def _finish(result: Future[Any], value: Any = None, error: Exception | None = None) -> None:
    """Set a result, unless it was cancelled."""
    with suppress(InvalidStateError):
        if not result.set_running_or_notify_cancel():
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)
