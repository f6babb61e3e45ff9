"""Models of raw rows under one protocol: our own network, or models that the user brings."""

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

from tdce._core import Floats, InputError, Value, pad_rows, usual_threads
from tdce.models.adapters import ModelAdapter
from tdce.models.frames import FrameBuilder
from tdce.models.outputs import Output
from tdce.models.readers import OutputReader

NETWORK_BATCH_ROWS = 1024
FRAME_BATCH_ROWS = 65_536  # rows of a data frame that a user's model gets at once

Classify = Callable[[Tensor], Tensor]
"""Encoded rows (n, width) -> logits (n, classes), differentiable."""


class Model(Protocol):
    """Scores raw rows, as `Encoder.read` makes them from a frame."""

    @property
    def outputs(self) -> tuple[Output, ...]: ...

    def score(self, raw: Floats) -> Floats:
        """(n, features) -> (n, columns) the scores of all outputs; see `outputs.py`."""


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network on encoded rows. It is evaluated in float64, so that six decimals are the same on every machine.

    Rows are padded to a multiple of 64 (see `pad_rows`), so that a row's score is the same in any batch.
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
        blocks = (self.embed(full[i : i + NETWORK_BATCH_ROWS]).float() for i in range(0, len(full), NETWORK_BATCH_ROWS))
        return torch.cat([self._exact(x).double() for x in blocks])[: len(raw)]

    @cached_property
    def _exact(self) -> Classify:
        if not isinstance(self.classify, nn.Module):
            return self.classify
        double = copy.deepcopy(self.classify).double()
        return lambda x: double(x.double())


@dataclass(frozen=True, eq=False)
class AdaptedModel:
    """Models that the user brings, one for each output. They get data frames like those that they were trained on."""

    models: tuple[ModelAdapter, ...]
    readers: tuple[OutputReader, ...]
    frames: FrameBuilder

    @property
    def outputs(self) -> tuple[Output, ...]:
        return tuple(reader.output for reader in self.readers)

    def score(self, raw: Floats) -> Floats:
        starts = range(0, len(raw), FRAME_BATCH_ROWS)
        batches = [self.score_frame(self.frames(raw[i : i + FRAME_BATCH_ROWS])) for i in starts]
        return np.concatenate([np.zeros((0, sum(output.columns for output in self.outputs))), *batches])

    def score_frame(self, frame: pd.DataFrame) -> Floats:
        """(n, columns) the scores of a data frame's rows."""
        with usual_threads():
            return np.column_stack([read(model, frame) for model, read in zip(self.models, self.readers, strict=True)])


@dataclass(frozen=True)
class MissingModel:
    """A model that an artefact was made for and that the user has not supplied yet."""

    outputs: tuple[Output, ...]
    message: str  # how to supply it
    entry: Mapping[str, Any]  # its description in the artefact

    def score(self, raw: Floats) -> Floats:
        raise InputError(self.message)
