"""The files of the public tables: find, verify and read them."""

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
from tdce.datasets.tables import PublishedTable

DATA_FOLDER = "TDCE_DATA"  # the environment variable that names the folder of tables outside the package


class Place(NamedTuple):
    """Whether a table is present, and where, in words."""

    present: bool
    where: str


def read(table: PublishedTable) -> pd.DataFrame:
    """Read a table as published: raw values; an empty cell is missing, text such as `NA` stays text."""
    path = _path(table)
    if path is None:
        raise InputError(f"data set {table.name!r}: {DATA_FOLDER} is not set. {_way_out(table)}")
    if not path.is_file():
        raise InputError(f"data set {table.name!r}: there is no file {path}. {_way_out(table)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"data set {table.name!r}: {path} cannot be read: {error.strerror}") from None
    digest = _sha256(content)
    if digest != table.sha256:
        raise InputError(
            f"data set {table.name!r}: {path} is not the expected file: its sha256 is {digest}, expected "
            f"{table.sha256}. {_way_out(table)}"
        )
    return pd.read_csv(io.BytesIO(content), compression="gzip", keep_default_na=False, na_values=[""])


def find(table: PublishedTable) -> Place:
    """Find a table, or say how to get it."""
    path = _path(table)
    if path is None:
        return Place(False, f"missing: set {DATA_FOLDER} to the folder that holds {table.file}")
    if not path.is_file():
        return Place(False, f"missing: {path}")
    try:
        digest = _sha256(path.read_bytes())
    except OSError as error:
        return Place(False, f"cannot be read ({error.strerror}): {path}")
    if digest != table.sha256:
        return Place(False, f"not the expected file (its sha256 differs): {path}")
    return Place(True, "inside the package" if table.inside else str(path))


def _path(table: PublishedTable) -> Traversable | None:
    if table.inside:
        return resources.files("tdce.datasets") / table.file
    folder = os.environ.get(DATA_FOLDER)
    return Path(folder).expanduser() / table.file if folder else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _way_out(table: PublishedTable) -> str:
    if table.inside:
        return "Install the package again."
    return (
        f"{table.file} is {table.what}, prepared as docs/data.md describes, from: {table.source}. "
        f"Put it in the folder that the environment variable {DATA_FOLDER} names."
    )
