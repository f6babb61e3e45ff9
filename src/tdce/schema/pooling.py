"""A schema that reveals no single person: values held by fewer than five people of the table are dropped or pooled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from tdce._core import LARGEST_VALUE, Flags, Floats, InputError, Value
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.columns.pooling import MIN_PEOPLE, PEOPLE_PER_KNOT, is_personal, people_with, pool_quantile
from tdce.schema.constraints.follows import Term
from tdce.schema.constraints.laws import Chosen, Determines, Equivalent, Follows, Given, Law, State, Within
from tdce.schema.schema import Schema


def pool_schema(schema: Schema, frame: pd.DataFrame) -> Schema:
    """Restrict the ends, levels, categories and laws of a schema to values that at least five people of the table have.
    Values that nobody in the table has come from the user, and stay."""
    raw = np.stack([column.read(frame[column.name], LARGEST_VALUE) for column in schema], axis=1)
    features = []
    for column, values in zip(schema, raw.T, strict=True):
        categories = column.categories if isinstance(column, Categorical) else ()
        named = {each for each in categories if any(str(each) in rule for rule in schema.rules)}
        present = values[~np.isnan(values)]
        features.append(column.pooled(present, named) if len(present) else column)
    laws = (_pool_law(law, schema.features, features, raw) for law in schema.laws)
    try:
        return replace(schema, features=tuple(features), laws=tuple(law for law in laws if law is not None))
    except InputError as error:  # a rule needs values beyond the pooled ends
        raise InputError(f"{error}; the ends of columns are pooled: set low and high in the schema, or exact=True "
                         "(--exact) keeps those of the table") from None  # fmt: skip


def _pool_law(law: Law, before: Sequence[Column], after: Sequence[Column], raw: Floats) -> Law | None:
    """The law without values held by few people; None if nothing is left of it."""
    columns = {old.name: _Pooled(old, new, values) for old, new, values in zip(before, after, raw.T, strict=True)}

    def state_of(state: State) -> State:
        return replace(state, values=columns[state.column].shared(state.values))

    def inside(state: State) -> Flags:
        return np.asarray(columns[state.column].has(state.values) != state.but)

    if isinstance(law, Determines):
        keys = columns[law.column].shared([a for a, _ in law.values])
        others = columns[law.other].shared([b for _, b in law.values])
        pairs = tuple((a, b) for a, b in law.values if a in keys and b in others)
        return replace(law, values=pairs) if pairs else None
    if isinstance(law, Given):
        when, then = state_of(law.when), state_of(law.then)
        if not when.values or not then.values:
            return None
        usual = columns[then.column].usual(law.usual, inside(law.when) & inside(law.then))
        otherwise = columns[when.column].usual(law.otherwise, ~inside(law.when) & ~inside(law.then))
        return replace(law, when=when, then=then, usual=usual, otherwise=otherwise)
    if isinstance(law, Equivalent):
        states = tuple(map(state_of, law.states))
        pairs_of = zip(law.states, law.otherwise, strict=True)
        usual_else = tuple(columns[state.column].usual(value, ~inside(state)) for state, value in pairs_of)
        return replace(law, states=states, otherwise=usual_else) if all(state.values for state in states) else None
    if isinstance(law, Within):
        when, number = state_of(law.when), columns[law.column]
        low, high = number.ends(inside(law.when), law.low, law.high)
        return replace(law, when=when, low=low, high=high) if when.values else None
    if isinstance(law, Follows):
        terms = [columns[name].points(term) for name, term in zip(law.sources, law.terms, strict=True)]
        return None if () in terms else replace(law, terms=tuple(terms))
    if isinstance(law, Chosen):
        known = columns[law.column].shared(law.categories)
        at = [i for i, category in enumerate(law.categories) if category in known]
        logits = [
            _take(term, at) if isinstance(term[0], float) else columns[name].logits(term, at)
            for name, term in zip(law.sources, law.terms, strict=True)
        ]
        if len(at) < 2 or () in logits:
            return None
        return replace(law, categories=known, terms=tuple(logits), constant=_take(law.constant, at))
    return law


def _take(values: Sequence[float], at: Sequence[int]) -> tuple[float, ...]:
    return tuple(values[i] for i in at)


@dataclass(frozen=True)
class _Pooled:
    """A column before and after pooling, and its raw values in the table."""

    before: Column
    after: Column
    values: Floats

    def read(self, cells: Sequence[Value | None]) -> Floats:
        return self.before.read(pd.Series(list(cells), dtype=object, name=cast(Any, self.before.name)))

    def has(self, cells: Sequence[Value | None]) -> Flags:
        """(n,) which rows hold one of these values."""
        known = self.read(cells)
        return np.asarray(np.isin(self.values, known) | (np.isnan(self.values) & np.isnan(known).any()))

    def is_shared(self, cell: Value | None, rows: Flags | slice = slice(None)) -> bool:
        """Whether enough people have this value for a law to name it."""
        if cell is None:  # missing
            return True
        if isinstance(self.after, Categorical):
            return cell in self.after.categories
        return not is_personal(people_with(self.read([cell]), self.values[rows])).any()

    def shared(self, cells: Sequence[Value | None]) -> tuple[Any, ...]:
        return tuple(cell for cell in cells if self.is_shared(cell))

    def usual(self, cell: Value | None, rows: Flags) -> Value | None:
        """The usual value of some rows if enough people share it, else a pooled median; None if there is neither."""
        if self.is_shared(cell, rows):
            return cell
        numbers = np.sort(self._numbers(rows))
        if not isinstance(self.after, Numeric) or len(numbers) < MIN_PEOPLE:
            return None
        return self.after.cells(self.after.round(np.array([pool_quantile(numbers, 0.5)])))[0]

    def ends(self, rows: Flags, low: float | None, high: float | None) -> tuple[float | None, float | None]:
        """The bounds of the numbers in some rows; bounds held by few people are moved inwards."""
        assert isinstance(self.after, Numeric)
        pooled = self.after.pooled_ends(self._numbers(rows)) if len(self._numbers(rows)) else (low, high)
        ends = (
            end if self.is_shared(end) and self.is_shared(end, rows) else new
            for end, new in zip((low, high), pooled, strict=True)
        )
        return cast(tuple[float | None, float | None], tuple(ends))

    def points(self, term: Term) -> Term:
        """A factor, or a curve with its points at values held by few people moved to pooled values."""
        if isinstance(term, float):
            return term
        kept = tuple(point for point in term if self.is_shared(point[0]))
        numbers = np.sort(self._numbers(slice(None)))
        if not isinstance(self.after, Numeric) or len(kept) == len(term) or len(numbers) == 0:
            return kept
        order = np.argsort(at := self.read([value for value, _ in term]), kind="stable")
        shares = np.linspace(0, 1, min(len(term), max(2, len(numbers) // PEOPLE_PER_KNOT)))[1:-1]
        low, high = self.after.pooled_ends(numbers)
        knots = {low, high, *(pool_quantile(numbers, share) for share in shares)} - {value for value, _ in kept}
        heights = np.interp(sorted(knots), at[order], np.array([height for _, height in term])[order])
        new = ((value, float(f"{height:.9g}")) for value, height in zip(sorted(knots), heights, strict=True))
        return tuple(sorted((*kept, *new)))

    def logits(self, term: Any, at: Sequence[int]) -> tuple[Any, ...]:
        return tuple((value, _take(logits, at)) for value, logits in term if self.is_shared(value))

    def _numbers(self, rows: Flags | slice) -> Floats:
        values = self.values[rows]
        return values[~np.isnan(values) & ~np.isin(values, self.before.marks)]
