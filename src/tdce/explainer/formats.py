"""The formats of artefacts: what this tdce reads, and how an older file becomes one of today (docs/formats.md).

Each format has at most one upgrade, to the next one, so that a file of any age takes the steps in between. What comes
out is sealed as if it had been written today, and is checked like any other file.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tdce._core import is_integer
from tdce.explainer.sealed_file import FORMAT, OLDEST, Content, Tensors, format_of, open_sealed, seal, tensors_of
from tdce.methods import PRECEDENT_POSITIONS

Upgrade = Callable[[Content, Tensors], tuple[Content, Tensors]]


def upgraded(whole: bytes) -> bytes:
    """The same artefact in today's format: itself, or lifted from one format to the next."""
    form = format_of(whole)
    if not is_integer(form) or not OLDEST <= form < FORMAT:
        return whole  # of today, or refused by whoever opens it
    (content, _), tensors = open_sealed(whole, form), tensors_of(whole)
    for each in range(form, FORMAT):
        content, tensors = UPGRADES[each](content, tensors)
    return seal(content, tensors)


def _8_to_9(content: Content, tensors: Tensors) -> tuple[Content, Tensors]:
    """9 keeps answers to synthetic rows, which the search tries for similar rows; a file of format 8 has none."""
    none = torch.zeros(0, _features(tensors), dtype=torch.float64)
    return content, tensors | {"precedents.row": torch.zeros(0, dtype=torch.long), "precedents.answer": none}


def _9_to_10(content: Content, tensors: Tensors) -> tuple[Content, Tensors]:
    """10 keeps those answers at several positions of the trade-off, with their energies, and no network of answers; one
    answer by itself does not help the search, so that a file of format 9 has none."""
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(("precedents.", "proposer."))}
    positions = len(PRECEDENT_POSITIONS)
    none = torch.zeros(0, positions, _features(tensors), dtype=torch.float64)
    empty = {"precedents.row": torch.zeros(0, dtype=torch.long), "precedents.answer": none}
    return content, kept | empty | {"precedents.energy": torch.zeros(0, positions)}


def _features(tensors: Tensors) -> int:
    """How many there are, by the training rows; without them, the file is refused later."""
    rows = tensors.get("rows.raw", torch.zeros(0, 0))
    return rows.shape[-1] if rows.ndim else 0


UPGRADES: dict[int, Upgrade] = {8: _8_to_9, 9: _9_to_10}
"""By the format that a file has; the upgrade leads to the next one."""
