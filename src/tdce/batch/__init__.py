"""Any number of rows: blocks, shards and checkpoints of a long run, a pool of worker processes, Ray and Spark."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
