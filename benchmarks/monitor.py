"""How often does `monitor` flag a table that has not changed, and how often one that has?

    TDCE_DATA=... python benchmarks/monitor.py [--tables german,...] [--samples 100]
    python benchmarks/monitor.py --docs          writes the table of docs/monitor.md from the results

An explainer learns seven tenths of a table; samples are drawn from the rest, with labels and without. `none` leaves a
sample unchanged: every alarm is a false one. The others corrupt it in one way:
`number`: a number rises by half its standard deviation; `category`: a quarter of the rows get the category that is
least common; `rows`: each of half the columns is shuffled by itself, which breaks their dependence; `labels`: a quarter
of the labels are changed; `law`: in a table whose columns are bound by an equation, one of them is multiplied by 1.5 in
a tenth of the rows.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import lawful
from docs_tables import put

import tdce

MOST_ROWS = 8_000
SIZES = (50, 200, 1000)
HEAD = ("table", "rows", "labels", "change", "samples", "alarms")
CHANGES = ("none", "number", "category", "rows", "labels", "law")
Spoil = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def tables(name: str) -> tuple[pd.DataFrame, str, object]:
    if name == "months":
        return lawful.months(0).frame, "label", "yes"
    data = tdce.load(name)
    return data.frame, data.label, data.favourable


def spoilers(frame: pd.DataFrame, label: str) -> dict[str, Spoil]:
    features = frame.drop(columns=label)
    numbers = [name for name in features.select_dtypes("number") if features[name].nunique() > 10]
    words = [name for name in features if name not in features.select_dtypes("number")]
    number, word = numbers[0], words[0]
    rise, rare = features[number].std() / 2, features[word].value_counts().index[-1]
    classes = sorted(frame[label].unique())

    def some(part: pd.DataFrame, rng: np.random.Generator, share: float) -> np.ndarray:
        return rng.random(len(part)) < share

    def shuffled(part: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        return part.assign(**{name: rng.permutation(part[name].to_numpy()) for name in list(features)[::2]})

    def relabelled(part: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        other = part[label].map(dict(zip(classes, [*classes[1:], classes[0]], strict=True)))
        return part.assign(**{label: part[label].where(~some(part, rng, 0.25), other)})

    spoil: dict[str, Spoil] = {
        "none": lambda part, rng: part,
        "number": lambda part, rng: part.assign(**{number: (part[number] + rise).round()}),
        "category": lambda part, rng: part.assign(**{word: part[word].where(~some(part, rng, 0.25), rare)}),
        "rows": shuffled,
        "labels": relabelled,
    }
    if "total_paid" in features:
        spoil["law"] = lambda part, rng: part.assign(
            total_paid=part["total_paid"].where(~some(part, rng, 0.1), (part["total_paid"] * 1.5).round(2))
        )
    return spoil


def measure(name: str, samples: int) -> Iterator[tuple[object, ...]]:
    frame, label, favourable = tables(name)
    frame = frame.sample(frac=1, random_state=0).head(MOST_ROWS).reset_index(drop=True)
    cut = int(0.7 * len(frame))
    learned, rest = frame[:cut], frame[cut:].reset_index(drop=True)
    explainer = tdce.Explainer(hidden=64, steps=600, progress="silent")
    explainer.fit(learned, label=label, favourable=favourable)
    for change, spoil in spoilers(frame, label).items():
        for size in [size for size in SIZES if size <= len(rest)]:
            for labels in (True, False):
                if change == "labels" and not labels:
                    continue
                rng, alarms = np.random.default_rng(0), 0
                for _ in range(samples):
                    part = spoil(rest.iloc[rng.choice(len(rest), size, replace=False)], rng)
                    alarms += explainer.monitor(part if labels else part.drop(columns=label)).changed
                yield name, size, labels, change, samples, alarms
                print(name, size, labels, change, alarms, flush=True)


def write_docs(results: Path, page: Path) -> None:
    table = pd.read_csv(results)
    heads = [f"{rows:,} rows" for rows in SIZES]
    lines = ["| table | change | " + " | ".join(heads) + " |", "|---" * (2 + len(SIZES)) + "|"]
    for (name, change), part in table.groupby(["table", "change"], sort=False):
        cells = []
        for rows in SIZES:
            some = part[part["rows"] == rows]
            cells.append(f"{some['alarms'].sum()} of {some['samples'].sum()}" if len(some) else "")
        lines.append(f"| {name} | {change} | " + " | ".join(cells) + " |")
    put(page, monitor="\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="german,adult,months")
    parser.add_argument("--samples", type=int, default=50)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/monitor.csv"))
    given = parser.parse_args()
    if given.docs:
        write_docs(given.out, Path("docs/monitor.md"))
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines: list[tuple[object, ...]] = []
    for name in given.tables.split(","):
        for line in measure(name, given.samples):
            lines.append(line)
            pd.DataFrame(lines, columns=HEAD).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
