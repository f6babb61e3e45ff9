"""A run answers what was surveyed, as it was asked: its options, types, files that change, shards that rot."""

import datetime as dt
import gzip
import inspect
import io
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import lending
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_batch import dies_at, explained, people, run, stopped_after
from user_models import rows as rows_of
from user_models import rule, served, table

import tdce
from tdce import cli
from tdce._core.errors import InputError
from tdce._core.progress import Progress
from tdce.audit import make_keys
from tdce.batch import checkpoint
from tdce.batch import run as batch_run
from tdce.batch.blocks import answer_to_arrow
from tdce.batch.checked_files import Stamps, find_file_system
from tdce.batch.run import SAME_OUTPUT, EvidenceOptions, RunOptions, explain_table, fingerprint
from tdce.datasets import chunks, source_file
from tdce.datasets.chunks import ChunkedTable, find_tables
from tdce.datasets.files import Dialect, read_table, write_table
from tdce.methods import Question
from tdce.models import Retraining
from tdce.serving.batching import join_answers

SIZE = 64


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, explainer) -> Path:
    path = tmp_path_factory.mktemp("integrity")
    explainer.save(path / "a.tdce")
    people(explainer, SIZE).assign(name=[f"p{i:03d}" for i in range(SIZE)]).to_csv(path / "rows.csv", index=False)
    make_keys(path / "k1")
    make_keys(path / "k2")
    return path


# the secret and all other options


def test_another_secret_starts_over_and_the_evidence_can_be_verified(folder):
    words = ("explain", "a.tdce", "rows.csv", "--out", "s.csv", "--evidence", "s.jsonl")
    assert run(*words, "--secret", "k1.secret", cwd=folder, first=lambda: dies_at(2))[0] == -signal.SIGKILL
    about = (folder / "s.csv.tdce-part" / "about.json").read_text()
    assert (folder / "k1.secret").read_text().strip() not in about
    code, _, said = run(*words, "--secret", "k2.secret", cwd=folder, first=lambda: dies_at(3))
    assert "belongs to a run with different secret: starting over" in said
    code, _, said = run(*words, "--secret", "k2.secret", cwd=folder)
    assert (code, "has 48 of 64 rows: resuming" in said) == (0, True), said
    verify = ("verify", "s.jsonl", "--artefact", "a.tdce", "--rows", "rows.csv", "--secret", "k2.secret")
    code, out, said = run(*verify, cwd=folder)
    assert (code, "64 of 64 reproduced" in out) == (0, True), out + said


class Seen(BaseException):
    """What a run would have compared with its checkpoint."""


def settings_of(folder: Path, words: dict[str, Any]) -> Any:
    """The fingerprint of a command, and its secret; None if it never has a checkpoint."""

    def see(shards: Any, settings: Any, secret: Any = None) -> None:
        raise Seen(settings, secret)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(batch_run, "Checkpoint", see)
        given = [str(text) for flag, value in words.items() if value is not None for text in _words(flag, value)]
        try:
            cli.app(["explain", *given], standalone_mode=False)
        except Seen as seen:
            return seen.args
        return None


def _words(flag: str, value: Any) -> tuple[Any, ...]:
    return (value,) if not flag.startswith("-") else (flag,) if value is True else (flag, value)


COMMAND = {"NAME": "a.tdce", "ROWS": "few.csv", "--out": "f.csv", "--evidence": "f.jsonl", "--secret": "k1.secret"}
CHANGES: dict[str, dict[str, Any]] = {  # by parameter: other words of the command, with which its output is another one
    "artefact": {"NAME": "b.tdce"},
    "rows": {"ROWS": "rows.csv"},
    "out": {"--out": "f.csv.gz"},
    "target": {"--target": "yes"},
    "n": {"-n": 2},
    "immutable": {"--immutable": "age"},
    "rule": {"--rule": "income <= 9000"},
    "costs": {"--costs": "age=5"},
    "seed": {"--seed": 1},
    "closeness": {"--closeness": 0.5},
    "threshold": {"--threshold": 0.6},
    "safety": {"--safety": 0.5},
    "max_model_rows": {"--max-model-rows": 5000},
    "model": {},  # see the test of a model at an address
    "header": {},  # the same
    "robust": {"--robust": 1, "--table": "table.csv"},
    "table": {"--robust": 1, "--table": "table2.csv"},
    "evidence": {"--evidence": None, "--secret": None},
    "sign": {"--sign": "k1.key"},
    "secret": {"--secret": "k2.secret"},
    "sep": {"ROWS": "few-semicolons.csv", "--sep": ";"},
    "decimal": {"ROWS": "few-semicolons.csv", "--sep": ";", "--decimal": ","},
    "part_rows": {"--part-rows": 16},
    "excel_safe": {"--excel-safe": True},
}
SAME = {  # parameters that change nothing of what is kept in a checkpoint
    "verbose": {"--verbose": True},
    "language": {"--language": "de"},  # of a page, which has no checkpoint
    "audience": {"--audience": "applicant"},  # the same
    "workers": {"--workers": 2},
    "engine": {},  # Ray's checkpoint is never resumed
}


def test_every_flag_changes_the_fingerprint_or_cannot_change_the_output(folder, explainer):
    """A new flag of `tdce explain` belongs into one of the two lists."""
    assert set(inspect.signature(cli.explain.explain).parameters) == {*CHANGES, *SAME}
    rows = pd.read_csv(folder / "rows.csv").head(6)
    rows.to_csv(folder / "few.csv", index=False)
    rows.round(0).to_csv(folder / "few-semicolons.csv", index=False, sep=";", float_format="%.0f")
    for seed, name in enumerate(("table.csv", "table2.csv")):
        lending.table(200, seed).to_csv(folder / name, index=False)
    other = lending.explainer()
    other.set_params(method=replace(other.chosen_method, closeness=0.6)).save(folder / "b.tdce")
    known = settings_of(folder, COMMAND)
    assert known is not None
    seen = [known]
    for name, words in CHANGES.items():
        if not words:
            continue
        settings = settings_of(folder, COMMAND | words)
        assert settings is not None, name
        assert settings not in seen, name
        seen.append(settings)
    for name, words in SAME.items():
        assert settings_of(folder, COMMAND | words) == known, name


def test_another_model_at_the_same_address_starts_over(tmp_path, monkeypatch):
    """It gives the same scores for the synthetic rows by which it is recognised, and others for the rows."""
    patient = [1.0]
    with served(lambda frame: np.where(frame["age"] > 200, patient[0], 1.0) * rule(frame)) as (address, _):
        made = tdce.Explainer(model=address, progress="silent", hidden=16, steps=20).fit(table(), label="decision")
        made.save(tmp_path / "a.tdce")
        rows_of(table()).head(4).assign(age=[300, 301, 30, 31]).to_csv(tmp_path / "few.csv", index=False)
        words = {"NAME": "a.tdce", "ROWS": "few.csv", "--out": "o.csv", "--model": address}
        known = settings_of(tmp_path, words)
        assert settings_of(tmp_path, words) == known
        monkeypatch.setenv("TENANT", "north")
        headed = settings_of(tmp_path, words | {"--header": "X-Tenant: env:TENANT"})
        assert headed != known
        patient[0] = 0.5
        assert settings_of(tmp_path, words) != known
        assert settings_of(tmp_path, words | {"--header": "X-Tenant: env:TENANT"}) != headed


FIELDS: dict[str, Any] = {  # another value of each option
    "artefact": "b.tdce",
    "out": Path("elsewhere.csv"),
    "model": "http://localhost/other",
    "workers": 3,
    "part_rows": 16,
    "resumable": False,
    "dialect.sep": ";",
    "dialect.decimal": ",",
    "dialect.excel_safe": True,
    "evidence.path": Path("other.jsonl"),
    "evidence.sign": "k2.key",
    "evidence.secret": "k2.secret",
    "question.target": "no",
    "question.n": 2,
    "question.immutable": ("age",),
    "question.rules": ("income <= 9000",),
    "question.costs": {"age": 5.0},
    "question.seed": 1,
    "question.closeness": 0.5,
    "question.threshold": 0.6,
    "question.safety": 0.5,
    "question.max_model_rows": 5000,
    "question.robust": Retraining(3),
}


def test_every_option_of_a_run_is_in_its_fingerprint(folder, explainer):
    """A new field of one of these classes belongs into the list above, and into the fingerprint or `SAME_OUTPUT`."""
    shutil.copy(folder / "a.tdce", folder / "b.tdce")
    with (folder / "b.tdce").open("ab") as file:
        file.write(b" ")
    question = Question()
    evidence = EvidenceOptions(folder / "e.jsonl", folder / "k1.key", folder / "k1.secret")
    options = RunOptions(folder / "a.tdce", folder / "o.csv", question, Dialect("|"), evidence=evidence)
    parts = {"dialect": options.dialect, "evidence": evidence, "question": question}
    names = {each.name for each in fields(options)} - set(parts)
    names |= {f"{part}.{each.name}" for part, value in parts.items() for each in fields(value)}
    assert names == set(FIELDS)
    assert set(SAME_OUTPUT) <= names
    table = ChunkedTable((folder / "rows.csv",), explainer.schema, Dialect())
    table.survey()
    known = fingerprint(options, table, "")
    for name, value in FIELDS.items():
        value = folder / value if isinstance(value, str) and value.startswith(("b.", "k2.")) else value
        part, _, field = name.rpartition(".")
        other = replace(options, **{part: replace(parts[part], **{field: value})} if part else {field: value})
        assert (fingerprint(other, table, "") == known) == (name in SAME_OUTPUT), name
    assert fingerprint(options, table, "another model") != known


# types


def days(n: int) -> list[dt.date]:
    return [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(n)]


def moments(n: int) -> list[dt.datetime]:
    return [dt.datetime(2024, 1, 1, 12) + dt.timedelta(i) for i in range(n)]


COLUMNS: dict[str, tuple[pa.DataType, Callable[[int], list[Any]]]] = {
    **{f"int{b}": (getattr(pa, f"int{b}")(), lambda n: [*range(n)]) for b in (8, 16, 32, 64)},
    **{f"uint{b}": (getattr(pa, f"uint{b}")(), lambda n: [*range(n)]) for b in (8, 64)},
    "float": (pa.float32(), lambda n: [i / 10 for i in range(n)]),
    "double": (pa.float64(), lambda n: [i / 10 for i in range(n)]),
    "whole doubles, then others": (pa.float64(), lambda n: [i if i < 9 else i / 8 for i in range(n)]),
    "bool": (pa.bool_(), lambda n: [i % 3 == 0 for i in range(n)]),
    "string": (pa.string(), lambda n: [f"s{i}" for i in range(n)]),
    "large": (pa.large_string(), lambda n: [f"s{i}" for i in range(n)]),
    "binary": (pa.binary(), lambda n: [b"s%d" % i for i in range(n)]),
    "two bytes": (pa.binary(2), lambda n: [b"%02d" % i for i in range(n)]),
    "decimal": (pa.decimal128(10, 2), lambda n: [Decimal(i).scaleb(-2) for i in range(n)]),
    "decimal256": (pa.decimal256(50, 3), lambda n: [Decimal(i).scaleb(-3) for i in range(n)]),
    "date": (pa.date32(), days),
    "date64": (pa.date64(), days),
    **{f"time {u}": (pa.timestamp(u), moments) for u in ("s", "ms", "us", "ns")},
    "zone": (pa.timestamp("us", "Europe/Berlin"), moments),
    "hour": (pa.time32("ms"), lambda n: [dt.time(i % 24) for i in range(n)]),
    **{f"span {u}": (pa.duration(u), lambda n: [dt.timedelta(i) for i in range(n)]) for u in ("s", "ms", "ns")},
    "list": (pa.list_(pa.int64()), lambda n: [[i, None] if i % 5 == 4 else [i] for i in range(n)]),
    "record": (pa.struct({"a": pa.int64()}), lambda n: [{"a": None if i % 5 == 4 else i} for i in range(n)]),
    "map": (pa.map_(pa.string(), pa.int64()), lambda n: [[("a", i)] for i in range(n)]),
    "null": (pa.null(), lambda n: [None] * n),
}


def typed_table(explainer: tdce.Explainer, missing: Callable[[int], np.ndarray]) -> pa.Table:
    """Columns of many types. The first rows are refused and have no debt, which is a decimal."""
    frame = lending.table(400, seed=5).drop(columns="decision").assign(debt=np.nan)
    poor = frame[(explainer.predict(frame) == "no").to_numpy()].head(3)
    frame = pd.concat([poor, people(explainer, 21)], ignore_index=True)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    debt = [None if np.isnan(v) or i < 12 else Decimal(f"{v:.2f}") for i, v in enumerate(frame["debt"])]
    table = table.set_column(1, "debt", pa.array(debt, pa.decimal128(12, 2)))
    for name, (kind, values) in COLUMNS.items():
        cells = [None if gone else v for v, gone in zip(values(len(table)), missing(len(table)), strict=True)]
        table = table.append_column(name, pa.array(cells, kind))
    words = np.where(missing(len(table)), None, [f"w{i % 4}" for i in range(len(table))])
    return table.append_column("words", pa.array(words, pa.string()).dictionary_encode())


def in_blocks(folder: Path, explainer: tdce.Explainer, rows: Path, out: str, size: int) -> bytes:
    question = Question(immutable=("income", "housing", "age"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_ROWS", size)
        patch.setattr(chunks, "CHUNKS_PER_READ", 2)
        table = ChunkedTable(find_tables(rows), explainer.schema, Dialect())
        table.survey(explainer.fitted.encoder.read)
        options = RunOptions(folder / "a.tdce", folder / out, question, Dialect())
        explain_table(options, explainer, table, Progress("silent"))
    return (folder / out).read_bytes()


@pytest.mark.parametrize("pattern", ["first", "random", "all"])
def test_the_type_of_a_column_is_that_of_the_table_in_blocks_of_any_size(folder, explainer, pattern):
    """As at once: to the byte, or for parquet to the type and the value."""
    rng = np.random.default_rng(7)
    missing = {
        "first": lambda n: np.arange(n) < 9,
        "random": lambda n: rng.random(n) < 0.5,
        "all": lambda n: np.ones(n, dtype=bool),
    }[pattern]
    rows = folder / "typed.parquet"
    table = typed_table(explainer, missing)
    pq.write_table(table, rows)
    frame = read_table(rows, explainer.schema)
    answer = explainer.explain(frame, immutable=["income", "housing", "age"]).to_frame()
    assert isinstance(answer["debt"].iloc[0], Decimal)  # a new one: it was missing
    for ending, size in ((".csv", 3), (".jsonl", 3), (".jsonl", len(frame))):
        write_table(folder / f"at-once{ending}", answer)
        whole = (folder / f"at-once{ending}").read_bytes()
        assert in_blocks(folder, explainer, rows, f"typed-out{ending}", size) == whole, (ending, size)
    sizes = [pq.read_table(io.BytesIO(in_blocks(folder, explainer, rows, "typed-out.parquet", n))) for n in (24, 3, 7)]
    assert all(each.equals(sizes[0]) for each in sizes)
    for field in table.schema:
        kept = sizes[0].schema.field(field.name).type
        if field.name not in ("null", "large", "string", "words", "housing", "float", "date64", "time s", "span s"):
            assert kept == field.type, field.name


def test_a_decimal_that_is_not_a_number_becomes_a_decimal_alone_and_in_company(explainer):
    frame = lending.table(400, seed=5).drop(columns="decision")
    cells = pd.Series([Decimal(f"{v:.2f}") for v in frame["debt"]], dtype=object)
    alone = frame.assign(debt=pd.Series([Decimal("NaN")] * len(frame), dtype=object))
    who = alone[(explainer.predict(alone) == "no").to_numpy()].head(1)
    company = pd.concat([who, frame.assign(debt=cells)[:2]])
    asked = {"immutable": ["income", "housing", "age"]}
    one, many = explainer.explain(who, **asked).to_frame(), explainer.explain(company, **asked).to_frame()
    assert repr(one["debt"].iloc[0]) == repr(many["debt"].iloc[0])
    assert isinstance(one["debt"].iloc[0], Decimal)
    assert one["debt"].iloc[0] == one["debt"].iloc[0]  # a number by now


def test_the_blocks_of_an_engine_and_of_a_job_have_the_types_of_the_table(explainer):
    table = typed_table(explainer, lambda n: np.arange(n) < 9).select(["income", "debt", "housing", "age", "words"])
    frame = chunks.arrow_to_frame(table)
    asked = {"immutable": ["income", "housing", "age"]}
    first = explainer.explain(frame[:3], **asked)  # no decimal among them
    assert answer_to_arrow(first, table.schema).schema.field("debt").type == pa.decimal128(12, 2)
    joined = join_answers([first, explainer.explain(frame[3:], **asked)])
    whole = explainer.explain(frame, **asked)
    pd.testing.assert_frame_equal(joined.to_frame(), whole.to_frame())
    assert [*map(repr, joined.written["debt"])] == [*map(repr, whole.written["debt"])]


# files that change


def as_table(path: Path, frame: pd.DataFrame) -> None:
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=8, index=False)
    else:
        frame.to_csv(path, index=False)


def long_texts(rows: int) -> list[str]:
    """So long that no reader has all of the file in a buffer."""
    return [np.random.default_rng(i).bytes(15_000).hex() for i in range(rows)]


def changed(path: Path, how: str) -> bytes:
    """The file as somebody else's program would leave it."""
    content = path.read_bytes()
    frame = read_table(path)
    frame.loc[len(frame) - 2, "income"] += 1
    if how == "grows":
        return content + (b"" if path.suffix == ".parquet" else content[-40:]) + content[:40]
    if how == "shrinks":
        return content[: len(content) - 30]
    if how == "another table":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False) if path.suffix == ".parquet" else frame.to_csv(buffer, index=False)
        return gzip.compress(buffer.getvalue()) if path.suffix == ".gz" else buffer.getvalue()
    at = len(content) - 60 if path.suffix == ".csv" else len(content) * 3 // 4
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]  # of the same size


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("how", ["grows", "shrinks", "another table", "one bit"])
def test_no_cell_of_a_file_that_changed_is_ever_passed_on(tmp_path, explainer, monkeypatch, ending, how):
    """At whatever moment it changes: the chunks are those of the file as it was surveyed, or there is an error."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 4)
    monkeypatch.setattr(chunks, "CHUNKS_PER_READ", 1)
    monkeypatch.setattr(source_file, "SEGMENT_BYTES", 4096)
    path = tmp_path / f"t{ending}"
    as_table(path, people(explainer, 40).assign(text=long_texts(40)))
    original, after, times = path.read_bytes(), changed(path, how), os.stat(path).st_mtime_ns
    surveyed = [chunk for _, chunk in chunks_of(path, explainer)]
    errors = []
    for moment in range(0, 10, 3):
        table = ChunkedTable((path,), explainer.schema, Dialect())
        table.survey()
        try:
            for number, chunk in table.chunks():
                pd.testing.assert_frame_equal(chunk, surveyed[number])
                if number == moment:
                    path.write_bytes(after)
                    os.utime(path, ns=(times, times))
        except InputError as error:
            errors.append(str(error))
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times, times))
    assert len(errors) >= 2
    assert all("changed while it was read" in error for error in errors), errors


def chunks_of(path: Path, explainer: tdce.Explainer) -> Iterator[tuple[int, pd.DataFrame]]:
    table = ChunkedTable((path,), explainer.schema, Dialect())
    table.survey()
    return table.chunks()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_run_whose_rows_change_ends_with_nothing_written_and_can_be_resumed(folder, ending):
    rows, out = f"moving{ending}", f"moved{ending}"
    as_table(folder / rows, pd.read_csv(folder / "rows.csv").assign(text=long_texts(SIZE)))
    original = (folder / rows).read_bytes()
    explained(folder, rows, "--out", f"still{ending}")

    def edited() -> None:
        source_file.SEGMENT_BYTES = 4096
        real = batch_run.BlockWorker.__call__

        def call(self: Any, number: int, *more: Any) -> Any:
            if number == 1:
                Path(rows).write_bytes(changed(Path(rows), "one bit"))
            return real(self, number, *more)

        batch_run.BlockWorker.__call__ = call

    words = ("explain", "a.tdce", rows, "--out", out)
    code, _, said = run(*words, cwd=folder, first=edited)
    assert (code, f"{rows} changed while it was read, so nothing is written" in said) == (2, True), said
    assert not (folder / out).exists()
    (folder / rows).write_bytes(original)
    code, _, said = run(*words, cwd=folder, first=lambda: setattr(source_file, "SEGMENT_BYTES", 4096))
    assert (code, " of 64 rows: resuming" in said) == (0, True), said
    assert (folder / out).read_bytes() == (folder / f"still{ending}").read_bytes()


def test_a_table_that_changes_between_its_check_and_its_reading_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    real = tdce.datasets.files.check_csv

    def check(*given: Any) -> None:
        real(*given)
        path.write_text("a,b\n1,3\n")

    monkeypatch.setattr(tdce.datasets.files, "check_csv", check)
    with pytest.raises(InputError, match="changed while it was read"):
        read_table(path)


# shards that rot, and power cuts


@pytest.mark.parametrize("kind", ["block", "record"])
def test_a_shard_that_rots_during_the_run_is_not_joined(folder, kind):
    explained(folder, "rows.csv", "--out", "sound.csv")

    def rotting() -> None:
        real = checkpoint.Checkpoint.write_output if kind == "block" else checkpoint.Checkpoint.read_evidence
        name = real.__name__

        def late(self: checkpoint.Checkpoint) -> Any:
            path = self.folder / f"{kind}-00000002"
            content = path.read_bytes()
            path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
            return real(self)

        setattr(checkpoint.Checkpoint, name, late)

    out, evidence = f"rot-{kind}.csv", f"rot-{kind}.jsonl"
    words = ("explain", "a.tdce", "rows.csv", "--out", out, "--evidence", evidence)
    code, _, said = run(*words, cwd=folder, first=rotting)
    assert (code, f"{kind}-00000002 is damaged" in said) == (2, True), said
    assert not (folder / out).exists()
    assert not (folder / evidence).exists()
    code, _, said = run(*words, cwd=folder)
    assert (code, "has 48 of 64 rows: resuming" in said) == (0, True), said
    assert (folder / out).read_bytes() == (folder / "sound.csv").read_bytes()


def test_a_block_is_kept_when_its_shards_their_names_and_its_line_are_on_the_disk(tmp_path, monkeypatch):
    synced, real = [], os.fsync

    def fsync(handle: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    shards = batch_run.ShardFormat(tmp_path / "o.csv", Dialect(), False, None, None)
    kept = checkpoint.Checkpoint(shards, {})
    assert tmp_path in synced  # the folder has its name
    synced.clear()
    kept.add(checkpoint.BlockRecord(0, 2, 1, {"valid": 1}, 1, 1), b"a\n", b"{}\n")
    assert not kept.kept
    kept.sync(kept.done[0])
    assert kept.kept == kept.done
    names = ("block-00000000", "record-00000000", "", "finished.jsonl")
    assert synced == [kept.folder / name for name in names]
    kept.close()


def test_only_what_reached_the_disk_is_called_kept(folder):
    def slow_disk() -> None:
        real = checkpoint.Checkpoint.sync
        checkpoint.Checkpoint.sync = lambda self, *entries: real(self, *(e for e in entries if e.block == 0))
        stopped_after(3, signal.SIGINT)()

    code, _, said = run("explain", "a.tdce", "rows.csv", "--out", "slow.csv", cwd=folder, first=slow_disk)
    assert code == 130
    assert "16 of 64 rows are kept" in said


# names


def test_a_checkpoint_that_is_a_link_is_named(folder, tmp_path):
    for name, target in (("linked.csv", tmp_path), ("dangling.csv", tmp_path / "nowhere")):
        (folder / f"{name}.tdce-part").symlink_to(target)
        code, _, said = run("explain", "a.tdce", "rows.csv", "--out", name, cwd=folder)
        assert (code, len(said.splitlines())) == (2, 1), said
        assert f"{name}.tdce-part, where finished rows are kept, is a link; remove it" in said
    (folder / "filed.csv.tdce-part").touch()
    code, _, said = run("explain", "a.tdce", "rows.csv", "--out", "filed.csv", cwd=folder)
    assert (code, "is not a folder; remove it" in said) == (2, True), said


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "a.tdce", f"{LONG}.csv", "--out", "o.csv"),
        ("explain", "a.tdce", f"{LONG}/*.csv", "--out", "o.csv"),
        ("explain", "a.tdce", LONG, "--out", "o.csv"),
        ("explain", "a.tdce", "rows.csv", "--out", f"{LONG}.csv"),
        ("explain", "a.tdce", "rows.csv", "--out", f"{LONG}/o.csv"),
        ("explain", "a.tdce", "rows.csv", "--out", f"{'x' * 245}.csv"),  # with .tdce-part it is too long
        ("explain", "a.tdce", "rows.csv", "--out", f"{LONG}.html"),
        ("explain", "a.tdce", "rows.csv", "--part-rows", 5, "--out", f"{LONG}.csv"),
        ("explain", "a.tdce", "rows.csv", "--out", "o.csv", "--evidence", LONG),
        ("explain", "a.tdce", "rows.csv", "--out", "o.csv", "--evidence", "e.jsonl", "--secret", LONG),
        ("explain", "a.tdce", "rows.csv", "--out", "o.csv", "--robust", 1, "--table", f"{LONG}.csv"),
        ("explain", f"{LONG}.tdce", "rows.csv", "--out", "o.csv"),
        ("explain", "a.tdce", "rows.csv", "--out", "o.csv", "--model", f"{LONG}.onnx"),
        ("report", "a.tdce", f"{LONG}.csv", "--out", "o.html"),
        ("fit", f"{LONG}.csv", "--label", "y", "--out", "o.tdce"),
        ("evaluate", "a.tdce", f"{LONG}.csv"),
        ("schema", f"{LONG}.csv"),
        ("verify", LONG, "--artefact", "a.tdce"),
        ("keys", LONG),
    ],
    ids=lambda words: " ".join(map(str, words)).replace("x" * 245, "x")[:60],
)
def test_a_name_that_is_too_long_is_one_message(folder, words):
    code, out, said = run(*words, cwd=folder)
    assert (code, out, len(said.splitlines())) == (2, "", 1), said
    assert "too long" in said.lower() or "there is no " in said, said
    assert "xxx" in said
    assert not (folder / "o.csv").exists()


@pytest.mark.parametrize("change", ["longer", "one more", "gone"])
def test_a_table_at_an_address_is_compared_by_sizes_and_times_of_its_files(change):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in ("a", "b"):
        memory.pipe(f"/stamped/{name}.parquet", b"1234")
    stamps = Stamps(*find_file_system("memory://stamped"))
    stamps.check()
    if change == "gone":
        memory.rm("/stamped/b.parquet")
    else:
        memory.pipe({"longer": "/stamped/a.parquet", "one more": "/stamped/c.parquet"}[change], b"12345")
    with pytest.raises(InputError, match=r"\.parquet changed while it was read"):
        stamps.check()
    memory.rm("/stamped", recursive=True)
