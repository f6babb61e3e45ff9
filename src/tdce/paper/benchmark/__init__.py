"""The paper's experiment: data x methods x masks x seeds -> tidy rows -> tables."""

from tdce.paper.benchmark.run import Setting, run

__all__ = ["Setting", "run"]
