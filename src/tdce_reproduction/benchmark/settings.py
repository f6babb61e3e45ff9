"""Which data and methods the benchmark runs, and the baselines' settings on each data set, chosen on validation rows
(docs/baselines.md says how). `search` has one setting for all data: its defaults, at several positions of its dial."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tdce._core import InputError, listing
from tdce.datasets import load
from tdce.methods import METHODS, Method, Refined
from tdce.schema import Schema

PAPER_DATA = ("lcd", "gmc", "adult", "law")
"""The paper's data sets, in the order of its tables."""

DATA = (*PAPER_DATA, "german")
PRESETS = {"lcd": "paper", "gmc": "paper", "adult": "full", "law": "paper", "german": "full"}

OURS = "search"
DIAL = tuple(f"{OURS}@{closeness:g}" for closeness in (0, 0.25, 0.5, 1))  # besides the default, 0.75
"""`search` from typical of the target class to as close as possible."""

BASELINES = ("wachter", "cchvae", "revise", "clue", "face", "counternet")
"""The paper's."""

WAYS_BACK = tuple(f"{method}+" for method in BASELINES)
"""Each of them with the default method's fallback and way back."""

CHOSEN: dict[str, dict[str, dict[str, Any]]] = {
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


@lru_cache
def columns(data: str) -> Schema:
    """The columns of a data set as the paper knows them: no laws, every value may be proposed, nothing is immutable but
    the mask, which each cell decides."""
    return Schema(tuple(column.plain() for column in load(data, PRESETS.get(data, "full")).schema))


def tuned_method(method: str, data: str) -> Method:
    """A method by name, with its setting for these data: `search@0.25` at that closeness, `wachter+` with the common way
    back after it."""
    if method.endswith("+"):
        return Refined(tuned_method(method[:-1], data))
    name, at, closeness = method.partition("@")
    if name not in METHODS:
        raise InputError(f"there is no method {method!r}; known: {listing(METHODS)}")
    settings = CHOSEN.get(name, {}).get(data, {})
    return METHODS[name](**settings, **_dial(name, closeness)) if at else METHODS[name](**settings)


def _dial(name: str, closeness: str) -> dict[str, float]:
    if not METHODS[name]().has_tradeoff:
        raise InputError(f"{name} has no closeness to set; leave out @{closeness}")
    try:
        return {"closeness": float(closeness)}
    except ValueError:
        raise InputError(f"{name}@{closeness}: what follows the @ must be a number, as in search@0.25") from None
