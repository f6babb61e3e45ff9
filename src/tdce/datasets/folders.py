"""A new folder that appears complete or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tdce._core import InputError
from tdce.datasets.files import DRAFT_DIGITS, DRAFT_PREFIX, sync_folder, write_error


def check_new_folder(path: Path) -> None:
    """Raise an error, before any work is done, if no new folder can be made here; nothing is overwritten."""
    if not os.path.isdir(path.parent):
        raise InputError(f"there is no folder {path.parent} to make {path.name} in")
    if path.is_dir():
        if any(path.iterdir()):
            raise InputError(f"{path} holds files already; name a new folder, or empty this one")
    elif os.path.lexists(path):
        raise InputError(f"{path} is a file; name a new folder")
    with _draft(path):
        pass  # the folder can be made


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Write to a draft beside the folder, then rename it; after an error, nothing is left."""
    check_new_folder(path)
    with _draft(path) as draft:
        try:
            yield draft
            for each in sorted(draft.rglob("*")):
                if each.is_file():
                    with each.open("rb+") as file:
                        os.fsync(file.fileno())
            sync_folder(draft)
            if path.is_dir():
                path.rmdir()  # raises an error if it is no longer empty
            os.rename(draft, path)
        except OSError as error:
            raise write_error(path, error) from None
    sync_folder(path.parent)


@contextmanager
def _draft(path: Path) -> Iterator[Path]:
    draft = path.parent / f"{DRAFT_PREFIX}{secrets.token_hex(DRAFT_DIGITS // 2)}"
    try:
        draft.mkdir()
    except OSError as error:
        raise write_error(path, error) from None
    try:
        yield draft
    finally:
        with suppress(OSError):
            shutil.rmtree(draft)
