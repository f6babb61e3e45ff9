"""Bringing a model: what it is asked in `fit`, so that surprises come there and not in an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from tdce.cells import Floats, Name, Value
from tdce.encoder import Encoder
from tdce.errors import InputError
from tdce.models.frames import Frames
from tdce.models.given import Given, check_columns, given
from tdce.models.model import OnEncoded, OnFrames
from tdce.models.reading import Reading, impure, read

TRIED = 256  # rows by which it is tried whether a model is a function of the row
ALIKE = 1e-6  # scores that differ by less are the same; numbers: as a share of their deviation


def givens(model: Any) -> dict[str, Given]:
    """By the names of their outputs; a single one has none."""
    if not isinstance(model, Mapping):
        return {"": given(model)}
    if not model or not all(isinstance(name, str) and name for name in model):
        raise InputError("model is a dictionary; it must have a model under the name of each output, as text")
    return {name: given(each) for name, each in model.items()}


def columns_of(models: Mapping[str, Given]) -> tuple[Name, ...]:
    """All columns that they ask for by name."""
    return tuple(dict.fromkeys(name for each in models.values() for name in each.columns or ()))


def brought(
    models: Mapping[str, Given], table: pd.DataFrame, encoder: Encoder, label: Name | None, classes: tuple[Value, ...]
) -> tuple[OnFrames, Floats]:
    """The models as one that decides, and its scores (rows, columns) of the table."""
    features, names = encoder.schema.features, encoder.schema.names
    told = {name: on_encoded(each, encoder) for name, each in models.items()}
    for each in told.values():
        check_columns(each, names, label)
    frame = table[list(names)].reset_index(drop=True)
    readings, scores = [], []
    for name, each in told.items():
        reading, score = read(each, name, frame, classes)
        readings.append(reading)
        scores.append(score)
    made, score = OnFrames(tuple(told.values()), tuple(readings), Frames.of(features, table)), np.column_stack(scores)
    _check_pure(made, frame, score)
    _check_written(made, frame, encoder.read(frame), score)
    return made, score


def again(
    models: Mapping[str, Given], encoder: Encoder, readings: Sequence[Reading], dtypes: Sequence[Any]
) -> OnFrames:
    """The models of an explainer that was saved."""
    told = tuple(on_encoded(each, encoder) for each in models.values())
    for each in told:
        check_columns(each, encoder.schema.names, None)
    return OnFrames(told, tuple(readings), Frames.restored(encoder.schema.features, dtypes))


def on_encoded(model: Given, encoder: Encoder) -> Given:
    """A torch module is asked on encoded rows; every other model as it is."""
    if not isinstance(model.own, nn.Module):
        return model
    network = OnEncoded(model.own.eval(), encoder.embed, ())

    def says(frame: pd.DataFrame) -> Any:
        logits = network.logits(encoder.read(frame))
        return logits.softmax(dim=1).numpy() if logits.dim() == 2 and logits.shape[1] > 1 else logits.numpy()

    return replace(model, says=says)


def alike(model: OnFrames) -> Floats:
    """(columns,) how little two scores differ that are the same."""
    return np.concatenate([np.full(output.columns, ALIKE * output.spread) for output in model.outputs])


def _check_pure(model: OnFrames, frame: pd.DataFrame, score: Floats) -> None:
    some = frame.iloc[: min(TRIED, len(frame))]
    why = impure(model.of_frame, some, score[: len(some)], alike(model))
    if why:
        name = ", ".join(each.name for each in model.models)
        raise InputError(f"the model {name} is no function of the row alone: {why}; fix its seed, or keep it from "
                         "looking at other rows or at earlier ones")  # fmt: skip


def _check_written(model: OnFrames, frame: pd.DataFrame, raw: Floats, score: Floats) -> None:
    """That a row which is read and written again means the same to the model."""
    rows = min(TRIED, len(frame))
    other = model.score(raw[:rows])
    off = np.flatnonzero((np.abs(other - score[:rows]) > alike(model)).any(axis=1))
    if len(off):
        row = frame.iloc[[off[0]]]
        changed = [name for name in frame.columns if not _same(row[name], model.frames(raw[off[:1]])[name])]
        raise InputError(
            f"the model scores row {off[0]} otherwise when its cells are written again as plain values, in "
            f"{', '.join(map(repr, changed)) or 'some column'}; give these columns as numbers, text or yes/no"
        )


def _same(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return one.astype(str).tolist() == other.astype(str).tolist()
