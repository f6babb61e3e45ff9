"""The score curve of each column: the model's output if this value alone were different."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats, round_scores, same
from tdce.explainer import Explainer
from tdce.methods import Question
from tdce.models import Goals, Oracle
from tdce.schema import Categorical, Column, Numeric
from tdce.serving.json_rows import values_to_json
from tdce.serving.lines import make_speaker

CURVE_POINTS = 25  # for a number, besides the person's own value
MAX_CATEGORIES = 40  # shown of a column, the first ones


def score_curves(
    explainer: Explainer, values: pd.DataFrame, question: Question, audience: Any = "program"
) -> dict[str, Any]:
    """For each column that may be named: its values, with the score and the decision for each, other values unchanged.
    The model is queried once."""
    fitted, speaker = explainer.fitted, make_speaker(explainer.schema, "en", audience)
    raw = fitted.encoder.read(values)
    goals = fitted.resolve_goals(question.target, question.threshold, raw)
    shown = [i for i, name in enumerate(explainer.schema.names) if audience == "program" or speaker.may_name(name)]
    columns = [explainer.schema.features[i] for i in shown]
    grids = [_grid(column, float(raw[0, i])) for i, column in zip(shown, columns, strict=True)]
    rows = np.repeat(raw, sum(map(len, grids)), axis=0)  # (points, features)
    starts = np.cumsum([0, *map(len, grids)])
    for i, grid, start in zip(shown, grids, starts, strict=False):
        rows[start : start + len(grid), i] = grid
    decision = Oracle(fitted.model)(rows, Goals(goals.kinds, goals.which.repeat(len(rows))))
    score = round_scores(goals.display_score(decision.score)).tolist()
    met = decision.met.tolist()
    return {
        "curves": [
            {
                "name": str(column.name),
                "values": values_to_json(column.cells(grid)),
                "score": score[start : start + len(grid)],
                "met": met[start : start + len(grid)],
                "own": int(np.flatnonzero(same(grid, np.full(len(grid), raw[0, i])))[0]),
            }
            for i, column, grid, start in zip(shown, columns, grids, starts, strict=False)
        ]
    }


def _grid(column: Column, own: float) -> Floats:
    """Values of a column in order, including the person's own: numbers from end to end on the grid, or all categories,
    up to a limit."""
    if isinstance(column, Numeric):
        low, high = column.bounds
        grid = np.unique(column.round(np.linspace(low, high, CURVE_POINTS)).clip(low, high))
    elif isinstance(column, Categorical):
        positions = {value: float(i) for i, value in enumerate(column.categories)}
        in_order = (*column.order, *(value for value in column.categories if value not in column.order))
        grid = np.array([positions[value] for value in in_order[:MAX_CATEGORIES]])
    else:
        grid = np.array([], dtype=np.float64)
    if same(grid, np.full(len(grid), own)).any():
        return grid
    return np.append(grid, own) if np.isnan(own) or isinstance(column, Categorical) else np.sort(np.append(grid, own))
