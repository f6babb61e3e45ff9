"""Readers: whether a user's model returns probabilities, labels or numbers, as seen on the table, and its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from tdce._core import Floats, InputError, Positions, Value, listing, plain, show, sort_values
from tdce.models.adapters import ModelAdapter
from tdce.models.outputs import NUMBER_GROUPS, Output

Form = Literal["probabilities", "second", "labels", "number"]
OTHER_CLASS_P = 1e-9  # the probability of every other class if a model gives only a label
SUM_TOLERANCE = 1e-3  # how far from 1 the sum of probabilities may be


@dataclass(frozen=True)
class OutputReader:
    """Turns what a model returns into the columns of an output's scores."""

    output: Output
    form: Form  # second: the probability of the second of two classes
    model_classes: tuple[Value, ...] = ()  # the classes as the model names them

    def __call__(self, model: ModelAdapter, frame: pd.DataFrame) -> Floats:
        """(n, columns) the scores of a frame's rows."""
        score = self._score(model, model.query_scores(frame), len(frame))
        if not self.output.decides:
            return score
        return np.column_stack([score, self._one_hot(model, np.asarray(model.query_labels(frame)).reshape(len(frame)))])

    def _score(self, model: ModelAdapter, answer: Any, rows: int) -> Floats:
        if self.form == "labels":
            p = self._one_hot(model, np.asarray(answer, dtype=object).reshape(-1))
            return _check_scores(model, np.where(p > 0, 1 - OTHER_CLASS_P, OTHER_CLASS_P), rows)
        values = _check_scores(model, answer, rows)
        if self.form == "number":
            return values.reshape(rows, 1)
        if self.form == "second":
            values = np.column_stack([1 - values.reshape(rows), values.reshape(rows)])
        return values.clip(OTHER_CLASS_P**2, 1.0)

    def _one_hot(self, model: ModelAdapter, labels: Any) -> Floats:
        known = {value: i for i, value in enumerate(self.model_classes)}
        try:
            at = [known[plain(label)] for label in labels.tolist()]
        except (KeyError, TypeError):
            unknown = next(label for label in labels.tolist() if plain(label) not in known)
            raise InputError(f"the model {model.name} returns {show(unknown)}, which is not one of the classes: "
                             f"{listing(self.model_classes)}") from None  # fmt: skip
        return np.eye(len(self.output.classes))[at]


def detect_reader(
    model: ModelAdapter,
    name: str,  # of the output, if there are several
    frame: pd.DataFrame,  # the table
    classes: tuple[Value, ...],  # of the label; empty if there is no label, or if it is a number
) -> tuple[OutputReader, Floats]:
    """The reader for a model, and the model's scores of the table."""
    answer = model.query_scores(frame)
    form, model_classes = _detect_form(model, answer, classes)
    reader = OutputReader(Output(name, _label_classes(model_classes, classes)), form, model_classes)
    score = reader._score(model, answer, len(frame))
    if form == "number":
        return replace(reader, output=_number_output(model, name, score[:, 0])), score
    labels = model.query_labels(frame)
    if labels is None:
        return reader, score
    chosen = reader._one_hot(model, np.asarray(labels, dtype=object).reshape(-1))
    top = np.sort(score, axis=1)
    clear = (top[:, -1] - top[:, -2]) > 1e-6
    if (score.argmax(axis=1) == chosen.argmax(axis=1))[clear].all():
        return reader, score
    output = replace(reader.output, decides=True, border=_border(score, chosen))
    return replace(reader, output=output), np.column_stack([score, chosen])


def find_impurity(score: Callable[[pd.DataFrame], Floats], frame: pd.DataFrame, whole: Floats, alike: Floats) -> str:
    """Why a model is not a function of the row alone, if that shows when it is queried again, in another order, or on
    fewer rows; else an empty text. `whole` are its scores of these rows among others; scores that differ by no more
    than `alike` are the same."""
    everything = np.arange(len(frame))
    trials: dict[str, list[Positions]] = {
        "when it is queried again": [everything],
        "when the rows come in another order": [everything[::-1]],
        "when it is queried for a part of the rows": np.array_split(everything, 3),
    }
    first, others = score(frame), dict[str, Floats]()
    for when, parts in trials.items():
        scores = [score(frame.iloc[part].reset_index(drop=True)) for part in parts if len(part)]
        others[when] = np.concatenate(scores)[np.concatenate(parts).argsort()]
    for when, other in (others | {"when there are more rows": whole}).items():
        off = np.flatnonzero((np.abs(other - first) > alike).any(axis=1))
        if len(off):
            return f"{first[off[0]].tolist()} becomes {other[off[0]].tolist()} for row {off[0]} {when}"
    return ""


def _detect_form(model: ModelAdapter, answer: Any, classes: tuple[Value, ...]) -> tuple[Form, tuple[Value, ...]]:
    """What a model returns, and its classes."""
    values = np.asarray(answer)
    if model.number:
        return "number", ()
    if values.ndim == 2 and values.shape[1] > 1:
        named = model.classes or classes
        if len(named) != values.shape[1]:
            raise InputError(
                f"the model {model.name} returns {values.shape[1]} numbers for each row, but there are "
                f"{len(named)} classes{f' ({listing(named)})' if named else ''}; the numbers must be the classes' "
                "probabilities: name a label column with these classes, in their order"
            )
        sums = np.asarray(values, dtype=np.float64).sum(axis=1)
        if (np.asarray(values, dtype=np.float64) < 0).any() or (np.abs(sums - 1) > SUM_TOLERANCE).any():
            raise InputError(f"the model {model.name} returns {values.shape[1]} numbers for each row that are not "
                             f"probabilities: {show(values[0].tolist())}")  # fmt: skip
        return "probabilities", named
    labels = [plain(v) for v in values.reshape(-1).tolist()]
    if model.classes or any(isinstance(v, str | bool) for v in labels) or (classes and set(labels) <= set(classes)):
        all_classes = classes if set(labels) <= set(classes) else sort_values({*labels, *classes})
        return "labels", model.classes or all_classes
    chances = all(isinstance(v, int | float) and 0 <= v <= 1 for v in labels)
    return ("second", classes) if len(classes) == 2 and chances else ("number", ())


def _label_classes(model_classes: tuple[Value, ...], classes: tuple[Value, ...]) -> tuple[Value, ...]:
    """The model's classes, or the label's if the model numbers them 0, 1, 2 as scikit-learn's LabelEncoder does."""
    numbers = tuple(range(len(classes)))
    numbered = model_classes == numbers and not {*model_classes} & {*classes}
    return classes if numbered else model_classes


def _number_output(model: ModelAdapter, name: str, values: Floats) -> Output:
    edges = np.unique(np.quantile(values, np.arange(1, NUMBER_GROUPS) / NUMBER_GROUPS)).tolist()
    spread = float(values.std())
    if spread == 0:
        raise InputError(f"the model {model.name} predicts {values[0]:g} for every row of the table")
    return Output(name, spread=spread, edges=tuple(edges))


def _border(score: Floats, chosen: Floats) -> float:
    """The probability of the second of two classes from which the model seems to choose it: half-way between the
    highest at which it does not and the lowest at which it does."""
    p, second = score[:, 1], chosen[:, 1] > 0.5
    if score.shape[1] != 2 or second.all() or not second.any():
        return 0.5
    return float(np.clip((p[second].min() + p[~second].max()) / 2, 1e-6, 1 - 1e-6))


def _check_scores(model: ModelAdapter, answer: Any, rows: int) -> Floats:
    try:
        values = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the model {model.name} returns {show(answer)}; it must return numbers") from None
    if values.ndim not in (1, 2) or len(values) != rows:
        raise InputError(f"the model {model.name} returns an array of shape {values.shape} for {rows} rows")
    if not np.isfinite(values).all():
        row = int(np.isfinite(values).reshape(rows, -1).all(axis=1).argmin())
        raise InputError(f"the model {model.name} returns {values[row]} for a row, which is not finite")
    return values
