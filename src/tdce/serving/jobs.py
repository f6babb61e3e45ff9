"""Jobs: whole files of rows, explained a block at a time when nobody else waits; each can be stopped."""

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
from tdce.serving.batching import joined
from tdce.serving.middleware import HttpError
from tdce.serving.queue import ExplainQueue
from tdce.serving.settings import ServerLimits

BLOCK = 128  # rows at a time
MOST_ON_A_PAGE = 2_000  # rows for which there is a page too
UNPACKED = 4  # times the largest file: no packed one may become larger
KINDS = {
    "text/csv": ".csv",
    "application/gzip": ".csv.gz",
    "application/vnd.apache.parquet": ".parquet",
}
FILES = {
    "answer.csv": "text/csv; charset=utf-8",
    "answer.jsonl": "application/jsonl; charset=utf-8",
    "report.html": "text/html; charset=utf-8",
}


@dataclass(eq=False)
class Job:
    """One file on its way."""

    id: str
    folder: Path
    question: Question
    dialect: Dialect
    language: str = "en"  # of the report
    state: str = "waiting for rows"
    rows: int | None = None
    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    words: str = ""
    task: asyncio.Task[None] | None = None

    @property
    def files(self) -> list[str]:
        return [name for name in FILES if (self.folder / name).is_file()] if self.state == "done" else []

    def told(self) -> dict[str, Any]:
        """As a client reads it."""
        return {"id": self.id, "state": self.state, "rows": self.rows, "done": self.done,
                "counts": dict(self.counts), "words": self.words, "files": self.files}  # fmt: skip


class Jobs:
    """All jobs of a server, in a folder that only its user can read, which is gone with it."""

    def __init__(self, explainer: Explainer, queue: ExplainQueue, bounds: ServerLimits) -> None:
        self.explainer, self.queue, self.bounds = explainer, queue, bounds
        self.folder = Path(tempfile.mkdtemp(prefix="tdce-jobs-"))  # mode 0700
        self._jobs: dict[str, Job] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __getitem__(self, name: str) -> Job:
        if name not in self._jobs:
            raise HttpError(404, "there is no such job; it may have been deleted, or kept for long enough")
        return self._jobs[name]

    def check(self, question: Question) -> None:
        """Say what is wrong with a question before any row is sent."""
        if question.max_model_rows is not None:
            raise InputError("max_model_rows is for a single call; a job is many: leave it out")
        if isinstance(question.target, tuple):
            raise InputError("target has one goal per row, which is for a single call; give a job one goal")
        self.explainer.check(question)

    def new(self, question: Question, dialect: Dialect, language: str = "en") -> Job:
        """A job that waits for its rows."""
        if len(self._jobs) >= self.bounds.jobs:
            raise HttpError(503, f"there are {len(self._jobs)} jobs already; delete one, or try again later", 30)
        name = secrets.token_urlsafe(24)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        job = self._jobs[name] = Job(name, folder, question, dialect, language)
        asyncio.get_running_loop().call_later(self.bounds.job_seconds, self.delete, name)
        return job

    def delete(self, name: str) -> None:
        """Stop it, and forget all of it; one that is gone already stays gone."""
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

    async def take(self, job: Job, kind: str, parts: AsyncIterator[bytes]) -> None:
        """The rows, as they arrive; then the work begins."""
        if job.state != "waiting for rows":
            raise HttpError(409, "this job has its rows already; make another one")
        if kind not in KINDS:
            raise HttpError(415, f"the content type {kind[:60]!r} is not known; send one of {', '.join(KINDS)}")
        path, job.state = job.folder / f"rows{KINDS[kind]}", "queued"
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
        self.explainer.fitted.encoder.read(frame)  # what is wrong with any row is said now, not after an hour
        return frame

    def _check_packed(self, path: Path) -> None:
        """That what is packed is not many times as large as the file."""
        most = UNPACKED * self.bounds.file
        if path.suffix == ".gz":
            size = 0
            with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:  # what is damaged is named later
                while (part := file.read(1 << 20)) and size <= most:
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
        if size > most:
            raise HttpError(413, f"the file unpacks to more than {most:,} bytes; send it in parts")

    def _check_size(self, frame: pd.DataFrame, question: Question) -> None:
        if len(frame) > self.bounds.file_rows:
            raise HttpError(
                413, f"the file has {len(frame):,} rows; at most {self.bounds.file_rows:,} are explained here"
            )
        if len(frame) * question.n * frame.shape[1] > self.bounds.cells:
            raise HttpError(413, f"{len(frame):,} rows with n={question.n} are too many; ask for fewer options")

    async def _run(self, job: Job, frame: pd.DataFrame) -> None:
        try:
            found: list[Answer] = []
            job.state = "running"
            for start in range(0, len(frame), BLOCK):
                block = self.queue.block(frame.iloc[start : start + BLOCK], job.question)
                answer = await asyncio.wrap_future(block)
                found.append(answer)
                job.done += len(answer.rows)
                job.counts.update(answer.counts())
            await asyncio.to_thread(self._write, job, joined(found))
            job.state = "done"
        except InputError as error:
            job.state, job.words = "failed", str(error)
        except Exception as error:
            job.state, job.words = "failed", f"something went wrong in the server: {type(error).__name__}"

    def _write(self, job: Job, answer: Answer) -> None:
        frame = answer.to_frame()
        for name in ("answer.csv", "answer.jsonl"):
            write_table(job.folder / name, frame, job.dialect)
        if len(answer.rows) <= MOST_ON_A_PAGE:
            answer.to_html(job.folder / "report.html", language=job.language)
