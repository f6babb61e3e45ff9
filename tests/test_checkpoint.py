"""The checkpoint of a run, without a model: what it keeps, what it believes when opened again, and what it leaves."""

import builtins
import errno
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tdce import InputError
from tdce.batch import checkpoint
from tdce.batch.checkpoint import BlockRecord, Checkpoint, check_folder
from tdce.batch.shards import ShardFormat
from tdce.datasets import Dialect

SETTINGS = {"rows": "abc", "options": {"n": 2, "immutable": ["age"]}, "model": None}
BLOCKS = [b"x,y\n1,2\n", b"3,4\n5,6\n", b"7,8\n"]
SECRET = b"a secret of thirty-two bytes, ok"


@contextmanager
def opened(
    folder: Path, settings: dict[Any, Any] = SETTINGS, blocks: int | None = None, secret: bytes | None = None
) -> Iterator[Checkpoint]:
    """As a run has it: it is closed, however the run ends."""
    kept = Checkpoint(ShardFormat(folder / "out.csv", Dialect(), False, None, blocks), settings, secret)
    try:
        yield kept
    finally:
        kept.close()


def record(block: int) -> BlockRecord:
    rows = len(BLOCKS[block].splitlines()) - (block == 0)
    counts = {"valid": rows, **({"already": 3} if block == 1 else {})}
    return BlockRecord(block, len(BLOCKS[block]), rows, counts, 10 + block, 100 + block)


def add(kept: Checkpoint, *blocks: int, evidence: bytes = b"") -> None:
    for block in blocks:
        kept.add(record(block), BLOCKS[block], evidence)
        kept.sync(kept.done[block])


def finish(kept: Checkpoint) -> None:
    kept.write_output()
    kept.remove()


def stopped(folder: Path, *blocks: int, evidence: bytes = b"", **more: Any) -> Path:
    """What a run that was stopped leaves: the folder of its checkpoint."""
    with opened(folder, **more) as kept:
        add(kept, *blocks, evidence=evidence)
    return kept.folder


def done(folder: Path, **more: Any) -> list[int]:
    """The blocks that the next run does not answer again."""
    with opened(folder, **more) as kept:
        assert kept.kept == kept.done
        return sorted(kept.done)


def test_blocks_in_any_order_make_one_file_and_nothing_else_is_left(tmp_path):
    with opened(tmp_path) as kept:
        add(kept, 2, 0, 1)
        assert kept.total() == BlockRecord(3, 20, 4, {"already": 3, "valid": 4}, 33, 303)
        assert list(kept.read_shards()) == BLOCKS
        kept.write_output()
        assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.tdce-part"]
        kept.remove()
        assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_an_output_is_removed_by_nobody_and_a_checkpoint_only_when_told(tmp_path):
    """The output is there and the evidence is not: the next run has all it needs."""
    with opened(tmp_path) as kept:
        add(kept, 0, 1, 2)
        kept.write_output()
    assert done(tmp_path) == [0, 1, 2]
    assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)


def test_a_block_is_there_for_the_next_run_as_soon_as_it_was_added(tmp_path):
    """Without close: what the process leaves that is killed."""
    with opened(tmp_path) as kept:
        for block in (0, 2):
            kept.add(record(block), BLOCKS[block])
            copy = tmp_path / f"copy{block}"
            shutil.copytree(kept.folder, copy / kept.folder.name)
            with opened(copy) as again:
                assert again.done == kept.done


@pytest.mark.parametrize("evidence", [b"", b'{"row":1}\n'])
def test_a_run_goes_on_where_another_stopped(tmp_path, evidence):
    folder = stopped(tmp_path, 1, 0, evidence=evidence)
    before = (folder / "finished.jsonl").read_bytes()
    with opened(tmp_path) as kept:
        assert (sorted(kept.done), kept.message) == ([0, 1], "")
        assert kept.kept == kept.done
        digests = hashlib.sha256(BLOCKS[1]).hexdigest(), hashlib.sha256(evidence).hexdigest() if evidence else ""
        assert kept.done[1] == (*record(1)[:6], *digests)
        assert (folder / "finished.jsonl").read_bytes() == before
        add(kept, 2, evidence=evidence)
        if evidence:
            assert list(kept.read_evidence()) == [evidence] * 3
        else:
            assert not list(folder.glob("record-*"))
        finish(kept)
    assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)


def test_shards_of_the_evidence_come_in_the_order_of_the_blocks(tmp_path):
    with opened(tmp_path) as kept:
        for block in (2, 0, 1):
            kept.add(record(block), BLOCKS[block], b"%d\n" % block)
        assert list(kept.read_evidence()) == [b"0\n", b"1\n", b"2\n"]


def spoil(path: Path, how: str) -> None:
    """As a disk may leave a file: gone, cut short, or of its size with another content."""
    content = path.read_bytes()
    path.unlink()
    if how == "short":
        path.write_bytes(content[:-1])
    elif how == "other":
        path.write_bytes(content[:-1] + b"?")


@pytest.mark.parametrize("how", ["gone", "short", "other"])
@pytest.mark.parametrize("name", ["block", "record"])
def test_a_shard_that_is_not_as_it_was_costs_its_block_only_and_for_good(tmp_path, name, how):
    folder = stopped(tmp_path, 0, 1, 2, evidence=b"{}\n")
    shard = folder / f"{name}-00000001"
    content = shard.read_bytes()
    spoil(shard, how)
    assert done(tmp_path) == [0, 2]
    assert len((folder / "finished.jsonl").read_bytes().splitlines()) == 2
    shard.write_bytes(content)  # its line is gone, so that it does not come back
    with opened(tmp_path) as kept:
        assert sorted(kept.done) == [0, 2]
        add(kept, 1, evidence=b"{}\n")
        finish(kept)
    assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)


@pytest.mark.parametrize("how", ["gone", "short", "other"])
@pytest.mark.parametrize("blocks", [None, 1, 2])
def test_a_shard_that_rots_after_it_was_added_is_not_joined(tmp_path, blocks, how):
    """Also by the run that wrote it; what an earlier run has written stays, and the next run answers that block."""
    with opened(tmp_path, {}, blocks) as kept:
        add(kept, 0)
        finish(kept)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with opened(tmp_path, blocks=blocks) as kept:
        add(kept, 0, 1, 2)
        shard = kept.folder / "block-00000002"
        spoil(shard, how)
        says = "cannot be read: No such file" if how == "gone" else "is damaged: it is not what was written"
        with pytest.raises(InputError, match=rf"block-00000002 {says}.*; run the same command again to answer"):
            kept.write_output()
        assert {path: path.read_bytes() for path in before} == before
        assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "out.csv.tdce-part"}
    with opened(tmp_path, blocks=blocks) as kept:
        assert sorted(kept.done) == [0, 1]
        add(kept, 2)
        finish(kept)
    out = tmp_path / "out.csv"
    assert b"".join(path.read_bytes() for path in (sorted(out.glob("part-*")) if blocks else [out])) == b"".join(BLOCKS)


@pytest.mark.parametrize("how", ["gone", "short", "other"])
def test_a_shard_of_the_evidence_that_rots_after_it_was_added_is_not_passed_on(tmp_path, how):
    with opened(tmp_path) as kept:
        add(kept, 0, 1, evidence=b"{}\n")
        spoil(kept.folder / "record-00000001", how)
        shards = kept.read_evidence()
        assert next(shards) == b"{}\n"
        with pytest.raises(InputError, match=r"record-00000001 (cannot be read|is damaged): .* to answer its rows"):
            next(shards)
    assert done(tmp_path) == [0]


LINES = [
    b"", b"\0\0\0", b"[]", b"[0]", b"7", b"null", b'"text"', b"{}", b"[[0],1,1,{},1,1,0,0]", b"\xff", b"[" * 99,
    b"[" * 99_999, b'[1,8,2,{"valid":2},11,101]', b'[1,8,2,{"valid":2},11,101,"","",""]',
    b'[1,8,2,{"valid":2},11,101,"' + hashlib.sha256(b"another").hexdigest().encode() + b'",""]',
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_line_that_is_none_costs_its_block_only(tmp_path, line):
    folder = stopped(tmp_path, 0, 1, 2)
    lines = (folder / "finished.jsonl").read_bytes().splitlines()
    (folder / "finished.jsonl").write_bytes(b"\n".join([lines[0], line, lines[2], b""]))
    with opened(tmp_path) as kept:
        assert sorted(kept.done) == [0, 2]
        add(kept, 1)
    assert done(tmp_path) == [0, 1, 2]


def test_a_last_line_without_its_end_is_cut_off_before_more_is_added(tmp_path):
    folder = stopped(tmp_path, 0, 1)
    content = (folder / "finished.jsonl").read_bytes()
    (folder / "finished.jsonl").write_bytes(content[:-1])  # all of it but the line end
    with opened(tmp_path) as kept:
        assert sorted(kept.done) == [0]
        add(kept, 1, 2)
    assert done(tmp_path) == [0, 1, 2]


def test_without_its_lines_nothing_is_believed(tmp_path):
    folder = stopped(tmp_path, 0, 1)
    (folder / "finished.jsonl").unlink()
    with opened(tmp_path) as kept:
        assert (kept.done, kept.message) == ({}, "")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**SETTINGS, "rows": "abd"}, "rows"),
        ({**SETTINGS, "options": {"n": 3, "immutable": ["age"]}, "model": "m.pt"}, "model, options"),
        ({**SETTINGS, "versions": {"torch": "2"}}, "versions"),
        ({**SETTINGS, "question.seed": 1}, "seed"),
        ({"rows": "abc", "model": None}, "options"),
    ],
)
def test_a_run_with_other_settings_begins_anew_and_names_them(tmp_path, settings, named):
    folder = stopped(tmp_path, 0, 1)
    (folder / "whole").mkdir()
    (folder / "whole" / "part-00000.csv").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "letter.txt").touch()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    with opened(tmp_path, settings) as kept:
        assert kept.message == f"{folder} belongs to a run with different {named}: starting over"
        assert (kept.done, kept.kept) == ({}, {})
        assert sorted(path.name for path in folder.iterdir()) == ["about.json", "finished.jsonl", "lock"]
        assert json.loads((folder / "about.json").read_bytes()) == {**settings, "secret": None}
        add(kept, 0)
    with opened(tmp_path, settings) as again:
        assert (sorted(again.done), again.message) == ([0], "")
    assert (tmp_path / "elsewhere" / "letter.txt").exists()


@pytest.mark.parametrize(
    "content",
    [
        None, b"", b"{", b"\xff", b"[]", b"7", b"null", b"{}", b"[" * 99_999,
        *(json.dumps({**SETTINGS, "secret": secret}).encode() for secret in (7, "text", [1], {"digest": ""})),
        *(json.dumps({**SETTINGS, "secret": {"salt": salt, "digest": ""}}).encode() for salt in ("xy", None, 7)),
    ],
    ids=range(16),
)  # fmt: skip
def test_settings_that_cannot_be_understood_are_those_of_nobody(tmp_path, content):
    folder = stopped(tmp_path, 0, 1)
    (folder / "about.json").unlink()
    if content is not None:
        (folder / "about.json").write_bytes(content)
    with opened(tmp_path) as kept:
        assert kept.done == {}
        assert json.loads((folder / "about.json").read_bytes()) == {**SETTINGS, "secret": None}
        assert not (folder / "block-00000000").exists()


def test_settings_are_compared_as_they_are_written(tmp_path):
    settings = {"names": ("a", "b"), 1: "one"}
    stopped(tmp_path, 0, settings=settings)
    assert done(tmp_path, settings=settings) == [0]


@pytest.mark.parametrize(
    ("before", "now"),
    [(None, None), (SECRET, SECRET), (SECRET, SECRET[:-1] + b"?"), (None, SECRET), (SECRET, None), (None, b"")],
)
def test_only_a_run_with_the_same_secret_goes_on(tmp_path, before, now):
    folder = stopped(tmp_path, 0, 1, secret=before)
    with opened(tmp_path, secret=now) as kept:
        message = "" if now == before else f"{folder} belongs to a run with different secret: starting over"
        assert (sorted(kept.done), kept.message) == ([0, 1] if now == before else [], message)


def test_of_a_secret_there_is_a_digest_with_a_salt_of_its_own(tmp_path):
    """Equal secrets do not look equal, and a list of digests of likely secrets helps nobody."""
    kept = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        folder = stopped(tmp_path / name, 0, evidence=b"{}\n", secret=SECRET)
        kept.append(json.loads((folder / "about.json").read_bytes())["secret"])
        for path in folder.iterdir():
            content = path.read_bytes()
            assert SECRET not in content
            assert SECRET.hex().encode() not in content
            assert hashlib.sha256(SECRET).hexdigest().encode() not in content
    first, second = kept
    assert first["salt"] != second["salt"]
    assert first["digest"] != second["digest"]
    for found in kept:
        salt = bytes.fromhex(found["salt"])
        assert len(salt) == 16
        assert found == {"salt": salt.hex(), "digest": hashlib.pbkdf2_hmac("sha256", SECRET, salt, 200_000).hex()}


def test_the_salt_of_a_secret_stays_while_its_run_goes_on_and_is_new_in_another(tmp_path):
    folder = stopped(tmp_path, 0, secret=SECRET)
    salts = [json.loads((folder / "about.json").read_bytes())["secret"]["salt"]]
    for settings in (SETTINGS, {**SETTINGS, "rows": "abd"}):
        with opened(tmp_path, settings, secret=SECRET):
            salts.append(json.loads((folder / "about.json").read_bytes())["secret"]["salt"])
    assert salts[0] == salts[1] != salts[2]


def test_an_open_checkpoint_is_locked_and_a_closed_one_is_not(tmp_path):
    with opened(tmp_path) as kept:
        add(kept, 0)
        for settings in (SETTINGS, {}):
            with (
                pytest.raises(InputError, match=r"out\.csv is being written by another run; wait for it, or name"),
                opened(tmp_path, settings),
            ):
                pass
            assert sorted(path.name for path in kept.folder.iterdir()) == [
                "about.json", "block-00000000", "finished.jsonl", "lock",
            ]  # fmt: skip
    assert done(tmp_path) == [0]


def test_its_files_are_closed_before_its_folder_goes(tmp_path, monkeypatch):
    """Some systems remove no open file."""
    real, closed = shutil.rmtree, list[bool]()

    def rmtree(path: Path, **more: Any) -> None:
        closed.extend((kept._finished.closed, kept._lock.closed))
        real(path, **more)

    with opened(tmp_path) as kept:
        add(kept, 0)
        monkeypatch.setattr(shutil, "rmtree", rmtree)
        kept.remove()
        assert (closed, list(tmp_path.iterdir())) == ([True, True], [])
        monkeypatch.undo()


def test_a_run_that_finished_nothing_leaves_nothing(tmp_path):
    with opened(tmp_path) as kept:
        assert kept.total() == BlockRecord(0, 0, 0, {}, 0, 0)
        for _ in range(2):  # the second has nothing to do
            kept.close()
            assert list(tmp_path.iterdir()) == []


def test_an_output_without_blocks_can_be_finished(tmp_path):
    """Of a table without rows, which only an engine passes on."""
    with opened(tmp_path) as kept:
        finish(kept)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"out.csv": b""}


def test_a_block_without_evidence_need_not_say_so(tmp_path):
    with opened(tmp_path) as kept:
        kept.add(BlockRecord(0, 8, 1, {"valid": 1}, 1, 1), BLOCKS[0])
        kept.sync(kept.done[0])
        assert kept.kept[0].evidence_digest == ""
    assert done(tmp_path) == [0]


def test_a_block_is_kept_once_it_was_synced(tmp_path):
    with opened(tmp_path) as kept:
        for block in range(3):
            kept.add(record(block), BLOCKS[block])
        assert (sorted(kept.done), kept.kept) == ([0, 1, 2], {})
        kept.sync(kept.done[1])
        assert kept.kept == {1: kept.done[1]}
        kept.sync(kept.done[2], kept.done[0])
        assert kept.kept == kept.done


@pytest.mark.parametrize("blocks", [None, 2])
def test_what_must_survive_a_power_cut_is_on_the_disk_whole(tmp_path, monkeypatch, blocks):
    """Every file has all of its bytes when the system is told to write it."""
    real, sizes = os.fsync, dict[int, int]()

    def fsync(file: int) -> None:
        sizes[os.fstat(file).st_ino] = os.fstat(file).st_size
        real(file)

    def on_disk(path: Path) -> bool:
        return path.is_dir() or sizes.get(path.stat().st_ino) == path.stat().st_size

    monkeypatch.setattr(os, "fsync", fsync)
    with opened(tmp_path, blocks=blocks) as kept:
        assert on_disk(kept.folder / "about.json")
        for block in range(3):
            add(kept, block, evidence=b"{}\n")
            for name in (f"block-0000000{block}", f"record-0000000{block}", "finished.jsonl"):
                assert on_disk(kept.folder / name), name
        sizes.clear()
        kept.write_output()
        assert tmp_path.stat().st_ino in sizes  # the list of its files
        kept.remove()
    assert all(map(on_disk, tmp_path.rglob("*")))


def test_what_a_run_takes_over_is_on_the_disk_before_it_is_called_kept(tmp_path, monkeypatch):
    """The run before may have been killed between the writing of a block and the wait for the disk."""
    with opened(tmp_path) as kept:
        kept.add(record(0), BLOCKS[0], b"{}\n")
        kept.add(record(1), BLOCKS[1])
    real, synced = os.fsync, set[int]()

    def fsync(file: int) -> None:
        synced.add(os.fstat(file).st_ino)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    with opened(tmp_path) as kept:
        assert sorted(kept.kept) == [0, 1]
        for name in ("block-00000000", "record-00000000", "block-00000001", "finished.jsonl", ""):
            assert (kept.folder / name).stat().st_ino in synced, name


def test_lines_that_are_rewritten_are_on_the_disk_before_they_replace_the_old_ones(tmp_path, monkeypatch):
    folder, moved = stopped(tmp_path, 0, 1), list[tuple[str, int]]()
    (folder / "block-00000001").unlink()
    real, sizes, real_replace = os.fsync, dict[int, int](), os.replace

    def fsync(file: int) -> None:
        sizes[os.fstat(file).st_ino] = os.fstat(file).st_size
        real(file)

    def replace(source: Path, target: Path) -> None:
        moved.append((Path(target).name, sizes.get(os.stat(source).st_ino, -1)))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    assert done(tmp_path) == [0]
    assert moved == [("finished.jsonl", (folder / "finished.jsonl").stat().st_size)]


def test_parts_have_so_many_blocks_each_and_say_what_they_hold(tmp_path):
    for again in (False, True):  # the second replaces the first
        check_folder(tmp_path / "out.csv")
        with opened(tmp_path, blocks=2) as kept:
            for leftover in ("whole", "old") if again else ():  # of a run that was killed while it wrote them
                (kept.folder / leftover).mkdir()
                (kept.folder / leftover / "part-00007.csv").touch()
            add(kept, 1, 2, 0)
            finish(kept)
        assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
        assert {path.name: path.read_bytes() for path in (tmp_path / "out.csv").glob("part-*")} == {
            "part-00000.csv": BLOCKS[0] + BLOCKS[1], "part-00001.csv": BLOCKS[2],
        }  # fmt: skip
        marker = json.loads((tmp_path / "out.csv" / "_tdce.json").read_bytes())
        assert marker == {"rows": 4, "lines": 7, "counts": {"already": 3, "valid": 4}}


def test_a_folder_of_parts_is_written_only_where_nothing_of_others_is(tmp_path):
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"there is no folder .*nowhere to write out\.csv into"):
        check_folder(tmp_path / "nowhere" / "out.csv")
    check_folder(out)
    out.mkdir()
    check_folder(out)
    (out / "letter.txt").touch()
    with pytest.raises(InputError, match=r"out\.csv is a folder that holds other files; name a new one"):
        check_folder(out)
    (out / "_tdce.json").touch()
    check_folder(out)
    shutil.rmtree(out)
    out.touch()
    with pytest.raises(InputError, match=r"out\.csv is a file; name a folder for the parts"):
        check_folder(out)


class FullDisk:
    """Writes of a real file fail from now on, as on a full disk."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_a_full_disk_is_named_and_the_block_does_not_count(tmp_path):
    with opened(tmp_path) as kept:
        add(kept, 0)
        kept._finished = FullDisk(kept._finished)
        with pytest.raises(InputError, match=r"out\.csv cannot be written: No space left on device; make room"):
            add(kept, 1)
        assert (sorted(kept.done), sorted(kept.kept)) == ([0], [0])
    assert done(tmp_path) == [0]


@pytest.mark.parametrize("shard", ["block", "record"])
def test_a_block_that_cannot_reach_the_disk_is_named_and_not_kept(tmp_path, shard):
    with opened(tmp_path) as kept:
        kept.add(record(0), BLOCKS[0], b"{}\n")
        (kept.folder / f"{shard}-00000000").unlink()
        with pytest.raises(InputError, match=r"out\.csv cannot be written: No such file or directory"):
            kept.sync(kept.done[0])
        assert kept.kept == {}


def refused(folder: Path, **more: Any) -> str:
    """Why a checkpoint cannot be opened."""
    with pytest.raises(InputError) as error, opened(folder, **more):
        pass
    return str(error.value)


@pytest.mark.parametrize("before", [None, {}])
def test_a_checkpoint_that_cannot_be_begun_leaves_nothing(tmp_path, monkeypatch, before):
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if before is not None:  # another run's, which it replaces
        stopped(tmp_path, 0, settings=before)
    monkeypatch.setattr(checkpoint, "_store", full)
    assert "out.csv cannot be written: No space left on device; make room" in refused(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["about.json", "finished.jsonl"])
def test_a_file_that_the_system_cannot_read_now_costs_no_block(tmp_path, name):
    folder = stopped(tmp_path, 0, 1)
    content = (folder / name).read_bytes()
    (folder / name).unlink()
    (folder / name).mkdir()  # the error of the system that even root gets
    assert "out.csv cannot be written: Is a directory" in refused(tmp_path)
    (folder / name).rmdir()
    (folder / name).write_bytes(content)
    assert done(tmp_path) == [0, 1]


def test_lines_that_cannot_be_rewritten_cost_no_block(tmp_path):
    """A full disk cut the last line short, and is still full."""
    folder = stopped(tmp_path, 0, 1, 2)
    lines = folder / "finished.jsonl"
    lines.write_bytes(lines.read_bytes()[:-5])
    (folder / "finished.jsonl.draft").mkdir()
    assert "out.csv cannot be written: Is a directory" in refused(tmp_path)
    (folder / "finished.jsonl.draft").rmdir()
    assert done(tmp_path) == [0, 1]


def test_whichever_call_fails_while_a_checkpoint_is_opened_finished_blocks_stay_and_files_are_closed(tmp_path):
    """Each call that opens, syncs or renames a file fails once, as on a disk that is full or ill. Only a shard that
    cannot be read costs its own block."""
    folder = stopped(tmp_path / "start", 0, 1, 2, evidence=b"{}\n")
    lines = folder / "finished.jsonl"
    lines.write_bytes(lines.read_bytes()[:-5])  # so that it is rewritten
    outcomes = set()
    for fail_at in count():
        copy = tmp_path / str(fail_at)
        shutil.copytree(folder, copy / folder.name)
        left, failed = fail_at, ""

        def failing(real: Callable[..., Any], name: str) -> Callable[..., Any]:
            def call(*args: Any, **more: Any) -> Any:
                nonlocal left, failed
                left -= 1
                if left == -1:
                    failed = f"{name} {args[0] if isinstance(args[0], Path) else ''}"
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                return real(*args, **more)

            return call

        error = None
        with pytest.MonkeyPatch.context() as patch:
            for place, name in ((builtins, "open"), (io, "open"), (os, "fsync"), (os, "replace")):
                patch.setattr(place, name, failing(getattr(place, name), name))
            try:
                kept = Checkpoint(ShardFormat(copy / "out.csv", Dialect(), False, None, None), SETTINGS)
            except InputError as raised:
                error = raised  # with all that it holds: nothing is closed because nobody knows it any more
            else:
                assert kept.message == ""
                kept.close()
        found = done(copy)
        outcomes.add((error is not None, len(found)))
        shard = "block-" in failed or "record-" in failed
        assert found == [0, 1] or (error is None and shard and len(found) == 1), failed
        assert error is None or "cannot be written: Input/output error" in str(error), failed
        if not failed:
            break
    assert outcomes == {(False, 1), (False, 2), (True, 2)}


def test_a_checkpoint_is_a_folder_of_its_own(tmp_path):
    folder = tmp_path / "out.csv.tdce-part"
    folder.touch()
    assert refused(tmp_path).endswith(
        "where finished rows are kept, is not a folder; remove it, or name another output"
    )
    with pytest.raises(InputError, match="where finished rows are kept, is not a folder"):
        check_folder(tmp_path / "out.csv")  # before any work
    folder.unlink()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert refused(tmp_path).endswith("finished rows are kept, is a link; remove it, or name another output")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with pytest.raises(InputError, match=r"where finished rows are kept, cannot be written: File name too long; name"):
        checkpoint.check_checkpoint(tmp_path / ("x" * 250 + ".csv"))
