"""Targets as users write them, and the goals that they stand for: one goal per row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from tdce._core import InputError, Value, listing, plain, show, suggest
from tdce.models.goals import AtLeast, Between, Class, Goal, Goals, Not
from tdce.models.output_goals import AllGoals, Change, ModelDecides, Range
from tdce.models.outputs import Output

Favourable = Value | Range | Mapping[str, Value | Range]
"""The favourable class, a range of a predicted number, or one of these for each output."""

RowTarget = Value | Class | Range | Change | Mapping[str, Value | Class | Range | Change]
"""The target of a row: a class, a goal, text such as 'at least 620', or one of these for each output."""

Target: TypeAlias = "RowTarget | Sequence[RowTarget] | NDArray[Any] | pd.Series[Any] | pd.Index[Any]"
"""One target for all rows, or one per row."""

NUMBER = r"([+-]?[0-9][0-9_]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?)"
BAND_TEXT = re.compile(rf"(?:from\s+|between\s+)?{NUMBER}\s*(?:to|and|\.\.)\s*{NUMBER}")
LEAST_TEXT, MOST_TEXT = re.compile(rf"(?:at\s+least|>=)\s*{NUMBER}"), re.compile(rf"(?:at\s+most|<=)\s*{NUMBER}")
CHANGE_TEXT = re.compile(rf"(?=[+-]){NUMBER}\s*(%?)")
GOAL_CLASSES = {"class": Class, "at_least": AtLeast, "not": Not, "between": Between, "range": Range, "change": Change}
GOAL_FIELDS = {
    "class": ("of",), "at_least": ("of", "p"), "not": ("of",), "between": ("of", "low", "high"),
    "range": ("low", "high"), "change": ("by", "share"),
}  # fmt: skip
TARGET_TEXTS = "'at least 620', 'at most 8', '620 to 680', '+500' or '-10 %'"


def resolve_goals(
    target: Target | None,
    threshold: float | None,
    favourable: Favourable | None,
    outputs: tuple[Output, ...],
    rows: int,
    score: Callable[[], Tensor],  # (rows, columns) the model's scores of the unchanged rows
) -> Goals:
    """One goal per row: the target, else the favourable class, else the other of two classes."""
    if is_per_row(target):
        if len(target) != rows:
            raise InputError(f"target has {len(target)} goals for {rows} rows; give one, or one per row")
        if rows == 0:
            return _no_goals(outputs)
        targets = [_parse(each, outputs) for each in target]
        columns = sum(output.columns for output in outputs)
        now = score() if any(map(_depends_on_prediction, targets)) else torch.zeros(rows, columns)
        return Goals.of([resolve_goal(each, outputs, threshold, now[i]) for i, each in enumerate(targets)])
    wanted = favourable if target is None else target
    if wanted is not None:
        return _goals_for_all(_parse(wanted, outputs), outputs, threshold, rows, score)
    classes = outputs[0].classes
    if len(outputs) > 1 or not classes:
        raise InputError(f"there is no favourable value: name a target, such as {_example(outputs)}")
    if len(classes) > 2:
        raise InputError(f"there are {len(classes)} classes and no favourable one: name a target, one of "
                         f"{listing(classes)}")  # fmt: skip
    each = tuple(resolve_goal(value, outputs, threshold) for value in classes)
    return Goals(each, 1 - outputs[0].group(score()))


def resolve_goal(
    wanted: Any, outputs: tuple[Output, ...], threshold: float | None = None, now: Tensor | None = None
) -> Goal:
    """The goal of one target, for a row with the scores `now`, (columns,)."""
    wanted = _parse(wanted, outputs)
    places, start = {}, 0
    for output in outputs:
        places[output.name] = output, start, start + output.columns
        start += output.columns
    if not isinstance(wanted, Mapping):
        return _goal_for_output(wanted, outputs[0], threshold, None if now is None else now[:1])
    parts = []
    for name, each in wanted.items():
        output, start, stop = places[name]
        scores = None if now is None else now[start:stop]
        parts.append((_goal_for_output(each, output, threshold if output.classes else None, scores), start, stop))
    return AllGoals(tuple(sorted(parts, key=lambda part: part[1])), outputs[0])


def check_favourable(favourable: Favourable | None, outputs: tuple[Output, ...]) -> Any:
    """Check the favourable value and return it in plain form: a class, a range, or one of these for each output."""
    if favourable is None:
        return None
    wanted = _parse(favourable, outputs)
    if not isinstance(wanted, Mapping):
        return _plain_favourable(wanted, outputs[0])
    named = {output.name: output for output in outputs}
    return {name: _plain_favourable(each, named[name]) for name, each in wanted.items()}


def target_to_json(target: Any) -> Any:
    """A target as JSON, for `target_from_json`; one target per row becomes a list."""
    if is_per_row(target):
        return [target_to_json(each) for each in target]
    if isinstance(target, Mapping):
        return {"outputs": {name: target_to_json(each) for name, each in target.items()}}
    kind = next((kind for kind, goal_class in GOAL_CLASSES.items() if type(target) is goal_class), None)
    if kind is None:
        return plain(target)
    return {kind: {key: plain(getattr(target, key)) for key in GOAL_FIELDS[kind]}}


def target_from_json(entry: Any, of_output: bool = False) -> Any:
    """Read the target of one row, or of one of its outputs, from JSON."""
    if isinstance(entry, list):
        raise InputError(f"target {show(entry)} is a list where one target is needed")
    if not isinstance(entry, dict):
        return entry
    (kind, settings), *more = entry.items() if entry else [("", None)]
    if not more and kind == "outputs" and isinstance(settings, dict) and not of_output:
        return {name: target_from_json(each, of_output=True) for name, each in settings.items()}
    if more or kind not in GOAL_CLASSES or not isinstance(settings, dict) or set(settings) != set(GOAL_FIELDS[kind]):
        raise InputError(f"target {show(entry)} is not a valid goal; known: {listing(['outputs', *GOAL_CLASSES])}")
    return GOAL_CLASSES[kind](**settings)


def is_per_row(target: Any) -> TypeGuard[Sequence[Any]]:
    """Whether a target is a sequence with one entry per row."""
    if isinstance(target, np.ndarray):
        return target.ndim == 1
    return isinstance(target, list | tuple | pd.Series | pd.Index)


def class_number(value: Any, classes: tuple[Value, ...], what: str) -> int:
    """The number of the class that the user means: first a value of the same type, then 1.0 for 1, then '1' for 1,
    since a command line gives text."""
    value = plain(value)
    if isinstance(value, str | bool | int | float):
        for means in (
            lambda known: type(known) is type(value) and known == value,
            lambda known: known == value,
            lambda known: isinstance(value, str) and str(known) == value,
        ):
            matches = [i for i, known in enumerate(classes) if means(known)]
            if matches:
                return matches[0]
    meant = suggest(value, classes)
    raise InputError(f"{what} {show(value)} is not a value of the label; {meant}known: {listing(classes)}")


def _goal_for_output(wanted: Any, output: Output, threshold: float | None, now: Tensor | None) -> Goal:
    """A goal about one output, whose columns of the scores begin at 0."""
    if not output.classes:
        if threshold is not None:
            raise InputError(
                f"threshold {threshold:g} goes with a class, but the model predicts a number; leave it out"
            )
        return _range_for_row(wanted, output, now)
    if isinstance(wanted, Range | Change):
        raise InputError(
            f"{show(wanted)} goes with a predicted number, but the model has classes: {listing(output.classes)}"
        )
    if isinstance(wanted, Class) and threshold is not None:
        raise InputError(f"threshold {threshold:g} goes with a class, not with {show(wanted)}; leave it out")
    named = wanted if isinstance(wanted, Class) else Class(wanted) if threshold is None else AtLeast(wanted, threshold)
    numbered = named.with_class_number(lambda value: class_number(value, output.classes, "target"))
    if not output.decides:
        return numbered
    if isinstance(numbered, AtLeast | Between):
        return AllGoals(((numbered, 0, len(output.classes)),), output)
    return ModelDecides(numbered, output)


def _range_for_row(wanted: Any, output: Output, now: Tensor | None) -> Range:
    value = 0.0 if now is None else output.rounded(float(now[0]))
    if isinstance(wanted, Change):
        wanted = wanted.range(value)
    if not isinstance(wanted, Range):
        raise InputError(f"target {show(wanted)} is not a valid goal for a predicted number; give Range(620, 680), "
                         f"Range(high=8) or Change(500), or text such as {TARGET_TEXTS}")  # fmt: skip
    up = wanted.low is not None and (wanted.high is None or value < wanted.low)
    return replace(wanted, output=output, up=up)


def _goals_for_all(
    wanted: Any, outputs: tuple[Output, ...], threshold: float | None, rows: int, score: Callable[[], Tensor]
) -> Goals:
    """The goals of one target for all rows: the same goal, unless it depends on the model's prediction for the row."""
    if rows == 0 or not _depends_on_prediction(wanted):
        return Goals.all(resolve_goal(wanted, outputs, threshold), rows)
    parts = wanted if isinstance(wanted, Mapping) else {outputs[0].name: wanted}
    now, keys, start = score(), [], 0
    for output in outputs:
        each, value = parts.get(output.name), now[:, start]
        if isinstance(each, Change):
            keys.append(value.numpy())
        elif isinstance(each, Range):
            keys.append((value < (-np.inf if each.low is None else each.low)).numpy().astype(np.float64))
        start += output.columns
    _, first, which = np.unique(np.column_stack(keys), axis=0, return_index=True, return_inverse=True)
    return Goals(
        tuple(resolve_goal(wanted, outputs, threshold, now[i]) for i in first), torch.from_numpy(which.reshape(-1))
    )


def _depends_on_prediction(wanted: Any) -> bool:
    """Whether the goal depends on the model's prediction for the unchanged row."""
    parts = wanted.values() if isinstance(wanted, Mapping) else [wanted]
    return any(isinstance(each, Range | Change) for each in parts)


def _parse(wanted: Any, outputs: tuple[Output, ...]) -> Any:
    """Parse text into a goal if it is about a number or several outputs, or begins with `not`; keep other targets."""
    if isinstance(wanted, Mapping):
        if not wanted:
            raise InputError(f"target is an empty mapping; name a target, such as {_example(outputs)}")
        named = {output.name: output for output in outputs}
        for name in wanted:
            if name not in named:
                raise InputError(f"the model has no output {show(name)}; it has: {listing(named)}")
        return {name: _parse(each, (named[name],)) for name, each in wanted.items()}
    if len(outputs) > 1:
        if isinstance(wanted, str) and "=" in wanted:
            pairs = (part.partition("=") for part in wanted.split(","))
            return _parse({name.strip(): each.strip() for name, _, each in pairs}, outputs)
        raise InputError(f"the model has several outputs: name a target for some of them, such as {_example(outputs)}")
    if not isinstance(wanted, str):
        return wanted
    if outputs[0].classes:
        other = wanted.removeprefix("not ").strip()
        is_class = any(wanted == str(value) for value in outputs[0].classes)
        return Not(other) if wanted.startswith("not ") and not is_class else wanted
    text = wanted.strip()
    if match := BAND_TEXT.fullmatch(text):
        return Range(float(match[1]), float(match[2]))
    if match := LEAST_TEXT.fullmatch(text):
        return Range(low=float(match[1]))
    if match := MOST_TEXT.fullmatch(text):
        return Range(high=float(match[1]))
    if match := CHANGE_TEXT.fullmatch(text):
        return Change(share=float(match[1]) / 100) if match[2] else Change(float(match[1]))
    raise InputError(f"target {show(wanted)} is not a valid goal for a predicted number; write {TARGET_TEXTS}")


def _plain_favourable(wanted: Any, output: Output) -> Any:
    if isinstance(wanted, Range) and not output.classes:
        return Range(wanted.low, wanted.high)
    if output.classes and not isinstance(wanted, Class | Range | Change):
        return output.classes[class_number(wanted, output.classes, "favourable")]
    raise InputError(f"favourable is {show(wanted)}; it must be a class, or a Range for a predicted number")


def _example(outputs: tuple[Output, ...]) -> str:
    parts = [f"{o.name!r}: {o.classes[-1]!r}" if o.classes else f"{o.name!r}: Range(high=8)" for o in outputs]
    return f"{{{', '.join(parts)}}}" if len(outputs) > 1 else "Range(low=620)"


def _no_goals(outputs: tuple[Output, ...]) -> Goals:
    """The goals of zero rows."""
    nothing = {o.name: o.classes[0] if o.classes else Range(low=0.0) for o in outputs}
    return Goals.all(resolve_goal(nothing if len(outputs) > 1 else nothing[outputs[0].name], outputs), 0)
