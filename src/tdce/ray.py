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

from tdce import streams
from tdce.blocks import ADDED, Asked, Check, explain_arrow, explainer_of, unused
from tdce.errors import InputError, require_engine
from tdce.journal import Entry, Journal
from tdce.overnight import Run, shape_of
from tdce.pieces import Shape
from tdce.progress import Progress

if TYPE_CHECKING:
    from ray.data import Dataset


class Explaining:
    """An actor."""

    def __init__(self, artefact: bytes, model: str | None, asked: Asked) -> None:
        self.explainer, self.asked = explainer_of(artefact, model), asked

    def __call__(self, rows: pa.Table) -> pa.Table:
        return explain_arrow(self.explainer, rows, self.asked)


def explain(
    rows: Dataset, artefact: str | os.PathLike[str], workers: int = 1, model: str | None = None, **asked: Any
) -> Dataset:
    """A Ray data set of answers, computed when it is consumed. `asked`: as for `Explainer.explain`.

    An engine's table has no order, so there is no column `row`: the table's own columns say who is who."""
    require_engine("ray")
    from ray.data import ActorPoolStrategy

    block = streams.BLOCK
    return rows.repartition(target_num_rows_per_block=block).map_batches(
        Explaining, fn_constructor_args=(Path(artefact).read_bytes(), model, Asked(**asked)), batch_size=block,
        batch_format="pyarrow", compute=ActorPoolStrategy(size=workers), num_cpus=1,
    )  # fmt: skip


def explain_parquet(run: Run, rows: str, progress: Progress) -> Entry:
    """`tdce explain --engine ray`: reads parquet from any place that Ray can read (a file, a folder, `s3://…`), and
    writes what one process would write."""
    require_engine("ray")
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
    explainer = explainer_of(run.artefact.read_bytes(), run.model)
    empty = streams.frame_of(types.empty_table())
    Check(explainer, run.asked)(empty)
    shape = shape_of(run, explainer, empty, {field.name: field.type for field in types})
    answers = explain(table, run.artefact, run.workers, run.model, **vars(run.asked))
    journal = Journal(shape, {"run": str(uuid4())})  # Ray restarts what dies, but not a run that was stopped itself
    try:
        with _speaking(), progress.rows("counterfactuals", table.count()) as bar:
            for entry, content in _pieces(answers, run.asked.n, shape):
                journal.add(entry, content)
                bar.advance(entry.rows)
        total = journal.total()
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


def _pieces(answers: Dataset, n: int, shape: Shape) -> Iterator[tuple[Entry, bytes]]:
    """The lines of one block after the other, numbered as in one process."""
    for number, table in enumerate(_lines(answers, streams.BLOCK * n)):
        frame = streams.frame_of(table)
        at, first = len(frame.columns) - len(ADDED) + 1, number * streams.BLOCK
        rows = len(frame) // n
        frame.insert(at, unused("row", table.column_names), np.repeat(np.arange(first, first + rows), n))
        content = shape.encode(number, frame)
        counts = Counter(frame.iloc[:, at + ADDED.index("status")].tolist())
        yield Entry(number, len(content), rows, dict(counts), 0, 0), content


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
