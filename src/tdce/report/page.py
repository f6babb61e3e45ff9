"""An answer as one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files
from typing import Any

import pandas as pd

from tdce.explanation import Line, Status
from tdce.words.speaker import Speaker


def page(rows: pd.DataFrame, lines: list[list[Line]], speaker: Speaker, title: str | None = None) -> str:
    """Every row (its features) with its options: the sentence, the changes side by side, the model's probability before
    and after, how typical the row would be."""
    from jinja2 import Environment, StrictUndefined  # only here: only a page needs it

    people: list[dict[str, Any]] = []
    shown = [name for name in rows.columns if speaker.may_name(name)]
    for i, (label, options) in enumerate(zip(rows.index, lines, strict=True)):
        now = [(speaker.title(name), speaker.value(name, rows[name].iloc[i])) for name in shown]
        people.append({"label": label, "options": [_shown(line, speaker) for line in options], "features": now})
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        files("tdce.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    counts = Counter(line.status for options in lines for line in options)
    return template.render(
        title=title or speaker.text("page_title"),
        people=people,
        counts={speaker.status(name): counts[name] for name in sorted(counts)},
        say=speaker.text,
        percent=lambda share: speaker.score(share, False),
        language=speaker.language,
    )


def _shown(line: Line, speaker: Speaker) -> dict[str, Any]:
    named = speaker.changes(line)
    hidden = speaker.unnamed(line)
    return {
        "status": speaker.status(line.status),
        "kind": line.status,
        "headline": speaker.headline(line),
        "note": "" if line.status == Status.INFEASIBLE else speaker.note(line),  # whose headline has it
        "changes": [
            (speaker.title(name), speaker.value(name, old), speaker.value(name, new)) for name, old, new in named
        ],
        "unnamed": speaker.text("unnamed_too" if named else "unnamed_alone", count=hidden) if hidden else "",
        "before": line.before,
        "after": line.after,
        "number": line.number,
        "typical": speaker.typical(line.plausibility),
    }
