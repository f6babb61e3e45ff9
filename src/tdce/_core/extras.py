"""Optional dependencies: an error that says what to install."""

from __future__ import annotations

from importlib.util import find_spec

from tdce._core.errors import InputError

EXTRA = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}
"""The libraries of the extra `tdce[paper]`: by the name of the import, and by the name of the package."""


STUDIO = {"fastapi": "fastapi", "uvicorn": "uvicorn", "prometheus_client": "prometheus-client"}
"""Those of the extra `tdce[studio]`."""


def require_paper(what: str, *modules: str) -> None:
    """An error that says what to install if one of the extra's libraries is missing."""
    for module in modules:
        if find_spec(module) is None:
            raise InputError(f"{what} needs {EXTRA[module]}; install it with `pip install 'tdce[paper]'`")


def require_studio(what: str) -> None:
    """The same for the extra `tdce[studio]`."""
    for module, package in STUDIO.items():
        if find_spec(module) is None:
            raise InputError(f"{what} needs {package}; install it with `pip install 'tdce[studio]'`")


def require_engine(module: str) -> None:
    """An error that says what to install if an engine is missing."""
    if find_spec(module) is None:
        extra = {"ray": "ray", "pyspark": "spark"}[module]
        raise InputError(f"this needs {module}; install it with `pip install 'tdce[{extra}]'`")
