"""Where an answer comes from: hashes of the artefact, the model, the schema and the laws, the method, the machine."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tdce.explainer.fitted import Fitted
from tdce.methods import METHODS, Method, method_name, setting_types
from tdce.models import model_to_json
from tdce.schema import Schema


@dataclass(frozen=True)
class Provenance:
    """Where an answer comes from, as plain values; hashes are SHA-256 in hexadecimal digits."""

    artefact: str  # hash of the saved file, or of what `save` would write; empty: it cannot be saved
    models: tuple[Mapping[str, Any], ...]  # output, kind, name, digest and versions of each model
    schema: str
    laws: str  # hash of the schema's laws and rules, which the schema's hash covers too
    method: str
    settings: Mapping[str, Any]  # of the method
    machine: Mapping[str, str]  # versions, and the CPU instructions that torch uses

    @classmethod
    def of(cls, fitted: Fitted, method: Method, artefact: str) -> Provenance:
        schema = fitted.encoder.schema
        name = method_name(method) or type(method).__name__
        settings = {key: _plain(getattr(method, key)) for key in setting_types(type(method))} if name in METHODS else {}
        return cls(artefact, _models(fitted), _schema(schema), _laws(schema), name, settings, machine())


def machine() -> dict[str, str]:
    """The machine that runs this process."""
    versions = {"tdce": _own_version(), "python": platform.python_version(), "torch": str(torch.__version__)}
    return {**versions, "numpy": np.__version__, "instructions": torch.backends.cpu.get_cpu_capability()}


@cache
def _own_version() -> str:
    return version("tdce")


def _models(fitted: Fitted) -> tuple[Mapping[str, Any], ...]:
    entry = model_to_json(fitted.decides, fitted.synthetic_scores)
    if entry is None:
        digest = "" if fitted.classifier is None else _weights(fitted.classifier)
        return ({"output": "", "kind": "tdce", "name": "classifier", "digest": digest, "versions": {}},)
    named = zip(fitted.outputs, entry["models"], strict=True)
    return tuple({"output": output.name, **each, "name": _name(each)} for output, each in named)


def _name(model: Mapping[str, Any]) -> str:
    """The model's name: a file without its folder, an endpoint without its address, which may hold a password."""
    return "endpoint" if model["kind"] == "http" else Path(model["name"]).name


def _weights(module: nn.Module) -> str:
    digest = sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _schema(schema: Schema) -> str:
    """The hash of the schema as an artefact restores it, independent of the order in which wording was given."""
    saved = json.dumps(json.loads(schema.to_json()), sort_keys=True)
    return _digest(Schema.from_json(saved).to_json())


def _laws(schema: Schema) -> str:
    return _digest(json.dumps({"laws": [law.entry() for law in schema.laws], "rules": list(schema.rules)}))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """The value as JSON would hold it."""
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
