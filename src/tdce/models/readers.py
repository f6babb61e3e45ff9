"""How a given model's answers are read: as probabilities, as labels or as numbers, found out on the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from tdce._core import Floats, InputError, Positions, Value, listing, ordered, plain, show
from tdce.models.adapters import ModelAdapter
from tdce.models.outputs import GROUPS, Output

Form = Literal["probabilities", "second", "labels", "number"]
SURE = 1e-9  # what is left for the other classes where a model gives a label alone
SUMS = 1e-3  # how far from 1 probabilities may add up to


@dataclass(frozen=True)
class OutputReader:
    """From what a model says to the columns of its scores."""

    output: Output
    form: Form  # second: the probability of the second of two classes
    spoken: tuple[Value, ...] = ()  # the classes in the model's own words

    def __call__(self, model: ModelAdapter, frame: pd.DataFrame) -> Floats:
        """(n, columns)"""
        score = self._score(model, model.about(frame), len(frame))
        if not self.output.decides:
            return score
        return np.column_stack([score, self._one_hot(model, np.asarray(model.decided(frame)).reshape(len(frame)))])

    def _score(self, model: ModelAdapter, answer: Any, rows: int) -> Floats:
        if self.form == "labels":
            p = self._one_hot(model, np.asarray(answer, dtype=object).reshape(-1))
            return _checked(model, np.where(p > 0, 1 - SURE, SURE), rows)
        values = _checked(model, answer, rows)
        if self.form == "number":
            return values.reshape(rows, 1)
        if self.form == "second":
            values = np.column_stack([1 - values.reshape(rows), values.reshape(rows)])
        return values.clip(SURE**2, 1.0)

    def _one_hot(self, model: ModelAdapter, labels: Any) -> Floats:
        known = {value: i for i, value in enumerate(self.spoken)}
        try:
            at = [known[plain(label)] for label in labels.tolist()]
        except (KeyError, TypeError):
            strange = next(label for label in labels.tolist() if plain(label) not in known)
            raise InputError(f"the model {model.name} says {show(strange)}, which is no class; known: "
                             f"{listing(self.spoken)}") from None  # fmt: skip
        return np.eye(len(self.output.classes))[at]


def detect_reader(
    model: ModelAdapter,
    name: str,  # of the output, where there are several
    frame: pd.DataFrame,  # the table
    classes: tuple[Value, ...],  # of the label; none if there is no label, or if it is no class
) -> tuple[OutputReader, Floats]:
    """How it is to be read, and its scores of the table."""
    answer = model.about(frame)
    form, spoken = _form(model, answer, classes)
    reading = OutputReader(Output(name, _meant(spoken, classes)), form, spoken)
    score = reading._score(model, answer, len(frame))
    if form == "number":
        return replace(reading, output=_number(model, name, score[:, 0])), score
    said = model.decided(frame)
    if said is None:
        return reading, score
    own = reading._one_hot(model, np.asarray(said, dtype=object).reshape(-1))
    top = np.sort(score, axis=1)
    clear = (top[:, -1] - top[:, -2]) > 1e-6
    if (score.argmax(axis=1) == own.argmax(axis=1))[clear].all():
        return reading, score
    output = replace(reading.output, decides=True, border=_border(score, own))
    return replace(reading, output=output), np.column_stack([score, own])


def _form(model: ModelAdapter, answer: Any, classes: tuple[Value, ...]) -> tuple[Form, tuple[Value, ...]]:
    """What kind of answer it is, and the classes that it is about."""
    values = np.asarray(answer)
    if model.number:
        return "number", ()
    if values.ndim == 2 and values.shape[1] > 1:
        named = model.classes or classes
        if len(named) != values.shape[1]:
            raise InputError(
                f"the model {model.name} gives {values.shape[1]} numbers for each row, but there are "
                f"{len(named)} classes{f' ({listing(named)})' if named else ''}; they must be the probabilities of the "
                "classes: give a label column with these classes, in their order"
            )
        sums = np.asarray(values, dtype=np.float64).sum(axis=1)
        if (np.asarray(values, dtype=np.float64) < 0).any() or (np.abs(sums - 1) > SUMS).any():
            raise InputError(f"the model {model.name} gives {values.shape[1]} numbers for each row that are no "
                             f"probabilities: {show(values[0].tolist())}")  # fmt: skip
        return "probabilities", named
    labels = [plain(v) for v in values.reshape(-1).tolist()]
    if model.classes or any(isinstance(v, str | bool) for v in labels) or (classes and set(labels) <= set(classes)):
        return "labels", model.classes or (ordered({*labels, *classes}) if not set(labels) <= set(classes) else classes)
    chances = all(isinstance(v, int | float) and 0 <= v <= 1 for v in labels)
    return ("second", classes) if len(classes) == 2 and chances else ("number", ())


def _meant(spoken: tuple[Value, ...], classes: tuple[Value, ...]) -> tuple[Value, ...]:
    """The label's classes for a model that calls them 0, 1, 2: as scikit-learn's LabelEncoder numbers them."""
    numbered = len(classes) == len(spoken) and spoken == tuple(range(len(spoken))) and not {*spoken} & {*classes}
    return classes if numbered else spoken


def _number(model: ModelAdapter, name: str, values: Floats) -> Output:
    edges = np.unique(np.quantile(values, np.arange(1, GROUPS) / GROUPS)).tolist()
    spread = float(values.std())
    if spread == 0:
        raise InputError(f"the model {model.name} predicts {values[0]:g} for every row of the table")
    return Output(name, spread=spread, edges=tuple(edges))


def _border(score: Floats, own: Floats) -> float:
    """Of two classes: the probability of the second between the highest that is refused and the lowest that is not."""
    p, second = score[:, 1], own[:, 1] > 0.5
    if score.shape[1] != 2 or second.all() or not second.any():
        return 0.5
    return float(np.clip((p[second].min() + p[~second].max()) / 2, 1e-6, 1 - 1e-6))


def _checked(model: ModelAdapter, answer: Any, rows: int) -> Floats:
    try:
        values = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the model {model.name} says {show(answer)}; numbers are needed") from None
    if len(values) != rows or values.ndim > 2:
        raise InputError(f"the model {model.name} gives an array of shape {values.shape} for {rows} rows")
    if not np.isfinite(values).all():
        row = int(np.isfinite(values).reshape(rows, -1).all(axis=1).argmin())
        raise InputError(f"the model {model.name} gives {values[row]} for a row, which is not finite")
    return values


def find_impurity(ask: Callable[[pd.DataFrame], Floats], frame: pd.DataFrame, whole: Floats, alike: Floats) -> str:
    """Why a model is no function of the row alone, if that shows: asked again, in another order, among other rows.
    `whole` is what it said of these rows among others; what differs by no more than `alike` is the same."""
    everything = np.arange(len(frame))
    trials: dict[str, list[Positions]] = {
        "when it is asked again": [everything],
        "when the rows come in another order": [everything[::-1]],
        "when it is asked about a part of the rows": np.array_split(everything, 3),
    }
    first, others = ask(frame), dict[str, Floats]()
    for when, parts in trials.items():
        asked = [ask(frame.iloc[part].reset_index(drop=True)) for part in parts if len(part)]
        others[when] = np.concatenate(asked)[np.concatenate(parts).argsort()]
    for when, other in (others | {"when there are more rows": whole}).items():
        off = np.flatnonzero((np.abs(other - first) > alike).any(axis=1))
        if len(off):
            return f"{first[off[0]].tolist()} becomes {other[off[0]].tolist()} for row {off[0]} {when}"
    return ""
