"""“Why not this?”: one row changed by hand, judged as an answer would be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tdce.cells import Floats, same
from tdce.errors import names, optional, texts
from tdce.errors import number as checked_number
from tdce.explainer import Explainer
from tdce.fitting import Fitted
from tdce.goal import STANDOFF, Goals
from tdce.judge import Judge, rounded
from tdce.laws.keeping import Keeping
from tdce.limits import Limits
from tdce.plausibility import plausibility
from tdce.studio.rows import number
from tdce.studio.speaking import cells_of, distances
from tdce.targets import goals_of


def tried(
    explainer: Explainer,
    row: pd.DataFrame,
    other: pd.DataFrame,
    target: Any = None,
    immutable: Any = (),
    rules: Any = (),
    threshold: Any = None,
) -> dict[str, Any]:
    """Score, verdict, plausibility, and what the other values break, of a row that would have them."""
    fitted, rules = explainer.fitted, texts("rules", rules)
    encoder, schema = fitted.encoder, explainer.schema
    limits = Limits.of(encoder, row, names("immutable", immutable), rules)
    own, raw = limits.own, encoder.read(other)
    goals, judge = goals_for(fitted, own, target, threshold), Judge(fitted.model)
    verdict = judge(np.concatenate([own, raw]), Goals(goals.kinds, goals.which.repeat(2)))
    scores = rounded(goals.shown(verdict.score[:1])), rounded(goals.shown(verdict.score[1:]))
    output = fitted.outputs[0]
    said = output.classes[int(output.group(verdict.score[1:])[0])] if output.classes else float(scores[1][0])
    hard = [law for law in schema.laws if law.on and law.hard]
    soft = [law for law in schema.laws if law.on and not law.hard]
    texts_of = [*map(str, hard), *schema.rules, *rules]
    return {
        "score_before": float(scores[0][0]),
        "score_after": float(scores[1][0]),
        "met": bool(verdict.met[1]),
        "prediction": cells_of([said])[0],
        "plausibility": typical_of(fitted, raw, goals, own)[0],
        "distance": float(distances(encoder, own, raw[:, None])[0, 0]),
        "broken": _broken(texts_of, limits.laws, raw, own),
        "unusual": [
            *_broken([*map(str, soft)], Keeping.soft(schema.laws, schema.features), raw, own),
            *encoder.unfamiliar(raw)[0],
        ],
        "not_allowed": _not_allowed(limits, raw),
        "changed": [str(schema.names[i]) for i in np.flatnonzero(~same(raw, own)[0])],
    }


def goals_for(fitted: Fitted, own: Floats, target: Any, threshold: Any) -> Goals:
    """As `Explainer.explain` understands them."""
    threshold = optional("threshold", threshold, checked_number, 0, 1 - 2 * STANDOFF, above=True)
    return goals_of(
        target, threshold, fitted.favourable, fitted.outputs, len(own), lambda: Judge(fitted.model).score(own)
    )


def typical_of(fitted: Fitted, raw: Floats, goals: Goals, own: Floats) -> list[float | None]:
    """How plausible rows are in the class that is wanted for one person."""
    if len(fitted.typical) == 0:
        return [None] * len(raw)
    towards = goals.towards(Judge(fitted.model).score(own)).repeat(len(raw))
    return [number(p) for p in plausibility(fitted.encoder, fitted.diffusion, fitted.typical, raw, towards)]


def _broken(sentences: list[str], laws: Keeping, raw: Floats, own: Floats) -> list[str]:
    return [text for text, broken in zip(sentences, laws.broken(raw, own)[0], strict=True) if broken]


def _not_allowed(limits: Limits, raw: Floats) -> list[str]:
    """Which of the changed values no answer would have."""
    said = []
    for i, (choices, learned) in enumerate(zip(limits.choices, limits.columns, strict=True)):
        column = learned.column
        if same(raw[:, i], limits.own[:, i])[0]:
            continue
        if column.immutable:
            said.append(f"{column.name} may not change")
        elif not choices.allows(raw[:, i])[0]:
            value = column.cells(raw[:, i])[0]
            said.append(f"{column.name} may not be {'missing' if value is None else value}: {column.describe()}")
    return said
