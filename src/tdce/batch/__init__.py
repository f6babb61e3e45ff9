"""Any number of rows: blocks, shards and checkpoints of a long run, a pool of worker processes, Ray and Spark."""

from importlib import import_module
from typing import Any

from tdce._core.lazy import attach

_load, __dir__, __all__ = attach(__name__)


def __getattr__(name: str) -> Any:
    """Import an export, or the module of an engine, on first use."""
    return import_module(f"{__name__}.{name}") if name in ("ray", "spark") else _load(name)
