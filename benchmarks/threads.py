"""CPU seconds of an `explain` of 200 rows of german, with one thread and with two, alone and beside a busy process.

    python benchmarks/threads.py [NAME.tdce]

Without a file, the explainer is fitted first. Only ratios are comparable between machines.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROWS, REPEATS = 200, 3
TIMED = """
import json, sys, time
import tdce, torch
explainer = tdce.Explainer.load(sys.argv[1], progress="silent")
rows = tdce.load("german").frame.head(int(sys.argv[2]))
seconds = []
for _ in range(2):
    began = time.process_time()
    explainer.explain(rows)
    seconds.append(time.process_time() - began)
print(json.dumps(seconds))
"""


def seconds(path: Path, threads: int, busy: bool) -> list[float]:
    """CPU seconds of the first and of the second call: the least of some processes."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        runs = [
            json.loads(subprocess.run([sys.executable, "-c", TIMED, str(path), str(ROWS)], env=environment, check=True,
                                      capture_output=True, text=True).stdout)
            for _ in range(REPEATS)
        ]  # fmt: skip
    finally:
        if other is not None:
            other.kill()
            other.wait()
    return [min(each) for each in zip(*runs, strict=True)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else fitted(Path(folder))
        print("| beside | threads | first call | second call | times one thread |\n|---|---|---|---|---|")
        for busy in (False, True):
            one = seconds(path, 1, busy)
            for threads, (first, second) in {1: one, 2: seconds(path, 2, busy)}.items():
                beside = "a busy process" if busy else "nothing"
                ratio = (first + second) / sum(one)
                print(f"| {beside} | {threads} | {first:.2f} | {second:.2f} | {ratio:.2f} |", flush=True)


def fitted(folder: Path) -> Path:
    import tdce

    data = tdce.load("german")
    explainer = tdce.Explainer(progress="silent").fit(
        data.frame, label=data.label, favourable=data.favourable, schema=data.schema
    )
    explainer.save(folder / "german.tdce")
    return folder / "german.tdce"


if __name__ == "__main__":
    main()
