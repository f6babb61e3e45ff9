"""The trade-off: what answers cost and how plausible they are at each closeness, and which one is the default.

    TDCE_DATA=... python benchmarks/closeness.py [--data lcd,gmc,adult,law,german] [--seeds 2] [--rows 150]
    python benchmarks/closeness.py --docs          writes the table of docs/method.md from the results

`search` with its defaults except for the closeness, refused validation rows, nothing immutable; for comparison `nice`,
the unchanged rows (`unchanged`), and closeness 1 without a wanted safety (`1, safety 0`), as for `nice`. `cost` is the
distance that the method minimises. `back`: with the settings requested one at a time, the share of people whose
distance rises by more than 1 % from some setting to the next, nearer one.

The rule: the default is the largest closeness, in steps of 0.05, at which the answers on every table are no further
from held-out rows of the wanted class than the refused rows are, or by 1 % at most.
Writes results/closeness.csv and results/figures/closeness.png and .svg.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from matplotlib.figure import Figure

from tdce import metrics
from tdce.methods import METHODS, DiffusionSearch, Explanation, Method, explain
from tdce.schema import FeasibleSet
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.contests import TITLES
from tdce_reproduction.benchmark.settings import PAPER_DATA
from tdce_reproduction.figures.style import BLUE, GREEN, PURPLE, VERMILION, new, save, styled

CLOSENESS = (0.0, 0.25, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
SHOWN = {
    "sparsity": "features changed",
    "gower": "Gower distance",
    "held_out_distance": "distance to held-out rows of the class",
    "plausibility": "plausibility",
}
MEASURED = ("cost", *SHOWN, "implausible", "safety", "validity")
RISE = 1.01  # of a distance, from which on it counts
IMPLAUSIBLE = 0.02
LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"), ("black", "v"))


def answer(bench: Bench, method: Method, safety: float | None = None) -> tuple[Explanation, FeasibleSet]:
    feasible = FeasibleSet.of(bench.fitted.encoder, bench.queries)
    question = replace(bench.question(), safety=safety)
    return explain(method.fit(bench.task("no")), feasible, bench.goals(len(bench.queries)), question), feasible


def rate(bench: Bench, found: Explanation, feasible: FeasibleSet) -> dict[str, float]:
    values = bench.reference.measure(feasible, found, feasible.own, found)
    valid = found.status[:, 0] == "valid"
    values |= {
        "implausible": float((found.plausibility[valid, 0] < IMPLAUSIBLE).mean()),
        "safety": float(found.safety[valid, 0].mean()),
        "cost": float(found.distance[valid, 0].mean()),
    }
    return {name: values[name] for name in MEASURED}


def unchanged(bench: Bench) -> dict[str, float]:
    real = bench.reference.held[bench.reference.held_target]
    own = bench.reference.whole(bench.fitted.encoder.read(bench.queries))
    return {"held_out_distance": metrics.held_out_distance(own, bench.reference.whole(real))}


def measure_all(data: list[str], seeds: int, rows: int, cache: Path) -> pd.DataFrame:
    lines = []
    for name in data:
        for seed in range(seeds):
            bench = Bench(name, seed, rows, cache, part="validation")
            figures = {"unchanged": unchanged(bench), "nice": rate(bench, *answer(bench, METHODS["nice"]()))}
            answers = {f"{c:g}": answer(bench, DiffusionSearch(closeness=c)) for c in CLOSENESS}
            answers["1, safety 0"] = answer(bench, DiffusionSearch(closeness=1.0), 0.0)
            figures |= {asked: rate(bench, *each) for asked, each in answers.items()}
            distance = np.stack([answers[f"{c:g}"][0].distance[:, 0] for c in CLOSENESS])
            figures["one at a time"] = {"back": float((distance[1:] > RISE * distance[:-1]).any(axis=0).mean())}
            lines += [{"data": name, "seed": seed, "asked": asked} | values for asked, values in figures.items()]
            print(name, seed, "measured", flush=True)
    return pd.DataFrame(lines)


def choose(table: pd.DataFrame) -> float:
    """The default, by the rule."""
    distance = table.groupby(["data", "asked"])["held_out_distance"].mean().unstack()
    near = distance.div(distance["unchanged"], axis=0).max() <= RISE
    return max(c for c in CLOSENESS if near[f"{c:g}"])


def markdown(table: pd.DataFrame) -> str:
    columns = (*MEASURED, "back")
    lines = ["| data | asked | " + " | ".join(columns) + " |", "|---" * (2 + len(columns)) + "|"]
    for (data, asked), part in table.groupby(["data", "asked"], sort=False):
        cells = ("" if part[m].isna().all() else f"{part[m].mean():.3f}" for m in columns)
        lines.append(f"| {data} | {asked} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, closeness=markdown(pd.read_csv(results, dtype={"asked": str})))


def draw(table: pd.DataFrame) -> Figure:
    figure = new(13, 9)
    panels = figure.subplots(2, 2, sharex=True)
    table = table[table["asked"].isin([f"{c:g}" for c in CLOSENESS])]
    table = table.assign(closeness=table["asked"].astype(float))
    for panel, (metric, title) in zip(panels.flat, SHOWN.items(), strict=True):
        for (name, part), (colour, mark) in zip(table.groupby("data", sort=False), LOOKS, strict=False):
            mean = part.groupby("closeness")[metric].mean()
            panel.plot(mean.index, mean, color=colour, marker=mark, label=TITLES[str(name)])
        panel.set_title(title, loc="left")
        panel.set_ylim(bottom=0)
    for panel in panels[1]:
        panel.set_xlabel("closeness: 0 most plausible, 1 nearest")
    panels[0, 0].legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join((*PAPER_DATA, "german")))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out / "closeness.csv", Path("docs/method.md"))
        return
    torch.set_num_threads(1)
    table = measure_all(asked.data.split(","), asked.seeds, asked.rows, asked.cache)
    table.to_csv(asked.out / "closeness.csv", index=False)
    (asked.out / "figures").mkdir(exist_ok=True)
    with styled():
        save(draw(table), asked.out / "figures", "closeness")
    print(markdown(table))
    print(f"By the rule, the default is {choose(table):g}")


if __name__ == "__main__":
    main()
