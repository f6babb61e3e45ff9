"""Columns of numbers: a range, a grid and a direction; encoded on a normal scale."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from tdce._core import (
    LARGEST_VALUE,
    Flags,
    Floats,
    InputError,
    Name,
    Note,
    Positions,
    Value,
    as_numbers,
    check_finite,
    first_row,
    holds_numbers,
    is_integer,
    is_number,
    listing,
    normalise_column,
    plain,
    show,
)
from tdce.schema.columns.base import AllowedValues, Arrays, Column, FittedColumn, Sizes
from tdce.schema.columns.grid import infer_levels, infer_marks, infer_step, is_believable, remove_noise
from tdce.schema.columns.pooling import MIN_PEOPLE, MIN_ROWS_TRIMMED, is_personal, people_with, pool_ends
from tdce.schema.columns.scale import Scale
from tdce.schema.columns.wording import NO_WORDING, Wording, check_values
from tdce.schema.roles import ONLY_UP, Role

Direction = Literal["any", "increase", "decrease"]
SMALLEST_STEP = 1e-100  # of a grid: a float can still count such steps up to the largest number
NARROW_FLOATS = {2: np.float16, 4: np.float32}  # by size in bytes


@dataclass(frozen=True)
class Numeric(Column):
    """A numeric column. Proposed values lie in [low, high], on the grid, and respect the direction."""

    kind, numbers = "numeric", 1
    name: Name
    low: float
    high: float
    step: float | None = None  # 1: whole numbers, 0.01: two decimals, 5: multiples of 5, None: any
    levels: tuple[float, ...] | None = None  # the only values of the data, if they are few
    direction: Direction = "any"
    immutable: bool = False
    missing: bool = False
    marks: tuple[float, ...] = ()  # codes for a state (-1: never called); never changed in small steps
    odd: int = 0  # number of cells in the table that are off the grid
    proposed: tuple[float, ...] = ()  # marks that may be proposed
    role: Role = "actionable"
    words: Wording = NO_WORDING

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle("low", self._number("low", self.low))
        self._settle("high", self._number("high", self.high))
        if self.low > self.high:
            raise InputError(f"{self.name!r}: low {self.low:.15g} must be at most high {self.high:.15g}")
        if self.step is not None:
            self._settle("step", self._number("step", self.step))
            if self.step < SMALLEST_STEP:
                least = "positive" if self.step <= 0 else f"at least {SMALLEST_STEP:g}"
                raise InputError(f"{self.name!r}: step {self.step:.15g} must be {least}, or null for any value")
        if self.levels is not None:
            self._settle("levels", tuple(self._number("levels", v) for v in self._several("levels", self.levels)))
        if not isinstance(self.direction, str) or self.direction not in ("any", "increase", "decrease"):
            raise InputError(f"{self.name!r}: direction {show(self.direction)} must be any, increase or decrease")
        if self.role in ONLY_UP and not self.immutable:
            if self.direction == "decrease":
                raise InputError(f"{self.name!r}: the role {self.role!r} allows no decrease; set the role 'actionable'")
            self._settle("direction", "increase")
        if self.levels is not None and not self.levels:
            raise InputError(f"{self.name!r}: levels must list at least one value, or be null")
        for key in ("marks", "proposed"):
            values = tuple(self._number(key, v) for v in self._several(key, getattr(self, key)))
            self._settle(key, tuple(dict.fromkeys(values)))
        for mark in self.proposed:
            if mark not in self.marks:
                marks = listing([f"{v:.15g}" for v in self.marks]) or "there are none"
                raise InputError(f"{self.name!r}: proposed {mark:.15g} must be one of its marks ({marks}); numbers "
                                 "from low to high are always proposed")  # fmt: skip
        if not is_integer(self.odd) or self.odd < 0:
            raise InputError(f"{self.name!r}: odd {show(self.odd)} must be a whole number of cells")
        check_values(self.name, self.words, None)

    @classmethod
    def infer(cls, series: pd.Series[Any]) -> Self | None:
        """Infer the column from its numbers; None if it holds no numbers, or only 0 and 1, which are categories."""
        if not holds_numbers(series):
            return None
        present = series.dropna()
        values = as_numbers(present)
        check_finite(present, values, LARGEST_VALUE)
        distinct, counts = np.unique(values[is_believable(values)], return_counts=True)
        if distinct.tolist() == [0.0, 1.0]:
            return None
        (step, on_grid), marks = infer_step(distinct, counts), infer_marks(distinct, counts)
        numbers = np.unique(remove_noise(distinct[on_grid & ~np.isin(distinct, marks)], step)[0])
        levels = infer_levels(numbers, step, len(values))
        odd, missing = int(counts[~on_grid & ~np.isin(distinct, marks)].sum()), len(present) < len(series)
        low, high = float(numbers[0]), float(numbers[-1])
        return cls(plain(series.name), low, high, step, levels, missing=missing, marks=marks, odd=odd)

    def describe(self) -> str:
        if self.levels is not None:
            grid = f"{len(self.levels)} levels"
        elif self.step is None:
            grid = "any value"
        else:
            grid = "whole numbers" if self.step == 1 else f"steps of {self.step:g}"
        odd = f" ({self.odd:,} cells are not)" if self.odd else ""
        marks = f"; a state, not a number: {listing([f'{v:g}' for v in self.marks])}" if self.marks else ""
        marks += f"; may be proposed: {listing([f'{v:g}' for v in self.proposed])}" if self.proposed else ""
        return f"{self.low:.15g} to {self.high:.15g}, {grid}{odd}{marks}"

    def entry(self) -> dict[str, Any]:
        """The entry in a schema's JSON, without marks, odd and proposed if they are empty."""
        optional = ("marks", "odd", "proposed")
        return {key: value for key, value in super().entry().items() if value or key not in optional}

    @property
    def may_change(self) -> str:
        return super().may_change if self.immutable or self.direction == "any" else self.direction

    def read(self, series: pd.Series[Any], most: float = np.inf) -> Floats:
        series = normalise_column(series)
        if not holds_numbers(series):
            series = series.astype(object)  # the numbers behind a category dtype
            wrong = np.array([not is_number(v) for v in series], dtype=bool) & series.notna().to_numpy()
            if wrong.any():
                value, row = show(series[wrong].iloc[0]), first_row(series, wrong)
                raise InputError(
                    f"{self.name!r} must hold numbers ({self.describe()}), but has {value} in "
                    f"row {row}; correct the cell, or leave it empty if the value is not known",
                    "no_number", column=str(self.name), value=value, row=row,
                )  # fmt: skip
        values = as_numbers(series)
        check_finite(series, values, most)
        return values

    def cells(self, values: Floats) -> list[Value | None]:
        whole = self.step is not None and float(self.step).is_integer()
        if self.levels is not None:
            whole = all(float(v).is_integer() for v in self.levels)
        return [None if np.isnan(v) else int(v) if whole and float(v).is_integer() else float(v) for v in values]

    def for_dtype(self, dtype: Any) -> Self:
        """Restrict the column to what the dtype can store; if it stores no numbers (text, dates), it is immutable."""
        flexible = isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(dtype)
        if not flexible and (not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
            return replace(self, immutable=True)
        if not pd.api.types.is_integer_dtype(dtype):
            return self
        bounds = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        top = float(bounds.max) if float(bounds.max) <= bounds.max else float(np.nextafter(float(bounds.max), 0))
        low, high = max(self.low, float(bounds.min)), min(self.high, top)
        levels = None if self.levels is None else tuple(v for v in self.levels if v.is_integer())
        if low > high or levels == ():
            return replace(self, immutable=True)
        step = 1.0 if self.step is None else float(Decimal(str(self.step)).as_integer_ratio()[0])  # 2.5 -> 5
        proposed = tuple(v for v in self.proposed if v.is_integer() and bounds.min <= v <= top)
        return replace(self, low=low, high=high, step=step, levels=levels, proposed=proposed)

    def drop_off_grid(self, values: Floats) -> Floats:
        on_grid = remove_noise(values, self.step)[1] | np.isin(values, self.marks)
        return np.where(on_grid & is_believable(values), values, np.nan)

    def unrestricted(self) -> Self:
        values = self.low, self.high, *self.marks
        levels = self.levels and tuple(sorted({*self.levels, *self.marks}))
        return replace(
            self, low=min(values), high=max(values), levels=levels, marks=(), proposed=(), direction="any",
            immutable=False, role="actionable",
        )  # fmt: skip

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def narrow(self, low: float, high: float, allowed: Set[Value] | None) -> Self:
        return replace(self, low=max(self.low, low), high=min(self.high, high))

    def round(self, values: Floats, towards: Literal["nearest", "up", "down"] = "nearest") -> Floats:
        """Round values to the column's grid; missing stays missing."""
        if self.levels is not None:
            return _round_to_levels(values, np.asarray(sorted(self.levels)), towards)
        if self.step is None:
            return np.asarray(values, dtype=np.float64)
        numerator, denominator = map(float, Decimal(str(self.step)).as_integer_ratio())
        values = np.asarray(values, dtype=np.float64)
        far = np.abs(values) > LARGEST_VALUE  # on any grid, but too large to multiply
        units = np.where(far, 0.0, values) * denominator / numerator
        nearest = np.rint(units)
        if towards != "nearest":
            on_grid = np.isclose(units, nearest, rtol=1e-12, atol=1e-9)
            nearest = np.where(on_grid, nearest, np.ceil(units) if towards == "up" else np.floor(units))
        return np.where(far, values, nearest * numerator / denominator)

    def step_values(self, values: Floats, direction: Floats) -> Floats:
        if self.levels is not None:
            levels = np.asarray(sorted(self.levels))
            at = np.searchsorted(levels, np.nan_to_num(values)) + np.sign(direction).astype(np.int64)
            stepped = levels[at.clip(0, len(levels) - 1)]
        else:
            stepped = self.round(values + (self.step or 0.0) * np.sign(direction))
        stays = (direction == 0) | (stepped < self.low) | (stepped > self.high) | np.isnan(values)
        return np.where(stays | np.isin(values, self.marks) | np.isin(stepped, self.marks), values, stepped)

    @property
    def weights(self) -> int:
        """The size of the block: 1 for a number, 1 for missing if allowed, 1 per mark; 0 if it is always a number."""
        states = 1 + self.missing + len(self.marks)
        return states if states > 1 else 0

    def fit(self, values: Floats) -> FittedNumeric:
        return FittedNumeric(self, Scale.fit(self._numbers(values)))

    def fit_pooled(self, values: Floats) -> FittedNumeric:
        numbers = self._numbers(values, pooled=True)
        return FittedNumeric(self, Scale.fit_pooled(numbers, self.pooled_ends(numbers)))

    def _numbers(self, values: Floats, pooled: bool = False) -> Floats:
        """The believable values that are not marks, without float noise; the column's range if there are none. With
        `pooled`, up to four implausible values stay: pooling trims the outermost values anyway, and would otherwise
        trim others."""
        believable = is_believable(values)
        if pooled and (~believable).sum() < MIN_PEOPLE and len(values) >= MIN_ROWS_TRIMMED:
            believable[:] = True
        numbers = remove_noise(values[believable & ~np.isin(values, self.marks)], self.step)[0]
        return numbers if len(numbers) else np.array([self.low, self.high])

    def pooled_ends(self, numbers: Floats) -> tuple[float, float]:
        """The ends of some numbers, on the grid, none of them set by a single person."""
        ends = np.array(pool_ends(numbers))
        (low, _), (_, high) = self.round(ends, "up").tolist(), self.round(ends, "down").tolist()
        if np.isfinite([low, high]).all() and low <= high:
            return low, high
        middle = self.round(ends.mean(keepdims=True)).tolist()  # both lie in the same gap of the grid
        return middle[0], middle[0]

    def pooled(self, values: Floats, keep: Set[Value] = frozenset()) -> Self:
        """Drop levels held by fewer than five people, and move ends held by fewer than five people inwards. An end that
        nobody holds was set by the user, and one that many hold reveals nobody: both stay."""
        numbers = self._numbers(values, pooled=True)
        levels = np.array(self.levels or (), dtype=np.float64)
        shared = tuple(levels[~is_personal(people_with(levels, numbers))].tolist())
        column = replace(self, levels=shared or None)
        ends, own = column.pooled_ends(numbers), (self.low, self.high)
        personal = is_personal(people_with(np.array(own), numbers))
        low, high = np.where(personal, ends, own).tolist()
        if low > high:  # one of them was set by the user
            low, high = (high, high) if personal[0] else (low, low)
        return replace(column, low=low, high=high)

    def layout(self) -> dict[str, tuple[str, Sizes]]:
        knots: Sizes = (f"knots of {self.name!r}",)
        return {"scale.{}.raw": ("F64", knots), "scale.{}.score": ("F64", knots), "scale.{}.spread": ("F64", (1,))}

    def restore(self, arrays: Arrays) -> FittedNumeric:
        scale = Scale(*(arrays[name] for name in self.layout()))
        if not scale.increases:
            raise InputError(f"its scale of {self.name!r} does not increase throughout, or has no spread")
        return FittedNumeric(self, scale)


@dataclass(frozen=True)
class FittedNumeric(FittedColumn):
    """A numeric column, encoded as a score on its normal scale and, if a cell can be missing or a mark, a block of
    weights: one for "number", one for missing if allowed, one per mark. The score of missing and of marks is 0."""

    column: Numeric
    scale: Scale
    dtype: Any = None

    def embed(self, values: Floats) -> Floats:
        state = self.states(values)
        x = np.zeros((len(values), 1 + self.column.weights))
        x[:, 0] = np.where(np.isnan(values) | (state > 0), 0.0, self.scale.embed(values))
        if self.column.weights:
            x[np.arange(len(values)), 1 + state] = 1.0
        return x

    def unembed(self, x: Floats) -> Floats:
        values = self.column.round(self.scale.unembed(x[:, 0]))
        if not self.column.weights:
            return values
        state = largest_weight(x)
        values = np.where(np.isin(values, self.column.marks), self.scale.clip(values), values)  # a number is not a mark
        return np.where(state > 0, self.mark_values(state), values)

    def states(self, values: Floats) -> Positions:
        """(n,) the position of each value's weight in the block; 0 for a number."""
        state = np.where(np.isnan(values) & self.column.missing, 1, 0)
        for position, mark in enumerate(self.column.marks, 1 + self.column.missing):
            state = np.where(values == mark, position, state)
        return state

    def mark_values(self, state: Positions) -> Floats:
        """(n,) the marks at these positions in the block; NaN for missing and for numbers."""
        no_marks = [np.nan] * (1 + self.column.missing)
        return np.array([*no_marks, *self.column.marks])[state]

    @property
    def ends(self) -> tuple[float, float]:
        return self.scale.ends

    def range_share(self, scores: Floats) -> Floats:
        return self.scale.range_share(scores)

    def deviations(self, scores: Floats) -> Floats:
        return self.scale.deviations(scores)

    def knows(self, values: Floats) -> Flags:
        return np.asarray((values == self.scale.clip(values)) | np.isin(values, self.column.marks))

    def nearest_known(self, values: Floats) -> Floats:
        return np.where(np.isin(values, self.column.marks), values, self.scale.clip(values))

    @property
    def narrow(self) -> bool:
        """Whether the queried rows store the column in fewer than 64 bits."""
        return pd.api.types.is_float_dtype(self.dtype) and self.dtype.itemsize < 8

    def round_trip(self, values: Floats, own: Floats | None = None) -> Floats:
        """The nearest values that the rows' dtype can hold; with `own`, values no farther from these."""
        if not self.narrow:
            return values
        with np.errstate(over="ignore"):
            cells = pd.Series(values).astype(self.dtype)
            nearest = as_numbers(cells)
            if own is None:
                return nearest
            narrow = cells.to_numpy(dtype=NARROW_FLOATS[self.dtype.itemsize], na_value=np.nan)
            nearer = np.nextafter(narrow, own.astype(narrow.dtype))
        return np.where(np.abs(nearest - own) > np.abs(values - own), as_numbers(pd.Series(nearer)), nearest)

    def unfamiliar(self, values: Floats) -> Iterator[tuple[int, Note]]:
        (low, high), (bottom, top) = self.scale.raw[[0, -1]], self.ends
        for i in np.flatnonzero(((values < low) | (values > high)) & ~np.isin(values, self.column.marks)).tolist():
            key = "outside" if bottom <= values[i] <= top else "far_outside"
            details = {"value": float(values[i]), "low": float(low), "high": float(high)}
            yield i, Note(key, (self.column.name,), values=details)

    def arrays(self) -> Arrays:
        parts = self.scale.raw, self.scale.score, self.scale.spread
        return dict(zip(self.column.layout(), parts, strict=True))

    def allowed_values(self, own: Floats) -> AllowedInterval:
        return AllowedInterval(self, own)


@dataclass(frozen=True)
class AllowedInterval(AllowedValues):
    """For each row, the grid numbers between a lowest and a highest (none if the lowest is above the highest), and the
    marks that may be proposed."""

    fitted: FittedNumeric
    own: Floats

    @cached_property
    def number(self) -> Floats:
        """(n,) the rows' own numbers; NaN for a mark, so that no comparison involves it."""
        return np.where(np.isin(self.own, self.fitted.column.marks), np.nan, self.own)

    @cached_property
    def range(self) -> tuple[Floats, Floats]:
        """The lowest and the highest number, (n,) each."""
        column = self.fitted.column
        low, high = np.full_like(self.own, column.low), np.full_like(self.own, column.high)
        if column.direction == "increase":
            low = np.fmax(low, self.number)
        elif column.direction == "decrease":
            high = np.fmin(high, self.number)
        return column.round(low, "up"), column.round(high, "down")

    @cached_property
    def rounded(self) -> Floats:
        """(n,) the rows' own numbers on the grid."""
        return self.fitted.column.round(self.number)

    @cached_property
    def denoised(self) -> Floats:
        """(n,) the rows' own numbers without float noise, which does not count as a change."""
        column = self.fitted.column
        return remove_noise(self.number, column.step, max(abs(column.low), abs(column.high)))[0]

    def take(self, at: Flags | Positions) -> Self:
        part, (low, high) = super().take(at), self.range
        vars(part).update(number=self.number[at], range=(low[at], high[at]), rounded=self.rounded[at])
        return part

    def can_change(self) -> Flags:
        low, high = self.range
        another = (self.own[:, None] != np.array(self.fitted.column.proposed)).any(axis=1)
        return np.asarray(another | ((low <= high) & ~((low == high) & ((low == self.own) | (low == self.denoised)))))

    def allows(self, values: Floats) -> Flags:
        (low, high), column = self.range, self.fitted.column
        proposed = (values >= low) & (values <= high) & (column.round(values) == values)
        proposed = np.where(np.isin(values, column.marks), np.isin(values, column.proposed), proposed)
        another = (values != self.denoised) | (values == self.own)
        return np.asarray(proposed & another & (self.fitted.round_trip(values) == values))

    def towards_own(self, values: Floats) -> Floats:
        """The first number on the grid; nothing lies between a number and a mark or a missing value."""
        (low, high), column = self.range, self.fitted.column
        inside = np.clip(values, low, np.maximum(low, high))
        down = inside > self.number
        rounded = np.where(down, column.round(inside, "down"), column.round(inside, "up"))
        rounded = self.fitted.round_trip(rounded, self.number)
        down_to = (rounded >= self.number) & (inside <= values)
        up_to = (rounded <= self.number) & (inside >= values)
        return np.where(np.where(down, down_to, up_to) & self.allows(rounded), rounded, self.own)

    def snap(self, x: Floats) -> Floats:
        column = self.fitted.column
        low, high = self.range
        rounded = column.round(self.fitted.scale.unembed(x[:, 0]))
        snapped = np.clip(rounded, low, np.maximum(low, high))
        stays = (rounded == self.rounded) | (snapped == self.rounded) | (low > high)
        if self.fitted.narrow:
            snapped = self.fitted.round_trip(snapped)
            stays |= (snapped != column.round(snapped)) | (snapped < low) | (snapped > high)
        if not column.weights:
            return np.where(stays, self.own, snapped)
        state = largest_weight(x)
        mark = self.fitted.mark_values(state)
        stays |= np.isnan(self.number) & (state > 0)  # the same state, or another one
        stays = np.where(np.isnan(mark), stays | np.isin(snapped, column.marks), ~self.allows(mark))
        return np.where(stays, self.own, np.where(np.isnan(mark), snapped, mark))

    def encoded_bounds(self) -> tuple[Floats, Floats, Flags]:
        (low, high), scale, column = self.range, self.fitted.scale, self.fitted.column
        ends = np.clip([low, high], scale.raw[0], scale.raw[-1])
        ends[:, low > high] = np.nan  # nothing may be proposed
        ends = np.where(np.isnan(ends), self.number, ends)
        ends = np.where(np.isnan(ends), 0.0, scale.embed(ends))
        weights = np.zeros((len(self.own), max(1, column.weights)), dtype=bool)
        weights[:, 0] = True
        weights[:, 1 + column.missing :] = np.isin(column.marks, column.proposed)
        weights[np.arange(len(self.own)), self.fitted.states(self.own)] = True
        return ends[0][:, None], ends.max(axis=0)[:, None], weights[:, : column.weights]


def _round_to_levels(values: Floats, levels: Floats, towards: str) -> Floats:
    """Round to levels; above the top level, up is infinity, and below the bottom level, down is minus infinity."""
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


def largest_weight(x: Floats) -> Positions:
    """(n, 1 + weights) -> (n,) the position of the largest weight."""
    return np.asarray(x[:, 1:].argmax(axis=1))
