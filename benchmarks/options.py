"""Several options per row: whether they are valid, distinct, and change different features; for docs/method.md.

    TDCE_DATA=... python benchmarks/options.py [--data lcd,gmc,adult,law] [--n 3] [--rows 200]

`search` with its defaults, seed 0, refused validation rows, nothing immutable. For comparison: the answers of the same
method with one option for each of the seeds 0 to n - 1, that is, without the selection of different options.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tdce import metrics
from tdce.methods import DiffusionSearch, explain
from tdce.methods.selection import count_distinct
from tdce.schema import FeasibleSet
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.settings import PAPER_DATA


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(PAPER_DATA))
    parser.add_argument("--n", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | options from | valid | rows with all different | option_spread | features changed |")
    print("|---" * 6 + "|")
    for name in arguments.data.split(","):
        bench = Bench(name, 0, arguments.rows, arguments.cache, part="validation")
        method, feasible = DiffusionSearch().fit(bench.task("no")), FeasibleSet.of(bench.fitted.encoder, bench.queries)
        goals = bench.goals(len(bench.queries))
        several, single = (bench.question(options) for options in (arguments.n, 1))
        chosen = explain(method, feasible, goals, several)
        seeds = [explain(method, feasible, goals, replace(single, seed=seed)) for seed in range(arguments.n)]
        for title, raw, status in (
            (f"n={arguments.n}", chosen.raw, chosen.status),
            (
                f"{arguments.n} seeds",
                *(np.concatenate([getattr(s, k) for s in seeds], axis=1) for k in ("raw", "status")),
            ),
        ):
            whole = (count_distinct(raw) == arguments.n).mean()
            changed = np.mean([metrics.sparsity(feasible.own, raw[:, i]) for i in range(arguments.n)])
            spread = metrics.option_spread(feasible.own, raw)
            valid = (status == "valid").mean()
            print(f"| {name} | {title} | {valid:.3f} | {whole:.2f} | {spread:.2f} | {changed:.2f} |", flush=True)


if __name__ == "__main__":
    main()
