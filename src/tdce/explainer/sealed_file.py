"""A safetensors file under one seal: a sha256 over all of its bytes except the digest itself.

The file's metadata is JSON that begins with the digest, so the digest is at the same place in every file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from tdce._core import InputError, is_integer, parse_strict_json, plain

FORMAT = 10
OLDEST = 8  # oldest format that is read; formats.py has the upgrades from each to the next
BEFORE = b'{"__metadata__":{"tdce":"{\\"sha256\\":\\"'  # the bytes between the header's length and the digest
DIGEST = slice(8 + len(BEFORE), 8 + len(BEFORE) + 64)
BLANK = "0" * 64  # in the digest's place while it is computed

Content = dict[str, Any]
Tensors = dict[str, Tensor]


class TensorHeader(NamedTuple):
    """A tensor's entry in the header."""

    dtype: str
    shape: tuple[int, ...]


def seal(content: Content, tensors: Tensors) -> bytes:
    """The bytes of the file; the same content and tensors give the same bytes."""
    try:
        text = json.dumps(
            {"format": FORMAT, **content}, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_unwrapped
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"it has a value that JSON cannot hold ({error})") from None
    whole = to_bytes(
        {name: tensor.detach().contiguous() for name, tensor in tensors.items()},
        {"tdce": f'{{"sha256":"{BLANK}",{text[1:]}'},
    )
    return whole[: DIGEST.start] + _digest(whole) + whole[DIGEST.stop :]


def open_sealed(whole: bytes, form: int = FORMAT) -> tuple[Content, dict[str, TensorHeader]]:
    """The content and the tensors' entries of a file of this format with an unbroken seal; no tensor is allocated."""
    header, metadata, content = _opened(whole)
    found = content.pop("format")
    if not is_integer(found) or found != form:
        known = f"this tdce reads {OLDEST} to {FORMAT}"
        raise InputError(f"it has artefact format {found!r:.20}, {known} ({_way_out(found)})")
    if whole[8 : DIGEST.start] != BEFORE or whole[DIGEST] != _digest(whole) or len(metadata) > 1:
        raise InputError("it is damaged: its bytes do not match its checksum")
    content.pop("sha256")
    return content, {name: _entry(name, entry, len(whole)) for name, entry in header.items()}


def format_of(whole: bytes) -> Any:
    """The format that a file claims, whether or not it can be read."""
    return _opened(whole)[2]["format"]


def tensors_of(whole: bytes) -> Tensors:
    """The tensors of an opened file; they must fill it to its last byte."""
    try:
        return from_bytes(whole)
    except SafetensorError as error:
        raise InputError(f"its tensors do not fit the file ({error})") from None


def _entry(name: str, entry: Any, most: int) -> TensorHeader:
    if isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}:
        dtype, shape = entry["dtype"], entry["shape"]
        sane = isinstance(shape, list) and all(is_integer(size) and 0 <= size <= most for size in shape)
        if sane and isinstance(dtype, str):
            return TensorHeader(dtype, tuple(shape))
    raise InputError(f"its tensor {name!r:.80} lacks a sensible dtype, shape or place")


def _opened(whole: bytes) -> tuple[dict[str, Any], dict[str, Any], Content]:
    """The header, its metadata and the content; an error if the bytes cannot be read."""
    size = int.from_bytes(whole[:8], "little")
    try:
        header = parse_strict_json(whole[8 : 8 + size])
        metadata = header.pop("__metadata__", {})
    except (ValueError, AttributeError, TypeError):
        raise InputError("it is damaged or not a tdce artefact") from None
    try:
        content = parse_strict_json(metadata["tdce"].encode())
        content["format"]
    except (ValueError, AttributeError, TypeError, KeyError):
        raise InputError("it is damaged, or a safetensors file, but not one that tdce wrote") from None
    return header, metadata, content


def _way_out(form: Any) -> str:
    if is_integer(form) and form > FORMAT:
        return "a newer tdce wrote it, update this one"
    if is_integer(form) and form > 0:
        return "an older tdce wrote it: docs/formats.md says which, and how to convert it"
    return "it is damaged"


def _unwrapped(value: Any) -> Any:
    if isinstance(value, np.generic):
        return plain(value)
    raise TypeError(f"{value!r:.80} is {type(value).__name__}")


def _digest(whole: bytes) -> bytes:
    """The digest of the file with the digest's place blank."""
    digest = hashlib.sha256(whole[: DIGEST.start])
    digest.update(BLANK.encode())
    digest.update(memoryview(whole)[DIGEST.stop :])
    return digest.hexdigest().encode()
