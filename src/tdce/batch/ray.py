"""Explain on a Ray cluster, in actors that each load the explainer once (`tdce[ray]`)."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyarrow.fs import LocalFileSystem, PyFileSystem

from tdce._core import InputError, Progress, require_extra
from tdce.audit import BLOCK_PREFIX, block_lines, relabel
from tdce.batch.blocks import answer_to_arrow, block_frame, load_explainer
from tdce.batch.checked_files import CheckedFiles, Stamps, find_file_system
from tdce.batch.checkpoint import BlockRecord, Checkpoint
from tdce.batch.run import RunOptions, evidence_secret, evidence_signer, make_shard_format, write_outputs
from tdce.batch.shards import ShardFormat
from tdce.datasets import arrow_to_frame, changed_file, chunks
from tdce.explainer import ANSWER_COLUMNS, unused_name
from tdce.methods import Question
from tdce.models import Endpoint, Ensemble

if TYPE_CHECKING:
    from ray.data import Dataset

EVIDENCE_COLUMN = "evidence"  # carries the evidence from the actors


class ExplainActor:
    """A Ray actor that answers blocks one after the other."""

    def __init__(
        self,
        artefact: bytes,
        model: str | Endpoint | None,
        question: Question,
        ensemble: Ensemble | None = None,
        with_evidence: bool = False,  # as the last column
        secret: bytes | None = None,
    ) -> None:
        self.explainer, self.question, self.ensemble = load_explainer(artefact, model), question, ensemble
        self.with_evidence, self.secret = with_evidence, secret

    def __call__(self, rows: pa.Table) -> pa.Table:
        answer = self.explainer.ask(block_frame(rows), self.question, self.ensemble)
        table = answer_to_arrow(answer, rows.schema)
        if not self.with_evidence:
            return table
        head, *lines = block_lines(answer, self.secret)
        cells = [head + lines[0], *lines[1:]] if lines else []
        return table.append_column(unused_name(EVIDENCE_COLUMN, table.column_names), pa.array(cells, pa.large_string()))


def explain(
    rows: Dataset,
    artefact: str | os.PathLike[str],
    workers: int = 1,
    model: str | Endpoint | None = None,
    robust: Ensemble | None = None,
    **question: Any,
) -> Dataset:
    """Explain a Ray data set lazily: return a data set of answers, computed when it is consumed.

    `robust` is the result of `Explainer.retrain`; `question` holds the other arguments of `Explainer.explain`. There is
    no column `row`, because the tables of an engine have no order: identify rows by their own columns."""
    require_extra("explaining with Ray", "ray", "ray")
    whole_question = Question(**question, robust=None if robust is None else robust.retraining)
    return _map_blocks(rows, workers, Path(artefact).read_bytes(), model, whole_question, robust)


def _map_blocks(rows: Dataset, workers: int, *settings: Any) -> Dataset:
    """Map blocks of rows to answers in a pool of actors with these settings."""
    from ray.data import ActorPoolStrategy

    size = chunks.CHUNK_ROWS
    return rows.repartition(target_num_rows_per_block=size).map_batches(
        ExplainActor, fn_constructor_args=settings, batch_size=size, batch_format="pyarrow",
        compute=ActorPoolStrategy(size=workers), num_cpus=1,
    )  # fmt: skip


def explain_parquet(run: RunOptions, rows: str, progress: Progress, ensemble: Ensemble | None = None) -> BlockRecord:
    """Run `tdce explain --engine ray`: read Parquet from wherever Ray can (a file, a folder, `s3://…`), and write the
    same output and evidence as a single process."""
    require_extra("--engine ray", "ray", "ray")
    if rows.lower().endswith((".csv", ".csv.gz")):
        raise InputError(f"{rows}: --engine ray reads parquet, whose columns have types; leave --engine out, or "
                         "convert the table")  # fmt: skip
    import ray

    if not ray.is_initialized():
        local = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": run.workers + 1}  # one CPU is for reading
        ray.init(include_dashboard=False, log_to_driver=False, **local)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    logging.getLogger("ray.data").setLevel(logging.WARNING)  # this process shows progress itself
    try:
        table, stamps = _read_parquet(rows)
        types = table.schema().base_schema
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{rows} cannot be read as parquet: {str(error).splitlines()[0]}") from None
    content, secret = run.artefact.read_bytes(), evidence_secret(run)
    explainer = load_explainer(content, run.model)
    empty = arrow_to_frame(types.empty_table())
    explainer.check(run.question)
    explainer.fitted.encoder.read(empty)
    shards = make_shard_format(run, explainer, empty, {field.name: field.type for field in types})
    answers = _map_blocks(
        table, run.workers, content, run.model, run.question, ensemble, run.evidence is not None, secret
    )
    checkpoint = Checkpoint(shards, {"run": str(uuid4())})  # never resumed: Ray restarts tasks, but not runs
    try:
        with _input_errors(rows), progress.rows("counterfactuals", table.count()) as bar:
            for entry, content, evidence in _encode_blocks(answers, run, shards, secret):
                checkpoint.add(entry, content, evidence)
                bar.advance(entry.rows)
        if stamps is not None:
            stamps.check()
        total = checkpoint.total()
        write_outputs(run, checkpoint, evidence_signer(run))
        return total
    finally:
        checkpoint.done.clear()  # nothing is left to resume
        checkpoint.close()


def _read_parquet(rows: str) -> tuple[Dataset, Stamps | None]:
    """The data set of a file or folder, and its files to check at the end. Files on this machine (or on a disk that all
    machines share) are checked whenever they are read, those at an address only at the end."""
    import ray

    system, path = find_file_system(rows)
    if not isinstance(system, LocalFileSystem):
        stamps = Stamps(system, path)
        return ray.data.read_parquet(rows), stamps
    return ray.data.read_parquet(path, filesystem=PyFileSystem(CheckedFiles(path))), None


@contextmanager
def _input_errors(rows: str) -> Iterator[None]:
    """Raise an actor's InputError as one of this process, because Ray passes on only its text. Files that have
    disappeared have changed: they were there when the run began."""
    try:
        yield
    except Exception as error:
        if messages := re.findall(rf"^{InputError.__module__}\.InputError: (.*)$", str(error), re.MULTILINE):
            raise InputError(messages[-1]) from None
        if isinstance(error, FileNotFoundError) and "://" not in rows and not Path(rows).exists():
            raise changed_file(rows) from None
        raise


def _encode_blocks(
    answers: Dataset, run: RunOptions, shards: ShardFormat, secret: bytes | None
) -> Iterator[tuple[BlockRecord, bytes, bytes]]:
    """The record, shard and evidence of each block, with rows numbered as in a single process."""
    n, head = run.question.n, ""
    for number, table in enumerate(_rebatch(answers, chunks.CHUNK_ROWS * n)):
        first, rows = number * chunks.CHUNK_ROWS, len(table) // n
        labels, evidence = np.repeat(np.arange(first, first + rows), n), b""
        if run.evidence is not None:
            cells, table = table[table.num_columns - 1].to_pylist(), table.drop_columns(table.column_names[-1])
            head, lines = _renumber_evidence(head, cells, labels.tolist(), secret)
            evidence = "".join(lines).encode()
        frame = arrow_to_frame(table)
        at = len(frame.columns) - len(ANSWER_COLUMNS) + 1
        frame.insert(at, unused_name("row", table.column_names), labels)
        content = shards.encode(number, frame)
        counts = Counter(frame.iloc[:, at + ANSWER_COLUMNS.index("status")].tolist())
        yield BlockRecord(number, len(content), rows, dict(counts), 0, 0), content, evidence


def _renumber_evidence(head: str, cells: list[str], labels: list[int], secret: bytes | None) -> tuple[str, list[str]]:
    """Lines of evidence with row numbers of the whole table, and the head line of the block that they end with. `head`
    is the head line of the block that they begin with, which Ray may have split."""
    lines = [] if cells[0].startswith(BLOCK_PREFIX) else [head]
    for cell, label in zip(cells, labels, strict=True):
        *heads, line, _ = cell.split("\n")
        head = f"{heads[0]}\n" if heads else head
        lines += [head] * len(heads) + [relabel(line, label, secret) + "\n"]
    return head, lines


def _rebatch(answers: Dataset, size: int) -> Iterator[pa.Table]:
    """Regroup tables into tables of `size` lines each; the last may be shorter."""
    waiting, count = list[pa.Table](), 0
    for batch in answers.iter_batches(batch_format="pyarrow", batch_size=None):
        waiting.append(batch)
        count += len(batch)
        while count >= size:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, size)
            waiting, count = [whole.slice(size)] * (count > size), count - size
    if count:
        yield pa.concat_tables(waiting)
