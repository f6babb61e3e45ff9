"""Tables read in chunks, with the same dtypes and row labels as if read at once.

A first pass over the files determines what each column holds and checks every cell, before any work is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tdce._core import InputError, Name, listing
from tdce.datasets.arrow_frames import arrow_to_frame
from tdce.datasets.csv_types import CsvColumn
from tdce.datasets.files import (
    READABLE,
    RETURN,
    Dialect,
    check_csv,
    csv_settings,
    reading,
    suffix_of,
    widen,
)
from tdce.datasets.source_file import SourceFile
from tdce.schema import Schema

CHUNK_ROWS = 1024  # what each worker loses at most when a run is stopped
CHUNKS_PER_READ = 8
PARQUET = ".parquet"


def find_tables(rows: Path) -> tuple[Path, ...]:
    """The files of a table, sorted by name: one file, those in a folder, or those that match `2024/*.csv`."""
    _check_name(rows)
    if rows.is_dir():
        paths = [path for path in sorted(rows.iterdir()) if path.name.lower().endswith(READABLE) and _is_data(path)]
        if not paths:
            raise InputError(f"the folder {rows} has no table: no file in it ends with one of {listing(READABLE)}")
    elif rows.exists() or not any(mark in str(rows) for mark in "*?["):
        paths = [rows]
        suffix_of(rows, READABLE)
        if not rows.is_file():
            raise InputError(f"there is no file {rows}")
    else:
        paths = [path for path in map(Path, sorted(glob(str(rows), recursive=True))) if path.is_file()]
        if not paths:
            raise InputError(f"no file matches {rows}")
    kinds = {suffix_of(path, READABLE) == PARQUET: path for path in paths}
    if len(kinds) > 1:
        raise InputError(f"{kinds[True]} is parquet and {kinds[False]} is CSV; explain one kind after the other")
    return tuple(paths)


class ChunkedTable:
    """The rows of one or several files: call `survey` first, then read `chunks`."""

    def __init__(self, files: tuple[Path, ...], schema: Schema, dialect: Dialect) -> None:
        self.files, self.dialect = files, dialect
        self.sources = tuple(map(SourceFile, files))
        self.features = {feature.name: feature for feature in schema}
        self.parquet = suffix_of(files[0], READABLE) == PARQUET
        self.rows = 0
        self.names: list[Name] = []
        self.types: pa.Schema | None = None  # of Parquet files
        self.carriage_returns = False  # whether any text has a carriage return, which pandas does not quote
        self._csv_columns: dict[Name, CsvColumn] = {}
        self._categories: dict[Name, pd.CategoricalDtype] = {}
        self._kept: list[pd.DataFrame] | None = None  # all of a small table

    def survey(self, check: Callable[[pd.DataFrame], Any] = lambda frame: None) -> None:
        """Read everything once, several chunks at a time, and call `check` on each part."""
        for source in () if self.parquet else self.sources:
            with reading(source.path):
                check_csv(source, self.dialect, set(map(str, self.features)))
        for frame in self._all_raw():
            check(self._note_types(frame))
            self.rows += len(frame)
        if self.rows == 0:
            raise InputError(f"{self.files[0]} has no rows" if len(self.files) == 1 else "the files have no rows")

    def chunks(self, done: Container[int] = (), size: int | None = None) -> Iterator[tuple[int, pd.DataFrame]]:
        """Numbered chunks of `size` rows (None: `CHUNK_ROWS`; the last may be smaller), without those in `done`."""
        waiting, count, number, size = list[pd.DataFrame](), 0, 0, size or CHUNK_ROWS
        for frame in self._all_raw():
            waiting.append(frame)
            count += len(frame)
            if count >= size:
                whole = pd.concat(waiting) if len(waiting) > 1 else waiting[0]
                yield from self._split(whole.iloc[: count - count % size], number, size, done)
                waiting, number, count = [whole.iloc[count - count % size :]], number + count // size, count % size
        if count:
            yield from self._split(pd.concat(waiting), number, size, done)

    def _split(
        self, frame: pd.DataFrame, first: int, size: int, done: Container[int]
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        """Split rows into chunks; their dtypes are set together, which is faster."""
        starts = {first + i: i * size for i in range(-(-len(frame) // size)) if first + i not in done}
        typed = self._with_dtypes(frame) if starts else frame
        for number, start in starts.items():
            yield number, typed.iloc[start : start + size]

    @property
    def chunk_count(self) -> int:
        """The number of chunks."""
        return -(-self.rows // CHUNK_ROWS)

    def object_types(self) -> dict[Name, pa.DataType]:
        """The Parquet types of columns whose pandas dtype does not determine them."""
        if self.types is not None:
            return {name: self.types.field(str(name)).type for name in self.names}
        types = {}
        for name, column in self._csv_columns.items():
            types[name] = pa.string()
            if column.categories is not None:
                with suppress(ValueError, TypeError):  # flags beside text: writing raises the error
                    types[name] = pa.array([cell for cell in column.examples.values() if cell == cell]).type
        return types

    def label_type(self) -> pa.DataType | None:
        """The type of row labels that a Parquet file stores in a column."""
        if self.types is None:
            return None
        names = [name for name in (self.types.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
        return self.types.field(names[0]).type if len(names) == 1 else None

    def fingerprint(self) -> list[str]:
        """The names and digests of the files at the survey."""
        digests = []
        for source in self.sources:
            with reading(source.path):
                digests.append(f"{source.path.name} {source.fingerprint()}")
        return digests

    def _all_raw(self) -> Iterator[pd.DataFrame]:
        """All rows, not yet typed. A table that fits into one read is kept and parsed only once."""
        if self._kept is not None:
            yield from self._kept
            return
        start, kept = 0, list[pd.DataFrame]()
        for source in self.sources:
            for frame in self._raw(source):
                if isinstance(frame.index, pd.RangeIndex):  # not labels from a Parquet file
                    first, step = self._labels
                    frame.index = pd.RangeIndex(first + step * start, first + step * (start + len(frame)), step)
                yield frame
                start += len(frame)
                kept = [*kept, frame] if start <= CHUNKS_PER_READ * CHUNK_ROWS else []
        self._kept = kept or None

    def _raw(self, source: SourceFile) -> Iterator[pd.DataFrame]:
        """A file's rows, not yet typed, with the columns of the first file in its order."""
        path = source.path
        with reading(path):
            if self.parquet:
                self._check_types(source)
            for frame in _parquet_frames(source) if self.parquet else _csv_frames(source, self.dialect):
                frame = frame.rename(columns={str(name): name for name in self.features})
                if not self.names:
                    self.names = list(frame.columns)
                if set(frame.columns) != set(self.names):
                    differ = sorted(map(str, set(frame.columns) ^ set(self.names)))
                    raise InputError(f"{path} and {self.files[0]} have different columns: {listing(differ)}; give "
                                     "them the same columns, or explain one file after the other")  # fmt: skip
                yield frame[self.names]

    def _check_types(self, source: SourceFile) -> None:
        with source.open() as file:
            types = pq.read_schema(file)
        if self.types is None:
            self.types = types
        for field in self.types:
            if field.name in types.names and types.field(field.name).type != field.type:
                raise InputError(f"column {field.name!r} is {types.field(field.name).type} in {source.path}, but "
                                 f"{field.type} in {self.files[0]}; write both with the same type")  # fmt: skip

    @property
    def _labels(self) -> tuple[int, int]:
        """The first row's label and the step between labels, which a Parquet file may state."""
        if self.types is not None and len(self.files) == 1:
            for index in (self.types.pandas_metadata or {}).get("index_columns", ()):
                if isinstance(index, dict) and index.get("kind") == "range":
                    return index["start"], index["step"]
        return 0, 1

    def _note_types(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Record what the columns hold; return the frame with dtypes that fit its own cells."""
        own = {}
        for name in self.names:
            column = frame[name]
            self.carriage_returns = self.carriage_returns or _has_carriage_returns(column)
            if not self.parquet:
                own[name] = CsvColumn(self.features.get(name), self.dialect.decimal)
                own[name].see(column)
                whole = self._csv_columns.setdefault(name, CsvColumn(self.features.get(name), self.dialect.decimal))
                whole.add(own[name])
            elif isinstance(column.dtype, pd.CategoricalDtype):
                known = self._categories.get(name, column.dtype)
                new = column.dtype.categories.difference(known.categories, sort=False)
                self._categories[name] = pd.CategoricalDtype(known.categories.append(new), known.ordered)
        return self._with_dtypes(frame, own)

    def _with_dtypes(self, frame: pd.DataFrame, columns: Mapping[Name, CsvColumn] | None = None) -> pd.DataFrame:
        """The frame with the dtypes of the whole table, or of the given columns."""
        typed = {}
        for name in self.names:
            column = frame[name]
            if not self.parquet:
                column = (columns or self._csv_columns)[name].parse(column)
            elif name in self._categories:
                column = column.astype(self._categories[name])
            typed[name] = widen(column, self.features.get(name))
        return pd.DataFrame(typed, index=frame.index)


def _check_name(rows: Path) -> None:
    """Check that the system accepts a file name, which may be too long."""
    try:
        os.stat(rows)
    except (FileNotFoundError, NotADirectoryError):
        return  # the caller reports it
    except OSError as error:
        raise InputError(f"{rows} cannot be read: {error.strerror}; name another file") from None


def _parquet_frames(source: SourceFile) -> Iterator[pd.DataFrame]:
    with source.open() as content, pq.ParquetFile(content, pre_buffer=False) as file:  # otherwise it is all in memory
        for batch in file.iter_batches(CHUNKS_PER_READ * CHUNK_ROWS):
            frame = arrow_to_frame(pa.Table.from_batches([batch]))
            yield frame.reset_index(drop=True) if isinstance(frame.index, pd.RangeIndex) else frame


def _csv_frames(source: SourceFile, dialect: Dialect) -> Iterator[pd.DataFrame]:
    with (
        source.open_unpacked() as content,
        pd.read_csv(content, chunksize=CHUNKS_PER_READ * CHUNK_ROWS, **csv_settings(dialect)) as parts,
    ):
        yield from parts


def _has_carriage_returns(column: pd.Series[Any]) -> bool:
    """Whether any text has a carriage return, which pandas does not quote."""
    if isinstance(column.dtype, pd.StringDtype):
        return bool(column.str.contains(RETURN, regex=False).any())
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    cells = column.unique() if isinstance(column.dtype, pd.CategoricalDtype) else column
    return any(isinstance(cell, str) and RETURN in cell for cell in cells)


def _is_data(path: Path) -> bool:
    """Whether a file is a table, not a marker such as `_SUCCESS` that engines write beside their tables."""
    return path.is_file() and not path.name.startswith(("_", "."))
