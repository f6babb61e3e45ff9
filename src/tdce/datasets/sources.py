"""Where the file of a table is, whether it is the right one, and reading it."""

from __future__ import annotations

import hashlib
import io
import os
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tdce._core import InputError
from tdce.datasets.tables import Table

FOLDER = "TDCE_DATA"  # the environment variable that names the folder of the tables outside the package


class Place(NamedTuple):
    """Whether a table is here, and where, in words for a person."""

    present: bool
    where: str


def read(table: Table) -> pd.DataFrame:
    """The table as published: raw values, an empty cell is missing, words such as `NA` stay words."""
    path = _path(table)
    if path is None:
        raise InputError(f"data set {table.name!r}: {FOLDER} is not set. {_way_out(table)}")
    if not path.is_file():
        raise InputError(f"data set {table.name!r}: there is no file {path}. {_way_out(table)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"data set {table.name!r}: {path} cannot be read: {error.strerror}") from None
    found = _sha256(content)
    if found != table.sha256:
        raise InputError(
            f"data set {table.name!r}: {path} is not the expected file: its sha256 is {found}, expected "
            f"{table.sha256}. {_way_out(table)}"
        )
    return pd.read_csv(io.BytesIO(content), compression="gzip", keep_default_na=False, na_values=[""])


def find(table: Table) -> Place:
    """Where the table is, or what to do about it."""
    path = _path(table)
    if path is None:
        return Place(False, f"missing: set {FOLDER} to the folder that holds {table.file}")
    if not path.is_file():
        return Place(False, f"missing: {path}")
    try:
        found = _sha256(path.read_bytes())
    except OSError as error:
        return Place(False, f"cannot be read ({error.strerror}): {path}")
    if found != table.sha256:
        return Place(False, f"not the expected file (its sha256 differs): {path}")
    return Place(True, "inside the package" if table.inside else str(path))


def _path(table: Table) -> Traversable | None:
    if table.inside:
        return resources.files("tdce.datasets") / table.file
    folder = os.environ.get(FOLDER)
    return Path(folder).expanduser() / table.file if folder else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _way_out(table: Table) -> str:
    if table.inside:
        return "Install the package again."
    return (
        f"{table.file} is {table.what}, prepared as docs/data.md describes, from: {table.source}. "
        f"Put it in the folder that the environment variable {FOLDER} names."
    )
