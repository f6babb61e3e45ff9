"""Figure 2 (fig:cat-3-sim): the reverse process of a variable with three classes, without and with guidance."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from tdce._core import Noise, Progress, TrainingPlan
from tdce.datasets import write_whole
from tdce.diffusion import TabularDiffusion
from tdce.methods import INDEPENDENT, Guided, Task
from tdce.models import Class, Goals, NetworkModel, Oracle
from tdce.schema import Encoder
from tdce_reproduction.figures.style import BLUE, GREY, VERMILION, hide_axes, new
from tdce_reproduction.figures.workspace import Workspace

SHARES = (0.5, 0.3, 0.2)  # of the classes A, B, C in the data
YES = (0.1, 0.5, 0.9)  # the classifier's probability of the target for each class
POINTS, STRIDES, SEED = 200, 50, 0
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])
OFFSETS = ((0.0, -0.1), (0.0, -0.1), (0.0, 0.09))  # of the corners' labels
SHOWN = (1000, 800, 600, 400, 200, 0)  # times
TITLES = {0: "without guidance", 1: "with guidance"}


def measure(workspace: Workspace) -> pd.DataFrame:
    """One line per point and time: Algorithm 1 from pure noise, with weight 0 and 1 of the classifier's gradient."""
    task = _task()
    x, goals = torch.eye(3)[torch.arange(POINTS) % 3], Goals.all(Class(1), POINTS)
    lines: list[pd.DataFrame] = []
    for guided in TITLES:
        reading = Guided(start=1.0, steps=STRIDES, guidance=guided, cat_guidance=1.0, proximity=0.0, tau=None,
                         cat_scale="lambda", cat_gradient="denoised", noise_length=INDEPENDENT)  # fmt: skip
        method = reading.fit(task)
        noise = Noise(torch.arange(POINTS)[:, None].float(), SEED)
        for t, x_t, _ in method.walk(x, goals, noise, method.start):
            at = pd.DataFrame(x_t.double().numpy().round(4), columns=["a", "b", "c"])
            lines.append(at.assign(guided=guided, t=t, point=np.arange(POINTS)))
    return pd.concat(lines)[["guided", "t", "point", "a", "b", "c"]]


def _task() -> Task:
    """The task for a table of one column, with a trained diffusion model and a known classifier."""
    counts = (torch.tensor(SHARES) * 2000).round().long()
    rows = torch.eye(3).repeat_interleave(counts, dim=0)
    encoder = Encoder.fit(pd.DataFrame({"class": np.repeat(["A", "B", "C"], counts)}))
    diffusion = TabularDiffusion(encoder.space, hidden=32, blocks=2, seed=SEED)
    diffusion.fit(rows, rows, TrainingPlan(steps=400, batch=512, rate=4e-3), SEED, Progress("silent"))
    odds = torch.logit(torch.tensor(YES))

    def classify(x: Tensor) -> Tensor:
        return torch.stack([torch.zeros(len(x)), x @ odds], dim=1)

    oracle = Oracle(NetworkModel(classify, encoder.embed, ("no", "yes")))
    return Task(encoder, oracle, classify, diffusion, torch.ones(3, dtype=torch.bool), rows, rows.argmax(dim=1))


def draw(table: pd.DataFrame) -> Figure:
    """Two rows of six triangles."""
    figure = new(15, 5.6)
    panels = figure.subplots(2, len(SHOWN))
    for row, (guided, title) in zip(panels, TITLES.items(), strict=True):
        for axes, t in zip(row, SHOWN, strict=True):
            _draw_triangle(axes, f"t = {t:,}")
            _draw_points(axes, table, guided, t)
        row[0].text(-0.3, 0.43, title, rotation=90, ha="center", va="center", fontsize=16)
    return figure


def animate(table: pd.DataFrame, folder: Path) -> Path:
    """Write simplex.gif: both processes side by side, at every second time."""
    figure = Figure(figsize=(9, 4.8))
    panels = figure.subplots(1, 2)
    figure.subplots_adjust(0.03, 0.04, 0.97, 0.84, 0.1)
    times = sorted(table["t"].unique(), reverse=True)[::2]

    def frame(i: int) -> list[Axes]:
        t = times[min(i, len(times) - 1)]
        for axes, (guided, title) in zip(panels, TITLES.items(), strict=True):
            axes.clear()
            _draw_triangle(axes, title)
            _draw_points(axes, table, guided, t)
        figure.suptitle(f"t = {t:,}")
        return list(panels)

    animation = FuncAnimation(figure, frame, frames=len(times) + 8)  # it holds the last frame
    path = folder / "simplex.gif"
    with TemporaryDirectory() as draft:
        animation.save(Path(draft) / path.name, writer=PillowWriter(fps=6), dpi=80)
        write_whole(path, (Path(draft) / path.name).read_bytes())
    return path


def _draw_points(axes: Axes, table: pd.DataFrame, guided: int, t: int) -> None:
    """Draw the points, and at each corner the share of points that are nearest to it."""
    part = table.loc[(table["guided"] == guided) & (table["t"] == t), ["a", "b", "c"]].to_numpy()
    x = part @ CORNERS
    axes.scatter(x[:, 0], x[:, 1], s=22, color=VERMILION if guided else BLUE, alpha=0.35, linewidths=0)
    shares = np.bincount(part.argmax(axis=1), minlength=3) / len(part)
    for name, share, (left, top), (dx, dy) in zip("ABC", shares, CORNERS, OFFSETS, strict=True):
        axes.text(left + dx, top + dy, f"{name} {100 * share:.0f} %", ha="center", va="center", fontsize=12)


def _draw_triangle(axes: Axes, title: str) -> None:
    hide_axes(axes)
    outline = np.vstack([CORNERS, CORNERS[:1]])
    axes.plot(outline[:, 0], outline[:, 1], color=GREY, linewidth=1)
    axes.set_xlim(-0.22, 1.22)
    axes.set_ylim(-0.16, 1.0)
    axes.set_aspect("equal")
    axes.set_title(title)
