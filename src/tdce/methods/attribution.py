"""What each change of an answer is worth: the margin that is lost when it alone is given back."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, Name, same
from tdce.models import Goals, Oracle, logit
from tdce.schema import ConstraintSet

MOST_REASONS = 4
"""Principal reasons of one line, and points in a letter."""

SURE = -logit(1e-6)  # the margin of a model that is certain, as far as six decimals show


def change_losses(
    oracle: Oracle,
    constraints: ConstraintSet,
    own: Floats,  # (rows, features)
    raw: Floats,  # (rows, options, features)
    goals: Goals,
    before: Floats,  # (rows,) margins of the rows as they are
    after: Floats,  # (rows, options)
) -> Floats:
    """(rows, options, features): of each changed feature, the margin to the goal that is lost with the row's own value
    in it and all other changes kept; NaN where nothing changed, where a feature follows others (then it is their loss),
    or where the budget does not suffice to ask.

    Where just one feature changed, the row without it is the row as it is. All others are one call of the model.
    """
    lost, changed = np.full(raw.shape, np.nan), ~same(raw, own[:, None])
    changed[:, :, constraints.followers] = False
    alone = changed & (changed.sum(axis=2, keepdims=True) == 1)
    row, option, _ = np.nonzero(alone)
    lost[alone] = after[row, option] - before[row]
    several = changed & ~alone
    row, option, feature = np.nonzero(several)
    if 0 < len(row) <= oracle.remaining:
        back = raw[row, option]
        back[np.arange(len(row)), feature] = own[row, feature]
        back = constraints.follow(back, own[row])
        lost[several] = after[row, option] - shown_margin(oracle.score(back), goals.take(torch.from_numpy(row))).numpy()
    return np.round(lost, 6) + 0.0  # no -0.0


def shown_margin(score: Tensor, goals: Goals) -> Tensor:
    """(n,) the margin of scores (n, columns), without another machine's last bits; never infinite."""
    return goals.shown_margin(score).nan_to_num(posinf=SURE, neginf=-SURE)


def rank_reasons(reasons: list[tuple[Name, float]]) -> list[tuple[Name, float]]:
    """The largest loss first; ties, and then those that were not asked about, stay in the order of the columns."""
    return sorted(reasons, key=lambda reason: inf if isnan(reason[1]) else -reason[1])
