"""Which data sets and methods the benchmark runs, and the baselines' settings on each data set.

The baselines were tuned on validation rows (docs/baselines.md). `search` has its defaults on all data sets; it is run
at several values of `closeness`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tdce._core import InputError, listing, suggest
from tdce.datasets import load
from tdce.methods import METHODS, Method, Refined
from tdce.schema import Schema

PAPER_DATA = ("lcd", "gmc", "adult", "law")
"""The paper's data sets, in the order of its tables."""

DATA = (*PAPER_DATA, "german")
PRESETS = {"lcd": "paper", "gmc": "paper", "adult": "full", "law": "paper", "german": "full"}

OURS = "search"
SEARCH_VARIANTS = tuple(f"{OURS}@{closeness:g}" for closeness in (0, 0.25, 0.5, 1))  # the default is 0.75
"""`search` at other values of closeness, from plausibility (0) to proximity (1)."""

BASELINES = ("wachter", "cchvae", "revise", "clue", "face", "counternet")
"""The paper's baselines."""

REFINED_BASELINES = tuple(f"{method}+" for method in BASELINES)
"""The baselines followed by the fallback and the refinement of `search`."""

TUNED_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
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
"""By method, then by data set; what is not listed has the method's defaults."""


@lru_cache
def plain_schema(data: str) -> Schema:
    """The schema of a data set as in the paper: no laws, no restrictions on values, and no immutable feature (the mask
    is a property of the cell)."""
    return Schema(tuple(column.unrestricted() for column in load(data, PRESETS.get(data, "full")).schema))


def tuned_method(method: str, data: str) -> Method:
    """A method by name with its settings for a data set; `search@0.25` sets the closeness, `wachter+` refines."""
    if method.endswith("+"):
        return Refined(tuned_method(method[:-1], data))
    name, at, closeness = method.partition("@")
    if name not in METHODS:
        raise InputError(f"there is no method {method!r}; {suggest(name, METHODS)}known: {listing(METHODS)}")
    settings = TUNED_SETTINGS.get(name, {}).get(data, {})
    return METHODS[name](**settings, **_closeness(name, closeness)) if at else METHODS[name](**settings)


def _closeness(name: str, text: str) -> dict[str, float]:
    if not METHODS[name]().has_tradeoff:
        raise InputError(f"{name} has no closeness to set; leave out @{text}")
    try:
        return {"closeness": float(text)}
    except ValueError:
        raise InputError(f"the closeness in {name}@{text} must be a number, as in search@0.25") from None
