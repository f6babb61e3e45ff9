"""Causes stated by the user: how a column responds when its causes change, learned from the table.

A number is a sum or a product of contributions of its causes, whichever predicts unseen rows better; each row keeps its
own residual. A category is chosen by `chosen.Chosen`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tdce._core import Floats, InputError, Name, Positions, check_names, listing, show, suggest
from tdce.schema.columns.base import Column
from tdce.schema.constraints.base import Law
from tdce.schema.constraints.chosen import Chosen
from tdce.schema.constraints.follows import Follows, Term

MAX_ROWS = 20_000
MIN_ROWS = 20
KNOTS = 9  # of a curve
SIMPLER = 1.02  # times the least error, at most, for a simpler form
RIDGE = 1e-6

Causes = Mapping[Name, tuple[Name, ...]]


def check_causes(causes: Any, names: Iterable[Name]) -> dict[Name, tuple[Name, ...]]:
    """Turn causes, a mapping or a directed graph, into a plain mapping from each effect to its causes."""
    known = list(names)
    if hasattr(causes, "predecessors") and hasattr(causes, "nodes"):  # networkx
        causes = {effect: list(causes.predecessors(effect)) for effect in causes.nodes}
    if not isinstance(causes, Mapping):
        raise InputError(f"causes is {show(causes)}; it must be a mapping such as {{'income': ['hours']}} or a "
                         "directed graph")  # fmt: skip
    out = {effect: check_names(f"the causes of {show(effect)}", each) for effect, each in causes.items()}
    for name in dict.fromkeys([*out, *(cause for each in out.values() for cause in each)]):
        if name not in known:
            raise InputError(f"causes: there is no feature {show(name)}; {suggest(name, known)}known: {listing(known)}")
    out = {effect: each for effect, each in out.items() if each}
    for effect in out:
        _check_circle(out, (effect,))
    return out


def _check_circle(causes: Causes, chain: tuple[Name, ...]) -> None:
    for cause in causes.get(chain[-1], ()):
        if cause in chain:
            circle = " <- ".join(map(str, (*chain[chain.index(cause) :], cause)))
            raise InputError(f"causes go round in a circle: {circle}; leave one of them out")
        _check_circle(causes, (*chain, cause))


def learn_causes(laws: Sequence[Law], causes: Causes, features: Sequence[Column], raw: Floats) -> tuple[Law, ...]:
    """Learn a law for every effect from rows (n, features), in place of the laws that it follows already."""
    kept = [law for law in laws if law.follower not in causes and not _reverses(law, causes)]
    return (*kept, *(_learn(effect, causes[effect], features, raw[:: -(-len(raw) // MAX_ROWS)]) for effect in causes))


def _reverses(law: Law, causes: Causes) -> bool:
    """Whether, by this law, a cause would follow its own effect."""
    seen, left = set[Name](), list(law.followed) if law.follower is not None else []
    while left:
        name = left.pop()
        if name == law.follower:
            return True
        if name not in seen:
            seen.add(name)
            left += causes.get(name, ())
    return False


def _learn(effect: Name, sources: tuple[Name, ...], features: Sequence[Column], raw: Floats) -> Law:
    names = [column.name for column in features]
    at, target = [names.index(name) for name in sources], names.index(effect)
    known = raw[~np.isnan(raw[:, [target, *at]]).any(axis=1)]
    if len(known) < MIN_ROWS:
        raise InputError(f"causes: {effect!r} and what causes it are known together in {len(known)} rows only; at "
                         f"least {MIN_ROWS} are needed")  # fmt: skip
    if not features[target].numbers:
        return _learn_category(effect, sources, features, known, at, target)
    forms = [_fit(known, features, at, target, curved, product) for curved, product in FORMS]
    fitted = [(error, law) for error, law in forms if law is not None]
    least = min(error for error, _ in fitted)
    law = next(law for error, law in fitted if error <= SIMPLER * least)
    strength = 1 - least / max(float(known[:, target].var()), 1e-300)
    return replace(law, strength=float(f"{max(0.0, strength):.6g}"), support=len(known))


FORMS = ((False, False), (False, True), (True, False), (True, True))  # curved, product; simplest first


def _fit(
    rows: Floats, features: Sequence[Column], at: list[int], target: int, curved: bool, product: bool
) -> tuple[float, Follows | None]:
    """The mean squared error, on odd rows, of the form fitted to even rows, and the law fitted to all rows."""
    numbers = [i for i in at if features[i].numbers]
    if product and ((rows[:, [target, *numbers]] <= 0).any() or not numbers):
        return np.inf, None
    fit, judge = rows[0::2], rows[1::2]
    knots = {i: np.unique(np.quantile(rows[:, i], np.linspace(0, 1, KNOTS))) for i in numbers} if curved else {}

    def design(part: Floats) -> Floats:
        columns = [np.ones(len(part))]
        for i in at:
            values = part[:, i]
            if not features[i].numbers:
                columns += [values == code for code in range(features[i].weights)]
            elif curved:
                columns += [np.interp(values, knots[i], unit) for unit in np.eye(len(knots[i]))]
            else:
                columns.append(np.log(values) if product else values)
        return np.column_stack(columns).astype(np.float64)

    def weights(part: Floats) -> Floats:
        x, y = design(part), np.log(part[:, target]) if product else part[:, target]
        scale = np.maximum(np.abs(x).max(axis=0), 1e-300)
        x = x / scale
        penalty = RIDGE * len(x) * np.eye(x.shape[1])
        penalty[0, 0] = 0.0
        first = np.linalg.solve(x.T @ x + penalty, x.T @ y)
        return np.asarray((first + np.linalg.solve(x.T @ x + penalty, x.T @ (y - x @ first))) / scale)

    predicted = design(judge) @ weights(fit)
    error = float(np.square(judge[:, target] - (np.exp(predicted) if product else predicted)).mean())
    w, terms, j = weights(rows), list[Term](), 1
    for i in at:
        if features[i].numbers and not curved:
            terms.append(_rounded(w[j]) or 1e-12)
            j += 1
        else:
            places = knots[i] if features[i].numbers else np.arange(features[i].weights, dtype=np.float64)
            cells = [float(v) for v in places] if features[i].numbers else _categories(features[i])
            terms.append(tuple((cell, _rounded(c)) for cell, c in zip(cells, w[j:], strict=False)))
            j += len(places)
    constant = float(np.exp(w[0])) if product else float(w[0])
    names = [column.name for column in features]
    sources = tuple(names[i] for i in at)
    return error, Follows(
        names[target], sources, tuple(terms), _rounded(constant) or float(product), product, cause=True
    )


def _learn_category(
    effect: Name, sources: tuple[Name, ...], features: Sequence[Column], rows: Floats, at: list[int], target: int
) -> Chosen:
    """Learn logits by logistic regression on standardised numbers and indicators of categories."""
    blocks, scales = [], []
    for i in at:
        values = rows[:, i]
        if features[i].numbers:
            scales.append((float(values.mean()), float(values.std()) or 1.0))
            blocks.append(((values - scales[-1][0]) / scales[-1][1])[:, None])
        else:
            scales.append((0.0, 1.0))
            blocks.append((values[:, None] == np.arange(features[i].weights)).astype(np.float64))
    codes, y = np.unique(rows[:, target], return_inverse=True)
    weights, constant = _logistic_regression(np.hstack(blocks), y, len(codes))
    terms, j = list[Any](), 0
    for i, block, (mean, scale) in zip(at, blocks, scales, strict=True):
        own = weights[:, j : j + block.shape[1]]
        j += block.shape[1]
        if features[i].numbers:
            terms.append([_rounded(v) for v in own[:, 0] / scale])
            constant = constant - own[:, 0] * mean / scale
        else:
            terms.append(
                [
                    (cell, list(map(_rounded, logits)))
                    for cell, logits in zip(_categories(features[i]), own.T, strict=True)
                ]
            )
    cells = tuple(cell for cell in features[target].cells(codes) if cell is not None)
    return Chosen(effect, sources, cells, tuple(terms), tuple(map(_rounded, constant)), len(rows))


def _logistic_regression(x: Floats, y: Positions, classes: int) -> tuple[Floats, Floats]:
    """The (classes, columns) weights and (classes,) constants of maximum likelihood, with a unit ridge."""
    from scipy.optimize import minimize  # slow to import, seldom needed

    observed = np.eye(classes)[y]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(classes, -1)
        logits = x @ weights[:, 1:].T + weights[:, 0]
        logits = logits - logsumexp(logits, axis=1, keepdims=True)
        surplus = np.exp(logits) - observed
        slope = np.column_stack([surplus.sum(axis=0), surplus.T @ x + weights[:, 1:]])
        return float(-(logits * observed).sum() + np.square(weights[:, 1:]).sum() / 2), slope.ravel()

    best = minimize(loss, np.zeros(classes * (x.shape[1] + 1)), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    weights = best.x.reshape(classes, -1)
    return weights[:, 1:], weights[:, 0]


def _categories(column: Column) -> list[Any]:
    return column.cells(np.arange(column.weights - column.missing, dtype=np.float64)) + [None] * column.missing


def _rounded(value: Any) -> float:
    return float(f"{float(value):.9g}")
