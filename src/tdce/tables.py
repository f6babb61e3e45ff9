"""Tables on disk: reads csv, csv.gz and parquet, writes these and jsonl. A file appears whole or not at all."""

from __future__ import annotations

import csv
import fcntl
import gzip
import io
import json
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from tdce.cells import NUMBER, PADDED, as_numbers, plain
from tdce.errors import InputError, listing, shown
from tdce.schema import Categorical, Column, Numeric, Schema

READABLE = (".csv", ".csv.gz", ".parquet")
WRITABLE = (*READABLE, ".jsonl")
DRAFT = ".tdce-"  # until it is whole, a file has a temporary name: this prefix and
DIGITS = 16  # digits of a random number
NO_NUMBER = {"", "na", "n/a", "nan", "null", "none"}  # in a column of numbers, these cells are missing too
TAB = "\t"
SEPARATORS = {";": "semicolons", TAB: "tabs", ",": "commas", "|": "bars"}
COMMA_FOR_POINT = str.maketrans(",.", ".,")  # both ways: 1.234,5 is not a number
WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: the separator of its cells, and its decimal mark."""

    sep: str = ","
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.sep in ("tab", "\\t"):
            object.__setattr__(self, "sep", "\t")
        if len(self.sep) != 1 or self.sep.isalnum() or self.sep in '"\r\n.+-_':
            raise InputError(f"--sep is {shown(self.sep)}; it must be one character such as , ; or |, or the word tab")
        if self.decimal not in (".", ","):
            raise InputError(f"--decimal is {shown(self.decimal)}; it must be . or ,")
        if self.sep == self.decimal:
            raise InputError("--sep and --decimal are both a comma; name the separator of the cells, e.g. --sep ';'")


def read_table(path: Path, schema: Schema | None = None, dialect: Dialect | None = None) -> pd.DataFrame:
    """A table, by the file's ending. In CSV an empty cell is missing; a column whose cells are all numbers is numeric
    (whole numbers stay whole beside missing cells), all else is text. A schema's kinds take precedence."""
    dialect = dialect or Dialect()
    suffix = _suffix(path, READABLE)
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    try:
        if suffix == ".parquet":
            frame = pd.read_parquet(path, dtype_backend="numpy_nullable")
        else:
            _check_csv(path, suffix, dialect)
            frame = pd.read_csv(
                path, sep=dialect.sep, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8-sig"
            )
    except UnicodeError:
        raise InputError(f"{path} cannot be read as {suffix.lstrip('.')}: it is not UTF-8; save it as UTF-8") from None
    except (ValueError, OSError, EOFError, csv.Error, zlib.error) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path} cannot be read as {suffix.lstrip('.')}: {reason}") from None
    if len(frame) == 0:
        raise InputError(f"{path} has no rows")
    features = {f.name: f for f in schema or ()}
    frame = frame.rename(columns={str(name): name for name in features})  # a file has text for the column 0
    for name in frame.columns:
        column = frame[name] if suffix == ".parquet" else _parse(frame[name], features.get(name), dialect)
        frame[name] = _widen(column, features.get(name))
    return frame


def write_table(path: Path, frame: pd.DataFrame, dialect: Dialect | None = None) -> None:
    """Write a frame without its index, by the path's ending."""
    suffix = _suffix(path, WRITABLE)
    if suffix == ".parquet":
        content = _parquet(path, frame)
    else:
        text = _json_lines(frame) if suffix == ".jsonl" else _csv(frame, dialect or Dialect())
        try:
            content = text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{path} cannot be written: {shown(text[error.start])} is half a character, which no file "
                             "can hold; correct the text")  from None  # fmt: skip
    write_whole(path, gzip.compress(content, mtime=0) if suffix == ".csv.gz" else content)


def check_writable(path: Path, endings: tuple[str, ...] | None = WRITABLE) -> None:
    """An error, before any work is done, if no file of this name can be written; `endings` None: any ending."""
    if endings is not None:
        _suffix(path, endings)
    _check_target(path)
    _try_folder(path.parent, path)


def write_whole(path: Path, content: bytes) -> None:
    """The file has this content, or is as it was."""
    with whole_file(path) as file:
        file.write(content)


def write_private(path: Path, content: bytes) -> None:
    """The same, for its owner alone."""
    with whole_file(path) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write beside the file, then rename: nobody ever sees half of it, and what is there stays after a power cut."""
    _check_target(path)
    _sweep(path.parent)
    try:
        with _draft(path.parent) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            finally:
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None
    _sync(path.parent)


def make_folder(path: Path) -> None:
    """Together with its parents, and such that files can be written in it; it may exist already."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{path} is a file or lies inside one; name a folder") from None
    except OSError as error:
        raise InputError(f"the folder {path} cannot be created: {error.strerror}; name another one") from None
    _try_folder(path, path)


def _check_target(path: Path) -> None:
    """There is a folder for the file, and nothing in its place that must not be replaced."""
    if not os.path.isdir(path.parent):
        raise InputError(f"there is no folder {path.parent} to write {path.name} into")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # the name is too long, for instance
        raise _unwritable(path, error) from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a device or a pipe; name a file")
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} is read-only; name another file, or make it writable")


def _try_folder(folder: Path, path: Path) -> None:
    """Create a file and remove it: permission bits do not tell everything."""
    try:
        with _draft(folder) as file:
            os.unlink(file.name)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> InputError:
    way_out = "make room, or name another folder" if error.errno in (ENOSPC, EDQUOT) else "name another folder"
    return InputError(f"{path} cannot be written: {error.strerror}; {way_out}")


def _draft(folder: Path) -> BinaryIO:
    """A new file, locked as long as its writer has it open, so that the sweep of another process leaves it alone."""
    while True:
        file = open(folder / f"{DRAFT}{secrets.token_hex(DIGITS // 2)}", "xb")  # noqa: SIM115
        with suppress(OSError):  # a file system without locks, where nothing is ever swept
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(file.name):
            return file
        file.close()  # swept in the moment before it was locked


def _sweep(folder: Path) -> None:
    """Remove the drafts of writers that were killed."""
    for path in folder.glob(DRAFT + DIGITS * "[0-9a-f]"):
        with suppress(OSError), open(path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error while its writer lives
            path.unlink()


def _sync(folder: Path) -> None:
    """The new name reaches the disk too, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _suffix(path: Path, known: tuple[str, ...]) -> str:
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{path}: the ending must be one of {listing(known)}")


def _check_csv(path: Path, suffix: str, dialect: Dialect) -> None:
    """Every line has as many cells as the header and no name appears twice; pandas would shift, fill or rename."""
    opened = gzip.open if suffix == ".csv.gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True, delimiter=dialect.sep)
        header = next(lines, [])
        if len(header) == 1:
            other = next((mark for mark in SEPARATORS if mark in header[0] and mark != dialect.sep), None)
            if other is not None:
                raise ValueError(f"its cells seem to be separated by {SEPARATORS[other]}, not by {dialect.sep!r}; "
                                 f"say so with --sep {'tab' if other == TAB else repr(other)}")  # fmt: skip
        twice = [name for i, name in enumerate(header) if name in header[:i]]
        if twice:
            raise ValueError(f"column {twice[0]!r} appears twice; rename or drop one of them")
        for cells in lines:
            if cells and len(cells) != len(header):
                raise ValueError(f"line {lines.line_num} has {len(cells)} cells, but the header has {len(header)}")


def _parse(column: pd.Series[Any], feature: Column | None, dialect: Dialect) -> pd.Series[Any]:
    """Text to whole numbers or numbers, if every cell is one; to the feature's own categories, if it has words. If the
    feature holds numbers, cells that are not numbers stay text, for the reader to name."""
    if isinstance(feature, Categorical) and any(isinstance(c, str | bool) for c in feature.categories):
        words = {str(c): c for c in feature.categories}
        return column.astype(object).map(lambda cell: words.get(cell, cell), na_action="ignore").infer_objects()
    cells = column.dropna().str.strip()
    cells = cells[~cells.str.lower().isin(NO_NUMBER)]
    if dialect.decimal == ",":
        cells = cells.str.translate(COMMA_FOR_POINT)
    number = {c: bool(NUMBER.fullmatch(c)) and not PADDED.match(c) for c in cells.unique()}
    if not all(number.values()) and feature is not None:
        return _with_odd_cells(column, cells, cells.map(number))
    if not number or not all(number.values()):
        return column
    whole = all(WHOLE.fullmatch(c) for c in number)
    if whole and not all(-(2**63) <= int(c) < 2**63 for c in number):
        if not isinstance(feature, Numeric):  # an identifier: a float would cut it short
            return column
        whole = False
    values = {c: int(c) if whole else float(c) for c in number}  # exact, which pandas before 3 is not
    return cells.map(values).astype("Int64" if whole else "Float64").reindex(column.index)


def _with_odd_cells(column: pd.Series[Any], cells: pd.Series[Any], fits: pd.Series[Any]) -> pd.Series[Any]:
    mixed = column[cells.index].astype(object)
    mixed[fits] = cells[fits].map(float)
    return mixed.reindex(column.index)


def _widen(column: pd.Series[Any], feature: Column | None) -> pd.Series[Any]:
    """Whole numbers in a column that may have decimals: make room for these."""
    fractional = isinstance(feature, Numeric) and (feature.step is None or not feature.step.is_integer())
    return column.astype("Float64") if fractional and pd.api.types.is_integer_dtype(column.dtype) else column


def _csv(frame: pd.DataFrame, dialect: Dialect) -> str:
    if dialect.decimal != ".":  # which pandas heeds only in its plain floats
        frame = frame.astype({name: "float64" for name, dtype in frame.dtypes.items() if is_float_dtype(dtype)})
    settings: dict[str, Any] = {"sep": dialect.sep, "decimal": dialect.decimal, "index": False, "lineterminator": "\n"}
    text: str = frame.to_csv(**settings)
    if "\r" in text:  # which pandas leaves bare: a line end to any reader
        text = frame.to_csv(**settings, quoting=csv.QUOTE_NONNUMERIC)
    return text


def _parquet(path: Path, frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    try:
        frame.to_parquet(buffer, index=False)
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:  # words and numbers in one column, say
        raise InputError(f"{path} cannot be written as parquet: {'; '.join(map(str, error.args))}; "
                         "a .csv file can hold any table") from None  # fmt: skip
    return buffer.getvalue()


def _json_lines(frame: pd.DataFrame) -> str:
    """One object per line; numbers to the last bit, missing as null, dates as text."""
    columns = []
    for _, column in frame.items():
        cells = pd.Series(as_numbers(column)) if pd.api.types.is_float_dtype(column.dtype) else column
        columns.append([None if gone else cell for cell, gone in zip(cells.tolist(), cells.isna(), strict=True)])
    names = [str(name) for name in frame.columns]
    rows = (dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True))
    return "".join(json.dumps(row, ensure_ascii=False, default=_json_value) + "\n" for row in rows)


def _json_value(value: Any) -> Any:
    return plain(value) if isinstance(value, np.generic) else str(value)
