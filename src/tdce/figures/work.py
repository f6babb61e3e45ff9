"""What the figures are measured on, and where that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tdce.benchmark.cell import Bench
from tdce.errors import InputError
from tdce.progress import Progress
from tdce.tables import write_whole


@dataclass(frozen=True)
class Work:
    """The data set, seeds and rows of the figures that are about data, and where everything goes."""

    out: Path
    data: str = "lcd"
    seeds: int = 5
    rows: int = 1000  # queries at most
    fitted: Path = Path("results/fitted")  # explainers that `tdce bench` has fitted; those missing are fitted and kept
    workers: int = 2
    progress: Progress = field(default_factory=lambda: Progress("silent"))

    def bench(self, seed: int) -> Bench:
        return Bench(self.data, seed, self.rows, self.fitted)

    def have(self, name: str, columns: list[str]) -> pd.DataFrame:
        """What was measured for a figure before, on the same data and rows; empty if nothing was."""
        path = self.out / f"{name}.csv"
        if not path.exists():
            return pd.DataFrame(columns=columns)
        try:
            found = pd.read_csv(path)[columns]
        except (KeyError, ValueError) as error:  # ValueError: pandas cannot read it
            raise InputError(
                f"{path} is not what this command writes ({error}); move it away, or name another folder"
            ) from None
        return _ordered(found[(found["data"] == self.data) & (found["rows"] == self.rows)])

    def more(self, table: pd.DataFrame, lines: list[dict[str, Any]]) -> pd.DataFrame:
        """The table with these lines too, marked with what they were measured on."""
        found = pd.DataFrame(lines).assign(data=self.data, rows=self.rows)[list(table.columns)]
        return _ordered(pd.concat([table, found]) if len(table) else found)

    def keep(self, name: str, table: pd.DataFrame) -> Path:
        path = self.out / f"{name}.csv"
        write_whole(path, table.to_csv(index=False, float_format="%.6g").encode())
        return path


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    """By seed and temperature, whatever the order in which the processes came to their ends."""
    keys = [name for name in ("seed", "tau") if name in table]
    return table.sort_values(keys, kind="stable", ignore_index=True)
