"""Rows per second and memory of `tdce explain` from 10^3 to 10^6 rows: one and two workers, Ray, Spark.

    python benchmarks/scale.py [--sizes 1000,10000] [--ways local-1,local-2,ray-2,spark-2] [--kinds search]
                               [--cells results/scale.csv] [--work scale]
    python benchmarks/scale.py --docs          writes the table of docs/scale.md from the results

Cells that are in the file are not measured again. The table is adult, repeated; the model refuses four fifths of its
rows. `search`: the default. `nothing to do`: rows that are already accepted, with narrow networks; this measures only
reading, writing and memory. Each cell is a process of its own, measured from start to end; memory is the largest sum
over it and its child processes (proportional set size).

    python benchmarks/scale.py --parts [--work scale]

instead prints the cost of each step except the search, in processor microseconds per row, for rows that the model
already accepts (CSV), with the narrow networks and with the default ones.
"""

import argparse
import csv
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
from docs_tables import put

import tdce
from tdce.audit import block_lines
from tdce.batch import RunOptions
from tdce.batch.run import make_shard_format
from tdce.datasets import ChunkedTable, Dialect, find_tables
from tdce.diffusion import rate_plausibility
from tdce.methods import Question
from tdce.models import Oracle
from tdce.schema import FeasibleSet

DATA = "adult"
KINDS = {"search": ("search.tdce", False), "nothing to do": ("narrow.tdce", True)}
PARTS_ROWS = 10_000
WAYS = ("local-1", "local-2", "ray-2", "spark-2")
FIELDS = ("kind", "way", "rows", "seconds", "rows_per_second", "peak_mb")
SPARK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
import tdce
from pyspark.sql import SparkSession
from tdce.batch.spark import explain as spark_explain
artefact, rows, out, workers = sys.argv[1:]
spark = SparkSession.builder.master(f"local[{workers}]").config("spark.driver.host", "127.0.0.1").getOrCreate()
table = spark.read.parquet(rows).repartition(4 * int(workers))
spark_explain(table, artefact).write.mode("overwrite").parquet(out)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=Path, default=Path("results/scale.csv"))
    parser.add_argument("--work", type=Path, default=Path("scale"), help="for artefacts, rows and answers")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    if given.docs:
        write_docs(given.cells, Path("docs/scale.md"))
        return
    given.work.mkdir(exist_ok=True)
    prepare(given.work)
    if given.parts:
        print(parts_table(given.work))
        return
    for kind in given.kinds.split(","):
        for rows in map(int, given.sizes.split(",")):
            for way in given.ways.split(","):
                if (kind, way, str(rows)) not in {cell[:3] for cell in known(given.cells)}:
                    note(given.cells, (kind, way, rows, *measured(given.work, kind, way, rows)))
    print(table(given.cells))


def parts_table(work: Path) -> str:
    """Processor microseconds per row, by part and width of the networks."""
    rows = work / "parts.csv"
    pd.read_parquet(rows_file(work, "nothing to do", PARTS_ROWS)).to_csv(rows, index=False)
    each = [parts(work / name, rows) for name, _ in (KINDS["nothing to do"], KINDS["search"])]
    lines = ["| part | networks of width 16 | of the default width |", "|---|---|---|"]
    lines += [f"| {part} | " + " | ".join(f"{1e6 * costs[part]:.0f}" for costs in each) + " |" for part in each[0]]
    return "\n".join(lines)


def parts(artefact: Path, rows: Path) -> dict[str, float]:
    """Processor seconds per row."""
    import torch

    torch.set_num_threads(1)
    explainer, question = tdce.Explainer.load(artefact, progress="silent"), Question()
    fitted, schema = explainer.fitted, explainer.schema

    def survey() -> ChunkedTable:
        table = ChunkedTable(find_tables(rows), schema, Dialect())
        table.survey(fitted.encoder.read)
        return table

    table = survey()
    costs = {"first pass": seconds(survey) / table.rows}
    costs["reading"] = seconds(lambda: list(table.chunks())) / table.rows
    frame = pd.concat([chunk for _, chunk in table.chunks()])
    frame = frame[(explainer.predict(frame) == fitted.favourable).to_numpy()].head(1024)
    answer = explainer.ask(frame, question)
    feasible = FeasibleSet.of(fitted.encoder, frame)
    target = answer.goals.target_class(Oracle(fitted.model).score(feasible.own))
    steps = {
        "answering a row that the model accepts": lambda: explainer.ask(frame, question).to_frame(),
        "of which plausibility": lambda: rate_plausibility(
            fitted.encoder, fitted.diffusion, fitted.energy_quantiles, feasible.own, target
        ),
        "of which the model": lambda: Oracle(fitted.model).score(feasible.own),
        "evidence, with `--evidence`": lambda: list(block_lines(replace(answer))),  # a copy without cached lines
    }
    for out in ("out.csv", "out.jsonl", "out.parquet"):
        run = RunOptions(artefact, Path(out), question, Dialect())
        shards = make_shard_format(run, explainer, frame, table.object_types())
        steps[f"writing `{Path(out).suffix}`"] = partial(shards.encode, 1, answer.to_frame())
    return costs | {name: seconds(step) / len(frame) for name, step in steps.items()}


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds; the shortest of five runs."""
    times = []
    for _ in range(5):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def prepare(out: Path) -> None:
    data = tdce.load(DATA)
    for name, settings in {"search.tdce": {}, "narrow.tdce": {"hidden": 16, "steps": 100}}.items():
        if not (out / name).exists():
            explainer = tdce.Explainer(progress="silent", **settings)
            explainer.fit(data.frame, label=data.label, favourable=data.favourable).save(out / name)


def rows_file(out: Path, kind: str, rows: int) -> Path:
    """A Parquet file, which every engine reads; written in parts, because a million rows are many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    artefact, accepted = KINDS[kind]
    path = out / f"{'accepted' if accepted else 'mixed'}-{rows}.parquet"
    if path.exists():
        return path
    data = tdce.load(DATA)
    frame = data.frame.drop(columns=data.label)
    if accepted:
        explainer = tdce.Explainer.load(out / artefact, progress="silent")
        frame = frame[(explainer.predict(frame) == data.favourable).to_numpy()]
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    draft = path.with_suffix(".draft")
    with pq.ParquetWriter(draft, whole.schema) as writer:
        for start in range(0, rows, len(whole)):
            writer.write_table(whole.slice(0, rows - start))
    draft.rename(path)
    return path


def measured(out: Path, kind: str, way: str, rows: int) -> tuple[float, float, float]:
    engine, workers = way.split("-")
    artefact, table = out / KINDS[kind][0], rows_file(out, kind, rows)
    answers = out / ("answers" if engine == "spark" else "answers.parquet")
    words = [sys.executable, "-m", "tdce", "explain", artefact, table, "--workers", workers, "--engine", engine]
    words += ["--out", answers]
    if engine == "spark":
        words = [sys.executable, "-c", SPARK, artefact, table, answers, workers]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}
    began, peak = time.monotonic(), 0.0
    with open(out / "log.txt", "w") as log:
        process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log, env=environment)
        while process.poll() is None:
            peak = max(peak, sum(map(size, family(process.pid))))
            time.sleep(0.3 if time.monotonic() - began < 60 else 3)  # looking takes time as well
    seconds = time.monotonic() - began
    if process.returncode:
        raise SystemExit(f"{way}, {rows} rows: exit code {process.returncode}; see {out / 'log.txt'}")
    shutil.rmtree(answers) if answers.is_dir() else answers.unlink()
    return round(seconds, 1), round(rows / seconds, 1), round(peak)


def family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        for path in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += map(int, path.read_text().split())
            except OSError:
                continue
    return found


def size(pid: int) -> float:
    """Megabytes; memory that several processes share is divided among them."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def known(path: Path) -> list[tuple[str, ...]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [tuple(cells) for cells in csv.reader(file)][1:]


def note(path: Path, cell: tuple[object, ...]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        csv.writer(file).writerows([FIELDS, cell] if new else [cell])
    print(*cell, flush=True)


def table(path: Path) -> str:
    frame = pd.DataFrame(known(path), columns=list(FIELDS))
    lines = ["| which | rows | how | seconds | rows per second | peak memory, MB |", "|---|---|---|---|---|---|"]
    frame["rows"] = frame["rows"].astype(int)
    for cell in frame.sort_values(["kind", "rows", "way"]).itertuples():
        engine, workers = cell.way.split("-")
        how = (
            f"{workers} worker{'s' * (workers != '1')}" if engine == "local" else f"{engine.title()}, {workers} workers"
        )
        lines.append(
            f"| {cell.kind} | {cell.rows:,} | {how} | {float(cell.seconds):,.0f} | {float(cell.rows_per_second):,.0f} "
            f"| {float(cell.peak_mb):,.0f} |"
        )
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, scale=table(results))


if __name__ == "__main__":
    main()
