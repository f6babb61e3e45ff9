"""The benchmark run: measure the cells in parallel processes, save each when it is finished, and write `results/`."""

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

from tdce._core import InputError, Progress, is_integer, listing, one_thread, suggest
from tdce.datasets import check_writable, make_folder, read_table, write_whole
from tdce_reproduction.benchmark.cell import Bench, Cell, Measurement, measure_cells
from tdce_reproduction.benchmark.fingerprint import cell_fingerprint
from tdce_reproduction.benchmark.settings import (
    ANY_YES_VARIANTS,
    AS_PUBLISHED,
    DATA,
    REFINED_METHODS,
    SEARCH_VARIANTS,
    tuned_method,
)
from tdce_reproduction.benchmark.summary import Stale, markdown
from tdce_reproduction.parallel import stream

TIMED_ROWS = 256
TIME = "seconds_per_100"
COLUMNS = ["data", "method", "masked", "seed", "metric", "value"]
FINGERPRINT_COLUMNS = [*COLUMNS[:-1], "fingerprint"]  # metric: `validity` for all metrics of a cell but its time
REMEDY = "it was not touched: correct it, move it away, or name another folder"


@dataclass(frozen=True)
class BenchmarkSettings:
    """What to run. The default is the paper's experiment with one more data set, `search` at several values of
    closeness with and without a wanted safety, Algorithm 1 and the baselines with refinement as well, and the unchanged
    rows."""

    data: tuple[str, ...] = DATA
    methods: tuple[str, ...] = (*AS_PUBLISHED, *SEARCH_VARIANTS, *ANY_YES_VARIANTS, *REFINED_METHODS)
    masked: tuple[str, ...] = ("no", "yes")
    seeds: int = 5
    rows: int = 1000
    out: Path = Path("results")
    workers: int = 2

    def __post_init__(self) -> None:
        for what, words, known in (
            ("data set", self.data, DATA),
            ("method", self.methods, AS_PUBLISHED),
            ("mask", self.masked, ("no", "yes")),
        ):
            if not words:
                raise InputError(f"name at least one {what}; known: {listing(known)}")
            for word in words:
                if known is AS_PUBLISHED:
                    tuned_method(word, self.data[0])
                elif word not in known:
                    meant = suggest(word, known)
                    raise InputError(f"there is no {what} {word!r}; {meant}known: {listing(known)}")
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


def run(settings: BenchmarkSettings, progress: Progress) -> pd.DataFrame:
    """Measure all cells that are missing or stale, then the times; write the tables and return the tidy rows."""
    store = _Store(settings.out, settings.rows)
    todo = [cell for cell in settings.cells if not store.is_fresh(cell)]
    for data in dict.fromkeys(cell.data for cell in todo):  # report missing data before any work
        _ = Bench(data, 0, settings.rows).data
    make_folder(settings.out)
    for name in ("benchmark.csv", "cells.csv", "tables.md", "environment.json"):
        check_writable(settings.out / name, endings=None)
    for name in ("cells", "fitted"):
        make_folder(settings.out / name)
    for line in store.stale_messages(set(todo)):
        progress.say(line)
    with progress.bar("benchmark", len(todo)) as bar:
        for measurement in _measurements(todo, settings):
            store.add(measurement)
            bar.advance(" ".join(map(str, measurement.cell)))
    store.compare_common_rows()
    _time_methods(settings, store, progress)
    write_whole(settings.out / "tables.md", tables(settings.out, settings.rows).encode())
    if todo:  # otherwise nothing was measured on this machine
        about = environment() | {"seeds": settings.seeds, "rows": settings.rows}
        write_whole(settings.out / "environment.json", (json.dumps(about, indent=2) + "\n").encode())
    return store.frame()


def tables(results: Path, rows: int) -> str:
    """The page of the results in a folder."""
    return markdown(*current(results, rows))


def current(results: Path, rows: int) -> tuple[pd.DataFrame, Stale]:
    """The tidy rows to show, and which of them are stale: only the up-to-date seeds of a method, or all seeds if none
    is up to date."""
    store = _Store(results, rows)
    frame, fresh = store.frame(), {cell for cell in store.done if store.is_fresh(cell)}
    known = {(cell.data, cell.masked, cell.method) for cell in fresh}
    keys = list(zip(frame["data"], frame["masked"], frame["method"], frame["seed"], strict=True))
    shown = [(d, masked, m) not in known or Cell(d, m, masked, seed) in fresh for d, masked, m, seed in keys]
    stale = {(cell.data, cell.masked, cell.method) for cell in store.done} - known
    return frame[shown], frozenset(stale) if fresh else frozenset()


def environment() -> dict[str, object]:
    """Versions, cores, date and commit."""
    commit = ""
    with suppress(OSError):  # git may not be installed
        git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        commit = git.stdout.strip()
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
    """The tidy rows on disk, and the fingerprint with which each cell was measured. Each finished cell is written at
    once, and the files are always complete."""

    def __init__(self, out: Path, rows: int) -> None:
        self.out, self.max_rows = out, rows
        tidy, fingerprints = _read(out / "benchmark.csv", COLUMNS), _read(out / "cells.csv", FINGERPRINT_COLUMNS)
        self.rows: dict[tuple[str, str, str, int, str], float] = dict(tidy)
        self.fingerprints: dict[tuple[str, str, str, int, str], str] = dict(fingerprints)

    @property
    def done(self) -> set[Cell]:
        return {Cell(*key[:4]) for key in self.rows if key[4] == "validity"}

    def is_fresh(self, cell: Cell, metric: str = "validity") -> bool:
        """Whether a value is there and was measured with the current fingerprint."""
        key = (*cell, metric)
        return key in self.rows and self.fingerprints.get(key) == self._fingerprint(cell)

    def stale_messages(self, todo: set[Cell]) -> list[str]:
        """A message about stale cells that are measured again, and one about those that are not."""
        old = {cell for cell in self.done if not self.is_fresh(cell)}
        unknown = {cell for cell in old if (*cell, "validity") not in self.fingerprints}
        messages = []
        for cells, fate in ((old & todo, "measured again"), (old - todo, "stale and left unchanged")):
            if cells:
                messages.append(
                    f"{len(cells)} of {len(self.done)} cells are {fate}: rows, settings or editions differ in "
                    f"{len(cells - unknown)} and are unknown in {len(cells & unknown)}"
                )
        return messages

    def add(self, measurement: Measurement) -> None:
        """Replace everything known about the cell except its time."""
        cell = measurement.cell
        self.rows = {key: v for key, v in self.rows.items() if key[:4] != cell or key[4] == TIME}
        for metric, value in measurement.metrics.items():
            self.rows[(*cell, metric)] = value
        self.fingerprints[(*cell, "validity")] = self._fingerprint(cell)
        content = pd.DataFrame({"valid": measurement.valid, "l2": measurement.l2}).to_csv(index=False)
        write_whole(self._rows_path(cell), content.encode())
        self.write()

    def _fingerprint(self, cell: Cell) -> str:
        """The fingerprint of the cell as it would be measured now; empty if its method or data is unknown."""
        if cell.data not in DATA:
            return ""
        with suppress(InputError):  # a method that no longer exists
            explainer = Bench(cell.data, cell.seed, self.max_rows).explainer
            return cell_fingerprint(cell.data, cell.method, self.max_rows, explainer)
        return ""

    def _rows_path(self, cell: Cell) -> Path:
        """The file of a cell's single rows, for `compare_common_rows`."""
        return self.out / "cells" / ("-".join(map(str, cell)) + ".csv")

    def set(self, cell: Cell, metric: str, value: float) -> None:
        self.rows[(*cell, metric)] = value

    def set_time(self, cell: Cell, seconds: float) -> None:
        self.set(cell, TIME, seconds)
        self.fingerprints[(*cell, TIME)] = self._fingerprint(cell)

    def compare_common_rows(self) -> None:
        """Set `l2_common`: L2 on the rows for which every method is valid. Left out are CounterNet, which has its own
        model and therefore its own queries, `unchanged`, which makes no row valid, and positions of the trade-off."""
        others = ("counternet", "counternet+", "unchanged", *SEARCH_VARIANTS, *ANY_YES_VARIANTS)
        fresh = [cell for cell in self.done if cell.method not in others and self.is_fresh(cell)]
        for key in sorted({(cell.data, cell.masked, cell.seed) for cell in fresh}):
            cells = [cell for cell in fresh if (cell.data, cell.masked, cell.seed) == key]
            if not all(self._rows_path(cell).exists() for cell in cells):
                continue
            tables = {cell: pd.read_csv(self._rows_path(cell)) for cell in cells}
            common = np.logical_and.reduce([table["valid"].to_numpy() == 1 for table in tables.values()])
            for cell, table in tables.items():
                self.set(cell, "common_rows", float(common.sum()))
                if common.any():
                    self.set(cell, "l2_common", float(table["l2"].to_numpy()[common].mean()))
        self.write()

    def frame(self) -> pd.DataFrame:
        keys = sorted(self.rows)
        return pd.DataFrame([(*key, self.rows[key]) for key in keys], columns=COLUMNS)

    def write(self) -> None:
        """Write both files, the fingerprints last: if the process is killed in between, a cell is measured again."""
        write_whole(self.out / "benchmark.csv", self.frame().to_csv(index=False).encode())
        lines = [(*key, self.fingerprints[key]) for key in sorted(self.fingerprints)]
        table = pd.DataFrame(lines, columns=FINGERPRINT_COLUMNS)
        write_whole(self.out / "cells.csv", table.to_csv(index=False).encode())


def _read(path: Path, columns: list[str]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each line of a file from an earlier run as (all values but the last, the last value); none without the file."""
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
        raise InputError(f"{error}; {REMEDY}") from None
    except (ValueError, TypeError, OSError) as error:
        raise InputError(f"{path} was not written by `tdce bench` ({error}); {REMEDY}") from None
    yield from ((tuple(values[:-1]), values[-1]) for values in frame.itertuples(index=False, name=None))


def _time_methods(settings: BenchmarkSettings, store: _Store, progress: Progress) -> None:
    """Measure seconds per 100 rows of every method, one after another, in one process on one thread. Variants
    (`search@0`, `wachter+`) are not timed, except `guided+`."""
    timed = [m for m in settings.methods if m == "guided+" or ("@" not in m and "+" not in m and m != "unchanged")]
    cells = [Cell(d, m, "no", 0) for d in settings.data for m in timed]
    todo = [cell for cell in cells if not store.is_fresh(cell, TIME)]
    with one_thread(), progress.bar("times", len(todo)) as bar:
        for d in dict.fromkeys(cell.data for cell in todo):
            bench = Bench(d, 0, settings.rows, settings.out / "fitted")
            for cell in (c for c in todo if c.data == d):
                seconds = bench.seconds(tuned_method(cell.method, d), TIMED_ROWS)
                store.set_time(cell, 100 * seconds / TIMED_ROWS)
                bar.advance(" ".join(map(str, cell)))
            seconds = matrix_product_seconds(bench, TIMED_ROWS)
            store.set(Cell(d, "matrix_products", "no", 0), TIME, 100 * seconds / TIMED_ROWS)
            store.write()


def matrix_product_seconds(bench: Bench, rows: int, steps: int = 50) -> float:
    """Seconds of the matrix products alone that Algorithm 1 needs for this many rows: in each step the denoiser and the
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


def _measurements(todo: list[Cell], settings: BenchmarkSettings) -> Iterator[Measurement]:
    """Measurements in the order in which they finish; the cells of one data set and seed share a process."""
    jobs: dict[tuple[str, int], list[Cell]] = {}
    for cell in todo:
        jobs.setdefault((cell.data, cell.seed), []).append(cell)
    tasks = [(d, seed, settings.rows, cells, settings.out / "fitted") for (d, seed), cells in jobs.items()]
    return stream(measure_cells, tasks, settings.workers)
