"""Several options for one row: which of the draws to return."""

from __future__ import annotations

import numpy as np

from tdce._core import Flags, Floats, Positions, same
from tdce.metrics import overlap
from tdce.schema import Encoder

MOST_OPTIONS = 100
"""Nobody reads more options for one person, and the work grows with them."""


def draws_for(options: int) -> int:
    """More than are asked for, to choose among."""
    return 1 if options == 1 else 2 * options + 1


def choose_options(
    encoder: Encoder,
    own: Floats,  # (rows, features)
    raw: Floats,  # (rows, draws, features)
    valid: Flags,  # (rows, draws)
    options: int,
) -> Positions:
    """(rows, options): the draws to return, the valid ones first, then by distance.

    The nearest valid one is always among them. Each further one is valid if any is left, is not identical to an earlier
    one, and as far as possible changes other features (by the overlap of the sets of changed features).
    """
    distance, changed = _distance(encoder, own, raw), ~same(raw, own[:, None])
    used, again, alike = np.zeros(valid.shape, dtype=bool), np.zeros(valid.shape, dtype=bool), np.zeros(valid.shape)
    everyone, chosen = np.arange(len(own))[:, None], np.empty((len(own), options), dtype=np.int64)
    for option in range(options):
        turn = np.lexsort((distance, alike, again, ~valid, used), axis=1)[:, :1]
        chosen[:, option] = turn[:, 0]
        used[everyone, turn] = True
        again |= same(raw, raw[everyone, turn]).all(axis=2)
        alike = np.maximum(alike, overlap(changed, changed[everyone, turn]))
    order = np.lexsort((distance[everyone, chosen], ~valid[everyone, chosen]), axis=1)
    return np.take_along_axis(chosen, order, axis=1)


def count_distinct(raw: Floats) -> Positions:
    """(rows,) how many different options a row has."""
    order = np.lexsort(np.moveaxis(raw, 2, 0), axis=1)  # the same ones side by side
    ordered = np.take_along_axis(raw, order[:, :, None], axis=1)
    return np.asarray(1 + (~same(ordered[:, 1:], ordered[:, :-1]).all(axis=2)).sum(axis=1))


def _distance(encoder: Encoder, own: Floats, raw: Floats) -> Floats:
    """(rows, draws) squared, between encoded rows."""
    x = encoder.embed(own).numpy()
    draws = (encoder.embed(raw[:, j]).numpy() for j in range(raw.shape[1]))
    return np.stack([np.square(x_cf - x).sum(axis=1) for x_cf in draws], axis=1)
