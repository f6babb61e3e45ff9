"""An answer as one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from typing import Any

import pandas as pd

from tdce.explanation import Line, Status
from tdce.report.words import headline, spoken, typical, value

STATUS = {
    Status.VALID: "would be accepted",
    Status.BEST_EFFORT: "not reached",
    Status.ALREADY: "already accepted",
    Status.INFEASIBLE: "nothing may change",
}


def page(rows: pd.DataFrame, lines: list[list[Line]], title: str) -> str:
    """Every row (its features) with its options: the sentence, the changes side by side, the model's probability before
    and after, how typical the row would be."""
    from jinja2 import Environment, StrictUndefined  # only here: only a page needs it

    people: list[dict[str, Any]] = []
    for i, (label, options) in enumerate(zip(rows.index, lines, strict=True)):
        now = [(spoken(name), value(rows[name].iloc[i])) for name in rows.columns]
        people.append({"label": label, "options": [_shown(line) for line in options], "features": now})
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        files("tdce.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    counts = Counter(line.status for options in lines for line in options)
    return template.render(
        title=title, people=people, counts={STATUS[Status(name)]: counts[name] for name in sorted(counts)}
    )


def _shown(line: Line) -> dict[str, Any]:
    return {
        "status": STATUS[Status(line.status)],
        "kind": line.status,
        "headline": headline(line),
        "note": "" if line.status == Status.INFEASIBLE else line.note,  # whose headline has it
        "changes": [(spoken(name), value(before), value(after)) for name, before, after in line.changes],
        "before": line.before,
        "after": line.after,
        "number": line.number,
        "typical": typical(line.plausibility),
    }
