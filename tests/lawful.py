"""Tables made from known equations, for tests and for benchmarks/contradictions.py."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

ROWS = 2_000


@dataclass(frozen=True)
class Lawful:
    """A table with a label, and what must hold in every row, within what rounding and people's own terms explain."""

    frame: pd.DataFrame
    laws: tuple[frozenset[str], ...]  # the columns that each of its equations binds
    deviation: Callable[[pd.DataFrame], np.ndarray]  # (n, equations) how far each row is from them
    tolerance: tuple[float, ...]  # the largest deviation of a row of the table
    causes: dict[str, list[str]] | None = None  # that the user states

    def contradictions(self, rows: pd.DataFrame) -> np.ndarray:
        """(n,) which rows contradict the table's arithmetic."""
        return (self.deviation(rows) > np.array(self.tolerance) + 1e-9).any(axis=1)


def _label(score: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    noisy = score + 0.5 * score.std() * rng.normal(size=len(score))
    return np.where(noisy > np.quantile(noisy, 0.6), "yes", "no")


def months(seed: int = 0, rows: int = ROWS) -> Lawful:
    """A sum over months: paid = months x price, prices having changed over time."""
    rng = np.random.default_rng(seed)
    months = rng.integers(1, 73, rows)
    price = rng.uniform(18, 120, rows).round(2)
    paid = (months * price * np.exp(rng.normal(0, 0.05, rows))).round(2)
    frame = pd.DataFrame({
        "months": months, "price": price, "total_paid": paid, "complaints": rng.poisson(1.5, rows),
        "contract": rng.choice(["monthly", "yearly", "two years"], rows, p=[0.5, 0.3, 0.2]),
        "rating": rng.integers(1, 11, rows),
    })  # fmt: skip
    score = 0.0004 * paid - 0.02 * price - 0.6 * frame.complaints + 0.15 * frame.rating + (frame.contract != "monthly")
    frame["label"] = _label(score.to_numpy(), rng)
    return Lawful(
        frame, (frozenset({"months", "price", "total_paid"}),),
        lambda f: np.abs(np.log(f.total_paid / (f.months * f.price).clip(lower=0.01)).to_numpy(float))[:, None], (0.3,),
    )  # fmt: skip


def price_list(seed: int = 0, rows: int = ROWS) -> Lawful:
    """A price that the chosen services add up to, and what only goes with a service."""
    rng = np.random.default_rng(seed)
    internet = rng.choice(["none", "dsl", "fibre"], rows, p=[0.25, 0.35, 0.4])
    extras = {
        name: np.where(internet == "none", "no internet", rng.choice(["yes", "no"], rows))
        for name in ("backup", "streaming", "support")
    }
    lines = rng.choice(["none", "one", "several"], rows, p=[0.1, 0.5, 0.4])
    price = 20 * (lines != "none") + 5 * (lines == "several") + 25 * (internet == "dsl") + 50 * (internet == "fibre")
    price = price + sum(5.0 * (i + 1) * (extras[name] == "yes") for i, name in enumerate(extras))
    price = (price + rng.normal(0, 0.5, rows) + 0.5).round(2)
    frame = pd.DataFrame({"internet": internet, **extras, "lines": lines, "price": price})
    frame["satisfaction"], frame["calls"] = rng.integers(1, 6, rows), rng.poisson(2, rows)
    score = 0.5 * frame.satisfaction - 0.3 * frame.calls - 0.03 * price + 0.8 * (frame.support == "yes")
    frame["label"] = _label(score.to_numpy(), rng)

    def deviation(f: pd.DataFrame) -> np.ndarray:
        exact = 20 * (f.lines != "none") + 5 * (f.lines == "several") + 25 * (f.internet == "dsl")
        exact = exact + 50 * (f.internet == "fibre") + 0.5
        exact = exact + sum(5.0 * (i + 1) * (f[name] == "yes") for i, name in enumerate(extras))
        gone = [((f[name] == "no internet") != (f.internet == "none")).to_numpy(float) for name in extras]
        return np.column_stack([np.abs(f.price - exact).to_numpy(float), *gone])

    bound = frozenset({"price", "internet", "lines", *extras})
    return Lawful(frame, (bound, frozenset({"internet", *extras})), deviation, (2.5, 0.0, 0.0, 0.0))


def ratio(seed: int = 0, rows: int = ROWS) -> Lawful:
    """used / limit, rounded to three decimals."""
    rng = np.random.default_rng(seed)
    limit = rng.choice(np.arange(500, 20_001, 100), rows)
    used = (limit * rng.beta(1.5, 2.5, rows)).round(0) + 1
    frame = pd.DataFrame({
        "limit": limit, "used": used.astype(int), "utilisation": (used / limit).round(3),
        "income": rng.lognormal(10.3, 0.5, rows).round(-2), "delays": rng.poisson(0.7, rows),
        "region": rng.choice(["north", "south", "east", "west"], rows),
    })  # fmt: skip
    score = -4 * frame.utilisation - 0.8 * frame.delays + 0.00003 * frame.income
    frame["label"] = _label(score.to_numpy(), rng)
    return Lawful(
        frame, (frozenset({"limit", "used", "utilisation"}),),
        lambda f: np.abs(f.utilisation - f.used / f.limit).to_numpy(float)[:, None], (0.0011,),
    )  # fmt: skip


def instalment(seed: int = 0, rows: int = ROWS) -> Lawful:
    """The monthly instalment of an annuity loan: fixed by amount, rate and term together, in a curved way."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "amount": 100 * rng.integers(10, 351, rows), "rate": rng.uniform(5, 26, rows).round(2),
        "term": rng.choice([36, 60], rows), "income": rng.lognormal(8.2, 0.5, rows).round(-1),
        "purpose": rng.choice(["car", "home", "other"], rows), "defaults": rng.poisson(0.5, rows),
    })  # fmt: skip

    def annuity(f: pd.DataFrame) -> np.ndarray:
        monthly = f.rate.to_numpy(float) / 1200
        return f.amount.to_numpy(float) * monthly / (1 - (1 + monthly) ** -f.term.to_numpy(float))

    frame.insert(3, "instalment", annuity(frame).round(2))
    score = -4 * frame.instalment / frame.income - 0.6 * frame.defaults - 0.02 * frame.rate
    frame["label"] = _label(score.to_numpy(), rng)
    return Lawful(
        frame, (frozenset({"amount", "rate", "term", "instalment"}),),
        lambda f: np.abs(np.log(f.instalment.to_numpy(float) / annuity(f)))[:, None], (0.08,),
    )  # fmt: skip


def conditional_range(seed: int = 0, rows: int = ROWS) -> Lawful:
    """A premium that lies between 70 and 150 where the tariff is the dear one, else between 20 and 60."""
    rng = np.random.default_rng(seed)
    tariff = rng.choice(["basic", "premium"], rows, p=[0.6, 0.4])
    premium = np.where(tariff == "premium", rng.uniform(70, 150, rows), rng.uniform(20, 60, rows)).round(1)
    frame = pd.DataFrame({
        "tariff": tariff, "premium": premium, "claims": rng.poisson(1, rows),
        "deductible": rng.choice([0, 150, 300, 500], rows), "car_power": rng.integers(40, 250, rows),
    })  # fmt: skip
    score = 0.02 * premium * np.where(tariff == "premium", -1, 1) - 0.7 * frame.claims + 0.002 * frame.deductible
    frame["label"] = _label(score.to_numpy(), rng)

    def deviation(f: pd.DataFrame) -> np.ndarray:
        dear = (f.tariff == "premium").to_numpy()
        low, high = np.where(dear, 70, 20), np.where(dear, 150, 60)
        return np.maximum(np.maximum(low - f.premium, f.premium - high), 0.0).to_numpy(float)[:, None]

    return Lawful(frame, (frozenset({"tariff", "premium"}),), deviation, (2.0,))


def causal_chain(seed: int = 0, rows: int = ROWS) -> Lawful:
    """Education and hours cause income, income causes savings; each person has their own residual."""
    rng = np.random.default_rng(seed)
    education = rng.integers(8, 21, rows)
    hours = rng.integers(10, 61, rows)
    income = 200 * education + 60 * hours + rng.normal(0, 400, rows)
    savings = 0.8 * income + rng.normal(0, 300, rows)
    frame = pd.DataFrame({
        "education": education, "hours": hours, "income": income.round(0), "savings": savings.round(0),
        "town": rng.choice(["small", "large"], rows),
    })  # fmt: skip
    frame["label"] = _label(income + savings + 500.0 * (frame.town == "large").to_numpy(), rng)

    def deviation(f: pd.DataFrame) -> np.ndarray:
        first = np.abs(f.income - 200 * f.education - 60 * f.hours)
        return np.column_stack([first, np.abs(f.savings - 0.8 * f.income)]).astype(float)

    causes = {"income": ["education", "hours"], "savings": ["income"]}
    return Lawful(frame, (), deviation, (1_800.0, 1_400.0), causes)


def lawless(seed: int = 0, rows: int = ROWS) -> Lawful:
    """Columns that are related, but bound by nothing."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=rows)
    frame = pd.DataFrame({
        "a": (100 * np.exp(0.4 * base + 0.4 * rng.normal(size=rows))).round(1),
        "b": (50 + 10 * base + 8 * rng.normal(size=rows)).round(0),
        "c": rng.gamma(2.0, 10.0, rows).round(2), "d": rng.integers(0, 30, rows),
        "e": np.where(base + rng.normal(size=rows) > 0, "high", "low"), "f": rng.choice(list("wxyz"), rows),
        "g": (3 * rng.beta(2, 2, rows) + 0.3 * base).round(3),
    })  # fmt: skip
    frame["label"] = _label(base + 0.02 * frame.c.to_numpy(), rng)
    return Lawful(frame, (), lambda f: np.zeros((len(f), 1)), (0.0,))


TABLES: dict[str, Callable[..., Lawful]] = {
    "months": months, "price list": price_list, "ratio": ratio, "instalment": instalment,
    "conditional range": conditional_range, "causal chain": causal_chain, "lawless": lawless,
}  # fmt: skip
