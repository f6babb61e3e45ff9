"""Padding: blocks are filled up with copies of their first row, for which the model is not queried again."""

from __future__ import annotations

import torch
from torch import Tensor

from tdce._core import rank_within, unique_rows


def first_copies(x: Tensor) -> Tensor:
    """(n,) for each row, the position of the first identical one."""
    first, place = unique_rows(x.numpy())
    return torch.from_numpy(first[place])


def without_copies(x: Tensor, at: Tensor, original: Tensor) -> tuple[Tensor, Tensor]:
    """The positions of the candidates of rows that are not copies, and (m,) the place of each candidate among them.

    x: (m, ...) candidates; at: (m,) the row of each; original: (n,) the row that each row copies, or itself. A search
    should propose the same candidates for a copy as for its original, in the same order; if not, all are kept.
    """
    everything = torch.arange(len(at))
    own = everything[original[at] == at]
    if len(own) == len(at):
        return everything, everything
    rank = rank_within(at)
    key = original[at] * (int(rank.max()) + 1) + rank
    table = torch.full((int(key.max()) + 1,), -1)
    table[key[own]] = torch.arange(len(own))
    place = table[key]
    if bool((place < 0).any()) or not torch.equal(x[own][place], x):  # the search proposed something else for a copy
        return everything, everything
    return own, place
