"""What is known about each column: its kind, its grid, its range or categories, and what may change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import pandas as pd

from tdce.cells import Name, check_table
from tdce.columns import Categorical, Column, Numeric, from_entry, infer
from tdce.errors import InputError, listing

__all__ = ["Categorical", "Column", "Numeric", "Schema"]


@dataclass(frozen=True)
class Schema:
    """The features of a table, in its own column order."""

    features: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("there is no feature column; the table needs at least one besides the label")
        _check_different(self.names)

    @classmethod
    def infer(cls, frame: pd.DataFrame, label: Name | None = None) -> Self:
        """Read kinds, grids, ranges and categories off a table; `label` is left out."""
        check_table(frame)
        _check_different(frame.columns)
        if len(frame) == 0:
            raise InputError("the table has no rows")
        return cls(tuple(infer(frame[name]) for name in frame.columns if label is None or name != label))

    def __iter__(self) -> Iterator[Column]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Name) -> Column:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise InputError(f"there is no feature {name!r}; known: {listing(self.names)}")

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(f.name for f in self.features)

    @property
    def immutable(self) -> tuple[Name, ...]:
        return tuple(f.name for f in self.features if f.immutable)

    def change(self, name: Name, **settings: Any) -> Self:
        """A copy in which one feature has other settings: `schema.change("age", direction="increase")`."""
        self[name].check_settings(name, settings)
        changed = replace(self[name], **settings)
        return replace(self, features=tuple(changed if f.name == name else f for f in self.features))

    def freeze(self, *names: Name) -> Self:
        """A copy in which these features are immutable."""
        schema = self
        for name in names:
            schema = schema.change(name, immutable=True)
        return schema

    def to_json(self) -> str:
        """Text for a person to read and edit; `from_json` takes it back."""
        lines = ",\n    ".join(json.dumps(f.entry(), ensure_ascii=False) for f in self.features)
        return f'{{\n  "tdce_schema": 1,\n  "features": [\n    {lines}\n  ]\n}}\n'

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"the schema is not valid JSON: {error}") from None
        if not isinstance(content, dict) or content.get("tdce_schema") != 1:
            raise InputError('the schema must be a JSON object with "tdce_schema": 1 and "features"')
        entries = content.get("features")
        if not isinstance(entries, list):
            raise InputError('the schema\'s "features" must be a list')
        return cls(tuple(from_entry(entry) for entry in entries))

    def describe(self) -> list[tuple[str, str, str, str]]:
        """One line per feature, for people: column, kind, values, may change."""
        missing = "; may be missing"
        return [(str(f.name), f.kind, f.describe() + missing * f.missing, f.may_change) for f in self.features]

    def __str__(self) -> str:
        lines = [("column", "kind", "values", "may change"), *self.describe()]
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[3]]) for line in lines
        )


def _check_different(names: Iterable[Name]) -> None:
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            raise InputError(f"column {name!r} appears twice; rename or drop one of them")
        seen.add(name)
