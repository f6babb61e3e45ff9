"""Counterfactual explanations for tables: what would have to be different for a yes."""

from importlib import import_module
from typing import Any

from tdce._core.lazy import attach

_load, _, __all__ = attach(__name__)


def __getattr__(name: str) -> Any:
    """Import a public name or a room on first use, so that `import tdce` loads neither torch nor pandas."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tdce")
    if name in __all__:
        globals()[name] = _load(name)
        return globals()[name]
    try:
        return import_module(f"tdce.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"tdce.{name}":
            raise
        raise AttributeError(f"module 'tdce' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
