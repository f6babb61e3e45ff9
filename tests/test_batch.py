"""Any number of rows: blocks that add up to the whole, runs that are killed and resumed, workers that die."""

import gzip
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tdce
from tdce import cli
from tdce._core.errors import InputError
from tdce._core.extras import require_extra
from tdce._core.progress import Progress, Rate, duration
from tdce.batch import checkpoint
from tdce.batch import run as batch_run
from tdce.batch.blocks import answer_to_arrow, explain_arrow
from tdce.datasets import chunks
from tdce.datasets.chunks import ChunkedTable, find_tables
from tdce.datasets.files import Dialect, read_table, write_table
from tdce.methods import Question


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, explainer) -> Path:
    """An artefact, and a table with all that is awkward to read in parts of 16 rows."""
    path = tmp_path_factory.mktemp("streaming")
    explainer.save(path / "a.tdce")
    awkward(explainer, 64).to_csv(path / "rows.csv", index=False)
    return path


def people(explainer: tdce.Explainer, rows: int) -> pd.DataFrame:
    """Two who were refused, at the fourth place from each end, among many who were not: these cost little time."""
    frame = lending.table(4 * rows, seed=3).drop(columns="decision")
    refused = (explainer.predict(frame) == "no").to_numpy()
    no, yes = frame[refused], frame[~refused]
    parts = [yes[:3], no[:1], yes[3 : rows - 5], no[1:2], yes[rows - 5 : rows - 2]]
    return pd.concat(parts, ignore_index=True)


def awkward(explainer: tdce.Explainer, rows: int) -> pd.DataFrame:
    """Text of a CSV file: nearly every column looks otherwise in its first block than in a later one."""
    frame = people(explainer, rows)
    frame["debt"] = frame["debt"].astype(object).where(np.arange(rows) % 9 != 4, None)
    late = np.arange(rows) >= rows // 2
    return frame.assign(
        id=[f"{i:03d}" for i in range(rows)],
        number_then_text=np.where(late, "none of them, really", np.arange(rows).astype(str)),
        whole_then_decimals=np.where(late, "1.5", "1"),
        empty_then_whole=np.where(late, "9007199254740993", ""),
        words_for_nothing=np.where(late, "3", "NA"),
        long=np.where(late, "123456789012345678901234567890", "1"),
        text=np.where(late, 'two\nlines, "quoted"', ""),
        nothing="",
    )


def run(*words: object, cwd: Path, block: int = 16, first: Callable[[], object] = lambda: None) -> tuple[int, str, str]:
    """A command in a process of its own, with small blocks: its exit code (negative: the signal that ended it), what it
    printed, and what it said beside."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            code = 70
            try:
                os.chdir(cwd)
                sys.argv, sys.stdout, sys.stderr = ["tdce", *map(str, words)], out, err
                chunks.CHUNK_ROWS, chunks.CHUNKS_PER_READ = block, 2
                first()
                cli.main()
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                traceback.print_exc(file=err)
            finally:
                out.flush()
                err.flush()
                os._exit(code)
        _, ended = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read(), err.read()


def explained(cwd: Path, *words: object, **more: object) -> str:
    code, said, beside = run("explain", "a.tdce", *words, cwd=cwd, **more)
    assert code == 0, beside
    return said


def at_once(folder: Path, explainer: tdce.Explainer, rows: str, out: str, dialect: Dialect | None = None) -> None:
    """The whole table in memory: what the blocks must equal."""
    frame = read_table(folder / rows, explainer.schema, dialect)
    write_table(folder / out, explainer.explain(frame).to_frame(), dialect)


def test_evidence_of_workers_is_that_of_one_process_to_the_byte_and_is_verified(folder, explainer, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    explained(folder, "rows.csv", "--workers", 2, "--out", "of-two.csv", "--evidence", "two.jsonl")
    explained(folder, "rows.csv", "--out", "of-one.csv", "--evidence", "one.jsonl", block=64)
    assert (folder / "two.jsonl").read_bytes() == (folder / "one.jsonl").read_bytes()
    assert (folder / "of-two.csv").read_bytes() == (folder / "of-one.csv").read_bytes()
    code, said, _ = run("verify", "two.jsonl", "--artefact", "a.tdce", "--rows", "rows.csv", cwd=folder)
    assert code == 0, said


def test_evidence_is_resumed_after_a_kill(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    explained(folder, "rows.csv", "--out", "whole.csv", "--evidence", "whole.jsonl")
    words = ("explain", "a.tdce", "rows.csv", "--out", "killed.csv", "--evidence", "killed.jsonl")
    code, _, _ = run(*words, cwd=folder, first=lambda: dies_after(2))
    assert code == -signal.SIGKILL
    assert not (folder / "killed.jsonl").exists()
    assert ": resuming" in run(*words, cwd=folder)[2]
    assert (folder / "killed.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()
    assert (folder / "killed.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def dies_after(blocks: int) -> None:
    """Kill this process when so many blocks have been kept."""
    add = checkpoint.Checkpoint.add

    def last(self: checkpoint.Checkpoint, *block: object) -> None:
        add(self, *block)
        if len(self.done) == blocks:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoint.Checkpoint.add = last


def test_robust_answers_of_workers_are_those_of_one_process(folder, explainer):
    lending.table(200).to_csv(folder / "table.csv", index=False)
    words = ("rows.csv", "--robust", 2, "--table", "table.csv")
    explained(folder, *words, "--workers", 2, "--out", "robust-two.csv")
    explained(folder, *words, "--out", "robust-one.csv", block=64)
    assert (folder / "robust-two.csv").read_bytes() == (folder / "robust-one.csv").read_bytes()
    assert "of 2 retrained models" in (folder / "robust-one.csv").read_text()


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_blocks_make_up_the_whole_to_the_byte(folder, explainer, ending):
    said = explained(folder, "rows.csv", "--out", f"streamed{ending}")
    assert said.startswith("64 rows, 64 lines: ")
    at_once(folder, explainer, "rows.csv", f"whole{ending}")
    assert (folder / f"streamed{ending}").read_bytes() == (folder / f"whole{ending}").read_bytes()
    assert not list(folder.glob("*.tdce-part"))


def test_compressed_and_with_other_marks_it_is_the_same(folder, explainer):
    frame = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    frame["debt"] = frame["debt"].str.replace(".", ",")
    frame["whole_then_decimals"] = frame["whole_then_decimals"].str.replace(".", ",")
    frame.to_csv(folder / "marks.csv.gz", sep=";", index=False)
    explained(folder, "marks.csv.gz", "--sep", ";", "--decimal", ",", "--out", "marks-out.csv.gz")
    at_once(folder, explainer, "marks.csv.gz", "marks-whole.csv.gz", Dialect(";", ","))
    streamed, whole = (gzip.decompress((folder / f"marks-{name}.csv.gz").read_bytes()) for name in ("out", "whole"))
    assert streamed == whole
    assert b";1,5;" in whole


def test_a_return_in_one_block_quotes_all_of_them(folder, explainer):
    frame = people(explainer, 40).assign(text="a")
    frame.loc[35, "text"] = "a\rb"
    frame.to_csv(folder / "returns.csv", index=False, quoting=2)
    explained(folder, "returns.csv", "--out", "returns-out.csv")
    at_once(folder, explainer, "returns.csv", "returns-whole.csv")
    assert (folder / "returns-out.csv").read_bytes() == (folder / "returns-whole.csv").read_bytes()


def test_parquet_in_row_groups_comes_out_with_the_same_dtypes_and_labels(folder, explainer):
    frame = people(explainer, 70)
    frame = frame.assign(
        kind=pd.Categorical(np.where(frame.index < 40, "u", "v"), categories=["v", "u", "w"]),
        day=pd.Timestamp("2024-02-29"),
        flag=pd.array([True, None] * 35, dtype="boolean"),
        empty=pd.array([None] * 70, dtype="string"),
    )
    frame.index = pd.RangeIndex(100, 240, 2)
    frame.to_parquet(folder / "rows.parquet", row_group_size=30)
    explained(folder, "rows.parquet", "--out", "streamed.parquet", block=32)
    at_once(folder, explainer, "rows.parquet", "whole.parquet")
    streamed, whole = pd.read_parquet(folder / "streamed.parquet"), pd.read_parquet(folder / "whole.parquet")
    pd.testing.assert_frame_equal(streamed, whole, check_categorical=False)
    assert streamed["row"].tolist() == list(range(100, 240, 2))
    assert streamed["kind"].dtype == "category"
    frame.set_index(pd.Index([f"p{i}" for i in range(70)], name="person")).to_parquet(folder / "named.parquet")
    explained(folder, "named.parquet", "--out", "named-out.parquet", block=32)
    assert pd.read_parquet(folder / "named-out.parquet")["row"].tolist() == [f"p{i}" for i in range(70)]


def test_a_csv_table_becomes_parquet_with_one_schema_for_all_blocks(folder, explainer):
    explained(folder, "rows.csv", "--out", "typed.parquet")
    at_once(folder, explainer, "rows.csv", "typed-whole.parquet")
    streamed, whole = (pd.read_parquet(folder / name) for name in ("typed.parquet", "typed-whole.parquet"))
    pd.testing.assert_frame_equal(streamed, whole)
    assert streamed["id"].iloc[7] == "007"
    assert streamed["empty_then_whole"].iloc[-1] == 9007199254740993


def test_folders_and_patterns_are_one_table(folder):
    (folder / "parts").mkdir(exist_ok=True)
    whole = (folder / "rows.csv").read_bytes()
    frame = pd.read_csv(folder / "rows.csv", dtype=str, keep_default_na=False)
    for i, part in enumerate((frame[:7], frame[7:40], frame[40:])):
        part[part.columns[:: -1 if i == 1 else 1]].to_csv(folder / "parts" / f"{i}.csv", index=False)
    (folder / "parts" / "_SUCCESS").touch()
    explained(folder, "rows.csv", "--out", "one.csv")
    for rows in ("parts", "parts/*.csv"):
        explained(folder, rows, "--out", "many.csv")
        assert (folder / "many.csv").read_bytes() == (folder / "one.csv").read_bytes()
    assert (folder / "rows.csv").read_bytes() == whole


def test_files_that_do_not_fit_together_are_named(tmp_path, explainer):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with pytest.raises(InputError, match=r"b\.csv and .*a\.csv have different columns: y, z"):
        ChunkedTable(find_tables(tmp_path), explainer.schema, Dialect()).survey()
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet is parquet and .*b\.csv is CSV"):
        find_tables(tmp_path)
    with pytest.raises(InputError, match=r"no file matches .*\*\.tsv"):
        find_tables(tmp_path / "*.tsv")
    pd.DataFrame({"x": ["a"]}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r"column 'x' is .*string in .*c\.parquet, but int64"):
        ChunkedTable(find_tables(tmp_path / "?.parquet"), explainer.schema, Dialect()).survey()


def test_a_wrong_cell_in_the_last_row_is_named_before_any_work(folder):
    frame = lending.table(60).drop(columns="decision").astype(object)
    frame.loc[57, "income"] = "plenty"
    frame.to_csv(folder / "wrong.csv", index=False)
    code, _, said = run("explain", "a.tdce", "wrong.csv", "--out", "wrong-out.csv", cwd=folder)
    assert code == 2
    assert len(said.splitlines()) == 1
    assert "'plenty'" in said
    assert "row 57" in said
    assert not list(folder.glob("wrong-out*"))


def test_parts_are_a_folder_that_appears_whole(folder):
    explained(folder, "rows.csv", "--out", "whole.csv")
    for _ in range(2):  # the second replaces the first
        explained(folder, "rows.csv", "--part-rows", 40, "--out", "parted.csv")
    names = sorted(path.name for path in (folder / "parted.csv").iterdir())
    assert names == ["_tdce.json", "part-00000.csv", "part-00001.csv"]
    parts = [pd.read_csv(folder / "parted.csv" / name, dtype=str) for name in names[1:]]
    assert [len(part) for part in parts] == [32, 32]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), pd.read_csv(folder / "whole.csv", dtype=str))
    assert json.loads((folder / "parted.csv" / "_tdce.json").read_text())["lines"] == 64
    (folder / "mine.csv").mkdir()
    (folder / "mine.csv" / "letter.txt").touch()
    code, _, said = run("explain", "a.tdce", "rows.csv", "--part-rows", 40, "--out", "mine.csv", cwd=folder)
    assert (code, "holds other files" in said) == (2, True)


def killed_at(moment: int) -> Callable[[], None]:
    """Kill this process at one of the moments at which the checkpoint touches the disk."""
    left = [moment]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def patch() -> None:
        real_store, real_fsync, real_replace, real_join = (
            checkpoint._store,
            os.fsync,
            os.replace,
            batch_run.ShardFormat.join,
        )
        real_add = checkpoint.Checkpoint.add

        def each(real: Callable[..., None]) -> Callable[..., None]:
            def patched(*given: object) -> None:
                count()
                real(*given)

            return patched

        def add(*given: object) -> None:
            count()
            real_add(*given)
            count()

        checkpoint._store, checkpoint.Checkpoint.add = each(real_store), add
        checkpoint.os = type("os", (), {**vars(os), "fsync": each(real_fsync), "replace": each(real_replace)})
        batch_run.ShardFormat.join = each(real_join)

    return patch


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet"])
@pytest.mark.parametrize("moment", [3, 9, 14, 20])
def test_a_killed_run_is_resumed_and_ends_with_the_same_bytes(folder, ending, moment):
    name = f"undisturbed{ending}"
    if not (folder / name).exists():
        explained(folder, "rows.csv", "-n", 2, "--out", name)
    out = f"killed-{moment}{ending}"
    words = "explain", "a.tdce", "rows.csv", "-n", 2, "--out", out
    code, _, _ = run(*words, cwd=folder, first=killed_at(moment))
    assert code == -signal.SIGKILL
    assert not (folder / out).exists()
    code, said, beside = run(*words, cwd=folder)
    assert code == 0, beside
    assert "64 rows, 128 lines" in said
    assert (folder / out).read_bytes() == (folder / name).read_bytes()
    assert not (folder / f"{out}.tdce-part").exists()
    if moment > 7:
        assert ": resuming" in beside


@pytest.mark.parametrize("evidence", [(), ("--evidence", "lost.jsonl")])
def test_a_kill_loses_the_block_at_work_and_no_other(folder, evidence):
    words = "explain", "a.tdce", "rows.csv", *evidence, "--out", "lost.csv"
    for block in (1, 3):  # the second run begins with block 1
        code, _, said = run(*words, cwd=folder, first=lambda block=block: dies_at(block))
        assert code == -signal.SIGKILL, said
        assert finished(folder / "lost.csv.tdce-part") == block
    assert "has 48 of 64 rows" in run(*words, cwd=folder)[2]


def dies_at(block: int) -> None:
    """Kill this process as soon as it begins with this block."""
    real = batch_run.BlockWorker.__call__

    def call(self, number, rows, budget):
        if number == block:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, number, rows, budget)

    batch_run.BlockWorker.__call__ = call


def test_a_shard_that_did_not_reach_the_disk_costs_its_block_only(folder):
    """What a power cut may leave: a shard of the right size with nothing in it, and a line that is none."""
    explained(folder, "rows.csv", "--out", "undisturbed.csv")
    words = "explain", "a.tdce", "rows.csv", "--out", "cut.csv"
    run(*words, cwd=folder, first=lambda: dies_at(3))
    part = folder / "cut.csv.tdce-part"
    shard = part / "block-00000001"
    shard.write_bytes(bytes(len(shard.read_bytes())))
    lines = (part / "finished.jsonl").read_bytes().splitlines(keepends=True)
    (part / "finished.jsonl").write_bytes(bytes(len(lines[0])) + b"\n" + b"".join(lines[1:]))
    code, _, said = run(*words, cwd=folder)
    assert code == 0
    assert "has 16 of 64 rows" in said
    assert (folder / "cut.csv").read_bytes() == (folder / "undisturbed.csv").read_bytes()


def test_a_line_that_was_cut_short_costs_its_block_only(folder):
    explained(folder, "rows.csv", "--out", "undisturbed.csv")
    words = "explain", "a.tdce", "rows.csv", "--out", "torn.csv"
    run(*words, cwd=folder, first=killed_at(15))
    part = folder / "torn.csv.tdce-part"
    lines = (part / "finished.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) >= 3
    (part / "finished.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:9])
    (part / "block-00000000").write_bytes(b"half")
    code, _, said = run(*words, cwd=folder)
    assert code == 0
    assert f"has {16 * (len(lines) - 2)} of 64 rows" in said
    assert (folder / "torn.csv").read_bytes() == (folder / "undisturbed.csv").read_bytes()


def test_another_question_starts_over_and_says_so(folder):
    run("explain", "a.tdce", "rows.csv", "--out", "other.csv", cwd=folder, first=killed_at(12))
    code, _, said = run("explain", "a.tdce", "rows.csv", "--seed", 1, "--out", "other.csv", cwd=folder)
    assert code == 0
    assert "belongs to a run with different seed: starting over" in said
    explained(folder, "rows.csv", "--seed", 1, "--out", "other-whole.csv")
    rows = pd.read_csv(folder / "other.csv", dtype=str)
    pd.testing.assert_frame_equal(rows, pd.read_csv(folder / "other-whole.csv", dtype=str))


def stopped_after(blocks: int, sent: int) -> Callable[[], None]:
    def patch() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        real = batch_run.BlockWorker.__call__

        def call(self, number, rows, budget):
            if number == blocks:
                time.sleep(0.2)  # until the writer has kept the block before
                os.kill(os.getpid(), sent)
            return real(self, number, rows, budget)

        batch_run.BlockWorker.__call__ = call

    return patch


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_says_what_is_kept(folder, sent, code):
    words = "explain", "a.tdce", "rows.csv", "--out", f"stopped-{code}.csv"
    ended, _, said = run(*words, cwd=folder, first=stopped_after(3, sent))
    assert ended == code
    assert said.splitlines()[-2].startswith("48 of 64 rows are kept in ")
    assert run(*words, cwd=folder)[0] == 0
    explained(folder, "rows.csv", "--out", "undisturbed.csv")
    assert (folder / f"stopped-{code}.csv").read_bytes() == (folder / "undisturbed.csv").read_bytes()


def test_a_stopped_run_to_standard_output_promises_no_resumption(folder):
    words = "explain", "a.tdce", "rows.csv", "--out", "-"
    ended, out, said = run(*words, cwd=folder, first=stopped_after(3, signal.SIGTERM))
    assert (ended, out) == (143, "")  # nothing is sent before all of it is there
    assert "kept in" not in said
    assert said.splitlines()[-1] == "tdce: stopped; nothing is half-written"


def test_two_runs_do_not_write_the_same_file(folder):
    shards = batch_run.ShardFormat(folder / "busy.csv", Dialect(), False, None, None)
    held = checkpoint.Checkpoint(shards, {})
    code, _, said = run("explain", "a.tdce", "rows.csv", "--out", "busy.csv", cwd=folder)
    held.close()
    assert (code, "being written by another run" in said) == (2, True)


def test_a_budget_is_shared_out_whatever_the_order(folder):
    code, _, said = run("explain", "a.tdce", "rows.csv", "--max-model-rows", 191, "--out", "b.csv", cwd=folder)
    assert code == 2
    assert "64 rows with n=1 need at least 192" in said
    words = ("rows.csv", "--max-model-rows", 6000, "--verbose", "--evidence", "b.jsonl", "--out", "b.csv")
    said = explained(folder, *words)
    asked = int(said.split(" times for ")[1].split(" rows")[0].replace(",", ""))
    assert 64 <= asked <= 6000
    blocks = [json.loads(line) for line in (folder / "b.jsonl").read_text("utf-8").splitlines()]
    shares = [(each["rows"], each["max_model_rows"]) for each in blocks if each["record"] == "block"]
    assert shares == [(16, 1500)] * 4
    code, out, said = run("verify", "b.jsonl", "--artefact", "a.tdce", "--rows", "rows.csv", cwd=folder, block=1024)
    assert (code, "64 of 64 reproduced to the bit" in out) == (0, True), out + said


def test_a_page_of_too_many_rows_is_refused(folder, monkeypatch):
    monkeypatch.setattr(cli.explain, "MAX_PAGE_ROWS", 63)
    code, _, said = run("explain", "a.tdce", "rows.csv", "--out", "page.html", cwd=folder)
    assert code == 2
    assert "64 rows are too many for a page, which has at most 63" in said
    monkeypatch.setattr(cli.explain, "MAX_PAGE_ROWS", 64)
    explained(folder, "rows.csv", "--out", "page.html")
    assert '"Person 63"' in (folder / "page.html").read_text()


def one_worker_dies() -> None:
    """The first that is found is killed over its first block."""

    def hunt() -> None:
        while not (found := multiprocessing.active_children()):
            time.sleep(0.01)
        time.sleep(0.2)  # it has been given a block, and is still loading what it needs
        os.kill(found[0].pid, signal.SIGKILL)
        print("killed", file=sys.stderr, flush=True)

    threading.Thread(target=hunt, daemon=True).start()


def test_workers_one_of_which_dies_write_the_same_bytes(folder):
    explained(folder, "rows.csv", "--out", "undisturbed.csv")
    code, _, said = run(
        "explain", "a.tdce", "rows.csv", "--out", "two.csv", "--workers", 2, cwd=folder, first=one_worker_dies
    )
    assert code == 0, said
    assert "killed" in said
    assert (folder / "two.csv").read_bytes() == (folder / "undisturbed.csv").read_bytes()


MARKING = """
import sys
from pathlib import Path
from tdce import cli
from tdce.batch.run import BlockWorker

real, marks = BlockWorker.__call__, Path(__file__).with_suffix("")

def call(self, number, *rest):
    (marks / str(number)).touch()
    return real(self, number, *rest)

BlockWorker.__call__ = call  # here, and in the workers, which import this file too
if __name__ == "__main__":
    cli.main()
"""


@pytest.mark.slow
def test_a_run_that_is_killed_many_times_loses_a_block_per_worker_and_ends_with_the_same_bytes(folder, explainer):
    people(explainer, 20_000).to_csv(folder / "many.csv", index=False)
    (folder / "begun.py").write_text(MARKING)
    command = [sys.executable, folder / "begun.py", "explain", folder / "a.tdce", folder / "many.csv", "--workers", 2]
    whole, out, kept = folder / "many-whole.csv.gz", folder / "many.csv.gz", folder / "many.csv.gz.tdce-part"
    (folder / "begun").mkdir()
    subprocess.run([*map(str, command), "--out", str(whole)], check=True)
    kills = 0
    for blocks in (0, 1, 4, 9, 15, 18):
        for mark in (folder / "begun").iterdir():
            mark.unlink()
        before = finished(kept)
        process = subprocess.Popen([*map(str, command), "--out", str(out)])
        while process.poll() is None and finished(kept) <= blocks:
            time.sleep(0.001)
        kills += process.poll() is None
        process.kill()
        process.wait()
        time.sleep(0.5)  # its workers notice
        if kept.exists():
            assert len(list((folder / "begun").iterdir())) - (finished(kept) - before) <= 2
    assert kills >= 4
    subprocess.run([*map(str, command), "--out", str(out)], check=True)
    assert out.read_bytes() == whole.read_bytes()


def finished(kept: Path) -> int:
    path = kept / "finished.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(folder, explainer):
    """What `/usr/bin/time` would show: the largest resident size of the command."""
    script = (
        "import resource; from tdce.cli import app; app({}, standalone_mode=False); print(resource.getrusage(0)[2])"
    )
    peaks = []
    for rows in (10_000, 100_000):
        frame = people(explainer, 1000)
        pd.concat([frame] * (rows // 1000)).to_csv(folder / "memory.csv", index=False)
        words = ["explain", str(folder / "a.tdce"), str(folder / "memory.csv"), "--out", str(folder / "memory-out.csv")]
        code = script.format(words).replace("getrusage(0)", "getrusage(resource.RUSAGE_SELF)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] <= 1.2 * peaks[0], peaks


def test_progress_is_told_by_time(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tdce._core.progress.time.monotonic", lambda: now[0])
    with Progress("lines").rows("rows", 1000, done=100) as bar:
        for seconds in (4, 11, 12, 30):
            now[0] = seconds
            bar.advance(100)
        now[0] = 40
        bar.advance(500)
    assert capsys.readouterr().err.splitlines() == [
        "rows: 300 of 1,000 rows, 18 rows/s, 38 s left",  # 200 in 11 s, 700 to go
        "rows: 500 of 1,000 rows, 13 rows/s, 38 s left",  # 400 in 30 s, 500 to go
        "rows: done (1,000 of 1,000 rows, 22 rows/s)",
    ]
    assert [duration(s) for s in (5, 65, 7260, 90_000)] == ["5 s", "1 min 5 s", "2 h 1 min", "1 d 1 h"]
    tell = Progress("lines").throttled("checked {:,} rows")
    for seconds, rows in ((41, 10), (50, 1024), (55, 2048)):
        now[0] = seconds
        tell(rows)
    assert capsys.readouterr().err.splitlines() == ["checked 1,024 rows"]
    assert str(Rate(10, 0)) == "0 of 10 rows"


def test_a_question_brings_the_answer_of_explain_also_as_arrow(explainer):
    rows = lending.refused(explainer, 3)
    question = Question(n=2, immutable=("age",), seed=4)
    whole = explainer.explain(rows, n=2, immutable=["age"], seed=4)
    pd.testing.assert_frame_equal(explainer.ask(rows, question).to_frame(), whole.to_frame())
    table = pa.Table.from_pandas(rows, preserve_index=False)
    assert explain_arrow(explainer, table, question).equals(answer_to_arrow(whole, table.schema))


def test_locks_and_signal_masks_are_used_only_where_a_system_has_them(tmp_path):
    """As on Windows: the rooms can be imported, an output is written without a lock, a worker without a mask."""
    script = """
import signal, sys
sys.modules["fcntl"] = None
del signal.pthread_sigmask
from pathlib import Path
import tdce.batch
from tdce._core import ignore_sigint
from tdce.batch.checkpoint import Checkpoint
from tdce.batch.shards import ShardFormat
from tdce.datasets import Dialect
assert tdce.batch.explain_table and tdce.batch.spark.explain and tdce.batch.ray.explain
with ignore_sigint():
    checkpoint = Checkpoint(ShardFormat(Path("out.csv"), Dialect(), False, None, None), {})
checkpoint.add(tdce.batch.BlockRecord(0, 3, 1, {"valid": 1}, 1, 1), b"a\\n1")
checkpoint.write_output()
checkpoint.remove()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


def test_a_missing_engine_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("tdce._core.extras.find_spec", lambda name: None)
    for module, extra in (("ray", "ray"), ("pyspark", "spark")):
        with pytest.raises(
            InputError, match=rf"explain needs {module}; install it with `pip install 'tdce\[{extra}\]'`"
        ):
            require_extra("explain", extra, module)


def test_flags_beside_missing_cells_are_one_dtype_in_every_block(tmp_path):
    """In the first block no flag is missing, in the last all are; in a whole table that is one column."""
    schema = tdce.Schema.infer(pd.DataFrame({"member": [True, False], "code": ["a", "b"]}))
    frame = pd.DataFrame({"member": ["True"] * 4 + ["False", "", "", ""], "code": ["a", "b"] * 3 + ["a", ""]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = ChunkedTable(find_tables(tmp_path / "t.csv"), schema, Dialect())
    table.survey()
    blocks = [block for _, block in table.chunks(size=3)]
    assert [len(block) for block in blocks] == [3, 3, 2]
    pd.testing.assert_frame_equal(pd.concat(blocks), read_table(tmp_path / "t.csv", schema))
    assert {str(block["member"].dtype) for block in blocks} == {"object"}
    assert str(table.object_types()["member"]) == "bool"
