"""Figure 3 (fig:kl_bound): divergence of the Gumbel-softmax distribution from its approximation by temperature."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tdce_reproduction import theory
from tdce_reproduction.figures.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, new
from tdce_reproduction.figures.workspace import Workspace

PI = (0.2, 0.3, 0.5)
TAUS = tuple(np.round(np.geomspace(0.1, 5, 40), 4).tolist())
DRAWS = 200_000


def measure(workspace: Workspace) -> pd.DataFrame:
    """One line per temperature: the divergence, its standard error, and every pair of bounds."""
    pi, lines = np.array(PI), []
    for tau in TAUS:
        log_x_min = float(theory.draws(pi, tau, DRAWS).min())  # the x_min of the paper's bounds
        kl = theory.divergence(pi, tau, DRAWS)
        pairs = {
            "printed": theory.printed_bounds(len(pi), tau, log_x_min),
            "supplement": theory.supplement_bounds(len(pi), tau, log_x_min),
            "corrected": theory.corrected_bounds(pi, tau, log_x_min),
            "free": theory.free_bounds(pi, tau),
            "tight": theory.tight_bounds(pi, tau),
        }
        line = {"tau": tau, "kl": kl.value, "error": kl.error, "log_x_min": log_x_min}
        lines.append(line | {f"{name}_{side}": getattr(b, side) for name, b in pairs.items() for side in b._fields})
    return pd.DataFrame(lines)


def draw(table: pd.DataFrame) -> Figure:
    """Left: the paper's bounds and the corrected ones. Right: those without x_min, on a separate scale."""
    figure = new(13, 6)
    left, right = figure.subplots(1, 2)
    tau = table["tau"]
    for axes in (left, right):
        axes.plot(tau, table["kl"], color=BLACK, linewidth=3, label="KL divergence", zorder=3)
        axes.axhline(0, color="0.8", linewidth=1, zorder=0)
        axes.set_xscale("log")
        axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
        axes.set_xlabel("temperature τ")
        axes.set_ylabel("nats")
    left.plot(tau, table["printed_upper"], color=VERMILION, label="main text's upper bound (false)")
    left.plot(tau, table["supplement_upper"], color=ORANGE, linestyle="--", label="supplement's upper bound")
    left.plot(tau, table["supplement_lower"], color=PURPLE, linestyle="--", label="printed lower bound")
    for side, label in (("upper", "corrected bounds"), ("lower", None)):
        left.plot(tau, table[f"corrected_{side}"], color=BLUE, linestyle=":", linewidth=3, label=label)
    left.set_yscale("asinh", linear_width=1)
    left.set_yticks([-1000, -100, -10, -1, 0, 1, 10, 100, 1000])
    left.set_yticklabels(["−1,000", "−100", "−10", "−1", "0", "1", "10", "100", "1,000"])
    left.set_ylim(-1500, 60_000)
    left.set_title(r"The paper's bounds, with its $x_{\min}$", loc="left")
    right.fill_between(tau, table["free_lower"], table["free_upper"], color=BLUE, alpha=0.15, linewidth=0,
                       label=r"bounds without $x_{\min}$")  # fmt: skip
    right.fill_between(tau, table["tight_lower"], table["tight_upper"], color=GREEN, alpha=0.45, linewidth=0,
                       label="tightened")  # fmt: skip
    right.plot(tau, table["printed_upper"], color=VERMILION, label="main text's upper bound (false)")
    right.set_ylim(-4, 14)
    right.set_title(r"Bounds without $x_{\min}$", loc="left")
    for axes in (left, right):
        axes.minorticks_off()
        axes.legend(loc="upper right", fontsize=13)
    return figure
