"""Which data sets and methods the benchmark runs, and the baselines' settings on each data set.

A plain name is a method as published; with a `+`, its answers are refined like those of `search`. Thus `guided` is one
walk of Algorithm 1, and `guided+` is what `Explainer(method="guided")` gives. The baselines were tuned on validation
rows (docs/baselines.md), and so was `guided`: with one setting for all data sets, its default, and as `guided_tuned`
with one setting for each, as in the paper (docs/paper.md). `search` has its defaults on all data sets; it is run at
several values of `closeness`, with its default safety (`search@0.25`) and without any (`search@0.25@0`). `unchanged`
returns the rows unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tdce._core import InputError, listing, suggest
from tdce.datasets import PUBLISHED_TABLES, PublishedTable, load
from tdce.methods import METHODS, Guided, Method, Refined
from tdce.schema import Schema
from tdce_reproduction.benchmark.unchanged import Unchanged

PAPER_DATA = ("lcd", "gmc", "adult", "law")
"""The paper's data sets, in the order of its tables."""

DATA = (*PAPER_DATA, "adult_9_2", "law_7502", "german")
PRESETS = {
    "lcd": "paper",
    "gmc": "paper",
    "adult": "full",
    "adult_9_2": "paper",
    "law": "paper",
    "law_7502": "paper_size",
    "german": "full",
}
SECOND_PRESETS = {"adult_9_2": "adult", "law_7502": "law"}
"""Data sets that are a second preset of a table: Adult with the paper's 9 numbers and 2 categories instead of 6 and 8,
and LAW with the paper's 7,502 rows instead of balanced classes."""

OURS = "search"
POSITIONS = tuple(k / 20 for k in range(21))
SEARCH_VARIANTS = tuple(f"{OURS}@{closeness:g}" for closeness in POSITIONS)
"""`search` along the trade-off, from plausibility (0) to proximity (1); one search answers all of these positions."""

ANY_YES_VARIANTS = tuple(f"{name}@0" for name in SEARCH_VARIANTS)
"""The same without a wanted safety: any answer that the model accepts, as for methods without safety."""

BASELINES = ("wachter", "cchvae", "revise", "clue", "face", "counternet")
"""The paper's baselines."""

REFINED_METHODS = tuple(f"{method}+" for method in (*BASELINES, "guided"))
"""The baselines and Algorithm 1 followed by the fallback and the refinement of `search`."""

AS_PUBLISHED: dict[str, Callable[..., Method]] = METHODS | {
    "guided": Guided,
    "guided_tuned": Guided,
    "unchanged": Unchanged,
}
"""The methods by their names in the benchmark, without a `+`."""

TUNED_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "wachter": {
        "lcd": {"soften": 0.3},
        "gmc": {"distance": "l2"},
        "law": {"distance": "l2"},
    },
    "cchvae": {
        "lcd": {"candidates": 48},
        "gmc": {"latent": 16},
        "adult": {"candidates": 48},
        "law": {"candidates": 48},
    },
    "revise": {
        "lcd": {"proximity": 0.03},
        "gmc": {"latent": 4},
        "adult": {"proximity": 0.03},
        "law": {"latent": 16},
    },
    "clue": {
        "lcd": {"proximity": 0.03},
        "gmc": {"pull": 3.0},
        "adult": {"pull": 3.0},
        "law": {"pull": 3.0},
    },
    "face": {
        "lcd": {"confidence": 0.75},
        "gmc": {"confidence": 0.75},
        "adult": {"k": 100},
        "law": {"confidence": 0.75},
    },
    "guided_tuned": {
        "lcd": {"guidance": 1.05},
        "adult": {"guidance": 1.1},
        "law": {"guidance": 1.2, "cat_guidance": 1.5, "start": 0.5},
    },
    "counternet": {
        "gmc": {"sees_row": False},
        "adult": {"lambda_3": 0.3},
        "law": {"sees_row": False},
    },
}
"""Settings by method, then by data set; anything else has the method's defaults. A second preset of a table has the
settings of the first."""


def table_name(data: str) -> str:
    """The name of the published table of a data set."""
    return SECOND_PRESETS.get(data, data)


def published_table(data: str) -> PublishedTable:
    return PUBLISHED_TABLES[table_name(data)]


@lru_cache
def plain_schema(data: str) -> Schema:
    """The schema of a data set as in the paper: without laws, restrictions on values and immutable features (the mask
    belongs to the cell)."""
    schema = load(table_name(data), PRESETS.get(data, "full")).schema
    return Schema(tuple(column.unrestricted() for column in schema))


def tuned_method(method: str, data: str) -> Method:
    """A method by name, with its settings for a data set; `search@0.25` sets the closeness, `wachter+` refines. The
    safety that a name asks for (`search@0.25@0`) is part of the question: see `wanted_safety`."""
    wanted_safety(method)
    if method.endswith("+"):
        return METHODS["guided"]() if method == "guided+" else Refined(tuned_method(method[:-1], data))
    name, *at = method.split("@")
    if name not in AS_PUBLISHED:
        raise InputError(f"there is no method {method!r}; {suggest(name, AS_PUBLISHED)}known: {listing(AS_PUBLISHED)}")
    settings = TUNED_SETTINGS.get(name, {}).get(table_name(data), {})
    return AS_PUBLISHED[name](**settings, **(_closeness(name, at[0]) if at else {}))


def wanted_safety(method: str) -> float | None:
    """The safety that a name asks for after its second @, as in `search@0.25@0`; None: the default."""
    _, *at = method.split("@")
    if len(at) < 2:
        return None
    try:
        (wanted,) = map(float, at[1:])
    except ValueError:
        raise InputError(f"the safety in {method} must be one number, as in search@0.25@0") from None
    if not 0 <= wanted < 1:
        raise InputError(f"the safety in {method} must be at least 0 and below 1")
    return wanted


def _closeness(name: str, text: str) -> dict[str, float]:
    if not AS_PUBLISHED[name]().has_tradeoff:
        raise InputError(f"{name} has no closeness to set; leave out @{text}")
    try:
        return {"closeness": float(text)}
    except ValueError:
        raise InputError(f"the closeness in {name}@{text} must be a number, as in search@0.25") from None
