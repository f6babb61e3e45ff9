"""Fingerprints of everything that a measurement depends on; when one changes, earlier measurements are stale."""

from __future__ import annotations

import hashlib

from tdce.explainer import Explainer, evaluation, fitting
from tdce_reproduction.benchmark.settings import (
    ANY_YES_VARIANTS,
    POSITIONS,
    PRESETS,
    SEARCH_VARIANTS,
    plain_schema,
    published_table,
    tuned_method,
    wanted_safety,
)


def fit_fingerprint(data: str, explainer: Explainer) -> str:
    """The fingerprint of a fitted explainer: the table, its preset and schema, the settings, the edition of `fit`."""
    settings = (explainer.hidden, explainer.tau, explainer.steps, explainer.seed)
    schema = plain_schema(data).without_words().to_json()
    return _digest(published_table(data).sha256, PRESETS.get(data, "full"), schema, settings, fitting.EDITION)


def cell_fingerprint(data: str, method: str, rows: int, explainer: Explainer) -> str:
    """The fingerprint of a method's metrics: the fit, the number of rows, the method's class, settings and edition,
    the edition of the metrics, and the wanted safety if it is not the default.

    It leaves out the data set, the method's name, the mask and the seed, which identify the cell.
    """
    tuned = tuned_method(method, data)
    editions = [getattr(part, "edition", None) for part in (tuned, getattr(tuned, "method", None))]  # and what it wraps
    together = (POSITIONS,) if method in SEARCH_VARIANTS + ANY_YES_VARIANTS else ()  # answered by one search
    asked = () if wanted_safety(method) is None else (wanted_safety(method),)
    return _digest(fit_fingerprint(data, explainer), rows, tuned, editions, evaluation.EDITION, *together, *asked)


def _digest(*parts: object) -> str:
    return "f" + hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
