"""An answer as JSON: values for programs, words for people."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from tdce._core import Floats, Name, check_choice
from tdce.explainer import Answer
from tdce.methods import MOST_REASONS, Line
from tdce.report import Speaker
from tdce.schema import Encoder, Schema
from tdce.serving.json_rows import cells, number, others, records

Audience = Literal["program", "analyst", "applicant"]


def speaker_of(schema: Schema, language: Any = "en", audience: Any = "program") -> Speaker:
    """Who puts an answer into words; in an answer for a program they are such as an applicant may read."""
    audience = check_choice("audience", audience, get_args(Audience))
    return Speaker.of(schema, language, "analyst" if audience == "analyst" else "applicant")


def lines_of(
    answer: Answer, encoder: Encoder, rows: list[dict[str, Any]], speaker: Speaker, audience: Any
) -> list[dict[str, Any]]:
    """One line per row and option; `rows` as they were sent. A program gets all columns, as from `Answer.to_frame` and
    `Answer.changes`; people get only what may be named to them."""
    found, n, whole = answer.explanation, answer.options, audience == "program"
    shown = [name for name in answer.features if whole or speaker.may_name(name)]
    values, far = records(answer.written[shown]), distances(encoder, found.own, found.raw)
    carried, wanted = [others(row, encoder) for row in rows], cells_of(answer.target)
    return [
        {
            "row": r,
            "option": o,
            "status": line.status,
            "target": wanted[r],
            "score_before": line.before,
            "score_after": line.after,
            "plausibility": number(line.plausibility),
            "distance": float(far[r, o]),
            "note": line.note if whole else speaker.note(line),
            "values": values[r * n + o] | carried[r],
            "changes": [_change(speaker, *change) for change in line.changes if change[0] in shown],
            "unnamed": 0 if whole else speaker.unnamed(line),
            "sentence": speaker.sentence(line),
            "letter": speaker.letter(line),
            "typical": speaker.typical(line.plausibility),
            "reasons": _reasons(speaker, line),
        }
        for r, options in enumerate(answer.lines)
        for o, line in enumerate(options)
    ]


def distances(encoder: Encoder, own: Floats, raw: Floats) -> Floats:
    """(rows, options) between the encoded rows, six decimals."""
    x = encoder.embed(own).numpy()
    draws = (encoder.embed(raw[:, j]).numpy() for j in range(raw.shape[1]))
    far = [np.sqrt(np.square(x_cf - x).sum(axis=1)) for x_cf in draws]
    return np.round(np.stack(far, axis=1), 6) if far else np.zeros((len(own), 0))


def cells_of(values: Any) -> list[Any]:
    return cells(pd.Series(list(values), dtype=object))


def _change(speaker: Speaker, feature: Name, before: Any, after: Any) -> dict[str, Any]:
    was, is_now = cells_of([before, after])
    words = speaker.bullet(feature, before, after) if speaker.may_name(feature) else ""
    return {"feature": str(feature), "before": was, "after": is_now, "words": words}


def _reasons(speaker: Speaker, line: Line) -> list[dict[str, Any]]:
    named = [(feature, loss) for feature, loss in line.reasons if speaker.may_name(feature)][:MOST_REASONS]
    said = speaker.reasons(line)
    return [
        {"feature": str(feature), "loss": number(loss), "words": words}
        for (feature, loss), words in zip(named, said, strict=True)
    ]
