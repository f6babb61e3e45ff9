"""What the figures are measured on, and where that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tdce._core import InputError, Progress
from tdce.datasets import write_whole
from tdce_reproduction.benchmark.cell import Bench


@dataclass(frozen=True)
class Work:
    """The data set, seeds and rows of the figures that are about data, and where everything goes."""

    out: Path
    data: str = "lcd"
    seeds: int = 5
    rows: int = 1000  # queries at most
    results: Path = Path("results")  # of `tdce bench`: its fitted explainers, and what was measured for figures before
    fresh: bool = False  # measure again, whatever was measured before
    workers: int = 2
    progress: Progress = field(default_factory=lambda: Progress("silent"))

    def bench(self, seed: int) -> Bench:
        return Bench(self.data, seed, self.rows, self.results / "fitted")

    def have(self, name: str, columns: list[str]) -> pd.DataFrame:
        """What was measured for a figure before, on the same data and rows; empty if nothing was."""
        known = [folder / f"{name}.csv" for folder in (self.out, self.results / "figures")]
        path = next((path for path in known if path.exists()), None)
        if path is None or self.fresh:
            return pd.DataFrame(columns=columns)
        return self.ours(_read(path, columns))

    def ours(self, table: pd.DataFrame) -> pd.DataFrame:
        """The lines of this data set, rows and seeds, by seed and temperature."""
        keys = [name for name in ("seed", "tau") if name in table]
        return table[self._is_ours(table)].sort_values(keys, kind="stable", ignore_index=True)

    def more(self, table: pd.DataFrame, lines: list[dict[str, Any]]) -> pd.DataFrame:
        """The table with these lines too, marked with what they were measured on."""
        found = pd.DataFrame(lines).assign(data=self.data, rows=self.rows)[list(table.columns)]
        return self.ours(pd.concat([table, found]) if len(table) else found)

    def keep(self, name: str, table: pd.DataFrame) -> Path:
        """Write what was measured; lines of other data, rows or seeds that the file has are kept."""
        path = self.out / f"{name}.csv"
        if "seed" in table and path.exists():
            before = _read(path, list(table.columns))
            others = before[~self._is_ours(before)]
            table = pd.concat([others, table]) if len(others) else table
        write_whole(path, table.to_csv(index=False, float_format="%.6g").encode())
        return path

    def _is_ours(self, table: pd.DataFrame) -> pd.Series[bool]:
        return (table["data"] == self.data) & (table["rows"] == self.rows) & (table["seed"] < self.seeds)


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    try:
        return pd.read_csv(path)[columns]
    except (KeyError, ValueError, OSError) as error:  # ValueError: pandas cannot read it
        raise InputError(
            f"{path} is not what this command writes ({error}); move it away, or name another folder"
        ) from None
