"""Which rows a reported accuracy was measured on, so that only rows not seen in training are called unseen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

AccuracyRows = Literal["unseen", "learned", "given"]


def accuracy_rows(fit: Mapping[str, Any]) -> AccuracyRows:
    """The rows on which `fit` measured the accuracy: "unseen" rows, held out from training; "learned" ones, if the
    table is too small to hold any out; or, for a "given" model, rows that it may have learned."""
    if fit["held_out_loss"]["classifier"] is None:  # nothing was trained here
        return "given"
    return "learned" if fit["test_rows"] == fit["rows"] else "unseen"
