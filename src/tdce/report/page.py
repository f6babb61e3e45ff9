"""An answer as one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tdce.report.words import headline, spoken, value

if TYPE_CHECKING:
    from tdce.answer import Answer

STATUS = {
    "valid": "would be accepted",
    "best_effort": "not reached",
    "already": "already accepted",
    "infeasible": "nothing may change",
}


def page(answer: Answer, title: str) -> str:
    """Every row with its options: the sentence, the changes side by side, the model's probability before and after."""
    from jinja2 import Environment, StrictUndefined  # only here: nobody waits for it who wants no page

    people: list[dict[str, Any]] = []
    for i, (label, lines) in enumerate(zip(answer.rows.index, answer.lines(), strict=True)):
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
            for line in lines
        ]
        now = [(spoken(n), value(answer.rows[n].iloc[i])) for n in answer.encoder.schema.names]
        people.append({"label": label, "options": options, "features": now})
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        files("tdce.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    counts = {STATUS[k]: v for k, v in answer.counts().items()}
    return template.render(title=title, people=people, counts=counts)
