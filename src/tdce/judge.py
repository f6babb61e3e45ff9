"""The judge: the only caller of the model that decides, on rows exactly as they would be returned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tdce.cells import Floats, Positions
from tdce.goal import Goals
from tdce.models.model import Model
from tdce.products import even


class Verdict(NamedTuple):
    score: Tensor  # (n, classes) the model's probabilities
    met: Tensor  # (n,) whether the goal is met
    margin: Tensor  # (n,) in log odds, at least 0 if and only if it is met


class Judge:
    """Asks the model about many rows at once, about each different row once per call, and counts.

    The rows are filled up to a multiple of 64 (see `products.even`), so that a row's score is the same in any batch.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.calls = 0
        self.rows = 0  # different ones that were asked about, over all calls

    def __call__(self, raw: Floats, goals: Goals) -> Verdict:
        """Of raw rows (n, features), each by its own goal."""
        p = self.score(raw)
        return Verdict(p, goals.met(p), goals.margin(p))

    def score(self, raw: Floats) -> Tensor:
        """(n, classes) the model's probabilities."""
        first, place = _different(raw)
        self.calls += 1
        self.rows += len(first)
        asked = raw[even(torch.from_numpy(first)).numpy()]
        return torch.from_numpy(self.model.score(asked)[: len(first)])[place]

    def predict(self, raw: Floats) -> Tensor:
        """(n,) the numbers of the most probable classes."""
        return self.score(raw).argmax(dim=1)


def rounded(p: Tensor) -> Tensor:
    """Probabilities as they are shown: six decimals, which do not depend on the machine."""
    return p.mul(1e6).round_().div_(1e6)


def _different(raw: Floats) -> tuple[Positions, Positions]:
    """Where each different row appears first, and for each row which of them it is."""
    whole = (np.where(np.isnan(raw), np.nan, raw) + 0.0).tobytes()  # one kind of NaN, no -0.0
    width, numbers = raw.shape[1] * raw.itemsize, dict[bytes, int]()
    place = [numbers.setdefault(whole[i : i + width], len(numbers)) for i in range(0, len(whole), width)]
    return np.unique(place, return_index=True)[1], np.array(place, dtype=np.int64)
