"""The paper's experiment again: data x methods x masks x seeds -> tidy rows -> tables."""

from tdce.benchmark.run import Setting, run
from tdce.benchmark.settings import DATA

__all__ = ["DATA", "Setting", "run"]
