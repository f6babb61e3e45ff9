"""All that a cell's figures depend on, as one short word: if it changes, earlier measurements do not count."""

from __future__ import annotations

import hashlib

from tdce.datasets import SETS
from tdce.explainer import Explainer, evaluation, fitting
from tdce_reproduction.benchmark.settings import PRESETS, columns, tuned_method


def of_fit(data: str, explainer: Explainer) -> str:
    """Of a fitted explainer: the table, its preset and columns, the settings and the edition of `fit`."""
    settings = (explainer.hidden, explainer.tau, explainer.steps, explainer.seed)
    return _word(
        SETS[data].sha256, PRESETS.get(data, "full"), columns(data).without_words().to_json(), settings, fitting.EDITION
    )


def of_cell(data: str, method: str, rows: int, explainer: Explainer) -> str:
    """Of the figures of a method: the fit, the rows, the method's class, settings and edition, and that of the metrics.

    The data set, the method's name, the mask and the seed are not in it: they are the cell's name.
    """
    made = tuned_method(method, data)
    editions = [getattr(part, "edition", None) for part in (made, getattr(made, "method", None))]  # and what it wraps
    return _word(of_fit(data, explainer), rows, made, editions, evaluation.EDITION)


def _word(*parts: object) -> str:
    return "f" + hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
