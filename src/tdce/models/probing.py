"""Bringing a model: what it is asked in `fit`, so that surprises come there and not in an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from tdce._core import Floats, InputError, Name, Value
from tdce.models.adapters import ModelAdapter, adapt, check_columns
from tdce.models.frames import FrameBuilder
from tdce.models.model import AdaptedModel, NetworkModel
from tdce.models.readers import OutputReader, detect_reader, find_impurity
from tdce.schema import Encoder

TRIED = 256  # rows by which it is tried whether a model is a function of the row
ALIKE = 1e-6  # scores that differ by less are the same; numbers: as a share of their deviation


def adapt_models(model: Any) -> dict[str, ModelAdapter]:
    """By the names of their outputs; a single one has none."""
    if not isinstance(model, Mapping):
        return {"": adapt(model)}
    if not model or not all(isinstance(name, str) and name for name in model):
        raise InputError("model is a dictionary; it must have a model under the name of each output, as text")
    return {name: adapt(each) for name, each in model.items()}


def columns_wanted(models: Mapping[str, ModelAdapter]) -> tuple[Name, ...]:
    """All columns that they ask for by name."""
    return tuple(dict.fromkeys(name for each in models.values() for name in each.columns or ()))


def probe(
    models: Mapping[str, ModelAdapter],
    table: pd.DataFrame,
    encoder: Encoder,
    label: Name | None,
    classes: tuple[Value, ...],
) -> tuple[AdaptedModel, Floats]:
    """The models as one that decides, and its scores (rows, columns) of the table."""
    features, names = encoder.schema.features, encoder.schema.names
    told = {name: on_encoded(each, encoder) for name, each in models.items()}
    for each in told.values():
        check_columns(each, names, label)
    frame = table[list(names)].reset_index(drop=True)
    readings, scores = [], []
    for name, each in told.items():
        reading, score = detect_reader(each, name, frame, classes)
        readings.append(reading)
        scores.append(score)
    made, score = (
        AdaptedModel(tuple(told.values()), tuple(readings), FrameBuilder.of(features, table)),
        np.column_stack(scores),
    )
    _check_pure(made, frame, score)
    _check_written(made, frame, encoder.read(frame), score)
    return made, score


def rebuild(
    models: Mapping[str, ModelAdapter], encoder: Encoder, readings: Sequence[OutputReader], dtypes: Sequence[Any]
) -> AdaptedModel:
    """The models of an explainer that was saved."""
    told = tuple(on_encoded(each, encoder) for each in models.values())
    for each in told:
        check_columns(each, encoder.schema.names, None)
    return AdaptedModel(told, tuple(readings), FrameBuilder.restored(encoder.schema.features, dtypes))


def on_encoded(model: ModelAdapter, encoder: Encoder) -> ModelAdapter:
    """A torch module is asked on encoded rows; every other model as it is."""
    if not isinstance(model.own, nn.Module):
        return model
    network = NetworkModel(model.own.eval(), encoder.embed, ())

    def says(frame: pd.DataFrame) -> Any:
        logits = network.logits(encoder.read(frame))
        return logits.softmax(dim=1).numpy() if logits.dim() == 2 and logits.shape[1] > 1 else logits.numpy()

    return replace(model, says=says)


def score_tolerance(model: AdaptedModel) -> Floats:
    """(columns,) how little two scores differ that are the same."""
    return np.concatenate([np.full(output.columns, ALIKE * output.spread) for output in model.outputs])


def _check_pure(model: AdaptedModel, frame: pd.DataFrame, score: Floats) -> None:
    some = frame.iloc[: min(TRIED, len(frame))]
    why = find_impurity(model.of_frame, some, score[: len(some)], score_tolerance(model))
    if why:
        name = ", ".join(each.name for each in model.models)
        raise InputError(f"the model {name} is no function of the row alone: {why}; fix its seed, or keep it from "
                         "looking at other rows or at earlier ones")  # fmt: skip


def _check_written(model: AdaptedModel, frame: pd.DataFrame, raw: Floats, score: Floats) -> None:
    """That a row which is read and written again means the same to the model."""
    rows = min(TRIED, len(frame))
    other = model.score(raw[:rows])
    off = np.flatnonzero((np.abs(other - score[:rows]) > score_tolerance(model)).any(axis=1))
    if len(off):
        row = frame.iloc[[off[0]]]
        changed = [name for name in frame.columns if not _same(row[name], model.frames(raw[off[:1]])[name])]
        raise InputError(
            f"the model scores row {off[0]} otherwise when its cells are written again as plain values, in "
            f"{', '.join(map(repr, changed)) or 'some column'}; give these columns as numbers, text or yes/no"
        )


def _same(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return one.astype(str).tolist() == other.astype(str).tolist()
