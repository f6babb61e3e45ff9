"""Figure 1 (fig:pipeline): the pipeline from a refused row to its counterfactual."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tdce_reproduction.figures.style import BLUE, GREEN, ORANGE, PURPLE, hide_axes, new

TINTS = {BLUE: "#DCEBF5", ORANGE: "#FCF0D9", GREEN: "#D9F0EA", PURPLE: "#F8EAF1"}


def draw(table: pd.DataFrame) -> Figure:
    """Left to right: the row, its noisy copy, the loop of denoising and guided steps, the counterfactual."""
    figure = new(16, 6.4)
    axes = figure.subplots()
    hide_axes(axes)
    axes.set_xlim(0, 16)
    axes.set_ylim(0, 6.4)
    _box(axes, 0.0, 3.2, 2.5, BLUE, "A refused row", "numbers: standardised\ncategories: one-hot")
    _box(axes, 3.2, 3.2, 2.6, PURPLE, "Noise it to time t", "numbers: Gaussian\ncategories:\nGumbel-softmax")
    _box(axes, 6.5, 3.2, 2.6, ORANGE, "Denoise", "an estimate of\nthe clean row")
    _box(axes, 9.8, 3.2, 2.6, ORANGE, "Step to t − 1", "posterior of the step,\nmoved along\nthe gradient")
    _box(axes, 13.3, 3.2, 2.7, BLUE, "Counterfactual", "on the data's grid,\nfeasible,\ndecided by the model")
    _box(axes, 6.5, 0.0, 2.6, GREEN, "The model", "gradient of the log\nprobability of a yes")
    _box(axes, 9.8, 0.0, 2.6, PURPLE, "Immutable features", "the original, noised\nto the same time")
    for left, right in ((2.5, 3.2), (5.8, 6.5), (9.1, 9.8), (12.4, 13.3)):
        _arrow(axes, (left, 4.15), (right, 4.15))
    axes.text(12.85, 4.42, "t = 0", ha="center", va="center")
    _arrow(axes, (11.1, 5.1), (7.8, 5.1), bend=0.3)
    axes.text(9.45, 5.85, "again, down to t = 0", ha="center", va="center")
    _arrow(axes, (7.8, 3.2), (7.8, 1.9))
    _arrow(axes, (8.7, 1.9), (10.2, 3.2))
    _arrow(axes, (11.1, 1.9), (11.1, 3.2))
    axes.text(9.15, 2.75, "guides", ha="right", va="center")
    axes.text(11.25, 2.55, "blended in", ha="left", va="center")
    return figure


def _box(axes: Axes, x: float, y: float, width: float, colour: str, title: str, text: str, height: float = 1.9) -> None:
    axes.add_patch(FancyBboxPatch(
        (x + 0.1, y + 0.1), width - 0.2, height - 0.2, boxstyle="round,pad=0.08,rounding_size=0.15",
        edgecolor=colour, facecolor=TINTS[colour], linewidth=2,
    ))  # fmt: skip
    axes.text(x + width / 2, y + height - 0.38, title, ha="center", va="center", fontsize=15, weight="bold")
    axes.text(x + width / 2, y + (height - 0.5) / 2, text, ha="center", va="center")


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], bend: float = 0.0) -> None:
    axes.add_patch(FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=20, linewidth=2, color="0.3", shrinkA=1, shrinkB=1,
        connectionstyle=f"arc3,rad={bend}",
    ))  # fmt: skip
