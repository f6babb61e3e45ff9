"""Readers: they detect whether a user's model returns probabilities, labels or numbers, and turn these into scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from tdce._core import Floats, InputError, Positions, Value, is_number, is_value, listing, plain, show, sort_values
from tdce.models.adapters import ModelAdapter
from tdce.models.outputs import NUMBER_GROUPS, Output
from tdce.schema import pool_quantile

Form = Literal["probabilities", "second", "labels", "number"]
OTHER_CLASS_P = 1e-9  # probability of every other class if a model returns only labels
AGAIN = "when it is queried again"
SUM_TOLERANCE = 1e-3  # by which the sum of probabilities may differ from 1


@dataclass(frozen=True)
class OutputReader:
    """Turns a model's results into the columns of an output's scores."""

    output: Output
    form: Form  # second: the probability of the second of two classes
    model_classes: tuple[Value, ...] = ()  # classes as the model names them

    def __call__(self, model: ModelAdapter, frame: pd.DataFrame) -> Floats:
        """(n, columns) the scores of a frame's rows."""
        score = self._score(model, model.query_scores(frame), len(frame))
        if not self.output.decides:
            return score
        return np.column_stack([score, self._one_hot(model, model.query_labels(frame), len(frame))])

    def _score(self, model: ModelAdapter, answer: Any, rows: int) -> Floats:
        if self.form == "labels":
            p: Floats = np.where(self._one_hot(model, answer, rows) > 0, 1 - OTHER_CLASS_P, OTHER_CLASS_P)
            return p
        values = _numbers(model, answer, rows)
        if self.form == "number":
            return _single(model, values).reshape(rows, 1)
        if self.form == "second":
            second = _single(model, values)
            values = np.column_stack([1 - second, second])
        elif values.shape != (rows, len(self.model_classes)):
            raise InputError(f"the model {model.name} returns an array of shape {values.shape} for {rows} rows; it "
                             f"must return {len(self.model_classes)} probabilities for each, as in fit")  # fmt: skip
        else:
            _check_probabilities(model, values)
        return values.clip(OTHER_CLASS_P**2, 1.0)

    def _one_hot(self, model: ModelAdapter, answer: Any, rows: int) -> Floats:
        known = {value: i for i, value in enumerate(self.model_classes)}
        labels = [_plain(label) for label in _single(model, _array(model, answer, rows, object)).tolist()]
        at = [known.get(label, -1) if isinstance(label, str | bool | int | float) else -1 for label in labels]
        if -1 in at:
            raise InputError(f"the model {model.name} returns {show(labels[at.index(-1)])}, which is not one of the "
                             f"classes: {listing(self.model_classes)}")  # fmt: skip
        return np.eye(len(self.output.classes))[at]


def detect_reader(
    model: ModelAdapter,
    name: str,  # of the output, if there are several
    frame: pd.DataFrame,  # the table
    classes: tuple[Value, ...],  # of the label; empty if there is no label, or if it is a number
) -> tuple[OutputReader, Floats]:
    """The reader for a model, and its scores of the table."""
    answer = model.query_scores(frame)
    form, model_classes = _detect_form(model, _array(model, answer, len(frame)), classes)
    reader = OutputReader(Output(name, _label_classes(model_classes, classes)), form, model_classes)
    score = reader._score(model, answer, len(frame))
    if form == "number":
        return replace(reader, output=_number_output(model, name, score[:, 0])), score
    labels = model.query_labels(frame)
    if labels is None:
        return reader, score
    chosen = reader._one_hot(model, labels, len(frame))
    top = np.sort(score, axis=1)
    clear = (top[:, -1] - top[:, -2]) > 1e-6
    if (score.argmax(axis=1) == chosen.argmax(axis=1))[clear].all():
        return reader, score
    output = replace(reader.output, decides=True, border=_border(score, chosen))
    return replace(reader, output=output), np.column_stack([score, chosen])


def find_impurity(score: Callable[[pd.DataFrame], Floats], frame: pd.DataFrame, whole: Floats, alike: Floats) -> str:
    """Why a model is not a function of the row alone, if that shows when it is queried again, in another order, or on
    fewer rows; else an empty text. `whole` are its scores of these rows among others; scores that differ by at most
    `alike` are equal."""
    everything = np.arange(len(frame))
    trials: dict[str, list[Positions]] = {
        AGAIN: [everything],
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


def _detect_form(model: ModelAdapter, values: Any, classes: tuple[Value, ...]) -> tuple[Form, tuple[Value, ...]]:
    """The form of a model's results, and its classes."""
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
        _check_probabilities(model, _numbers(model, values, len(values)))
        return "probabilities", named
    labels = [_plain(v) for v in values.reshape(-1).tolist()]
    odd = [label for label in labels if not isinstance(label, str | bool | int | float)]
    words = any(isinstance(v, str | bool) for v in labels)
    odd += [label for label in labels if words and not is_value(label)]  # NaN among words
    if odd:
        raise InputError(f"the model {model.name} returns {show(odd[0])} for a row; it must return a number or a label")
    if model.classes or words or (classes and set(labels) <= set(classes)):
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
    ordered = np.sort(values)
    edges = np.unique([pool_quantile(ordered, i / NUMBER_GROUPS) for i in range(1, NUMBER_GROUPS)]).tolist()
    spread = float(values.std())
    if spread == 0:
        raise InputError(f"the model {model.name} predicts {values[0]:g} for every row of the table")
    return Output(name, spread=spread, edges=tuple(edges))


def _border(score: Floats, chosen: Floats) -> float:
    """The probability of the second of two classes at which the model seems to begin to choose it: half-way between the
    highest at which it does not and the lowest at which it does."""
    p, second = score[:, 1], chosen[:, 1] > 0.5
    if score.shape[1] != 2 or second.all() or not second.any():
        return 0.5
    return float(np.clip((p[second].min() + p[~second].max()) / 2, 1e-6, 1 - 1e-6))


def _check_probabilities(model: ModelAdapter, values: Floats) -> None:
    off = (values < -SUM_TOLERANCE).any(axis=1) | (np.abs(values.sum(axis=1) - 1) > SUM_TOLERANCE)
    if off.any():
        raise InputError(f"the model {model.name} returns {values.shape[1]} numbers for each row that are not "
                         f"probabilities: {show(values[off.argmax()].tolist())}")  # fmt: skip


def _numbers(model: ModelAdapter, answer: Any, rows: int) -> Floats:
    """(rows,) or (rows, k) finite numbers."""
    values = _array(model, answer, rows)
    cells = values.reshape(-1).tolist() if values.dtype.kind == "O" else []
    odd = next((cell for cell in cells if not (cell is None or isinstance(cell, bool) or is_number(cell))), None)
    if values.dtype.kind not in "biufO" or odd is not None:
        raise InputError(f"the model {model.name} returns {show(answer if odd is None else odd)}; it must return "
                         "numbers")  # fmt: skip
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # e.g. an integer of 400 digits
        raise InputError(f"the model {model.name} returns a number that is too large: {show(answer)}") from None
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(finite.reshape(rows, -1).all(axis=1).argmin())
        raise InputError(f"the model {model.name} returns {numbers[row]} for a row, which is not finite")
    return numbers


def _single(model: ModelAdapter, values: NDArray[Any]) -> NDArray[Any]:
    """(rows,) values that may come as a single column."""
    if values.size != len(values):
        raise InputError(f"the model {model.name} returns an array of shape {values.shape} for {len(values)} rows; it "
                         "must return one value for each row, as in fit")  # fmt: skip
    return values.reshape(len(values))


def _array(model: ModelAdapter, answer: Any, rows: int, dtype: Any = None) -> NDArray[Any]:
    """(rows,) or (rows, k) a model's result, with one entry or line per row."""
    if answer is None:
        raise InputError(f"the model {model.name} returns None; it must return a score for each of the {rows} rows")
    if isinstance(answer, Tensor):
        answer = answer.detach().cpu()
        answer = (answer.double() if answer.dtype.is_floating_point else answer).numpy()
    try:
        values = np.asarray(answer)
        values = values if dtype is None or values.ndim > 1 else np.asarray(answer, dtype=dtype)
    except Exception as error:  # ragged lists; tensors in lists, and other objects of the user's
        raise InputError(f"the model {model.name} returns {_ragged(answer) or show(answer)}, which is no array "
                         f"({type(error).__name__}); it must return one score, or one list of probabilities, for each "
                         "row") from None  # fmt: skip
    if values.ndim not in (1, 2) or len(values) != rows or (rows and values.size == 0):
        raise InputError(f"the model {model.name} returns an array of shape {values.shape} for {rows} rows")
    return values


def _plain(cell: Any) -> Any:
    """A cell as a plain value; a decimal number is a float."""
    if isinstance(cell, Decimal):
        return np.nan if cell.is_nan() else float(cell)
    return plain(cell)


def _ragged(answer: Any) -> str:
    """The lengths of two rows that differ in length, in words; empty if none do."""
    if not isinstance(answer, list | tuple):
        return ""
    lists = (isinstance(each, list | tuple) or (isinstance(each, np.ndarray) and each.ndim > 0) for each in answer)
    sizes = [len(each) if several else 1 for each, several in zip(answer, lists, strict=True)]
    other = next((size for size in sizes if size != sizes[0]), None)
    return "" if other is None else f"{sizes[0]} values for one row and {other} for another"
