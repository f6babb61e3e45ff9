"""A fitted explainer as one file: tensors and JSON under one seal. Reading it runs no code and trusts nothing.

`CONTENT` and `_layout` specify a valid file (each column names its own arrays), and `_read` checks all of it. Both
`load` and `save` call `_read`, so what was saved can be loaded. docs/reliability.md lists what a file holds.
"""

from __future__ import annotations

import json
import reprlib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from tdce._core import (
    JSON_FLAG,
    JSON_LIST,
    JSON_NAME,
    JSON_OBJECT,
    JSON_TEXT,
    LARGEST_COUNT,
    LARGEST_VALUE,
    LAST_SEED,
    TAU_RANGE,
    WIDEST_LAYER,
    Floats,
    InputError,
    JsonRule,
    check_json,
    check_json_names,
    json_integer,
    json_number,
    json_or_null,
    listing,
    plain,
)
from tdce.datasets import write_whole
from tdce.diffusion import ENERGY_QUANTILES, TabularDiffusion
from tdce.explainer.fitted import Fitted, StoredPrecedents
from tdce.explainer.formats import upgraded
from tdce.explainer.sealed_file import Content, TensorHeader, Tensors, open_sealed, seal, tensors_of
from tdce.methods import METHODS, PRECEDENT_POSITIONS, Method, method_name, setting_types
from tdce.models import (
    FAVOURABLE_RULE,
    MAX_CLASSES,
    Classifier,
    Model,
    NetworkModel,
    Output,
    SecondOpinion,
    check_favourable,
    count_terms,
    favourable_from_json,
    favourable_to_json,
    missing_model_from_json,
    model_to_json,
    outputs_from_json,
    outputs_to_json,
)
from tdce.schema import LARGEST_SCORE, Encoder, Schema, Sizes, Space

METHOD_RULE = JsonRule(f"one of {listing(METHODS)}", lambda v: isinstance(v, str) and v in METHODS)
HIDDEN_RULE, BLOCKS_RULE, TIMES_RULE = json_integer(1, WIDEST_LAYER), json_integer(1, 64), json_integer(1, 10_000)
COLUMNS_RULE, ROWS_RULE, STEPS_RULE = json_integer(1, 10**9), json_integer(1, 10**12), json_integer(0, LARGEST_COUNT)
SHARE_RULE, LOSS_RULE = json_number(0, 1), json_number(-LARGEST_VALUE, LARGEST_VALUE)
CLASSES_RULE, TRAINED_RULE = json_integer(0, MAX_CLASSES), json_integer(1, LARGEST_COUNT)
SEED_RULE = json_integer(0, LAST_SEED)
TAU_RULE = JsonRule(
    f"two numbers from {TAU_RANGE[0]:g} to {TAU_RANGE[1]:g}",
    lambda v: isinstance(v, list) and len(v) == 2 and all(map(json_number(*TAU_RANGE).holds, v)),
)

CONTENT = {
    "schema": JSON_OBJECT,  # written by Schema.to_json
    "label": json_or_null(JSON_NAME),
    "favourable": FAVOURABLE_RULE,
    "outputs": JSON_LIST,  # each by OUTPUT_RULES of models/persistence.py
    "classifier": json_or_null(JSON_OBJECT),  # CLASSIFIER_CONTENT; null if the user brought a model
    "model": json_or_null(JSON_OBJECT),  # by MODEL_RULES, likewise, if the user brought a model; else null
    "diffusion": {
        "hidden": HIDDEN_RULE,
        "blocks": BLOCKS_RULE,
        "times": TIMES_RULE,
        "classes": CLASSES_RULE,
        "tau": TAU_RULE,
    },
    "settings": {
        "hidden": HIDDEN_RULE,
        "tau": TAU_RULE,
        "steps": TRAINED_RULE,
        "seed": SEED_RULE,
        "keep_rows": JSON_FLAG,
        "exact": JSON_FLAG,
    },  # arguments of Explainer(…)
    "method": {"name": METHOD_RULE, "settings": JSON_OBJECT},  # all settings, so that new defaults change nothing
    "report": {
        "rows": ROWS_RULE,
        "accuracy": json_or_null(SHARE_RULE),
        "commonest_class": json_or_null(SHARE_RULE),
        "calibration_error": json_or_null(SHARE_RULE),
        "test_rows": ROWS_RULE,
        "held_out_loss": {"classifier": json_or_null(LOSS_RULE), "diffusion": LOSS_RULE},
        "steps": {"classifier": json_or_null(STEPS_RULE), "diffusion": STEPS_RULE},
        "seed": SEED_RULE,
        "versions": dict.fromkeys(("python", "tdce", "torch", "numpy", "pandas"), JSON_TEXT),
    },
}
"""The JSON besides format and digest: exactly these names, each with a value that its rule allows."""

CLASSIFIER_CONTENT = {
    "width": COLUMNS_RULE,
    "classes": json_integer(2, MAX_CLASSES),
    "hidden": HIDDEN_RULE,
    "blocks": BLOCKS_RULE,
}

SETTINGS = ("hidden", "tau", "steps", "seed", "keep_rows")

NOT_SAVED = ("seconds", "fitted")  # entries of the report; without them, two fits of one table give the same bytes

LARGEST_WEIGHT = 1e3  # trained weights are about a hundred times smaller

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Saved:
    """What a file holds: what was learned, the method, and the settings of the explainer."""

    fitted: Fitted
    method: Method
    hidden: int
    tau: tuple[float, float]
    steps: int
    seed: int
    keep_rows: bool

    def alike(self, other: Saved) -> bool:
        """Whether `save` would write the same file."""
        others = ("method", "hidden", "tau", "steps", "seed", "keep_rows")
        return self.fitted is other.fitted and all(getattr(self, name) == getattr(other, name) for name in others)


def save(path: Path, saved: Saved) -> str:
    """Write the file whole, with training rows only if they are to be kept; returns its sha256."""
    whole = _written(saved)
    try:
        _read(whole)
    except InputError as error:
        raise InputError(f"this explainer cannot be saved: {error}") from None
    write_whole(path, whole)
    return sha256(whole).hexdigest()


def fingerprint(saved: Saved) -> str:
    """The sha256 of the file that `save` would write."""
    return sha256(_written(saved)).hexdigest()


def load(path: Path) -> tuple[Saved, str]:
    """The content of a file, and the file's sha256."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; `tdce fit` or Explainer.save writes one")
    try:
        whole = path.read_bytes()
        return _read(whole), sha256(whole).hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; make it readable, or copy it elsewhere") from None
    except InputError as error:
        raise InputError(f"{path} cannot be loaded: {error}; fit and save it again") from None


def _written(saved: Saved) -> bytes:
    try:
        return seal(_content(saved), _tensors(saved))
    except InputError as error:
        raise InputError(f"this explainer cannot be saved: {error}") from None


def _read(whole: bytes) -> Saved:
    """Turn bytes into an explainer; each step relies only on what the steps before have checked."""
    whole = upgraded(whole)
    content, entries = open_sealed(whole)
    check_json(content, CONTENT, "")
    outputs = outputs_from_json(content["outputs"])
    schema = _schema(content)
    _agree(content, schema, outputs)
    method = _method(**content["method"])
    _compare(entries, _layout(content, schema, outputs))  # before anything of these sizes is allocated
    tensors = tensors_of(whole)
    _check_weights(tensors)
    encoder = _encoder(schema, tensors)
    raw, y = tensors["rows.raw"].numpy(), tensors["rows.y"]
    synthetic, quantiles = tensors["synthetic.raw"].numpy(), tensors["energy_quantiles"]
    _check_rows(content, encoder, raw, y, outputs[0].groups)
    _check_synthetic(encoder, synthetic, quantiles)
    rows, answers = (tensors[f"precedents.{name}"].numpy() for name in ("row", "answer"))
    precedents = StoredPrecedents(rows, answers, tensors["precedents.energy"])
    _check_precedents(encoder, precedents, len(synthetic))

    tau = tuple(content["diffusion"]["tau"])
    second_opinion = SecondOpinion(
        encoder.space.num, *(tensors[f"second_opinion.{name}"] for name in ("weights", "units"))
    )
    decides: Model
    if content["model"] is None:
        classifier = _filled("classifier", Classifier(**content["classifier"]), tensors)
        decides = NetworkModel(classifier, encoder.embed, outputs[0].classes)
    else:
        classifier, decides = None, missing_model_from_json(content["model"], outputs, encoder)
    fitted = Fitted(
        encoder, content["label"], favourable_from_json(content["favourable"]), classifier,
        _filled("diffusion", TabularDiffusion(encoder.space, **content["diffusion"] | {"tau": tau}), tensors),
        raw, y, synthetic, quantiles, decides, second_opinion, content["report"],
        synthetic_scores=tensors.get("synthetic.score"), precedents=precedents,
        exact=content["settings"]["exact"],
    )  # fmt: skip
    settings = {name: content["settings"][name] for name in SETTINGS} | {"tau": tuple(content["settings"]["tau"])}
    return Saved(fitted, method, **settings)


def _content(saved: Saved) -> Content:
    fitted, method = saved.fitted, saved.method
    name = method_name(method)
    if name is None:
        raise InputError(f"its method, of class {type(method).__name__}, is not one of those known: {listing(METHODS)}")
    return {
        "schema": json.loads(fitted.encoder.schema.to_json()),
        "label": fitted.label if fitted.label is None else plain(fitted.label),
        "favourable": favourable_to_json(fitted.favourable),
        "outputs": outputs_to_json(fitted.outputs),
        "classifier": fitted.classifier and fitted.classifier.settings,
        "model": model_to_json(fitted.decides, fitted.synthetic_scores),
        "diffusion": fitted.diffusion.settings,
        "settings": {name: getattr(saved, name) for name in SETTINGS} | {"exact": fitted.exact},
        "method": {"name": name, "settings": {key: getattr(method, key) for key in setting_types(METHODS[name])}},
        "report": {key: value for key, value in fitted.report.items() if key not in NOT_SAVED},
    }


def _tensors(saved: Saved) -> Tensors:
    fitted = saved.fitted
    kept = len(fitted.raw) if saved.keep_rows else 0
    tensors = {"rows.raw": torch.from_numpy(fitted.raw[:kept]), "rows.y": fitted.y[:kept]}
    tensors |= {"synthetic.raw": torch.from_numpy(fitted.synthetic), "energy_quantiles": fitted.energy_quantiles}
    positions = len(PRECEDENT_POSITIONS)
    none = StoredPrecedents(
        np.zeros(0, dtype=np.int64), np.zeros((0, positions, fitted.synthetic.shape[1])), torch.zeros(0, positions)
    )
    rows, answers, energy = fitted.precedents or none
    tensors |= {"precedents.row": torch.from_numpy(rows), "precedents.answer": torch.from_numpy(answers)}
    tensors["precedents.energy"] = energy
    opinion = fitted.second_opinion
    tensors |= {"second_opinion.weights": opinion.weights, "second_opinion.units": opinion.units}
    for i, learned in enumerate(fitted.encoder.columns):
        tensors |= {name.format(i): torch.from_numpy(array) for name, array in learned.arrays().items()}
    modules = {"classifier": fitted.classifier, "diffusion": fitted.diffusion}
    for name, module in modules.items():
        state = {} if module is None else module.state_dict()
        tensors |= {f"{name}.{key}": tensor.cpu() for key, tensor in state.items()}
    return tensors if fitted.synthetic_scores is None else tensors | {"synthetic.score": fitted.synthetic_scores}


def _layout(content: Content, schema: Schema, outputs: tuple[Output, ...]) -> dict[str, tuple[str, Sizes]]:
    """The dtype and shape of every tensor by name; the names of a column's tensors include its position."""
    space, classifier, diffusion = Space.of(schema), content["classifier"], content["diffusion"]
    layout: dict[str, tuple[str, Sizes]] = {"rows.raw": ("F64", ("rows", len(schema))), "rows.y": ("I64", ("rows",))}
    layout |= {
        "synthetic.raw": ("F64", ("synthetic", len(schema))),
        "energy_quantiles": ("F64", (outputs[0].groups, ENERGY_QUANTILES)),
        "precedents.row": ("I64", ("precedents",)),
        "precedents.answer": ("F64", ("precedents", len(PRECEDENT_POSITIONS), len(schema))),
        "precedents.energy": ("F32", ("precedents", len(PRECEDENT_POSITIONS))),
    }
    scores = sum(max(1, len(output.classes)) for output in outputs)
    layout["second_opinion.weights"] = "F64", (count_terms(space.num, space.cat), scores)
    layout["second_opinion.units"] = "F64", (len(outputs),)
    for i, column in enumerate(schema):
        layout |= {name.format(i): shape for name, shape in column.layout().items()}
    weights: dict[str, Sizes] = {"diffusion.low": (space.num,), "diffusion.high": (space.num,)}
    if classifier is None:
        layout["synthetic.score"] = "F64", ("synthetic", sum(output.columns for output in outputs))
    else:
        size, blocks = classifier["hidden"], classifier["blocks"]
        weights |= _weights("classifier.network", space.width, len(outputs[0].classes), size, blocks)
        weights["classifier.temperature"] = ()
    inputs = space.width + diffusion["classes"]
    weights |= _weights("diffusion.network", inputs, space.width, diffusion["hidden"], diffusion["blocks"], timed=True)
    return layout | {name: ("F32", shape) for name, shape in weights.items()}


def _weights(
    name: str, width: int, outputs: int | str, hidden: int, blocks: int, timed: bool = False
) -> dict[str, Sizes]:
    """Shapes of a `Backbone`: its linear layers, then its norms, each with a weight and a bias."""
    layers: dict[str, Sizes] = {"inputs": (hidden, width), "outputs": (outputs, hidden)}
    if timed:
        layers |= {"time.first": (hidden, 128), "time.second": (hidden, hidden)}
    for i in range(blocks):
        layers |= {f"blocks.{i}.first": (hidden, hidden), f"blocks.{i}.second": (hidden, hidden)}
    layers |= dict.fromkeys(("norm", *(f"blocks.{i}.norm" for i in range(blocks))), (hidden,))
    weights = {f"{name}.{layer}.weight": shape for layer, shape in layers.items()}
    return weights | {f"{name}.{layer}.bias": shape[:1] for layer, shape in layers.items()}


def _schema(content: Content) -> Schema:
    schema = Schema.from_json(json.dumps(content["schema"]))
    if json.loads(schema.to_json()) != content["schema"]:
        raise InputError("its schema is not written the way tdce writes one")
    return schema


def _agree(content: Content, schema: Schema, outputs: tuple[Output, ...]) -> None:
    """Check that interdependent parts of the content agree."""
    classifier, classes = content["classifier"], outputs[0].classes
    if content["label"] is not None and content["label"] in schema.names:
        raise InputError(f"its label {content['label']!r} is also a feature of its schema")
    if (classifier is None) != (content["model"] is not None):
        raise InputError("it has a classifier as well as a model, or neither")
    if classifier is not None:
        check_json(classifier, CLASSIFIER_CONTENT, "classifier")
        if content["label"] is None:
            raise InputError("it has a classifier and no label")
        if outputs != (Output(classes=classes),):
            raise InputError("its classifier does not fit its outputs")
        if (classifier["width"], classifier["classes"]) != (Space.of(schema).width, len(classes)):
            raise InputError("its classifier does not fit its schema and its classes")
    if content["diffusion"]["classes"] != outputs[0].groups:
        raise InputError("its diffusion model does not fit its classes")
    favourable = favourable_from_json(content["favourable"])
    if favourable_to_json(check_favourable(favourable, outputs)) != content["favourable"]:
        raise InputError(f"its favourable {reprlib.repr(favourable)} is not written the way tdce writes one")


def _method(name: str, settings: dict[str, Any]) -> Method:
    check_json_names(settings, setting_types(METHODS[name]), f"method {name}")
    return METHODS[name](**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})


def _compare(entries: dict[str, TensorHeader], layout: dict[str, tuple[str, Sizes]]) -> None:
    """Check that exactly the tensors of the layout are there, each with its dtype and shape."""
    check_json_names(entries, layout, "list of tensors")
    sizes: dict[str, int] = {}
    for name, (dtype, shape) in layout.items():
        header = entries[name]
        if len(shape) == len(header.shape):
            pairs = zip(shape, header.shape, strict=True)
            shape = tuple(sizes.setdefault(size, its) if isinstance(size, str) else size for size, its in pairs)
        if header != (dtype, shape):
            raise InputError(f"its tensor {name!r} is {header.dtype} {list(header.shape)}, not {dtype} {list(shape)}")


def _check_weights(tensors: Tensors) -> None:
    low, high = tensors["diffusion.low"], tensors["diffusion.high"]
    for name, tensor in tensors.items():
        largest = LARGEST_SCORE if name in ("diffusion.low", "diffusion.high") else LARGEST_WEIGHT
        if tensor.dtype is torch.float32 and not (tensor.abs() <= largest).all():  # nor is NaN
            raise InputError(f"its tensor {name!r} has a value that is not a number, or is too large")
    units = tensors["second_opinion.units"]
    if (
        not (tensors["second_opinion.weights"].abs() <= LARGEST_VALUE).all()
        or not ((units > 0) & (units < LARGEST_WEIGHT)).all()
    ):
        raise InputError("its second opinion has a value that is not a number, or is too large")
    if not (low <= high).all():
        raise InputError("its diffusion model has a range whose low end is above its high end")
    temperature = tensors["classifier.temperature"].item() if "classifier.temperature" in tensors else 1.0
    if not 0.01 <= temperature <= 100:
        raise InputError(f"its classifier has the temperature {temperature:g}, not one from 0.01 to 100")


def _encoder(schema: Schema, tensors: Tensors) -> Encoder:
    """The encoder, restored from what was learned about each column."""
    columns = (
        column.restore({name: tensors[name.format(i)].numpy() for name in column.layout()})
        for i, column in enumerate(schema)
    )
    return Encoder(tuple(columns), schema)


def _check_rows(content: Content, encoder: Encoder, raw: Floats, y: Tensor, classes: int) -> None:
    """Check the training rows: values that each column knows, valid class numbers, and none unless they are kept."""
    _check_values(encoder, raw, "training rows")
    if not ((y >= 0) & (y < classes)).all():
        raise InputError("its training rows have a class that is not in its list")
    if (len(raw) > 0) != content["settings"]["keep_rows"]:
        claim, has = ("keeps", "has none") if len(raw) == 0 else ("does not keep", "has some")
        raise InputError(f"it says that it {claim} its training rows, but {has}")
    if len(raw) > content["report"]["rows"]:
        raise InputError(f"it has {len(raw)} training rows, more than the {content['report']['rows']} of its table")


def _check_synthetic(encoder: Encoder, synthetic: Floats, quantiles: Tensor) -> None:
    """Check the synthetic rows (at least one, of values that each column knows) and the order of the quantiles."""
    _check_values(encoder, synthetic, "synthetic rows")
    if len(synthetic) == 0:
        raise InputError("it has no synthetic rows")
    if not ((quantiles.abs() <= LARGEST_VALUE).all() and (quantiles.diff(dim=1) >= 0).all()):  # nor is NaN
        raise InputError("its tensor 'energy_quantiles' does not increase, or has a value that is not a number")


def _check_precedents(encoder: Encoder, precedents: StoredPrecedents, synthetic: int) -> None:
    """Check the precedents: answers to known synthetic rows, of values that each column knows."""
    rows, answers, energy = precedents
    _check_values(encoder, answers.reshape(-1, answers.shape[2]), "precedents")
    if not ((rows >= 0) & (rows < synthetic)).all():
        raise InputError("its precedents answer synthetic rows that it does not have")
    if not (energy.abs() <= LARGEST_VALUE).all():  # nor is NaN
        raise InputError("its tensor 'precedents.energy' has a value that is not a number")


def _check_values(encoder: Encoder, raw: Floats, whose: str) -> None:
    """Check that each column knows its values; missing is valid."""
    for learned, values in zip(encoder.columns, raw.T, strict=True):
        if not learned.knows(values[~np.isnan(values)]).all():
            raise InputError(f"its {whose} have a value of {learned.column.name!r} that was never learned")


def _filled(name: str, module: Module, tensors: Tensors) -> Module:
    """A module of the same shape with the saved weights."""
    own = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
    module.load_state_dict(own)
    return module.eval().requires_grad_(False)
