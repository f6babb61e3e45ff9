"""How well the energy and other scores tell real rows from corrupted ones. Prints the table of docs/energy.md.

    TDCE_DATA=... python benchmarks/energy.py [--data lcd,gmc,adult,law,german] [--cache results/fitted] [--rows 1000]

A corrupted row is a held-out real row in which 1, 2 or 4 values are replaced, each by that of another training row.
The table shows the share of pairs in which a score is higher for the corrupted row than for the real one; ties count
half. Seed 0. `--quick` leaves out the boosted conditionals; `--part validation` is for development.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest
from torch import Tensor

from tdce._core import Floats, Noise, same
from tdce.explainer import Fitted, MetricReference
from tdce.methods.objective import NOISE_LEVELS
from tdce.metrics import nearest_rows
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.settings import DATA

CORRUPTED_VALUES = (1, 2, 4)
LOW_LEVEL = (0.1,)  # a single level, beside NOISE_LEVELS
DRAWS = 8  # of noise at each level, to see whether more than one helps
NEIGHBOURS = 5
CONDITIONAL_ROWS = 4_000  # training rows of the boosted conditionals
ITERATIONS = 50

AnomalyScore = Callable[[Floats], Floats]  # (n, features) -> (n,), high for unusual rows


def anomaly_scores(bench: Bench, real: Floats, y: Tensor, quick: bool) -> Iterator[tuple[str, AnomalyScore]]:
    """Scores by name for versions of the same real rows; all versions of a row get the same noise."""
    fitted, reference = bench.fitted, bench.reference
    no_class = torch.full_like(y, -1)
    yield f"energy, levels {', '.join(map(str, NOISE_LEVELS))}", lambda raw: energy(fitted, raw, real, y)
    yield "energy, no class", lambda raw: energy(fitted, raw, real, no_class)
    yield f"energy, level {LOW_LEVEL[0]}", lambda raw: energy(fitted, raw, real, y, LOW_LEVEL)
    yield f"energy, {DRAWS} draws", lambda raw: energy(fitted, raw, real, y, NOISE_LEVELS, DRAWS)
    rows = reference.whole(fitted.raw)
    yield f"distance to {NEIGHBOURS} training rows", lambda raw: distance(reference.whole(raw), rows)
    forest = IsolationForest(random_state=0).fit(rows.numpy())
    yield "isolation forest", lambda raw: -forest.score_samples(reference.whole(raw).numpy())
    if not quick:
        yield "boosted conditionals", conditionals(reference)


def energy(
    fitted: Fitted,
    raw: Floats,  # (n, features)
    real: Floats,  # (n, features) the rows whose noise is used
    y: Tensor,  # (n,) the classes on which the denoiser is conditioned
    levels: tuple[float, ...] = NOISE_LEVELS,
    draws: int = 1,
) -> Floats:
    """(n,) as in `methods/objective.py`: the denoising errors of all features, mean over the levels and the draws."""
    encoder, diffusion = fitted.encoder, fitted.diffusion
    x, noise, total = encoder.embed(raw).float(), Noise(encoder.embed(real).float(), 0), torch.zeros(len(raw))
    for level in levels:
        t = max(1, round(level * diffusion.schedule.times))
        for _ in range(draws):
            normal, gumbel = noise.normal(encoder.space.num), noise.gumbel(encoder.space.cat)
            total += diffusion.errors(x, t, normal, gumbel, y).sum(dim=1)
    return (total / (len(levels) * draws)).numpy()


def distance(points: Tensor, rows: Tensor) -> Floats:
    """The mean over the nearest training rows."""
    return nearest_rows(points, rows, NEIGHBOURS)[0].mean(dim=1).numpy()


def conditionals(reference: MetricReference) -> AnomalyScore:
    """The sum over features, each given all others, of -log p of a category and half the squared residual of a number,
    in deviations of the residuals of its training rows. A missing number is at the mean."""
    numeric, draw = reference.numeric, np.random.default_rng(0)
    learned = reference.raw[draw.permutation(len(reference.raw))[:CONDITIONAL_ROWS]]
    parts = []

    def targets(raw: Floats) -> Floats:
        out = np.nan_to_num(raw, nan=-1.0)
        out[:, numeric] = reference.standardised(raw).numpy()
        return out

    for i, values in enumerate(targets(learned).T):
        others = np.arange(len(numeric)) != i
        kind = HistGradientBoostingRegressor if numeric[i] else HistGradientBoostingClassifier
        model = kind(
            max_iter=ITERATIONS, early_stopping=False, categorical_features=~numeric[others], random_state=0
        ).fit(learned[:, others], values)
        spread = max(float((values - model.predict(learned[:, others])).std()), 1e-3) if numeric[i] else 1.0
        parts.append((others, model, spread))

    def score(raw: Floats) -> Floats:
        total, values = np.zeros(len(raw)), targets(raw)
        for i, (others, model, spread) in enumerate(parts):
            if numeric[i]:
                total += np.square((values[:, i] - model.predict(raw[:, others])) / spread) / 2
            else:
                p = (model.predict_proba(raw[:, others]) * (model.classes_ == values[:, [i]])).sum(axis=1)
                total -= np.log(p.clip(1 / CONDITIONAL_ROWS))
        return total

    return score


def corrupt(real: Floats, rows: Floats, count: int, draw: np.random.Generator) -> Floats:
    """The real rows with this many values replaced by those of training rows."""
    out = real.copy()
    for i, row in enumerate(real):
        for feature in draw.permutation(len(row))[:count]:
            others = rows[~same(rows[:, feature], row[feature]), feature]
            if len(others):  # there are none in a column with one value
                out[i, feature] = draw.choice(others)
    return out


def detection_rate(real: Floats, other: Floats) -> float:
    """The share of pairs in which the other row has the higher score."""
    return float((other > real).mean() + (other == real).mean() / 2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--part", default="test", choices=("validation", "test"))
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| data | score | 1 value | 2 values | 4 values |\n" + "|---" * 5 + "|")
    for name in arguments.data.split(","):
        bench, draw = Bench(name, 0, arguments.rows, arguments.cache), np.random.default_rng(0)
        frame = bench.data.part(arguments.part).head(arguments.rows)
        real, y = bench.fitted.encoder.read(frame), torch.from_numpy(bench.fitted.class_numbers(frame))
        others = [corrupt(real, bench.fitted.raw, count, draw) for count in CORRUPTED_VALUES]
        for title, score in anomaly_scores(bench, real, y, arguments.quick):
            own = score(real)
            shares = " | ".join(f"{detection_rate(own, score(other)):.3f}" for other in others)
            print(f"| {name} | {title} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
