"""A checkpoint beside the output of a run: its finished blocks, so that a run that was stopped can be resumed."""

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

FOLDER_SUFFIX = ".tdce-part"  # after the name of the output
SETTINGS_FILE, FINISHED_FILE, LOCK_FILE = "about.json", "finished.jsonl", "lock"
MARKER_FILE = "_tdce.json"  # in a folder of parts: a run has written it, and another may replace it


class BlockRecord(NamedTuple):
    """What is recorded of a finished block."""

    block: int
    size: int  # bytes of its shard
    rows: int
    counts: dict[str, int]  # lines by status
    model_calls: int
    model_rows: int  # rows the model was queried for
    evidence_size: int = 0  # bytes of its shard of the evidence
    digest: str = ""  # of both shards


class Checkpoint:
    """`OUT.tdce-part/`: the settings of the run, one shard per finished block, and a line about each of them. A block
    counts if its line is there and its shard has the digest in it: a shard may reach the disk later than its line."""

    def __init__(self, shards: ShardFormat, settings: Mapping[str, Any]) -> None:
        self.out, self.shards = shards.out, shards
        self.folder = shards.out.with_name(shards.out.name + FOLDER_SUFFIX)
        self.done: dict[int, BlockRecord] = {}
        self.message = ""  # why the blocks of an earlier run are not used; empty: they are
        new = not self.folder.exists()
        make_folder(self.folder)
        self._lock = open(self.folder / LOCK_FILE, "w")  # noqa: SIM115  # held as long as the run lives
        try:
            lock_file(self._lock, wait=False)
        except BlockingIOError:
            self._lock.close()
            raise InputError(f"{self.out} is being written by another run; wait for it, or name another file") from None
        except OSError:  # a system without locks
            pass
        try:
            if not new:
                self._resume(dict(settings))
            if not (self.folder / SETTINGS_FILE).exists():
                _store(self.folder / SETTINGS_FILE, json.dumps(dict(settings), indent=1).encode())
            self._finished = open(self.folder / FINISHED_FILE, "ab")  # noqa: SIM115
        except OSError as error:
            self._lock.close()  # first: some systems remove no open file
            shutil.rmtree(self.folder, ignore_errors=True)
            raise write_error(self.out, error) from None

    def add(self, entry: BlockRecord, content: bytes, evidence: bytes = b"") -> None:
        """Keep a finished block, and its shard of the evidence if there is one. It survives the end of this process,
        and after `sync` also a power cut."""
        entry = entry._replace(digest=sha256(content + evidence).hexdigest())
        try:
            if evidence:
                self.evidence_path(entry.block).write_bytes(evidence)
            self.shard_path(entry.block).write_bytes(content)
            self._finished.write(json.dumps(entry).encode() + b"\n")
            self._finished.flush()
        except OSError as error:
            raise write_error(self.out, error) from None
        self.done[entry.block] = entry

    def sync(self, entry: BlockRecord) -> None:
        """Wait until a block that was added has reached the disk."""
        try:
            for path in (self.shard_path(entry.block), self.evidence_path(entry.block))[
                : 1 + (entry.evidence_size > 0)
            ]:
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
            os.fsync(self._finished.fileno())
        except OSError as error:
            raise write_error(self.out, error) from None

    def shard_path(self, block: int) -> Path:
        return self.folder / f"block-{block:08d}"

    def evidence_path(self, block: int) -> Path:
        return self.folder / f"record-{block:08d}"

    def evidence_paths(self) -> list[Path]:
        """The shards of the evidence, in the order of the blocks."""
        return [self.evidence_path(number) for number in sorted(self.done)]

    def finish(self) -> None:
        """Join the shards under the output's name, and remove the checkpoint."""
        paths = [self.shard_path(number) for number in sorted(self.done)]
        if self.shards.blocks is None:
            with whole_file(self.out) as file:
                self.shards.join(paths, file)
        else:
            self._write_parts(paths, self.shards.blocks)
        self.close()
        shutil.rmtree(self.folder)

    def close(self) -> None:
        """Keep what is finished for a later run; remove the folder if no block is."""
        with suppress(OSError):  # a full disk, which has been reported
            self._finished.close()
        if not self.done:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    def total(self) -> BlockRecord:
        """The sum over all finished blocks."""
        counts: Counter[str] = Counter()
        for entry in self.done.values():
            counts.update(entry.counts)
        entries = self.done.values()
        return BlockRecord(
            len(entries), sum(e.size for e in entries), sum(e.rows for e in entries), dict(sorted(counts.items())),
            sum(e.model_calls for e in entries), sum(e.model_rows for e in entries),
        )  # fmt: skip

    def _write_parts(self, paths: list[Path], blocks: int) -> None:
        """The output as a folder of parts, with this many blocks each."""
        new, old = self.folder / "whole", self.folder / "old"
        for path in (new, old):
            shutil.rmtree(path, ignore_errors=True)
        make_folder(new)
        for i in range(0, len(paths), blocks):
            with whole_file(new / f"part-{i // blocks:05d}{self.shards.suffix}") as file:
                self.shards.join(paths[i : i + blocks], file)
        total = self.total()
        marker = {"rows": total.rows, "lines": sum(total.counts.values()), "counts": total.counts}
        write_whole(new / MARKER_FILE, (json.dumps(marker, indent=1) + "\n").encode())
        if self.out.exists():  # of an earlier run: `check_folder` has seen its marker
            os.replace(self.out, old)
        os.replace(new, self.out)
        sync_folder(self.out.parent)

    def _resume(self, settings: dict[str, Any]) -> None:
        """Take over what an earlier run has finished, if its settings were the same; else remove it."""
        with suppress(OSError, ValueError):
            before = json.loads((self.folder / SETTINGS_FILE).read_bytes())
            now = json.loads(json.dumps(settings))
            different = sorted(key for key in {*now, *before} if now.get(key) != before.get(key))
            if not different:
                self._read_finished()
                return
            self.message = f"{self.folder} belongs to a run with different {', '.join(different)}: starting over"
        for path in self.folder.iterdir():
            if path.name != LOCK_FILE:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _read_finished(self) -> None:
        """Fill `done` with the blocks whose line and shards are intact."""
        content = b""
        with suppress(FileNotFoundError):
            content = (self.folder / FINISHED_FILE).read_bytes()
        lines = content.split(b"\n")[:-1]  # what follows the last line end was cut short
        for line in lines:
            with suppress(ValueError, TypeError, OSError):  # not as it was written: its block is answered again
                entry = BlockRecord(*json.loads(line))
                if sha256(self._read_shards(entry)).hexdigest() == entry.digest:
                    self.done[entry.block] = entry
        intact = b"".join(json.dumps(entry).encode() + b"\n" for entry in self.done.values())
        if intact != content:
            _store(self.folder / FINISHED_FILE, intact)

    def _read_shards(self, entry: BlockRecord) -> bytes:
        """The content of both shards of a block, one after the other."""
        evidence = self.evidence_path(entry.block).read_bytes() if entry.evidence_size else b""
        return self.shard_path(entry.block).read_bytes() + evidence


def _store(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; nobody else writes into this folder."""
    draft = path.with_name(f"{path.name}.draft")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def check_folder(out: Path) -> None:
    """Check that a folder of parts can be written here: nothing is there, or what an earlier run has written."""
    if not os.path.isdir(out.parent):
        raise InputError(f"there is no folder {out.parent} to write {out.name} into")
    if out.is_dir() and any(out.iterdir()) and not (out / MARKER_FILE).exists():
        raise InputError(f"{out} is a folder that holds other files; name a new one")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; name a folder for the parts")
