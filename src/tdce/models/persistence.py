"""What a file says of the model that is explained: its name, its digest and how it is read, never the model itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from torch import Tensor

from tdce._core import (
    FLAG,
    LARGEST,
    LIST,
    TEXT,
    Floats,
    InputError,
    Rule,
    check_json,
    is_number,
    is_value,
    listing,
    number_rule,
    same_names,
)
from tdce.models.adapters import ModelAdapter
from tdce.models.frames import FrameBuilder
from tdce.models.model import AdaptedModel, MissingModel, Model
from tdce.models.output_goals import Range
from tdce.models.outputs import Output
from tdce.models.probing import rebuild, score_tolerance
from tdce.models.readers import Form, OutputReader
from tdce.schema import Encoder

MAX_CLASSES = 50
COMPARED = 256  # synthetic people by whose scores a model is known again
CLASSES = Rule(
    f"a list of 2 to {MAX_CLASSES} different words, numbers or true/false, or an empty one",
    lambda v: isinstance(v, list) and (not v or 2 <= len(v) <= MAX_CLASSES) and all(map(is_value, v)) and _differ(v),
)
OUTPUT = {
    "name": TEXT,
    "classes": CLASSES,
    "decides": FLAG,
    "border": number_rule(0, 1),
    "spread": Rule("a number above 0", lambda v: is_number(v) and 0 < v <= LARGEST),
    "edges": Rule("a list of numbers in order", lambda v: isinstance(v, list) and _increases(v)),
}
MODEL = {"models": LIST, "readings": LIST, "dtypes": LIST}  # of NAMED and READING for each output, of dtypes
NAMED = {
    "kind": TEXT,
    "name": TEXT,
    "digest": TEXT,
    "versions": Rule(
        "an object of texts", lambda v: isinstance(v, dict) and all(isinstance(t, str) for t in v.values())
    ),
}
READING = {"form": Rule(f"one of {listing(get_args(Form))}", lambda v: v in get_args(Form)), "spoken": CLASSES}
FAVOURABLE = Rule(
    "a class, a range or null, or one of these for each output",
    lambda v: _is_wanted(v) or (isinstance(v, dict) and all(map(_is_wanted, v.values()))),
)


def outputs_entry(outputs: tuple[Output, ...]) -> list[dict[str, Any]]:
    return [asdict(output) for output in outputs]


def outputs_of(entries: list[Any]) -> tuple[Output, ...]:
    for entry in entries:
        check_json(entry, OUTPUT, "output")
        if bool(entry["classes"]) == bool(entry["edges"]):
            raise InputError("its output has classes as well as groups of numbers, or neither")
    if not entries or len({entry["name"] for entry in entries}) < len(entries):
        raise InputError("its list of outputs is empty, or names one twice")
    kept = ({**entry, "classes": tuple(entry["classes"]), "edges": tuple(entry["edges"])} for entry in entries)
    return tuple(Output(**entry) for entry in kept)


def model_entry(model: Model, scored: Tensor | None) -> dict[str, Any] | None:
    """None: it is our own classifier, which the file holds."""
    if isinstance(model, MissingModel):
        return dict(model.entry)
    if not isinstance(model, AdaptedModel) or scored is None:
        return None
    by_scores = hashlib.sha256(np.round(scored.numpy(), 6).tobytes()).hexdigest()
    named = [{**{key: getattr(each, key) for key in NAMED}, "versions": dict(each.versions)} for each in model.models]
    return {
        "models": [{**each, "digest": each["digest"] or by_scores} for each in named],
        "readings": [{"form": reading.form, "spoken": list(reading.spoken)} for reading in model.readings],
        "dtypes": model.frames.entries(),
    }


def missing_model(entry: Mapping[str, Any], outputs: tuple[Output, ...], encoder: Encoder) -> MissingModel:
    """A model that is named in a file, checked; it must be brought again."""
    check_json(entry, MODEL, "model")
    for each in entry["models"]:
        check_json(each, NAMED, "model")
    for each, output in zip(entry["readings"], outputs, strict=False):
        check_json(each, READING, "reading")
        if (each["form"] == "number") == bool(output.classes) or len(each["spoken"]) != len(output.classes):
            raise InputError("its way of reading a model does not fit its outputs")
    sizes = {"models": len(outputs), "readings": len(outputs), "dtypes": len(encoder.schema)}
    for name, size in sizes.items():
        if len(entry[name]) != size:
            raise InputError(f"its model has {len(entry[name])} {name}, not {size}")
    FrameBuilder.restored(encoder.schema.features, entry["dtypes"])
    called = ", ".join(f"{each['name']} ({each['kind']})" for each in entry["models"])
    return MissingModel(
        outputs,
        f"this explainer was made for the model {called}, which a file never holds: bring it, "
        "Explainer.load(path, model=…) or --model FILE.onnx",
        dict(entry),
    )


def reattach(
    known: MissingModel, models: Mapping[str, ModelAdapter], encoder: Encoder, people: Floats, scored: Tensor
) -> AdaptedModel:
    """The model that was brought, if it is the one that the file names."""
    same_names(models, {output.name: None for output in known.outputs}, "model")
    for given, named in zip(models.values(), known.entry["models"], strict=True):
        if given.kind != named["kind"] or (given.digest and given.digest != named["digest"]):
            made_for = f"{named['name']} ({named['kind']}, {named['digest'][:12]})"
            raise InputError(f"the explainer was made for another model: {made_for}, not {given.name} "
                             f"({given.kind}, {given.digest[:12]})")  # fmt: skip
    readings = [
        OutputReader(output, entry["form"], tuple(entry["spoken"]))
        for output, entry in zip(known.outputs, known.entry["readings"], strict=True)
    ]
    model = rebuild(models, encoder, readings, known.entry["dtypes"])
    said, before = model.score(people[:COMPARED]), scored[:COMPARED].numpy()
    off = np.flatnonzero((np.abs(said - before) > score_tolerance(model)).any(axis=1))
    if len(off):
        raise InputError(
            f"the explainer was made for another model: it says {said[off[0]].tolist()} where the other said "
            f"{before[off[0]].tolist()}; fit again with this model"
        )
    return model


def favourable_entry(wanted: Any) -> Any:
    if isinstance(wanted, Range):
        return {"range": [wanted.low, wanted.high]}
    return {name: favourable_entry(each) for name, each in wanted.items()} if isinstance(wanted, dict) else wanted


def favourable_of(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    if set(entry) == {"range"} and isinstance(entry["range"], list):
        return Range(*entry["range"])
    return {name: favourable_of(each) for name, each in entry.items()}


def _is_wanted(value: Any) -> bool:
    if isinstance(value, dict):
        ends = value.get("range")
        sane = isinstance(ends, list) and len(ends) == 2 and all(end is None or is_number(end) for end in ends)
        return set(value) == {"range"} and sane and ends != [None, None]
    return value is None or is_value(value)


def _increases(values: list[Any]) -> bool:
    numbers = all(is_number(v) and abs(v) <= LARGEST for v in values)
    return numbers and all(a < b for a, b in pairwise(values))


def _differ(values: list[Any]) -> bool:
    """1, "1" and True are three values."""
    return len({(type(value), value) for value in values}) == len(values)
