"""Jobs: whole files, explained a block at a time when no request waits; each can be stopped."""

from __future__ import annotations

import asyncio
import gzip
import secrets
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tdce._core import InputError
from tdce.datasets import Dialect, read_table, write_table
from tdce.explainer import Answer, Explainer
from tdce.methods import Question
from tdce.serving.batching import join_answers
from tdce.serving.middleware import HttpError
from tdce.serving.queue import ExplainQueue
from tdce.serving.settings import ServerLimits

JOB_BLOCK_ROWS = 128  # that are explained at a time
MAX_REPORT_ROWS = 2_000  # of a file for which a report is written too
MAX_UNPACK_RATIO = 4  # a packed file may unpack to this many times the size limit of a file
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
    """One file that is explained."""

    id: str
    folder: Path
    question: Question
    dialect: Dialect
    language: str = "en"  # of the report
    state: str = "waiting for rows"
    rows: int | None = None
    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    error: str = ""
    task: asyncio.Task[None] | None = None

    @property
    def files(self) -> list[str]:
        """The results that can be fetched."""
        return [name for name in RESULT_FILES if (self.folder / name).is_file()] if self.state == "done" else []

    def to_json(self) -> dict[str, Any]:
        """The status, as a client reads it."""
        return {"id": self.id, "state": self.state, "rows": self.rows, "done": self.done,
                "counts": dict(self.counts), "words": self.error, "files": self.files}  # fmt: skip


class Jobs:
    """All jobs of a server, in a folder that only its user can read and that is deleted with it."""

    def __init__(self, explainer: Explainer, queue: ExplainQueue, limits: ServerLimits) -> None:
        self.explainer, self.queue, self.limits = explainer, queue, limits
        self.folder = Path(tempfile.mkdtemp(prefix="tdce-jobs-"))  # mode 0700
        self._jobs: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __getitem__(self, name: str) -> Job:
        if name not in self._jobs:
            raise HttpError(404, "there is no such job; it may have been deleted, or have expired")
        return self._jobs[name]

    def check(self, question: Question) -> None:
        """Check a question before any row is sent."""
        if question.max_model_rows is not None:
            raise InputError("max_model_rows is for a single call, but a job makes many; leave it out")
        if isinstance(question.target, tuple):
            raise InputError("target has one goal per row, but a job takes one goal for all rows")
        self.explainer.check(question)

    def new(self, question: Question, dialect: Dialect, language: str = "en") -> Job:
        """A job that waits for its rows."""
        if len(self._jobs) >= self.limits.jobs:
            raise HttpError(503, f"there are {len(self._jobs)} jobs already; delete one, or try again later", 30)
        name = secrets.token_urlsafe(24)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        job = self._jobs[name] = Job(name, folder, question, dialect, language)
        asyncio.get_running_loop().call_later(self.limits.job_seconds, self.delete, name)
        return job

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
            raise InputError(str(error).replace(str(path), path.name)) from None
        self.explainer.fitted.encoder.read(frame)  # an error in any row is raised now, not after an hour
        return frame

    def _check_packed(self, path: Path) -> None:
        """Check that a packed file does not unpack to many times the size of a file."""
        limit = MAX_UNPACK_RATIO * self.limits.file_bytes
        if path.suffix == ".gz":
            size = 0
            with (
                suppress(OSError, EOFError, zlib.error),
                gzip.open(path) as file,
            ):  # a damaged file is an error of the reader
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
            raise HttpError(413, f"the file unpacks to more than {limit:,} bytes; send it in parts")

    def _check_size(self, frame: pd.DataFrame, question: Question) -> None:
        """Check that the file and its answer are within the limits."""
        if len(frame) > self.limits.file_rows:
            raise HttpError(413, f"the file has {len(frame):,} rows; at most {self.limits.file_rows:,} are accepted")
        if len(frame) * question.n * frame.shape[1] > self.limits.answer_cells:
            raise HttpError(
                413, f"{len(frame):,} rows with n={question.n} are too many; send fewer rows or ask for fewer options"
            )

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
            await asyncio.to_thread(self._write, job, join_answers(answers))
            job.state = "done"
        except InputError as error:
            job.state, job.error = "failed", str(error)
        except Exception as error:
            job.state, job.error = "failed", f"internal server error: {type(error).__name__}"

    def _write(self, job: Job, answer: Answer) -> None:
        frame = answer.to_frame()
        for name in ("answer.csv", "answer.jsonl"):
            write_table(job.folder / name, frame, job.dialect)
        if len(answer.rows) <= MAX_REPORT_ROWS:
            answer.to_html(job.folder / "report.html", language=job.language)
