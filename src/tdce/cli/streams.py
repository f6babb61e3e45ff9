"""`-` in place of a file: standard input and standard output, by way of temporary files.

A table is read more than once, and its first bytes determine its format, so standard input is stored first. Standard
output is sent only once it is complete, but the reader may still receive only a part.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tdce._core import InputError

DASH = Path("-")
ENDINGS = {b"\x1f\x8b": ".csv.gz", b"PAR1": ".parquet"}  # by the first bytes; otherwise CSV
COPY_BYTES = 1 << 20


@contextmanager
def input_file(path: Path) -> Iterator[Path]:
    """The file itself or, for `-`, a temporary one with the content of standard input."""
    if path != DASH:
        yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("- reads standard input, which is a terminal; pipe a table into the command, or name a file")
    with TemporaryDirectory(prefix="tdce-") as folder:
        stored = _store_stdin(Path(folder))
        with _named(stored, "standard input"):
            yield stored


@contextmanager
def output_file(path: Path, ending: str) -> Iterator[Path]:
    """The file itself or, for `-`, a temporary one that is sent to standard output once complete."""
    if path != DASH:
        yield path
        return
    with TemporaryDirectory(prefix="tdce-") as folder:
        draft = Path(folder) / f"stdout{ending}"
        with _named(draft, "standard output"):
            yield draft
        sys.stdout.flush()
        with open(draft, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, COPY_BYTES)
        sys.stdout.buffer.flush()


def _store_stdin(folder: Path) -> Path:
    source = sys.stdin.buffer
    first = source.read(4)
    if not first:
        raise InputError("standard input is empty; pipe a table into the command, or name a file")
    ending = next((ending for start, ending in ENDINGS.items() if first.startswith(start)), ".csv")
    path = folder / f"stdin{ending}"
    try:
        with open(path, "wb") as file:
            file.write(first)
            shutil.copyfileobj(source, file, COPY_BYTES)
    except OSError as error:
        raise InputError(f"standard input cannot be stored in {folder}: {error.strerror}; set TMPDIR to a folder with "
                         "more room, or name a file") from None  # fmt: skip
    return path


@contextmanager
def _named(path: Path, name: str) -> Iterator[None]:
    """Name the stream, not the temporary file, in errors."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(path), name)) from None
