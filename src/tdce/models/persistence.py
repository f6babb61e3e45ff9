"""The explained model in artefacts: its name, its digest and how its results are read, never the model itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any, get_args

import numpy as np
from torch import Tensor

from tdce._core import (
    JSON_FLAG,
    JSON_LIST,
    JSON_TEXT,
    LARGEST_VALUE,
    Floats,
    InputError,
    JsonRule,
    check_json,
    check_json_names,
    is_number,
    is_value,
    json_number,
    listing,
)
from tdce.models.adapters import ModelAdapter
from tdce.models.endpoint import hide_secrets
from tdce.models.frames import FrameBuilder
from tdce.models.model import AdaptedModel, MissingModel, Model
from tdce.models.output_goals import Range
from tdce.models.outputs import Output
from tdce.models.probing import rebuild
from tdce.models.readers import Form, OutputReader
from tdce.schema import Encoder

MAX_CLASSES = 50
COMPARED_ROWS = 256  # synthetic rows whose scores identify a model
CLASSES_RULE = JsonRule(
    f"a list of 2 to {MAX_CLASSES} different words, numbers or true/false, or an empty one",
    lambda v: isinstance(v, list) and (not v or 2 <= len(v) <= MAX_CLASSES) and all(map(is_value, v)) and _differ(v),
)
OUTPUT_RULES = {
    "name": JSON_TEXT,
    "classes": CLASSES_RULE,
    "decides": JSON_FLAG,
    "border": json_number(0, 1),
    "spread": JsonRule("a number above 0", lambda v: is_number(v) and 0 < v <= LARGEST_VALUE),
    "edges": JsonRule("a list of numbers in order", lambda v: isinstance(v, list) and _increases(v)),
}
MODEL_RULES = {"models": JSON_LIST, "readings": JSON_LIST, "dtypes": JSON_LIST}  # per output, output and feature
ADAPTER_RULES = {
    "kind": JSON_TEXT,
    "name": JSON_TEXT,
    "digest": JSON_TEXT,
    "versions": JsonRule(
        "an object of texts", lambda v: isinstance(v, dict) and all(isinstance(t, str) for t in v.values())
    ),
}
LIBRARY_RULE = {"library": JsonRule("polars or pyarrow", lambda v: v in ("polars", "pyarrow"))}  # absent: pandas
READER_RULES = {
    "form": JsonRule(f"one of {listing(get_args(Form))}", lambda v: v in get_args(Form)),
    "spoken": CLASSES_RULE,
}
FAVOURABLE_RULE = JsonRule(
    "a class, a range or null, or one of these for each output",
    lambda v: _is_favourable(v) or (isinstance(v, dict) and all(map(_is_favourable, v.values()))),
)


def outputs_to_json(outputs: tuple[Output, ...]) -> list[dict[str, Any]]:
    """Outputs as JSON, for `outputs_from_json`."""
    return [asdict(output) for output in outputs]


def outputs_from_json(entries: list[Any]) -> tuple[Output, ...]:
    """Outputs from JSON, checked."""
    for entry in entries:
        check_json(entry, OUTPUT_RULES, "output")
        if bool(entry["classes"]) == bool(entry["edges"]):
            raise InputError("its output has both classes and groups of numbers, or neither")
    if not entries or len({entry["name"] for entry in entries}) < len(entries):
        raise InputError("its list of outputs is empty or names one twice")
    fields = ({**entry, "classes": tuple(entry["classes"]), "edges": tuple(entry["edges"])} for entry in entries)
    return tuple(Output(**each) for each in fields)


def model_to_json(model: Model, scored: Tensor | None) -> dict[str, Any] | None:
    """The description of a user's model as JSON; None for our own classifier, which is in the file."""
    if isinstance(model, MissingModel):
        return dict(model.entry)
    if not isinstance(model, AdaptedModel) or scored is None:
        return None
    by_scores = hashlib.sha256(np.round(scored.numpy(), 6).tobytes()).hexdigest()
    named = [
        {**{key: getattr(each, key) for key in ADAPTER_RULES}, "versions": dict(each.versions)}
        | ({} if each.library == "pandas" else {"library": each.library})
        for each in model.models
    ]
    return {
        "models": [{**each, "digest": each["digest"] or by_scores} for each in named],
        "readings": [{"form": reader.form, "spoken": list(reader.model_classes)} for reader in model.readers],
        "dtypes": model.frames.to_json(),
    }


def missing_model_from_json(entry: Mapping[str, Any], outputs: tuple[Output, ...], encoder: Encoder) -> MissingModel:
    """The model that a file describes, checked; the model itself must come from the user."""
    check_json(entry, MODEL_RULES, "model")
    for each in entry["models"]:
        check_json(
            each, ADAPTER_RULES | (LIBRARY_RULE if isinstance(each, dict) and "library" in each else {}), "model"
        )
    for each, output in zip(entry["readings"], outputs, strict=False):
        check_json(each, READER_RULES, "reading")
        if (each["form"] == "number") == bool(output.classes) or len(each["spoken"]) != len(output.classes):
            raise InputError("its way of reading the model does not fit its outputs")
    sizes = {"models": len(outputs), "readings": len(outputs), "dtypes": len(encoder.schema)}
    for name, size in sizes.items():
        if len(entry[name]) != size:
            raise InputError(f"its model has {len(entry[name])} {name}, not {size}")
    FrameBuilder.from_json(encoder.schema.features, entry["dtypes"])
    entry = {**entry, "models": [{**each, "name": _shown_name(each)} for each in entry["models"]]}
    names = ", ".join(f"{each['name']} ({each['kind']})" for each in entry["models"])
    return MissingModel(
        outputs,
        f"this explainer was made for the model {names}, which the file does not contain: pass it with "
        "Explainer.load(path, model=…) or --model FILE.onnx",
        entry,
    )


def _shown_name(model: Mapping[str, Any]) -> str:
    """The name of a model, of an endpoint without the query, which earlier versions stored."""
    name: str = model["name"]
    return hide_secrets(name) if model["kind"] == "http" else name


def reattach(
    known: MissingModel, models: Mapping[str, ModelAdapter], encoder: Encoder, synthetic: Floats, scored: Tensor
) -> AdaptedModel:
    """The user's model, if it is the one that the file describes; else an error."""
    check_json_names(models, {output.name: None for output in known.outputs}, "model")
    for given, named in zip(models.values(), known.entry["models"], strict=True):
        if given.kind != named["kind"] or (given.digest and given.digest != named["digest"]):
            made_for = f"{named['name']} ({named['kind']}, {named['digest'][:12]})"
            raise InputError(f"the explainer was made for another model: {made_for}, not {given.name} "
                             f"({given.kind}, {given.digest[:12]})")  # fmt: skip
    readers = [
        OutputReader(output, entry["form"], tuple(entry["spoken"]))
        for output, entry in zip(known.outputs, known.entry["readings"], strict=True)
    ]
    libraries = [each.get("library", "pandas") for each in known.entry["models"]]
    model = rebuild(models, encoder, readers, known.entry["dtypes"], libraries)
    if difference := model.differs(scored[:COMPARED_ROWS].numpy(), model.score(synthetic[:COMPARED_ROWS])):
        raise InputError("the explainer was made for another model, or this one has changed: of the same row the model "
                         f"{difference}; fit again with this model")  # fmt: skip
    return model.with_reference(synthetic, scored.numpy())


def favourable_to_json(wanted: Any) -> Any:
    """The favourable value as JSON, for `favourable_from_json`."""
    if isinstance(wanted, Range):
        return {"range": [wanted.low, wanted.high]}
    return {name: favourable_to_json(each) for name, each in wanted.items()} if isinstance(wanted, dict) else wanted


def favourable_from_json(entry: Any) -> Any:
    """The favourable value from JSON."""
    if not isinstance(entry, dict):
        return entry
    if set(entry) == {"range"} and isinstance(entry["range"], list):
        return Range(*entry["range"])
    return {name: favourable_from_json(each) for name, each in entry.items()}


def _is_favourable(value: Any) -> bool:
    if isinstance(value, dict):
        ends = value.get("range")
        sane = isinstance(ends, list) and len(ends) == 2 and all(end is None or is_number(end) for end in ends)
        return set(value) == {"range"} and sane and ends != [None, None]
    return value is None or is_value(value)


def _increases(values: list[Any]) -> bool:
    numbers = all(is_number(v) and abs(v) <= LARGEST_VALUE for v in values)
    return numbers and all(a < b for a, b in pairwise(values))


def _differ(values: list[Any]) -> bool:
    """Whether all values differ; 1, "1" and True are three values."""
    return len({(type(value), value) for value in values}) == len(values)
