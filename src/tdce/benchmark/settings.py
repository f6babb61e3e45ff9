"""The settings of each method on each data set, chosen on validation rows (docs/baselines.md says among which)."""

from __future__ import annotations

from typing import Any

from tdce.errors import InputError, listing
from tdce.methods import METHODS, Method

DATA = ("lcd", "gmc", "adult", "law")
PRESETS = {"lcd": "paper", "gmc": "paper", "adult": "full", "law": "paper", "german": "full"}

CHOSEN: dict[str, dict[str, dict[str, Any]]] = {}
"""By method, then by data set; what is not here has the method's defaults."""


def chosen(method: str, data: str) -> Method:
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; known: {listing(METHODS)}")
    return METHODS[method](**CHOSEN.get(method, {}).get(data, {}))
