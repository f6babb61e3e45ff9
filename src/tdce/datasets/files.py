"""Tables on disk: read .csv, .csv.gz and .parquet, write these and .jsonl. A file appears complete or not at all."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import secrets
import stat
import zlib
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from tdce._core import InputError, as_numbers, listing, plain, show
from tdce.datasets.csv_types import COMMA_FOR_POINT, CsvColumn
from tdce.datasets.source_file import SourceFile
from tdce.schema import HEADER_ROWS, Column, Numeric, Schema, find_headerless

READABLE = (".csv", ".csv.gz", ".parquet")
WRITABLE = (*READABLE, ".jsonl")
DRAFT_PREFIX = ".tdce-"  # the temporary name of an incomplete file: this prefix, then
DRAFT_DIGITS = 16  # this many digits of a random number
DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))  # not every system has quotas
TAB, RETURN = "\t", "\r"
SEPARATORS = {";": "semicolons", TAB: "tabs", ",": "commas", "|": "bars"}


@dataclass(frozen=True)
class Dialect:
    """The format of a CSV file: the separator of its cells and its decimal mark."""

    sep: str = ","
    decimal: str = "."
    excel_safe: bool = False  # escape text that a spreadsheet would run as a formula; for writing only

    def __post_init__(self) -> None:
        if self.sep in ("tab", "\\t"):
            object.__setattr__(self, "sep", "\t")
        if len(self.sep) != 1 or self.sep.isalnum() or self.sep in '"\r\n.+-_':
            raise InputError(f"--sep is {show(self.sep)}; it must be one character, such as , ; or |, or the word tab")
        if self.decimal not in (".", ","):
            raise InputError(f"--decimal is {show(self.decimal)}; it must be . or ,")
        if self.sep == self.decimal:
            raise InputError("--sep and --decimal are both a comma; name another separator, e.g. --sep ';'")


def read_table(path: Path, schema: Schema | None = None, dialect: Dialect | None = None) -> pd.DataFrame:
    """Read a table in the format of the file's ending. In CSV, an empty cell is missing, a column whose cells are all
    numbers is numeric (whole numbers stay whole beside missing cells), and any other column is text. The kinds of
    the schema take precedence."""
    dialect = dialect or Dialect()
    suffix = suffix_of(path, READABLE)
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    with reading(path):
        if suffix == ".parquet":
            frame = _read_parquet(SourceFile(path))
        else:
            frame = _read_csv(SourceFile(path), dialect, {str(name) for name in schema.names} if schema else ())
    if len(frame) == 0:
        raise InputError(f"{path} has no rows", "file_empty")
    features = {f.name: f for f in schema or ()}
    frame = frame.rename(columns={str(name): name for name in features})  # in a file, the name of column 0 is text
    for name in frame.columns:
        column = frame[name]
        if suffix != ".parquet":
            cells = CsvColumn(features.get(name), dialect.decimal)
            cells.see(column)
            column = cells.parse(column)
        frame[name] = widen(column, features.get(name))
    return frame


def _read_csv(source: SourceFile, dialect: Dialect, known: Container[str]) -> pd.DataFrame:
    check_csv(source, dialect, known)
    with source.open_unpacked() as file:
        frame: pd.DataFrame = pd.read_csv(file, **csv_settings(dialect))
    return frame


def _read_parquet(source: SourceFile) -> pd.DataFrame:
    from tdce.datasets.arrow_frames import read_parquet  # imported here: pyarrow is slow to import

    return read_parquet(source)


class UnreadableError(ValueError):
    """Why a file cannot be read; `case` and `facts` are those of an `InputError`."""

    def __init__(self, reason: str, case: str, **facts: Any) -> None:
        super().__init__(reason)
        self.case, self.facts = case, facts


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error in reading a file into one InputError that names the file."""
    kind = suffix_of(path, READABLE).lstrip(".")
    try:
        yield
    except InputError:
        raise
    except UnicodeError:
        message = f"{path} cannot be read as {kind}: it is not in UTF-8; save it as UTF-8"
        raise InputError(message, "file_utf8") from None
    except UnreadableError as error:
        raise InputError(f"{path} cannot be read as {kind}: {error}", error.case, **error.facts) from None
    except (ValueError, OSError, EOFError, csv.Error, zlib.error) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path} cannot be read as {kind}: {reason}", "file_unreadable", kind=kind) from None


def csv_settings(dialect: Dialect) -> dict[str, Any]:
    """Settings for pandas that read every cell as text, or as missing if empty."""
    return {"sep": dialect.sep, "dtype": str, "keep_default_na": False, "na_values": [""], "encoding": "utf-8-sig"}


def write_table(path: Path, frame: pd.DataFrame, dialect: Dialect | None = None) -> None:
    """Write a frame without its index, in the format of the path's ending."""
    if suffix_of(path, WRITABLE) == ".parquet":
        write_whole(path, _parquet(path, frame))
    else:
        write_whole(path, encode_table(path, frame, dialect or Dialect()))


def encode_table(path: Path, frame: pd.DataFrame, dialect: Dialect, header: bool = True, quoted: bool = False) -> bytes:
    """Encode a frame as a .csv, .csv.gz or .jsonl file, or a part of it. Concatenated parts make a complete file if
    only the first has a header; `quoted`: some part has a carriage return in a cell."""
    suffix = suffix_of(path, WRITABLE)
    text = _json_lines(frame) if suffix == ".jsonl" else _csv(frame, dialect, header, quoted)
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path} cannot be written: {show(text[error.start])} is half a surrogate pair, which UTF-8 "
                         "cannot encode; correct the text")  from None  # fmt: skip
    return gzip.compress(content, mtime=0) if suffix == ".csv.gz" else content


def check_writable(path: Path, endings: tuple[str, ...] | None = WRITABLE) -> None:
    """Raise an error, before any work is done, if this file cannot be written; `endings` None: any ending."""
    if endings is not None:
        suffix_of(path, endings)
    _check_target(path)
    _try_folder(path.parent, path)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: on failure it stays as it was."""
    with whole_file(path) as file:
        file.write(content)


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    with whole_file(path) as file:
        os.chmod(file.name, 0o600)
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write to a draft beside the file, then rename it: nobody sees a partial file, and it survives a power cut."""
    _check_target(path)
    _sweep(path.parent)
    try:
        with _draft(path.parent) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _close_on_windows(file)
                os.replace(file.name, path)
            finally:
                _close_on_windows(file)
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise write_error(path, error) from None
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and check that files can be written in it; it may exist already."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{path} is a file or lies inside one; name a folder") from None
    except OSError as error:
        raise InputError(f"the folder {path} cannot be created: {error.strerror}; name another one") from None
    _try_folder(path, path)


def write_error(path: Path, error: OSError) -> InputError:
    """The error for a file that cannot be written."""
    way_out = "make room, or name another folder" if error.errno in DISK_FULL else "name another folder"
    return InputError(f"{path} cannot be written: {error.strerror}; {way_out}")


def lock_file(file: IO[Any], wait: bool = True) -> None:
    """Lock an open file until it is closed. Raises OSError if another process holds the lock (unless `wait`), or if the
    system has no such locks (Windows)."""
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system cannot lock files") from None
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that a new name survives a power cut, where the system supports it."""
    with suppress(OSError):  # Windows cannot open folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def suffix_of(path: Path, known: tuple[str, ...]) -> str:
    """The known ending of a file, such as .csv.gz."""
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{path}: the ending must be one of {listing(known)}")


def check_csv(source: SourceFile, dialect: Dialect, known: Container[str] = ()) -> None:
    """Check that there is a header, that every line has as many cells, and that no name appears twice: pandas would
    shift or fill cells, or rename columns. A first line with one of the `known` names is a header."""
    with source.open_text() as file:
        lines = csv.reader(file, strict=True, delimiter=dialect.sep)
        header = next(lines, [])
        if len(header) == 1:
            other = next((mark for mark in SEPARATORS if mark in header[0] and mark != dialect.sep), None)
            if other is not None:
                raise UnreadableError(
                    f"its cells seem to be separated by {SEPARATORS[other]}, not by {dialect.sep!r}; "
                    f"use --sep {'tab' if other == TAB else repr(other)}",
                    "file_separator", mark="tab" if other == TAB else other,
                )  # fmt: skip
        first = [(lines.line_num, cells) for cells in islice(lines, HEADER_ROWS) if cells]
        if not any(name in known for name in header) and all(len(cells) == len(header) for _, cells in first):
            numerals = [[_point(row[i], dialect) for _, row in first] for i in range(len(header))]
            if evidence := find_headerless([_point(name, dialect) for name in header], numerals):
                raise UnreadableError(
                    f"it seems to have no header: {evidence}; add a line with a name for each column, or, "
                    "if these are their names, rename them", "file_header",
                )  # fmt: skip
        twice = [name for i, name in enumerate(header) if name in header[:i]]
        if twice:
            raise UnreadableError(
                f"column {twice[0]!r} appears twice; rename or drop one of them", "column_twice", column=twice[0]
            )
        for number, cells in chain(first, ((lines.line_num, cells) for cells in lines)):
            if cells and len(cells) != len(header):
                raise UnreadableError(
                    f"line {number} has {len(cells)} cells, but the header has {len(header)}",
                    "file_cells", line=number, cells=len(cells), header=len(header),
                )  # fmt: skip


def _point(cell: str, dialect: Dialect) -> str:
    """The cell with a decimal point."""
    return cell.translate(COMMA_FOR_POINT) if dialect.decimal == "," else cell


def widen(column: pd.Series[Any], feature: Column | None) -> pd.Series[Any]:
    """Convert a column of whole numbers to floats if its feature may have decimals."""
    fractional = isinstance(feature, Numeric) and (feature.step is None or not feature.step.is_integer())
    return column.astype("Float64") if fractional and pd.api.types.is_integer_dtype(column.dtype) else column


def _check_target(path: Path) -> None:
    """Check that the folder exists, and that writing the file would replace nothing but a file."""
    if not os.path.isdir(path.parent):
        raise InputError(f"there is no folder {path.parent} to write {path.name} into")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # the name is too long, for instance
        raise write_error(path, error) from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a device or a pipe; name a file")
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} is read-only; name another file, or make it writable")


def _try_folder(folder: Path, path: Path) -> None:
    """Create a file and remove it, because permission bits do not tell the whole story."""
    try:
        with _draft(folder) as file:
            _close_on_windows(file)
            os.unlink(file.name)
    except OSError as error:
        raise write_error(path, error) from None


def _draft(folder: Path) -> BinaryIO:
    """A new file, locked while its writer has it open, so that other processes do not sweep it away."""
    while True:
        file = open(folder / f"{DRAFT_PREFIX}{secrets.token_hex(DRAFT_DIGITS // 2)}", "xb")  # noqa: SIM115
        with suppress(OSError):  # without locks, nothing is ever swept
            lock_file(file)
        if os.path.exists(file.name):
            return file
        file.close()  # swept just before it was locked


def _sweep(folder: Path) -> None:
    """Remove the drafts of writers that were killed."""
    for path in folder.glob(DRAFT_PREFIX + DRAFT_DIGITS * "[0-9a-f]"):
        with suppress(OSError), open(path, "r+b") as file:
            lock_file(file, wait=False)  # raises an error while its writer lives
            path.unlink()


def _close_on_windows(file: BinaryIO) -> None:
    """Close the file on Windows, which cannot rename or remove it open; elsewhere, closing would release its lock."""
    if os.name == "nt":
        file.close()


def _csv(frame: pd.DataFrame, dialect: Dialect, header: bool, quoted: bool) -> str:
    if dialect.decimal != ".":  # pandas applies it only to plain floats
        frame = frame.copy()
        for i, dtype in enumerate(frame.dtypes):
            if is_float_dtype(dtype):
                frame.isetitem(i, as_numbers(frame.iloc[:, i]))
    settings: dict[str, Any] = {
        "sep": dialect.sep, "decimal": dialect.decimal, "index": False, "header": header, "lineterminator": "\n",
    }  # fmt: skip
    if dialect.excel_safe:
        from tdce.datasets.spreadsheets import escape_formulas

        frame, quoted = escape_formulas(frame), True  # a spreadsheet may split at a separator other than ours
    text: str = "" if quoted else frame.to_csv(**settings)
    if quoted or RETURN in text:  # pandas does not quote it: readers would see a line end
        text = frame.to_csv(**settings, quoting=csv.QUOTE_NONNUMERIC)
    return text


def _parquet(path: Path, frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    try:
        frame.to_parquet(buffer, index=False)
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:  # e.g. text and numbers in one column
        raise InputError(f"{path} cannot be written as parquet: {'; '.join(map(str, error.args))}; "
                         "a .csv file can hold any table") from None  # fmt: skip
    return buffer.getvalue()


def _json_lines(frame: pd.DataFrame) -> str:
    """Encode as JSON, one object per line: numbers to the last bit, missing as null, dates as text."""
    columns = []
    for _, column in frame.items():
        cells = pd.Series(as_numbers(column)) if pd.api.types.is_float_dtype(column.dtype) else column
        columns.append([None if gone else cell for cell, gone in zip(cells.tolist(), cells.isna(), strict=True)])
    names = [str(name) for name in frame.columns]
    rows = (dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))
    return "".join(json.dumps(row, ensure_ascii=False, default=_json_value) + "\n" for row in rows)


def _json_value(value: Any) -> Any:
    return plain(value) if isinstance(value, np.generic) else str(value)
