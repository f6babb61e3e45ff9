"""The files that Ray reads; a run ends with an error if one of them changes meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType, FSSpecHandler, LocalFileSystem, PyFileSystem

from tdce.datasets import SourceFile, changed_file


def find_file_system(rows: str) -> tuple[FileSystem, str]:
    """Resolve a path or an address such as `s3://bucket/rows` to a file system and a path in it."""
    try:
        system, path = FileSystem.from_uri(rows if "://" in rows else str(Path(rows).absolute()))
    except pa.ArrowInvalid:  # an address that pyarrow does not know
        import fsspec

        known, path = fsspec.url_to_fs(rows)
        system = PyFileSystem(FSSpecHandler(known))
    return system, path


def list_files(system: FileSystem, path: str) -> list[FileInfo]:
    """The file itself, or all files in a folder and its subfolders."""
    found = system.get_file_info(path)
    if found.type != FileType.Directory:
        return [found]
    return [file for file in system.get_file_info(FileSelector(path, recursive=True)) if file.is_file]


class CheckedFiles(FSSpecHandler):  # type: ignore[misc]
    """Local files for pyarrow. The files of a table are read on creation; in every process that this is sent to, no
    byte that has changed since reaches a reader."""

    def __init__(self, path: str) -> None:
        import fsspec

        super().__init__(fsspec.filesystem("file"))
        self.sources = {file.path: SourceFile(Path(file.path)) for file in list_files(LocalFileSystem(), path)}
        for source in self.sources.values():
            source.fingerprint()

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        """The files that a folder held at first; new ones, such as the output of this run, are left out."""
        found: list[FileInfo] = super().get_file_info_selector(selector)
        folder, depth = Path(selector.base_dir), None if selector.recursive else 1
        held = {path for path in self.sources if folder in list(Path(path).parents)[:depth]}
        if gone := held - {file.path for file in found}:
            raise changed_file(min(gone))
        return [file for file in found if file.path in held or not file.is_file]

    def open_input_file(self, path: str) -> Any:
        """Open a file of the table for reading from its start; refuse one that was not there at first."""
        try:
            return pa.PythonFile(self.sources[path].open(), mode="r")
        except (KeyError, FileNotFoundError):
            raise changed_file(path) from None

    open_input_stream = open_input_file


class Stamps:
    """The sizes and modification times of a table's remote files, which are too slow to read twice."""

    def __init__(self, system: FileSystem, path: str) -> None:
        self.system, self.path = system, path
        self.first = self._read()

    def check(self) -> None:
        """Raise an error if any file has changed."""
        if changed := dict(self._read().items() ^ self.first.items()):
            raise changed_file(min(changed))

    def _read(self) -> dict[str, tuple[int | None, int | None]]:
        return {file.path: (file.size, file.mtime_ns) for file in list_files(self.system, self.path)}
