"""The figures in docs/claims.md and docs/figures.md that are in no other table.

TDCE_DATA=... python benchmarks/claims.py
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from tdce.explainer import PAPER
from tdce.models import Oracle
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.contests import TITLES, contests
from tdce_reproduction.benchmark.settings import BASELINES, PAPER_DATA, tuned_method
from tdce_reproduction.figures.correlations import SHOWN, correlation

RESULTS = Path("results")
OURS = ("guided", "search")


def means(rows: pd.DataFrame, metrics: list[str]) -> None:
    """Print every method's mean over the seeds, for each data set, without and with a mask."""
    for metric in metrics:
        print(f"\n{metric}\n| data | masked | " + " | ".join((*BASELINES, *OURS)) + " |\n" + "|---" * 10 + "|")
        for data in PAPER_DATA:
            for masked in ("no", "yes"):
                (contest,) = contests(rows, data, masked, [metric])
                shown = " | ".join(f"{contest.figures[m].mean:.3f}" for m in (*BASELINES, *OURS))
                print(f"| {TITLES[data]} | {masked} | {shown} |")


def cells(rows: pd.DataFrame) -> None:
    """Print how often ours is first, or within one deviation of the first, among the six baselines."""
    print("\n| against the six baselines | first | within one deviation | last | of |\n|---|---|---|---|---|")
    for ours in OURS:
        part = rows[rows["method"].isin((*BASELINES, ours))]
        found = [
            contest
            for data in PAPER_DATA
            for masked in ("no", "yes")
            for contest in contests(part, data, masked, [m for m in PAPER if masked == "no" or m != "js"])
        ]
        last = sum(contest.ranking()[-1] == ours for contest in found)
        standings = Counter(contest.standing(ours) for contest in found)
        print(f"| {ours} | {standings['first']} | {standings['within']} | {last} | {len(found)} |")


def correlations(table: pd.DataFrame) -> None:
    print("\nLCD, mean |difference of correlations|, share of 36 months, rows whose term changes")
    print("| method | not masked | term masked | 36 months | term changes | FICO changes |\n" + "|---" * 6 + "|")
    off = table[(table["kind"] == "correlation") & (table["a"] != table["b"])]
    gaps = off.groupby(["method", "masked"])["value"].mean()
    free = table[table["masked"] == "no"]
    shares = free[(free["kind"] == "share") & (free["b"] == "36 months")].groupby("method")["value"].mean()
    changed = free[free["kind"] == "changed"].groupby(["method", "a"])["value"].mean()
    for method in (*SHOWN, "real rows", "refused rows", "target class"):
        moved = [changed.get((method, name), np.nan) for name in ("loan_term", "last_fico_score")]
        shown = (gaps[method, "no"], gaps[method, "yes"], shares[method], *moved)
        print(f"| {method} | " + " | ".join(f"{v:.3f}" for v in shown) + " |")


def temperatures(table: pd.DataFrame) -> None:
    print("\nLCD by temperature, mean over the seeds (largest less smallest seed)")
    taus = sorted(table["tau"].unique())
    print("| method | metric | " + " | ".join(f"{t:g}" for t in taus) + " |\n" + "|---" * (2 + len(taus)) + "|")
    for (method, metric), part in table.groupby(["method", "metric"], sort=False):
        values = part.groupby("tau")["value"]
        shown = [f"{values.mean()[t]:.4f} ({values.max()[t] - values.min()[t]:.4f})" for t in taus]
        print(f"| {method} | {metric} | " + " | ".join(shown) + " |")


def scores() -> None:
    """Print the FICO score in answers on LCD, seed 0: its deviation, and its correlation with the interest rate."""
    bench = Bench("lcd", 0, 1000, RESULTS / "fitted")
    names = list(bench.fitted.encoder.schema.names)
    pair = [names.index(name) for name in ("interest_rate", "last_fico_score")]
    found = {"target class": bench.fitted.raw[(bench.fitted.y == bench.target).numpy()]}
    for method in ("search", "guided", "wachter"):
        made = tuned_method(method, "lcd")
        found[method] = bench.explanation(made.fit(bench.task("no")), "no", bench.queries)[0].raw[:, 0]
    print("\nLCD, seed 0: deviation of the FICO score, its correlation with the interest rate")
    for name, raw in found.items():
        print(f"{name}: {raw[:, pair[1]].std():.0f}, {correlation(raw[:, pair])[0, 1]:.2f}")


def simplex(table: pd.DataFrame) -> None:
    end = table[table["t"] == 0]
    print("\nshares of A, B, C at t = 0, without and with guidance:")
    for _, part in end.groupby("guided"):
        print(np.bincount(part[["a", "b", "c"]].to_numpy().argmax(axis=1), minlength=3) / len(part))


def importance(seeds: int = 5) -> None:
    """Print how much accuracy the classifier of LCD loses on test rows when a feature is shuffled."""
    print("\nLCD, loss of accuracy when one feature is shuffled among the test rows, mean of five seeds")
    losses: dict[str, list[float]] = {}
    for seed in range(seeds):
        bench = Bench("lcd", seed, 1000, RESULTS / "fitted")
        rows, fitted = bench.data.part("test"), bench.fitted
        truth = np.array([fitted.classes.index(v) for v in rows[bench.data.label]])

        def right(frame: pd.DataFrame, bench: Bench = bench, truth: np.ndarray = truth) -> float:
            said = Oracle(bench.fitted.model).predict(bench.fitted.encoder.read(frame))
            return float((said.numpy() == truth).mean())

        rng = np.random.default_rng(seed)
        for name in fitted.encoder.schema.names:
            shuffled = rows.assign(**{name: rows[name].to_numpy()[rng.permutation(len(rows))]})
            losses.setdefault(name, []).append(right(rows) - right(shuffled))
    for name, found in losses.items():
        print(f"{name}: {np.mean(found):.3f}")


if __name__ == "__main__":
    rows = pd.read_csv(RESULTS / "benchmark.csv")
    means(rows, [*PAPER, "copies", "realism", "sparsity"])
    cells(rows)
    correlations(pd.read_csv(RESULTS / "figures" / "correlations.csv"))
    temperatures(pd.read_csv(RESULTS / "figures" / "tau.csv"))
    simplex(pd.read_csv(RESULTS / "figures" / "simplex.csv"))
    importance()
    scores()
