"""The data frames that a user's model is given, with the columns, order and dtypes of the table given to `fit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from tdce._core import Floats, InputError, Name, show
from tdce.schema import Categorical, Column


@dataclass(frozen=True, eq=False)
class FrameBuilder:
    """Turns raw rows (n, features) into data frames."""

    features: tuple[Column, ...]
    dtypes: tuple[Any, ...]  # one per feature

    @classmethod
    def of(cls, features: Sequence[Column], table: pd.DataFrame) -> Self:
        dtypes = (table[column.name].dtype for column in features)
        return cls(tuple(features), tuple(d.subtype if isinstance(d, pd.SparseDtype) else d for d in dtypes))

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(column.name for column in self.features)

    def __call__(self, raw: Floats) -> pd.DataFrame:
        """A frame with the dtypes of the table; a column whose dtype cannot hold its values (e.g. a missing integer)
        has floats, as in pandas."""
        cells = [self._series(i, values) for i, values in enumerate(raw.T)]
        return pd.DataFrame(dict(zip(self.names, cells, strict=True)), index=range(len(raw)))

    def _series(self, i: int, values: Floats) -> pd.Series[Any]:
        column, dtype = self.features[i], self.dtypes[i]
        if not column.numbers:
            known, missing = self._categories[i], np.isnan(values)
            if isinstance(column, Categorical) and column.rare:
                values = np.where(values == len(known), 0.0, values)  # for a rare category without a name, a known one
            at = np.where(missing, -1, values).astype(np.int64)
            if (at >= len(known)).any():  # rare categories
                listed, at[~missing] = np.unique(values[~missing], return_inverse=True)
                known = _array(column.cells(listed), dtype)
            cells: pd.Series[Any]
            if isinstance(known, np.ndarray):
                wider = known.dtype if not missing.any() else object if known.dtype.kind == "b" else np.float64
                cells = pd.Series(known[at].astype(wider)).mask(missing)
            else:
                cells = pd.Series(known.take(at, allow_fill=True), dtype=dtype)
            return cells
        if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype):
            return pd.Series(column.cells(values), dtype=object).astype(dtype)
        if not isinstance(dtype, np.dtype):
            return pd.Series(pd.array(values, dtype="Float64")).astype(dtype)
        if dtype.kind in "iu":
            fits = (values == np.rint(values)) & (np.abs(values) <= np.iinfo(dtype).max)  # nor is NaN
            return pd.Series(values.astype(dtype) if fits.all() else values)
        with np.errstate(over="ignore"):
            return pd.Series(values.astype(dtype))

    @cached_property
    def _categories(self) -> dict[int, Any]:
        """The categories of each categorical column, in its dtype."""
        known = {i: column for i, column in enumerate(self.features) if not column.numbers}
        return {
            i: _array(column.cells(np.arange(_listed(column), dtype=np.float64)), self.dtypes[i])
            for i, column in known.items()
        }

    def to_json(self) -> list[Any]:
        """The dtypes as JSON, which `from_json` reads."""
        return [
            {"categories": dtype.categories.tolist(), "of": str(dtype.categories.dtype), "ordered": bool(dtype.ordered)}
            if isinstance(dtype, pd.CategoricalDtype)
            else _dtype_name(dtype)
            for dtype in self.dtypes
        ]

    @classmethod
    def from_json(cls, features: Sequence[Column], entries: Sequence[Any]) -> Self:
        named = zip(features, entries, strict=True)
        return cls(tuple(features), tuple(_dtype(column.name, entry) for column, entry in named))


def _listed(column: Column) -> int:
    return len(column.categories) if isinstance(column, Categorical) else column.weights - column.missing


def _array(cells: list[Any], dtype: Any) -> Any:
    """Cells of a column as an array: numpy's for plain numbers and flags, else pandas'."""
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.array(cells, dtype=dtype)
    return pd.array(cells, dtype=dtype)


def _dtype_name(dtype: Any) -> str:
    """The name of a dtype; for text with its storage, which `str` omits and whose default differs in pandas 2 and 3."""
    if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA:
        return f"string[{dtype.storage}]"
    return str(dtype)


def _dtype(name: Name, entry: Any) -> Any:
    try:
        if isinstance(entry, dict):
            of = pd.Index(entry["categories"], dtype=entry["of"])
            return pd.CategoricalDtype(of, bool(entry["ordered"]))
        return pd.api.types.pandas_dtype(entry)
    except (TypeError, ValueError, KeyError, NotImplementedError):
        raise InputError(f"its column {name!r} has an unknown dtype: {show(entry)}") from None
