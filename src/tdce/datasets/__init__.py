"""Tables from outside: the public data sets, CSV and Parquet files, and tables that are read in chunks."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
