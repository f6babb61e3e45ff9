"""Rows as arrays: equal rows, ranks within groups, and rounded scores."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tdce._core.values import Floats, Positions


def round_scores(p: Tensor) -> Tensor:
    """Probabilities rounded to six decimals, which are the same on every machine."""
    return p.mul(1e6).round_().div_(1e6)


def unique_rows(raw: Floats) -> tuple[Positions, Positions]:
    """The position of the first of each distinct row, and for each row the index of the distinct row that it equals."""
    whole = (np.where(np.isnan(raw), np.nan, raw) + 0.0).tobytes()  # one kind of NaN, no -0.0
    width, numbers = raw.shape[1] * raw.itemsize, dict[bytes, int]()
    place = [numbers.setdefault(whole[i : i + width], len(numbers)) for i in range(0, len(whole), width)]
    return np.unique(place, return_index=True)[1], np.array(place, dtype=np.int64)


def rank_within(groups: Tensor) -> Tensor:
    """(m,) the rank of each element among those of the same group (m,), in order: 0 for the first."""
    order = groups.argsort(stable=True)
    ordered = groups[order]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(groups)) - torch.searchsorted(ordered, ordered)
    return rank
