"""Principal reasons by the two methods that Regulation B's official commentary names (12 CFR 1002.9(b)(2), comment 5).

A factor counts against an applicant if the model's score rises when this factor alone takes the average or most common
value of a group: of those at or slightly above the passing score (`passing`), or of all applicants (`applicants`).
Factors that cannot change are included, because the model considered them, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import nan
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tdce._core import Flags, Floats, Name, Positions, same
from tdce.methods.attribution import MOST_REASONS, rank_reasons, shown_margin
from tdce.models import Goal, Goals, Oracle
from tdce.schema import Categorical, Encoder, Numeric

ReasonMethod = Literal["way", "passing", "applicants"]
"""By one way to the target, by comparison with those who just pass, or by comparison with all applicants."""

GROUPS: tuple[ReasonMethod, ...] = ("passing", "applicants")
"""The methods that compare an applicant with a group."""

SLIGHTLY_ABOVE = 0.1  # share of those who pass that is nearest to the passing score
FEWEST_PASSING = 20  # minimum number of them, or all if there are fewer
QUERIED_AT_A_TIME = 65_536  # rows queried at a time

Reasons = list[tuple[Name, float]]
"""Features with the margin that each costs, the most important first."""


def group_shortfalls(
    oracle: Oracle,
    encoder: Encoder,
    own: Floats,  # (rows, features)
    goals: Goals,
    refused: Flags,  # (rows,) who does not meet the goal
    people: Floats,  # (m, features) the applicants to compare with
    scores: Tensor,  # (m, columns) the model's scores of them
) -> Floats | None:
    """(2, rows, features) the margin that each feature costs compared with the group's value, by the methods `GROUPS`;
    NaN for rows that meet the goal, and where no applicant passes. None if the query budget does not suffice."""
    values, known = np.full((len(GROUPS), *own.shape), np.nan), np.tile(refused, (len(GROUPS), 1))
    values[1] = typical_values(encoder, people)
    for goal, has_goal in goals.groups():
        passing = just_passing(goal, scores)
        values[0, has_goal.numpy()] = typical_values(encoder, people[passing])
        known[0, has_goal.numpy()] &= len(passing) > 0
    at = np.nonzero(known[..., None] & ~same(values, own))
    _, row, feature = at
    if len(row) + refused.sum() > oracle.remaining:
        return None
    trial = own[row]
    trial[np.arange(len(row)), feature] = values[at]
    shortfall = np.where(known[..., None], 0.0, np.nan) + np.zeros(values.shape)
    margin = np.zeros(len(own))
    margin[refused] = _margins(oracle, own[refused], goals, np.flatnonzero(refused))
    shortfall[at] = _margins(oracle, trial, goals, row) - margin[row]
    return np.round(shortfall, 6) + 0.0  # no -0.0


def _margins(oracle: Oracle, raw: Floats, goals: Goals, row: Positions) -> Floats:
    """(m,) the margins of raw rows (m, features), by the goals of the rows that they belong to."""
    parts = [np.zeros(0)]
    for start in range(0, len(raw), QUERIED_AT_A_TIME):
        some = slice(start, start + QUERIED_AT_A_TIME)
        parts.append(shown_margin(oracle.score(raw[some]), goals.take(torch.from_numpy(row[some]))).numpy())
    return np.concatenate(parts)


def just_passing(goal: Goal, scores: Tensor) -> Positions:
    """The people who meet the goal with the smallest margins: at or slightly above the passing score."""
    met = np.flatnonzero(goal.met(scores).numpy())
    margin = goal.shown_margin(scores[met]).numpy()
    nearest = met[np.argsort(margin, kind="stable")]
    return nearest[: max(FEWEST_PASSING, round(SLIGHTLY_ABOVE * len(met)))]


def typical_values(encoder: Encoder, people: Floats) -> Floats:
    """(features,) the average of each number, on its grid, and the most common category of some people (m, features);
    NaN if there are none. For a number that most of them lack, the most common state: missing, or a mark."""
    typical = np.full(people.shape[1], np.nan)
    for i, (column, values) in enumerate(zip(encoder.schema, people.T, strict=True) if len(people) else ()):
        states = np.isnan(values) | np.isin(values, column.marks)
        if isinstance(column, Numeric) and 2 * states.sum() <= len(values):
            typical[i] = column.round(np.array([values[~states].mean()]))[0]
        else:
            some = values[states] if isinstance(column, Numeric) else values
            if isinstance(column, Categorical) and (some < len(column.categories)).any():
                some = some[~(some >= len(column.categories))]  # rare ones have no name to compare with
            distinct, counts = np.unique(some, return_counts=True)
            typical[i] = distinct[counts.argmax()]
    return typical


def rank_shortfalls(
    shortfall: Floats,  # (features,)
    names: Sequence[Name],
    hidden: Collection[Name] = (),
) -> Reasons:
    """The features that counted against a person, largest shortfall first; none that helped or made no difference."""
    against = [
        (name, float(lost))
        for name, lost in zip(names, shortfall.tolist(), strict=True)
        if lost > 0 and name not in hidden
    ]
    return rank_reasons(against)


class Agreement(NamedTuple):
    """How far two methods agree on the principal reasons of some people."""

    one: ReasonMethod
    other: ReasonMethod
    people: int  # for whom both give a reason
    first: float  # share of them whose first reason is the same; NaN: there are none
    contained: float  # share of them for whom the longer list has all reasons of the shorter
    overlap: float  # mean share of the shorter list that is in the longer


class ReasonsTally:
    """Accumulates, person by person, how far methods agree."""

    def __init__(self) -> None:
        self._sums: dict[tuple[ReasonMethod, ReasonMethod], list[float]] = {}  # people, first, contained, overlap

    def add(self, reasons: Mapping[ReasonMethod, Sequence[Sequence[Any]]]) -> None:
        """Add one person's reasons by each method: features with their losses, the most important first."""
        features = {method: [feature for feature, _ in some[:MOST_REASONS]] for method, some in reasons.items()}
        for pair in combinations(features, 2):
            one, other = (features[method] for method in pair)
            sums = self._sums.setdefault(pair, [0, 0, 0, 0])
            if one and other:
                share = len(set(one) & set(other)) / min(len(one), len(other))
                for i, value in enumerate((1, one[0] == other[0], share == 1, share)):
                    sums[i] += value

    def agreement(self) -> list[Agreement]:
        """The agreement of every two methods."""
        return [
            Agreement(*pair, int(people), *(each / people if people else nan for each in sums))
            for pair, (people, *sums) in self._sums.items()
        ]


def reasons_agreement(reasons: Mapping[ReasonMethod, Sequence[Reasons]]) -> list[Agreement]:
    """The agreement of every two methods, from each method's reasons for the same people in the same order."""
    tally = ReasonsTally()
    tally.add(dict.fromkeys(reasons, ()))  # so that every pair is there, even without people
    for each in zip(*reasons.values(), strict=True):
        tally.add(dict(zip(reasons, each, strict=True)))
    return tally.agreement()
