"""Which rows a reported accuracy was measured on: unseen means unseen, or it is not said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

AccuracyRows = Literal["unseen", "learned", "given"]


def accuracy_rows(fit: Mapping[str, Any]) -> AccuracyRows:
    """What `fit` measured the accuracy on: "unseen" rows, which took no part in training; "learned" ones, where the
    table is too small to keep any; or, for a model that was "given", rows that it may have learned."""
    if fit["held_out_loss"]["classifier"] is None:  # nothing was trained here
        return "given"
    return "learned" if fit["test_rows"] == fit["rows"] else "unseen"
