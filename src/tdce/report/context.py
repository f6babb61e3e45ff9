"""What a report says about where an answer comes from: the model, the fit, the file, the people beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tdce.report.histograms import Population

OWN = "classifier trained by tdce"  # what a model is called that nobody brought; reports have words for it


@dataclass(frozen=True)
class Origin:
    """The file that an explainer was saved to or loaded from."""

    name: str  # without its folder
    sha256: str  # of all its bytes, as `sha256sum` gives it
    written: str  # its modification time, UTC: the file itself has no date, so that the same fit gives the same bytes


@dataclass(frozen=True)
class Context:
    """Plain values about the explainer that gave an answer."""

    model: str  # what decides, for people
    label: str = ""  # what it predicts
    classes: int = 0  # of its first output; 0: a number
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the method
    fit: Mapping[str, Any] = field(default_factory=dict)  # Explainer.report
    origin: Origin | None = None  # None: it was neither saved nor loaded
    population: Population | None = None
