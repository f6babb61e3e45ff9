"""Do other instruction sets give other answers? The same questions in processes that are told to leave some unused.

    python benchmarks/machines.py [--rows 2000] [--data german,adult] [--folder FOLDER]

For each setting: how many of the refused rows get other values than without it, and the largest difference of a score
as it is written (six decimals) and before rounding. The folder keeps the fitted explainers.
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
from tdce._core.selftest import OTHERS

ADDED = ["score_before", "score_after", "plausibility"]


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
    """A line for each setting; values are compared cell by cell, options and notes too."""
    model, people = folder / f"{name}.tdce", folder / f"{name}.parquet"
    data = tdce.load(name)
    if not model.exists():
        made = tdce.Explainer(progress="silent")
        made.fit(data.part("train"), label=data.label, favourable=data.favourable, schema=data.schema).save(model)
    explainer = tdce.Explainer.load(model, progress="silent")
    refused = data.frame[(explainer.predict(data.frame) != data.favourable).to_numpy()].head(rows)
    refused.drop(columns=data.label).to_parquet(people)
    first = asked_again("", model, people)
    for setting in OTHERS:
        other = asked_again(setting, model, people)
        differ = ~(first.drop(columns=ADDED) == other.drop(columns=ADDED)) & ~(first.isna() & other.isna())
        gap = np.abs(first[ADDED].to_numpy() - other[ADDED].to_numpy()).max()
        print(f"| {name} | `{setting}` | {len(first):,} | {int(differ.any(axis=1).sum())} | {gap:.0e} |", flush=True)


def asked_again(setting: str, model: Path, people: Path) -> pd.DataFrame:
    """The answer of a process of its own."""
    environment = os.environ | (dict([setting.split("=")]) if setting else {})
    subprocess.run([sys.executable, __file__, "--answer", model, people], env=environment, check=True)
    return pd.read_pickle(people.with_suffix(".answer"))


def answer(model: Path, people: Path) -> None:
    found = tdce.Explainer.load(model, progress="silent").explain(pd.read_parquet(people))
    found.to_frame().to_pickle(people.with_suffix(".answer"))


if __name__ == "__main__":
    main()
