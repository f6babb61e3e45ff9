"""Jobs: whole files, explained block by block while no request waits; each can be stopped."""

from __future__ import annotations

import asyncio
import gzip
import math
import secrets
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from tdce._core import InputError
from tdce.datasets import Dialect, read_table, write_table
from tdce.explainer import Answer, Explainer
from tdce.methods import Question, Status
from tdce.serving.batching import join_answers
from tdce.serving.middleware import HttpError
from tdce.serving.queue import ExplainQueue
from tdce.serving.settings import ServerLimits

JOB_BLOCK_ROWS = 128  # explained at a time
MAX_REPORT_ROWS = 2_000  # of a file, for it to get a report
MAX_UNPACK_RATIO = 4  # a packed file may unpack to this many times the file size limit
CONTENT_TYPES = {
    "text/csv": ".csv",
    "application/gzip": ".csv.gz",
    "application/vnd.apache.parquet": ".parquet",
}
RESULT_FILES = {
    "answer.csv": "text/csv; charset=utf-8",
    "answer.jsonl": "application/jsonl; charset=utf-8",
    "report.html": "text/html; charset=utf-8",
}


@dataclass(eq=False)
class Job:
    """A file being explained."""

    id: str
    folder: Path
    question: Question
    dialect: Dialect
    language: str = "en"  # of the report
    name: str = ""  # of the file, given by its sender
    expires: float = 0.0  # when it is deleted, in the event loop's time
    is_fetched: bool = False  # whether a result has been fetched
    state: str = "waiting for rows"
    rows: int | None = None
    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # lines by status
    people: Counter[str] = field(default_factory=Counter)  # rows by the best status of their options
    error: str = ""
    case: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None

    @property
    def files(self) -> list[str]:
        """The results that can be fetched."""
        return [name for name in RESULT_FILES if (self.folder / name).is_file()] if self.state == "done" else []

    def to_json(self) -> dict[str, Any]:
        """The status, as a client reads it."""
        left = max(0, math.ceil(self.expires - asyncio.get_running_loop().time()))
        return {"id": self.id, "name": self.name, "state": self.state, "rows": self.rows, "done": self.done,
                "counts": dict(self.counts), "people": dict(self.people), "words": self.error, "case": self.case,
                "facts": self.facts, "files": self.files, "seconds_left": left}  # fmt: skip

    @property
    def is_done_with(self) -> bool:
        """Whether nobody needs the job any more: it has failed, or its results have been fetched."""
        return self.state == "failed" or (self.state == "done" and self.is_fetched)

    def fail(self, message: str, case: str = "", facts: dict[str, Any] | None = None) -> None:
        self.state, self.error, self.case, self.facts = "failed", message, case, facts or {}


class Jobs:
    """All jobs of a server, in a folder that only its user can read and that is deleted at the end."""

    def __init__(self, explainer: Explainer, queue: ExplainQueue, limits: ServerLimits) -> None:
        self.explainer, self.queue, self.limits = explainer, queue, limits
        self.folder = Path(tempfile.mkdtemp(prefix="tdce-jobs-"))  # mode 0700
        self._jobs: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __getitem__(self, name: str) -> Job:
        if name not in self._jobs:
            raise HttpError(404, "there is no such job; it may have been deleted, or have expired", case="no_job")
        return self._jobs[name]

    def check(self, question: Question) -> None:
        """Check a question before any row is sent."""
        if question.max_model_rows is not None:
            raise InputError("max_model_rows is for a single call, but a job makes many; leave it out")
        if isinstance(question.target, tuple):
            raise InputError("target has one goal per row, but a job takes one goal for all rows")
        self.explainer.check(question)

    def new(self, question: Question, dialect: Dialect, language: str = "en", called: str = "") -> Job:
        """Add a job that waits for its rows; if there are too many, delete the oldest that nobody needs."""
        loop = asyncio.get_running_loop()
        if len(self._jobs) >= self.limits.jobs:
            if (old := next((job for job in self._jobs.values() if job.is_done_with), None)) is None:
                left = max(1, math.ceil(min(job.expires for job in self._jobs.values()) - loop.time()))
                message = f"there are {len(self._jobs)} jobs already; delete one, or wait until one expires"
                raise HttpError(503, message, left, "jobs_full", count=len(self._jobs), seconds=left)
            self.delete(old.id)
        name = secrets.token_urlsafe(24)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        job = self._jobs[name] = Job(name, folder, question, dialect, language, called)
        job.expires = loop.time() + self.limits.job_seconds
        loop.call_later(self.limits.job_seconds, self.delete, name)
        loop.call_later(self.limits.answer_seconds, self._delete_without_rows, name)
        return job

    def _delete_without_rows(self, name: str) -> None:
        """Delete a job to which nobody has sent rows."""
        if name in self._jobs and self._jobs[name].state == "waiting for rows":
            self.delete(name)

    def delete(self, name: str) -> None:
        """Stop a job and delete its files; a job that does not exist is ignored."""
        job = self._jobs.pop(name, None)
        if job is None:
            return
        if job.task is not None:
            job.task.cancel()
        shutil.rmtree(job.folder, ignore_errors=True)

    def close(self) -> None:
        for name in list(self._jobs):
            self.delete(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    async def receive_rows(self, job: Job, kind: str, parts: AsyncIterator[bytes]) -> None:
        """Receive the file of a job, then start its work."""
        if job.state != "waiting for rows":
            raise HttpError(409, "this job has its rows already; create another one")
        if kind not in CONTENT_TYPES:
            raise HttpError(415, f"the content type {kind[:60]!r} is not known; send one of {', '.join(CONTENT_TYPES)}")
        path, job.state = job.folder / f"rows{CONTENT_TYPES[kind]}", "queued"
        try:
            with path.open("wb") as file:
                async for part in parts:
                    file.write(part)
            frame = await asyncio.to_thread(self._read, path, job.dialect)
            self._check_size(frame, job.question)
        except BaseException:
            job.state = "waiting for rows"
            raise
        finally:
            path.unlink(missing_ok=True)
        job.rows = len(frame)
        job.task = asyncio.create_task(self._run(job, frame))

    def _read(self, path: Path, dialect: Dialect) -> pd.DataFrame:
        self._check_packed(path)
        try:
            frame = read_table(path, self.explainer.schema, dialect)
        except InputError as error:
            raise InputError(str(error).replace(str(path), path.name), error.case, **error.facts) from None
        self.explainer.fitted.encoder.read(frame)  # raises errors in any row now, not after an hour
        return frame

    def _check_packed(self, path: Path) -> None:
        """Check that a packed file does not unpack to many times the size of a file."""
        limit = MAX_UNPACK_RATIO * self.limits.file_bytes
        if path.suffix == ".gz":
            size = 0
            with (
                suppress(OSError, EOFError, zlib.error),
                gzip.open(path) as file,
            ):  # the reader reports a damaged file
                while (part := file.read(1 << 20)) and size <= limit:
                    size += len(part)
        elif path.suffix == ".parquet":
            from pyarrow import ArrowException
            from pyarrow.parquet import ParquetFile

            size = 0
            with suppress(ArrowException, OSError):
                groups = ParquetFile(path).metadata
                size = sum(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups))
                size += 8 * groups.num_rows * groups.num_columns
        else:
            return
        if size > limit:
            message = f"the file unpacks to more than {limit:,} bytes; send it in parts"
            raise HttpError(413, message, case="too_large", megabytes=limit / 1e6)

    def _check_size(self, frame: pd.DataFrame, question: Question) -> None:
        """Check that the file and its answer are within the limits."""
        if len(frame) > self.limits.file_rows:
            message = f"the file has {len(frame):,} rows; at most {self.limits.file_rows:,} are accepted"
            raise HttpError(413, message, case="too_many_rows", rows=len(frame), most=self.limits.file_rows)
        if len(frame) * question.n * frame.shape[1] > self.limits.answer_cells:
            message = f"{len(frame):,} rows with n={question.n} are too many; send fewer rows or ask for fewer options"
            raise HttpError(413, message, case="too_many_lines", rows=len(frame), options=question.n)

    async def _run(self, job: Job, frame: pd.DataFrame) -> None:
        try:
            answers: list[Answer] = []
            job.state = "running"
            for start in range(0, len(frame), JOB_BLOCK_ROWS):
                block = self.queue.explain_block(frame.iloc[start : start + JOB_BLOCK_ROWS], job.question)
                answer = await asyncio.wrap_future(block)
                answers.append(answer)
                job.done += len(answer.rows)
                job.counts.update(answer.counts())
                job.people.update(count_people(answer))
            await asyncio.to_thread(self._write, job, join_answers(answers))
            job.state = "done"
        except InputError as error:
            job.fail(str(error), error.case, error.facts)
        except Exception as error:
            job.fail(f"internal server error: {type(error).__name__}", "internal")

    def _write(self, job: Job, answer: Answer) -> None:
        frame, dialect = answer.to_frame(), replace(job.dialect, excel_safe=True)  # the file may be opened in Excel
        for name in ("answer.csv", "answer.jsonl"):
            write_table(job.folder / name, frame, dialect)
        if len(answer.rows) <= MAX_REPORT_ROWS:
            answer.to_html(job.folder / "report.html", language=job.language)


BEST_FIRST = (Status.ALREADY, Status.VALID, Status.BEST_EFFORT, Status.INFEASIBLE)


def count_people(answer: Answer) -> Counter[str]:
    """The rows of an answer by the best status among their options."""
    status = answer.explanation.status  # (rows, options)
    return Counter(next(each.value for each in BEST_FIRST if each.value in options) for options in status.tolist())
