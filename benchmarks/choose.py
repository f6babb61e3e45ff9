"""Choose the setting of `tdce` for each data set, on validation rows. Prints the table of docs/method.md.

    TDCE_DATA=... python benchmarks/choose.py [--data lcd,gmc] [--seeds 0,1]

The rivals run with the settings that `tune.py` chose; ours with each of five. Figures are means over five seeds of up
to 300 refused validation rows, unmasked and masked. A setting gets a point for each of the paper's cells in which it
is first or within one standard deviation of the first, as results/tables.md counts it on test rows, and loses one for
each in which it is last; the setting with most points is chosen, the lower L2 deciding a tie. Everything measured is
kept in results/validation.csv; a second run goes on from there.
"""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from tdce.evaluation import PAPER
from tdce.methods import METHODS, TDCE
from tdce.paper.benchmark.cell import Bench, Cell
from tdce.paper.benchmark.settings import DATA, chosen
from tdce.paper.benchmark.summary import contests

RIVALS = tuple(name for name in METHODS if name != "tdce")
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"closeness": 0.0, "confidence": 0.97, "neighbours": 300, "own_share": 0.5, "factors": 2, "spread": 1.2},
    {"closeness": 0.025, "confidence": 0.8, "neighbours": 100, "own_share": 0.5, "factors": 6, "spread": 1.8},
    {"closeness": 0.0, "confidence": 0.95, "neighbours": 200, "spread": 1.8},
    {"closeness": 0.0, "confidence": 0.6, "neighbours": 600, "own_share": 0.7, "spread": 1.15, "pull": 0.9},
)
COLUMNS = ["data", "method", "masked", "seed", "metric", "value"]


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
    part = rows[rows["method"].isin([*RIVALS, ours])]
    for masked in ("no", "yes"):
        for contest in contests(part, data, masked, [m for m in PAPER if masked == "no" or m != "js"]):
            won += contest.standing(ours) != "lost"
            last += contest.ranking()[-1] == ours
    return won, last


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--rows", type=int, default=300)
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
