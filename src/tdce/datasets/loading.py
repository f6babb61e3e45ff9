"""The benchmark's five public data sets: `load("german")` gives rows, schema and splits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tdce._core import LAST_SEED, InputError, check_integer, html_card, listing, show, suggest
from tdce.datasets.sampling import random_order
from tdce.datasets.sources import find, read
from tdce.datasets.tables import PUBLISHED_TABLES, Preset, PublishedTable
from tdce.schema import Categorical, Numeric, Schema

__all__ = ["CatalogueEntry", "Dataset", "Splits", "catalogue", "load"]

Part = Literal["train", "validation", "test"]


class Splits(NamedTuple):
    """The row positions of each part, in random order; the parts are disjoint and cover all rows."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table ready to be explained: raw values with the label last, the schema, and the splits."""

    name: str
    preset: str
    frame: pd.DataFrame = field(repr=False)
    label: str
    favourable: str
    schema: Schema = field(repr=False)  # with roles: age passes with time
    splits: Splits = field(repr=False)
    mask: str  # the one feature that the benchmark masks
    notes: str = field(repr=False)  # what this preset changed in the published table

    def part(self, name: Part) -> pd.DataFrame:
        """Get the rows of one part; their index is the position in `frame`."""
        if not isinstance(name, str) or name not in Splits._fields:
            meant = suggest(name, Splits._fields)
            raise InputError(f"there is no part {show(name)}; {meant}known: {listing(Splits._fields)}")
        positions: NDArray[np.int64] = getattr(self.splits, name)
        return self.frame.iloc[positions]

    def _repr_html_(self) -> str:
        """For notebooks: a summary and the columns."""
        title = f"{self.name}, preset {self.preset}: {len(self.frame):,} rows, {len(self.schema)} features"
        facts = (f"label: {self.label}; favourable: {self.favourable}", self.notes)
        columns = ("column", "kind", "values", "may change")
        return html_card(title, facts, columns, self.schema.describe(), "data.schema")


@dataclass(frozen=True)
class CatalogueEntry:
    """An entry of the catalogue of data sets."""

    name: str
    title: str
    rows: int
    columns: str
    source: str
    licence: str
    present: bool
    where: str


def load(name: str, preset: str = "full", seed: int = 0) -> Dataset:
    """Load one of the data sets of `catalogue()`.

    The preset "full" has every row and the published features; "paper" comes as close to the paper's columns and sizes
    as the data allow. `seed` draws the splits; `frame` has the same rows for every seed.
    """
    table, recipe = _choose(name, preset)
    seed = check_integer("seed", seed, 0, LAST_SEED)
    raw = read(table)
    prepared = recipe.prepare(raw) if recipe.prepare else raw
    frame = _whole_numbers(prepared[[*recipe.features, table.label]].reset_index(drop=True))
    schema = _schema(frame, table, recipe)
    splits = _split(len(frame), recipe.held_out, seed)
    return Dataset(
        name=table.name,
        preset=preset,
        frame=frame,
        label=table.label,
        favourable=table.favourable,
        schema=schema,
        splits=splits,
        mask=recipe.mask,
        notes=f"{_sizes(table, preset, schema, splits)} {recipe.notes}",
    )


def catalogue() -> list[CatalogueEntry]:
    """List all data sets: source, licence, and whether each is present."""
    return [_entry(table) for table in PUBLISHED_TABLES.values()]


def _choose(name: str, preset: str) -> tuple[PublishedTable, Preset]:
    if not isinstance(name, str) or name not in PUBLISHED_TABLES:
        meant = suggest(name, PUBLISHED_TABLES)
        raise InputError(f"there is no data set {show(name)}; {meant}known: {listing(PUBLISHED_TABLES)}")
    table = PUBLISHED_TABLES[name]
    if isinstance(preset, str) and preset in table.presets:
        return table, table.presets[preset]
    if isinstance(preset, str) and preset == "paper":
        raise InputError(f"{show(name)} has no preset 'paper', because the paper does not use it; use preset 'full'")
    meant = suggest(preset, table.presets)
    raise InputError(f"{show(name)} has no preset {show(preset)}; {meant}known: {listing(table.presets)}")


def _whole_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert whole numbers that pandas read as floats, because of missing cells, to Int64."""
    whole = {
        name: "Int64" if column.isna().any() else "int64"
        for name, column in frame.select_dtypes("float64").items()
        if (column.dropna() % 1 == 0).all()
    }
    return frame.astype(whole)


def _schema(frame: pd.DataFrame, table: PublishedTable, recipe: Preset) -> Schema:
    inferred = Schema.infer(frame, label=table.label, roles=False)
    features = tuple(
        Numeric(f.name, low=0, high=1, step=1.0, missing=f.missing) if f.name in recipe.flags else f for f in inferred
    )
    schema = Schema(features, inferred.laws, recipe.rules, outcomes=recipe.outcomes).freeze(*recipe.immutable)
    for names, role in ((recipe.history, "history"), (recipe.passing, "passes with time")):
        for name in names:
            schema = schema.change(name, role=role)
    for name, words in recipe.words.items():
        schema = schema.change(name, words=words)
    return schema


def _split(rows: int, held_out: int, seed: int) -> Splits:
    """Draw `held_out` rows each for validation and test; the rest are for training."""
    train, validation, test = np.split(random_order(rows, seed), [rows - 2 * held_out, rows - held_out])
    return Splits(train, validation, test)


def _sizes(table: PublishedTable, preset: str, schema: Schema, splits: Splits) -> str:
    categorical = sum(isinstance(f, Categorical) for f in schema)
    train, validation, test = (f"{len(part):,}" for part in splits)
    return (
        f"{table.title}, preset {preset}: {len(schema) - categorical} numeric and {categorical} categorical "
        f"features; {train} rows for training, {validation} for validation, {test} for test."
    )


def _entry(table: PublishedTable) -> CatalogueEntry:
    present, where = find(table)
    return CatalogueEntry(
        name=table.name,
        title=table.title,
        rows=table.rows,
        columns=table.columns,
        source=table.source,
        licence=table.licence,
        present=present,
        where=where,
    )
