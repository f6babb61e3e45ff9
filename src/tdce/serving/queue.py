"""The desk: one thread that explains, and the queue before it. Questions that are alike are answered together.

An answer does not depend on the rows beside it, so that putting requests together changes nothing but the time.
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
from tdce.serving.batching import split

WINDOW = 0.004  # seconds in which the first of some requests waits for others
TOGETHER = 1_024  # rows that are explained in one call
PATIENCE = 2.0  # seconds after which a block of a job has its turn though people wait


class FullError(Exception):
    """More rows wait than the queue holds."""


@dataclass(eq=False)
class QueueItem:
    """One request: rows and a question, or any other work."""

    rows: pd.DataFrame | None
    question: Question | None
    work: Callable[[], Any] | None = None
    result: Future[Any] = field(default_factory=Future)
    came: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        return 1 if self.rows is None else max(1, len(self.rows))

    @cached_property
    def key(self) -> Any:
        """Of requests that can be answered in one call; None: this one is answered alone."""
        question = self.question
        if self.rows is None or question is None or len(self.rows) == 0:
            return None
        if question.max_model_rows is not None or isinstance(question.target, tuple):
            return None
        return json.dumps(question.to_json(), sort_keys=True, default=str), tuple(map(str, self.rows.dtypes))


class ExplainQueue:
    """Takes tickets in, hands their results out."""

    def __init__(self, explainer: Explainer, most: int, watch: Callable[[int, int], None] | None = None) -> None:
        self.explainer, self.most = explainer, most
        self.watch = watch or (lambda requests, rows: None)  # is told of every call: how many requests and rows
        self._tickets: deque[QueueItem] = deque()
        self._blocks: deque[QueueItem] = deque()  # of jobs, when nobody waits
        self._change = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._work, name="tdce-desk", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Rows in the queue."""
        with self._change:
            return sum(ticket.size for ticket in self._tickets)

    def explain(self, rows: pd.DataFrame, question: Question) -> Future[Answer]:
        """An answer, as `Explainer.explain` gives it."""
        return self._take(QueueItem(rows, question), self._tickets)

    def block(self, rows: pd.DataFrame, question: Question) -> Future[Answer]:
        """The same, when nobody else waits."""
        return self._take(QueueItem(rows, replace(question, max_model_rows=None)), self._blocks)

    def run(self, work: Callable[[], Any]) -> Future[Any]:
        """Other work that needs the model for a while."""
        return self._take(QueueItem(None, None, work), self._tickets)

    def close(self) -> None:
        """After the work at hand; whoever still waits is told that it is cancelled."""
        with self._change:
            self._open = False
            for ticket in (*self._tickets, *self._blocks):
                ticket.result.cancel()
            self._tickets.clear()
            self._blocks.clear()
            self._change.notify_all()
        self._thread.join(timeout=60)

    def _take(self, ticket: QueueItem, line: deque[QueueItem]) -> Future[Any]:
        with self._change:
            if not self._open or (
                line is self._tickets and line and sum(t.size for t in line) + ticket.size > self.most
            ):
                raise FullError
            line.append(ticket)
            self._change.notify_all()
        return ticket.result

    def _work(self) -> None:
        while True:
            some = self._next()
            if some is None:
                return
            some = [ticket for ticket in some if ticket.result.set_running_or_notify_cancel()]
            if some:
                self._serve(some)

    def _next(self) -> list[QueueItem] | None:
        """Tickets that are answered in one call, in the order in which they came; None: the desk is closed."""
        with self._change:
            while self._open and not self._tickets and not self._blocks:
                self._change.wait()
            if not self._open:
                return None
            late = self._blocks and time.monotonic() - self._blocks[0].came > PATIENCE
            if not self._tickets or late:
                return [self._blocks.popleft()]
            left = WINDOW - (time.monotonic() - self._tickets[0].came)
        if left > 0:
            time.sleep(left)
        with self._change:
            if not self._tickets:
                return []
            first = self._tickets.popleft()
            if first.key is None:
                return [first]
            chosen, rows = [first], first.size
            for ticket in list(self._tickets):
                if ticket.key == first.key and rows + ticket.size <= TOGETHER and not ticket.result.cancelled():
                    chosen.append(ticket)
                    rows += ticket.size
            taken = set(map(id, chosen))
            left_over = [ticket for ticket in self._tickets if id(ticket) not in taken]
            self._tickets.clear()  # the same queue, which others hold in their hands
            self._tickets.extend(left_over)
            return chosen

    def _serve(self, tickets: list[QueueItem]) -> None:
        try:
            found = self._found(tickets)
        except InputError as error:
            if len(tickets) == 1:
                tickets[0].result.set_exception(error)
            else:  # one of them is wrong: each is told what concerns it
                for ticket in tickets:
                    self._serve([ticket])
        except Exception as error:
            for ticket in tickets:
                ticket.result.set_exception(error)
        else:
            for ticket, each in zip(tickets, found, strict=True):
                ticket.result.set_result(each)

    def _found(self, tickets: list[QueueItem]) -> list[Any]:
        first = tickets[0]
        if first.work is not None:
            return [first.work()]
        frames = [ticket.rows for ticket in tickets if ticket.rows is not None]
        whole = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        self.watch(len(tickets), len(whole))
        assert first.question is not None
        answer = self.explainer.ask(whole, first.question)
        return [answer] if len(tickets) == 1 else list(split(answer, frames))
