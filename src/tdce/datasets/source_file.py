"""A file that is read several times, and must have the same bytes every time."""

from __future__ import annotations

import gzip
import io
import os
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from tdce._core import InputError

SEGMENT_BYTES = 1 << 20  # read and checked at a time


class SourceFile:
    """A file with a digest of each segment from its first reading. If a segment or the size has changed since, readers
    get an `InputError` and no changed byte."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size: int | None = None  # in bytes; None: not yet opened
        self.digests: dict[int, bytes] = {}  # by segment number

    def open(self) -> BinaryIO:
        """Open the file for reading from its start."""
        return io.BufferedReader(_Reader(self), SEGMENT_BYTES)

    def open_text(self) -> IO[str]:
        """Open the file as text with its own line ends, unpacked if its name ends with .gz."""
        return io.TextIOWrapper(self.open_unpacked(), encoding="utf-8-sig", newline="")

    def open_unpacked(self) -> BinaryIO:
        """Open the file, unpacked if its name ends with .gz."""
        packed = self.path.name.lower().endswith(".gz")
        return cast(BinaryIO, gzip.GzipFile(fileobj=self.open())) if packed else self.open()

    def fingerprint(self) -> str:
        """The digest of all segments; those not read before are read now."""
        with self.open() as file:
            assert self.size is not None
            for number in range(-(-self.size // SEGMENT_BYTES)):
                if number not in self.digests:
                    file.seek(number * SEGMENT_BYTES)
                    file.read(1)
        whole = sha256(f"{self.size} ".encode())
        for _, digest in sorted(self.digests.items()):
            whole.update(digest)
        return whole.hexdigest()

    def check(self, number: int, content: bytes, size: int) -> None:
        """Check the file's size; record the digest of a segment read for the first time, compare that of any other."""
        assert self.size is not None
        expected = min(SEGMENT_BYTES, max(0, self.size - number * SEGMENT_BYTES))
        if size != self.size or len(content) != expected:
            raise changed_file(self.path)
        digest = sha256(content).digest()
        if expected and self.digests.setdefault(number, digest) != digest:
            raise changed_file(self.path)


def changed_file(path: object) -> InputError:
    """The error for a file that has changed."""
    return InputError(f"{path} changed while it was read, so nothing is written: run the command again when "
                      "no other program writes to the file, or on a copy of it")  # fmt: skip


class _Reader(io.RawIOBase):
    """Read a source file by segments, each checked before any of it is passed on."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._file = open(source.path, "rb", buffering=0)  # noqa: SIM115  # closed by `close`
        if source.size is None:
            source.size = self._size()
        self._at, self._number, self._segment = 0, -1, b""

    def readinto(self, buffer: Any) -> int:
        number, start = divmod(self._at, SEGMENT_BYTES)
        if number != self._number:
            self._segment, self._number = self._load(number), number
        part = self._segment[start : start + len(buffer)]
        if not part:
            self.source.check(number, self._segment, self._size())  # at the end, the size must be unchanged
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        assert self.source.size is not None
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.source.size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _load(self, number: int) -> bytes:
        self._file.seek(number * SEGMENT_BYTES)
        parts = []
        left = SEGMENT_BYTES
        while left and (part := self._file.read(left)):  # a raw file may return less than requested
            parts.append(part)
            left -= len(part)
        content = b"".join(parts)
        self.source.check(number, content, self._size())
        return content

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size
