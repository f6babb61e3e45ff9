"""Run the cells in parallel processes, keep every finished one, and write `results/`."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from tdce._core import InputError, Progress, is_integer, listing, one_thread
from tdce.datasets import SETS, check_writable, make_folder, read_table, write_whole
from tdce.methods import METHODS
from tdce_reproduction.benchmark.cell import Bench, Cell, Measured, work
from tdce_reproduction.benchmark.fingerprint import of_cell
from tdce_reproduction.benchmark.settings import DATA, DIAL, WAYS_BACK, tuned_method
from tdce_reproduction.benchmark.summary import markdown
from tdce_reproduction.parallel import stream

TIMED_ROWS = 256
TIME = "seconds_per_100"
COLUMNS = ["data", "method", "masked", "seed", "metric", "value"]
PRINTS = [*COLUMNS[:-1], "fingerprint"]  # of the cell's figures under `validity`, of its time under its own name
WAY_OUT = "it was not touched: correct it, move it away, or name another folder"


@dataclass(frozen=True)
class BenchmarkSettings:
    """What to run: by default the paper's experiment on one more data set, with ours at every position of its dial and
    the baselines once more with the common way back."""

    data: tuple[str, ...] = DATA
    methods: tuple[str, ...] = (*METHODS, *DIAL, *WAYS_BACK)
    masked: tuple[str, ...] = ("no", "yes")
    seeds: int = 5
    rows: int = 1000
    out: Path = Path("results")
    workers: int = 2

    def __post_init__(self) -> None:
        for what, words, known in (
            ("data set", self.data, SETS),
            ("method", self.methods, METHODS),
            ("mask", self.masked, ("no", "yes")),
        ):
            if not words:
                raise InputError(f"name at least one {what}; known: {listing(known)}")
            for word in words:
                if known is METHODS:
                    tuned_method(word, self.data[0])
                elif word not in known:
                    raise InputError(f"there is no {what} {word!r}; known: {listing(known)}")
        for what, count in (("seeds", self.seeds), ("rows", self.rows), ("workers", self.workers)):
            if not is_integer(count) or count < 1:
                raise InputError(f"{what} is {count!r}; it must be a whole number, at least 1")

    @property
    def cells(self) -> list[Cell]:
        return [
            Cell(d, method, masked, seed)
            for seed in range(self.seeds)
            for d in self.data
            for masked in self.masked
            for method in self.methods
        ]


def run(setting: BenchmarkSettings, progress: Progress) -> pd.DataFrame:
    """All cells that are not measured yet as they would be now, then the times, then the tables; returns the tidy
    rows."""
    store = _Store(setting.out, setting.rows)
    todo = [cell for cell in setting.cells if not store.is_fresh(cell)]
    for d in dict.fromkeys(cell.data for cell in todo):  # missing data shows before any work
        _ = Bench(d, 0, setting.rows).data
    make_folder(setting.out)
    for name in ("benchmark.csv", "cells.csv", "tables.md", "environment.json"):
        check_writable(setting.out / name, endings=None)
    for name in ("cells", "fitted"):
        make_folder(setting.out / name)
    for line in store.stale(set(todo)):
        progress.say(line)
    with progress.bar("benchmark", len(todo)) as bar:
        for measured in _measured(todo, setting):
            store.add(measured)
            bar.advance(" ".join(map(str, measured.cell)))
    store.compare()
    _time(setting, store, progress)
    write_whole(setting.out / "tables.md", markdown(store.frame()).encode())
    if todo:  # tables alone can be made again anywhere
        write_whole(setting.out / "environment.json", (json.dumps(environment(), indent=2) + "\n").encode())
    return store.frame()


def environment() -> dict[str, object]:
    """Versions, cores, date and commit."""
    commit = ""
    with suppress(OSError):  # there may be no git
        asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        commit = asked.stdout.strip()
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
    """The tidy rows on disk, and beside them by which fingerprint each cell was measured; a finished cell is written
    at once, and the files are always whole."""

    def __init__(self, out: Path, rows: int) -> None:
        self.out, self.asked = out, rows
        found, prints = _read(out / "benchmark.csv", COLUMNS), _read(out / "cells.csv", PRINTS)
        self.rows: dict[tuple[str, str, str, int, str], float] = dict(found)
        self.prints: dict[tuple[str, str, str, int, str], str] = dict(prints)

    @property
    def done(self) -> set[Cell]:
        return {Cell(*key[:4]) for key in self.rows if key[4] == "validity"}

    def is_fresh(self, cell: Cell, metric: str = "validity") -> bool:
        """Whether a figure is there, and was measured as it would be now."""
        key = (*cell, metric)
        return key in self.rows and self.prints.get(key) == self._print(cell)

    def stale(self, todo: set[Cell]) -> list[str]:
        """What to say about cells that would be measured differently now: those to do, and those that stay."""
        old = {cell for cell in self.done if not self.is_fresh(cell)}
        unknown = {cell for cell in old if (*cell, "validity") not in self.prints}
        lines = []
        for cells, fate in ((old & todo, "measured again"), (old - todo, "left as they are, beside the new ones")):
            if cells:
                lines.append(
                    f"{len(cells)} of {len(self.done)} cells are {fate}: rows, settings or editions differ in "
                    f"{len(cells - unknown)} and are not known in {len(cells & unknown)}"
                )
        return lines

    def add(self, measured: Measured) -> None:
        """Replaces what there was of the cell, except its time."""
        cell = measured.cell
        self.rows = {key: v for key, v in self.rows.items() if key[:4] != cell or key[4] == TIME}
        for metric, value in measured.metrics.items():
            self.rows[(*cell, metric)] = value
        self.prints[(*cell, "validity")] = self._print(cell)
        content = pd.DataFrame({"valid": measured.valid, "l2": measured.l2}).to_csv(index=False)
        write_whole(self._kept(cell), content.encode())
        self.write()

    def _print(self, cell: Cell) -> str:
        """The fingerprint of the cell as it would be measured now; empty if its method or data is unknown."""
        if cell.data not in SETS:
            return ""
        with suppress(InputError):  # a method that is gone
            return of_cell(cell.data, cell.method, self.asked, Bench(cell.data, cell.seed, self.asked).explainer)
        return ""

    def _kept(self, cell: Cell) -> Path:
        """Where a cell's rows are kept one by one, for `compare`."""
        return self.out / "cells" / ("-".join(map(str, cell)) + ".csv")

    def set(self, cell: Cell, metric: str, value: float) -> None:
        self.rows[(*cell, metric)] = value

    def timed(self, cell: Cell, seconds: float) -> None:
        self.set(cell, TIME, seconds)
        self.prints[(*cell, TIME)] = self._print(cell)

    def compare(self) -> None:
        """`l2_common`: L2 on the rows that every compared method made valid (CounterNet, which has a model and so
        rows of its own, aside)."""
        fresh = [cell for cell in self.done if cell.method.removesuffix("+") != "counternet" and self.is_fresh(cell)]
        for key in sorted({(cell.data, cell.masked, cell.seed) for cell in fresh}):
            cells = [cell for cell in fresh if (cell.data, cell.masked, cell.seed) == key]
            if not all(self._kept(cell).exists() for cell in cells):
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
        """The fingerprints last: after a kill between the two, a cell is measured again, never mistaken for another."""
        write_whole(self.out / "benchmark.csv", self.frame().to_csv(index=False).encode())
        prints = pd.DataFrame([(*key, self.prints[key]) for key in sorted(self.prints)], columns=PRINTS)
        write_whole(self.out / "cells.csv", prints.to_csv(index=False).encode())


def _read(path: Path, columns: list[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The lines of a file that an earlier run wrote, the last cell by the others; none if there is no such file."""
    if not path.exists():
        return
    try:
        frame = read_table(path)
        if list(frame) != columns:
            raise InputError(f"{path} has the columns {listing(frame)}, not {listing(columns)}")
        if not path.read_bytes().endswith(b"\n"):
            raise InputError(f"{path}: the last line is cut off")
        kinds = {"seed": int} | ({"value": float} if "value" in columns else {})
        for name, kind in kinds.items():
            frame[name] = [kind(cell) for cell in pd.to_numeric(frame[name])]
    except InputError as error:
        raise InputError(f"{error}; {WAY_OUT}") from None
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"{path} is not what `tdce bench` writes ({error}); {WAY_OUT}") from None
    yield from ((tuple(cells[:-1]), cells[-1]) for cells in frame.itertuples(index=False, name=None))


def _time(setting: BenchmarkSettings, store: _Store, progress: Progress) -> None:
    """Seconds per 100 rows of every method, in one process on one thread, one after another; ours at one position,
    the baselines in their own form."""
    cells = [Cell(d, m, "no", 0) for d in setting.data for m in setting.methods if "@" not in m and "+" not in m]
    todo = [cell for cell in cells if not store.is_fresh(cell, TIME)]
    with one_thread(), progress.bar("times", len(todo)) as bar:
        for d in dict.fromkeys(cell.data for cell in todo):
            bench = Bench(d, 0, setting.rows, setting.out / "fitted")
            for cell in (c for c in todo if c.data == d):
                seconds = bench.seconds(tuned_method(cell.method, d), TIMED_ROWS)
                store.timed(cell, 100 * seconds / TIMED_ROWS)
                bar.advance(" ".join(map(str, cell)))
            bare = products(bench, TIMED_ROWS)
            store.set(Cell(d, "matrix_products", "no", 0), TIME, 100 * bare / TIMED_ROWS)
            store.write()


def products(bench: Bench, rows: int, steps: int = 50) -> float:
    """Seconds of the bare matrix products of Algorithm 1 on this many rows: in each of its steps the denoiser and the
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


def _measured(todo: list[Cell], setting: BenchmarkSettings) -> Iterator[Measured]:
    """Measured cells as they come; those of one data set and seed share a process."""
    jobs: dict[tuple[str, int], list[Cell]] = {}
    for cell in todo:
        jobs.setdefault((cell.data, cell.seed), []).append(cell)
    cache = setting.out / "fitted"
    return stream(work, [(d, seed, setting.rows, cells, cache) for (d, seed), cells in jobs.items()], setting.workers)
