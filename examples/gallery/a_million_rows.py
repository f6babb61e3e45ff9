"""
A million rows
==============

Any number of rows go through in constant memory, by several processes, and a stopped run resumes. This page answers a few thousand; the table at its
end has the million.
"""

import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

import tdce

data = tdce.load("german")
saved = Path("german.tdce")
if not saved.exists():
    explainer = tdce.Explainer()
    explainer.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema)
    explainer.save(saved)
out = Path("out")
out.mkdir(exist_ok=True)
people = pd.concat([data.frame.drop(columns=data.label)] * 3, ignore_index=True)
people.to_parquet(out / "people.parquet")

# %%
# On the command line, as a nightly job would do it; ``--workers 8`` uses eight processes.

started = time.perf_counter()
command = [sys.executable, "-m", "tdce", "explain", saved, out / "people.parquet", "--out", out / "answers.parquet"]
subprocess.run(command, check=True, capture_output=True)
answers = pd.read_parquet(out / "answers.parquet")
print(f"{len(answers):,} rows in {time.perf_counter() - started:.0f} s, one process, its start included")
answers["status"].value_counts().to_frame("lines")

# %%
# Reading, writing and memory alone, measured with a million rows that need no answer (``benchmarks/scale.py``):

scale = pd.read_csv(Path.cwd().parents[1] / "results" / "scale.csv")
million = scale.query("rows == 1_000_000 and kind == 'nothing to do'")
million.assign(minutes=(million["seconds"] / 60).round(1))[["way", "minutes", "rows_per_second", "peak_mb"]]
