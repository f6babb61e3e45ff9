"""What decides: a model of raw rows, of either of two kinds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tdce.cells import Floats, Value

BLOCK = 1024
"""Rows that are scored at a time."""

Classify = Callable[[Tensor], Tensor]
"""Encoded rows (n, width) -> logits (n, classes), differentiable."""


class Model(Protocol):
    """Raw rows, as `Encoder.read` makes them of a frame, to the probability of each class."""

    @property
    def classes(self) -> tuple[Value, ...]: ...

    def score(self, raw: Floats) -> Floats:
        """(n, features) -> (n, classes)"""


@dataclass(frozen=True, eq=False)
class OnEncoded:
    """A network on encoded rows. It decides in float64: then six decimals are the same on every machine."""

    classify: Classify
    embed: Callable[[Floats], Tensor]  # (n, features) -> (n, width)
    classes: tuple[Value, ...]

    @torch.no_grad()
    def score(self, raw: Floats) -> Floats:
        if len(raw) == 0:
            return np.zeros((0, len(self.classes)))
        blocks = (self.embed(raw[i : i + BLOCK]).float() for i in range(0, len(raw), BLOCK))
        return torch.cat([self._exact(x).double().softmax(dim=1) for x in blocks]).numpy()

    @cached_property
    def _exact(self) -> Classify:
        if not isinstance(self.classify, nn.Module):
            return self.classify
        double = copy.deepcopy(self.classify).double()
        return lambda x: double(x.double())


@dataclass(frozen=True, eq=False)
class OnFrames:
    """Any function of a data frame, which it gets in the columns and dtypes of `write`."""

    predict_proba: Callable[[pd.DataFrame], Any]  # (n, classes)
    write: Callable[[Floats], pd.DataFrame]
    classes: tuple[Value, ...]

    def score(self, raw: Floats) -> Floats:
        return np.asarray(self.predict_proba(self.write(raw)), dtype=np.float64)
