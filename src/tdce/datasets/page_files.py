"""Write many small files at once, such as a page per person, to a folder or a .zip: all of them, or none."""

from __future__ import annotations

import os
import secrets
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tdce._core import InputError
from tdce.datasets.files import check_writable, sync_folder, whole_file, write_error, write_whole

ZIP = ".zip"
PAGE = ".html"
NO_DATE = (1980, 1, 1, 0, 0, 0)  # of files in a .zip, so that the same files give the same bytes


def check_pages(path: Path, people: int) -> None:
    """Raise an error, before any work is done, if pages for this many people cannot be written there."""
    if path.suffix.lower() == PAGE:
        if people != 1:
            raise InputError(
                f"{path} would be the page of one applicant, but there are {people:,}, and nobody may see the others; "
                "name a folder or a file that ends with .zip, which get a page for each (tdce report, to_html)"
            )
        check_writable(path, endings=None)
    elif path.suffix.lower() == ZIP:
        check_writable(path, endings=None)
    else:
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise InputError(f"{path} exists already; name a new folder, or a file that ends with .zip")
        check_writable(path.parent / f"{path.name}.check", endings=None)


def write_pages(path: Path, pages: Iterable[tuple[str, bytes]]) -> None:
    """Write files with these names and contents to a new folder or a .zip; if the path ends with .html, write the
    single page there. Nothing appears before everything is complete."""
    if path.suffix.lower() == PAGE:
        ((_, content),) = pages
        write_whole(path, content)
    elif path.suffix.lower() == ZIP:
        with whole_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in pages:
                packed.writestr(zipfile.ZipInfo(name, NO_DATE), content, zipfile.ZIP_DEFLATED)
    else:
        _write_folder(path, pages)


def _write_folder(path: Path, pages: Iterable[tuple[str, bytes]]) -> None:
    draft = path.parent / f".tdce-pages-{secrets.token_hex(8)}"
    try:
        draft.mkdir()
        for name, content in pages:
            (draft / name).write_bytes(content)
        if path.is_dir():
            path.rmdir()
        os.replace(draft, path)
    except OSError as error:
        raise write_error(path, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sync_folder(path.parent)
