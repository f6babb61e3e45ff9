"""Shards: each block of an answer as bytes, and shards joined into one file or a folder of parts."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tdce._core import InputError
from tdce.datasets import WRITABLE, Dialect, encode_table, suffix_of

ROW_GROUP_BLOCKS = 8  # blocks in a row group of a parquet file


@dataclass(frozen=True)
class ShardFormat:
    """The format in which blocks are written to files; equal blocks give equal bytes."""

    out: Path
    dialect: Dialect
    quoted: bool  # whether CSV quotes every text, because some contains a line end
    types: pa.Schema | None  # of a Parquet file; None: another format
    blocks: int | None  # in each part; None: all in one file

    @property
    def suffix(self) -> str:
        return suffix_of(self.out, WRITABLE)

    def encode(self, number: int, frame: pd.DataFrame) -> bytes:
        """The content of a block's shard."""
        if self.types is not None:
            buffer = io.BytesIO()
            with pa.ipc.new_file(buffer, self.types) as writer:  # not Parquet, which loses some types
                writer.write_table(self._table(frame))
            return buffer.getvalue()
        first = number % self.blocks == 0 if self.blocks else number == 0
        return encode_table(self.out, frame, self.dialect, header=first, quoted=self.quoted)

    def join(self, shards: Iterable[bytes], file: BinaryIO) -> None:
        """Join shards, in order, in one file."""
        if self.types is None:
            file.writelines(shards)
            return
        with pq.ParquetWriter(file, self.types) as writer:
            tables = (pa.ipc.open_file(io.BytesIO(shard)).read_all() for shard in shards)
            while group := [*islice(tables, ROW_GROUP_BLOCKS)]:
                whole = pa.concat_tables(group).unify_dictionaries()
                writer.write_table(whole, row_group_size=len(whole))

    def _table(self, frame: pd.DataFrame) -> pa.Table:
        try:
            return pa.Table.from_pandas(frame, schema=self.types, preserve_index=False)
        except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
            raise _parquet_error(self.out, error) from None


def parquet_types(out: Path, frame: pd.DataFrame, known: dict[Any, pa.DataType]) -> pa.Schema:
    """The types of an answer in a Parquet file, from one of its blocks; `known`: those that a column's dtype does not
    determine."""
    try:
        types = pa.Schema.from_pandas(frame, preserve_index=False)
        for i, (name, field) in enumerate(zip(frame.columns, types, strict=True)):
            if frame[name].dtype == object and name in known:
                field = field.with_type(known[name])
            if pa.types.is_dictionary(field.type):  # blocks may differ in the number of categories
                kind = field.type.value_type
                if pa.types.is_null(kind):  # no cell has a value
                    kind = known[name].value_type if pa.types.is_dictionary(known.get(name)) else pa.string()
                field = field.with_type(pa.dictionary(pa.int32(), kind, field.type.ordered))
            types = types.set(i, field)
        return types
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:  # e.g. text and numbers in one column
        raise _parquet_error(out, error) from None


def _parquet_error(out: Path, error: Exception) -> InputError:
    reason = "; ".join(map(str, error.args))
    return InputError(f"{out} cannot be written as parquet: {reason}; a .csv file can hold any table")
