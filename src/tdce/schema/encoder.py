"""The encoder: from a data frame to a tensor and back, exact to the bit for values that did not change.

There are two stages. `read` and `write` translate between a frame and a float64 matrix of raw values, one column per
feature (a number as it is, a category as its position, missing as NaN); this stage is exact. `embed` and `unembed`
translate between that matrix and the tensor that networks see: numbers on a normal scale, categories as one-hot blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tdce._core import LARGEST_VALUE, Flags, Floats, InputError, Note, same
from tdce.schema.columns.base import FittedColumn
from tdce.schema.constraints.repair import ConstraintSet
from tdce.schema.schema import Schema
from tdce.schema.space import Space


@dataclass(frozen=True)
class Encoder:
    """`encode` maps a frame to a tensor (n, width); `decode` maps it back and restores unchanged values bit for bit."""

    columns: tuple[FittedColumn, ...]
    full_schema: Schema | None = None  # with laws, rules, costs and words

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema | None = None, *, pooled: bool = False) -> Self:
        """Fit to a table; `pooled`: keep no value held by fewer than five people."""
        schema = Schema.infer(frame) if schema is None else schema
        fitted = []
        for column, values in zip(schema, _read(frame, schema, LARGEST_VALUE).T, strict=True):
            present = values[~np.isnan(values)]
            if len(present) == 0:
                raise InputError(f"{column.name!r} has no value at all: every cell is missing; drop the column")
            fitted.append(column.fit_pooled(present) if pooled else column.fit(present))
        return cls(tuple(fitted), schema)

    @cached_property
    def schema(self) -> Schema:
        features = tuple(fitted.column for fitted in self.columns)
        return Schema(features) if self.full_schema is None else replace(self.full_schema, features=features)

    @cached_property
    def laws(self) -> ConstraintSet:
        """The laws without exceptions, bound to the columns of a raw matrix."""
        return ConstraintSet.hard(self.schema.laws, self.schema.features)

    @cached_property
    def space(self) -> Space:
        return Space.of(self.schema)

    def encode(self, frame: pd.DataFrame) -> Tensor:
        """The frame as a tensor (n, width) of float64; networks take it as float32."""
        return self.embed(self.read(frame))

    def decode(self, x: Tensor, like: pd.DataFrame | None = None) -> pd.DataFrame:
        """Decode to a frame, on the data's grid. With `like`, the frame that was encoded, keep its index, dtypes, other
        columns, and its own values wherever the encoding did not change."""
        raw = self.unembed(x)
        if like is None:
            return self.write(raw, pd.DataFrame(index=range(len(raw))))
        own = self.read(like)
        return self.write(np.where(self.same(x, self.embed(own)), own, raw), like, own)

    def read(self, frame: pd.DataFrame) -> Floats:
        """The frame's features as a float64 matrix (n, features), missing as NaN."""
        return _read(frame, self.schema)

    def write(self, raw: Floats, like: pd.DataFrame, own: Floats | None = None) -> pd.DataFrame:
        """Write the values of `raw` into a copy of `like`; equal cells keep their bits. `own`: raw values of `like`, if
        already read."""
        return write_values(self.schema, raw, like, own)

    def embed(self, raw: Floats) -> Tensor:
        """(n, features) -> (n, width) float64. Missing, in a column without any in fit, is encoded as the average."""
        x = np.empty((len(raw), self.space.width))
        for fitted, span, values in zip(self.columns, self.space.spans, raw.T, strict=True):
            x[:, span] = fitted.embed(values)
        return torch.from_numpy(x)

    def unembed(self, x: Tensor) -> Floats:
        """(n, width) -> (n, features): the category with the largest weight of each block, numbers on the grid."""
        parts = zip(self.columns, self.parts(x), strict=True)
        return np.stack([fitted.unembed(part) for fitted, part in parts], axis=1)

    def nearest_known(self, raw: Floats) -> Floats:
        """(n, features) the nearest values that each column knows; missing stays missing."""
        columns = zip(self.columns, raw.T, strict=True)
        return np.stack([fitted.nearest_known(values) for fitted, values in columns], axis=1)

    def parts(self, x: Tensor) -> list[Floats]:
        """(n, width) -> the numbers and weights of each feature, (n, numbers + weights)."""
        whole = x.detach().double().cpu().numpy()
        return [whole[:, places] for places in self.space.places.values()]

    def unfamiliar(self, raw: Floats) -> list[list[Note]]:
        """(n,) notes on values of each row not seen in fit: numbers beyond the data, new categories, missing cells."""
        notes: list[list[Note]] = [[] for _ in raw]
        for fitted, values in zip(self.columns, raw.T, strict=True):
            name = fitted.column.name
            if not fitted.column.missing:
                for i in np.flatnonzero(np.isnan(values)).tolist():
                    notes[i].append(Note("missing", (name,)))
            for i, note in fitted.unfamiliar(values):
                if isinstance(note, str):  # a kind of column may return words instead
                    note = Note("odd_value", (name,), values={"text": note})
                notes[i].append(note)
        return notes

    def range_share(self, num: Tensor) -> Tensor:
        """(n, num) encoded numbers -> the share of the table's range below each, from 0 to 1."""
        return self._by_number(lambda fitted, scores: fitted.range_share(scores), num)

    def deviations(self, num: Tensor) -> Tensor:
        """(n, num) encoded numbers -> raw values, in the table's standard deviations."""
        return self._by_number(lambda fitted, scores: fitted.deviations(scores), num)

    def _by_number(self, function: Callable[[FittedColumn, Floats], Floats], num: Tensor) -> Tensor:
        columns = (fitted for fitted in self.columns if fitted.column.numbers)
        values = [function(fitted, scores) for fitted, scores in zip(columns, num.double().numpy().T, strict=True)]
        return torch.from_numpy(np.reshape(values, num.T.shape).T.copy()).to(num.dtype)

    def step_numbers(self, x: Tensor, own: Tensor, steps: int) -> Tensor:
        """(n, width) x with every number that differs from the row's own moved by one grid step: away from it, or
        towards it if `steps` is -1."""
        raw, before = self.unembed(x), self.unembed(own)
        marks = np.stack([np.isin(values, column.marks) for column, values in zip(self.schema, before.T, strict=True)])
        moved = np.where(marks.T, 0.0, np.nan_to_num(raw - before)) * self.space.moved(x, own).numpy()
        columns = zip(self.schema, raw.T, steps * np.sign(moved).T, strict=True)
        stepped = np.stack([column.step_values(*each) for column, *each in columns], axis=1)
        changed = torch.from_numpy(~same(stepped, raw))[:, self.space.owner]
        return torch.where(changed, self.embed(stepped).float(), x)

    def is_mark(self, x: Tensor) -> Tensor:
        """(n, width) which numbers of encoded rows stand for a mark."""
        out = torch.zeros(x.shape, dtype=torch.bool)
        for fitted, places in zip(self.columns, self.space.places.values(), strict=True):
            if marks := len(fitted.column.marks):
                weights = x[:, places[1:]]
                out[:, places[0]] = weights.argmax(dim=1) >= weights.shape[1] - marks
        return out

    def marks_as_missing(self, raw: Floats) -> Floats:
        """(n, features) the raw values with NaN for marks, so that numbers can be compared."""
        if not any(column.marks for column in self.schema):
            return raw
        columns = zip(self.schema, raw.T, strict=True)
        return np.stack([np.where(np.isin(values, column.marks), np.nan, values) for column, values in columns], axis=1)

    def same(self, x: Tensor, other: Tensor) -> Flags:
        """(n, features) which features of two encoded tensors are equal (in float32)."""
        return ~self.space.moved(x.float(), other.float()).numpy()


def write_values(schema: Schema, raw: Floats, like: pd.DataFrame, own: Floats | None = None) -> pd.DataFrame:
    """`Encoder.write`, which needs the schema alone."""
    frame, new = like.copy(), []
    for i, (column, values) in enumerate(zip(schema, raw.T, strict=True)):
        if column.name in like.columns:
            series = like[column.name]
            frame[column.name] = column.write(values, column.read(series) if own is None else own[:, i], series)
        else:
            new.append(pd.Series(column.cells(values), index=like.index, name=column.name).infer_objects())
    return pd.concat([frame, *new], axis=1) if new else frame


def _read(frame: pd.DataFrame, schema: Schema, most: float = np.inf) -> Floats:
    """A frame's features as a float64 matrix; raise an error for a cell that does not fit, or is beyond `most`."""
    schema.check_table(frame)
    return np.stack([column.read(frame[column.name], most) for column in schema], axis=1)
