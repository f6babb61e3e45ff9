"""The paper's experiment: data sets x methods x masks x seeds -> tidy rows -> tables."""

from tdce_reproduction.benchmark.run import BenchmarkSettings, run

__all__ = ["BenchmarkSettings", "run"]
