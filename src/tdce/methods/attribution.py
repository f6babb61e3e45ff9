"""Attribution: what each change of an answer is worth, as the margin lost when it alone is reverted."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, Name, same
from tdce.models import Goals, Oracle, logit
from tdce.schema import ConstraintSet

MOST_REASONS = 4
"""Maximum number of principal reasons of a line, and of points in a letter."""

SURE = -logit(1e-6)  # the margin of a model that is certain, as far as six decimals show


def change_losses(
    oracle: Oracle,
    constraints: ConstraintSet,
    own: Floats,  # (rows, features)
    raw: Floats,  # (rows, options, features)
    goals: Goals,
    before: Floats,  # (rows,) margins of the unchanged rows
    after: Floats,  # (rows, options)
) -> Floats:
    """(rows, options, features) for each changed feature, the margin lost when it alone is reverted; NaN where nothing
    changed, for followers (their loss counts for the features that they follow), and where the query budget does not
    suffice.

    If just one feature changed, the reverted row is the row itself. All others take one call of the model.
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
    """(n,) the margin of scores (n, columns), rounded so that it is the same on every machine; never infinite."""
    return goals.shown_margin(score).nan_to_num(posinf=SURE, neginf=-SURE)


def rank_reasons(reasons: list[tuple[Name, float]]) -> list[tuple[Name, float]]:
    """The reasons by loss, largest first, then those of unknown loss; ties stay in the order of the columns."""
    return sorted(reasons, key=lambda reason: inf if isnan(reason[1]) else -reason[1])
