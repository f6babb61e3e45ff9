"""Answers to blocks of Arrow rows, the format of Ray and Spark, and an explainer loaded once per process."""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

import pandas as pd
import pyarrow as pa

from tdce.datasets import arrow_to_frame, with_decimals
from tdce.explainer import ANSWER_COLUMNS, Answer, Explainer, unused_name
from tdce.methods import Question
from tdce.models import Endpoint, Ensemble


def explain_arrow(
    explainer: Explainer, rows: pa.Table, question: Question, ensemble: Ensemble | None = None
) -> pa.Table:
    """The answer to a block of an engine's table, in the types of the rows. There is no column `row`, because such
    tables have no order."""
    return answer_to_arrow(explainer.ask(block_frame(rows), question, ensemble), rows.schema)


def block_frame(rows: pa.Table) -> pd.DataFrame:
    """A block of an engine's table as a frame, with rows numbered from 0."""
    return arrow_to_frame(rows).reset_index(drop=True)


def answer_to_arrow(answer: Answer, rows: pa.Schema) -> pa.Table:
    """An answer as Arrow, in the types of its rows, without the column `row`."""
    frame = with_decimals(answer.to_frame(), {field.name: field.type for field in rows})
    kept = [name for i, name in enumerate(frame.columns) if i != len(frame.columns) - len(ANSWER_COLUMNS)]
    return pa.Table.from_pandas(frame[kept], schema=answer_schema(rows), preserve_index=False)


def answer_schema(rows: pa.Schema) -> pa.Schema:
    """The Arrow schema of what `answer_to_arrow` returns."""
    types = (pa.int64(), pa.string(), *(pa.float64(),) * 4, pa.string())
    columns = zip(ANSWER_COLUMNS[1:], types, strict=True)
    added = [pa.field(unused_name(name, rows.names), kind) for name, kind in columns]
    return pa.schema([*(pa.field(each.name, each.type) for each in rows), *added])


@lru_cache(maxsize=1)
def load_explainer(content: bytes, model: str | Endpoint | None = None) -> Explainer:
    """Load an explainer from the bytes of its artefact, once per process. It uses one thread, because other processes
    use the other cores."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explainer.tdce"
        path.write_bytes(content)
        return Explainer.load(path, progress="silent", model=model)
