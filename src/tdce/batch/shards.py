"""Blocks of an answer as pieces of files, and pieces put together: one file, or a folder of parts."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tdce._core import InputError
from tdce.datasets import WRITABLE, Dialect, encode_table, suffix_of

GROUP = 8  # blocks in a row group of a parquet file


@dataclass(frozen=True)
class ShardFormat:
    """What files are written: equal blocks give equal bytes."""

    out: Path
    dialect: Dialect
    quoted: bool  # every text in CSV, because some has a line end in it
    types: pa.Schema | None  # of parquet
    blocks: int | None  # in each part; None: one file has them all

    @property
    def suffix(self) -> str:
        return suffix_of(self.out, WRITABLE)

    def encode(self, number: int, frame: pd.DataFrame) -> bytes:
        """A block as the content of its piece."""
        if self.types is not None:
            buffer = io.BytesIO()
            with pa.ipc.new_file(buffer, self.types) as writer:  # not parquet, which forgets some types
                writer.write_table(self._table(frame))
            return buffer.getvalue()
        first = number % self.blocks == 0 if self.blocks else number == 0
        return encode_table(self.out, frame, self.dialect, header=first, quoted=self.quoted)

    def join(self, pieces: Sequence[Path], file: BinaryIO) -> None:
        if self.types is None:
            for path in pieces:
                with open(path, "rb") as piece:
                    shutil.copyfileobj(piece, file, 1 << 20)
            return
        with pq.ParquetWriter(file, self.types) as writer:
            for i in range(0, len(pieces), GROUP):
                tables = [pa.ipc.open_file(io.BytesIO(path.read_bytes())).read_all() for path in pieces[i : i + GROUP]]
                whole = pa.concat_tables(tables).unify_dictionaries()
                writer.write_table(whole, row_group_size=len(whole))

    def _table(self, frame: pd.DataFrame) -> pa.Table:
        try:
            return pa.Table.from_pandas(frame, schema=self.types, preserve_index=False)
        except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
            raise unfit(self.out, error) from None


def types_of(out: Path, frame: pd.DataFrame, known: dict[Any, pa.DataType]) -> pa.Schema:
    """Of an answer in parquet, from one block of it; `known`: of the table's columns whose dtype does not tell."""
    try:
        found = pa.Schema.from_pandas(frame, preserve_index=False)
        for i, (name, field) in enumerate(zip(frame.columns, found, strict=True)):
            if frame[name].dtype == object and name in known:
                field = field.with_type(known[name])
            if pa.types.is_dictionary(field.type):  # whose blocks may have different numbers of words
                field = field.with_type(pa.dictionary(pa.int32(), field.type.value_type, field.type.ordered))
            found = found.set(i, field)
        return found
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:  # words and numbers in one column, say
        raise unfit(out, error) from None


def unfit(out: Path, error: Exception) -> InputError:
    reason = "; ".join(map(str, error.args))
    return InputError(f"{out} cannot be written as parquet: {reason}; a .csv file can hold any table")
