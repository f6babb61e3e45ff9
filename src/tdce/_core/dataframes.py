"""Data frames of any library: whatever narwhals reads is converted to pandas here, and results are converted back.

All other code computes with pandas. A table of another library also keeps its columns in Arrow, so that an unchanged
cell comes back exactly as it was, whatever pandas makes of its type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from tdce._core.errors import InputError, listing
from tdce._core.values import Flags, Name, Positions, as_decimals

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

AnyFrame = Any
"""A data frame of pandas, polars (eager or lazy), pyarrow, or whatever else narwhals reads."""

AnySeries = Any
"""A column of the same library."""


@dataclass(frozen=True, eq=False)
class FrameKind:
    """The library of a table, and its original columns."""

    library: str = "pandas"  # by its name in narwhals
    lazy: bool = False
    columns: pa.Table | None = None  # None: pandas, or a library with its dtypes and its index
    dtypes: nw.Schema | None = None  # of these columns
    wrapped: bool = False  # whether it was a frame of narwhals itself

    def frame(self, result: pd.DataFrame, rows: pd.DataFrame | None = None, at: Positions | None = None) -> AnyFrame:
        """Convert a result to a frame of this kind. Its first columns are those of `rows`, the table as pandas, at the
        positions `at` (n,), except for changed cells; without `rows`, all columns are new."""
        return self._wrap(self._frame(result, rows, at))

    def series(self, result: pd.Series[Any]) -> AnySeries:
        """Convert a column to a series of this kind; for a lazy frame, of the eager kind."""
        return self._wrap(self._series(result))

    def _wrap(self, native: Any) -> Any:
        if not self.wrapped:
            return native
        import narwhals as nw

        return nw.from_native(native, allow_series=True)

    def _frame(self, result: pd.DataFrame, rows: pd.DataFrame | None, at: Positions | None) -> AnyFrame:
        if self.columns is None:
            return result if self.library == "pandas" else _library(self.library).DataFrame(result)
        import pyarrow as pa

        given = 0 if rows is None else self.columns.num_columns
        names, fields, arrays = list(result.columns), [], []
        for i, name in enumerate(names):
            new = result.iloc[:, i]
            if i < given and rows is not None and at is not None:
                array = _restore(self.columns.column(i), rows.iloc[:, i], new, at)
                old = self.columns.schema.field(i)
                fields.append(old if old.type == array.type else pa.field(old.name, array.type))
            else:
                array = _new_column(new)
                fields.append(pa.field(str(name), array.type))
            arrays.append(array)
        return self._native(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))

    def _series(self, result: pd.Series[Any]) -> AnySeries:
        if self.columns is None:
            return result if self.library == "pandas" else _library(self.library).Series(result)
        import pyarrow as pa

        name = str(result.name)
        table = pa.table({name: _new_column(result)})
        return _from_arrow(table, self.library).get_column(name).to_native()

    def _native(self, table: pa.Table) -> AnyFrame:
        frame = _from_arrow(table, self.library)
        for i, name in enumerate(table.column_names):
            if frame.get_column(name).null_count() > table.column(i).null_count:  # polars drops what Enums lack
                texts = table.column(i).cast(table.column(i).type.value_type)
                frame = _from_arrow(table.set_column(i, name, texts), self.library)
        for name, dtype in (self.dtypes or {}).items():
            if name in frame.columns and frame.schema[name] != dtype:
                frame = _cast(frame, name, dtype)
        return (
            frame.lazy(self.library if self.library in LAZY else None).to_native() if self.lazy else frame.to_native()
        )


PANDAS = FrameKind()
LAZY = ("duckdb", "dask", "ibis", "pyspark", "sqlframe")  # which narwhals makes from another library's eager frame


def open_frame(
    table: Any, what: str = "the table", columns: Sequence[Name] | None = None, way_out: str = ""
) -> tuple[pd.DataFrame, FrameKind]:
    """Convert a table to pandas, and return its kind as well. An array needs column names in `columns`."""
    if isinstance(table, pd.DataFrame):
        return table, PANDAS
    if isinstance(table, np.ndarray) and columns is not None:
        return _from_array(table, what, columns), PANDAS
    import narwhals as nw

    if isinstance(table, nw.DataFrame | nw.LazyFrame):
        frame, kind = open_frame(table.to_native(), what)
        return frame, replace(kind, wrapped=True)
    try:
        given = nw.from_native(table)
    except TypeError:
        raise InputError(f"{what} must be a data frame, not {type(table).__name__}{way_out}") from None
    except nw.exceptions.DuplicateError:
        names = list(getattr(table, "column_names", getattr(table, "columns", ())))
        twice = next((name for name in names if names.count(name) > 1), "a column")
        raise InputError(f"column {twice!r} appears twice; rename or drop one of them") from None
    library, lazy = given.implementation.value, isinstance(given, nw.LazyFrame)
    eager = given.collect(backend="polars" if library == "polars" else "pyarrow") if lazy else given
    if library in ("modin", "cudf"):
        return eager.to_pandas(), FrameKind(library)
    if objects := [name for name, dtype in eager.schema.items() if dtype == nw.Object]:
        raise InputError(f"{objects[0]!r} holds Python objects; give the column a type of {library}'s own, or drop it")
    arrow = eager.to_arrow()
    if arrow.num_columns == 0:
        return pd.DataFrame(index=range(arrow.num_rows)), FrameKind(library, lazy, arrow, eager.schema)
    series = [_as_pandas(arrow.column(i)) for i in range(arrow.num_columns)]
    for i, dtype in enumerate(eager.schema.values()):
        if isinstance(dtype, nw.Enum):  # in Arrow, older versions of polars do not mark it as ordered
            series[i] = series[i].cat.as_ordered()
    frame = pd.concat(series, axis=1, ignore_index=True)
    frame.columns = pd.Index(arrow.column_names)
    return frame, FrameKind(library, lazy, arrow, eager.schema)


def as_pandas(table: Any, what: str = "the table") -> pd.DataFrame:
    """Convert a table to pandas, where no result is converted back."""
    return open_frame(table, what)[0]


def convert_frame(frame: pd.DataFrame, library: str) -> AnyFrame:
    """Convert a pandas frame to another library; an ordered category dtype becomes an Enum if the library has it."""
    if library == "pandas":
        return frame
    import narwhals as nw
    import pyarrow as pa

    table = pa.table({str(name): _new_column(frame[name], categories=True) for name in frame.columns})
    native = _from_arrow(table, library)
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered and library == "polars":
            native = _cast(native, str(name), nw.Enum([str(each) for each in dtype.categories]))
    return native.to_native()


def _from_array(array: Any, what: str, columns: Sequence[Name]) -> pd.DataFrame:
    if array.ndim != 2 or array.shape[1] != len(columns):
        raise InputError(f"{what} is an array of shape {array.shape}, but there are {len(columns)} names of columns "
                         f"({listing(columns)}); give one column for each name, or a data frame")  # fmt: skip
    return pd.DataFrame(array, columns=pd.Index(list(columns))).infer_objects()


def _library(name: str) -> Any:
    import narwhals as nw

    return nw.Implementation.from_string(name).to_native_namespace()


def _from_arrow(table: pa.Table, library: str) -> Any:
    """An eager narwhals frame of a library, or of Arrow if it has none."""
    import narwhals as nw

    return nw.from_arrow(table, backend="polars" if library == "polars" else "pyarrow")


def _cast(frame: Any, name: str, dtype: Any) -> Any:
    """The frame with a column cast to this dtype, if it can hold the values: an Enum may lack an answer's category."""
    import narwhals as nw

    try:
        return frame.with_columns(nw.col(name).cast(dtype))
    except Exception:  # errors differ between libraries
        return frame


def _as_pandas(column: pa.ChunkedArray) -> pd.Series[Any]:
    """Convert a column to pandas. Integers and flags beside missing cells keep their type, as do nested cells."""
    import pyarrow as pa

    kind, mapper = column.type, cast("Callable[[Any], Any] | None", None)
    if pa.types.is_dictionary(kind) and pa.types.is_unsigned_integer(kind.index_type):  # pandas has signed ones only
        signed = pa.dictionary(pa.int64(), kind.value_type, kind.ordered)
        chunks = [
            pa.DictionaryArray.from_arrays(each.indices.cast(pa.int64()), each.dictionary, ordered=kind.ordered)
            for each in column.chunks
        ]
        column = pa.chunked_array(chunks, type=signed)
    if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        name = "boolean" if pa.types.is_boolean(kind) else str(kind).replace("int", "Int").replace("uI", "UI")
        mapper = {kind: pd.api.types.pandas_dtype(name)}.get
    elif pa.types.is_nested(kind) or pa.types.is_null(kind):
        mapper = pd.ArrowDtype
    series: pd.Series[Any] = column.to_pandas(types_mapper=mapper)
    return series


def _restore(given: pa.ChunkedArray, old: pd.Series[Any], new: pd.Series[Any], at: Positions) -> pa.ChunkedArray:
    """(n,) the given cells at these positions, replaced by the new ones where these differ."""
    import pyarrow as pa
    import pyarrow.compute as pc

    before = old.iloc[at].reset_index(drop=True)
    after = new.reset_index(drop=True)
    kept = given.take(pa.array(at))
    if pa.types.is_nested(given.type):  # never changed
        return kept
    alike = _same(before, after)
    if alike.all():
        return kept
    kind = given.type
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        changed = pa.array(_cells(after, plain), type=plain, from_pandas=True)
        whole = pc.if_else(pa.array(alike), kept.cast(plain), changed)
        return whole.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else whole
    except pa.ArrowException:  # its type cannot hold the answer's values
        return _new_column(after)


def _same(before: pd.Series[Any], after: pd.Series[Any]) -> Flags:
    """(n,) which cells are equal; missing equals missing."""
    missing, gone = before.isna().to_numpy(dtype=bool), after.isna().to_numpy(dtype=bool)
    alike, both = missing & gone, ~missing & ~gone
    alike[both] = before[both].to_numpy(dtype=object) == after[both].to_numpy(dtype=object)
    return np.asarray(alike)


def _cells(series: pd.Series[Any], kind: pa.DataType) -> Any:
    """Cells that Arrow can read as this type; decimals with its number of places."""
    import pyarrow as pa

    if isinstance(series.dtype, pd.CategoricalDtype) or pa.types.is_decimal(kind):
        series = series.astype(object)
    if not pa.types.is_decimal(kind):
        return series
    return [None if pd.isna(cell) else round(cell, kind.scale) for cell in as_decimals(series)]


def _new_column(series: pd.Series[Any], categories: bool = False) -> pa.ChunkedArray:
    """A column of one type; cells of several kinds are text."""
    import pyarrow as pa

    if isinstance(series.dtype, pd.CategoricalDtype) and not categories:
        series = series.astype(object)
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        array = pa.array([None if pd.isna(cell) else str(cell) for cell in series], pa.large_string())
    if pa.types.is_null(array.type):  # e.g. a column of empty notes, or a table without rows
        array = array.cast(pa.large_string())
    return pa.chunked_array([array]) if isinstance(array, pa.Array) else array
