"""CPU seconds to import tdce: the median of five processes each, on one thread.

python benchmarks/imports.py
"""

import os
import subprocess
import sys
from statistics import median

CASES = {
    "`import torch`": "import torch",
    "`import pandas`": "import pandas",
    "`import tdce`": "import tdce",
    "`import tdce; tdce.Explainer`": "import tdce; tdce.Explainer",
    "`tdce --help`": "sys.argv[1:] = ['--help']; from tdce.cli import main; main()",
    "`tdce data`": "sys.argv[1:] = ['data']; from tdce.cli import main; main()",
}
TIMED = """
import atexit, sys, time
atexit.register(lambda: print(time.process_time() - began, file=sys.stderr))
began = time.process_time()
"""


def seconds(code: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", TIMED + code], capture_output=True, text=True, check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return float(done.stderr.splitlines()[-1])


def main() -> None:
    print("| what | CPU seconds |\n|---|---|")
    for name, code in CASES.items():
        seconds(code)  # fills the disk cache
        print(f"| {name} | {median(seconds(code) for _ in range(5)):.2f} |", flush=True)


if __name__ == "__main__":
    main()
