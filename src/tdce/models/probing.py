"""Probing a user's model in `fit`, so that surprises come there and not in an answer."""

from __future__ import annotations

import copy
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

PROBE_ROWS = 256  # on which a model is tested
SCORE_TOLERANCE = 1e-6  # scores that differ by less are the same; of a number: in standard deviations


def adapt_models(model: Any) -> dict[str, ModelAdapter]:
    """The adapters of models, by the names of their outputs; a single model has the name ''."""
    if not isinstance(model, Mapping):
        return {"": adapt(model)}
    if not model or not all(isinstance(name, str) and name for name in model):
        raise InputError("model is a dictionary; its keys must be the names of outputs, as text, and its values models")
    return {name: adapt(each) for name, each in model.items()}


def required_columns(models: Mapping[str, ModelAdapter]) -> tuple[Name, ...]:
    """All columns that the models require by name."""
    return tuple(dict.fromkeys(name for each in models.values() for name in each.columns or ()))


def probe(
    models: Mapping[str, ModelAdapter],
    table: pd.DataFrame,
    encoder: Encoder,
    label: Name | None,
    classes: tuple[Value, ...],
) -> tuple[AdaptedModel, Floats]:
    """The models as one, and its scores (rows, columns) of the table."""
    features, names = encoder.schema.features, encoder.schema.names
    adapters = {name: _on_encoded_rows(each, encoder) for name, each in models.items()}
    for each in adapters.values():
        check_columns(each, names, label)
    frame = table[list(names)].reset_index(drop=True)
    readers, scores = [], []
    for name, each in adapters.items():
        reader, score = detect_reader(each, name, frame, classes)
        readers.append(reader)
        scores.append(score)
    model = AdaptedModel(tuple(adapters.values()), tuple(readers), FrameBuilder.of(features, table))
    whole = np.column_stack(scores)
    _check_pure(model, frame, whole)
    _check_round_trip(model, frame, encoder.read(frame), whole)
    return model, whole


def rebuild(
    models: Mapping[str, ModelAdapter], encoder: Encoder, readers: Sequence[OutputReader], dtypes: Sequence[Any]
) -> AdaptedModel:
    """The models of a saved explainer, as one."""
    adapters = tuple(_on_encoded_rows(each, encoder) for each in models.values())
    for each in adapters:
        check_columns(each, encoder.schema.names, None)
    return AdaptedModel(adapters, tuple(readers), FrameBuilder.from_json(encoder.schema.features, dtypes))


def score_tolerance(model: AdaptedModel) -> Floats:
    """(columns,) the difference up to which two scores are the same."""
    return np.concatenate([np.full(output.columns, SCORE_TOLERANCE * output.spread) for output in model.outputs])


def _on_encoded_rows(model: ModelAdapter, encoder: Encoder) -> ModelAdapter:
    """A torch module gets encoded rows; every other model stays as it is."""
    if not isinstance(model.model, nn.Module):
        return model
    module = model.model.eval()
    network = NetworkModel(module, encoder.embed, ())  # asks a copy of the module

    def scores(frame: pd.DataFrame, network: NetworkModel = network) -> Any:
        logits = network.logits(encoder.read(frame))
        return logits.softmax(dim=1).numpy() if logits.dim() == 2 and logits.shape[1] > 1 else logits.numpy()

    def scores_now(frame: pd.DataFrame) -> Any:
        return scores(frame, NetworkModel(copy.deepcopy(module).eval(), encoder.embed, ()))

    return replace(model, scores=scores, scores_now=scores_now)


def _check_pure(model: AdaptedModel, frame: pd.DataFrame, score: Floats) -> None:
    some = frame.iloc[: min(PROBE_ROWS, len(frame))]
    why = find_impurity(model.score_frame, some, score[: len(some)], score_tolerance(model))
    if why:
        name = ", ".join(each.name for each in model.models)
        raise InputError(f"the model {name} is not a function of the row alone: {why}; fix its seed, and make sure "
                         "that its score of a row depends on no other row")  # fmt: skip


def _check_round_trip(model: AdaptedModel, frame: pd.DataFrame, raw: Floats, score: Floats) -> None:
    """Check that a row has the same score after it is read and written again."""
    rows = min(PROBE_ROWS, len(frame))
    other = model.score(raw[:rows])
    off = np.flatnonzero((np.abs(other - score[:rows]) > score_tolerance(model)).any(axis=1))
    if len(off):
        row = frame.iloc[[off[0]]]
        changed = [name for name in frame.columns if not _same(row[name], model.frames(raw[off[:1]])[name])]
        raise InputError(
            f"the model's score of row {off[0]} changes when its cells are written as plain values, in "
            f"{', '.join(map(repr, changed)) or 'some column'}; give these columns as numbers, text or True/False"
        )


def _same(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    return one.astype(str).tolist() == other.astype(str).tolist()
