"""The law that a column follows others: a sum, a product, a ratio, a price list or a curve of them.

A follower is never changed alone. When a column that it follows changes, it is recomputed, and each row keeps its own
residual: the difference from a sum, or the ratio to a product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tdce._core import LARGEST_VALUE, Flags, Floats, InputError, Name, Value, is_value, listing, same, show
from tdce.schema.columns.base import Column, FittedColumn
from tdce.schema.columns.numeric import FittedNumeric, Numeric
from tdce.schema.constraints.base import (
    FollowerConstraint,
    Law,
    TowardsOwn,
    feature_position,
    number_position,
    raw_values,
    with_column,
)

ROUNDING = 1e-9  # relative to the largest number involved; smaller differences are rounding
HALVINGS = 12  # of a change, to find how much of it leaves the follower a proposable value

Points = tuple[tuple[Value | None, float], ...]
Term = float | Points


@dataclass(frozen=True)
class Follows(Law):
    """A number is a sum of contributions of other columns, or a product of them.

    Each source has a term: a factor (in a product, a power), or its contributions at some values, which are
    interpolated for numbers.
    """

    kind = "follows"
    column: Name
    sources: tuple[Name, ...]
    terms: tuple[Term, ...]
    constant: float = 0.0  # added to a sum, or multiplied with a product
    product: bool = False
    band: float = 0.0  # the largest deviation of nearly all rows; relative for a product
    strength: float = 1.0  # share of the variance explained in rows not used for fitting
    cause: bool = False  # the user stated that the sources cause the column
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        for key in ("sources", "terms"):
            if not isinstance(getattr(self, key), list | tuple):
                raise InputError(f"the law about {show(self.column)}: {key} {show(getattr(self, key))} must be a list")
        object.__setattr__(self, "sources", tuple(self.sources))
        self._check_names()
        if not self.sources or len(self.sources) != len(self.terms):
            raise InputError(f"the law about {show(self.column)} needs one term for each column that it follows")
        if self.column in self.sources or len(set(map(repr, self.sources))) < len(self.sources):
            raise InputError(
                f"{show(self.column)} cannot follow itself, nor the same column twice: {listing(self.sources)}"
            )
        object.__setattr__(
            self, "terms", tuple(self._check_term(*each) for each in zip(self.sources, self.terms, strict=True))
        )
        for key in ("constant", "band", "strength"):
            if not _is_number(getattr(self, key)):
                raise InputError(
                    f"the law about {show(self.column)}: {key} {show(getattr(self, key))} must be a number"
                )
        for key in ("product", "cause"):
            if not isinstance(getattr(self, key), bool):
                raise InputError(
                    f"the law about {show(self.column)}: {key} {show(getattr(self, key))} must be true or false"
                )
        if self.product and abs(self.constant) < 1 / LARGEST_VALUE:
            raise InputError(f"the law about {show(self.column)}: the constant of a product must not be 0")
        self._check_counts()

    def _check_term(self, source: Name, term: Any) -> Term:
        if _is_number(term) and abs(term) >= 1 / LARGEST_VALUE:
            return float(term)
        pairs = (
            isinstance(term, list | tuple) and term and all(isinstance(p, list | tuple) and len(p) == 2 for p in term)
        )
        if pairs and all((v is None or is_value(v)) and _is_number(c) for v, c in term):
            return tuple((value, float(contribution)) for value, contribution in term)
        raise InputError(f"the law about {show(self.column)}: the term of {show(source)} is {show(term)}; it must be "
                         "a number other than 0, nor nearly 0, or a list of pairs of a value and its contribution"
                         )  # fmt: skip

    def __str__(self) -> str:
        if self.cause:
            return f"{self.column} is caused by {listing(self.sources)}"
        if not all(isinstance(term, float) for term in self.terms):
            return f"{self.column} follows {listing(self.sources)}"
        about = "about " if self.band > 0.05 * self.product else ""
        text = self._product_text() if self.product else self._sum_text()
        if not self.product and len(self.sources) == 1 and self.terms == (1.0,) and not self.constant:
            return f"{self.column} is the same as {self.sources[0]}"
        return f"{self.column} = {about}{text}"

    def _sum_text(self) -> str:
        text = ""
        for source, factor in zip(self.sources, self.terms, strict=True):
            assert isinstance(factor, float)
            minus, plus = (" - ", " + ") if text else ("-", "")
            size = "" if abs(factor) == 1 else f"{abs(factor):.6g} x "
            text += f"{minus if factor < 0 else plus}{size}{source}"
        return text + (f" {'-' if self.constant < 0 else '+'} {abs(self.constant):.6g}" if self.constant else "")

    def _product_text(self) -> str:
        powers = dict(zip(self.sources, self.terms, strict=True))
        above, below = ([_power_text(s, p) for s, p in powers.items() if (p > 0) is up] for up in (True, False))  # type: ignore[operator]
        factor = [f"{self.constant:.6g}"] if self.constant != 1 or not above else []
        return " / ".join([" x ".join([*factor, *above]), *below])

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.column, *self.sources

    @property
    def follower(self) -> Name:
        return self.column

    @property
    def hard(self) -> bool:
        """Always true: rows that deviate keep their own residual, so that no change need break the law."""
        return True

    def turned(self, name: Name) -> Self:
        """The same equation, solved for one of its sources."""
        if name not in self.sources or not all(isinstance(term, float) for term in self.terms):
            raise InputError(f"{self} cannot be solved for {show(name)}: only a number that enters by a fixed factor "
                             "or power can follow the others")  # fmt: skip
        own = float(self.terms[self.sources.index(name)])  # type: ignore[arg-type]
        rest = [(s, -float(t) / own) for s, t in zip(self.sources, self.terms, strict=True) if s != name]  # type: ignore[arg-type]
        sources, terms = zip((self.column, 1 / own), *rest, strict=True)
        constant = self.constant ** (-1 / own) if self.product else 0.0 - self.constant / own
        return replace(self, column=name, sources=sources, terms=terms, constant=constant, band=abs(self.band / own))

    def bind(self, features: Sequence[Column]) -> BoundFollows:
        follower = number_position(features, self.column)
        terms = []
        for name, term in zip(self.sources, self.terms, strict=True):
            at = number_position(features, name) if isinstance(term, float) else feature_position(features, name)
            terms.append((at, term if isinstance(term, float) else _points(features[at], term)))
        column = features[follower]
        step = column.step if isinstance(column, Numeric) and column.step is not None else 0.0
        marks = {at: features[at].marks for at in (follower, *(at for at, _ in terms)) if features[at].marks}
        rounding = column.round if isinstance(column, Numeric) else np.asarray
        return BoundFollows(
            (follower, *(at for at, _ in terms)), tuple(terms), self.constant, self.product, self.band, step, marks,
            rounding, tuple(at for at, _ in terms if features[at].numbers), self.cause,
        )  # fmt: skip


@dataclass(frozen=True)
class BoundFollows(FollowerConstraint):
    columns: tuple[int, ...]  # the follower first
    terms: tuple[tuple[int, float | tuple[Floats, Floats]], ...]  # by position; a curve as values and contributions
    constant: float
    product: bool
    band: float
    step: float  # of the follower's grid; 0: none
    marks: Mapping[int, tuple[float, ...]]
    round: Callable[[Floats], Floats]
    numbers: tuple[int, ...]  # the sources that are numbers
    cause: bool  # the band is unknown, and any rounding to the grid is accepted

    @property
    def follower(self) -> int:
        return self.columns[0]

    def for_cells(self, columns: Sequence[FittedColumn]) -> BoundFollows:
        """The constraint for rows stored in these columns' dtypes."""
        fitted = columns[self.follower]
        if not isinstance(fitted, FittedNumeric):
            return self
        return replace(self, round=lambda values: fitted.round_trip(fitted.column.round(values)))

    def typical(self, raw: Floats) -> Floats:
        """(n,) the follower's unrounded value by the law; NaN where a source is missing or a mark."""
        out = np.full(len(raw), self.constant)
        for at, term in self.terms:
            values = self._without_marks(raw, at)
            if isinstance(term, float):
                with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                    part = values**term if self.product else values * term
            else:
                part = _contribution(values, *term)
                part = np.exp(part) if self.product else part
            with np.errstate(invalid="ignore", over="ignore"):
                out = out * part if self.product else out + part
        return np.where(np.isfinite(out), out, np.nan)

    def expected(self, raw: Floats, own: Floats) -> Floats:
        """(n,) the follower's value in proposed rows: by the law, with the residual of the row's own values. Unchanged
        where no source changed or the law says nothing; NaN where the grid has no value near."""
        current, sources = own[:, self.follower], list(self.columns[1:])
        before, now = self.typical(own), self.typical(raw)
        value, size = now, np.maximum(np.abs(now), np.abs(current))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            kept = now * (current / before) if self.product else now + (current - before)
            residual, largest = np.abs(before - current), np.maximum(np.abs(before), np.abs(current))
            deviates = residual > self.step * (1 - 1e-6) + ROUNDING * largest  # by more than rounding
            value = np.where(np.isfinite(kept) & deviates, kept, now)
            rounded = self.round(value)
            near = np.abs(rounded - value) <= self._tolerance(value) - self.step / 2 + ROUNDING * size
        rounded = np.where(near | np.isnan(value) | self.cause, rounded, np.nan)
        marked = np.isin(current, self.marks.get(self.follower, ()))
        stays = same(raw[:, sources], own[:, sources]).all(axis=1) | np.isnan(now) | marked
        return np.where(stays, current, rounded)

    def broken(self, raw: Floats, own: Floats) -> Flags:
        nobody = np.isinf(own[:, self.follower])
        if nobody.any():
            return np.where(nobody, self.contradicted(raw), False)
        return ~same(raw[:, self.follower], self.expected(raw, own))

    @np.errstate(over="ignore")  # own numbers may be as large as floats get
    def contradicted(self, raw: Floats) -> Flags:
        if self.cause:
            return np.zeros(len(raw), dtype=bool)
        value, current = self.typical(raw), self._without_marks(raw, self.follower)
        return np.asarray(np.abs(current - value) > self._tolerance(value) + ROUNDING * np.abs(value))

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Recompute the follower."""
        nobody = np.isinf(own[:, self.follower])
        own = np.where(nobody[:, None], raw, own)
        return [(self.follower, np.where(nobody, self.round(self.typical(raw)), self.expected(raw, own)))]

    def relax(self, raw: Floats, own: Floats, towards_own: TowardsOwn) -> Iterator[Floats]:
        """Keep as much of the change of its numeric sources as leaves the follower a value that may be proposed."""
        kept, refused = np.zeros(len(raw)), np.ones(len(raw))
        out = np.where(np.isin(np.arange(raw.shape[1]), self.columns), own, raw)
        for _ in range(HALVINGS):
            middle = (kept + refused) / 2
            trial = raw.copy()
            for at in self.numbers:
                part = own[:, at] + middle * (raw[:, at] - own[:, at])
                trial[:, at] = np.where(same(raw[:, at], own[:, at]), own[:, at], towards_own(at, part))
            value = self.expected(trial, own)
            trial = with_column(trial, self.follower, value)
            good = same(towards_own(self.follower, value), value)
            out = np.where(good[:, None], trial, out)
            kept, refused = np.where(good, middle, kept), np.where(good, refused, middle)
        yield out

    def _tolerance(self, value: Floats) -> Floats:
        return np.asarray(self.band * (np.abs(value) if self.product else 1.0) + self.step)

    def _without_marks(self, raw: Floats, at: int) -> Floats:
        values = raw[:, at]
        return np.where(np.isin(values, self.marks[at]), np.nan, values) if at in self.marks else values


def _points(column: Column, points: Points) -> tuple[Floats, Floats]:
    """A curve as the sorted values of a number and their contributions; for categories, no values and the contributions
    by position."""
    values = raw_values(column, [value for value, _ in points])
    contributions = np.array([contribution for _, contribution in points])
    if column.numbers:
        order = np.argsort(values, kind="stable")
        return values[order], contributions[order]
    table, present = np.full(column.weights, np.nan), ~np.isnan(values)
    table[values[present].astype(int)] = contributions[present]
    return np.zeros(0), table


def _contribution(values: Floats, at: Floats, contributions: Floats) -> Floats:
    """(n,) the contribution of each value; NaN for missing and for rare categories."""
    known, missing = np.nan_to_num(values), np.isnan(values)
    out = (
        np.interp(known, at, contributions)
        if len(at)
        else contributions[np.minimum(known, len(contributions) - 1).astype(int)]
    )
    return np.where(missing, np.nan, out)


def _is_number(value: Any) -> bool:
    return is_value(value) and not isinstance(value, str | bool)


def _power_text(source: Name, power: Any) -> str:
    return str(source) if abs(power) == 1 else f"{source} ^ {abs(power):.6g}"
