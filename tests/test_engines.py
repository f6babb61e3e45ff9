"""Ray and Spark on local clusters give the bits of one process, also when a worker is killed half-way.

Slow, because clusters take long to start; `make test-engines` installs them.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lending
import pandas as pd
import pytest

import tdce
from tdce._core.errors import InputError
from tdce._core.progress import Progress
from tdce.audit import keys
from tdce.batch.run import EvidenceOptions, RunOptions
from tdce.datasets import chunks
from tdce.datasets.files import Dialect, read_table, write_table
from tdce.methods import Question

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the engines have warnings of their own
ROWS = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("engines")
    explainer = lending.explainer()
    explainer.save(path / "a.tdce")
    frame = lending.table(ROWS, seed=3).drop(columns="decision")
    visits = pd.array([None, 2**60 + 1] * (ROWS // 2), dtype="Int64")  # as a float it would lose its last digit
    frame = frame.assign(id=[f"{i:03d}" for i in range(ROWS)], visits=visits)
    frame.to_parquet(path / "rows.parquet", index=False)
    for ending in (".csv", ".parquet"):
        table = read_table(path / "rows.parquet", explainer.schema)
        write_table(path / f"one{ending}", explainer.explain(table, n=2, immutable=["age"]).to_frame())
    return path


def below(pid: int) -> dict[int, str]:
    """All processes that this one started, and those that they started, with their names."""
    parents, names = {}, {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            names[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
        except (OSError, IndexError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {child: names[child] for child in found - {pid}}


@contextmanager
def one_killed(is_worker: Callable[[int, str], bool]) -> Iterator[list[int]]:
    """Meanwhile, the first worker that has computed for a second is killed."""
    killed: list[int] = []
    over = threading.Event()

    def hunt() -> None:
        while not over.wait(0.05):
            for pid, name in below(os.getpid()).items():
                if is_worker(pid, name) and seconds(pid) > 1:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    return

    thread = threading.Thread(target=hunt)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def seconds(pid: int) -> float:
    try:
        used = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    except OSError:
        return 0
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray", reason="Ray is not installed: make test-engines")
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=200 * 2**20)
    yield
    ray.shutdown()


def with_ray(folder: Path, out: str, workers: int) -> None:
    from tdce.batch.ray import explain_parquet

    question = Question(n=2, immutable=("age",))
    run = RunOptions(folder / "a.tdce", folder / out, question, Dialect(), workers=workers)
    total = explain_parquet(run, str(folder / "rows.parquet"), Progress("silent"))
    assert (total.rows, sum(total.counts.values())) == (ROWS, 2 * ROWS)


@pytest.mark.parametrize("workers", [1, 2])
def test_ray_writes_the_bytes_of_one_process(folder, cluster, monkeypatch, workers):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 32)
    with_ray(folder, f"ray-{workers}.csv", workers)
    assert (folder / f"ray-{workers}.csv").read_bytes() == (folder / "one.csv").read_bytes()


@pytest.mark.parametrize("private", [False, True])
def test_evidence_of_ray_is_that_of_one_process_to_the_byte_and_is_verified(folder, cluster, monkeypatch, private):
    from tdce.batch.ray import explain_parquet

    monkeypatch.setattr(chunks, "CHUNK_ROWS", 32)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    secret = folder / "bank.secret"
    if not secret.exists():
        keys.make_keys(folder / "bank")
    hidden = ("--secret", secret) if private else ()
    options = EvidenceOptions(folder / "ray.jsonl", folder / "bank.key", secret if private else None)
    run = RunOptions(folder / "a.tdce", folder / "ray.csv", Question(n=2), Dialect(), workers=2, evidence=options)
    explain_parquet(run, str(folder / "rows.parquet"), Progress("silent"))
    command("explain", folder / "a.tdce", folder / "rows.parquet", "-n", 2, "--out", folder / "local.csv",
            "--evidence", folder / "local.jsonl", "--sign", folder / "bank.key", *hidden)  # fmt: skip
    assert (folder / "ray.jsonl").read_bytes() == (folder / "local.jsonl").read_bytes()
    assert (folder / "ray.csv").read_bytes() == (folder / "local.csv").read_bytes()
    said = command("verify", folder / "ray.jsonl", "--artefact", folder / "a.tdce", "--rows", folder / "rows.parquet",
                   "--public-key", folder / "bank.pub", *hidden)  # fmt: skip
    assert f"{2 * ROWS} of {2 * ROWS} reproduced to the bit" in said


def test_robust_answers_of_ray_are_those_of_one_process(folder, cluster, monkeypatch):
    from tdce.batch.ray import explain_parquet

    monkeypatch.setattr(chunks, "CHUNK_ROWS", 32)
    lending.table(200).to_csv(folder / "table.csv", index=False)
    explainer = tdce.Explainer.load(folder / "a.tdce", progress="silent")
    explainer.plans = None  # the command below trains for as long as usual, not as short as tests in this process
    ensemble = explainer.retrain(read_table(folder / "table.csv", explainer.schema), models=2)
    question = Question(robust=ensemble.retraining)
    run = RunOptions(folder / "a.tdce", folder / "robust.csv", question, Dialect(), workers=2)
    explain_parquet(run, str(folder / "rows.parquet"), Progress("silent"), ensemble)
    command("explain", folder / "a.tdce", folder / "rows.parquet", "--out", folder / "robust-one.csv",
            "--robust", 2, "--table", folder / "table.csv")  # fmt: skip
    assert (folder / "robust.csv").read_bytes() == (folder / "robust-one.csv").read_bytes()
    assert "2 of 2 retrained models accept it as well" in (folder / "robust.csv").read_text()


def command(*words: object) -> str:
    """In a process of its own."""
    done = subprocess.run([sys.executable, "-m", "tdce", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_ray_carries_on_when_an_actor_is_killed(folder, cluster, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 16)
    with one_killed(lambda pid, name: "ExplainActor" in name) as killed:
        with_ray(folder, "killed.parquet", 2)
    assert len(killed) == 1
    found, whole = (pd.read_parquet(folder / name) for name in ("killed.parquet", "one.parquet"))
    pd.testing.assert_frame_equal(found, whole)


def test_ray_names_a_wrong_cell(folder, cluster):
    from tdce.batch.ray import explain_parquet

    frame = pd.read_parquet(folder / "rows.parquet").assign(housing="boat")
    frame.to_parquet(folder / "boat.parquet", index=False)
    run = RunOptions(folder / "a.tdce", folder / "boat-out.csv", Question(), Dialect())
    with pytest.raises(InputError, match=r"^'housing' has category 'boat' in row 0"):
        explain_parquet(run, str(folder / "boat.parquet"), Progress("silent"))
    assert not list(folder.glob("boat-out*"))


@pytest.mark.parametrize("whole", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize("how", ["another cell", "longer", "gone"])
def test_ray_refuses_a_file_that_changes_while_it_is_read(folder, cluster, monkeypatch, tmp_path, how, whole):
    """The change comes when the files were read once, before any actor has a row; its size and time may be the same."""
    from tdce.batch import ray as engine

    pd.read_parquet(folder / "rows.parquet").to_parquet(tmp_path / "rows.parquet", index=False, compression=None)
    path, real = tmp_path / "rows.parquet", engine.make_shard_format
    content, times = path.read_bytes(), os.stat(path).st_mtime_ns
    at = content.index(b"own")  # the category in its dictionary
    changed = {"longer": content + content[:9]}.get(how, content[:at] + b"Own" + content[at + 3 :])

    def make_shard_format(*given: object) -> object:
        path.write_bytes(changed)
        os.utime(path, ns=(times, times))
        if how == "gone":
            path.unlink()
        return real(*given)

    monkeypatch.setattr(engine, "make_shard_format", make_shard_format)
    run = RunOptions(folder / "a.tdce", tmp_path / "out.csv", Question(), Dialect())
    with pytest.raises(InputError, match=r"rows.parquet changed while it was read, so nothing is written"):
        engine.explain_parquet(run, str(tmp_path if whole else path), Progress("silent"))
    assert not list(tmp_path.glob("out*"))


@pytest.fixture(scope="module")
def spark() -> Iterator[object]:
    pytest.importorskip("pyspark", reason="Spark is not installed: make test-engines")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "1g"}
    builder = SparkSession.builder.master("local[2,4]")  # a task may fail three times
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def test_spark_gives_the_bits_of_one_process_also_when_a_worker_is_killed(folder, spark):
    explainer = tdce.Explainer.load(folder / "a.tdce", progress="silent")
    rows = pd.read_parquet(folder / "rows.parquet", dtype_backend="numpy_nullable")
    whole = explainer.explain(rows, n=2, immutable=["age"]).to_frame().drop(columns="row")
    table = spark.read.parquet(str(folder / "rows.parquet"))
    for parts in (1, 6):
        with one_killed(lambda pid, name: "pyspark" in name and "daemon" in name) as killed:
            answer = tdce.batch.spark.explain(table.repartition(parts), folder / "a.tdce", n=2, immutable=["age"])
            found = answer.toArrow().to_pandas()
        assert len(killed) == 1
        found = found.sort_values(["id", "option"], ignore_index=True)
        assert found.columns.tolist() == whole.columns.tolist()
        for name in whole.columns:
            left, right = (frame[name].astype(object).where(frame[name].notna(), None) for frame in (found, whole))
            assert left.tolist() == right.tolist() or name == "visits", name
        visits = answer.select("id", "visits").where("visits is not null").distinct().toArrow()["visits"]
        assert set(visits.to_pylist()) == {2**60 + 1}


def test_a_wrong_question_is_named_before_the_cluster_works(folder, spark):
    table = spark.read.parquet(str(folder / "rows.parquet"))
    with pytest.raises(InputError, match="target 'perhaps' is not a value of the label"):
        tdce.batch.spark.explain(table, folder / "a.tdce", target="perhaps")
    with pytest.raises(InputError, match="column 'income' is not in the table"):
        tdce.batch.spark.explain(table.drop("income"), folder / "a.tdce")
