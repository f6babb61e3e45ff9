"""An answer as JSON: values for programs, words for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from tdce.answer import Answer
from tdce.cells import Floats
from tdce.encoder import Encoder
from tdce.report.words import bullet, sentence, spoken
from tdce.studio.rows import cells, number, others, records


def lines_of(answer: Answer, encoder: Encoder, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per row and option, as `Answer.to_frame` has them; `rows` as they were sent."""
    found, n = answer.found, answer.options
    values, far = records(answer.written[list(answer.features)]), distances(encoder, found.own, found.raw)
    carried = [others(row, encoder) for row in rows]
    wanted = cells_of(answer.target)
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
            "note": line.note,
            "values": values[r * n + o] | carried[r],
            "changes": [_change(*change) for change in line.changes],
            "sentence": sentence(line),
            "reasons": [],
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
    import pandas as pd

    return cells(pd.Series(list(values), dtype=object))


def _change(feature: Any, before: Any, after: Any) -> dict[str, Any]:
    was, is_now = cells_of([before, after])
    words = bullet(feature, before, after)
    return {"feature": str(feature), "label": spoken(feature), "before": was, "after": is_now, "words": words}
