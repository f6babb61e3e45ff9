"""The block function: some rows in, their answer out. The command line, its workers, Ray and Spark call it."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pyarrow as pa

from tdce.datasets import arrow_to_frame
from tdce.explainer import ANSWER_COLUMNS, Answer, Explainer, unused_name
from tdce.methods import Question
from tdce.models import Ensemble


def explain_arrow(
    explainer: Explainer, rows: pa.Table, question: Question, ensemble: Ensemble | None = None
) -> pa.Table:
    """The answer to a block of an engine's table, which has no order: without the column `row`, in the rows' types."""
    return answer_to_arrow(explainer.ask(block_frame(rows), question, ensemble), rows.schema)


def block_frame(rows: pa.Table) -> pd.DataFrame:
    """Rows of an engine, numbered from 0."""
    return arrow_to_frame(rows).reset_index(drop=True)


def answer_to_arrow(answer: Answer, rows: pa.Schema) -> pa.Table:
    """An answer to rows of these types, as an engine takes it."""
    frame = answer.to_frame()
    kept = [name for i, name in enumerate(frame.columns) if i != len(frame.columns) - len(ANSWER_COLUMNS)]
    return pa.Table.from_pandas(frame[kept], schema=answer_types(rows), preserve_index=False)


def answer_types(rows: pa.Schema) -> pa.Schema:
    """The types of what `answer_to_arrow` returns."""
    types = (pa.int64(), pa.string(), pa.float64(), pa.float64(), pa.float64(), pa.string())
    columns = zip(ANSWER_COLUMNS[1:], types, strict=True)
    added = [pa.field(unused_name(name, rows.names), kind) for name, kind in columns]
    return pa.schema([*(pa.field(each.name, each.type) for each in rows), *added])


@lru_cache(maxsize=1)
def load_explainer(content: bytes, model: str | None = None) -> Explainer:
    """An artefact that came as bytes, loaded once per process; with one thread, because there are other processes."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sent.tdce"
        path.write_bytes(content)
        return Explainer.load(path, progress="silent", model=model)
