"""What is known of each column: its kind, its grid, its range or categories, and what may change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce.cells import (
    LARGEST,
    Floats,
    Name,
    Value,
    as_numbers,
    categories_of,
    check_finite,
    check_table,
    holds_numbers,
    is_value,
    levels_of,
    plain,
    readable,
    step_of,
)
from tdce.errors import InputError, listing, shown

Direction = Literal["any", "increase", "decrease"]
FINEST = 1e-100  # of a grid: so fine a step of a largest number is still counted within a float's range


@dataclass(frozen=True)
class Numeric:
    """A column of numbers. A proposed value lies in [low, high], on the grid, in the direction."""

    name: Name
    low: float
    high: float
    step: float | None = None  # 1: whole numbers, 0.01: two decimals, 5: multiples of 5, None: any
    levels: tuple[float, ...] | None = None  # where the data knows only these few values
    direction: Direction = "any"
    immutable: bool = False
    missing: bool = False  # whether cells were empty in fit

    def __post_init__(self) -> None:
        _check_basics(self)
        _settle(self, "low", _number(self, "low", self.low))
        _settle(self, "high", _number(self, "high", self.high))
        if self.low > self.high:
            raise InputError(f"{self.name!r}: low {self.low:.15g} must be at most high {self.high:.15g}")
        if self.step is not None:
            _settle(self, "step", _number(self, "step", self.step))
            if self.step <= 0:
                raise InputError(f"{self.name!r}: step {self.step:.15g} must be positive, or null for any value")
            if self.step < FINEST:
                raise InputError(
                    f"{self.name!r}: step {self.step:.15g} must be at least {FINEST:g}, or null for any value"
                )
        if self.levels is not None:
            _settle(self, "levels", tuple(_number(self, "levels", v) for v in _several(self, "levels", self.levels)))
        if self.direction not in ("any", "increase", "decrease"):
            raise InputError(f"{self.name!r}: direction {self.direction!r} must be any, increase or decrease")
        if self.levels is not None and not self.levels:
            raise InputError(f"{self.name!r}: levels must name at least one value, or be null")

    def round(self, values: Floats, towards: Literal["nearest", "up", "down"] = "nearest") -> Floats:
        """The values put on the column's grid; missing values stay missing."""
        if self.levels is not None:
            return _round_to_levels(values, np.asarray(sorted(self.levels)), towards)
        if self.step is None:
            return np.asarray(values, dtype=np.float64)
        numerator, denominator = map(float, Decimal(str(self.step)).as_integer_ratio())
        values = np.asarray(values, dtype=np.float64)
        far = np.abs(values) > LARGEST  # on any grid, and no longer to be multiplied
        units = np.where(far, 0.0, values) * denominator / numerator
        if towards == "nearest":
            return np.where(far, values, np.rint(units) * numerator / denominator)
        nearest = np.rint(units)
        on_grid = np.isclose(units, nearest, rtol=1e-12, atol=1e-9)
        outer = np.ceil(units) if towards == "up" else np.floor(units)
        return np.where(far, values, np.where(on_grid, nearest, outer) * numerator / denominator)

    def describe(self) -> str:
        if self.levels is not None:
            grid = f"{len(self.levels)} levels"
        elif self.step is None:
            grid = "any value"
        else:
            grid = "whole numbers" if self.step == 1 else f"steps of {self.step:g}"
        return f"{self.low:.15g} to {self.high:.15g}, {grid}"


@dataclass(frozen=True)
class Categorical:
    """A column of categories. A proposed value is one of `allowed` (by default all of them)."""

    name: Name
    categories: tuple[Value, ...]
    allowed: tuple[Value, ...] | None = None
    immutable: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        _check_basics(self)
        _settle(self, "categories", _several(self, "categories", self.categories))
        if self.allowed is not None:
            _settle(self, "allowed", _several(self, "allowed", self.allowed))
        if not self.categories:
            raise InputError(f"{self.name!r}: a categorical column needs at least one category")
        if len(set(self.categories)) < len(self.categories):
            raise InputError(f"{self.name!r}: a category is listed twice: {listing(self.categories)}")
        for value in self.allowed or ():
            if value not in self.categories:
                raise InputError(f"{self.name!r}: allowed category {value!r} is not one of {listing(self.categories)}")

    @property
    def proposable(self) -> NDArray[np.bool_]:
        """Which of the categories may be proposed, one flag each."""
        if self.allowed is None:
            return np.ones(len(self.categories), dtype=bool)
        return np.array([c in self.allowed for c in self.categories], dtype=bool)

    def describe(self) -> str:
        text = f"{len(self.categories)} categories: {listing(self.categories, most=6)}"
        return text if self.allowed is None else f"{text}; only to {listing(self.allowed, most=6)}"


Feature = Numeric | Categorical


@dataclass(frozen=True)
class Schema:
    """The features of a table, in its own column order."""

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("there is no feature column: the table needs one besides the label")
        twice = _repeated(f.name for f in self.features)
        if twice:
            raise InputError(f"column {twice[0]!r} stands twice; rename or drop one of them")

    @classmethod
    def infer(cls, frame: pd.DataFrame, label: Name | None = None) -> Self:
        """Read kinds, grids, ranges and categories off a table; `label` is left out."""
        check_table(frame)
        twice = _repeated(frame.columns)
        if twice:
            raise InputError(f"column {twice[0]!r} stands twice; rename or drop one of them")
        if len(frame) == 0:
            raise InputError("the table has no rows")
        return cls(tuple(_infer(frame[name]) for name in frame.columns if label is None or name != label))

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Name) -> Feature:
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
        _check_settings(name, type(self[name]), settings)
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
        features = [{"kind": _kind(f), **asdict(f)} for f in self.features]
        lines = ",\n    ".join(json.dumps(f, ensure_ascii=False) for f in features)
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
        return cls(tuple(_from_entry(entry) for entry in entries))

    def describe(self) -> list[tuple[str, str, str, str]]:
        """For people, a line a feature: column, kind, values, may change."""
        lines = []
        for f in self.features:
            direction: str = f.direction if isinstance(f, Numeric) and f.direction != "any" else "yes"
            values = f.describe() + ("; may be missing" if f.missing else "")
            lines.append((str(f.name), _kind(f), values, "no" if f.immutable else direction))
        return lines

    def __str__(self) -> str:
        lines = [("column", "kind", "values", "may change"), *self.describe()]
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[3]]) for line in lines
        )


def _infer(series: pd.Series[Any]) -> Feature:
    name, series = plain(series.name), readable(series)
    present = series.dropna()
    if present.empty:
        raise InputError(f"{name!r} has no value at all: every cell is missing; drop the column")
    missing = len(present) < len(series)
    if holds_numbers(series):
        values = as_numbers(present)
        check_finite(present, values, LARGEST)
        distinct = np.unique(values)
        if distinct.tolist() == [0.0, 1.0]:
            return Categorical(name, (0, 1), missing=missing)
        step = step_of(distinct)
        levels = levels_of(distinct, step, len(values))
        return Numeric(name, float(distinct[0]), float(distinct[-1]), step, levels, missing=missing)
    return Categorical(name, categories_of(present), missing=missing)


def _round_to_levels(values: Floats, levels: Floats, towards: str) -> Floats:
    """Up from the top level is infinity and down from the bottom one its negative: there is nothing there."""
    above = np.searchsorted(levels, values, side="left")
    below = np.searchsorted(levels, values, side="right")
    if towards == "up":
        rounded = np.append(levels, np.inf)[above]
    elif towards == "down":
        rounded = np.append(-np.inf, levels)[below]
    else:
        above, below = above.clip(max=len(levels) - 1), (below - 1).clip(min=0)
        rounded = np.where(values - levels[below] <= levels[above] - values, levels[below], levels[above])
    return np.where(np.isnan(values), np.nan, rounded)


def _repeated(names: Iterable[Name]) -> list[Name]:
    seen: set[Name] = set()
    return [n for n in names if n in seen or seen.add(n)]  # type: ignore[func-returns-value]


def _kind(feature: Feature) -> str:
    return type(feature).__name__.lower()


def _from_entry(entry: Any) -> Feature:
    if not isinstance(entry, Mapping) or "name" not in entry:
        raise InputError(f"each feature of the schema needs a name: {entry!r}")
    settings = dict(entry)
    name, kind = settings["name"], settings.pop("kind", None)
    kinds: dict[str, type[Feature]] = {"numeric": Numeric, "categorical": Categorical}
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(f"{name!r}: kind {kind!r} must be numeric or categorical")
    _check_settings(name, kinds[kind], settings)
    for field in fields(kinds[kind]):
        if field.default is MISSING and field.name not in settings:
            raise InputError(f"{name!r}: a {kind} column needs the setting {field.name!r}")
    return kinds[kind](**settings)


def _check_settings(name: Name, kind: type[Feature], settings: Mapping[str, Any]) -> None:
    known = {f.name for f in fields(kind)}
    for key in settings:
        if key not in known:
            raise InputError(f"{name!r}: unknown setting {key!r}; known: {listing(sorted(known))}")


def _check_basics(feature: Feature) -> None:
    if not isinstance(feature.name, str | int) or isinstance(feature.name, bool) or not is_value(feature.name):
        raise InputError(f"column name {shown(feature.name)} must be text or a whole number; rename it")
    for key in ("immutable", "missing"):
        if not isinstance(getattr(feature, key), bool):
            raise InputError(f"{feature.name!r}: {key} {getattr(feature, key)!r} must be true or false")


def _settle(feature: Feature, key: str, value: Any) -> None:
    """Put a setting into its plain form; only for `__post_init__` of these frozen classes."""
    object.__setattr__(feature, key, value)


def _number(feature: Feature, key: str, value: Any) -> float:
    if isinstance(value, Real) and not isinstance(value, bool) and abs(cast(float, value)) <= LARGEST:
        return float(value)
    raise InputError(f"{feature.name!r}: {key} {shown(value)} must be a number")


def _several(feature: Feature, key: str, values: Any) -> tuple[Value, ...]:
    if not isinstance(values, list | tuple) or not all(is_value(v) for v in values):
        raise InputError(f"{feature.name!r}: {key} {shown(values)} must be a list of words, numbers or true and false")
    return tuple(values)
