"""Arrow tables as data frames: a cell's type is that of its column, whatever rows are converted together."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tdce._core import Name, as_decimals
from tdce.datasets.source_file import SourceFile


def arrow_to_frame(table: pa.Table) -> pd.DataFrame:
    """An Arrow table as `read_parquet` would read it from a file, to the dtype."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none")
    return _with_nested_cells(pd.read_parquet(buffer, dtype_backend="numpy_nullable"), table)


def read_parquet(source: SourceFile) -> pd.DataFrame:
    """A parquet file as a data frame."""
    with source.open() as file:
        frame = pd.read_parquet(file, dtype_backend="numpy_nullable")
    with source.open() as file:
        nested = [field.name for field in pq.read_schema(file) if pa.types.is_nested(field.type)]
        return _with_nested_cells(frame, pq.read_table(file, columns=nested)) if nested else frame


def with_decimals(frame: pd.DataFrame, types: Mapping[Name, pa.DataType]) -> pd.DataFrame:
    """The frame with decimals in the columns of this type: where no row has one, new numbers are floats."""
    frame = frame.copy(deep=False)
    for name, kind in types.items():
        if pa.types.is_decimal(kind) and name in frame.columns:
            frame[name] = as_decimals(frame[name])
    return frame


def _with_nested_cells(frame: pd.DataFrame, table: pa.Table) -> pd.DataFrame:
    """The frame with lists and records as plain Python has them: pandas makes a whole number in them a float if another
    one is missing."""
    for field in table.schema:
        if pa.types.is_nested(field.type) and field.name in frame.columns:
            frame[field.name] = pd.Series(table[field.name].to_pylist(), index=frame.index, dtype=object)
    return frame
