"""Figures for notebooks: matplotlib figures that display themselves, without pyplot and its global state."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tdce._core import Floats
from tdce.report.curve import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#767676"
STATUS_LOOKS = {
    "valid": (BLUE, "o"),
    "best_effort": (VERMILION, "X"),
    "already": (GREEN, "s"),
    "infeasible": (GREY, "D"),
}
MOST_NAMED_PEOPLE = 40  # with names; more people are drawn with thinner lines and without names
MOST_BARS = 24
PAPER: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}  # box behind a number
BURDEN_PANELS = (
    ("share", "with a way"),
    ("distance", "mean distance"),
    ("features", "mean features changed"),
    ("safety", "mean safety"),
)


class Picture(Figure):
    """A figure that notebooks show even if pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        with BytesIO() as file:
            self.savefig(file, format="png", bbox_inches="tight")
            return file.getvalue()


class PathStep(NamedTuple):
    """A change on the way from the row to the answer, and the score after it."""

    label: str
    change: str
    score: float


def waterfall_figure(
    before: float, steps: Sequence[PathStep], thresholds: Sequence[float], predicted: bool, title: str
) -> Figure:
    """Draw the way from the present score to the new one, change by change."""
    shown = steps[:MOST_BARS]
    figure = _new(8.6, 1.3 + 0.38 * (len(shown) + 2))
    axes = figure.add_subplot()
    scores = [before, *(step.score for step in shown)]
    last = steps[-1].score if steps else before
    for i in range(1, len(shown) + 1):
        gain = scores[i] - scores[i - 1]
        axes.barh(i, gain, left=scores[i - 1], color=BLUE if gain >= 0 else VERMILION, height=0.62)
        axes.plot([scores[i - 1]] * 2, [i - 1, i], color=GREY, linewidth=0.8, zorder=0)
        right = max(scores[i], scores[i - 1])
        axes.annotate(
            _signed(gain, predicted),
            (right, i),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox=PAPER,
        )
    axes.plot([scores[-1]] * 2, [len(shown), len(shown) + 1], color=GREY, linewidth=0.8, zorder=0)
    for y, score, colour in ((0, before, VERMILION), (len(shown) + 1, last, GREEN)):
        axes.plot(score, y, marker="o", color=colour, markersize=9)
        text = _score(score, predicted)
        axes.annotate(text, (score, y), (8, 0), textcoords="offset points", va="center", fontweight="bold", fontsize=9)
    _thresholds(axes, thresholds, vertical=True)
    names = ["now", *(f"{step.label}: {step.change}" for step in shown), "then"]
    if len(steps) > len(shown):
        names[-1] = f"then (after {len(steps) - len(shown)} more)"
    axes.set_yticks(range(len(names)), [_cut(name) for name in names])
    axes.invert_yaxis()
    _score_axis(axes.xaxis, predicted)
    _pad(axes, [*scores, last, *thresholds], predicted)
    axes.set_title(title, loc="left", fontsize=11)
    return figure


def people_figure(
    names: Sequence[str],
    before: Floats,  # (rows,) scores
    after: Floats,  # (rows,)
    status: NDArray[Any],  # (rows,)
    distance: Floats,  # (rows,)
    safety: Floats,  # (rows,)
    thresholds: Sequence[float],
    predicted: bool,
) -> Figure:
    """Draw everybody's score before and after, from lowest to highest, and how far and how safe each way is."""
    named = len(names) <= MOST_NAMED_PEOPLE
    figure = _new(11.0, min(9.0, max(3.4, 1.6 + 0.2 * len(names))))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    order = np.argsort(before, kind="stable")
    y = np.arange(len(order))
    left.hlines(y, before[order], after[order], color=GREY, linewidth=1.2 if named else 0.4, zorder=1)
    left.scatter(before[order], y, s=22 if named else 5, facecolors="white", edgecolors=GREY, zorder=2, label="now")
    for state, (colour, marker) in STATUS_LOOKS.items():
        at = np.flatnonzero(status[order] == state)
        if len(at):
            text = state.replace("_", " ")
            left.scatter(
                after[order][at], at, s=30 if named else 7, color=colour, marker=marker, zorder=3, label=f"then: {text}"
            )
            own = order[at]
            right.scatter(
                distance[own], safety[own], s=30, color=colour, marker=marker, alpha=0.75, linewidths=0, label=text
            )
    left.set_yticks(y if named else [], [_cut(names[i], 18) for i in order] if named else [])
    left.set_ylabel("" if named else f"{len(names):,} people")
    _thresholds(left, thresholds, vertical=True)
    _score_axis(left.xaxis, predicted)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=5, frameon=False, fontsize=9)
    left.set_title("Score now and then", loc="left", fontsize=11)
    right.set_xlabel("distance: how far the way is")
    right.set_ylabel("safety: would a model trained again agree?")
    right.set_xlim(left=0)
    right.set_ylim(0, 1.03)
    right.yaxis.set_major_formatter(_percent)
    right.set_title("How far, how safe", loc="left", fontsize=11)
    return figure


def curve_figure(curve: Curve, label: str, thresholds: Sequence[float], predicted: bool) -> Figure:
    """Draw the score along one feature, and where the decision flips."""
    if not isinstance(curve.values, np.ndarray):
        return _bars_figure(curve, list(curve.values), label, thresholds, predicted)
    figure = _new(7.2, 3.6)
    axes, values = figure.add_subplot(), curve.values
    axes.plot(values, curve.score, color=GREY, linewidth=1.2, linestyle=(0, (2, 2)))
    axes.plot(values, np.where(curve.allowed, curve.score, np.nan), color=BLUE, linewidth=2.2)
    low, high = axes.get_ylim()
    axes.fill_between(values, 0, 1, where=curve.met, color=GREEN, alpha=0.13, transform=axes.get_xaxis_transform())
    axes.set_ylim(low, high)
    _pad_y(axes, [*curve.score, *thresholds], predicted)
    _thresholds(axes, thresholds, vertical=False)
    for flip in curve.flips:
        axes.axvline(flip, color=GREEN, linewidth=1.2)
        place: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
            "va": "top",
            "fontsize": 9,
        }
        axes.annotate(f"{flip:,.6g}", (flip, 1), (3, -3), color="#00614a", **place)
    if curve.own >= 0:
        axes.plot(values[curve.own], curve.score[curve.own], marker="o", color=VERMILION, markersize=9, zorder=4)
        axes.annotate(
            "now", (values[curve.own], curve.score[curve.own]), (7, 7), textcoords="offset points", fontsize=9
        )
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}")
    _score_axis(axes.yaxis, predicted)
    said = "It flips at " + ", ".join(f"{flip:,.6g}" for flip in curve.flips) if curve.flips else "It never flips"
    dotted = "" if curve.allowed.all() else "; dotted: may not be proposed"
    axes.set_title(f"{said}; green: as wanted{dotted}", loc="left", fontsize=10)
    return figure


def _bars_figure(curve: Curve, names: list[str], label: str, thresholds: Sequence[float], predicted: bool) -> Figure:
    order = np.argsort(-curve.score, kind="stable")[:MOST_BARS]
    figure = _new(7.2, 1.3 + 0.34 * len(order))
    axes, y = figure.add_subplot(), np.arange(len(order))
    bars = axes.barh(y, curve.score[order], color=[GREEN if curve.met[i] else GREY for i in order], height=0.62)
    for bar, i in zip(bars, order, strict=True):
        bar.set_alpha(1.0 if curve.allowed[i] else 0.35)
        axes.annotate(_score(float(curve.score[i]), predicted), (bar.get_width(), bar.get_y() + bar.get_height() / 2),
                      (4, 0), textcoords="offset points", va="center", fontsize=9, bbox=PAPER)  # fmt: skip
    marks = {i: " (now)" if i == curve.own else "" for i in order}
    axes.set_yticks(y, [_cut(names[i], 40) + marks[i] for i in order])
    axes.invert_yaxis()
    _thresholds(axes, thresholds, vertical=True)
    _score_axis(axes.xaxis, predicted)
    _pad(axes, [*curve.score, *thresholds], predicted)
    faint = "; faint: may not be proposed" if not curve.allowed[order].all() else ""
    axes.set_title(f"{label}; green: as wanted{faint}", loc="left", fontsize=10)
    return figure


def burden_figure(table: pd.DataFrame, column: str) -> Figure:
    """Draw the shares and means of each group with their intervals."""
    figure = _new(11.0, 1.5 + 0.42 * len(table))
    panels = figure.subplots(1, len(BURDEN_PANELS), sharey=True)
    for axes, (measure, title) in zip(panels, BURDEN_PANELS, strict=True):
        draw_measure(axes, table, measure, BLUE)
        axes.set_title(title, loc="left", fontsize=10)
    panels[0].set_yticks(
        range(len(table)), [f"{_cut(g, 26)} ({n:,})" for g, n in zip(table["group"], table["needs"], strict=True)]
    )
    panels[0].set_ylabel(column)
    panels[0].set_ylim(len(table) - 0.5, -0.5)
    return figure


def draw_measure(axes: Axes, table: pd.DataFrame, measure: str, colour: str) -> None:
    """Draw one measure of a burden: a dot and an interval per group."""
    value, low, high = (
        table[name].to_numpy(dtype=np.float64) for name in (measure, f"{measure}_low", f"{measure}_high")
    )
    y = np.arange(len(table))
    axes.hlines(y, low, high, color=colour, linewidth=2, alpha=0.55)
    axes.scatter(value, y, s=40, color=colour, zorder=3)
    if measure in ("share", "safety"):
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0.0, 0.5, 1.0])
        axes.xaxis.set_major_formatter(_percent)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(3))
        axes.set_xlim(0, max(1e-9, 1.12 * float(np.nanmax([*value, *high], initial=0.5))))
    axes.spines[["top", "right"]].set_visible(False)


def _new(width: float, height: float) -> Picture:
    return Picture(figsize=(width, height), dpi=110, layout="constrained", facecolor="white")


def _thresholds(axes: Axes, thresholds: Sequence[float], vertical: bool) -> None:
    for threshold in thresholds:
        (axes.axvline if vertical else axes.axhline)(
            threshold, color="black", linewidth=1, linestyle=(0, (4, 3)), zorder=0
        )


def _score_axis(axis: Any, predicted: bool) -> None:
    axis.axes.spines[["top", "right"]].set_visible(False)
    axis.set_label_text("what the model predicts" if predicted else "probability of the wanted decision")
    axis.set_major_locator(MaxNLocator(6))
    axis.set_major_formatter((lambda x, _: f"{x:,.6g}") if predicted else _percent)


def _pad(axes: Axes, scores: Sequence[float], predicted: bool) -> None:
    axes.set_xlim(*_limits(scores, predicted))


def _pad_y(axes: Axes, scores: Sequence[float], predicted: bool) -> None:
    axes.set_ylim(*_limits(scores, predicted))


def _limits(scores: Sequence[float], predicted: bool) -> tuple[float, float]:
    """Axis limits with room for a number beside each score; for probabilities, from 0."""
    low, high = float(np.min(scores)), float(np.max(scores))
    if not predicted:
        return 0.0, max(high * 1.18, 0.1)
    room = (high - low) or abs(high) or 1.0
    return low - 0.1 * room, high + 0.2 * room


def _percent(share: float, _: object = None) -> str:
    return f"{100 * share:.0f} %"


def _score(score: float, predicted: bool) -> str:
    return f"{score:,.4g}" if predicted else f"{100 * score:.1f} %"


def _signed(gain: float, predicted: bool) -> str:
    return f"{gain:+,.4g}" if predicted else f"{100 * gain:+.1f}"


def _cut(text: str, most: int = 60) -> str:
    """A text shortened to a maximum length, with dollars escaped so that none starts a formula."""
    return (text if len(text) <= most else f"{text[: most - 1]}…").replace("$", r"\$")
