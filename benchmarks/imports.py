"""CPU seconds to import tdce, and to the first answer: the median of five processes each, on one thread.

python benchmarks/imports.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

CASES = {
    "`import torch`": "import torch",
    "`import pandas`": "import pandas",
    "`import tdce`": "import tdce",
    "`import tdce; tdce.Explainer`": "import tdce; tdce.Explainer",
    "`tdce --help`": "sys.argv[1:] = ['--help']; from tdce.cli import main; main()",
    "`tdce data`": "sys.argv[1:] = ['data']; from tdce.cli import main; main()",
}
FIRST_ANSWER = "import tdce; tdce.Explainer.load({artefact!r}).explain(__import__('pandas').read_pickle({row!r}))"
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


def first_answer(folder: Path) -> str:
    """The code that loads an explainer of the german table and asks it about one refused person."""
    import tdce

    data = tdce.load("german")
    explainer = tdce.Explainer(progress="silent").fit(data.frame, label=data.label, favourable=data.favourable)
    explainer.save(folder / "german.tdce")
    data.frame[explainer.predict(data.frame) != data.favourable].head(1).to_pickle(folder / "row.pkl")
    return FIRST_ANSWER.format(artefact=str(folder / "german.tdce"), row=str(folder / "row.pkl"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cases = CASES | {"`import tdce`, load an explainer, explain one row": first_answer(Path(folder))}
        print("| what | CPU seconds |\n|---|---|")
        for name, code in cases.items():
            seconds(code)  # fills the disk cache
            print(f"| {name} | {median(seconds(code) for _ in range(5)):.2f} |", flush=True)


if __name__ == "__main__":
    main()
