"""CPU seconds of an `explain` of 200 rows of german, with one thread and with two, with and without a busy process.

    python benchmarks/threads.py [NAME.tdce] [--repeats 5] [--out results/threads.csv]
    python benchmarks/threads.py --docs          writes the table of docs/speed.md from the results

Without a file, the explainer is fitted first. Each repeat runs every case once, in a process of its own that calls
`explain` twice; the least of all repeats counts. Only ratios within one run are comparable, so the table has only
ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from docs_tables import put

import tdce

COLUMNS = ["beside", "threads", "repeat", "first", "second"]
ROWS = 200
WAYS = [(beside, threads) for beside in (0, 1) for threads in (1, 2)]  # busy processes, and threads
TIMED = """
import json, sys, time
import tdce
explainer = tdce.Explainer.load(sys.argv[1], progress="silent")
rows = tdce.load("german").frame.head(int(sys.argv[2]))
seconds = []
for _ in range(2):
    began = time.process_time()
    explainer.explain(rows)
    seconds.append(time.process_time() - began)
print(json.dumps(seconds))
"""


def seconds(path: Path, beside: int, threads: int) -> list[float]:
    """CPU seconds of the first and of the second call of a process."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(beside)]
    try:
        command, env = [sys.executable, "-c", TIMED, str(path), str(ROWS)], {"OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(command, env=os.environ | env, check=True, capture_output=True, text=True)
    finally:
        for other in others:
            other.kill()
            other.wait()
    return [float(each) for each in json.loads(done.stdout)]


def measure(path: Path, repeats: int) -> pd.DataFrame:
    rows = []
    for repeat in range(repeats):
        for beside, threads in WAYS:
            rows.append((beside, threads, repeat, *seconds(path, beside, threads)))
            print(*rows[-1], flush=True)
    return pd.DataFrame(rows, columns=COLUMNS).round(4)


def fitted(folder: Path) -> Path:
    data = tdce.load("german")
    explainer = tdce.Explainer(progress="silent").fit(
        data.frame, label=data.label, favourable=data.favourable, schema=data.schema
    )
    explainer.save(folder / "german.tdce")
    return folder / "german.tdce"


def markdown(rows: pd.DataFrame) -> str:
    """The least CPU time of each way, relative to one thread with no busy process beside."""
    least = rows.groupby(["beside", "threads"])[["first", "second"]].min()
    ratios = least / least.loc[WAYS[0]]
    lines = ["| busy processes beside | threads | first call | second call |", "|---|---|---|---|"]
    lines += [f"| {way[0]} | {way[1]} | {ratios['first'][way]:.2f} | {ratios['second'][way]:.2f} |" for way in WAYS]
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, threads=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("artefact", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/threads.csv"))
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    if given.docs:
        write_docs(given.out, Path("docs/speed.md"))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(given.artefact or fitted(Path(folder)), given.repeats)
    rows.to_csv(given.out, index=False)
    print(markdown(rows))


if __name__ == "__main__":
    main()
