"""The drawings of a report, as SVG in the colours of the page: light, dark or print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd

from tdce._core import Floats
from tdce.report.histograms import Histogram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
CLASS_INKS = ("#010101", "#020202", "#030303", "#040404")
"""Stand-ins for the colours of classes; the page's own, --class-0 to --class-3, take their places."""
INK, SOFT = "#0a0a0a", "#0b0b0b"
COLOURS = {ink: f"var(--class-{i})" for i, ink in enumerate(CLASS_INKS)} | {INK: "var(--ink)", SOFT: "var(--soft)"}
DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
MAX_POINTS = 400  # in a map; more people are drawn as hexagonal bins


def draw_histogram(histogram: Histogram, classes: Sequence[int]) -> str:
    """Draw the share of each class in each bin, as steps: the content of an svg element of 240 by 60.

    The first class is filled and the others are lines, so that they differ in black and white, too.
    """
    fig = _figure(240, 60)
    axes = fig.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    edges, top = np.linspace(0, 1, histogram.bins + 1), 0.0
    for i, k in enumerate(classes):
        counts = np.array(histogram.counts[k], dtype=np.float64)
        heights = counts / max(counts.sum(), 1.0)
        top = max(top, heights.max())
        if i == 0:
            axes.stairs(heights, edges, fill=True, color=CLASS_INKS[i], alpha=0.28, linewidth=0)
        axes.stairs(heights, edges, color=CLASS_INKS[i], linewidth=1.1, linestyle=DASHES[i])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, (top or 1.0) * 1.06)
    return _to_html(_svg_content(fig))


def draw_effort_map(effort: Floats, plausibility: Floats, x_label: str, y_label: str) -> str:
    """Draw a map of people, effort against plausibility, as an svg element."""
    fig = _figure(560, 320)
    axes = fig.add_axes((0.09, 0.15, 0.89, 0.82))
    if len(effort) <= MAX_POINTS:
        axes.scatter(effort, plausibility, s=32, color=CLASS_INKS[0], alpha=0.7, linewidths=0)
    else:
        right = max(float(effort.max()), 1e-9)
        cells = axes.hexbin(effort, plausibility, gridsize=22, mincnt=1, extent=(0, right, 0, 1), linewidths=0)
        count = np.asarray(cells.get_array(), dtype=np.float64)
        shade = 0.12 + 0.88 * np.sqrt(count / count.max())
        cells.set_array(None)
        cells.set_facecolor([(*_rgb(CLASS_INKS[0]), a) for a in shade])
    axes.set_xlim(left=-0.02 * axes.get_xlim()[1])
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.spines[["top", "right"]].set_visible(False)
    return f'<svg viewBox="0 0 560 320" aria-hidden="true" focusable="false">{_to_html(_svg_content(fig))}</svg>'


def draw_burden(table: pd.DataFrame, titles: Mapping[str, str]) -> str:
    """Draw the measures of groups with their intervals, as an svg element with one panel per title."""
    from tdce.report.figures import draw_measure  # it imports matplotlib

    width, height = 940, 56 + 26 * len(table)
    fig = _figure(width, height)
    left, room = 0.2, 0.78 / len(titles)
    for i, (measure, title) in enumerate(titles.items()):
        axes = fig.add_axes((left + i * room, 26 / height, 0.8 * room, 26 * len(table) / height))
        draw_measure(axes, table, measure, CLASS_INKS[0])
        axes.set_title(title, loc="left", fontsize=11, color=INK)
        axes.set_ylim(len(table) - 0.5, -0.5)
        names = [shorten_label(group) for group in table["group"]] if i == 0 else []
        axes.set_yticks(range(len(names)), names)
    return (
        f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">{_to_html(_svg_content(fig))}</svg>'
    )


def shorten_label(text: str) -> str:
    """A label shortened to a maximum length, with dollars escaped so that none starts a formula."""
    return (text if len(text) <= 28 else f"{text[:27]}…").replace("$", r"\$")


def _figure(width: int, height: int) -> Figure:
    """An empty figure, in pixels of the page."""
    from matplotlib.figure import Figure  # slow to import, and only a page needs it

    return Figure(figsize=(width / 72, height / 72), dpi=72)


def _svg_content(fig: Figure) -> list[ET.Element]:
    """The children of the svg element, in the page's colours, without ids (which could occur twice in a page)."""
    from matplotlib import rc_context

    settings: Any = {
        "svg.fonttype": "none", "svg.hashsalt": "tdce", "font.family": "sans-serif", "font.size": 11,
        "axes.edgecolor": SOFT,
        "text.color": INK, "axes.labelcolor": INK, "xtick.color": SOFT, "ytick.color": SOFT, "path.simplify": True,
    }  # fmt: skip
    with rc_context(settings), StringIO() as file:
        for axes in fig.axes:  # created before these settings applied
            axes.tick_params(colors=SOFT, labelsize=11)
            axes.xaxis.label.set(color=INK, size=12)
            axes.yaxis.label.set(color=INK, size=12)
            for spine in axes.spines.values():
                spine.set_edgecolor(SOFT)
        fig.patch.set_alpha(0)
        for axes in fig.axes:
            axes.patch.set_alpha(0)
        fig.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        text = file.getvalue()
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(text)
    for element in root.iter():
        style = element.get("style")
        if style is not None:
            style = re.sub(r"font-family: [^;]*;? ?", "", style)
            for ink, colour in COLOURS.items():
                style = style.replace(ink, colour)
            element.set("style", style)
        element.attrib.pop("clip-path", None)
        if not element.tag.endswith(("path", "use")) or element.get("id", "").startswith("patch"):
            element.attrib.pop("id", None)
    return [child for child in root if not child.tag.endswith(("metadata", "defs"))]


def _to_html(elements: list[ET.Element]) -> str:
    """The elements as HTML: without namespaces and needless space, numbers with two decimals."""
    text = "".join(ET.tostring(element, encoding="unicode") for element in elements)
    for old, new in ((r' xmlns(:\w+)?="[^"]*"', ""), (r"xlink:href", "href"), (r">\s+<", "><"), (r" {2,}", " ")):
        text = re.sub(old, new, text)
    return re.sub(r"(\d\.\d\d)\d+", r"\1", text.strip())


def _rgb(ink: str) -> tuple[float, float, float]:
    return tuple(int(ink[i : i + 2], 16) / 255 for i in (1, 3, 5))  # type: ignore[return-value]
