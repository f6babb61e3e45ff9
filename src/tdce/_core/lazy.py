"""Exports of a package that are imported on first use (PEP 562), so that `import tdce` is fast."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose exports are listed in its stub, `__init__.pyi`.

    The stub is the only list: type checkers read it, and so does this function.
    """
    stub = ast.parse(files(package).joinpath("__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = homes[name]
        return getattr(import_module(module), original)

    names = sorted(homes)
    return load, lambda: list(names), names
