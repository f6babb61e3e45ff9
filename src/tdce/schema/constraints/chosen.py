"""The law that a category follows other columns: the most probable category, given what the row's own one reveals.

By the Gumbel-max model (Oberst & Sontag, 2019, "Counterfactual off-policy evaluation with Gumbel-max structural causal
models") a row has the category with the largest sum of a logit and the row's own noise. The noise that fits the row's
own category is drawn (abduction), the logits are those of the changed row (action), and the most frequent winner is the
prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tdce._core import Flags, Floats, InputError, Name, Value, is_value, listing, same, show
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import FollowerConstraint, Law, feature_position, number_position, raw_values

DRAWS = 256  # of noise
NOISE_SEED = 5_381

Logits = tuple[float, ...]  # by category


@dataclass(frozen=True)
class Chosen(Law):
    """A category whose causes the user states; its logits are linear in numbers and have a term for each category."""

    kind = "chosen"
    column: Name
    sources: tuple[Name, ...]
    categories: tuple[Value, ...]
    terms: tuple[Any, ...]  # per source: logits per unit of a number, or pairs of a category and its logits
    constant: Logits
    support: int = 0
    exceptions: int = 0
    on: bool = True

    def __post_init__(self) -> None:
        for key in ("sources", "categories", "terms", "constant"):
            if not isinstance(getattr(self, key), list | tuple):
                raise InputError(f"the law about {show(self.column)}: {key} {show(getattr(self, key))} must be a list")
            object.__setattr__(self, key, tuple(getattr(self, key)))
        self._check_names()
        if not self.sources or len(self.sources) != len(self.terms) or self.column in self.sources:
            raise InputError(f"the law about {show(self.column)} needs one term for each column that it follows, and "
                             "it cannot follow itself")  # fmt: skip
        if not all(is_value(value) for value in self.categories):
            raise InputError(f"the law about {show(self.column)}: categories {show(self.categories)} must be values")
        object.__setattr__(self, "constant", self._logits(self.constant))
        object.__setattr__(self, "terms", tuple(map(self._term, self.terms)))
        self._check_counts()

    def _term(self, term: Any) -> Any:
        if isinstance(term, list | tuple) and term and all(isinstance(p, list | tuple) and len(p) == 2 for p in term):
            pairs = [
                pair for pair in term if (pair[0] is None or is_value(pair[0])) and isinstance(pair[1], list | tuple)
            ]
            if len(pairs) == len(term):
                return tuple((value, self._logits(logits)) for value, logits in pairs)
        return self._logits(term)

    def _logits(self, logits: Any) -> Logits:
        numbers = isinstance(logits, list | tuple) and len(logits) == len(self.categories)
        if numbers and all(is_value(v) and not isinstance(v, str | bool) for v in logits):
            return tuple(map(float, logits))
        raise InputError(f"the law about {show(self.column)}: {show(logits)} must have a number for each of "
                         f"{listing(self.categories)}")  # fmt: skip

    def __str__(self) -> str:
        return f"{self.column} is caused by {listing(self.sources)}"

    @property
    def columns(self) -> tuple[Name, ...]:
        return self.column, *self.sources

    @property
    def follower(self) -> Name:
        return self.column

    @property
    def hard(self) -> bool:
        return True

    def bind(self, features: Sequence[Column]) -> FollowerConstraint:
        follower = feature_position(features, self.column)
        terms = []
        for name, term in zip(self.sources, self.terms, strict=True):
            if isinstance(term[0], float):
                terms.append((number_position(features, name), np.zeros(0), np.array([term])))
            else:
                at = feature_position(features, name)
                values = raw_values(features[at], [value for value, _ in term])
                terms.append((at, values, np.array([logits for _, logits in term])))
        codes = raw_values(features[follower], self.categories)
        return _BoundChosen(
            (follower, *(at for at, _, _ in terms)), codes, tuple(terms), np.array(self.constant, dtype=np.float64)
        )


@dataclass(frozen=True)
class _BoundChosen(FollowerConstraint):
    columns: tuple[int, ...]  # the follower first
    codes: Floats  # (categories,) raw values
    terms: tuple[tuple[int, Floats, Floats], ...]  # position, its values, their logits (values, categories)
    constant: Floats

    @property
    def follower(self) -> int:
        return self.columns[0]

    def logits(self, raw: Floats) -> Floats:
        """(n, categories) the logits; NaN where a source is missing or unknown."""
        out = np.tile(self.constant, (len(raw), 1))
        for at, values, logits in self.terms:
            cells = raw[:, at]
            if len(values) == 0:
                out = out + cells[:, None] * logits
            else:
                order = np.argsort(values, kind="stable")
                place = np.searchsorted(values[order], cells).clip(max=len(values) - 1)
                known = values[order][place] == cells
                out = out + np.where(known[:, None], logits[order][place], np.nan)
        return out

    def expected(self, raw: Floats, own: Floats) -> Floats:
        current, sources = own[:, self.follower], list(self.columns[1:])
        chosen = current.copy()
        at = np.flatnonzero(~same(raw[:, sources], own[:, sources]).all(axis=1) & np.isin(current, self.codes))
        before, now = self.logits(own[at]), self.logits(raw[at])
        usable = np.isfinite(before).all(axis=1) & np.isfinite(now).all(axis=1)
        at, before, now = at[usable], before[usable], now[usable]
        observed = (current[at, None] == self.codes).argmax(axis=1)
        chosen[at] = self.codes[most_probable(before, observed, now)]
        return chosen

    def broken(self, raw: Floats, own: Floats) -> Flags:
        nobody = np.isinf(own[:, self.follower])
        return np.asarray(
            ~nobody & ~same(raw[:, self.follower], self.expected(raw, np.where(nobody[:, None], raw, own)))
        )

    def contradicted(self, raw: Floats) -> Flags:
        return np.zeros(len(raw), dtype=bool)

    def fixes(self, raw: Floats, own: Floats, changed: Flags) -> list[tuple[int, Floats]]:
        """Choose the category anew."""
        return [(self.follower, self.expected(raw, own))]


def most_probable(before: Floats, observed: Any, now: Floats) -> Any:
    """(n,) the most probable category under new logits (n, k), given the one observed under the old ones."""
    draws = np.random.default_rng(NOISE_SEED).gumbel(size=(DRAWS, before.shape[1] + 1))
    best = np.log(np.exp(before - before.max(axis=1, keepdims=True)).sum(axis=1)) + before.max(axis=1)
    rows = np.arange(len(before))
    counts = np.zeros_like(before)
    for gumbel in draws:  # the posterior of the sums: the largest is free, the others lie below it
        top, others = best + gumbel[-1], before + gumbel[:-1]
        below = -np.logaddexp(-top[:, None], -others)
        below[rows, observed] = top
        counts[rows, (below - before + now).argmax(axis=1)] += 1
    return counts.argmax(axis=1)
