"""The paper's figures: one function measures the data of a figure, another draws it from those data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from tdce._core import InputError, listing, one_thread, suggest
from tdce.datasets import check_writable, make_folder
from tdce_reproduction.figures import correlations, frontier, kl, person, pipeline, simplex, tau
from tdce_reproduction.figures.style import save, styled
from tdce_reproduction.figures.workspace import Workspace

__all__ = ["FIGURES", "Workspace", "make_figures"]


class Recipe(NamedTuple):
    """How a figure is made."""

    draw: Callable[[pd.DataFrame], Figure]
    measure: Callable[[Workspace], pd.DataFrame] | None = None  # None: the figure needs no data
    todo: Callable[[Workspace], Sequence[object]] | None = None  # what is still to be measured
    animate: Callable[[pd.DataFrame, Path], Path] | None = None
    split: str | None = None  # column of the data, with one picture per value

    def parts(self, name: str, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """The data of each picture, by name."""
        if self.split is None:
            return {name: table}
        return {f"{name}_{value}": part for value, part in table.groupby(self.split)}


FIGURES = {
    "pipeline": Recipe(pipeline.draw),
    "simplex": Recipe(simplex.draw, simplex.measure, animate=simplex.animate),
    "kl": Recipe(kl.draw, kl.measure),
    "correlations": Recipe(correlations.draw, correlations.measure, correlations.todo),
    "tau": Recipe(tau.draw, tau.measure, tau.todo),
    "person": Recipe(person.draw, person.measure),
    "frontier": Recipe(frontier.draw, frontier.measure, split="data"),
}
"""The figures by name, in the order of the paper; `person` and `frontier` are not in it."""


def make_figures(names: Sequence[str], workspace: Workspace) -> list[Path]:
    """Write NAME.png, NAME.svg and, for figures with data, NAME.csv to the folder `workspace.out`; return the paths. A
    split figure has several pictures, NAME_VALUE."""
    for name in names:
        if name not in FIGURES:
            meant = suggest(name, FIGURES)
            raise InputError(f"there is no figure {name!r}; {meant}known: {listing(FIGURES)}")
    if any(recipe.todo is not None and recipe.todo(workspace) for recipe in map(FIGURES.__getitem__, names)):
        _check_data(workspace)
    make_folder(workspace.out)
    for name in names:
        for kind in ("csv", "png", "svg", "gif"):
            check_writable(workspace.out / f"{name}.{kind}", endings=None)
    written: list[Path] = []
    for name in dict.fromkeys(names):
        table = pd.DataFrame()
        if FIGURES[name].measure is not None:
            written.append(_measure(name, workspace))
            table = pd.read_csv(written[-1])
            table = table if FIGURES[name].todo is None else workspace.select(table)
        with styled():
            for picture, part in FIGURES[name].parts(name, table).items():
                written += save(FIGURES[name].draw(part), workspace.out, picture)
            if (animate := FIGURES[name].animate) is not None:
                written.append(animate(table, workspace.out))
    return written


def _measure(name: str, workspace: Workspace) -> Path:
    """Write the data of a figure and return the file; the figure is drawn from this file alone."""
    recipe = FIGURES[name]
    assert recipe.measure is not None
    if recipe.todo is not None:  # it shows its own progress
        return workspace.save(name, recipe.measure(workspace))
    with one_thread(), workspace.progress.bar(name, 1) as bar:
        table = recipe.measure(workspace)
        bar.advance()
    return workspace.save(name, table)


def _check_data(workspace: Workspace) -> None:
    """Report a missing table before any work."""
    try:
        _ = workspace.bench(0).data
    except InputError as error:
        free = ",".join(name for name, recipe in FIGURES.items() if recipe.todo is None)
        raise InputError(f"{error} (--only {free} needs no data)") from None
