"""`tdce explain` on any number of rows: read a block, answer it, keep it; go on where an earlier run was stopped."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pandas as pd
import pyarrow as pa

from tdce import streams
from tdce.blocks import ADDED, Asked, explain_block, explainer_of
from tdce.cells import Name
from tdce.errors import InputError
from tdce.explainer import Explainer
from tdce.journal import Entry, Journal
from tdce.pieces import Shape, types_of
from tdce.progress import Progress
from tdce.streams import PARQUET, Stream
from tdce.tables import Dialect
from tdce.threads import Threads
from tdce.workers import Crew

VERSIONS = ("tdce", "torch", "numpy", "pandas", "pyarrow")
PIECES = 1  # that may wait to be written: it would be lost


@dataclass(frozen=True)
class Run:
    """What to do with a table."""

    artefact: Path
    out: Path
    asked: Asked
    dialect: Dialect
    model: str | None = None
    budget: int | None = None  # of rows that the model is asked about, over all blocks
    workers: int = 1
    part_rows: int | None = None  # in each file of a folder; None: one file


def explain_table(run: Run, explainer: Explainer, stream: Stream, progress: Progress) -> Entry:
    """Answer every row of a surveyed table, write the output, and say what it holds."""
    least = stream.rows * (run.asked.n + 2)
    if run.budget is not None and run.budget < least:
        raise InputError(f"max_model_rows is {run.budget:,}, but {stream.rows:,} rows with n={run.asked.n} need at "
                         f"least {least:,}: each row is asked about as it is, and so is each answer")  # fmt: skip
    first, known = next(stream.blocks())[1], stream.types_of_objects()
    shape = shape_of(run, explainer, first, known, stream.type_of_labels(), stream.returns)
    journal = Journal(shape, _about(run, stream))
    try:
        before = journal.total()
        if journal.said:
            progress.say(journal.said)
        elif before.rows:
            progress.say(f"{journal.folder} has {before.rows:,} of {stream.rows:,} rows: going on from there")
        with progress.rows("counterfactuals", stream.rows, before.rows) as bar, _writer(journal, bar.advance) as keep:
            jobs = ((n, rows, _share(run.budget, rows, stream)) for n, rows in stream.blocks(dict(journal.done)))
            with closing(_answers(run, shape, explainer, jobs, stream.count - len(journal.done))) as answers:
                for entry, content in answers:
                    keep(entry, content)
        total = journal.total()
        journal.finish()
        return total
    except (KeyboardInterrupt, SystemExit):
        kept = journal.total().rows
        if kept:
            progress.say(
                f"{kept:,} of {stream.rows:,} rows are kept in {journal.folder}: the same command goes on there"
            )
        raise
    finally:
        journal.close()


def block_worker(content: bytes, model: str | None, asked: Asked, shape: Shape) -> Callable[..., Any]:
    """What a process does with each block that it is given."""
    return Answering(explainer_of(content, model), asked, shape)


@dataclass(frozen=True)
class Answering:
    explainer: Explainer
    asked: Asked
    shape: Shape

    def __call__(self, number: int, rows: pd.DataFrame, budget: int | None) -> tuple[Entry, bytes]:
        answer = explain_block(self.explainer, rows, self.asked, budget)
        content = self.shape.encode(number, answer.to_frame())
        entry = Entry(number, len(content), len(rows), answer.counts(), answer.model_calls, answer.model_rows)
        return entry, content


def _answers(
    run: Run, shape: Shape, explainer: Explainer, jobs: Any, blocks: int
) -> Generator[tuple[Entry, bytes], None, None]:
    if run.workers > 1 and blocks > 1:
        settings = run.artefact.read_bytes(), run.model, run.asked, shape
        yield from Crew(block_worker, settings, min(run.workers, blocks)).results(jobs)
        return
    answering, threads = Answering(explainer, run.asked, shape), Threads(blocks)
    for job in jobs:
        with threads.block():
            found = answering(*job)
        yield found


def _share(budget: int | None, rows: pd.DataFrame, stream: Stream) -> int | None:
    """A block's part of the budget, whatever was spent on others: it does not depend on the order of the work."""
    return None if budget is None else budget * len(rows) // stream.rows


def shape_of(
    run: Run,
    explainer: Explainer,
    rows: pd.DataFrame,  # any of the table's
    known: Mapping[Name, pa.DataType],  # of its columns whose dtype does not tell
    labels: pa.DataType | None = None,
    quoted: bool = False,
) -> Shape:
    blocks = None if run.part_rows is None else max(1, run.part_rows // streams.BLOCK)
    shape = Shape(run.out, run.dialect, quoted, None, blocks)
    if shape.suffix != PARQUET:
        return shape
    frame = explain_block(explainer, rows.head(0), run.asked).to_frame()
    added = dict(zip(ADDED, frame.columns[-len(ADDED) :], strict=True))
    types = {**known, added["status"]: pa.string(), added["note"]: pa.string()}
    if labels is not None:
        types[added["row"]] = labels
    return replace(shape, types=types_of(run.out, frame, types))


def _about(run: Run, stream: Stream) -> Mapping[str, Any]:
    """All that the output depends on."""
    return {
        "rows": stream.fingerprint(),
        "artefact": sha256(run.artefact.read_bytes()).hexdigest(),
        "model": run.model,
        "options": {name: repr(value) for name, value in asdict(run.asked).items()} | {"max_model_rows": run.budget},
        "format": [run.out.name, asdict(run.dialect), run.part_rows, streams.BLOCK],
        "versions": {name: version(name) for name in VERSIONS},
    }


@contextmanager
def _writer(journal: Journal, done: Callable[[int], None]) -> Iterator[Callable[[Entry, bytes], None]]:
    """A thread that writes what it is given while the next block is computed; only a few pieces may wait."""
    waiting: Queue[Any] = Queue(PIECES)
    failed: list[BaseException] = []

    def write() -> None:
        while (item := waiting.get()) is not None:
            if not failed:
                try:
                    journal.add(*item)
                    done(item[0].rows)
                except BaseException as error:
                    failed.append(error)

    def keep(entry: Entry, content: bytes) -> None:
        if failed:
            raise failed[0]
        waiting.put((entry, content))

    thread = Thread(target=write)
    thread.start()
    try:
        yield keep
    finally:  # what is finished is kept, also by a run that is stopped
        waiting.put(None)
        thread.join()
    if failed:
        raise failed[0]
