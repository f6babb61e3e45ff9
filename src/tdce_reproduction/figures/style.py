"""The style of the figures, with a palette for all kinds of colour vision, and their export as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tdce.datasets import write_whole

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
"""The colours of Okabe and Ito, which are distinguishable with any kind of colour vision."""

GREY = "0.55"
DPI = 120
RC: dict[Any, Any] = {
    "font.size": 14,
    "axes.titlesize": 14,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "svg.hashsalt": "tdce",  # the same picture gives the same file
}


@contextmanager
def styled() -> Iterator[None]:
    with mpl.rc_context(RC):
        yield


def new(width: float, height: float) -> Figure:
    """A figure of this size in inches, without pyplot's global state."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write NAME.png and NAME.svg, each atomically; return their paths."""
    written = []
    for kind in ("png", "svg"):
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else None)
        written.append(folder / f"{name}.{kind}")
        write_whole(written[-1], content.getvalue())
    return written


def hide_axes(axes: Axes) -> None:
    """Remove ticks and frame."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
