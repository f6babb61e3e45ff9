"""Rows on a Spark cluster: the block function in Spark's Python workers, each of which loads the explainer once
(`tdce[spark]`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tdce._core import require_extra
from tdce.batch.blocks import ADDED, Asked, explain_arrow, explain_block, explainer_of, unused_name
from tdce.datasets import chunks as streams
from tdce.models import Ensemble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def explain(
    df: DataFrame,
    artefact: str | os.PathLike[str],
    model: str | None = None,
    robust: Ensemble | None = None,
    **asked: Any,
) -> DataFrame:
    """A Spark table of answers, computed when it is consumed. `robust`: what `Explainer.retrain` made; `asked`: as for
    `Explainer.explain`.

    An engine's table has no order, so there is no column `row`: the table's own columns say who is who.

    By way of Arrow, because in Spark's pandas frames a whole number beside a missing one becomes a float."""
    require_extra("explaining with Spark", "spark", "pyspark")
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

    content, question = Path(artefact).read_bytes(), Asked(**asked)
    empty = streams.frame_of(to_arrow_schema(df.schema).empty_table())
    explain_block(explainer_of(content, model), empty, question)  # a wrong question or column is named here

    def answered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        explainer = explainer_of(content, model)
        for batch in batches:
            for start in range(0, batch.num_rows, streams.CHUNK_ROWS):
                rows = pa.Table.from_batches([batch.slice(start, streams.CHUNK_ROWS)])
                yield from explain_arrow(explainer, rows, question, robust).to_batches()

    double = DoubleType()
    kinds = (LongType(), StringType(), double, double, double, StringType())
    added = [StructField(unused_name(name, df.columns), kind) for name, kind in zip(ADDED[1:], kinds, strict=True)]
    return df.mapInArrow(answered, StructType([*df.schema.fields, *added]))
