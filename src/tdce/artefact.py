"""A fitted explainer as one file: a safetensors file whose metadata is JSON. Reading it runs no code.

The JSON has a format version and a checksum of the tensors, so that a newer or damaged file is refused by name.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from tdce.encoder import Encoder, Scale
from tdce.errors import InputError
from tdce.schema import Numeric, Schema
from tdce.tables import write_whole

FORMAT = 1
Tensors = dict[str, Tensor]


def save(path: Path, content: dict[str, Any], tensors: Tensors) -> None:
    tensors = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    content = {"format": FORMAT, "checksum": _checksum(tensors), **content}
    write_whole(path, to_bytes(tensors, {"tdce": json.dumps(content, ensure_ascii=False)}))


def load(path: Path) -> tuple[dict[str, Any], Tensors]:
    if not path.is_file():
        raise InputError(f"there is no file {path}; `tdce fit` or Explainer.save writes one")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged or not a tdce artefact ({error}); fit and save it again") from None
    try:
        content = json.loads(metadata["tdce"])
    except (KeyError, json.JSONDecodeError):
        raise InputError(f"{path} is a safetensors file, but not one that tdce wrote") from None
    if content.get("format") != FORMAT:
        raise InputError(
            f"{path} has artefact format {content.get('format')}, this tdce reads {FORMAT}; update it, or fit again"
        )
    if content["checksum"] != _checksum(tensors):
        raise InputError(f"{path} is damaged: its tensors do not match their checksum; fit and save it again")
    return content, tensors


def scales(encoder: Encoder) -> Tensors:
    """What the encoder learned, by the feature's position."""
    tensors: Tensors = {}
    for i, feature in enumerate(encoder.schema):
        if isinstance(feature, Numeric):
            tensors[f"scale.{i}.raw"] = torch.from_numpy(encoder.scales[feature.name].raw)
            tensors[f"scale.{i}.score"] = torch.from_numpy(encoder.scales[feature.name].score)
        else:
            tensors[f"average.{i}"] = torch.from_numpy(encoder.averages[feature.name])
    return tensors


def encoder(schema: Schema, tensors: Tensors) -> Encoder:
    """The inverse of `scales`."""
    numeric = {f.name: i for i, f in enumerate(schema) if isinstance(f, Numeric)}
    others = {f.name: i for i, f in enumerate(schema) if not isinstance(f, Numeric)}
    return Encoder(
        schema,
        {n: Scale(tensors[f"scale.{i}.raw"].numpy(), tensors[f"scale.{i}.score"].numpy()) for n, i in numeric.items()},
        {n: tensors[f"average.{i}"].numpy() for n, i in others.items()},
    )


def weights(name: str, module: nn.Module) -> Tensors:
    return {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}


def fill(name: str, module: nn.Module, tensors: Tensors) -> None:
    """The inverse of `weights`: put saved weights into a module of the same shape."""
    own = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
    module.load_state_dict(own)
    module.eval().requires_grad_(False)


def _checksum(tensors: Tensors) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}".encode())
        digest.update(np.ascontiguousarray(tensors[name].numpy()).tobytes())
    return digest.hexdigest()
