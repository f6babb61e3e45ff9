"""The journal of a run, without a model: what it keeps, what it believes when opened again, and what it leaves."""

import errno
import json
import os
import shutil
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


def opened(folder: Path, settings: dict[str, Any] = SETTINGS, blocks: int | None = None) -> Checkpoint:
    return Checkpoint(ShardFormat(folder / "out.csv", Dialect(), False, None, blocks), settings)


def record(block: int, evidence: bytes = b"") -> BlockRecord:
    rows = len(BLOCKS[block].splitlines()) - (block == 0)
    counts = {"valid": rows, **({"already": 3} if block == 1 else {})}
    return BlockRecord(block, len(BLOCKS[block]), rows, counts, 10 + block, 100 + block, len(evidence))


def add(kept: Checkpoint, *blocks: int, evidence: bytes = b"") -> None:
    for block in blocks:
        kept.add(record(block, evidence), BLOCKS[block], evidence)
        kept.sync(kept.done[block])


def stopped(folder: Path, *blocks: int, evidence: bytes = b"") -> Path:
    """What a run that was stopped leaves: the folder of its journal."""
    kept = opened(folder)
    add(kept, *blocks, evidence=evidence)
    kept.close()
    return kept.folder


def test_blocks_in_any_order_make_one_file_and_nothing_else_is_left(tmp_path):
    kept = opened(tmp_path)
    add(kept, 2, 0, 1)
    assert kept.total() == BlockRecord(3, 20, 4, {"already": 3, "valid": 4}, 33, 303)
    kept.finish()
    assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_a_block_is_there_for_the_next_run_as_soon_as_it_was_added(tmp_path):
    """Without close: what the process leaves that is killed."""
    kept = opened(tmp_path)
    for block in (0, 2):
        kept.add(record(block), BLOCKS[block])
        copy = tmp_path / f"copy{block}"
        shutil.copytree(kept.folder, copy / kept.folder.name)
        again = opened(copy)
        assert again.done == kept.done
        again.close()
    kept.close()


@pytest.mark.parametrize("evidence", [b"", b'{"row":1}\n'])
def test_a_run_goes_on_where_another_stopped(tmp_path, evidence):
    folder = stopped(tmp_path, 1, 0, evidence=evidence)
    before = (folder / "finished.jsonl").read_bytes()
    kept = opened(tmp_path)
    assert (sorted(kept.done), kept.message) == ([0, 1], "")
    assert kept.done[1][:7] == record(1, evidence)[:7]
    assert (folder / "finished.jsonl").read_bytes() == before
    add(kept, 2, evidence=evidence)
    assert [path.name for path in kept.evidence_paths()] == [f"record-0000000{i}" for i in range(3)]
    if evidence:
        assert [path.read_bytes() for path in kept.evidence_paths()] == [evidence] * 3
    kept.finish()
    assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)


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
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0, 2]
    assert len((folder / "finished.jsonl").read_bytes().splitlines()) == 2
    kept.close()
    shard.write_bytes(content)  # its line is gone, so that it does not come back
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0, 2]
    add(kept, 1, evidence=b"{}\n")
    kept.finish()
    assert (tmp_path / "out.csv").read_bytes() == b"".join(BLOCKS)


@pytest.mark.parametrize(
    "line",
    [b"", b"\0\0\0", b"[]", b"[0]", b"7", b"null", b'"text"', b"{}", b"[[0],1,1,{},1,1,0,0]", b"\xff", b"[" * 99],
)
def test_a_line_that_is_none_costs_its_block_only(tmp_path, line):
    folder = stopped(tmp_path, 0, 1, 2)
    lines = (folder / "finished.jsonl").read_bytes().splitlines()
    (folder / "finished.jsonl").write_bytes(b"\n".join([lines[0], line, lines[2], b""]))
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0, 2]
    add(kept, 1)
    kept.close()
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0, 1, 2]
    kept.close()


def test_a_last_line_without_its_end_is_cut_off_before_more_is_added(tmp_path):
    folder = stopped(tmp_path, 0, 1)
    content = (folder / "finished.jsonl").read_bytes()
    (folder / "finished.jsonl").write_bytes(content[:-1])  # all of it but the line end
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0]
    add(kept, 1, 2)
    kept.close()
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0, 1, 2]
    kept.close()


def test_without_its_lines_nothing_is_believed(tmp_path):
    folder = stopped(tmp_path, 0, 1)
    (folder / "finished.jsonl").unlink()
    kept = opened(tmp_path)
    assert (kept.done, kept.message) == ({}, "")
    kept.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**SETTINGS, "rows": "abd"}, "rows"),
        ({**SETTINGS, "options": {"n": 3, "immutable": ["age"]}, "model": "m.pt"}, "model, options"),
        ({**SETTINGS, "versions": {"torch": "2"}}, "versions"),
        ({"rows": "abc", "model": None}, "options"),
    ],
)
def test_a_run_with_other_settings_begins_anew_and_names_them(tmp_path, settings, named):
    folder = stopped(tmp_path, 0, 1)
    (folder / "whole").mkdir()
    (folder / "whole" / "part-00000.csv").touch()
    kept = opened(tmp_path, settings)
    assert kept.message == f"{folder} belongs to a run with different {named}: starting over"
    assert kept.done == {}
    assert sorted(path.name for path in folder.iterdir()) == ["about.json", "finished.jsonl", "lock"]
    assert json.loads((folder / "about.json").read_bytes()) == settings
    add(kept, 0)
    kept.close()
    again = opened(tmp_path, settings)
    assert (sorted(again.done), again.message) == ([0], "")
    again.close()


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff"])
def test_settings_that_cannot_be_read_are_those_of_nobody(tmp_path, content):
    folder = stopped(tmp_path, 0, 1)
    (folder / "about.json").unlink()
    if content is not None:
        (folder / "about.json").write_bytes(content)
    kept = opened(tmp_path)
    assert kept.done == {}
    assert json.loads((folder / "about.json").read_bytes()) == SETTINGS
    assert not (folder / "block-00000000").exists()
    kept.close()


def test_settings_are_compared_as_they_are_written(tmp_path):
    kept = opened(tmp_path, {"names": ("a", "b"), 1: "one"})
    add(kept, 0)
    kept.close()
    kept = opened(tmp_path, {"names": ("a", "b"), 1: "one"})
    assert sorted(kept.done) == [0]
    kept.close()


def test_an_open_journal_is_locked_and_a_closed_one_is_not(tmp_path):
    kept = opened(tmp_path)
    add(kept, 0)
    with pytest.raises(InputError, match=r"out\.csv is being written by another run; wait for it, or name another"):
        opened(tmp_path)
    assert sorted(path.name for path in kept.folder.iterdir()) == [
        "about.json", "block-00000000", "finished.jsonl", "lock",
    ]  # fmt: skip
    kept.close()
    opened(tmp_path).close()


def test_a_run_that_finished_nothing_leaves_nothing(tmp_path):
    kept = opened(tmp_path)
    assert kept.total() == BlockRecord(0, 0, 0, {}, 0, 0)
    for _ in range(2):  # the second has nothing to do
        kept.close()
        assert list(tmp_path.iterdir()) == []


def test_a_block_without_evidence_need_not_say_so(tmp_path):
    kept = opened(tmp_path)
    kept.add(BlockRecord(0, 8, 1, {"valid": 1}, 1, 1), BLOCKS[0])
    kept.sync(kept.done[0])
    kept.close()
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0]
    kept.close()


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
    kept = opened(tmp_path, blocks=blocks)
    assert on_disk(kept.folder / "about.json")
    for block in range(3):
        add(kept, block, evidence=b"{}\n")
        for name in (f"block-0000000{block}", f"record-0000000{block}", "finished.jsonl"):
            assert on_disk(kept.folder / name), name
    sizes.clear()
    kept.finish()
    assert tmp_path.stat().st_ino in sizes  # the list of its files
    assert all(map(on_disk, tmp_path.rglob("*")))


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
    opened(tmp_path).close()
    assert moved == [("finished.jsonl", (folder / "finished.jsonl").stat().st_size)]


def test_parts_have_so_many_blocks_each_and_say_what_they_hold(tmp_path):
    for again in (False, True):  # the second replaces the first
        check_folder(tmp_path / "out.csv")
        kept = opened(tmp_path, blocks=2)
        for leftover in ("whole", "old") if again else ():  # of a run that was killed while it wrote them
            (kept.folder / leftover).mkdir()
            (kept.folder / leftover / "part-00007.csv").touch()
        add(kept, 1, 2, 0)
        kept.finish()
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
    kept = opened(tmp_path)
    add(kept, 0)
    kept._finished = FullDisk(kept._finished)
    with pytest.raises(InputError, match=r"out\.csv cannot be written: No space left on device; make room"):
        add(kept, 1)
    kept.close()
    kept = opened(tmp_path)
    assert sorted(kept.done) == [0]
    kept.close()


def test_a_block_that_cannot_reach_the_disk_is_named(tmp_path):
    kept = opened(tmp_path)
    for shard in ("block", "record"):
        add(kept, 0, evidence=b"{}\n")
        (kept.folder / f"{shard}-00000000").unlink()
        with pytest.raises(InputError, match=r"out\.csv cannot be written: No such file or directory"):
            kept.sync(kept.done[0])
    kept.close()


def test_a_journal_that_cannot_be_begun_leaves_nothing(tmp_path, monkeypatch):
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "_store", full)
    with pytest.raises(InputError, match=r"out\.csv cannot be written: No space left on device"):
        opened(tmp_path)
    assert list(tmp_path.iterdir()) == []
