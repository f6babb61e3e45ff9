"""Whether answers depend on the processor's instruction set: the same questions with some instructions disabled.

    python benchmarks/machines.py [--rows 2000] [--data german,adult] [--folder FOLDER]

For each setting: how many refused rows get other values than without it, and the largest difference between scores as
written (six decimals). The fitted explainers are saved in the folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import tdce
from tdce._core.selftest import OTHER_PROCESSORS

SCORES = ["score_before", "score_after", "plausibility"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--answer", nargs=2, type=Path, help=argparse.SUPPRESS)  # what a process of its own does
    asked = parser.parse_args()
    if asked.answer:
        answer(*asked.answer)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        print("| data | setting | rows | other values | largest difference of a score |\n|---|---|---|---|---|")
        for name in asked.data.split(","):
            compare(name, asked.rows, folder)


def compare(name: str, rows: int, folder: Path) -> None:
    """Print a line for each setting; all values are compared, options and notes included."""
    model, rows_file = folder / f"{name}.tdce", folder / f"{name}.parquet"
    data = tdce.load(name)
    if not model.exists():
        made = tdce.Explainer(progress="silent")
        made.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema).save(model)
    explainer = tdce.Explainer.load(model, progress="silent")
    refused = data.frame[(explainer.predict(data.frame) != data.favourable).to_numpy()].head(rows)
    refused.drop(columns=data.label).to_parquet(rows_file)
    first = asked_again("", model, rows_file)
    for setting in OTHER_PROCESSORS:
        other = asked_again(setting, model, rows_file)
        differ = ~(first.drop(columns=SCORES) == other.drop(columns=SCORES)) & ~(first.isna() & other.isna())
        gap = np.abs(first[SCORES].to_numpy() - other[SCORES].to_numpy()).max()
        print(f"| {name} | `{setting}` | {len(first):,} | {int(differ.any(axis=1).sum())} | {gap:.0e} |", flush=True)


def asked_again(setting: str, model: Path, rows_file: Path) -> pd.DataFrame:
    """The answer of a process of its own."""
    environment = os.environ | (dict([setting.split("=")]) if setting else {})
    subprocess.run([sys.executable, __file__, "--answer", model, rows_file], env=environment, check=True)
    return pd.read_pickle(rows_file.with_suffix(".answer"))


def answer(model: Path, rows_file: Path) -> None:
    found = tdce.Explainer.load(model, progress="silent").explain(pd.read_parquet(rows_file))
    found.to_frame().to_pickle(rows_file.with_suffix(".answer"))


if __name__ == "__main__":
    main()
