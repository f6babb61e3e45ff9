"""Rows on a Ray cluster: the block function in actors, each of which loads the explainer once (`tdce[ray]`)."""

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

from tdce._core import InputError, Progress, require_extra
from tdce.audit import ABOUT, block_lines, relabelled
from tdce.batch.blocks import answer_to_arrow, block_frame, load_explainer
from tdce.batch.checkpoint import BlockRecord, Checkpoint
from tdce.batch.run import RunOptions, secret_of, shape_of, write_evidence
from tdce.batch.shards import ShardFormat
from tdce.datasets import chunks as streams
from tdce.explainer import ANSWER_COLUMNS, unused_name
from tdce.methods import Question
from tdce.models import Ensemble

if TYPE_CHECKING:
    from ray.data import Dataset

EVIDENCE = "evidence"  # the column in which it travels


class Explaining:
    """An actor."""

    def __init__(
        self,
        artefact: bytes,
        model: str | None,
        question: Question,
        ensemble: Ensemble | None = None,
        recorded: bool = False,  # whether the last column is the evidence
        secret: bytes | None = None,
    ) -> None:
        self.explainer, self.question, self.ensemble = load_explainer(artefact, model), question, ensemble
        self.recorded, self.secret = recorded, secret

    def __call__(self, rows: pa.Table) -> pa.Table:
        answer = self.explainer.ask(block_frame(rows), self.question, self.ensemble)
        table = answer_to_arrow(answer, rows.schema)
        if not self.recorded:
            return table
        about, *lines = block_lines(answer, self.secret)
        cells = [about + lines[0], *lines[1:]] if lines else []
        return table.append_column(unused_name(EVIDENCE, table.column_names), pa.array(cells, pa.large_string()))


def explain(
    rows: Dataset,
    artefact: str | os.PathLike[str],
    workers: int = 1,
    model: str | None = None,
    robust: Ensemble | None = None,
    **question: Any,
) -> Dataset:
    """A Ray data set of answers, computed when it is consumed. `robust`: what `Explainer.retrain` made; `question`:
    as for `Explainer.explain`.

    An engine's table has no order, so there is no column `row`: the table's own columns say who is who."""
    require_extra("explaining with Ray", "ray", "ray")
    asked = Question(**question, robust=None if robust is None else robust.retraining)
    return _answered(rows, workers, Path(artefact).read_bytes(), model, asked, robust)


def _answered(rows: Dataset, workers: int, *settings: Any) -> Dataset:
    from ray.data import ActorPoolStrategy

    block = streams.CHUNK_ROWS
    return rows.repartition(target_num_rows_per_block=block).map_batches(
        Explaining, fn_constructor_args=settings, batch_size=block, batch_format="pyarrow",
        compute=ActorPoolStrategy(size=workers), num_cpus=1,
    )  # fmt: skip


def explain_parquet(run: RunOptions, rows: str, progress: Progress, ensemble: Ensemble | None = None) -> BlockRecord:
    """`tdce explain --engine ray`: reads parquet from any place that Ray can read (a file, a folder, `s3://…`), and
    writes what one process would write, the evidence too."""
    require_extra("--engine ray", "ray", "ray")
    if rows.lower().endswith((".csv", ".csv.gz")):
        raise InputError(f"{rows}: --engine ray reads parquet, whose columns have types; leave --engine out, or "
                         "convert the table")  # fmt: skip
    import ray

    if not ray.is_initialized():
        here = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": run.workers + 1}  # one reads
        ray.init(include_dashboard=False, log_to_driver=False, **here)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    logging.getLogger("ray.data").setLevel(logging.WARNING)  # progress is told here
    try:
        table = ray.data.read_parquet(rows)
        types = table.schema().base_schema
    except (OSError, ValueError) as error:
        raise InputError(f"{rows} cannot be read as parquet: {str(error).splitlines()[0]}") from None
    content, secret = run.artefact.read_bytes(), secret_of(run)
    explainer = load_explainer(content, run.model)
    empty = streams.arrow_to_frame(types.empty_table())
    explainer.check(run.question)
    explainer.fitted.encoder.read(empty)
    shape = shape_of(run, explainer, empty, {field.name: field.type for field in types})
    answers = _answered(
        table, run.workers, content, run.model, run.question, ensemble, run.evidence is not None, secret
    )
    journal = Checkpoint(shape, {"run": str(uuid4())})  # Ray restarts what dies, but not a run that was stopped itself
    try:
        with _speaking(), progress.rows("counterfactuals", table.count()) as bar:
            for found in _pieces(answers, run, shape, secret):
                journal.add(*found)
                bar.advance(found[0].rows)
        total = journal.total()
        if run.evidence is not None:
            write_evidence(run.evidence, journal.records())
        journal.finish()
        return total
    finally:
        journal.done.clear()  # nothing to go on with
        journal.close()


@contextmanager
def _speaking() -> Iterator[None]:
    """A wrong cell that an actor has met is named as it would be here; of its error Ray hands on the text."""
    try:
        yield
    except Exception as error:
        if found := re.findall(rf"^{InputError.__module__}\.InputError: (.*)$", str(error), re.MULTILINE):
            raise InputError(found[-1]) from None
        raise


def _pieces(
    answers: Dataset, run: RunOptions, shape: ShardFormat, secret: bytes | None
) -> Iterator[tuple[BlockRecord, bytes, bytes]]:
    """The lines of one block after the other, numbered as in one process."""
    n, about = run.question.n, ""
    for number, table in enumerate(_lines(answers, streams.CHUNK_ROWS * n)):
        first, rows = number * streams.CHUNK_ROWS, len(table) // n
        labels, record = np.repeat(np.arange(first, first + rows), n), b""
        if run.evidence is not None:
            cells, table = table[table.num_columns - 1].to_pylist(), table.drop_columns(table.column_names[-1])
            about, lines = _numbered(about, cells, labels.tolist(), secret)
            record = "".join(lines).encode()
        frame = streams.arrow_to_frame(table)
        at = len(frame.columns) - len(ANSWER_COLUMNS) + 1
        frame.insert(at, unused_name("row", table.column_names), labels)
        content = shape.encode(number, frame)
        counts = Counter(frame.iloc[:, at + ANSWER_COLUMNS.index("status")].tolist())
        yield BlockRecord(number, len(content), rows, dict(counts), 0, 0, len(record)), content, record


def _numbered(about: str, cells: list[str], labels: list[int], secret: bytes | None) -> tuple[str, list[str]]:
    """Lines of evidence with the rows' numbers in the whole table. `about`: what the last block began with, for Ray may
    have cut it in two; what these lines' last block began with comes back."""
    lines = [] if cells[0].startswith(ABOUT) else [about]
    for cell, label in zip(cells, labels, strict=True):
        *began, line, _ = cell.split("\n")
        about = f"{began[0]}\n" if began else about
        lines += [about] * len(began) + [relabelled(line, label, secret) + "\n"]
    return about, lines


def _lines(answers: Dataset, size: int) -> Iterator[pa.Table]:
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
