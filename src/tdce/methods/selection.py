"""The choice of a row's options from several draws."""

from __future__ import annotations

import numpy as np

from tdce._core import Flags, Floats, Positions, same
from tdce.metrics import overlap
from tdce.schema import Encoder

MOST_OPTIONS = 100
"""Maximum number of options per row: nobody reads more, and the work grows with them."""


def draws_for(options: int) -> int:
    """The number of draws to choose the options from."""
    return 1 if options == 1 else 2 * options + 1


def choose_options(
    encoder: Encoder,
    own: Floats,  # (rows, features)
    raw: Floats,  # (rows, draws, features)
    valid: Flags,  # (rows, draws)
    options: int,
) -> Positions:
    """(rows, options) the draws to return: valid ones first, then by distance.

    The nearest valid draw is always among them. Each further one is valid if any is left, not identical to an earlier
    one, and changes other features as far as possible (by the overlap of the sets of changed features).
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
    """(rows,) the number of distinct options of each row."""
    order = np.lexsort(np.moveaxis(raw, 2, 0), axis=1)  # identical ones side by side
    ordered = np.take_along_axis(raw, order[:, :, None], axis=1)
    return np.asarray(1 + (~same(ordered[:, 1:], ordered[:, :-1]).all(axis=2)).sum(axis=1))


def _distance(encoder: Encoder, own: Floats, raw: Floats) -> Floats:
    """(rows, draws) squared distances between encoded rows."""
    x = encoder.embed(own).numpy()
    draws = (encoder.embed(raw[:, j]).numpy() for j in range(raw.shape[1]))
    return np.stack([np.square(x_cf - x).sum(axis=1) for x_cf in draws], axis=1)
