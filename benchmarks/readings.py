"""Algorithm 1 under several readings of what it leaves open. Prints a table of docs/paper.md.

    python benchmarks/readings.py --data german,adult,lcd --rows 200 --cache results/fitted

For each data set: the fit of the benchmark (from the cache if it is there), at most `--rows` test rows that the
classifier refuses, nothing immutable, one seed. `lcd`, `gmc` and `law` need TDCE_DATA.
"""

import argparse
from pathlib import Path

import torch

from tdce.methods import GUIDED, GUIDED_LITERAL, Guided, GuidedLiteral
from tdce_reproduction.benchmark.cell import Bench, Cell

READINGS = {
    "start 0.5, distance term, lambda 1, Sigma = variance": Guided(sigma="variance", cat_scale="lambda"),
    "... and Sigma = deviation": Guided(cat_scale="lambda"),
    "... and norm of pi": Guided(cat_scale="norm_pi"),
    "... norm of log pi instead (`guided`)": GUIDED,
    "start T, no distance term, lambda 1, Sigma = variance": GuidedLiteral(cat_scale="lambda", loop_noise=True),
    "... and norm of log pi, no noise in the loop (`guided_literal`)": GUIDED_LITERAL,
    "... and g_cat at the noisy vector, soft posterior": GuidedLiteral(cat_gradient="noisy", soft_posterior=True),
    "... and every one of the T steps": GuidedLiteral(cat_gradient="noisy", soft_posterior=True, steps=None),
}
METRICS = ("validity", "l2", "im1", "im1_median", "js", "instability", "diversity")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="german,adult,lcd")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | rows | reading | " + " | ".join(METRICS) + " |\n" + "|---" * (3 + len(METRICS)) + "|")
    for name in asked.data.split(","):
        bench = Bench(name, asked.seed, asked.rows, asked.cache)
        for title, method in READINGS.items():
            found = bench.measure(Cell(name, "guided", "no", asked.seed), method).metrics
            shown = " | ".join(f"{found[metric]:.3f}" for metric in METRICS)
            print(f"| {name} | {len(bench.queries)} | {title} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
