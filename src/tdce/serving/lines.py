"""An answer as JSON: values for programs, sentences for people."""

from __future__ import annotations

from typing import Any, Literal, get_args

from tdce._core import Name, check_choice
from tdce.explainer import Answer
from tdce.methods import MOST_REASONS, Line
from tdce.report import Speaker
from tdce.schema import Encoder, Schema
from tdce.serving.json_rows import frame_to_json, number_to_json, pass_through_cells, values_to_json

Audience = Literal["program", "analyst", "applicant"]


def make_speaker(schema: Schema, language: Any = "en", audience: Any = "program") -> Speaker:
    """The speaker for an audience; a program gets the sentences that an applicant may read."""
    audience = check_choice("audience", audience, get_args(Audience))
    return Speaker.of(schema, language, "analyst" if audience == "analyst" else "applicant")


def answer_to_json(
    answer: Answer, encoder: Encoder, rows: list[dict[str, Any]], speaker: Speaker, audience: Any
) -> list[dict[str, Any]]:
    """One line per row and option; `rows` are as sent. A program gets all columns, as from `Answer.to_frame` and
    `Answer.changes`; people get only what may be named to them."""
    explanation, n, whole = answer.explanation, answer.options, audience == "program"
    shown = [name for name in answer.features if whole or speaker.may_name(name)]
    values, far = frame_to_json(answer.written[shown]), explanation.distance
    passed, wanted = [pass_through_cells(row, encoder) for row in rows], values_to_json(answer.target)
    return [
        {
            "row": r,
            "option": o,
            "status": line.status,
            "target": wanted[r],
            "score_before": line.before,
            "score_after": line.after,
            "plausibility": number_to_json(line.plausibility),
            "safety": number_to_json(line.safety),
            "distance": float(far[r, o]),
            "note": line.note if whole else speaker.note(line),
            "values": values[r * n + o] | passed[r],
            "changes": [_change(speaker, *change) for change in line.changes if change[0] in shown],
            "unnamed": 0 if whole else speaker.unnamed(line),
            "sentence": speaker.sentence(line),
            "letter": speaker.letter(line),
            "typical": speaker.standing(line),
            "reasons": _reasons(speaker, line),
        }
        for r, options in enumerate(answer.lines)
        for o, line in enumerate(options)
    ]


def _change(speaker: Speaker, feature: Name, before: Any, after: Any) -> dict[str, Any]:
    old, new = values_to_json([before, after])
    words = speaker.bullet(feature, before, after) if speaker.may_name(feature) else ""
    return {"feature": str(feature), "before": old, "after": new, "words": words}


def _reasons(speaker: Speaker, line: Line) -> list[dict[str, Any]]:
    named = [(feature, loss) for feature, loss in line.reasons if speaker.may_name(feature)][:MOST_REASONS]
    texts = speaker.reasons(line)
    return [
        {"feature": str(feature), "loss": number_to_json(loss), "words": words}
        for (feature, loss), words in zip(named, texts, strict=True)
    ]
