"""Arrow tables as data frames: a cell has the type of its column, whichever rows are converted together."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tdce._core import Name, as_decimals
from tdce.datasets.source_file import SourceFile


def arrow_to_frame(table: pa.Table) -> pd.DataFrame:
    """Convert an Arrow table to the frame, dtypes included, that `read_parquet` would read from a file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none")
    return _with_nested_cells(pd.read_parquet(buffer, dtype_backend="numpy_nullable"), table)


def read_parquet(source: SourceFile) -> pd.DataFrame:
    """Read a Parquet file as a data frame."""
    with source.open() as file:
        frame = pd.read_parquet(file, dtype_backend="numpy_nullable")
    with source.open() as file:
        nested = [field.name for field in pq.read_schema(file) if pa.types.is_nested(field.type)]
        return _with_nested_cells(frame, pq.read_table(file, columns=nested)) if nested else frame


def with_decimals(frame: pd.DataFrame, types: Mapping[Name, pa.DataType]) -> pd.DataFrame:
    """The frame with decimals in columns of decimal type; where no row has one, new numbers are floats."""
    frame = frame.copy(deep=False)
    for name, kind in types.items():
        if pa.types.is_decimal(kind) and name in frame.columns:
            frame[name] = as_decimals(frame[name])
    return frame


def _with_nested_cells(frame: pd.DataFrame, table: pa.Table) -> pd.DataFrame:
    """The frame with lists and records as plain Python objects: pandas would turn their whole numbers into floats
    beside a missing one."""
    for field in table.schema:
        if pa.types.is_nested(field.type) and field.name in frame.columns:
            frame[field.name] = pd.Series(table[field.name].to_pylist(), index=frame.index, dtype=object)
    return frame
