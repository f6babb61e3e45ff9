"""The formats of artefacts: which ones this version reads, and how an older file is upgraded (docs/formats.md).

Each format has at most one upgrade, to the next one, so that an older file takes all steps in between. The result is
sealed as if it had been written by this version, and checked like any other file.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tdce._core import is_integer
from tdce.explainer.sealed_file import FORMAT, OLDEST, Content, Tensors, format_of, open_sealed, seal, tensors_of
from tdce.methods import PRECEDENT_POSITIONS

Upgrade = Callable[[Content, Tensors], tuple[Content, Tensors]]


def upgraded(whole: bytes) -> bytes:
    """The same artefact in the current format: unchanged, or upgraded one format at a time."""
    form = format_of(whole)
    if not is_integer(form) or not OLDEST <= form < FORMAT:
        return whole  # in the current format, or refused when it is opened
    (content, _), tensors = open_sealed(whole, form), tensors_of(whole)
    for each in range(form, FORMAT):
        content, tensors = UPGRADES[each](content, tensors)
    return seal(content, tensors)


def _8_to_9(content: Content, tensors: Tensors) -> tuple[Content, Tensors]:
    """Format 9 holds answers to synthetic rows, which the search tries for similar rows; format 8 has none."""
    none = torch.zeros(0, _features(tensors), dtype=torch.float64)
    return content, tensors | {"precedents.row": torch.zeros(0, dtype=torch.long), "precedents.answer": none}


def _9_to_10(content: Content, tensors: Tensors) -> tuple[Content, Tensors]:
    """Format 10 holds those answers at several positions of the trade-off, with their energies, and no network of
    answers. A single position does not help the search, so the answers of format 9 are dropped."""
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(("precedents.", "proposer."))}
    positions = len(PRECEDENT_POSITIONS)
    none = torch.zeros(0, positions, _features(tensors), dtype=torch.float64)
    empty = {"precedents.row": torch.zeros(0, dtype=torch.long), "precedents.answer": none}
    return content, kept | empty | {"precedents.energy": torch.zeros(0, positions)}


def _features(tensors: Tensors) -> int:
    """The number of features, by the training rows; without them, the file is refused later."""
    rows = tensors.get("rows.raw", torch.zeros(0, 0))
    return rows.shape[-1] if rows.ndim else 0


UPGRADES: dict[int, Upgrade] = {8: _8_to_9, 9: _9_to_10}
"""By the format of a file; each upgrade leads to the next format."""
