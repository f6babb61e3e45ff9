"""A second opinion on every answer, and the forecast whether a retrained model would accept it.

A decision that only the explained model would make is not safe: the next model is trained on other people. A simple
additive model of the same table, which can hardly overfit, forecasts the next model better than the explained model's
own margin does (docs/safety.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tdce._core import Floats, product, round_scores
from tdce.models.goals import Goals
from tdce.models.output_goals import AllGoals, Range
from tdce.models.outputs import Output

KNOTS = (-1.5, -0.75, 0.0, 0.75, 1.5)  # of encoded numbers, where the slope of an effect may change
MAX_TERMS = 800  # with more, numbers have no knots
MAX_ROWS = 8_000
RIDGE = 8.0
ITERATIONS = 300
FORECAST = (0.07, 0.69, 0.43, 0.55)
"""Log odds of being accepted again: a constant, and the weights of the model's margin, of the second opinion's, and of
the smaller of the two. From a logistic regression on decisions of models that no answer was made to convince: five
tables with equal weights, seeds 0 and 1 of benchmarks/safety.py."""
MAX_MARGIN = 4.0
TYPICAL_DISAGREEMENT = 0.8  # between two opinions, in log odds; the unit for margins of predicted numbers
MIN_DISAGREEMENT = 0.02  # in standard deviations of a predicted number


@dataclass(frozen=True, eq=False)
class SecondOpinion:
    """An additive model of all outputs: encoded rows (n, width) -> (n, columns) scores like the explained model's."""

    num: int  # number of numeric columns, which come first in encoded rows
    weights: Tensor  # (terms, columns) float64; one column per class of an output with classes
    units: Tensor  # (outputs,) log odds per unit of margin: 1 for classes

    @classmethod
    def fit(cls, x: Tensor, num: int, targets: Floats, outputs: Sequence[Output]) -> SecondOpinion:
        """Fit to encoded rows (n, width) and target scores (n, columns): probabilities, or numbers."""
        step = -(-len(x) // MAX_ROWS)
        terms, targets = make_terms(x[::step], num).numpy(), targets[::step]
        weights, units = [], []
        for output, start in zip(outputs, _starts(outputs), strict=True):
            count = max(1, len(output.classes))
            wanted = targets[:, start : start + count]
            if output.classes:
                weights.append(_fit_classes(terms, wanted))
                units.append(1.0)
            else:
                weights.append(_fit_number(terms, wanted))
                apart = float(np.sqrt(np.square(terms @ weights[-1] - wanted).mean())) / output.spread
                units.append(TYPICAL_DISAGREEMENT / max(apart, MIN_DISAGREEMENT))
        return cls(num, torch.from_numpy(np.concatenate(weights, axis=1)), torch.tensor(units, dtype=torch.double))

    def score(self, x: Tensor, outputs: Sequence[Output]) -> Tensor:
        """(n, columns) its scores of encoded rows (n, width)."""
        linear, parts, start = product(make_terms(x, self.num), self.weights), list[Tensor](), 0
        for output in outputs:
            own = linear[:, start : start + max(1, len(output.classes))]
            start += own.shape[1]
            parts.append(own.softmax(dim=1) if output.classes else own)
            if output.decides:
                parts.append(_choices(parts[-1], output))
        return torch.cat(parts, dim=1)

    def safety(self, margin: Tensor, x: Tensor, goals: Goals, outputs: Sequence[Output]) -> Tensor:
        """(n,) the probability, to six decimals, that a retrained model accepts encoded rows (n, width) that the
        explained model accepts by this margin (n,)."""
        second = goals.margin(self.score(x, outputs))
        unit = torch.tensor([self.unit(goal, outputs) for goal in goals.kinds], dtype=torch.double)[goals.which]
        first, second = ((unit * each.double()).clamp(-MAX_MARGIN, MAX_MARGIN) for each in (margin, second))
        constant, own, other, smaller = FORECAST
        return round_scores(
            (constant + own * first + other * second + smaller * torch.minimum(first, second)).sigmoid()
        )

    def unit(self, goal: object, outputs: Sequence[Output]) -> float:
        """Log odds per unit of margin of this goal."""
        if isinstance(goal, AllGoals):
            return min(self.unit(part, outputs) for part, _, _ in goal.parts)
        names = [output.name for output in outputs]
        return float(self.units[names.index(goal.output.name)]) if isinstance(goal, Range) else 1.0


def make_terms(x: Tensor, num: int) -> Tensor:
    """(n, width) -> (n, terms) float64: numbers, their excess over each knot, category weights, and 1."""
    x = x.double()
    numbers, rest = x[:, :num], x[:, num:]
    bends = [(numbers - knot).clamp_min(0.0) for knot in KNOTS] if _bends(num) else []
    return torch.cat([numbers, *bends, rest, torch.ones(len(x), 1, dtype=torch.double)], dim=1)


def count_terms(num: int, cat: int) -> int:
    """The number of terms of encoded rows with this many numbers and category weights."""
    return num * (1 + len(KNOTS) * _bends(num)) + cat + 1


def _bends(num: int) -> bool:
    return num * (1 + len(KNOTS)) <= MAX_TERMS


def safety_margin(wanted: float) -> float:
    """The margin, in log odds, by which both opinions must accept to reach this safety."""
    if wanted <= 0.5:
        return 0.0
    constant, *slopes = FORECAST
    return max(0.0, (float(np.log(wanted / (1 - min(wanted, 0.999)))) - constant) / sum(slopes))


def _fit_classes(terms: Floats, wanted: Floats) -> Floats:
    """(terms, classes) of a multinomial logistic regression on class probabilities (n, classes), with a ridge."""
    from scipy.optimize import minimize  # imported here, since only fitting needs it
    from scipy.special import log_softmax

    shape = terms.shape[1], wanted.shape[1]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        log_p = log_softmax(terms @ weights, axis=1)
        slope = terms.T @ (np.exp(log_p) - wanted) + RIDGE * weights
        return float(0.5 * RIDGE * np.square(weights).sum() - (wanted * log_p).sum()), slope.ravel()

    found = minimize(loss, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    return np.asarray(found.x, dtype=np.float64).reshape(shape)


def _fit_number(terms: Floats, wanted: Floats) -> Floats:
    """(terms, 1) of a ridge regression, with the penalty for a target of standard deviation 1 and a free mean."""
    middle = wanted.mean()
    gram = terms.T @ terms + RIDGE * np.eye(terms.shape[1])
    weights = np.linalg.solve(gram, terms.T @ (wanted - middle))
    weights[-1] += middle
    return np.asarray(weights)


def _choices(p: Tensor, output: Output) -> Tensor:
    """(n, classes) the class chosen from probabilities, one-hot, with the border at which the model seems to choose."""
    if len(output.classes) == 2:
        second = (p[:, 1] >= output.border).to(p.dtype)
        return torch.stack([1 - second, second], dim=1)
    return torch.zeros_like(p).scatter_(1, p.argmax(dim=1, keepdim=True), 1.0)


def _starts(outputs: Sequence[Output]) -> list[int]:
    """The first column of each output in the scores."""
    return [sum(output.columns for output in outputs[:i]) for i in range(len(outputs))]
