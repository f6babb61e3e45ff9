"""Explain on a Spark cluster, in Python workers that each load the explainer once (`tdce[spark]`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tdce._core import require_extra
from tdce.batch.blocks import explain_arrow, load_explainer
from tdce.datasets import arrow_to_frame, chunks
from tdce.explainer import ANSWER_COLUMNS, unused_name
from tdce.methods import Question
from tdce.models import Endpoint, Ensemble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain(
    df: DataFrame,
    artefact: str | os.PathLike[str],
    model: str | Endpoint | None = None,
    robust: Ensemble | None = None,
    **question: Any,
) -> DataFrame:
    """Explain a Spark table lazily: return a table of answers, computed when it is consumed.

    `robust` is the result of `Explainer.retrain`; `question` holds the other arguments of `Explainer.explain`. There is
    no column `row`, because the tables of an engine have no order: identify rows by their own columns.

    Rows travel as Arrow, because Spark's pandas frames turn whole numbers into floats beside a missing cell."""
    require_extra("explaining with Spark", "spark", "pyspark")
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    content = Path(artefact).read_bytes()
    whole_question = Question(**question, robust=None if robust is None else robust.retraining)
    empty = arrow_to_frame(to_arrow_schema(df.schema).empty_table())
    explainer = load_explainer(content, model)
    explainer.check(whole_question)
    explainer.fitted.encoder.read(empty)  # raises an error that names a missing column

    def answer_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        explainer = load_explainer(content, model)
        for batch in batches:
            for start in range(0, batch.num_rows, chunks.CHUNK_ROWS):
                rows = pa.Table.from_batches([batch.slice(start, chunks.CHUNK_ROWS)])
                yield from explain_arrow(explainer, rows, whole_question, robust).to_batches()

    double = DoubleType()
    kinds = (LongType(), StringType(), double, double, double, double, StringType())
    added = [
        StructField(unused_name(name, df.columns), kind) for name, kind in zip(ANSWER_COLUMNS[1:], kinds, strict=True)
    ]
    return df.mapInArrow(answer_batches, StructType([*df.schema.fields, *added]))
