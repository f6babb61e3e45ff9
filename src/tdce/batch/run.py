"""`tdce explain` on any number of rows: read a block, answer it, keep it; go on where an earlier run was stopped."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
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

from tdce._core import Name, Progress, Threads
from tdce.audit import Chain, block_lines, keys
from tdce.batch.blocks import load_explainer
from tdce.batch.checkpoint import BlockRecord, Checkpoint
from tdce.batch.pool import WorkerPool
from tdce.batch.shards import ShardFormat, types_of
from tdce.datasets import PARQUET, ChunkedTable, Dialect, whole_file
from tdce.datasets import chunks as streams
from tdce.explainer import ANSWER_COLUMNS, Explainer, empty_frame
from tdce.methods import Question
from tdce.models import Ensemble

VERSIONS = ("tdce", "torch", "numpy", "pandas", "pyarrow")
PIECES = 4  # that may wait to reach the disk: a power cut would lose them


@dataclass(frozen=True)
class EvidenceOptions:
    """Evidence to write besides the output."""

    path: Path
    sign: Path | None = None  # a private key
    secret: Path | None = None  # with it, no value is held


@dataclass(frozen=True)
class RunOptions:
    """What to do with a table."""

    artefact: Path
    out: Path
    question: Question
    dialect: Dialect
    model: str | None = None
    workers: int = 1
    part_rows: int | None = None  # in each file of a folder; None: one file
    evidence: EvidenceOptions | None = None


def explain_table(
    run: RunOptions, explainer: Explainer, stream: ChunkedTable, progress: Progress, ensemble: Ensemble | None = None
) -> BlockRecord:
    """Answer every row of a surveyed table, write the output, and say what it holds."""
    run.question.check_budget(stream.rows)
    first, known = next(stream.chunks())[1], stream.object_types()
    shape = shape_of(run, explainer, first, known, stream.label_type(), stream.carriage_returns)
    journal = Checkpoint(shape, _about(run, stream))
    try:
        before = journal.total()
        if journal.said:
            progress.say(journal.said)
        elif before.rows:
            progress.say(f"{journal.folder} has {before.rows:,} of {stream.rows:,} rows: going on from there")
        bar_of = progress.rows("counterfactuals", stream.rows, before.rows)
        with _uncollected(), bar_of as bar, _synced(journal) as keep:
            jobs = (
                (n, rows, _share(run.question.max_model_rows, rows, stream))
                for n, rows in stream.chunks(dict(journal.done))
            )
            answering = BlockWorker(explainer, run.question, shape, run.evidence is not None, secret_of(run), ensemble)
            with closing(_answers(run, answering, jobs, stream.chunk_count - len(journal.done))) as answers:
                for found in answers:  # nobody begins another block before his last one is kept
                    keep(*found)
                    bar.advance(found[0].rows)
        total = journal.total()
        if run.evidence is not None:
            write_evidence(run.evidence, journal.records())
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


def block_worker(content: bytes, model: str | None, answering: BlockWorker) -> Callable[..., Any]:
    """What a process does with each block that it is given."""
    made = replace(answering, explainer=load_explainer(content, model))
    gc.freeze()  # it stays to the end
    return made


@dataclass(frozen=True)
class BlockWorker:
    """What is made of one block: what is noted of it, its piece of the output, and its piece of the evidence."""

    explainer: Explainer | None  # None: on its way to another process, which has one
    question: Question  # with the budget of all blocks
    shape: ShardFormat
    recorded: bool = False  # whether there is evidence to make
    secret: bytes | None = None
    ensemble: Ensemble | None = None

    def __call__(self, number: int, rows: pd.DataFrame, budget: int | None) -> tuple[BlockRecord, bytes, bytes]:
        assert self.explainer is not None
        answer = self.explainer.ask(rows, replace(self.question, max_model_rows=budget), self.ensemble)
        content = self.shape.encode(number, answer.to_frame())
        record = (
            "".join(block_lines(answer, self.secret, self.question.max_model_rows)).encode() if self.recorded else b""
        )
        entry = BlockRecord(
            number, len(content), len(rows), answer.counts(), answer.model_calls, answer.model_rows, len(record)
        )
        return entry, content, record


def _answers(
    run: RunOptions, answering: BlockWorker, jobs: Any, blocks: int
) -> Generator[tuple[BlockRecord, bytes, bytes], None, None]:
    if run.workers > 1 and blocks > 1:
        settings = run.artefact.read_bytes(), run.model, replace(answering, explainer=None)
        yield from WorkerPool(block_worker, settings, min(run.workers, blocks)).results(jobs)
        return
    threads = Threads(blocks)
    for job in jobs:
        with threads.block():
            found = answering(*job)
        yield found


def secret_of(run: RunOptions) -> bytes | None:
    return None if run.evidence is None or run.evidence.secret is None else keys.secret(run.evidence.secret)


def write_evidence(keeping: EvidenceOptions, records: Sequence[Path]) -> None:
    """The pieces of all blocks in their order, linked into one chain."""
    chain, signer = Chain(), None if keeping.sign is None else keys.signer(keeping.sign)
    with whole_file(keeping.path) as file:
        for path in records:
            with open(path, encoding="utf-8", newline="\n") as lines:
                file.writelines(line.encode() for line in chain.link(lines))
        file.write(chain.end(signer).encode())


def _share(budget: int | None, rows: pd.DataFrame, stream: ChunkedTable) -> int | None:
    """A block's part of the budget, whatever was spent on others: it does not depend on the order of the work."""
    return None if budget is None else budget * len(rows) // stream.rows


def shape_of(
    run: RunOptions,
    explainer: Explainer,
    rows: pd.DataFrame,  # any of the table's
    known: Mapping[Name, pa.DataType],  # of its columns whose dtype does not tell
    labels: pa.DataType | None = None,
    quoted: bool = False,
) -> ShardFormat:
    blocks = None if run.part_rows is None else max(1, run.part_rows // streams.CHUNK_ROWS)
    shape = ShardFormat(run.out, run.dialect, quoted, None, blocks)
    if shape.suffix != PARQUET:
        return shape
    frame = empty_frame(explainer.fitted.encoder, rows)
    added = dict(zip(ANSWER_COLUMNS, frame.columns[-len(ANSWER_COLUMNS) :], strict=True))
    types = {**known, added["status"]: pa.string(), added["note"]: pa.string()}
    if labels is not None:
        types[added["row"]] = labels
    return replace(shape, types=types_of(run.out, frame, types))


def _about(run: RunOptions, stream: ChunkedTable) -> Mapping[str, Any]:
    """All that the output depends on."""
    return {
        "rows": stream.fingerprint(),
        "artefact": sha256(run.artefact.read_bytes()).hexdigest(),
        "model": run.model,
        "question": run.question.to_json(),
        "evidence": None if run.evidence is None else [str(run.evidence.path), run.evidence.secret is not None],
        "format": [run.out.name, asdict(run.dialect), run.part_rows, streams.CHUNK_ROWS],
        "versions": {name: version(name) for name in VERSIONS},
    }


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is there already stays: the garbage collector need not look through it again with every block."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _synced(journal: Checkpoint) -> Iterator[Callable[[BlockRecord, bytes, bytes], None]]:
    """What keeps a block at once; a thread waits for the disk while the next one is computed. Only a few may wait."""
    waiting: Queue[BlockRecord | None] = Queue(PIECES)
    failed: list[BaseException] = []

    def sync() -> None:
        while (entry := waiting.get()) is not None:
            if not failed:
                try:
                    journal.sync(entry)
                except BaseException as error:
                    failed.append(error)

    def keep(entry: BlockRecord, content: bytes, record: bytes) -> None:
        journal.add(entry, content, record)
        waiting.put(entry)
        if failed:
            raise failed[0]

    thread = Thread(target=sync)
    thread.start()
    try:
        yield keep
    finally:
        waiting.put(None)
        thread.join()
    if failed:
        raise failed[0]
