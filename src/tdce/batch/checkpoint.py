"""Beside an output that is being made: the blocks that are finished, so that a run that was stopped can go on."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tdce._core import InputError
from tdce.batch.shards import ShardFormat
from tdce.datasets import lock_file, make_folder, sync_folder, whole_file, write_error, write_whole

FOLDER = ".tdce-part"  # after the name of the output
ABOUT, FINISHED, MARK = "about.json", "finished.jsonl", "_tdce.json"


class BlockRecord(NamedTuple):
    """What is noted of a finished block."""

    block: int
    size: int  # of its piece, in bytes
    rows: int
    counts: dict[str, int]  # lines by status
    calls: int  # of the model
    asked: int  # rows that it was asked about
    record: int = 0  # the size of its piece of the evidence
    digest: str = ""  # of both pieces


class Checkpoint:
    """`OUT.tdce-part/`: what the run is about, one piece per finished block, and a line about each of them. A piece
    counts if its line is there, and has its digest: it may have reached the disk later than its line."""

    def __init__(self, shape: ShardFormat, about: Mapping[str, Any]) -> None:
        self.out, self.shape = shape.out, shape
        self.folder = shape.out.with_name(shape.out.name + FOLDER)
        self.done: dict[int, BlockRecord] = {}
        self.said = ""  # about what was found
        new = not self.folder.exists()
        make_folder(self.folder)
        self._lock = open(self.folder / "lock", "w")  # noqa: SIM115  # held as long as the run lives
        try:
            lock_file(self._lock, wait=False)
        except BlockingIOError:
            raise InputError(f"{self.out} is being written by another run; wait for it, or name another file") from None
        except OSError:  # a system without locks
            pass
        try:
            if not new:
                self._resume(dict(about))
            if not (self.folder / ABOUT).exists():
                _store(self.folder / ABOUT, json.dumps(dict(about), indent=1).encode())
            self._lines = open(self.folder / FINISHED, "ab")  # noqa: SIM115
        except OSError as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise write_error(self.out, error) from None

    def add(self, entry: BlockRecord, content: bytes, record: bytes = b"") -> None:
        """Keep a finished block, and its piece of the evidence if there is one, whatever becomes of this process; after
        `sync`, whatever becomes of the machine."""
        entry = entry._replace(digest=sha256(content + record).hexdigest())
        try:
            if record:
                self.record(entry.block).write_bytes(record)
            self.piece(entry.block).write_bytes(content)
            self._lines.write(json.dumps(entry).encode() + b"\n")
            self._lines.flush()
        except OSError as error:
            raise write_error(self.out, error) from None
        self.done[entry.block] = entry

    def sync(self, entry: BlockRecord) -> None:
        """Wait until a block that was added has reached the disk."""
        try:
            for path in (self.piece(entry.block), self.record(entry.block))[: 1 + (entry.record > 0)]:
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
            os.fsync(self._lines.fileno())
        except OSError as error:
            raise write_error(self.out, error) from None

    def piece(self, block: int) -> Path:
        return self.folder / f"block-{block:08d}"

    def record(self, block: int) -> Path:
        return self.folder / f"record-{block:08d}"

    def records(self) -> list[Path]:
        """The pieces of the evidence, in their order."""
        return [self.record(number) for number in sorted(self.done)]

    def finish(self) -> None:
        """Put the pieces together under the output's name, and remove the journal."""
        pieces = [self.piece(number) for number in sorted(self.done)]
        if self.shape.blocks is None:
            with whole_file(self.out) as file:
                self.shape.join(pieces, file)
        else:
            self._finish_parts(pieces, self.shape.blocks)
        self.close()
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Leave what is finished; leave nothing if nothing is."""
        with suppress(OSError):  # a full disk, which has been reported
            self._lines.close()
        if not self.done:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    def total(self) -> BlockRecord:
        """Over all finished blocks."""
        counts: Counter[str] = Counter()
        for entry in self.done.values():
            counts.update(entry.counts)
        known = self.done.values()
        return BlockRecord(
            len(known), sum(e.size for e in known), sum(e.rows for e in known), dict(sorted(counts.items())),
            sum(e.calls for e in known), sum(e.asked for e in known),
        )  # fmt: skip

    def _finish_parts(self, pieces: list[Path], blocks: int) -> None:
        whole, old = self.folder / "whole", self.folder / "old"
        for path in (whole, old):
            shutil.rmtree(path, ignore_errors=True)
        make_folder(whole)
        for i in range(0, len(pieces), blocks):
            with whole_file(whole / f"part-{i // blocks:05d}{self.shape.suffix}") as file:
                self.shape.join(pieces[i : i + blocks], file)
        total = self.total()
        mark = {"rows": total.rows, "lines": sum(total.counts.values()), "counts": total.counts}
        write_whole(whole / MARK, (json.dumps(mark, indent=1) + "\n").encode())
        if self.out.exists():  # of an earlier run, which has been checked
            os.replace(self.out, old)
        os.replace(whole, self.out)
        sync_folder(self.out.parent)

    def _resume(self, about: dict[str, Any]) -> None:
        """Take over what an earlier run has finished, if it was about the same."""
        with suppress(OSError, ValueError):
            before = json.loads((self.folder / ABOUT).read_bytes())
            now = json.loads(json.dumps(about))
            differs = sorted(key for key in {*now, *before} if now.get(key) != before.get(key))
            if not differs:
                self._take_over()
                return
            self.said = f"{self.folder} is of a run with other {', '.join(differs)}: starting afresh"
        for path in self.folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _content(self, entry: BlockRecord) -> bytes:
        """Of both pieces."""
        record = self.record(entry.block).read_bytes() if entry.record else b""
        return self.piece(entry.block).read_bytes() + record

    def _take_over(self) -> None:
        whole = b""
        with suppress(FileNotFoundError):
            whole = (self.folder / FINISHED).read_bytes()
        lines = whole.split(b"\n")[:-1]  # what follows the last line end was cut short
        for line in lines:
            with suppress(ValueError, TypeError, OSError):  # not as it was written: its block is answered again
                entry = BlockRecord(*json.loads(line))
                if sha256(self._content(entry)).hexdigest() == entry.digest:
                    self.done[entry.block] = entry
        kept = b"".join(json.dumps(entry).encode() + b"\n" for entry in self.done.values())
        if kept != whole:
            _store(self.folder / FINISHED, kept)


def _store(path: Path, content: bytes) -> None:
    """Whole or not at all; nobody else writes into this folder."""
    draft = path.with_name(f"{path.name}.draft")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def check_folder(out: Path) -> None:
    """That parts can be written under this name: nothing is there, or what an earlier run has written."""
    if not os.path.isdir(out.parent):
        raise InputError(f"there is no folder {out.parent} to write {out.name} into")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).exists():
        raise InputError(f"{out} is a folder with other things in it; name a new one")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; name a folder for the parts")
