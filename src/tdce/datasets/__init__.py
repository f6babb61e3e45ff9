"""Tables from outside: the public data sets, files in CSV and Parquet, and tables that are read in chunks."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
