"""Precedents: answers of the search to synthetic rows, whose changes it tries for similar rows.

Similar people then get similar advice: changes that helped one are tried first for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tdce._core import find_nearest
from tdce.models import Goal
from tdce.schema import Space

PRECEDENT_POSITIONS = (0.5, 0.75, 1.0)  # of the trade-off, at which synthetic rows are answered


class Precedents(NamedTuple):
    """Synthetic rows that do not meet a goal, and the answers that the search gave them at several positions."""

    goal: Goal
    x: Tensor  # (p, width)
    x_cf: Tensor  # (p, positions, width)
    energy: Tensor  # (p, positions) the energy of an answer minus that of its row

    def apply(
        self,
        space: Space,
        x: Tensor,  # (n, width)
        free: Tensor,  # (features,) which may be changed
        counts: Sequence[int],  # number of nearest precedents, for each position
    ) -> tuple[Tensor, Tensor]:
        """(n, k, width) rows with the changes of their nearest precedents, and (n, k) the energy these added there."""
        near = find_nearest(x, self.x, min(max(counts), len(self.x)))  # (n, nearest)
        which = torch.cat([near[:, :count] for count in counts], dim=1)  # (n, k)
        position = torch.cat([torch.full((near[:, :count].shape[1],), i) for i, count in enumerate(counts)])
        x_cf = self.x_cf[which, position]
        changed = (space.moved(self.x[which].flatten(0, 1), x_cf.flatten(0, 1)) & free)[:, space.owner]
        return torch.where(changed.view_as(x_cf), x_cf, x[:, None]), self.energy[which, position]
