"""`tdce explain` on any number of rows: read a block, answer it, keep it; resume a run that was stopped."""

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
from tdce.batch.shards import ShardFormat, parquet_types
from tdce.datasets import PARQUET, ChunkedTable, Dialect, chunks, whole_file
from tdce.explainer import ANSWER_COLUMNS, Explainer, empty_frame
from tdce.methods import Question
from tdce.models import Endpoint, Ensemble, hide_secrets

VERSIONED = ("tdce", "torch", "numpy", "pandas", "pyarrow")  # packages that an output depends on
MAX_UNSYNCED = 4  # blocks that may wait to reach the disk; a power cut would lose them


@dataclass(frozen=True)
class EvidenceOptions:
    """The evidence to write beside the output."""

    path: Path
    sign: Path | None = None  # the private key to sign it with
    secret: Path | None = None  # hash all values with this secret


@dataclass(frozen=True)
class RunOptions:
    """The settings of a run."""

    artefact: Path
    out: Path
    question: Question
    dialect: Dialect
    model: str | Endpoint | None = None
    workers: int = 1
    part_rows: int | None = None  # in each file of a folder; None: one file
    evidence: EvidenceOptions | None = None
    resumable: bool = True  # False: the output is temporary, and what is finished of it is gone when the run is stopped


def explain_table(
    run: RunOptions, explainer: Explainer, table: ChunkedTable, progress: Progress, ensemble: Ensemble | None = None
) -> BlockRecord:
    """Answer every row of a surveyed table, write the output, and return the sum over all blocks."""
    run.question.check_budget(table.rows)
    first, known = next(table.chunks())[1], table.object_types()
    shards = make_shard_format(run, explainer, first, known, table.label_type(), table.carriage_returns)
    checkpoint = Checkpoint(shards, _settings(run, table))
    try:
        before = checkpoint.total()
        if checkpoint.message:
            progress.say(checkpoint.message)
        elif before.rows:
            progress.say(f"{checkpoint.folder} has {before.rows:,} of {table.rows:,} rows: resuming")
        rows_bar = progress.rows("counterfactuals", table.rows, before.rows)
        with _frozen_heap(), rows_bar as bar, _background_sync(checkpoint) as keep:
            jobs = (
                (number, rows, _budget_share(run.question.max_model_rows, rows, table))
                for number, rows in table.chunks(dict(checkpoint.done))
            )
            worker = BlockWorker(
                explainer, run.question, shards, run.evidence is not None, evidence_secret(run), ensemble
            )
            with closing(_answer_blocks(run, worker, jobs, table.chunk_count - len(checkpoint.done))) as results:
                for entry, content, evidence in results:  # a worker begins its next block when its last one is kept
                    keep(entry, content, evidence)
                    bar.advance(entry.rows)
        total = checkpoint.total()
        if run.evidence is not None:
            link_evidence(run.evidence, checkpoint.evidence_paths())
        checkpoint.finish()
        return total
    except (KeyboardInterrupt, SystemExit):
        kept = checkpoint.total().rows
        if kept and run.resumable:
            progress.say(
                f"{kept:,} of {table.rows:,} rows are kept in {checkpoint.folder}: run the same command again to resume"
            )
        raise
    finally:
        checkpoint.close()


def make_block_worker(artefact: bytes, model: str | Endpoint | None, worker: BlockWorker) -> Callable[..., Any]:
    """The worker of a process of its own, which loads the explainer from the bytes of the artefact."""
    loaded = replace(worker, explainer=load_explainer(artefact, model))
    gc.freeze()  # it stays to the end
    return loaded


@dataclass(frozen=True)
class BlockWorker:
    """Answers one block: its record, its shard of the output, and its shard of the evidence."""

    explainer: Explainer | None  # None: on its way to another process, which loads one
    question: Question  # with the query budget of all blocks
    shards: ShardFormat
    with_evidence: bool = False
    secret: bytes | None = None
    ensemble: Ensemble | None = None

    def __call__(self, number: int, rows: pd.DataFrame, budget: int | None) -> tuple[BlockRecord, bytes, bytes]:
        assert self.explainer is not None
        answer = self.explainer.ask(rows, replace(self.question, max_model_rows=budget), self.ensemble)
        content, evidence = self.shards.encode(number, answer.to_frame()), b""
        if self.with_evidence:
            evidence = "".join(block_lines(answer, self.secret, self.question.max_model_rows)).encode()
        entry = BlockRecord(
            number, len(content), len(rows), answer.counts(), answer.model_calls, answer.model_rows, len(evidence)
        )
        return entry, content, evidence


def _answer_blocks(
    run: RunOptions, worker: BlockWorker, jobs: Any, blocks: int
) -> Generator[tuple[BlockRecord, bytes, bytes], None, None]:
    """The results of all blocks, from a pool of processes or from this one."""
    if run.workers > 1 and blocks > 1:
        settings = run.artefact.read_bytes(), run.model, replace(worker, explainer=None)
        yield from WorkerPool(make_block_worker, settings, min(run.workers, blocks)).results(jobs)
        return
    threads = Threads(blocks)
    for job in jobs:
        with threads.block():
            result = worker(*job)
        yield result


def evidence_secret(run: RunOptions) -> bytes | None:
    """The secret of the evidence, if it has one."""
    return None if run.evidence is None or run.evidence.secret is None else keys.load_secret(run.evidence.secret)


def link_evidence(options: EvidenceOptions, paths: Sequence[Path]) -> None:
    """Write the evidence: its shards, in the order of the blocks, linked into one chain."""
    chain, signer = Chain(), None if options.sign is None else keys.load_signer(options.sign)
    with whole_file(options.path) as file:
        for path in paths:
            with open(path, encoding="utf-8", newline="\n") as lines:
                file.writelines(line.encode() for line in chain.link(lines))
        file.write(chain.end(signer).encode())


def _budget_share(budget: int | None, rows: pd.DataFrame, table: ChunkedTable) -> int | None:
    """A block's share of the query budget, in proportion to its rows, so that it does not depend on other blocks."""
    return None if budget is None else budget * len(rows) // table.rows


def make_shard_format(
    run: RunOptions,
    explainer: Explainer,
    rows: pd.DataFrame,  # any rows of the table
    known: Mapping[Name, pa.DataType],  # types of its columns whose dtype does not tell
    labels: pa.DataType | None = None,  # the type of its index
    quoted: bool = False,
) -> ShardFormat:
    """The format of the output's shards."""
    blocks = None if run.part_rows is None else max(1, run.part_rows // chunks.CHUNK_ROWS)
    shards = ShardFormat(run.out, run.dialect, quoted, None, blocks)
    if shards.suffix != PARQUET:
        return shards
    frame = empty_frame(explainer.fitted.encoder, rows)
    added = dict(zip(ANSWER_COLUMNS, frame.columns[-len(ANSWER_COLUMNS) :], strict=True))
    types = {**known, added["status"]: pa.string(), added["note"]: pa.string()}
    if labels is not None:
        types[added["row"]] = labels
    return replace(shards, types=parquet_types(run.out, frame, types))


def _settings(run: RunOptions, table: ChunkedTable) -> Mapping[str, Any]:
    """Everything the output depends on: a run is resumed only if all of it is the same."""
    return {
        "rows": table.fingerprint(),
        "artefact": sha256(run.artefact.read_bytes()).hexdigest(),
        "model": _model_name(run.model),
        "options": run.question.to_json(),
        "evidence": None if run.evidence is None else [str(run.evidence.path), run.evidence.secret is not None],
        "format": [run.out.name, asdict(run.dialect), run.part_rows, chunks.CHUNK_ROWS],
        "versions": {name: version(name) for name in VERSIONED},
    }


def _model_name(model: str | Endpoint | None) -> str | None:
    """A file, or an address without what may be secret in it."""
    if isinstance(model, Endpoint):
        return model.name
    return hide_secrets(model) if model is not None and "://" in model else model


@contextmanager
def _frozen_heap() -> Iterator[None]:
    """Exempt all present objects from garbage collection: scanning them again for every block costs time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _background_sync(checkpoint: Checkpoint) -> Iterator[Callable[[BlockRecord, bytes, bytes], None]]:
    """A function that adds a block to the checkpoint. A thread waits for the disk while the next block is computed;
    only a few blocks may wait."""
    waiting: Queue[BlockRecord | None] = Queue(MAX_UNSYNCED)
    failed: list[BaseException] = []

    def sync() -> None:
        while (entry := waiting.get()) is not None:
            if not failed:
                try:
                    checkpoint.sync(entry)
                except BaseException as error:
                    failed.append(error)

    def keep(entry: BlockRecord, content: bytes, evidence: bytes) -> None:
        checkpoint.add(entry, content, evidence)
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
