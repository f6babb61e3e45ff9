"""Answers rows with the version of tdce that it is run with, and says how much processor time that took.

    PYTHONPATH=TREE/src python benchmarks/workers/time_answers.py TREE DATA MODEL SEED CACHE

Commands come by standard input, one a line: `time METHOD ROWS` prints the processor seconds of one `explain`, `answer
FILE` writes the answers to the refused rows of the case and their safety and plausibility (a pickle).
"""

import copy
import pickle
import sys
import time
from pathlib import Path

import pandas as pd
import torch

tree, data, model, seed, cache = sys.argv[1:]
sys.path.insert(0, str(Path(tree) / "benchmarks"))
from safety import Case  # noqa: E402

torch.set_num_threads(1)
case = Case(data, model, int(seed), 100, Path(cache))
for line in sys.stdin:
    command, *words = line.split(maxsplit=1 if line.startswith("answer") else 2)
    if command == "answer":
        found = case.explainer.explain(case.queries).explanation
        values = found.raw[:, 0], found.status[:, 0], found.safety[:, 0], found.plausibility[:, 0]
        Path(words[0].strip()).write_bytes(pickle.dumps(values))
        print("done", flush=True)
    else:
        method, rows = words
        explainer = copy.copy(case.explainer)
        explainer.method = method
        frame = pd.concat([case.queries] * (-(-int(rows) // len(case.queries)))).head(int(rows))
        began = time.process_time()
        explainer.explain(frame)
        print(time.process_time() - began, flush=True)
