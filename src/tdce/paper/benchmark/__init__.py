"""The paper's experiment: data x methods x masks x seeds -> tidy rows -> tables."""

from tdce.paper.benchmark.run import Setting, run
from tdce.paper.benchmark.settings import DATA

__all__ = ["DATA", "Setting", "run"]
