"""Choose each baseline's setting for each data set on validation rows. Prints the table of docs/baselines.md.

    TDCE_DATA=... python benchmarks/tune.py [--data lcd,gmc] [--methods wachter,revise]

The same rule and budget for all: five settings per method, seed 0, 200 refused validation rows, nothing masked. Among
the settings whose validity is within 0.05 of the method's best, the one with the lowest sum of ranks over l2,
instability, js, im1 and im2 is chosen. `guided` is tuned by benchmarks/guided_settings.py; `guided_literal` and
`search` are not.
"""

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from tdce.methods import METHODS
from tdce_reproduction.benchmark.cell import Bench, Cell
from tdce_reproduction.benchmark.settings import PAPER_DATA

GRIDS: dict[str, list[dict[str, Any]]] = {
    "wachter": [{}, {"distance": "l2"}, {"loss": "squared"}, {"soften": 0.3}, {"rate": 0.05}],
    "cchvae": [{}, {"width": 0.25, "rings": 32}, {"candidates": 48}, {"latent": 4}, {"latent": 16}],
    "revise": [{}, {"proximity": 0.03}, {"proximity": 1.0}, {"latent": 4}, {"latent": 16}],
    "clue": [{}, {"proximity": 0.03}, {"proximity": 1.0}, {"pull": 3.0}, {"latent": 16}],
    "face": [{}, {"k": 10}, {"k": 100}, {"confidence": 0.5}, {"confidence": 0.75}],
    "counternet": [{}, {"lambda_2": 0.5}, {"lambda_3": 0.03}, {"lambda_3": 0.3}, {"sees_row": False}],
}
RANKED = ("l2", "instability", "js", "im1", "im2")
SLACK = 0.05


def main(data: list[str], methods: list[str], cache: Path) -> None:
    torch.set_num_threads(1)
    print("| data | method | setting | validity | " + " | ".join(RANKED) + " | |")
    print("|---" * (5 + len(RANKED)) + "|")
    for d in data:
        bench = Bench(d, 0, 200, cache, part="validation")
        for name in methods:
            found = []
            for setting in GRIDS[name]:
                measured = bench.measure(Cell(d, name, "no", 0), METHODS[name](**setting)).metrics
                found.append(measured)
            best = choose(pd.DataFrame(found))
            for i, (setting, values) in enumerate(zip(GRIDS[name], found, strict=True)):
                cells = [f"{values[m]:.2f}" for m in ("validity", *RANKED)]
                mark = "chosen" if i == best else ""
                text = ", ".join(f"{k}={v}" for k, v in setting.items()) or "defaults"
                print(f"| {d} | {name} | {text} | {' | '.join(cells)} | {mark} |", flush=True)


def choose(found: pd.DataFrame) -> int:
    """The position of the setting that the rule chooses."""
    able = found[found["validity"] >= found["validity"].max() - SLACK]
    ranks = able[list(RANKED)].round(3).rank(method="min").sum(axis=1)
    return int(ranks.idxmin())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(PAPER_DATA))
    parser.add_argument("--methods", default=",".join(GRIDS))
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    arguments = parser.parse_args()
    main(arguments.data.split(","), arguments.methods.split(","), arguments.cache)
