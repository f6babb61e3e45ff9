"""Cost against realism: the trade-off of `search` as a line (dashed: without a wanted safety), other methods as points.

A point below and to the left of the line beats every position of the trade-off in these two metrics; the benchmark's
tables.md compares four metrics at once.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tdce._core import InputError
from tdce_reproduction.benchmark.contests import TITLES, UNRANKED, contests, ordered
from tdce_reproduction.benchmark.price import PRICE
from tdce_reproduction.benchmark.settings import ANY_YES_VARIANTS, BASELINES, OURS, SEARCH_VARIANTS
from tdce_reproduction.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW, new
from tdce_reproduction.figures.workspace import Workspace

COLUMNS = ["data", "masked", "method", *PRICE]
COSTS = {"gower": "Gower distance", "sparsity": "features changed"}
COLOURS = dict(zip((*BASELINES, "nice"), (VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK), strict=True))
MARKS = {"guided": "s", "guided_tuned": "D", "guided_literal": "^"}
MASKS = {"no": "nothing masked", "yes": "one feature masked"}


def measure(workspace: Workspace) -> pd.DataFrame:
    """Means over the seeds of the benchmark, for every method and position."""
    path = workspace.results / "benchmark.csv"
    if not path.exists():
        raise InputError(f"the figure 'frontier' needs {path}, which `tdce bench` writes")
    rows = pd.read_csv(path)
    lines = []
    for (data, masked), part in rows.groupby(["data", "masked"]):
        compared = contests(part, str(data), str(masked), PRICE)
        for method in ordered(part["method"]):
            if all(method in contest.figures for contest in compared):
                lines.append((data, masked, method, *(contest.figures[method].mean for contest in compared)))
    return pd.DataFrame(lines, columns=COLUMNS)


def draw(table: pd.DataFrame) -> Figure:
    """One data set: a row of panels per mask, a column per cost."""
    (data,) = table["data"].unique()
    masks = [masked for masked in MASKS if (table["masked"] == masked).any()]
    figure = new(14, 1.5 + 5 * len(masks))
    panels = figure.subplots(len(masks), len(COSTS), sharex="col", squeeze=False)
    for row, masked in zip(panels, masks, strict=True):
        part = table[table["masked"] == masked].set_index("method")
        for axes, cost in zip(row, COSTS, strict=True):
            _panel(axes, part, cost)
        row[0].set_title(MASKS[masked], loc="left")
        row[0].set_ylabel("distance to held-out rows")
    for axes, label in zip(panels[-1], COSTS.values(), strict=True):
        axes.set_xlabel(label)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center",
                  title=f"{TITLES[str(data)]}\n+: refined, hollow")  # fmt: skip
    return figure


def _panel(axes: Axes, part: pd.DataFrame, cost: str) -> None:
    for variants, style, label in ((SEARCH_VARIANTS, "-", "closeness 0 to 1"), (ANY_YES_VARIANTS, "--", "any yes")):
        line = part.loc[[name for name in variants if name in part.index]]
        axes.plot(line[cost], line["held_out_distance"], style, color=BLUE, label=f"{OURS}, {label}", zorder=1)
    for method in part.index.difference([*SEARCH_VARIANTS, *ANY_YES_VARIANTS, "matrix_products"], sort=False):
        name, refined = method.removesuffix("+"), method.endswith("+")
        colour = BLUE if name in (OURS, UNRANKED) else COLOURS.get(name, "0.4")
        mark = "*" if name == OURS else "P" if name == UNRANKED else MARKS.get(name, "o")
        axes.plot(part.loc[method, cost], part.loc[method, "held_out_distance"], color=colour, marker=mark,
                  markersize=9, markerfacecolor="none" if refined else colour, linestyle="", label=method)  # fmt: skip
    axes.tick_params(pad=8)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
