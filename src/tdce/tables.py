"""Tables on disk: csv, csv.gz and parquet in, and jsonl besides out. A file appears whole or not at all."""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from tdce.errors import InputError, listing
from tdce.schema import Categorical, Schema

READABLE = (".csv", ".csv.gz", ".parquet")
WRITABLE = (*READABLE, ".jsonl")
NO_NUMBER = {"na", "n/a", "nan", "null", "none"}  # in a column of numbers, these cells are missing too
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
PADDED = re.compile(r"[+-]?0\d")  # 007 is a code, not the number 7


def read_table(path: Path, schema: Schema | None = None) -> pd.DataFrame:
    """A table by its ending. In CSV an empty cell is missing; a column whose cells are all numbers is numeric
    (whole numbers stay whole beside missing cells), all else is text. With a schema, its kinds win."""
    suffix = _suffix(path, READABLE)
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        if suffix == ".parquet":
            frame = pd.read_parquet(path, dtype_backend="numpy_nullable")
        else:
            frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    except (ValueError, OSError, EOFError, UnicodeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"{path} cannot be read as {suffix.lstrip('.')}: {reason}") from None
    if len(frame) == 0:
        raise InputError(f"{path} has no rows")
    if suffix != ".parquet":
        text = _text_columns(schema)
        frame = pd.DataFrame({name: frame[name] if name in text else _parse(frame[name]) for name in frame.columns})
    return _widen(frame, schema)


def write_table(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame without its index, by the path's ending."""
    suffix = check_writable(path)
    if suffix == ".parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        content = buffer.getvalue()
    elif suffix == ".jsonl":
        content = frame.to_json(orient="records", lines=True, force_ascii=False, double_precision=15).encode()
    else:
        content = frame.to_csv(index=False).encode()
        if suffix == ".csv.gz":
            import gzip

            content = gzip.compress(content, mtime=0)
    write_whole(path, content)


def check_writable(path: Path) -> str:
    """The path's ending, or an error before any work is done."""
    suffix = _suffix(path, WRITABLE)
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} into")
    return suffix


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the file, then rename: nobody ever sees half of it."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} into")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _suffix(path: Path, known: tuple[str, ...]) -> str:
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return suffix
    raise InputError(f"{path}: the ending must be one of {listing(known)}")


def _parse(column: pd.Series[Any]) -> pd.Series[Any]:
    """Text to whole numbers or numbers, if every cell is one."""
    cells = column.dropna().str.strip()
    cells = cells[~cells.str.lower().isin(NO_NUMBER)]
    distinct = cells.unique()
    if len(distinct) == 0 or not all(NUMBER.fullmatch(c) and not PADDED.match(c) for c in distinct):
        return column
    whole = all(re.fullmatch(r"[+-]?\d{1,18}", c) for c in distinct)
    values = pd.to_numeric(cells).astype("Int64" if whole else "Float64")
    return values.reindex(column.index)


def _text_columns(schema: Schema | None) -> set[Any]:
    """Columns that were text in fit: '12' there is a word, even where all rows at hand look like numbers."""
    if schema is None:
        return set()
    return {f.name for f in schema if isinstance(f, Categorical) and all(isinstance(c, str) for c in f.categories)}


def _widen(frame: pd.DataFrame, schema: Schema | None) -> pd.DataFrame:
    """Whole numbers in a column that knows decimals: make room for them."""
    for feature in schema or ():
        if isinstance(feature, Categorical) or feature.name not in frame.columns:
            continue
        fractional = feature.step is None or not feature.step.is_integer()
        if fractional and pd.api.types.is_integer_dtype(frame[feature.name].dtype):
            frame = frame.assign(**{str(feature.name): frame[feature.name].astype("Float64")})
    return frame


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
