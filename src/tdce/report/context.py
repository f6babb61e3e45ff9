"""The origin of an answer as stated in a report: the model, the fit, the file, the population."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tdce.report.histograms import Population

OWN_MODEL = "classifier trained by tdce"  # the model's name if the user gave no model; reports translate it


@dataclass(frozen=True)
class Origin:
    """The file that an explainer was saved to or loaded from."""

    name: str  # without its folder
    sha256: str  # of the file, as `sha256sum` prints it
    written: str  # its modification time, UTC: the file holds no date, so that the same fit gives the same bytes
    size: int = 0  # in bytes


@dataclass(frozen=True)
class Context:
    """Plain values about the explainer that gave an answer."""

    model: str  # the name of the model, for readers
    label: str = ""  # the column it predicts
    classes: int = 0  # number of classes of its first output; 0: it predicts a number
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the method
    fit: Mapping[str, Any] = field(default_factory=dict)  # Explainer.report
    origin: Origin | None = None  # None: it was neither saved nor loaded
    population: Population | None = None
