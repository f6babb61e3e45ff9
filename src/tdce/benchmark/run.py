"""Run the cells in parallel processes, keep every finished one, and write `results/`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tdce.benchmark.cell import Bench, Cell, Measured, work
from tdce.benchmark.parallel import stream
from tdce.benchmark.settings import DATA, chosen
from tdce.benchmark.tables import tables
from tdce.methods import METHODS
from tdce.progress import Progress
from tdce.tables import make_folder, write_whole
from tdce.threads import one_thread

TIMED_ROWS = 256
COLUMNS = ["data", "method", "masked", "seed", "metric", "value"]


@dataclass(frozen=True)
class Setting:
    """What to run: the paper's experiment by default."""

    data: tuple[str, ...] = DATA
    methods: tuple[str, ...] = tuple(METHODS)
    masked: tuple[str, ...] = ("no", "yes")
    seeds: int = 5
    rows: int = 1000
    out: Path = Path("results")
    workers: int = 2

    @property
    def cells(self) -> list[Cell]:
        return [
            Cell(d, method, masked, seed)
            for seed in range(self.seeds)
            for d in self.data
            for masked in self.masked
            for method in self.methods
        ]


def run(setting: Setting, progress: Progress) -> pd.DataFrame:
    """All cells that `benchmark.csv` does not have yet, then the times, then the tables; returns the tidy rows."""
    store = _Store(setting.out)
    todo = [cell for cell in setting.cells if cell not in store.done]
    for cell in todo:  # a wrong name shows before any work
        chosen(cell.method, cell.data)
    for d in dict.fromkeys(cell.data for cell in todo):  # and so does missing data
        _ = Bench(d, 0, setting.rows).data
    make_folder(setting.out)
    with progress.bar("benchmark", len(todo)) as bar:
        for measured in _measured(todo, setting):
            store.add(measured)
            bar.advance(" ".join(map(str, measured.cell)))
    store.compare()
    _time(setting, store, progress)
    write_whole(setting.out / "tables.md", tables(store.frame()).encode())
    if todo:  # tables alone can be made again anywhere
        write_whole(setting.out / "environment.json", (json.dumps(environment(), indent=2) + "\n").encode())
    return store.frame()


def environment() -> dict[str, object]:
    """Versions, cores, date and commit."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    packages = ("tdce", "torch", "numpy", "pandas", "scipy", "scikit-learn")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit or None,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads_per_worker": 1,
    }


class _Store:
    """The tidy rows on disk; a finished cell is written at once, and the file is always whole."""

    def __init__(self, out: Path) -> None:
        self.out, self.path = out, out / "benchmark.csv"
        self.rows: dict[tuple[str, str, str, int, str], float] = {}
        if self.path.exists():
            found = pd.read_csv(self.path).to_dict("list")
            *keys, values = (found[name] for name in COLUMNS)
            self.rows = dict(zip(zip(*keys, strict=True), values, strict=True))

    @property
    def done(self) -> set[Cell]:
        return {Cell(*key[:4]) for key in self.rows if key[4] == "validity"}

    def add(self, measured: Measured) -> None:
        for metric, value in measured.metrics.items():
            self.rows[(*measured.cell, metric)] = value
        kept = self._kept(measured.cell)
        kept.parent.mkdir(exist_ok=True)
        content = pd.DataFrame({"valid": measured.valid, "l2": measured.l2}).to_csv(index=False)
        write_whole(kept, content.encode())
        self.write()

    def _kept(self, cell: Cell) -> Path:
        """Where a cell's rows are kept one by one, for `compare`."""
        return self.out / "cells" / ("-".join(map(str, cell)) + ".csv")

    def set(self, cell: Cell, metric: str, value: float) -> None:
        self.rows[(*cell, metric)] = value

    def compare(self) -> None:
        """`l2_common`: L2 on the rows that every compared method made valid (CounterNet, which has a model and so
        rows of its own, aside)."""
        for d, masked, seed in sorted({(cell.data, cell.masked, cell.seed) for cell in self.done}):
            cells = [
                c for c in self.done if (c.data, c.masked, c.seed) == (d, masked, seed) and c.method != "counternet"
            ]
            if not cells or not all(self._kept(cell).exists() for cell in cells):
                continue
            found = {cell: pd.read_csv(self._kept(cell)) for cell in cells}
            common = np.logical_and.reduce([f["valid"].to_numpy() == 1 for f in found.values()])
            for cell, f in found.items():
                self.set(cell, "common_rows", float(common.sum()))
                if common.any():
                    self.set(cell, "l2_common", float(f["l2"].to_numpy()[common].mean()))
        self.write()

    def frame(self) -> pd.DataFrame:
        keys = sorted(self.rows)
        return pd.DataFrame([(*key, self.rows[key]) for key in keys], columns=COLUMNS)

    def write(self) -> None:
        write_whole(self.path, self.frame().to_csv(index=False).encode())


def _time(setting: Setting, store: _Store, progress: Progress) -> None:
    """Seconds per 100 rows of every method, in one process on one thread, one after another."""
    todo = [
        Cell(d, m, "no", 0)
        for d in setting.data
        for m in setting.methods
        if (d, m, "no", 0, "seconds_per_100") not in store.rows
    ]
    with one_thread(), progress.bar("times", len(todo)) as bar:
        for d in dict.fromkeys(cell.data for cell in todo):
            bench = Bench(d, 0, setting.rows, setting.out / "fitted")
            for cell in (c for c in todo if c.data == d):
                seconds = bench.seconds(chosen(cell.method, d), TIMED_ROWS)
                store.set(cell, "seconds_per_100", 100 * seconds / TIMED_ROWS)
                bar.advance(" ".join(map(str, cell)))
            bare = products(bench, TIMED_ROWS)
            store.set(Cell(d, "matrix_products", "no", 0), "seconds_per_100", 100 * bare / TIMED_ROWS)
            store.write()


def products(bench: Bench, rows: int, steps: int = 50) -> float:
    """Seconds of the bare matrix products of Algorithm 1 on so many rows: in each of its steps the denoiser and the
    classifier forwards, and backwards to their inputs. Best of three."""
    modules = [bench.fitted.diffusion, bench.fitted.classifier]
    weights = [p for m in modules if isinstance(m, torch.nn.Module) for p in m.parameters() if p.dim() == 2]
    inputs = [torch.zeros(rows, w.shape[1]) for w in weights]
    outputs = [torch.zeros(rows, w.shape[0]) for w in weights]

    def once() -> float:
        began = time.perf_counter()
        for _ in range(steps):
            for w, x, g in zip(weights, inputs, outputs, strict=True):
                torch.mm(x, w.T)
                torch.mm(g, w)
        return time.perf_counter() - began

    once()
    return min(once() for _ in range(3))


def _measured(todo: list[Cell], setting: Setting) -> Iterator[Measured]:
    """Measured cells as they come; those of one data set and seed share a process."""
    jobs: dict[tuple[str, int], list[Cell]] = {}
    for cell in todo:
        jobs.setdefault((cell.data, cell.seed), []).append(cell)
    cache = setting.out / "fitted"
    return stream(work, [(d, seed, setting.rows, cells, cache) for (d, seed), cells in jobs.items()], setting.workers)
