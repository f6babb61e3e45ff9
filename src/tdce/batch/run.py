"""`tdce explain` on any number of rows: read a block, answer it, store it; resume a stopped run."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tdce._core import InputError, Name, Progress, Threads
from tdce.audit import Chain, block_lines, keys
from tdce.batch.blocks import load_explainer
from tdce.batch.checkpoint import BlockRecord, Checkpoint
from tdce.batch.pool import WorkerPool
from tdce.batch.shards import ShardFormat, parquet_types
from tdce.datasets import PARQUET, ChunkedTable, Dialect, chunks, whole_file, with_decimals
from tdce.explainer import ANSWER_COLUMNS, Explainer, empty_frame
from tdce.methods import Question
from tdce.models import AdaptedModel, Endpoint, Ensemble, hide_secrets

VERSIONED = ("tdce", "torch", "numpy", "pandas", "pyarrow")  # packages that the output depends on
SAME_OUTPUT = ("workers", "resumable", "evidence.secret")  # options whose value is not in the fingerprint; the
# checkpoint holds a digest of the secret
SCORE_DECIMALS = 6  # to which scores of the same model agree
MAX_UNSYNCED = 4  # blocks that may wait for the disk; a power cut would lose them


@dataclass(frozen=True)
class EvidenceOptions:
    """The evidence to write beside the output."""

    path: Path
    sign: Path | None = None  # the private key to sign with
    secret: Path | None = None  # the secret that hashes all values


@dataclass(frozen=True)
class RunOptions:
    """The settings of a run."""

    artefact: Path
    out: Path
    question: Question
    dialect: Dialect
    model: str | Endpoint | None = None
    workers: int = 1
    part_rows: int | None = None  # per file of an output folder; None: one file
    evidence: EvidenceOptions | None = None
    resumable: bool = True  # False: the output is temporary, and a run that is stopped leaves nothing


def explain_table(
    run: RunOptions, explainer: Explainer, table: ChunkedTable, progress: Progress, ensemble: Ensemble | None = None
) -> BlockRecord:
    """Answer every row of a surveyed table, write the output, and return the totals over all blocks."""
    run.question.check_budget(table.rows)
    artefact, secret, signer = _read_artefact(run, explainer), evidence_secret(run), evidence_signer(run)
    first, known = next(table.chunks())[1], table.object_types()
    shards = make_shard_format(run, explainer, first, known, table.label_type(), table.carriage_returns)
    checkpoint = Checkpoint(shards, fingerprint(run, table, model_digest(explainer, first)), secret)
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
            worker = BlockWorker(explainer, run.question, shards, run.evidence is not None, secret, ensemble, known)
            blocks = table.chunk_count - len(checkpoint.done)
            with closing(_answer_blocks(run, artefact, worker, jobs, blocks)) as results:
                for entry, content, evidence in results:  # a worker begins its next block when its last one is stored
                    keep(entry, content, evidence)
                    bar.advance(entry.rows)
        total = checkpoint.total()
        write_outputs(run, checkpoint, signer)
        return total
    except (KeyboardInterrupt, SystemExit):
        kept = sum(entry.rows for entry in checkpoint.kept.values())
        if kept and run.resumable:
            progress.say(
                f"{kept:,} of {table.rows:,} rows are kept in {checkpoint.folder}: run the same command again to resume"
            )
        raise
    finally:
        checkpoint.close()


def make_block_worker(artefact: bytes, model: str | Endpoint | None, worker: BlockWorker) -> Callable[..., Any]:
    """Make the worker of a separate process, which loads the explainer from the bytes of the artefact."""
    loaded = replace(worker, explainer=load_explainer(artefact, model))
    gc.freeze()  # the explainer stays in memory to the end
    return loaded


@dataclass(frozen=True)
class BlockWorker:
    """Answers one block: its record, its shard of the output, and its shard of the evidence."""

    explainer: Explainer | None  # None: on the way to another process, which loads its own
    question: Question  # with the query budget of all blocks together
    shards: ShardFormat
    with_evidence: bool = False
    secret: bytes | None = None
    ensemble: Ensemble | None = None
    types: Mapping[Name, pa.DataType] = field(default_factory=dict)  # of the table's columns, as far as known

    def __call__(self, number: int, rows: pd.DataFrame, budget: int | None) -> tuple[BlockRecord, bytes, bytes]:
        assert self.explainer is not None
        answer = self.explainer.ask(rows, replace(self.question, max_model_rows=budget), self.ensemble)
        content, evidence = self.shards.encode(number, with_decimals(answer.to_frame(), self.types)), b""
        if self.with_evidence:
            evidence = "".join(block_lines(answer, self.secret, self.question.max_model_rows)).encode()
        entry = BlockRecord(number, len(content), len(rows), answer.counts(), answer.model_calls, answer.model_rows)
        return entry, content, evidence


def _answer_blocks(
    run: RunOptions, artefact: bytes, worker: BlockWorker, jobs: Any, blocks: int
) -> Generator[tuple[BlockRecord, bytes, bytes], None, None]:
    """The results of all blocks, from a pool of processes or from this process."""
    if run.workers > 1 and blocks > 1:
        settings = artefact, run.model, replace(worker, explainer=None)
        yield from WorkerPool(make_block_worker, settings, min(run.workers, blocks)).results(jobs)
        return
    threads = Threads(blocks)
    for job in jobs:
        with threads.block():
            result = worker(*job)
        yield result


def evidence_secret(run: RunOptions) -> bytes | None:
    """The secret that hashes the values of the evidence, if any."""
    return None if run.evidence is None or run.evidence.secret is None else keys.load_secret(run.evidence.secret)


def evidence_signer(run: RunOptions) -> keys.Signer | None:
    """The key that signs the evidence, if any."""
    return None if run.evidence is None or run.evidence.sign is None else keys.load_signer(run.evidence.sign)


def write_outputs(run: RunOptions, checkpoint: Checkpoint, signer: keys.Signer | None) -> None:
    """Write the output and the evidence, then remove the checkpoint. If any shard is damaged, neither file appears."""
    if run.evidence is None:
        checkpoint.write_output()
    else:
        chain = Chain()
        with whole_file(run.evidence.path) as file:
            for shard in checkpoint.read_evidence():  # in the order of the blocks, linked into one chain
                file.writelines(line.encode() for line in chain.link(shard.decode().split("\n")[:-1]))
            file.write(chain.end(signer).encode())
            checkpoint.write_output()
    checkpoint.remove()


def _budget_share(budget: int | None, rows: pd.DataFrame, table: ChunkedTable) -> int | None:
    """A block's share of the query budget, in proportion to its rows, so that blocks do not depend on each other."""
    return None if budget is None else budget * len(rows) // table.rows


def make_shard_format(
    run: RunOptions,
    explainer: Explainer,
    rows: pd.DataFrame,  # any rows of the table
    known: Mapping[Name, pa.DataType],  # types of columns whose dtype does not determine them
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


def fingerprint(run: RunOptions, table: ChunkedTable, model: str) -> dict[str, Any]:
    """Everything the output depends on except the secret: a run is resumed only if all of it is the same. It has every
    option except those in `SAME_OUTPUT`; `model` is the result of `model_digest`."""
    question = {f"question.{name}": value for name, value in run.question.to_json().items()}
    contents = {
        "artefact": sha256(run.artefact.read_bytes()).hexdigest(),
        "out": run.out.name,
        "model": [_model_name(run.model), getattr(run.model, "headers", ()), model],
    }
    if (signer := evidence_signer(run)) is not None:
        contents["evidence.sign"] = signer.public
    return {
        "rows": table.fingerprint(),
        "block": chunks.CHUNK_ROWS,
        "versions": {name: version(name) for name in VERSIONED},
        **question,
        **{name: contents.get(name, value) for name, value in _options(run) if name not in SAME_OUTPUT},
    }


def _model_name(model: str | Endpoint | None) -> str | None:
    """The name of a file, or an address without parts that may be secret."""
    if isinstance(model, Endpoint):
        return model.name
    return hide_secrets(model) if model is not None and "://" in model else model


def _options(options: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The options of a dataclass and of nested ones by name (`evidence.path`); a question provides its own JSON."""
    for each in fields(options):
        name, value = prefix + each.name, getattr(options, each.name)
        if is_dataclass(value) and not isinstance(value, Question | Endpoint):
            yield from _options(value, f"{name}.")
        elif not isinstance(value, Question):
            yield name, str(value) if isinstance(value, Path) else value


def model_digest(explainer: Explainer, rows: pd.DataFrame) -> str:
    """A digest of the explained model: of its file or, if it can only be queried, of its output for these rows."""
    models, digest = explainer.fitted.decides, sha256()
    for each in explainer.provenance.models:
        digest.update(each["digest"].encode())
    if isinstance(models, AdaptedModel) and not all(each.digest for each in models.models):
        digest.update(np.round(models.score(explainer.fitted.encoder.read(rows)), SCORE_DECIMALS).tobytes())
    return digest.hexdigest()


def _read_artefact(run: RunOptions, explainer: Explainer) -> bytes:
    """The bytes of the loaded artefact, for the workers."""
    content = run.artefact.read_bytes()
    if sha256(content).hexdigest() != explainer.provenance.artefact:
        raise InputError(f"{run.artefact} was replaced after it was loaded; run the command again")
    return content


@contextmanager
def _frozen_heap() -> Iterator[None]:
    """Exempt all present objects from garbage collection, which would scan them again for every block."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _background_sync(checkpoint: Checkpoint) -> Iterator[Callable[[BlockRecord, bytes, bytes], None]]:
    """A function that adds a block to the checkpoint. A thread waits for the disk while the next block is computed; at
    most a few blocks wait."""
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
        waiting.put(checkpoint.done[entry.block])
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
