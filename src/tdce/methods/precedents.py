"""Precedents: answers of the search to synthetic rows, which it tries for similar rows as well.

Similar people then get similar advice: what was changed for one is what is tried first for the next.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tdce._core import find_nearest
from tdce.models import Goal
from tdce.schema import Space


class Precedents(NamedTuple):
    """Synthetic rows that do not meet a goal, and the answers that the search gave them."""

    goal: Goal
    x: Tensor  # (p, width)
    x_cf: Tensor  # (p, width)

    def apply(
        self,
        space: Space,
        x: Tensor,  # (n, width)
        free: Tensor,  # (features,) what may be changed
        count: int,
    ) -> Tensor:
        """(n, k, width) rows with what was changed for the nearest precedents, up to `count`."""
        near = find_nearest(x, self.x, min(count, len(self.x)))  # (n, k)
        changed = (space.moved(self.x, self.x_cf) & free)[:, space.owner]  # (p, width)
        return torch.where(changed[near], self.x_cf[near], x[:, None])
