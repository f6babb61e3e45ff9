"""What the figures are measured on, and where that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tdce.benchmark.cell import Bench
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

    @property
    def key(self) -> dict[str, str | int]:
        """In every line of a figure about data, so that nothing measured on something else is taken for it."""
        return {"data": self.data, "rows": self.rows}

    def have(self, name: str) -> pd.DataFrame:
        """What was measured for a figure before, on the same data and rows; empty if nothing was."""
        path = self.out / f"{name}.csv"
        if not path.exists():
            return pd.DataFrame()
        found = pd.read_csv(path)
        return found[(found["data"] == self.data) & (found["rows"] == self.rows)]

    def keep(self, name: str, table: pd.DataFrame) -> Path:
        path = self.out / f"{name}.csv"
        write_whole(path, table.to_csv(index=False, float_format="%.6g").encode())
        return path
