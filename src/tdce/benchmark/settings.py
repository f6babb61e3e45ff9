"""The settings of each method on each data set, chosen on validation rows (docs/baselines.md says among which)."""

from __future__ import annotations

from typing import Any

from tdce.errors import InputError, listing
from tdce.methods import METHODS, Method

DATA = ("lcd", "gmc", "adult", "law")
PRESETS = {"lcd": "paper", "gmc": "paper", "adult": "full", "law": "paper", "german": "full"}

CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "tdce": {
        "lcd": {"start": 0.5, "guidance": 5.0, "proximity": 3.0},
        "gmc": {"guidance": 20.0, "proximity": 6.0},
        "law": {"start": 0.2, "guidance": 15.0},
    },
    "wachter": {
        "lcd": {"soften": 0.3},
        "gmc": {"distance": "l2"},
        "adult": {"distance": "l2"},
        "law": {"distance": "l2"},
    },
    "cchvae": {
        "lcd": {"candidates": 48},
        "gmc": {"width": 0.25, "rings": 32},
        "adult": {"width": 0.25, "rings": 32},
        "law": {"candidates": 48},
    },
    "revise": {
        "gmc": {"latent": 4},
        "adult": {"proximity": 0.03},
    },
    "clue": {
        "lcd": {"proximity": 0.03},
        "gmc": {"pull": 3.0},
        "adult": {"pull": 3.0},
        "law": {"pull": 3.0},
    },
    "face": {
        "lcd": {"confidence": 0.75},
        "adult": {"k": 100},
        "law": {"confidence": 0.75},
    },
    "counternet": {
        "gmc": {"sees_row": False},
        "adult": {"lambda_3": 0.3},
        "law": {"sees_row": False},
    },
}
"""By method, then by data set; what is not here has the method's defaults."""


def chosen(method: str, data: str) -> Method:
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; known: {listing(METHODS)}")
    return METHODS[method](**CHOSEN.get(method, {}).get(data, {}))
