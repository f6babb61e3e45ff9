"""The trade-off: proximity and plausibility of the answers at each value of closeness.

    TDCE_DATA=... python benchmarks/closeness.py [--data lcd,gmc,adult,law] [--rows 300]

`search` with its defaults except for the closeness, seed 0, refused validation rows, nothing immutable. Writes
results/closeness.csv and results/figures/closeness.png and .svg, and prints a table.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch
from matplotlib.figure import Figure

from tdce.methods import DiffusionSearch
from tdce_reproduction.benchmark.cell import Bench, Cell
from tdce_reproduction.benchmark.settings import PAPER_DATA
from tdce_reproduction.benchmark.summary import TITLES
from tdce_reproduction.figures.style import BLUE, GREEN, PURPLE, VERMILION, new, save, styled

CLOSENESS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SHOWN = {
    "sparsity": "features changed",
    "gower": "Gower distance",
    "held_out_distance": "distance to held-out rows of the class",
    "plausibility": "plausibility",
}
LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"))


def measure(data: list[str], rows: int, cache: Path) -> pd.DataFrame:
    lines = []
    for name in data:
        bench = Bench(name, 0, rows, cache, part="validation")
        for closeness in CLOSENESS:
            values = bench.measure(Cell(name, "search", "no", 0), DiffusionSearch(closeness=closeness)).metrics
            lines.append({"data": name, "closeness": closeness} | {m: values[m] for m in (*SHOWN, "validity")})
    return pd.DataFrame(lines)


def draw(table: pd.DataFrame) -> Figure:
    figure = new(13, 9)
    panels = figure.subplots(2, 2, sharex=True)
    for panel, (metric, title) in zip(panels.flat, SHOWN.items(), strict=True):
        for (name, part), (colour, mark) in zip(table.groupby("data", sort=False), LOOKS, strict=False):
            panel.plot(part["closeness"], part[metric], color=colour, marker=mark, label=TITLES[str(name)])
        panel.set_title(title, loc="left")
        panel.set_ylim(bottom=0)
    for panel in panels[1]:
        panel.set_xlabel("closeness: 0 most plausible, 1 nearest")
    panels[0, 0].legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(PAPER_DATA))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = measure(arguments.data.split(","), arguments.rows, arguments.out / "fitted")
    table.to_csv(arguments.out / "closeness.csv", index=False)
    (arguments.out / "figures").mkdir(exist_ok=True)
    with styled():
        save(draw(table), arguments.out / "figures", "closeness")
    print("| data | closeness | " + " | ".join((*SHOWN, "validity")) + " |\n" + "|---" * (3 + len(SHOWN)) + "|")
    for line in table[table["closeness"].isin((0.0, 0.25, 0.5, 0.7, 0.9, 1.0))].itertuples():
        cells = (f"{getattr(line, m):.2f}" for m in (*SHOWN, "validity"))
        print(f"| {line.data} | {line.closeness:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
