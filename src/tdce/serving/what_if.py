"""“Why not this?”: check a row changed by hand the way an answer is checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from tdce._core import Floats, Name, round_scores, same
from tdce.diffusion import rate_plausibility
from tdce.explainer import Explainer, Fitted
from tdce.methods import Question, measure_distance
from tdce.models import Goals, Oracle
from tdce.report import PlainNames, Speaker, SpokenNames, mentions, note_text
from tdce.schema import ConstraintSet, Encoder, FeasibleSet
from tdce.serving.descriptions import describe_column
from tdce.serving.json_rows import number_to_json, values_to_json
from tdce.serving.lines import make_speaker


def what_if(
    explainer: Explainer,
    row: pd.DataFrame,
    other: pd.DataFrame,
    question: Question,
    audience: Any = "program",
    language: Any = "en",
) -> dict[str, Any]:
    """The score, decision and plausibility of a row with other values, and the constraints that these break."""
    speaker, whole = make_speaker(explainer.schema, language, audience), audience == "program"
    barred = () if whole else [name for name in explainer.schema.names if not speaker.may_name(name)]
    fitted = explainer.fitted
    encoder, schema = fitted.encoder, explainer.schema
    feasible = FeasibleSet.of(encoder, row, question.immutable, question.rules)
    own, raw = feasible.own, encoder.read(other)
    goals = fitted.resolve_goals(question.target, question.threshold, own)
    decision = Oracle(fitted.model)(np.concatenate([own, raw]), Goals(goals.kinds, goals.which.repeat(2)))
    before, after = (round_scores(goals.display_score(each)) for each in (decision.score[:1], decision.score[1:]))
    output = fitted.outputs[0]
    prediction = output.classes[int(output.group(decision.score[1:])[0])] if output.classes else float(after[0])
    hard = [law for law in schema.laws if law.on and law.hard]
    soft = [law for law in schema.laws if law.on and not law.hard]
    soft_laws = ConstraintSet.soft(schema.laws, schema.features)
    sentences = [*map(str, hard), *schema.rules, *question.rules]
    return {
        "score_before": float(before[0]),
        "score_after": float(after[0]),
        "met": bool(decision.met[1]),
        "prediction": values_to_json([prediction])[0],
        "plausibility": rate_rows(fitted, raw, goals, own)[0],
        "distance": float(measure_distance(fitted.task(), feasible.x, raw[:, None], schema.costs)[0, 0]),
        "broken": _hide_barred(_broken_constraints(sentences, feasible.constraints, raw, own), barred, speaker),
        "unusual": _hide_barred([*_broken_constraints([*map(str, soft)], soft_laws, raw, own),
                                 *_unfamiliar(encoder, raw, speaker, whole)], barred, speaker),
        "not_allowed": _not_allowed(feasible, raw, speaker, whole),
        "changed": [str(schema.names[i]) for i in np.flatnonzero(~same(raw, own)[0])
                    if schema.names[i] not in barred],
    }  # fmt: skip


def rate_rows(fitted: Fitted, raw: Floats, goals: Goals, own: Floats) -> list[float | None]:
    """The plausibility of rows within one person's target class."""
    if len(fitted.energy_quantiles) == 0:
        return [None] * len(raw)
    target_class = goals.target_class(Oracle(fitted.model).score(own)).repeat(len(raw))
    return [
        number_to_json(p)
        for p in rate_plausibility(fitted.encoder, fitted.diffusion, fitted.energy_quantiles, raw, target_class)
    ]


def _hide_barred(sentences: list[str], barred: Iterable[Name], speaker: Speaker) -> list[str]:
    """Laws and rules without those that name a barred column; one sentence says if some are left out."""
    kept = [text for text in sentences if not any(mentions(text, str(name)) for name in barred)]
    return kept if len(kept) == len(sentences) else [*kept, speaker.text("unnamed_rule")]


def _unfamiliar(encoder: Encoder, raw: Floats, speaker: Speaker, whole: bool) -> list[str]:
    """Notes on values not seen in fit; programs get plain column names."""
    notes = encoder.unfamiliar(raw)[0]
    if whole:
        return [note_text((note,), speaker.messages, PlainNames(())) for note in notes]
    return [text for note in notes if (text := note_text((note,), speaker.messages, SpokenNames(speaker)))]


def _broken_constraints(sentences: list[str], laws: ConstraintSet, raw: Floats, own: Floats) -> list[str]:
    """The sentences of the constraints that a row breaks."""
    return [text for text, broken in zip(sentences, laws.broken(raw, own)[0], strict=True) if broken]


def _not_allowed(feasible: FeasibleSet, raw: Floats, speaker: Speaker, whole: bool) -> list[str]:
    """Sentences about changed values that no answer may have."""
    sentences, hidden = [], False
    for i, (choices, learned) in enumerate(zip(feasible.allowed_values, feasible.columns, strict=True)):
        column, own = learned.column, feasible.own[:, i]
        if same(raw[:, i], own)[0] or not (column.immutable or not choices.allows(raw[:, i])[0]):
            continue
        if not (whole or speaker.may_name(column.name)):
            hidden = True
            continue
        name, value = column.name if whole else speaker.title(column.name), column.cells(raw[:, i])[0]
        places = {"column": name, "known": describe_column(column, speaker)}
        if column.immutable:
            sentences.append(speaker.text("studio_may_not_change", column=name))
        elif value is None:
            sentences.append(speaker.text("studio_may_not_be_missing", **places))
        else:
            sentences.append(speaker.text("studio_may_not_be", value=speaker.value(column.name, value), **places))
    return [*sentences, speaker.text("unnamed_rule")] if hidden else sentences
