"""Models of raw rows under one protocol: our own network, or models that the user brought."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

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
FRAME_BATCH_ROWS = 65_536  # maximum number of rows of a data frame given to a user's model
REFERENCE_ROWS = 32  # synthetic rows on which a model is checked for changes
CHANGE_TOLERANCE = 1e-4  # of a probability, or of a number's standard deviation: float32 differs between processors

Classify = Callable[[Tensor], Tensor]
"""Encoded rows (n, width) -> logits (n, classes), differentiable."""


class Model(Protocol):
    """A model that scores raw rows, as `Encoder.read` makes them from a frame."""

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


class Reference(NamedTuple):
    """Synthetic rows, with a model's scores of them in `fit`."""

    raw: Floats  # (n, features)
    scores: Floats  # (n, columns)


@dataclass(frozen=True, eq=False)
class AdaptedModel:
    """Models that the user brought, one per output. They are given data frames like those they were trained on."""

    models: tuple[ModelAdapter, ...]
    readers: tuple[OutputReader, ...]
    frames: FrameBuilder
    reference: Reference | None = None  # scores in `fit`

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

    def with_reference(self, synthetic: Floats, scores: Floats) -> AdaptedModel:
        """A copy with a reference: some synthetic rows, from the lowest score to the highest, with their scores."""
        order = np.argsort(scores[:, 0], kind="stable")
        at = order[np.linspace(0, len(order) - 1, min(REFERENCE_ROWS, len(order))).astype(np.int64)]
        return replace(self, reference=Reference(synthetic[at], scores[at]))

    def check_unchanged(self) -> None:
        """Raise an error if the model's scores are no longer those of `fit`."""
        if self.reference is None:
            return
        now = replace(self, models=tuple(each.as_it_is_now() for each in self.models)).score(self.reference.raw)
        if difference := self.differs(self.reference.scores, now):
            name = ", ".join(each.name for each in self.models)
            raise InputError(f"the model {name} has changed since fit: of the same row it {difference}; fit again with "
                             "the model as it is now, or give the model as it was then")  # fmt: skip

    def differs(self, then: Floats, now: Floats) -> str:
        """`said [0.2, 0.8] then and says [0.6, 0.4] now`, for the row that differs most; empty if none does."""
        spread = np.concatenate([np.full(output.columns, output.spread) for output in self.outputs])
        off = (np.abs(now - then) / spread).max(axis=1, initial=0.0)
        if len(off) == 0 or off.max() <= CHANGE_TOLERANCE:
            return ""
        row = int(off.argmax())
        return f"said {np.round(then[row], 6).tolist()} then and says {np.round(now[row], 6).tolist()} now"


@dataclass(frozen=True)
class MissingModel:
    """A model that an artefact was made for and that the user has not supplied yet."""

    outputs: tuple[Output, ...]
    message: str  # how to supply it
    entry: Mapping[str, Any]  # its description in the artefact

    def score(self, raw: Floats) -> Floats:
        raise InputError(self.message)
