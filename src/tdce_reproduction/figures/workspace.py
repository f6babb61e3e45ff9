"""The workspace of the figures: what they are measured on, and where their data are stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tdce._core import InputError, Progress
from tdce.datasets import write_whole
from tdce_reproduction.benchmark.cell import Bench


@dataclass(frozen=True)
class Workspace:
    """The data set, seeds and rows of the figures that need them, and the folders for input and output."""

    out: Path
    data: str = "lcd"
    seeds: int = 5
    rows: int = 1000  # maximum number of queries
    results: Path = Path("results")  # of `tdce bench`: fitted explainers and the data of earlier figures
    fresh: bool = False  # measure again even if earlier data exist
    workers: int = 2
    progress: Progress = field(default_factory=lambda: Progress("silent"))

    def bench(self, seed: int) -> Bench:
        return Bench(self.data, seed, self.rows, self.results / "fitted")

    def earlier(self, name: str, columns: list[str]) -> pd.DataFrame:
        """Earlier data of a figure on the same data set and rows; empty if there are none."""
        known = [folder / f"{name}.csv" for folder in (self.out, self.results / "figures")]
        path = next((path for path in known if path.exists()), None)
        if path is None or self.fresh:
            return pd.DataFrame(columns=columns)
        return self.select(_read(path, columns))

    def select(self, table: pd.DataFrame) -> pd.DataFrame:
        """The lines of this data set, rows and seeds, sorted by seed and temperature."""
        keys = [name for name in ("seed", "tau") if name in table]
        return table[self._belongs(table)].sort_values(keys, kind="stable", ignore_index=True)

    def append(self, table: pd.DataFrame, lines: list[dict[str, Any]]) -> pd.DataFrame:
        """The table with new lines, labelled with the data set and rows."""
        new = pd.DataFrame(lines).assign(data=self.data, rows=self.rows)[list(table.columns)]
        return self.select(pd.concat([table, new]) if len(table) else new)

    def save(self, name: str, table: pd.DataFrame) -> Path:
        """Write the data of a figure; the file keeps its lines of other data sets, rows or seeds."""
        path = self.out / f"{name}.csv"
        if "seed" in table and path.exists():
            before = _read(path, list(table.columns))
            others = before[~self._belongs(before)]
            table = pd.concat([others, table]) if len(others) else table
        write_whole(path, table.to_csv(index=False, float_format="%.6g").encode())
        return path

    def _belongs(self, table: pd.DataFrame) -> pd.Series[bool]:
        return (table["data"] == self.data) & (table["rows"] == self.rows) & (table["seed"] < self.seeds)


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    try:
        return pd.read_csv(path)[columns]
    except (KeyError, ValueError, OSError) as error:  # ValueError: pandas cannot read it
        raise InputError(
            f"{path} was not written by `tdce figures` ({error}); move it away, or name another folder"
        ) from None
