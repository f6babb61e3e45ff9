"""A table that is read in blocks, each exactly as it would be in the whole: the same dtypes, the same row labels.

A first pass over the files decides what every column holds, and checks every cell before any work is done.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from glob import glob
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tdce._core import InputError, Name, listing
from tdce.datasets.csv_types import CsvColumn
from tdce.datasets.files import READABLE, RETURN, Dialect, check_csv, csv_settings, reading, suffix_of, widened
from tdce.schema import Schema

CHUNK_ROWS = 1024  # rows; when a run is stopped, no more than this is lost for each worker
AHEAD = 8  # blocks that are read at a time
PARQUET = ".parquet"


def files_of(rows: Path) -> tuple[Path, ...]:
    """A file, the tables in a folder, or those that a pattern such as `2024/*.csv` matches; by name."""
    if rows.is_dir():
        found = [path for path in sorted(rows.iterdir()) if path.name.lower().endswith(READABLE) and _is_data(path)]
        if not found:
            raise InputError(f"the folder {rows} has no table: no file in it ends with one of {listing(READABLE)}")
    elif rows.exists() or not any(mark in str(rows) for mark in "*?["):
        found = [rows]
        suffix_of(rows, READABLE)
        if not rows.is_file():
            raise InputError(f"there is no file {rows}")
    else:
        found = [path for path in map(Path, sorted(glob(str(rows), recursive=True))) if path.is_file()]
        if not found:
            raise InputError(f"no file matches {rows}")
    kinds = {suffix_of(path, READABLE) == PARQUET: path for path in found}
    if len(kinds) > 1:
        raise InputError(f"{kinds[True]} is parquet and {kinds[False]} is CSV; explain them one kind after the other")
    return tuple(found)


class ChunkedTable:
    """Rows of one or several files. `survey` comes first, then `blocks`."""

    def __init__(self, files: tuple[Path, ...], schema: Schema, dialect: Dialect) -> None:
        self.files, self.dialect = files, dialect
        self.features = {feature.name: feature for feature in schema}
        self.parquet = suffix_of(files[0], READABLE) == PARQUET
        self.rows = 0
        self.names: list[Name] = []
        self.types: pa.Schema | None = None  # of parquet files
        self.returns = False  # whether some text has a line end of the kind that pandas leaves bare
        self._cells: dict[Name, CsvColumn] = {}
        self._kinds: dict[Name, pd.CategoricalDtype] = {}

    def survey(self, check: Callable[[pd.DataFrame], Any] = lambda frame: None) -> None:
        """Read everything once, a block at a time; `check` each block."""
        for path in () if self.parquet else self.files:
            with reading(path):
                check_csv(path, self.dialect)
        for frame in self._all_raw():
            check(self._seen(frame))
            self.rows += len(frame)
        if self.rows == 0:
            raise InputError(f"{self.files[0]} has no rows" if len(self.files) == 1 else "the files have no rows")

    def blocks(self, done: Container[int] = (), size: int | None = None) -> Iterator[tuple[int, pd.DataFrame]]:
        """Numbered from 0, of `size` rows (None: `BLOCK`) each but the last; those that are done are left out."""
        waiting, count, number, size = list[pd.DataFrame](), 0, 0, size or CHUNK_ROWS
        for frame in self._all_raw():
            waiting.append(frame)
            count += len(frame)
            if count >= size:
                whole = pd.concat(waiting) if len(waiting) > 1 else waiting[0]
                yield from self._cut(whole.iloc[: count - count % size], number, size, done)
                waiting, number, count = [whole.iloc[count - count % size :]], number + count // size, count % size
        if count:
            yield from self._cut(pd.concat(waiting), number, size, done)

    def _cut(
        self, frame: pd.DataFrame, first: int, size: int, done: Container[int]
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        """Blocks of raw rows, settled together: that is quicker than one by one."""
        starts = {first + i: i * size for i in range(-(-len(frame) // size)) if first + i not in done}
        settled = self._settled(frame) if starts else frame
        for number, start in starts.items():
            yield number, settled.iloc[start : start + size]

    @property
    def count(self) -> int:
        """Of blocks."""
        return -(-self.rows // CHUNK_ROWS)

    def types_of_objects(self) -> dict[Name, pa.DataType]:
        """Of columns whose pandas dtype does not tell: what they hold in a parquet file."""
        if self.types is not None:
            return {name: self.types.field(str(name)).type for name in self.names}
        found = {}
        for name, cells in self._cells.items():
            found[name] = pa.string()
            if cells.words is not None:
                with suppress(ValueError, TypeError):  # flags beside words: what is written will say so
                    found[name] = pa.array([cell for cell in cells.examples.values() if cell == cell]).type
        return found

    def type_of_labels(self) -> pa.DataType | None:
        """Of row labels that a parquet file has kept in a column of its own."""
        if self.types is None:
            return None
        kept = [name for name in (self.types.pandas_metadata or {}).get("index_columns", ()) if isinstance(name, str)]
        return self.types.field(kept[0]).type if len(kept) == 1 else None

    def fingerprint(self) -> list[str]:
        """What the files hold, for whoever wants to know whether it is the same."""
        found = []
        for path in self.files:
            with reading(path), open(path, "rb") as file:
                digest = sha256()
                while part := file.read(1 << 20):
                    digest.update(part)
            found.append(f"{path.name} {digest.hexdigest()}")
        return found

    def _all_raw(self) -> Iterator[pd.DataFrame]:
        start = 0
        for path in self.files:
            for frame in self._raw(path):
                if isinstance(frame.index, pd.RangeIndex):  # not labels that a parquet file has kept
                    first, step = self._labels
                    frame.index = pd.RangeIndex(first + step * start, first + step * (start + len(frame)), step)
                yield frame
                start += len(frame)

    def _raw(self, path: Path) -> Iterator[pd.DataFrame]:
        """A file's rows as they are read, under the first file's columns."""
        with reading(path):
            if self.parquet:
                self._check_types(path)
            for frame in _parquet_frames(path) if self.parquet else _csv_frames(path, self.dialect):
                frame = frame.rename(columns={str(name): name for name in self.features})
                if not self.names:
                    self.names = list(frame.columns)
                if set(frame.columns) != set(self.names):
                    differ = sorted(map(str, set(frame.columns) ^ set(self.names)))
                    raise InputError(f"{path} and {self.files[0]} differ in their columns: {listing(differ)}; give "
                                     "them the same ones, or explain them one after the other")  # fmt: skip
                yield frame[self.names]

    def _check_types(self, path: Path) -> None:
        types = pq.read_schema(path)
        if self.types is None:
            self.types = types
        for field in self.types:
            if field.name in types.names and types.field(field.name).type != field.type:
                raise InputError(f"column {field.name!r} is {types.field(field.name).type} in {path}, but {field.type} "
                                 f"in {self.files[0]}; write both with the same type")  # fmt: skip

    @property
    def _labels(self) -> tuple[int, int]:
        """The first row's label and the step to the next, which a parquet file may have noted."""
        if self.types is not None and len(self.files) == 1:
            for index in (self.types.pandas_metadata or {}).get("index_columns", ()):
                if isinstance(index, dict) and index.get("kind") == "range":
                    return index["start"], index["step"]
        return 0, 1

    def _seen(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Take note of what the columns hold; the frame with the dtypes of what is here."""
        here = {}
        for name in self.names:
            column = frame[name]
            self.returns = self.returns or _has_returns(column)
            if not self.parquet:
                cells = CsvColumn(self.features.get(name), self.dialect.decimal)
                cells.see(column)
                self._cells.setdefault(name, CsvColumn(self.features.get(name), self.dialect.decimal)).add(cells)
                here[name] = cells
            elif isinstance(column.dtype, pd.CategoricalDtype):
                known = self._kinds.get(name, column.dtype)
                new = column.dtype.categories.difference(known.categories, sort=False)
                self._kinds[name] = pd.CategoricalDtype(known.categories.append(new), known.ordered)
        return self._settled(frame, here)

    def _settled(self, frame: pd.DataFrame, cells: Mapping[Name, CsvColumn] | None = None) -> pd.DataFrame:
        """With the dtypes of the whole table; or those that some of its cells would have."""
        settled = {}
        for name in self.names:
            column = frame[name]
            if not self.parquet:
                column = (cells or self._cells)[name].parse(column)
            elif name in self._kinds:
                column = column.astype(self._kinds[name])
            settled[name] = widened(column, self.features.get(name))
        return pd.DataFrame(settled, index=frame.index)


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A part of a parquet file as pandas would read it from a file of its own, to the dtype."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none")
    return pd.read_parquet(buffer, dtype_backend="numpy_nullable")


def _parquet_frames(path: Path) -> Iterator[pd.DataFrame]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(AHEAD * CHUNK_ROWS):
            frame = frame_of(pa.Table.from_batches([batch]))
            yield frame.reset_index(drop=True) if isinstance(frame.index, pd.RangeIndex) else frame


def _csv_frames(path: Path, dialect: Dialect) -> Iterator[pd.DataFrame]:
    with pd.read_csv(path, chunksize=AHEAD * CHUNK_ROWS, **csv_settings(dialect)) as parts:
        yield from parts


def _has_returns(column: pd.Series[Any]) -> bool:
    """Whether some text has a line end of the kind that pandas leaves bare."""
    if isinstance(column.dtype, pd.StringDtype):
        return bool(column.str.contains(RETURN, regex=False).any())
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    cells = column.unique() if isinstance(column.dtype, pd.CategoricalDtype) else column
    return any(isinstance(cell, str) and RETURN in cell for cell in cells)


def _is_data(path: Path) -> bool:
    """Engines write marks beside their tables, with names such as `_SUCCESS`."""
    return path.is_file() and not path.name.startswith(("_", "."))
