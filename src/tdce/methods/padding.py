"""Rows that fill up a block are copies of one of it: whatever is asked of them is known."""

from __future__ import annotations

import torch
from torch import Tensor

from tdce._core import rank_within, unique_rows


def first_copies(x: Tensor) -> Tensor:
    """(n,) the first row that is the same to the bit."""
    first, place = unique_rows(x.numpy())
    return torch.from_numpy(first[place])


def without_copies(x: Tensor, at: Tensor, twin: Tensor) -> tuple[Tensor, Tensor]:
    """Of candidates x (m, ...) of the rows at `at` (m,): which of them belong to a row that is no copy, and for each of
    all the place of its like among these. A search asks the same of a copy, one after another, as of its twin."""
    everything = torch.arange(len(at))
    own = everything[twin[at] == at]
    if len(own) == len(at):
        return everything, everything
    rank = rank_within(at)
    key = twin[at] * (int(rank.max()) + 1) + rank
    table = torch.full((int(key.max()) + 1,), -1)
    table[key[own]] = torch.arange(len(own))
    place = table[key]
    if bool((place < 0).any()) or not torch.equal(x[own][place], x):  # it asks something else after all
        return everything, everything
    return own, place
