"""The canonical way to write a value as JSON, and to hash it."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import numpy as np

from tdce._core import Floats, InputError, Value, plain, show
from tdce.schema import Schema

WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


Cell = Value | None


def row_hashes(schema: Schema, rows: Iterable[list[Cell]], secret: bytes | None = None) -> list[str]:
    """(n,) hashes of the rows as asked about: names, kinds and values of their features, in the schema's order."""
    named = [(column.name, column.kind) for column in schema]
    return [digest("row", [[*each, cell] for each, cell in zip(named, row, strict=True)], secret) for row in rows]


def table_digest(schema: Schema, raw: Floats, labels: Iterable[Any]) -> str:
    """The hash of a learned table: its rows in order, and their labels."""
    return digest("table", [row_hashes(schema, json_cells(schema, raw)), [json_label(each) for each in labels]])


def json_cells(schema: Schema, raw: Floats) -> list[list[Cell]]:
    """(n, features) cells for JSON: numbers by their shortest exact text, missing as null."""
    columns = [column.cells(values + 0.0) for column, values in zip(schema, raw.T, strict=True)]  # no -0.0
    return [list(row) for row in zip(*columns, strict=True)]


def canonical(value: Any) -> str:
    """The value as canonical JSON."""
    try:
        text = WRITER.encode(value)
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"evidence cannot hold {show(value)}: it has half a character; correct the text") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"evidence cannot hold {show(value)}: {error}") from None
    return text


def digest(what: str, value: Any, secret: bytes | None = None) -> str:
    """SHA-256 of the value as JSON, prefixed with a word for what it is; with a secret, HMAC-SHA-256, so that nobody
    without the secret can find the value by hashing the few possible ones."""
    text = f"{what}\n{canonical(value)}".encode()
    return sha256(text).hexdigest() if secret is None else hmac.digest(secret, text, "sha256").hex()


def json_label(label: Any) -> Any:
    """An index label for JSON: anything but text or a finite number becomes text."""
    label = plain(label)
    if isinstance(label, float) and not np.isfinite(label):
        return str(label)
    return label if isinstance(label, str | bool | int | float) else str(label)
