"""The findings of `monitor` as one self-contained HTML page, which loads nothing and treats table contents as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from typing import Any

MEANING = {
    "column": ("Columns", "whether it is there and can be read"),
    "accuracy": ("Accuracy", "share of rows that are wrong now, beyond those in fit"),
    "plausibility": ("Plausibility", "distance of its distribution from that of held-out rows"),
    "law": ("Laws", "share of rows that break the law, beyond those in the learned table"),
    "middle": ("Middles", "shift of the mean, in standard deviations of the learned table"),
    "spread": ("Spreads", "change of the standard deviation, as a share of it"),
    "range": ("Ranges", "share of rows beyond the learned ends"),
    "shares": ("Shares of categories", "share of rows that would have to have another category"),
    "category": ("Unknown categories", "share of rows with a category that was never learned"),
    "missing": ("Missing cells", "share of rows without a value"),
}
"""The title of each check, and what its effect is; in the order of the page."""


def render_drift(drift: Mapping[str, Any], title: str | None = None) -> str:
    """The page of a monitoring, from its JSON."""
    from jinja2 import Environment, StrictUndefined  # slow to import, and only pages need it

    groups = [
        (heading, meaning, [each for each in drift["findings"] if each["check"] == check])
        for check, (heading, meaning) in MEANING.items()
    ]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    changes = [each for each in drift["findings"] if each["changed"]]
    return environment.from_string(files("tdce.report").joinpath("drift.html").read_text(encoding="utf-8")).render(
        title=title, drift=drift, changes=changes, groups=[each for each in groups if each[2]], version=version("tdce"),
        titles={check: heading for check, (heading, _) in MEANING.items()}, number=_number, chance=_chance,
        least=_least,
    )  # fmt: skip


def _least(findings: Sequence[Mapping[str, Any]]) -> str:
    """`0.005`, or `0.005 or 0.15` where columns differ; empty if any effect matters."""
    return " or ".join(f"{value:g}" for value in sorted({each["least"] for each in findings}) if value)


def _number(value: float) -> str:
    return f"{value:.3f}"


def _chance(p: float | None) -> str:
    if p is None:
        return ""
    return "below 1e-12" if p < 1e-12 else f"{p:.1e}" if p < 0.001 else f"{p:.3f}"
