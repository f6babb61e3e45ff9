"""What decides: a model of raw rows, of either of two kinds, our own or the user's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from tdce._core import Floats, InputError, Value, pad_rows
from tdce.models.adapters import ModelAdapter
from tdce.models.frames import FrameBuilder
from tdce.models.outputs import Output
from tdce.models.readers import OutputReader

BLOCK = 1024  # rows that a network scores at a time
FRAME = 65_536  # rows that a given model gets at a time

Classify = Callable[[Tensor], Tensor]
"""Encoded rows (n, width) -> logits (n, classes), differentiable."""


class Model(Protocol):
    """Raw rows, as `Encoder.read` makes them of a frame, to what it says of each."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    def score(self, raw: Floats) -> Floats:
        """(n, features) -> (n, columns) of all outputs; of classes the probability of each"""


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network on encoded rows. It decides in float64: then six decimals are the same on every machine.

    The rows are filled up to a multiple of 64 (see `products.even`), so that a row's score is the same in any batch.
    """

    classify: Classify
    embed: Callable[[Floats], Tensor]  # (n, features) -> (n, width)
    classes: tuple[Value, ...]

    @property
    def outputs(self) -> tuple[Output, ...]:
        return (Output(classes=self.classes),)

    def score(self, raw: Floats) -> Floats:
        if len(raw) == 0:
            return np.zeros((0, len(self.classes)))
        return self.logits(raw).softmax(dim=1).numpy()

    @torch.no_grad()
    def logits(self, raw: Floats) -> Tensor:
        """(n, classes) float64"""
        full = raw[pad_rows(torch.arange(len(raw))).numpy()]
        blocks = (self.embed(full[i : i + BLOCK]).float() for i in range(0, len(full), BLOCK))
        return torch.cat([self._exact(x).double() for x in blocks])[: len(raw)]

    @cached_property
    def _exact(self) -> Classify:
        if not isinstance(self.classify, nn.Module):
            return self.classify
        double = copy.deepcopy(self.classify).double()
        return lambda x: double(x.double())


@dataclass(frozen=True, eq=False)
class AdaptedModel:
    """Models that the user brings, one for each output. They get data frames as they were in training."""

    models: tuple[ModelAdapter, ...]
    readings: tuple[OutputReader, ...]
    frames: FrameBuilder

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(reading.output for reading in self.readings)

    def score(self, raw: Floats) -> Floats:
        blocks = [self.of_frame(self.frames(raw[i : i + FRAME])) for i in range(0, len(raw), FRAME)]
        return np.concatenate([np.zeros((0, sum(output.columns for output in self.outputs))), *blocks])

    def of_frame(self, frame: pd.DataFrame) -> Floats:
        return np.column_stack([read(model, frame) for model, read in zip(self.models, self.readings, strict=True)])


@dataclass(frozen=True)
class MissingModel:
    """A model that an artefact was made for and that is not at hand."""

    outputs: tuple[Output, ...]
    words: str  # how to bring it
    entry: Mapping[str, Any]  # what the artefact says of it

    def score(self, raw: Floats) -> Floats:
        raise InputError(self.words)
