"""A small lending table whose rule is known: a yes needs income - debt above 1,000, a little less for owners."""

from dataclasses import replace

import numpy as np
import pandas as pd
from fits import SHORT, kept

import tdce


def table(rows: int = 1200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    income = rng.normal(3000, 800, rows).round(-1).clip(500)
    debt = rng.gamma(2.0, 900, rows).round(2)
    housing = rng.choice(["rent", "own", "with parents"], rows, p=[0.5, 0.3, 0.2])
    age = rng.integers(18, 80, rows)
    margin = income - debt - 1000 + 400 * (housing == "own") + rng.normal(0, 150, rows)
    frame = pd.DataFrame({"income": income.astype(int), "debt": debt, "housing": housing, "age": age})
    return frame.assign(decision=np.where(margin > 0, "yes", "no"))


def explainer() -> tdce.Explainer:
    """A copy of its own for each who asks."""
    return kept("lending", learned)


def learned() -> tdce.Explainer:
    """With a classifier that is trained longer than those of other tests, for many ask this one."""
    plans = replace(SHORT, classifier=replace(SHORT.classifier, steps=400, rate=1e-3))
    explainer = tdce.Explainer(hidden=64, steps=400, plans=plans, progress="silent")
    return explainer.fit(table(), label="decision", favourable="yes", actionable=["age"])


def refused(explainer: tdce.Explainer, rows: int, seed: int = 1) -> pd.DataFrame:
    frame = table(4 * rows, seed).drop(columns="decision")
    return frame[(explainer.predict(frame) == "no").to_numpy()].head(rows)
