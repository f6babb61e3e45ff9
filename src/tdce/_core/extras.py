"""Optional dependencies: an error that says what to install if one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from tdce._core.errors import InputError

PACKAGES = {"sklearn": "scikit-learn", "prometheus_client": "prometheus-client", "docx": "python-docx"}
"""Modules whose package on PyPI has another name."""


def require_extra(what: str, extra: str, *modules: str) -> None:
    """Raise an error that names the extra to install if one of these modules is missing."""
    for module in modules:
        if find_spec(module) is None:
            package = PACKAGES.get(module, module)
            raise InputError(f"{what} needs {package}; install it with `pip install 'tdce[{extra}]'`")
