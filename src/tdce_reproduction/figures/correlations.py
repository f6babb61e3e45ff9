"""Figure 4 (fig:qual_plot): whether counterfactuals have the correlations and category shares of the target class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure, SubFigure

from tdce._core import Floats, InputError, same
from tdce.methods import METHODS
from tdce.report import spoken_name
from tdce.schema import Categorical, Numeric, Schema
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.contests import ORDER
from tdce_reproduction.benchmark.settings import PRESETS, published_table, tuned_method
from tdce_reproduction.figures.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW, new
from tdce_reproduction.figures.workspace import Workspace
from tdce_reproduction.parallel import stream

SHOWN = tuple(method for method in ORDER if method in METHODS and method != "guided_literal")
BESIDE = ("guided_tuned",)  # measured for the claims, not drawn
REAL, REFUSED, TARGET = "real rows", "refused rows", "target class"
SHORT = {
    "debt_to_income": "debt ratio", "loan_amount": "amount", "interest_rate": "rate", "annual_income": "income",
    "last_fico_score": "FICO",
}  # fmt: skip
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, YELLOW)  # of categories
COLUMNS = ["data", "rows", "seed", "masked", "method", "kind", "a", "b", "value"]

Lines = list[dict[str, Any]]


def todo(workspace: Workspace) -> list[int]:
    """The seeds that are missing from the earlier data."""
    done = set(workspace.earlier("correlations", COLUMNS)["seed"])
    return [seed for seed in range(workspace.seeds) if seed not in done]


def measure(workspace: Workspace) -> pd.DataFrame:
    """For each seed, mask and method: one line per pair of numbers (the difference of their correlation from that in
    the target class), one per category of one feature (its share) and one per feature (the share of rows that change
    it).

    `real rows` are unseen rows of the target class, as many as there are queries.
    """
    table, jobs = workspace.earlier("correlations", COLUMNS), [(workspace.bench(seed),) for seed in todo(workspace)]
    parts: dict[int, Lines] = {}
    with workspace.progress.bar("correlations", len(jobs) * 2 * len((*SHOWN, *BESIDE))) as bar:
        for seed, masked, method, lines in stream(measure_jobs, jobs, workspace.workers):
            parts[seed] = parts.get(seed, []) + lines
            if (masked, method) == ("yes", (*SHOWN, *BESIDE)[-1]):  # a seed is saved when it is complete
                table = workspace.append(table, parts[seed])
                workspace.save("correlations", table)
            bar.advance(f"seed {seed}, {method}, masked {masked}")
    return table


def measure_jobs(bench: Bench) -> Iterator[tuple[int, str, str, Lines]]:
    """Yield seed, mask, method and lines, one method after another, on one thread."""
    torch.set_num_threads(1)
    encoder, label = bench.fitted.encoder, bench.data.label
    target = bench.fitted.raw[(bench.fitted.y == bench.target).numpy()]
    unseen = bench.data.part("test")
    real = unseen[unseen[label] == bench.data.favourable].head(len(bench.queries))
    beside = {REAL: encoder.read(real), REFUSED: encoder.read(bench.queries), TARGET: target}
    for masked in ("no", "yes"):
        key = {"seed": bench.seed, "masked": masked}
        lines = [line for name, raw in beside.items() for line in _lines(bench, key | {"method": name}, raw, target)]
        for method in (*SHOWN, *BESIDE):
            fitted_method = tuned_method(method, bench.name).fit(bench.task(masked))
            explanation, feasible = bench.explanation(fitted_method, masked, bench.queries)
            searched = explanation.status[:, 0] != "already"
            raw, own = explanation.raw[searched, 0], feasible.own[searched]
            lines += _lines(bench, key | {"method": method}, raw, target)
            yield bench.seed, masked, method, lines + _change_lines(bench, key | {"method": method}, raw, own)
            lines = []


def _lines(bench: Bench, key: dict[str, Any], raw: Floats, target: Floats) -> Lines:
    schema = bench.fitted.encoder.schema
    numbers = [i for i, f in enumerate(schema) if isinstance(f, Numeric)]
    gap = np.abs(correlation(raw[:, numbers]) - correlation(target[:, numbers]))
    names = [str(schema.names[i]) for i in numbers]
    feature = shown_feature(schema, bench.data.mask)
    values = raw[:, schema.names.index(feature.name)]
    return [
        key | {"kind": "correlation", "a": a, "b": b, "value": gap[i, j]}
        for i, a in enumerate(names)
        for j, b in enumerate(names)
    ] + [
        key | {"kind": "share", "a": str(feature.name), "b": str(c), "value": float((values == k).mean())}
        for k, c in enumerate(feature.categories)
    ]


def _change_lines(bench: Bench, key: dict[str, Any], raw: Floats, own: Floats) -> Lines:
    """The share of rows that change each feature."""
    share = (~same(raw, own)).mean(axis=0)
    names = bench.fitted.encoder.schema.names
    return [key | {"kind": "changed", "a": str(n), "b": "", "value": v} for n, v in zip(names, share, strict=True)]


def shown_feature(schema: Schema, mask: Any) -> Categorical:
    """The feature whose shares are shown: the masked one if it is categorical, else the first categorical one."""
    categorical = [f for f in schema if isinstance(f, Categorical)]
    if not categorical:
        raise InputError("correlations needs a data set with a categorical feature; choose another one with --data")
    return next((f for f in categorical if f.name == mask), categorical[0])


def correlation(raw: Floats) -> Floats:
    """(n, features) -> Pearson's coefficients; a missing value counts as the mean, a constant feature correlates 0."""
    centred = np.nan_to_num(raw - np.nanmean(raw, axis=0))
    length = np.sqrt((centred**2).sum(axis=0))
    unit = centred / np.where(length > 0, length, 1.0)
    coefficients = np.asarray(unit.T @ unit)
    np.fill_diagonal(coefficients, 1.0)
    return coefficients


def draw(table: pd.DataFrame) -> Figure:
    """Matrices without a mask, bars of the categories, matrices with a mask; means over the seeds."""
    figure = new(15, 20)
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1, 0.5, 1], squeeze=False)[:, 0]
    means = table.groupby(["kind", "masked", "method", "a", "b"], sort=False)["value"].mean().reset_index()
    gaps = means[means["kind"] == "correlation"]
    most = float(gaps.loc[~gaps["method"].isin([REFUSED, TARGET]), "value"].max())
    _matrices(top, gaps[gaps["masked"] == "no"], most, "Nothing masked")
    _bars(middle, means[means["kind"] == "share"])
    data = str(table["data"].iloc[0])
    mask = published_table(data).presets[PRESETS[data]].mask
    _matrices(bottom, gaps[gaps["masked"] == "yes"], most, f"{spoken_name(mask).capitalize()} masked")
    return figure


def _matrices(figure: SubFigure, gaps: pd.DataFrame, most: float, title: str) -> None:
    """One matrix per method, and one of real rows; darker is further from the target class."""
    figure.suptitle(f"{title}: difference of correlations from the target class", x=0.01, ha="left", fontsize=17)
    panels = figure.subplots(2, 5)
    names = list(dict.fromkeys(gaps["a"]))
    short = [SHORT.get(name, spoken_name(name)) for name in names]
    image = None
    shown = _present(gaps, (*SHOWN, REAL))
    for axes in panels.flat[len(shown) :]:
        axes.set_axis_off()
    for axes, method in zip(panels.flat, shown, strict=False):
        part = gaps[gaps["method"] == method].pivot(index="a", columns="b", values="value").loc[names, names]
        image = axes.imshow(part.to_numpy(), cmap="Blues", vmin=0, vmax=most)
        off = part.to_numpy()[~np.eye(len(names), dtype=bool)]
        axes.set_title(f"{method}\nmean {off.mean():.2f}", fontsize=15)
        axes.spines[:].set_visible(False)
        axes.set_xticks(range(len(names)), short, rotation=90)
        axes.set_yticks(range(len(names)), short)
        axes.tick_params(length=0, labelleft=axes in panels[:, 0], labelbottom=axes in panels[1])
    assert image is not None
    figure.colorbar(image, ax=panels, aspect=30, pad=0.02, label="absolute difference")


def _present(table: pd.DataFrame, methods: tuple[str, ...]) -> list[str]:
    """The methods that the table has; earlier data may have fewer."""
    have = set(table["method"])
    return [method for method in methods if method in have]


def _bars(figure: SubFigure, shares: pd.DataFrame) -> None:
    """The shares of the categories beside those of the target class; with a mask they cannot change."""
    shares = shares[shares["masked"] == "no"]
    target = shares[shares["method"] == TARGET].set_index("b")["value"]
    categories = target.nlargest(len(COLOURS)).index.sort_values()
    subset = f" (the {len(COLOURS)} most common)" if len(categories) < len(target) else ""
    title = f"Nothing masked: shares of {spoken_name(str(shares['a'].iloc[0]))}{subset}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=17)
    axes = figure.subplots()
    groups = _present(shares, (TARGET, *SHOWN, REFUSED))
    width = 0.8 / len(categories)
    for k, (category, colour) in enumerate(zip(categories, COLOURS, strict=False)):
        heights = shares[shares["b"] == category].set_index("method")["value"].reindex(groups)
        at = np.arange(len(groups)) + (k - (len(categories) - 1) / 2) * width
        axes.bar(at, heights, 0.94 * width, color=colour, label=category)
        axes.axhline(target[category], color=colour, linestyle=":", zorder=0)
    axes.set_xticks(range(len(groups)), [re.sub("[ _]", "\n", g) for g in groups])
    axes.set_ylabel("share of rows")
    axes.set_ylim(0, 1)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), title="dotted: the\ntarget class")
