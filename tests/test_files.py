"""Tables on disk: what is written is read back, what is not a table is named, and no file is ever half there."""

from __future__ import annotations

import errno
import gzip
import json
import os
import resource
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tdce._core.errors import InputError
from tdce.datasets.files import check_writable, make_folder, read_table, write_table, write_whole
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.schema import Schema

TEXT = str(pd.Series(["a"]).dtype)  # str, or object before pandas 3
AWKWARD = ["Jürgen Müller", "a, b; c", 'say "hi"', "two\nlines", "old\rmac", "dos\r\nline", "'", "\ttab ", "#", "日本"]


def read_csv(folder: Path, text: str | bytes, schema: Schema | None = None) -> pd.DataFrame:
    path = folder / "table.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(path, schema)


def refusal(path: Path) -> str:
    """What is said of a file that cannot be read: one line that names it."""
    with pytest.raises(InputError) as error:
        read_table(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def everything() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "text": pd.Series([*AWKWARD[:9], None], dtype=TEXT),
            "Straße, 1": range(10),
            "code": [f"00{i}" for i in range(10)],
            "whole": pd.array([1, None, -3, 4, 5, 6, 7, 8, 9, 2**63 - 1], dtype="Int64"),
            "decimal": pd.array(
                [0.1, 0.1 + 0.2, 1e-20, 1.5e300, 1 / 3, -0.0, 2, None, 5e-324, 12345678.9], dtype="Float64"
            ),
        }
    )


def test_every_bit_of_a_decimal_is_read_whatever_the_version_of_pandas(tmp_path):
    values = np.random.default_rng(0).random(2000) * 10.0 ** np.arange(-10, 10).repeat(100)
    text = "\n".join(["a", *(repr(float(value)) for value in values)])
    np.testing.assert_array_equal(read_csv(tmp_path, text + "\n")["a"].to_numpy(dtype=float), values)


# Round trips


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".CSV", ".parquet"])
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a b ü{ending}"
    before = everything()
    write_table(path, before)
    words = {"text": "string", "code": "string"}
    pd.testing.assert_frame_equal(
        read_table(path).astype(words), before.astype({"Straße, 1": "Int64"} | words), check_exact=True
    )
    pd.testing.assert_frame_equal(before, everything())


def test_json_lines_hold_every_bit_and_null_for_missing(tmp_path: Path) -> None:
    frame = everything().assign(
        when=pd.Timestamp("2024-01-02"),
        narrow=np.full(10, 0.1, dtype="float32"),
        kind=pd.Categorical(["u"] * 10),
        row=[(np.int64(i), "x") for i in range(10)],  # a label of two levels
    )
    write_table(tmp_path / "t.jsonl", frame)
    lines = (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert list(rows[0]) == list(frame.columns)
    assert [r["text"] for r in rows] == [*AWKWARD[:9], None]
    assert "Jürgen" in lines[0]  # readable, not escaped
    assert [r["whole"] for r in rows] == [1, None, -3, 4, 5, 6, 7, 8, 9, 2**63 - 1]
    assert [r["decimal"] for r in rows] == [0.1, 0.1 + 0.2, 1e-20, 1.5e300, 1 / 3, 0, 2, None, 5e-324, 12345678.9]
    assert [rows[3][k] for k in ("when", "narrow", "kind", "row")] == ["2024-01-02 00:00:00", 0.1, "u", [3, "x"]]


def test_equal_tables_make_equal_bytes(tmp_path: Path) -> None:
    for name in ("one.csv.gz", "two.csv.gz"):
        write_table(tmp_path / name, everything())
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


def test_the_index_is_not_written(tmp_path: Path) -> None:
    for ending in (".csv", ".parquet"):
        path = tmp_path / f"t{ending}"
        write_table(path, pd.DataFrame({"a": [1, 2]}, index=["x", "y"]))
        assert list(read_table(path).columns) == ["a"]


# Reading csv


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (["1", "2"], "Int64", [1, 2]),
        (["1", "", "3"], "Int64", [1, None, 3]),  # whole beside missing
        (["1", " ", "3"], "Int64", [1, None, 3]),
        (["1", "NA", "n/a", "NaN", "null", "None"], "Int64", [1, None, None, None, None, None]),
        ([" 7", "8 "], "Int64", [7, 8]),
        (["-1", "+2"], "Int64", [-1, 2]),
        (["0", "-0"], "Int64", [0, 0]),
        (["1.5", "", "2"], "Float64", [1.5, None, 2.0]),
        (["1e3", ".5", "5."], "Float64", [1000, 0.5, 5]),
        (["9223372036854775807"], "Int64", [2**63 - 1]),
        (["007", "008"], TEXT, ["007", "008"]),  # codes
        (["7", "008"], TEXT, ["7", "008"]),
        (["-05"], TEXT, ["-05"]),
        (["12345678901234567890"], TEXT, ["12345678901234567890"]),  # an identifier, cut short as a float
        (["NA", "none", "u"], TEXT, ["NA", "none", "u"]),  # words beside a word
        (["None", "None"], TEXT, ["None", "None"]),
        (["12", "u"], TEXT, ["12", "u"]),
        (["1,5"], TEXT, ["1,5"]),
        (["inf", "1"], TEXT, ["inf", "1"]),
        (["٣", "1"], TEXT, ["٣", "1"]),  # a digit, but none that is parsed
        (["0x10"], TEXT, ["0x10"]),
        (["True", "False"], TEXT, ["True", "False"]),
        (["2024-01-02"], TEXT, ["2024-01-02"]),
    ],
)
def test_a_column_is_numeric_if_every_cell_is_a_number(
    tmp_path: Path, cells: list[str], dtype: str, values: list[Any]
) -> None:
    column = read_csv(tmp_path, "x,y\n" + "".join(f'"{c}",.\n' for c in cells))["x"]
    assert column.dtype == dtype
    assert [None if pd.isna(v) else v for v in column] == values


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfa,b\n1,u\n",  # byte order mark, as Excel writes it
        b"a,b\r\n1,u\r\n",
        b"a,b\n1,u",  # no line end
        b"a,b\n1,u\n\n",
        b'"a","b"\n"1","u"\n',
    ],
)
def test_the_usual_dialects_are_read(tmp_path: Path, text: bytes) -> None:
    frame = read_csv(tmp_path, text)
    assert frame.to_dict("list") == {"a": [1], "b": ["u"]}


def test_a_column_alone_keeps_its_empty_cells(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", pd.DataFrame({"a": ["u", None, "v"]}))
    assert read_table(tmp_path / "t.csv")["a"].isna().tolist() == [False, True, False]


# Reading by a schema


SCHEMA = Schema(
    (
        Categorical("code", ("12", "7", "u")),
        Categorical("flag", (False, True)),
        Categorical("mixture", (3, "none")),
        Categorical("level", (1, 2)),
        Numeric("rate", 0, 9, step=0.01),
        Numeric("ratio", 0, 9),
        Numeric("count", 0, 9, step=1),
        Categorical(0, ("a", "b")),
    )
)


def test_the_kinds_of_the_schema_win(tmp_path: Path) -> None:
    text = "code,flag,mixture,level,rate,ratio,count,0,other\n12,True,3,1,5,5,5,a,5\n7,False,none,2,6,6,6,b,6\n"
    frame = read_csv(tmp_path, text, SCHEMA)
    assert frame.to_dict("list") == {
        "code": ["12", "7"],  # words, though both look like numbers
        "flag": [True, False],
        "mixture": [3, "none"],
        "level": [1, 2],
        "rate": [5.0, 6.0],
        "ratio": [5.0, 6.0],
        "count": [5, 6],
        0: ["a", "b"],  # the numbered column
        "other": [5, 6],
    }
    assert frame.dtypes.astype(str).to_dict() == {
        "code": TEXT, "flag": "bool", "mixture": "object", "level": "Int64", "rate": "Float64", "ratio": "Float64",
        "count": "Int64", 0: TEXT, "other": "Int64",
    }  # fmt: skip


def test_parquet_makes_room_for_decimals_and_finds_numbered_columns(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", pd.DataFrame({"rate": [1, 2], "count": [1, 2], 0: ["a", "b"]}))
    frame = read_table(tmp_path / "t.parquet", SCHEMA)
    assert list(frame.columns) == ["rate", "count", 0]
    assert frame.dtypes.astype(str).tolist() == ["Float64", "Int64", "string"]


def test_cells_that_the_schema_does_not_know_stay_as_they_are(tmp_path: Path) -> None:
    frame = read_csv(tmp_path, "flag,code\nmaybe,\nTrue,99\n", SCHEMA)
    assert frame["flag"].tolist() == ["maybe", True]  # for the encoder to name
    assert frame["code"].isna().tolist() == [True, False]
    assert frame["code"].iloc[1] == "99"


# Errors


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("t.csv", None, "there is no file"),
        ("t.xlsx", b"a\n1\n", "the ending must be one of .csv, .csv.gz, .parquet"),
        ("t.jsonl", b'{"a": 1}\n', "the ending must be one of"),
        ("csv", b"a\n1\n", "the ending must be one of"),
        ("t.csv", b"", "cannot be read as csv"),
        ("t.csv", b"\n\n", "cannot be read as csv"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, but the header has 2"),
        ("t.csv", b"a,b\n1,2,3\n1,2,3\n", "line 2 has 3 cells, but the header has 2"),  # pandas: an index and a shift
        ("t.csv", b"a,b\n1,2\n1\n", "line 3 has 1 cells, but the header has 2"),  # cut off
        ("t.csv", b'a,b\n1,"2\n1,2\n', "unexpected end of data"),
        ("t.csv", b"a,b,a\n1,2,3\n", "column 'a' appears twice"),
        ("t.csv", "a,b\nJürgen,1\n".encode("latin-1"), "not in UTF-8; save it as UTF-8"),
        ("t.csv", "ü,b\n1,1\n".encode("utf-16"), "not in UTF-8; save it as UTF-8"),
        ("t.csv", b"a;b\n1,5;2\n", "separated by semicolons, not by ','; use --sep ';'"),
        ("t.csv", b"a\tb\n1\t2\n", "separated by tabs, not by ','; use --sep tab"),
        ("t.csv.gz", b"a,b\n1,2\n", "cannot be read as csv.gz"),
        ("t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 99, mtime=0)[:-12], "cannot be read as csv.gz"),
        ("t.parquet", b"a,b\n1,2\n", "cannot be read as parquet"),
        ("t.parquet", b"", "cannot be read as parquet"),
    ],
)
def test_what_is_not_a_table_is_named(tmp_path: Path, name: str, content: bytes | None, word: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    assert word in refusal(path)


def test_a_damaged_gzip_and_a_cut_parquet_are_named(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + bytes(str(np.random.default_rng(0).random(500)), "ascii"))
    (tmp_path / "t.csv.gz").write_bytes(whole[:20] + b"xxxxx" + whole[25:])
    assert "cannot be read as csv.gz" in refusal(tmp_path / "t.csv.gz")
    write_table(tmp_path / "t.parquet", everything())
    (tmp_path / "t.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-100])
    assert "cannot be read as parquet" in refusal(tmp_path / "t.parquet")


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").mkdir()
    assert "there is no file" in refusal(tmp_path / "t.csv")


def test_a_parquet_file_without_rows_is_named(tmp_path: Path) -> None:
    write_table(tmp_path / "t.parquet", everything().head(0))
    assert "has no rows" in refusal(tmp_path / "t.parquet")


def test_money_of_a_database_comes_as_decimals(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([Decimal("1.10"), None], pa.decimal128(9, 2))}), tmp_path / "t.parquet")
    assert Schema.infer(read_table(tmp_path / "t.parquet"))["a"] == Numeric("a", 1.1, 1.1, step=0.1, missing=True)


def test_words_and_numbers_in_one_column_go_into_csv_but_not_into_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, "u"]})
    write_table(tmp_path / "t.csv", frame)
    assert read_table(tmp_path / "t.csv")["a"].tolist() == ["1", "u"]
    with pytest.raises(InputError, match=r"t\.parquet cannot be written as parquet: .*column a.*; a \.csv file can"):
        write_table(tmp_path / "t.parquet", frame)
    assert not (tmp_path / "t.parquet").exists()


@pytest.mark.parametrize(
    ("name", "word"),
    [("t.xlsx", "the ending must be one of .csv, .csv.gz, .parquet, .jsonl"), ("no/t.csv", "no folder")],
)
def test_a_wrong_target_is_named_before_any_work(tmp_path: Path, name: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        check_writable(tmp_path / name)
    with pytest.raises(InputError, match=word):
        write_table(tmp_path / name, everything())
    assert list(tmp_path.iterdir()) == []


def test_a_name_too_long_to_be_a_file_is_no_file(tmp_path: Path) -> None:
    assert "there is no file" in refusal(tmp_path / ("x" * 300 + ".csv"))


# A file appears whole or not at all


def test_a_failure_midway_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_whole(path, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # the disk is full after 1,000 bytes
    try:
        with pytest.raises(InputError, match=r"t\.csv cannot be written: File too large; name another folder"):
            write_whole(path, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_replaces_the_old_one_and_can_be_read_by_others(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for content in (b"old", b"new"):
        write_whole(path, content)
        assert path.read_bytes() == content
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plain", "t.csv"]


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".csv")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("asked", [lambda path: write_whole(path, b"new"), lambda path: check_writable(path, None)])
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("no/t.csv", "there is no folder"),
        ("file/t.csv", "there is no folder"),
        (".", "is a folder; name a file"),
        ("pipe", "is a device or a pipe; name a file"),
        ("x" * 300, "cannot be written: File name too long"),
        ("kept", "kept is read-only; name another file"),
        ("/proc/t.csv", r"/proc/t\.csv cannot be written: .*; name another folder"),
    ],
)
def test_where_no_file_can_be_written_is_named_before_and_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any, name: str, word: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "kept").write_text("kept")
    os.mkfifo(tmp_path / "pipe")
    access = os.access  # to the superuser, who may run this, everything is writable
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "kept" and access(path, mode))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=word):
        asked(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "kept").read_text() == "kept"


def test_to_ask_whether_a_file_can_be_written_leaves_no_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "t.csv")
    check_writable(tmp_path / "anything", None)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_with_the_file_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    write_whole(path, b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"t\.csv cannot be written: No space left on device; make room"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_is_on_the_disk_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, sync, rename = [], os.fsync, os.replace

    def synced(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else os.fstat(handle).st_size)
        sync(handle)

    def renamed(draft: Any, path: Any) -> None:
        done.append("rename")
        rename(draft, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_whole(tmp_path / "t.csv", b"four")
    assert done == [4, "rename", "folder"]


def test_a_file_is_written_without_touching_the_mask_that_all_threads_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            write_whole(tmp_path / "t.csv", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.csv").stat().st_mode) == 0o640


def test_what_a_killed_writer_left_is_swept_by_the_next_write(tmp_path: Path) -> None:
    killed = (
        "import os, sys, pathlib, tdce.datasets.files as files\n"
        "os.replace = lambda draft, path: os.kill(os.getpid(), 9)\n"
        "files.write_whole(pathlib.Path(sys.argv[1]), b'half')\n"
    )
    done = subprocess.run([sys.executable, "-c", killed, str(tmp_path / "t.csv")], check=False)
    assert done.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / ".tdce-notes").write_text("of the user's own")
    write_whole(tmp_path / "other.csv", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".tdce-notes", "other.csv"]


def test_all_works_where_the_system_cannot_lock_files(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["fcntl"] = None  # as on Windows
from dataclasses import replace
import tdce
from tdce.diffusion import SamplingPlan
data, plans = tdce.load("german"), tdce.TrainingPlans()
rows = data.frame.loc[:100, ["age", "credit_amount", "housing", data.label]]
plans = replace(plans, classifier=replace(plans.classifier, steps=5), sampling=SamplingPlan(64, 64, 2))
explainer = tdce.Explainer(hidden=8, steps=5, plans=plans, progress="silent")
explainer.fit(rows, label=data.label, favourable=data.favourable).save(sys.argv[1])
print(len(tdce.Explainer.load(sys.argv[1]).explain(rows.head(2), immutable=["age"]).to_frame()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.tdce")], check=False, capture_output=True, text=True
    )
    assert done.stdout == "2\n", done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.tdce"]  # no draft is left


def test_the_sweep_leaves_alone_what_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.replace

    def meanwhile(draft: Any, path: Any) -> None:
        monkeypatch.setattr(os, "replace", rename)
        write_whole(tmp_path / "second.csv", b"second")
        rename(draft, path)

    monkeypatch.setattr(os, "replace", meanwhile)
    write_whole(tmp_path / "first.csv", b"first")
    assert (tmp_path / "first.csv").read_bytes() == b"first"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["first.csv", "second.csv"]


def test_many_writers_at_once_all_come_through(tmp_path: Path) -> None:
    def write(i: int) -> None:
        for turn in range(20):
            write_whole(tmp_path / f"{i}.csv", str(turn).encode())

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(write, i) for i in range(8)]:
            done.result()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {f"{i}.csv": b"19" for i in range(8)}


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs a place where nobody can write")
def test_a_place_where_nobody_can_write_is_named(tmp_path):
    with pytest.raises(InputError, match=r"/proc/x.csv cannot be written: .*; name another folder"):
        write_table(Path("/proc/x.csv"), pd.DataFrame({"a": [1]}))
    with pytest.raises(InputError, match=r"the folder /proc/x/y cannot be created: .*; name another one"):
        make_folder(Path("/proc/x/y"))
    with pytest.raises(InputError, match=r"/proc cannot be written: .*; name another folder"):
        make_folder(Path("/proc"))  # it is there, but of no use


def test_a_folder_is_made_with_all_that_lead_to_it_but_never_in_place_of_a_file(tmp_path):
    for _ in range(2):
        make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="is a file or lies inside one; name a folder"):
            make_folder(path)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"
