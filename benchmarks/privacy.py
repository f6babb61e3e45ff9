"""Distances of synthetic rows and answers to training rows, and membership attacks. Prints tables of docs/privacy.md.

    TDCE_DATA=... python benchmarks/privacy.py [--data lcd,gmc,adult,law,german] [--cache results/fitted] [--rows 300]

Seed 0. Answers are the valid ones of `search` with its defaults to refused test rows, nothing immutable. Held-out rows
are those of the validation and test parts, from which nothing was learned.
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from energy import energy
from sklearn.metrics import roc_auc_score
from torch import Tensor

from tdce._core import Floats
from tdce.methods import DiffusionSearch, Status
from tdce.metrics import nearest_rows
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.settings import DATA

MAX_ROWS = 2_000  # on each side of an attack, and for distances
ALIKE = 0.1  # standard deviations
DRAWS = 4  # of noise at each level, for the attacks by energy
WORST_LEVEL = (0.2,)  # of the levels tried on german and law, the one at which the attack succeeds best


def distance_lines(bench: Bench) -> list[str]:
    """The lines of one data set in the first table."""
    fitted, whole, lines = bench.fitted, bench.reference.whole, []
    explanation, _ = bench.explanation(DiffusionSearch().fit(bench.task("no")), "no", bench.queries)
    valid = explanation.status[:, 0] == Status.VALID
    rows, times = whole(fitted.raw), Counter(keys(fitted.raw))
    for title, raw in (
        ("synthetic rows", fitted.synthetic),
        ("answers", explanation.raw[valid, 0]),
        ("held-out rows", held_out(bench)[0]),
    ):
        points = whole(raw[:MAX_ROWS])
        near = nearest_rows(points, rows)[0].numpy()
        count = np.array([times[key] for key in keys(raw)])
        shares = (share(each) for each in (alike(points, rows), count > 0, count == 1))
        cells = (f"{np.median(near):.3f}", f"{np.quantile(near, 0.05):.3f}", *shares)
        lines.append(f"| {bench.name} | {title} | {len(raw):,} | {' | '.join(cells)} |")
    return lines


def attack_line(bench: Bench) -> str:
    """The line of one data set in the second table."""
    fitted, whole = bench.fitted, bench.reference.whole
    held, y_held = held_out(bench)
    size = min(MAX_ROWS, len(held), len(fitted.raw))
    own, other = (
        torch.from_numpy(np.random.default_rng(0).permutation(rows)[:size]) for rows in (len(fitted.raw), len(held))
    )
    raw = np.concatenate([fitted.raw[own.numpy()], held[other.numpy()]])
    y, member = torch.cat([fitted.y[own], y_held[other]]), np.repeat([1, 0], size)
    scores = (
        nearest_rows(whole(raw), whole(fitted.synthetic))[0][:, 0].numpy(),
        energy(fitted, raw, raw, y, draws=DRAWS),
        energy(fitted, raw, raw, y, WORST_LEVEL, DRAWS),
    )
    chance = 2 * np.sqrt((2 * size + 1) / (12 * size * size))  # two deviations of the AUC of a random guess
    cells = " | ".join(f"{roc_auc_score(member, -each):.3f}" for each in scores)
    return f"| {bench.name} | {len(fitted.raw):,} | {size:,} | {cells} | 0.5 ± {chance:.3f} |"


def held_out(bench: Bench) -> tuple[Floats, Tensor]:
    """Raw rows and their class numbers."""
    frame = pd.concat([bench.data.part("validation"), bench.data.part("test")])
    return bench.fitted.encoder.read(frame), torch.from_numpy(bench.fitted.class_numbers(frame))


def alike(points: Tensor, rows: Tensor) -> np.ndarray:
    """(n,) whether some row has the same categories and every number within a tenth of a deviation."""
    return torch.cat([torch.cdist(p, rows, p=torch.inf).amin(dim=1) <= ALIKE for p in torch.split(points, 256)]).numpy()


def keys(raw: Floats) -> list[bytes]:
    """The same bytes for equal rows; missing is a value."""
    return [row.tobytes() for row in np.nan_to_num(raw, nan=-np.inf) + 0.0]


def share(flags: np.ndarray) -> str:
    return f"{100 * flags.mean():.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--rows", type=int, default=300)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    benches = [Bench(name, 0, arguments.rows, arguments.cache) for name in arguments.data.split(",")]
    print(
        "| data | rows of | number | distance, median | 5 % quantile | alike | identical | identical to a unique one |"
    )
    print("|---" * 8 + "|")
    for bench in benches:
        print("\n".join(distance_lines(bench)), flush=True)
    attacks = ("the nearest synthetic row", "the energy", f"the energy at level {WORST_LEVEL[0]}")
    print("\n| data | training rows | on each side | " + " | ".join(f"by {each}" for each in attacks) + " | no leak |")
    print("|---" * 7 + "|")
    for bench in benches:
        print(attack_line(bench), flush=True)


if __name__ == "__main__":
    main()
