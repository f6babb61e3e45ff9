"""Choose the setting of `tdce` for each data set, on validation rows. Prints the table of docs/method.md.

    TDCE_DATA=... python benchmarks/choose.py [--data lcd,gmc] [--seeds 0,1]

The rivals run with the settings that `tune.py` chose; ours with each of five. Figures are means over the seeds of up to
200 refused validation rows, unmasked and masked. A setting gets a point for each of the paper's cells in which it is
first or within a tenth of the first, and loses one for each in which it is last; the setting with most points is
chosen, the lower L2 deciding a tie. Everything measured is kept in results/validation.csv; a second run goes on from
there.
"""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from tdce.benchmark.cell import Bench, Cell
from tdce.benchmark.settings import DATA, chosen
from tdce.benchmark.tables import HIGHER
from tdce.evaluation import PAPER
from tdce.methods import METHODS, TDCE

RIVALS = tuple(name for name in METHODS if name != "tdce")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"closeness": 0.0, "confidence": 0.97, "neighbours": 150},
    {"closeness": 0.0, "confidence": 0.95, "neighbours": 200, "spread": 1.8},
    {"closeness": 0.05, "confidence": 0.6, "neighbours": 200},
    {"closeness": 0.1, "confidence": 0.6, "neighbours": 800, "spread": 4.0},
)
COLUMNS = ["data", "method", "masked", "seed", "metric", "value"]
TENTH = 0.1


def label(setting: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in setting.items()) or "defaults"


def measure(data: list[str], seeds: list[int], rows: int, kept: Path) -> pd.DataFrame:
    lines: list[Any] = pd.read_csv(kept).values.tolist() if kept.exists() else []
    done = {tuple(line[:4]) for line in lines}
    for name in data:
        for seed in seeds:
            bench = Bench(name, seed, rows, kept.parent / "fitted", part="validation")
            wanted = {m: chosen(m, name) for m in RIVALS} | {label(s): TDCE(**s) for s in SETTINGS}
            for masked in ("no", "yes"):
                for method, made in wanted.items():
                    if (name, method, masked, seed) in done:
                        continue
                    found = bench.measure(Cell(name, method, masked, seed), made).metrics
                    lines += [[name, method, masked, seed, m, found[m]] for m in PAPER]
                pd.DataFrame(lines, columns=COLUMNS).to_csv(kept, index=False)
    return pd.DataFrame(lines, columns=COLUMNS)


def points(rows: pd.DataFrame, data: str, ours: str) -> tuple[int, int]:
    """How many cells are won, and in how many ours is last, against the rivals."""
    won = last = 0
    for masked in ("no", "yes"):
        part = rows[(rows["data"] == data) & (rows["masked"] == masked) & rows["method"].isin([*RIVALS, ours])]
        means = part.groupby(["metric", "method"])["value"].mean()
        for metric in (m for m in PAPER if masked == "no" or m != "js"):
            figures = means[metric] * (-1 if metric in HIGHER else 1)  # lower is better
            best = figures.drop(ours).min()
            won += bool(figures[ours] <= best + TENTH * abs(best))
            last += bool(figures[ours] > figures.drop(ours).max())
    return won, last


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--kept", type=Path, default=Path("results/validation.csv"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    data = arguments.data.split(",")
    rows = measure(data, [int(s) for s in arguments.seeds.split(",")], arguments.rows, arguments.kept)
    metrics = [m for m in PAPER if m != "validity"]
    print("| data | setting | won | last | validity | " + " | ".join(metrics) + " | |")
    print("|---" * (6 + len(metrics)) + "|")
    for name in data:
        score = {label(s): points(rows, name, label(s)) for s in SETTINGS}
        plain = rows[(rows["data"] == name) & (rows["masked"] == "no")]
        means = plain.groupby(["method", "metric"])["value"].mean()
        best = min(score, key=lambda s: (score[s][1] - score[s][0], means[s, "l2"]))
        for setting, (won, last) in score.items():
            cells = " | ".join(f"{means[setting, m]:.2f}" for m in ("validity", *metrics))
            print(f"| {name} | {setting} | {won} | {last} | {cells} | {'chosen' if setting == best else ''} |")


if __name__ == "__main__":
    main()
