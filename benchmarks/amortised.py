"""Amortised answers beside the search that they were learned from, and beside a simple baseline.

    python benchmarks/amortised.py [--data adult,…] [--seeds 3] [--rows 2000] [--cache FOLDER] [--out FILE]
    python benchmarks/amortised.py --table

Refused test rows, nothing masked, default settings. The baseline, `nearest answers`, copies the changes of the nearest
synthetic rows that the search has answered; it makes as many proposals in the same rounds as the network and is refined
alike. For both, rows without a valid answer fall back to the search. `ms` is processor time per row of a complete
`explain` on one thread. Results are written as they are measured; those in the file are not measured again.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce._core import Progress, find_nearest
from tdce.explainer import TrainingPlans
from tdce.explainer.amortise import search_answers
from tdce.methods import DiffusionSearch, Proposals, Proposer, Task, amortised_pass, driver
from tdce.schema import FeasibleSet
from tdce_reproduction.benchmark.cell import Bench

SHOWN = ("validity", "sparsity", "gower", "held_out_distance", "two_sample", "coherence", "plausibility")
COLUMNS = ["data", "variant", "seed", "metric", "value"]
VARIANTS = ("search", "amortised", "nearest answers")
DATA = ("adult", "lcd", "gmc", "law", "german")
COLUMNS_SHOWN = {  # the title of each metric, its decimals, and whether its deviation is shown
    "validity": ("validity", 2, False), "sparsity": ("features", 2, True), "gower": ("Gower", 3, True),
    "held_out_distance": ("distance", 2, True), "two_sample": ("two-sample", 2, True),
    "coherence": ("coherence", 3, True), "plausibility": ("plausibility", 2, True),
    "searched": ("left to the search", 3, False), "model_rows": ("model rows", 0, False),
    "faster": ("times as fast", 1, True),
}  # fmt: skip


@dataclass(frozen=True)
class Nearest(Proposals):
    """In place of a network: the nearest answered rows."""

    x: Tensor = None
    x_cf: Tensor = None

    def rank_sets(self, x: Tensor, free: Tensor, count: int) -> Tensor:
        return find_nearest(x, self.x, count)

    def propose(self, x: Tensor, sets: Tensor, scale: float) -> Tensor:
        space, own, answer = self.network.space, self.x[sets], self.x_cf[sets]
        values = space.join(space.split(x + scale * (answer - own))[0], space.split(answer)[1])
        return torch.where(space.moved(own, answer)[:, space.owner], values, x)


def measure(bench: Bench, task: Task) -> dict[str, float]:
    feasible = FeasibleSet.of(bench.fitted.encoder, bench.queries)
    method, question = DiffusionSearch().fit(task), bench.question()
    few = min(64, len(feasible.own))
    driver.explain(method, feasible.take(np.arange(few)), bench.goals(few), question)  # a warm-up
    searched_rows, original = [], driver.drive

    def drive(searches, blocks, oracle):
        searched_rows.append(sum(block.rows or len(block.goals) for block in blocks))
        return original(searches, blocks, oracle)

    driver.drive = drive
    try:
        began, rows = time.process_time(), task.oracle.usage.rows
        explanation = driver.explain(method, feasible, bench.goals(len(feasible.own)), question, attribute=True)
        seconds = time.process_time() - began
    finally:
        driver.drive = original
    values = bench.reference.measure(feasible, explanation, feasible.own, explanation)
    searched = (sum(searched_rows) - len(feasible.own)) / len(feasible.own) if task.proposals is not None else 1.0
    return {key: values.get(key, np.nan) for key in SHOWN} | {
        "searched": searched,
        "model_rows": (task.oracle.usage.rows - rows) / len(feasible.own),
        "ms": 1000 * seconds / len(feasible.own),
    }


def tasks(bench: Bench):
    plain = bench.task("no")
    yield "search", replace(plain, proposals=None, shortcut=None)
    goal = bench.goals(1).goal(0)
    fitted = replace(bench.fitted, favourable=bench.fitted.classes[bench.target])
    began = time.process_time()
    x, x_cf = search_answers(fitted, DiffusionSearch(), bench.seed, TrainingPlans(), Progress("silent"))
    middle = time.process_time()
    network = Proposer.fit(
        plain.space, x, x_cf, DiffusionSearch().closeness, bench.seed, Progress("silent"), TrainingPlans().amortised
    )
    print(f"{bench.name}: {len(x)} synthetic rows answered in {middle - began:.0f} s, learned in "
          f"{time.process_time() - middle:.0f} s, {len(network.sets)} sets", flush=True)  # fmt: skip
    for variant, proposals in (
        ("amortised", Proposals(network, goal, {})),
        ("nearest answers", Nearest(network, goal, {}, x, x_cf)),
    ):
        yield variant, replace(bench.task("no"), proposals=proposals, shortcut=amortised_pass)


def table(rows: pd.DataFrame) -> None:
    wide = rows.pivot_table(index=["data", "variant", "seed"], columns="metric", values="value", dropna=False)
    long = wide["ms"].xs("search", level="variant")
    wide["faster"] = (1 / wide["ms"]).mul(long, axis=0)
    print(f"| data | by | {' | '.join(name for name, *_ in COLUMNS_SHOWN.values())} |")
    print("|---" * (len(COLUMNS_SHOWN) + 2) + "|")
    for data in DATA:
        for variant in VARIANTS if data in set(rows["data"]) else ():
            some = wide.loc[(data, variant)]
            mean, deviation = some.mean(), some.std()
            cells = [
                f"{mean[c]:.{digits}f}" + (f" ± {deviation[c]:.{digits}f}" if spread and len(some) > 1 else "")
                for c, (_, digits, spread) in COLUMNS_SHOWN.items()
            ]
            print(f"| {data} | {variant} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results/amortised.csv"))
    parser.add_argument("--table", action="store_true", help="print the results in the file and measure nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    there = pd.read_csv(arguments.out) if arguments.out.exists() else pd.DataFrame(columns=COLUMNS)
    if arguments.table:
        table(there)
        return
    if not arguments.out.exists():
        there.to_csv(arguments.out, index=False)
    done = set(zip(there.data, there.seed, strict=True))
    for data in arguments.data.split(","):
        for seed in range(arguments.seeds):
            if (data, seed) in done:
                continue
            bench = Bench(data, seed, arguments.rows, arguments.cache)
            found = [
                (data, variant, seed, metric, value)
                for variant, task in tasks(bench)
                for metric, value in measure(bench, task).items()
            ]
            pd.DataFrame(found, columns=COLUMNS).to_csv(arguments.out, mode="a", header=False, index=False)
    table(pd.read_csv(arguments.out))


if __name__ == "__main__":
    main()
