"""Tests of a user's model in `fit`, so that problems show there and not in an answer."""

from __future__ import annotations

import copy
import time
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
from tdce.models.readers import AGAIN, OutputReader, detect_reader, find_impurity
from tdce.schema import Encoder

PROBE_ROWS = 256  # rows on which a model is tested
SCORE_TOLERANCE = 1e-6  # scores that differ by less are equal; for a number, in standard deviations


def adapt_models(model: Any) -> dict[str, ModelAdapter]:
    """The adapters of models, by output name; the name of a single model is ''."""
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
    library: str = "pandas",  # the table's library
) -> tuple[AdaptedModel, Floats]:
    """Test the models and combine them into one; also its scores (rows, columns) of the table."""
    features, names = encoder.schema.features, encoder.schema.names
    adapters = {name: _on_encoded_rows(each, encoder) for name, each in models.items()}
    for each in adapters.values():
        check_columns(each, names, label)
    frame = table[list(names)].reset_index(drop=True)
    adapters = {name: _with_library(each, frame.head(PROBE_ROWS), library) for name, each in adapters.items()}
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
    models: Mapping[str, ModelAdapter],
    encoder: Encoder,
    readers: Sequence[OutputReader],
    dtypes: Sequence[Any],
    libraries: Sequence[str],  # libraries whose frames they are given
) -> AdaptedModel:
    """Combine the models of a saved explainer into one."""
    named = zip(models.values(), libraries, strict=True)
    adapters = tuple(replace(_on_encoded_rows(each, encoder), library=library) for each, library in named)
    for each in adapters:
        check_columns(each, encoder.schema.names, None)
    return AdaptedModel(adapters, tuple(readers), FrameBuilder.from_json(encoder.schema.features, dtypes))


def score_tolerance(model: AdaptedModel) -> Floats:
    """(columns,) the difference up to which two scores are equal."""
    return np.concatenate([np.full(output.columns, SCORE_TOLERANCE * output.spread) for output in model.outputs])


def _on_encoded_rows(model: ModelAdapter, encoder: Encoder) -> ModelAdapter:
    """Give encoded rows to a torch module; any other model is unchanged."""
    if not isinstance(model.model, nn.Module):
        return model
    module = model.model.eval()
    network = NetworkModel(module, encoder.embed, ())  # of a copy of the module

    def scores(frame: pd.DataFrame, network: NetworkModel = network) -> Any:
        logits = network.logits(encoder.read(frame))
        return logits.softmax(dim=1).numpy() if logits.dim() == 2 and logits.shape[1] > 1 else logits.numpy()

    def scores_now(frame: pd.DataFrame) -> Any:
        return scores(frame, NetworkModel(copy.deepcopy(module).eval(), encoder.embed, ()))

    return replace(model, scores=scores, scores_now=scores_now)


def _with_library(model: ModelAdapter, frame: pd.DataFrame, library: str) -> ModelAdapter:
    """Give a model frames of the table's library, or of pandas if it fails with those."""
    if library == "pandas" or not model.any_frame:
        return model
    other = replace(model, library=_eager(library))
    try:
        other.query_scores(frame)
    except InputError as error:
        try:
            model.query_scores(frame)
        except InputError:
            raise error from None
        return model
    return other


def _eager(library: str) -> str:
    """The library of the eager frames made for a library, which may be lazy itself."""
    return library if library == "polars" else "pyarrow"


def _check_pure(model: AdaptedModel, frame: pd.DataFrame, score: Floats) -> None:
    some = frame.iloc[: min(PROBE_ROWS, len(frame))]
    why = find_impurity(model.score_frame, some, score[: len(some)], score_tolerance(model))
    if not why:
        return
    name = ", ".join(each.name for each in model.models)
    way_out = "fix its seed, and make sure that its score of a row depends on no other row"
    if AGAIN not in why and (seconds := _seconds_alone(model, frame)) is not None:
        way_out = (f"model=tdce.OneByOne(model) asks about each row alone, which it takes {seconds:.2g} s for here; "
                   "give explain a budget: max_model_rows")  # fmt: skip
    raise InputError(f"the model {name} is not a function of the row alone: {why}; {way_out}")


def _seconds_alone(model: AdaptedModel, frame: pd.DataFrame) -> float | None:
    """How long a model takes for a single row; None if it fails, or gives another result when repeated."""
    one, began = frame.head(1), time.perf_counter()
    try:
        first = model.score_frame(one)
        seconds = time.perf_counter() - began
        return seconds if (np.abs(model.score_frame(one) - first) <= score_tolerance(model)).all() else None
    except InputError:
        return None


def _check_round_trip(model: AdaptedModel, frame: pd.DataFrame, raw: Floats, score: Floats) -> None:
    """Check that a row keeps its score after it is read and written back."""
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
