"""Several options for one row: which of the draws to return."""

from __future__ import annotations

import numpy as np

from tdce.columns import Floats, same
from tdce.encoder import Encoder
from tdce.limits import Flags, Rows
from tdce.metrics import overlap


def draws_for(options: int) -> int:
    """More than are asked for, to choose among."""
    return 1 if options == 1 else 2 * options + 1


def choose(
    encoder: Encoder,
    own: Floats,  # (rows, features)
    raw: Floats,  # (rows, draws, features)
    valid: Flags,  # (rows, draws)
    options: int,
) -> Rows:
    """(rows, options): the draws to return, the valid ones first, then by distance.

    The nearest valid one is always among them. Each further one is valid if any is left, differs to the letter, and
    changes other features than those before it as far as possible (the overlap of the sets of changed features).
    """
    distance = _distance(encoder, own, raw)
    chosen, everyone = np.lexsort((distance, ~valid), axis=1)[:, :1], np.arange(len(own))[:, None]
    changed = ~same(raw, own[:, None])
    for _ in range(1, options):
        used = np.zeros(valid.shape, dtype=bool)
        used[everyone, chosen] = True
        again = _twins(raw, raw[everyone, chosen]).any(axis=2)
        alike = overlap(changed[:, :, None], changed[everyone, chosen][:, None]).max(axis=2)
        turn = np.lexsort((distance, alike, again, ~valid, used), axis=1)[:, :1]
        chosen = np.concatenate([chosen, turn], axis=1)
    order = np.lexsort((distance[everyone, chosen], ~valid[everyone, chosen]), axis=1)
    return np.take_along_axis(chosen, order, axis=1)


def distinct(raw: Floats) -> Rows:
    """(rows,) how many of a row's options differ to the letter."""
    earlier = np.tril(_twins(raw, raw), k=-1)
    return np.asarray((~earlier.any(axis=2)).sum(axis=1))


def _twins(raw: Floats, others: Floats) -> Flags:
    """(rows, draws, others) which are the same to the letter."""
    return np.asarray(same(raw[:, :, None], others[:, None]).all(axis=3))


def _distance(encoder: Encoder, own: Floats, raw: Floats) -> Floats:
    """(rows, draws) squared, between encoded rows."""
    n, draws, features = raw.shape
    x = encoder.embed(own).numpy()[:, None]
    x_cf = encoder.embed(raw.reshape(n * draws, features)).numpy().reshape(n, draws, -1)
    return np.asarray(np.square(x_cf - x).sum(axis=2))
