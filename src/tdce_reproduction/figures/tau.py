"""Figure 5 (fig:tau): the effect of the temperature of the relaxed categories on counterfactuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from matplotlib.figure import Figure

from tdce.methods import Guided
from tdce_reproduction.benchmark.cell import Bench, Cell
from tdce_reproduction.benchmark.contests import TITLES
from tdce_reproduction.benchmark.settings import tuned_method
from tdce_reproduction.figures.style import BLUE, ORANGE, VERMILION, new
from tdce_reproduction.figures.workspace import Workspace
from tdce_reproduction.parallel import stream

TAUS = (0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0)
METHODS = {
    "guided": "guided, argmax in Bayes' rule",
    "guided_soft": "guided, soft vector in Bayes' rule",
    "search": "search",
}
METRICS = {
    "im1": "IM1, lower is better",
    "im2": "IM2, lower is better",
    "js": "JS divergence (bits), lower is better",
    "validity": "validity (share of rows), higher is better",
}
COLUMNS = ["data", "rows", "seed", "tau", "method", "metric", "value"]
TAUS_PER_JOB = 3  # after these, a process ends to free its memory


def todo(workspace: Workspace) -> list[tuple[int, float]]:
    """The seeds and temperatures that are missing from the earlier data."""
    table = workspace.earlier("tau", COLUMNS)
    done = set(zip(table["seed"], table["tau"], strict=True))
    return [(seed, tau) for seed in range(workspace.seeds) for tau in TAUS if (seed, tau) not in done]


def measure(workspace: Workspace) -> pd.DataFrame:
    """One line per temperature, seed, method and metric. The diffusion model is retrained at each temperature, which
    holds at all times and in sampling; the classifier, the queries and the autoencoders stay the same."""
    table, missing, jobs = workspace.earlier("tau", COLUMNS), todo(workspace), []
    for seed in range(workspace.seeds):
        taus = [tau for s, tau in missing if s == seed]
        jobs += [(workspace.bench(seed), taus[i : i + TAUS_PER_JOB]) for i in range(0, len(taus), TAUS_PER_JOB)]
    with workspace.progress.bar("temperatures", len(missing)) as bar:
        for lines in stream(measure_jobs, jobs, workspace.workers):
            table = workspace.append(table, lines)
            workspace.save("tau", table)
            bar.advance(f"seed {lines[0]['seed']}, tau {lines[0]['tau']}")
    return table


def measure_jobs(bench: Bench, taus: list[float]) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines of one temperature after another, on one thread."""
    torch.set_num_threads(1)
    for tau in taus:
        task = replace(bench.task("no"), diffusion=bench.diffusion(tau))
        lines = []
        for method in METHODS:
            tuned = tuned_method(method.removesuffix("_soft"), bench.name)
            if isinstance(tuned, Guided):  # samples at the temperature that the diffusion model was trained at
                tuned = replace(tuned, tau=None, soft_posterior=method == "guided_soft")
            values = bench.measure(Cell(bench.name, method, "no", bench.seed), tuned, task).metrics
            key = {"seed": bench.seed, "tau": tau, "method": method}
            lines += [key | {"metric": metric, "value": values[metric]} for metric in METRICS if metric in values]
        yield lines


def draw(table: pd.DataFrame) -> Figure:
    """One panel per metric: means over the seeds, with a band from the lowest to the highest seed."""
    figure = new(13, 9)
    panels = figure.subplots(2, 2, sharex=True)
    looks = zip(METHODS.items(), ((VERMILION, "s"), (ORANGE, "^"), (BLUE, "o")), strict=True)
    for (method, label), (colour, mark) in looks:
        part = table[table["method"] == method]
        for axes, (metric, title) in zip(panels.flat, METRICS.items(), strict=True):
            values = part[part["metric"] == metric].groupby("tau")["value"]
            mean = values.mean()
            axes.plot(mean.index, mean, color=colour, marker=mark, label=label)
            axes.fill_between(mean.index, values.min(), values.max(), color=colour, alpha=0.2, linewidth=0)
            axes.set_title(title, loc="left")
    for axes in panels.flat:
        axes.set_ylim(bottom=0)
        axes.set_xscale("log")
        axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
        axes.minorticks_off()
    panels[1, 1].set_ylim(0, 1.03)
    for axes in panels[1]:
        axes.set_xlabel("temperature τ, in training and sampling")
    seeds = table["seed"].nunique()
    what = f"mean and range of {seeds} seeds" if seeds > 1 else "one seed"
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3,
                  title=f"{TITLES[str(table['data'].iloc[0])]}: {what}")  # fmt: skip
    return figure
