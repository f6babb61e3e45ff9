"""The score of one row along one feature, and where the decision flips."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from tdce._core import Flags, Floats, InputError, Name, is_name, listing, round_scores, same, show, suggest
from tdce.explainer.fitted import Fitted
from tdce.models import Goals, Oracle
from tdce.report import Curve, Speaker
from tdce.schema import FeasibleSet, Numeric

POINTS = 120  # number of values for a numeric feature


def score_curve(fitted: Fitted, row: pd.DataFrame, feature: Name, goals: Goals) -> Curve:
    """The score for each value of this feature: every category, or numbers from the table's lowest to its highest. The
    feature's followers are recomputed. Numbers are bisected until the decision flips between neighbours on the grid."""
    schema = fitted.encoder.schema
    if not is_name(feature) or feature not in schema.names:
        raise InputError(
            f"there is no feature {show(feature)}; {suggest(feature, schema.names)}known: {listing(schema.names)}"
        )
    c = schema.names.index(feature)
    feasible = FeasibleSet.of(fitted.encoder, row)
    own, column, oracle = feasible.own, feasible.columns[c].column, Oracle(fitted.model)

    def decide(values: Floats) -> tuple[Floats, Flags]:
        raw, same_goal = np.repeat(own, len(values), axis=0), goals.take(torch.zeros(len(values), dtype=torch.long))
        raw[:, c] = values
        score = oracle.score(feasible.constraints.follow(raw, np.repeat(own, len(values), axis=0)))
        return round_scores(same_goal.display_score(score)).numpy(), same_goal.met(score).numpy()

    if isinstance(column, Numeric):
        values = _numbers(column, own[0, c])
        score, met = decide(values)
        flips = tuple(
            _bisect(column, values[i], values[i + 1], bool(met[i]), decide) for i in np.flatnonzero(met[1:] != met[:-1])
        )
        shown: Floats | list[str] = values
    else:
        values = np.arange(column.bounds[0], column.bounds[1] + 1)
        score, met = decide(values)
        speaker = Speaker.of(schema, audience="analyst")
        shown, flips = [speaker.value(feature, cell) for cell in column.cells(values)], ()
    at = np.flatnonzero(same(values, np.full(len(values), own[0, c])))
    allowed = np.array(
        [feasible.allows(c, values[i : i + 1], np.zeros(1, dtype=np.int64))[0] for i in range(len(values))]
    )
    allowed[at] = True
    if c in feasible.constraints.followers:
        allowed[:] = np.arange(len(values)) == (at[0] if len(at) else -1)
    return Curve(shown, score, met, allowed, int(at[0]) if len(at) else -1, flips)


def _numbers(column: Numeric, own: float) -> Floats:
    """Numbers from the lowest to the highest, on the grid, with the row's own among them."""
    every = [column.low, column.high] if np.isnan(own) or own in column.marks else [column.low, column.high, own]
    grid = np.array(column.levels) if column.levels is not None else np.linspace(min(every), max(every), POINTS)
    values = np.unique(np.concatenate([column.round(grid), every]))
    return values[~np.isin(values, column.marks)]


def _bisect(
    column: Numeric, low: float, high: float, met: bool, decide: Callable[[Floats], tuple[Floats, Flags]]
) -> float:
    """The number with the wanted decision whose neighbour on the grid does not have it; `met`: whether `low` has it
    (else `high` has)."""
    while low < (middle := float(column.round(np.array([(low + high) / 2]))[0])) < high:
        if bool(decide(np.array([middle]))[1][0]) == met:
            low = middle
        else:
            high = middle
    return float(low if met else high)
