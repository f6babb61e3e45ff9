"""The paper's figures: each is measured by one function and drawn by another from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from tdce._core import InputError, listing, one_thread
from tdce.datasets import check_writable, make_folder
from tdce_reproduction.figures import correlations, kl, person, pipeline, simplex, tau
from tdce_reproduction.figures.style import save, styled
from tdce_reproduction.figures.work import Work

__all__ = ["FIGURES", "Work", "make"]


class Recipe(NamedTuple):
    draw: Callable[[pd.DataFrame], Figure]
    measure: Callable[[Work], pd.DataFrame] | None = None  # None: there is nothing to measure
    todo: Callable[[Work], Sequence[object]] | None = None  # what is not measured yet on the work's data set
    animate: Callable[[pd.DataFrame, Path], Path] | None = None


FIGURES = {
    "pipeline": Recipe(pipeline.draw),
    "simplex": Recipe(simplex.draw, simplex.measure, animate=simplex.animate),
    "kl": Recipe(kl.draw, kl.measure),
    "correlations": Recipe(correlations.draw, correlations.measure, correlations.todo),
    "tau": Recipe(tau.draw, tau.measure, tau.todo),
    "person": Recipe(person.draw, person.measure),
}
"""By name, in the order of the paper; `person` is ours."""


def make(names: Sequence[str], work: Work) -> list[Path]:
    """NAME.png, NAME.svg and, where something was measured, NAME.csv in the folder `work.out`; returns their paths."""
    for name in names:
        if name not in FIGURES:
            raise InputError(f"there is no figure {name!r}; known: {listing(FIGURES)}")
    if any(recipe.todo is not None and recipe.todo(work) for recipe in map(FIGURES.__getitem__, names)):
        _check_data(work)
    make_folder(work.out)
    for name in names:
        for kind in ("csv", "png", "svg", "gif"):
            check_writable(work.out / f"{name}.{kind}", endings=None)
    written: list[Path] = []
    for name in dict.fromkeys(names):
        table = pd.DataFrame()
        if FIGURES[name].measure is not None:
            written.append(_measured(name, work))
            table = pd.read_csv(written[-1])
            table = table if FIGURES[name].todo is None else work.ours(table)
        with styled():
            written += save(FIGURES[name].draw(table), work.out, name)
            if (animate := FIGURES[name].animate) is not None:
                written.append(animate(table, work.out))
    return written


def _measured(name: str, work: Work) -> Path:
    """The file from which the picture is drawn: it is all that the picture needs."""
    recipe = FIGURES[name]
    assert recipe.measure is not None
    if recipe.todo is not None:  # it shows its own progress
        return work.keep(name, recipe.measure(work))
    with one_thread(), work.progress.bar(name, 1) as bar:
        table = recipe.measure(work)
        bar.advance()
    return work.keep(name, table)


def _check_data(work: Work) -> None:
    """A missing table shows before any work."""
    try:
        _ = work.bench(0).data
    except InputError as error:
        free = ",".join(name for name, recipe in FIGURES.items() if recipe.todo is None)
        raise InputError(f"{error} (--only {free} needs no data)") from None
