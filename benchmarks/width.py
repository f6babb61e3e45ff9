"""CPU seconds and peak memory of `fit` and of `explain` for 200 people, by the number of columns and of rows.

    python benchmarks/width.py [--sizes 20000x50,20000x200,20000x500,1000000x14] [--out results/width.csv]
    python benchmarks/width.py --docs          writes the table of docs/speed.md from the results

Each size is a process of its own with one thread; sizes that are in the file are not measured again. The tables are
random: a quarter of their columns are categories, the others depend on a few hidden numbers, two of 48 follow a law.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from docs_tables import put

SIZES = ("20000x50", "20000x200", "20000x500", "1000000x14")
COLUMNS = ["rows", "columns", "features", "encoded", "fit", "fit_mb", "explain", "explain_mb", "valid"]
PEOPLE = 200
HIDDEN = 8  # numbers that the columns depend on


def make_table(rows: int, columns: int, seed: int = 0) -> pd.DataFrame:
    """A lender's table: amounts, counts, shares and categories, of which `label` depends on some."""
    shape, rng = np.random.default_rng(0), np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, HIDDEN))
    table = dict[str, np.ndarray]()
    for i in range(columns):
        loads = shape.normal(size=HIDDEN) * (shape.random(HIDDEN) < 0.3)
        value = (hidden @ loads + rng.normal(size=rows)) / np.sqrt(1 + loads @ loads)
        if i % 4 == 3:
            cuts = np.sort(shape.normal(size=2 + i // 4 % 6))
            names = np.array([f"type {c}" for c in shape.permutation(len(cuts) + 1)])
            table[f"kind_{i}"] = names[cuts.searchsorted(value)]
        elif i % 4 == 2:
            table[f"count_{i}"] = rng.poisson(np.exp(0.6 * value + 1))
        elif i % 8 == 1:
            table[f"share_{i}"] = (1 / (1 + np.exp(-value))).round(3)
        else:
            table[f"amount_{i}"] = np.exp(7 + 0.7 * value).round(2)
        if i % 48 == 12:  # a total of two amounts
            table[f"amount_{i}"] = (table[f"amount_{i - 4}"] + table[f"amount_{i - 8}"]).round(2)
        if i % 48 == 15:  # a category that another one decides
            table[f"kind_{i}"] = np.where(table[f"kind_{i - 4}"] > "type 1", "upper", "lower")
    frame = pd.DataFrame(table)
    score = 0.8 * (frame["kind_3"] == "type 0") - 0.5 * (frame["kind_11"] == "type 1")
    for sign, name in zip((1, -1) * 4, frame.select_dtypes("number").columns, strict=False):
        score += sign * frame[name].rank(pct=True)
    chance = 1 / (1 + np.exp(-4 * (score - score.quantile(0.7))))
    frame["label"] = np.where(rng.random(rows) < chance, "good", "bad")
    return frame


def measure(rows: int, columns: int) -> list[float]:
    """The cells of one size, measured in this process."""
    import tdce

    frame = make_table(rows, columns)
    began = time.process_time()
    explainer = tdce.Explainer(progress="silent").fit(frame, label="label", favourable="good")
    fit, fit_mb = time.process_time() - began, peak_mb()
    people = make_table(4 * PEOPLE, columns, seed=1)
    people = people[np.asarray(explainer.predict(people)) == "bad"].head(PEOPLE)
    began = time.process_time()
    answer = explainer.explain(people).to_frame()
    explain = time.process_time() - began
    space = explainer.fitted_.encoder.space
    valid = (answer["status"] == "valid").mean()
    return [rows, columns, len(space.places), space.width, round(fit, 2), fit_mb, round(explain, 2), peak_mb(), valid]


def peak_mb() -> int:
    """Of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def known(out: Path) -> pd.DataFrame:
    return pd.read_csv(out) if out.exists() else pd.DataFrame(columns=COLUMNS)


def markdown(rows: pd.DataFrame) -> str:
    """Every size, and the ratio to the first of as many rows."""
    head = ["rows", "columns", "encoded width", "`fit`, CPU s", "to the first", "peak MB"]
    head += ["`explain`, CPU s", "to the first", "peak MB", "valid"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for count, some in rows.sort_values(["rows", "columns"]).groupby("rows"):
        first = some.iloc[0]
        for _, row in some.iterrows():
            ratios = [f"{row[what] / first[what]:.1f}" if len(some) > 1 else "" for what in ("fit", "explain")]
            cells = [f"{count:,}", f"{row['columns']:.0f}", f"{row['encoded']:.0f}"]
            cells += [f"{row['fit']:.0f}", ratios[0], f"{row['fit_mb']:,.0f}"]
            cells += [f"{row['explain']:.1f}", ratios[1], f"{row['explain_mb']:,.0f}", f"{row['valid']:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, width=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--out", type=Path, default=Path("results/width.csv"))
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.docs:
        write_docs(given.out, Path("docs/speed.md"))
        return
    if given.one:
        print(json.dumps(measure(*given.one)))
        return
    for size in given.sizes.split(","):
        rows, columns = map(int, size.split("x"))
        done = known(given.out)
        if ((done["rows"] == rows) & (done["columns"] == columns)).any():
            continue
        command = [sys.executable, __file__, "--one", str(rows), str(columns)]
        env = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        cells = json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(*cells, flush=True)
        new = pd.DataFrame([cells], columns=COLUMNS)
        (pd.concat([done, new]) if len(done) else new).to_csv(given.out, index=False)
    print(markdown(known(given.out)))


if __name__ == "__main__":
    main()
