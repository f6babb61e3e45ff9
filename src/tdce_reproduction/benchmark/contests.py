"""The figures of methods on one data set, side by side: means and standard deviations over seeds, ranks and losses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import pandas as pd

from tdce.explainer import PAPER
from tdce_reproduction.benchmark.settings import BASELINES, OURS

HIGHER_IS_BETTER = {"diversity", "validity"}
BEST_AT_HALF = {"two_sample"}
RANKED_IF_VALID = {"l2", "sparsity", "gower", "instability"}  # small for methods that give up on hard rows
MIN_VALIDITY = 0.95  # needed for a rank in these
TITLES = {
    "lcd": "LCD",
    "gmc": "GMC",
    "adult": "Adult 6 + 8",
    "adult_9_2": "Adult 9 + 2",
    "law": "LAW",
    "law_7502": "LAW 7,502",
    "german": "German",
}
ORDER = ("unchanged", *BASELINES, "nice", "guided_literal", "guided_tuned", "guided", OURS, "matrix_products")
UNRANKED = "unchanged"  # not a method, but shown beside them
PAPER_COLUMNS = ("l2", "l2_per_feature", *PAPER[1:])
"""The columns of the paper's tables, with both readings of its L2."""


class Figure(NamedTuple):
    mean: float
    deviation: float


class Contest(NamedTuple):
    """One metric on one data set, masked or not: the figure of each method."""

    metric: str
    figures: dict[str, Figure]
    unranked: frozenset[str] = frozenset()  # methods with too low a validity for a rank in this metric

    @property
    def digits(self) -> int:
        return 2 if self.metric in PAPER_COLUMNS else 3

    def ranking(self) -> list[str]:
        """The methods from best to worst, then those without a rank."""
        return sorted(self.figures, key=lambda method: (method in self.unranked, self.cost(method)))

    def cost(self, method: str) -> float:
        """The figure as a cost: lower is better."""
        mean = self.figures[method].mean
        return -mean if self.metric in HIGHER_IS_BETTER else abs(mean - 0.5) if self.metric in BEST_AT_HALF else mean

    def loses(self, method: str, other: str) -> bool:
        """Whether a method is worse than another by more than the other's deviation. A method without a figure loses to
        every method; nothing loses to a method without one."""
        if method not in self.figures or other not in self.figures:
            return method not in self.figures
        return self.cost(method) > self.cost(other) + self.figures[other].deviation

    def standing(self, method: str) -> Literal["first", "within", "lost"]:
        """Whether a method is first, or within one standard deviation of the first (the larger of the two)."""
        own, best = self.figures[method], self.figures[self.ranking()[0]]
        if method in self.unranked:
            return "lost"
        if own.mean == best.mean:
            return "first"
        return "within" if abs(own.mean - best.mean) <= max(own.deviation, best.deviation) else "lost"

    def shown(self, method: str) -> float:
        return round(self.figures[method].mean, self.digits)


def contests(rows: pd.DataFrame, data: str, masked: str, metrics: Iterable[str]) -> list[Contest]:
    """Mean and sample standard deviation over seeds; the latter is 0 with one seed."""
    part = rows[(rows["data"] == data) & (rows["masked"] == masked)]
    validity = part[part["metric"] == "validity"].groupby("method")["value"].mean()
    unranked = frozenset(map(str, validity.index[validity < MIN_VALIDITY]))
    out = []
    for metric in metrics:
        groups = part[part["metric"] == metric].groupby("method")["value"]
        figures = {str(method): Figure(float(v.mean()), float(v.std()) if len(v) > 1 else 0.0) for method, v in groups}
        without = unranked if metric in RANKED_IF_VALID else frozenset()
        out.append(Contest(metric, figures, without | ({UNRANKED} & figures.keys())))
    return out


def ordered(methods: Iterable[str]) -> list[str]:
    """The distinct methods in the order of `ORDER`; variants (`search@0`, `wachter+`) follow their method."""

    def place(method: str) -> tuple[int, int, list[float], str]:
        name, *at = method.removesuffix("+").split("@")
        return ORDER.index(name) if name in ORDER else len(ORDER), len(at), [float(each) for each in at], method

    return sorted(set(methods), key=place)


def present(values: Iterable[str], order: Iterable[str]) -> list[str]:
    have = set(values)
    return [v for v in order if v in have]
