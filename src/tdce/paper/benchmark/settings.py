"""The settings of each method on each data set, chosen on validation rows (docs/baselines.md and docs/method.md say
how, and from which)."""

from __future__ import annotations

from typing import Any

from tdce.errors import InputError, listing
from tdce.methods import METHODS, Method

DATA = ("lcd", "gmc", "adult", "law")
PRESETS = {"lcd": "paper", "gmc": "paper", "adult": "full", "law": "paper", "german": "full"}

CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
    "tdce": {
        "lcd": {"closeness": 0.0, "confidence": 0.97, "neighbours": 300, "own_share": 0.5, "factors": 2, "spread": 1.2},
        "gmc": {
            "closeness": 0.025,
            "confidence": 0.8,
            "neighbours": 100,
            "own_share": 0.5,
            "factors": 6,
            "spread": 1.8,
        },
        "adult": {"closeness": 0.0, "confidence": 0.95, "neighbours": 200, "spread": 1.8},
        "law": {"closeness": 0.0, "confidence": 0.6, "neighbours": 600, "own_share": 0.7, "spread": 1.15, "pull": 0.9},
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
"""By method, then by data set; the others have the method's defaults."""


def chosen(method: str, data: str) -> Method:
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; known: {listing(METHODS)}")
    return METHODS[method](**CHOSEN.get(method, {}).get(data, {}))
