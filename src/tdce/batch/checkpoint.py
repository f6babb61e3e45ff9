"""A checkpoint beside the output of a run: its finished blocks, so that a stopped run can be resumed."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from hashlib import pbkdf2_hmac, sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from tdce._core import InputError, show
from tdce.batch.shards import ShardFormat
from tdce.datasets import lock_file, make_folder, sync_folder, whole_file, write_error, write_whole

FOLDER_SUFFIX = ".tdce-part"  # after the name of the output
SETTINGS_FILE, FINISHED_FILE, LOCK_FILE = "about.json", "finished.jsonl", "lock"
SALT_BYTES, KEY_ROUNDS = 16, 200_000  # for the digest of the secret
NOT_AS_WRITTEN = ValueError, TypeError, LookupError, AttributeError, RecursionError  # of damaged JSON
MARKER_FILE = "_tdce.json"  # marks a folder of parts as written by a run, so that another may replace it


class BlockRecord(NamedTuple):
    """The record of a finished block."""

    block: int
    size: int  # bytes of its shard
    rows: int
    counts: dict[str, int]  # lines by status
    model_calls: int
    model_rows: int  # rows the model was queried for
    digest: str = ""  # of its shard
    evidence_digest: str = ""  # of its shard of the evidence; empty if there is none


class Checkpoint:
    """The folder `OUT.tdce-part/`: the settings of the run, one shard per finished block, and a line about each. A
    block counts if its line is there and its shard has the line's digest: a shard may reach the disk after its line."""

    def __init__(self, shards: ShardFormat, settings: Mapping[str, Any], secret: bytes | None = None) -> None:
        self.out, self.shards = shards.out, shards
        self.folder = checkpoint_folder(shards.out)
        self.done: dict[int, BlockRecord] = {}
        self.kept: dict[int, BlockRecord] = {}  # finished blocks that survive a power cut
        self.message = ""  # why the blocks of an earlier run are not used; empty if they are
        check_checkpoint(self.out)
        new = not self.folder.exists()
        make_folder(self.folder)
        self._lock, resumed = self._take_lock(), not new
        try:
            with ExitStack() as files:  # closed on failure, before the folder is removed, as some systems require
                files.enter_context(self._lock)
                resumed = resumed and self._has_settings(settings, secret)
                if resumed:
                    self._read_finished()
                else:
                    self._begin(settings, secret)
                self._finished = files.enter_context(open(self.folder / FINISHED_FILE, "ab"))
                self.sync(*self.done.values())
                sync_folder(self.folder.parent)
                files.pop_all()
        except (OSError, InputError) as error:
            if not resumed:
                shutil.rmtree(self.folder, ignore_errors=True)
            if isinstance(error, InputError):
                raise
            raise write_error(self.out, error) from None

    def add(self, entry: BlockRecord, content: bytes, evidence: bytes = b"") -> None:
        """Add a finished block, with its shard of the evidence if any. It survives the end of this process and, after
        `sync`, a power cut."""
        entry = entry._replace(digest=_digest(content), evidence_digest=_digest(evidence) if evidence else "")
        try:
            if evidence:
                self.evidence_path(entry.block).write_bytes(evidence)
            self.shard_path(entry.block).write_bytes(content)
            self._finished.write(json.dumps(entry).encode() + b"\n")
            self._finished.flush()
        except OSError as error:
            raise write_error(self.out, error) from None
        self.done[entry.block] = entry

    def sync(self, *entries: BlockRecord) -> None:
        """Wait until these added blocks have reached the disk; from then on they are in `kept`."""
        try:
            for entry in entries:
                evidence = [self.evidence_path(entry.block)] if entry.evidence_digest else []
                for path in (self.shard_path(entry.block), *evidence):
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())
            sync_folder(self.folder)
            os.fsync(self._finished.fileno())
        except OSError as error:
            raise write_error(self.out, error) from None
        self.kept |= {entry.block: entry for entry in entries}

    def shard_path(self, block: int) -> Path:
        return self.folder / f"block-{block:08d}"

    def evidence_path(self, block: int) -> Path:
        return self.folder / f"record-{block:08d}"

    def read_shards(self) -> Iterator[bytes]:
        """The shards in the order of the blocks, each checked against its digest."""
        for number, entry in sorted(self.done.items()):
            yield self._read(self.shard_path(number), entry.digest)

    def read_evidence(self) -> Iterator[bytes]:
        """The shards of the evidence, read like those of the output."""
        for number, entry in sorted(self.done.items()):
            yield self._read(self.evidence_path(number), entry.evidence_digest)

    def write_output(self) -> None:
        """Join the shards under the output's name."""
        if self.shards.blocks is None:
            with whole_file(self.out) as file:
                self.shards.join(self.read_shards(), file)
        else:
            self._write_parts(self.shards.blocks)

    def remove(self) -> None:
        """Remove the checkpoint, once the output is there."""
        self.close()
        with suppress(FileNotFoundError):  # without blocks, `close` has removed it
            shutil.rmtree(self.folder)

    def close(self) -> None:
        """Keep finished blocks for a later run; remove the folder if there are none."""
        with suppress(OSError):  # a full disk was already reported
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

    def _take_lock(self) -> IO[str]:
        """Take the lock of the folder, held as long as the run lives."""
        try:
            lock = open(self.folder / LOCK_FILE, "w")  # noqa: SIM115
        except OSError as error:
            raise write_error(self.folder / LOCK_FILE, error) from None
        try:
            lock_file(lock, wait=False)
        except BlockingIOError:
            lock.close()
            raise InputError(f"{self.out} is being written by another run; wait for it, or name another file") from None
        except OSError:  # a system without locks
            pass
        return lock

    def _write_parts(self, blocks: int) -> None:
        """Write the output as a folder of parts, with this many blocks each."""
        new, old = self.folder / "whole", self.folder / "old"
        for path in (new, old):
            shutil.rmtree(path, ignore_errors=True)
        make_folder(new)
        shards = self.read_shards()
        for part in range(-(-len(self.done) // blocks)):
            with whole_file(new / f"part-{part:05d}{self.shards.suffix}") as file:
                self.shards.join(islice(shards, blocks), file)
        total = self.total()
        marker = {"rows": total.rows, "lines": sum(total.counts.values()), "counts": total.counts}
        write_whole(new / MARKER_FILE, (json.dumps(marker, indent=1) + "\n").encode())
        if self.out.exists():  # from an earlier run: `check_folder` has seen its marker
            os.replace(self.out, old)
        os.replace(new, self.out)
        sync_folder(self.out.parent)

    def _has_settings(self, settings: Mapping[str, Any], secret: bytes | None) -> bool:
        """Whether an earlier run had the same settings; if not, `message` names those that differ. Raise an OSError if
        the file cannot be read now: it may be the right one."""
        with suppress(FileNotFoundError, *NOT_AS_WRITTEN):
            before = json.loads((self.folder / SETTINGS_FILE).read_bytes())
            salt = bytes.fromhex((before["secret"] or {"salt": ""})["salt"])
            now = json.loads(json.dumps({**settings, "secret": _keyed_digest(secret, salt)}))
            different = sorted(key for key in {*now, *before} if now.get(key) != before.get(key))
            if not different:
                return True
            names = ", ".join(key.removeprefix("question.") for key in different)
            self.message = f"{self.folder} belongs to a run with different {names}: starting over"
        return False

    def _begin(self, settings: Mapping[str, Any], secret: bytes | None) -> None:
        """Remove what an earlier run left, and write the settings."""
        for path in self.folder.iterdir():
            if path.name != LOCK_FILE:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        whole = {**settings, "secret": _keyed_digest(secret, os.urandom(SALT_BYTES))}
        _store(self.folder / SETTINGS_FILE, json.dumps(whole, indent=1).encode())

    def _read_finished(self) -> None:
        """Fill `done` with the blocks whose line and shards are intact."""
        content = b""
        with suppress(FileNotFoundError):
            content = (self.folder / FINISHED_FILE).read_bytes()
        lines = content.split(b"\n")[:-1]  # text after the last line end was cut short
        for line in lines:
            with suppress(*NOT_AS_WRITTEN):  # its block is answered again
                entry = BlockRecord(*json.loads(line))
                self._read(self.shard_path(entry.block), entry.digest)
                if entry.evidence_digest:
                    self._read(self.evidence_path(entry.block), entry.evidence_digest)
                self.done[entry.block] = entry
        intact = b"".join(json.dumps(entry).encode() + b"\n" for entry in self.done.values())
        if intact != content:
            _store(self.folder / FINISHED_FILE, intact)

    def _read(self, path: Path, digest: str) -> bytes:
        """Read a shard; raise an error if it is not what was written."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}; run the same command again to answer its rows "
                             "again") from None  # fmt: skip
        if _digest(content) != digest:
            raise InputError(f"{path} is damaged: it is not what was written; run the same command again to answer its "
                             "rows again, and check the disk")  # fmt: skip
        return content


def checkpoint_folder(out: Path) -> Path:
    """The folder of the checkpoint of an output."""
    return out.with_name(out.name + FOLDER_SUFFIX)


def check_checkpoint(out: Path) -> None:
    """Check that the checkpoint of an output is a folder, if it exists, and that its name is possible."""
    folder = checkpoint_folder(out)
    try:
        mode = folder.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:  # the name is too long, for instance
        raise InputError(f"{show(folder, 200, str)}, where finished rows are kept, cannot be written: "
                         f"{error.strerror}; name another output") from None  # fmt: skip
    if not stat.S_ISDIR(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "not a folder"
        raise InputError(f"{folder}, where finished rows are kept, is {kind}; remove it, or name another output")


def _keyed_digest(secret: bytes | None, salt: bytes) -> dict[str, str] | None:
    """A keyed digest by which a later run recognises the same secret, and which does not help to find it."""
    if secret is None:
        return None
    return {"salt": salt.hex(), "digest": pbkdf2_hmac("sha256", secret, salt, KEY_ROUNDS).hex()}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _store(path: Path, content: bytes) -> None:
    """Write a file atomically, in a folder that nobody else writes to."""
    draft = path.with_name(f"{path.name}.draft")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    sync_folder(path.parent)


def check_folder(out: Path) -> None:
    """Check that a folder of parts can be written here: nothing is there but the output of an earlier run."""
    if not os.path.isdir(out.parent):
        raise InputError(f"there is no folder {show(out.parent, 200, str)} to write {show(out.name, 200, str)} into")
    check_checkpoint(out)
    if out.is_dir() and any(out.iterdir()) and not (out / MARKER_FILE).exists():
        raise InputError(f"{out} is a folder that holds other files; name a new one")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; name a folder for the parts")
