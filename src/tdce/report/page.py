"""An answer as one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from typing import Any

import pandas as pd

from tdce.report.words import Line, headline, spoken, value

STATUS = {
    "valid": "would be accepted",
    "best_effort": "not reached",
    "already": "already accepted",
    "infeasible": "nothing may change",
}


def page(
    rows: pd.DataFrame,  # the features as the user gave them
    lines: list[list[Line]],  # by row, then by option
    title: str,
) -> str:
    """Every row with its options: the sentence, the changes side by side, the model's probability before and after."""
    from jinja2 import Environment, StrictUndefined  # only here: nobody waits for it who wants no page

    people: list[dict[str, Any]] = []
    for i, label in enumerate(rows.index):
        options = [
            {
                "status": STATUS[line.status],
                "kind": line.status,
                "headline": headline(line),
                "note": "" if line.status == "infeasible" else line.note,  # whose headline has it
                "changes": [(spoken(name), value(before), value(after)) for name, before, after in line.changes],
                "before": line.before,
                "after": line.after,
            }
            for line in lines[i]
        ]
        now = [(spoken(name), value(rows[name].iloc[i])) for name in rows]
        people.append({"label": label, "options": options, "features": now})
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        files("tdce.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    found = Counter(line.status for options in lines for line in options)
    counts = {STATUS[status]: count for status, count in sorted(found.items())}
    return template.render(title=title, people=people, counts=counts)
