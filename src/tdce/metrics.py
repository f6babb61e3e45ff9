"""One pure function per metric: first the paper's seven, then others.  PAPER[10]

`x` holds rows and `x_cf` their counterfactuals, row by row. L2, diversity and instability take standardised numbers
(n, num); JS and the autoencoders' metrics take encoded rows (n, width). `raw` is (n, features): numbers as they are,
categories as positions, missing as NaN; `numeric` says which features are numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tdce._core import Flags, Floats, require_extra, same
from tdce.schema import Space

Autoencoder = Callable[[Tensor], Tensor]
EPSILON = 1e-6  # for denominators that may be 0
NEAREST_ROWS = 5  # held-out rows that a counterfactual is compared with
TWO_SAMPLE_FOLDS = 5
MIN_TWO_SAMPLE_ROWS = 20  # on each side
DENSITY_NEIGHBOURS = 20  # neighbours that define the density at a row
MOST_DENSITY_ROWS = 2_000  # training rows for outliers and densities, at most
DENSITY_SHARE = 0.95  # of held-out rows whose place counts as dense
LARGEST_FACTOR = 1.5  # local outlier factor; above it, a row is an outlier
EXACT_DISTANCES = "donot_use_mm_for_euclid_dist"  # the same bits on any number of threads

MEANING = {
    "l2": ("low", "how far the numbers moved: squared distance, standardised"),
    "diversity": ("high", "how varied the counterfactuals are: half their mean distance"),
    "instability": ("low", "how much the answer for the nearest similar row differs"),
    "js": ("low", "how far the categories are from those of the target class, in bits"),
    "im1": ("low", "error of the target class's autoencoder over that of the original class's (mean; heavy tail)"),
    "im2": ("low", "gap between the autoencoders of the target class and of the whole data"),
    "validity": ("high", "share of rows that the model then puts in the target class"),
    "l2_per_feature": ("low", "l2 divided by the number of numeric features"),
    "im1_median": ("low", "im1 of the median row"),
    "im2_median": ("low", "im2 of the median row"),
    "sparsity": ("low", "number of features changed"),
    "gower": ("low", "how much changed, over all features alike: 0 nothing, 1 everything"),
    "realism": ("low", "distance to the nearest real row of the target class"),
    "held_out_distance": ("low", "mean distance to the 5 nearest held-out rows of the target class"),
    "coherence": ("low", "how differently two features go together than in held-out rows of the target class"),
    "two_sample": ("0.5", "how well a classifier tells them from held-out rows of the target class: its AUC"),
    "lof_outliers": ("low", "share that are outliers of the target class: local outlier factor above 1.5"),
    "low_density": ("low", "share in a less dense place than 95 % of the held-out rows of the target class"),
    "copies": ("low", "share of counterfactuals that are identical to a training row"),
    "plausibility": ("high", "share of real people of the target class who are less typical by the diffusion model"),
    "violations": ("low", "share of rows that break a limit, a law or a rule"),
    "retrained": ("high", "share of models, trained again on resampled rows, that still accept a valid answer"),
    "option_spread": ("high", "how much a row's options differ in the features they change: 1 minus their overlap"),
}
"""Each metric's good direction and its meaning."""


def l2(x: Tensor, x_cf: Tensor) -> float:
    """How far the numbers moved: mean |x - x_cf|^2. Lower is better."""
    return _mean((x - x_cf).square().sum(dim=1))


def l2_per_feature(x: Tensor, x_cf: Tensor) -> float:
    """The squared distance as a mean over numeric features: mean (x - x_cf)^2. Lower is better. The paper's figures
    probably use this one (docs/metrics.md)."""
    return l2(x, x_cf) / max(1, x.shape[1])


def diversity(x_cf: Tensor) -> float:
    """How varied the counterfactuals are: sum over i < j of |x_i - x_j|, divided by N (N - 1). Higher is better."""
    n = len(x_cf)
    return torch.pdist(x_cf.double()).sum().item() / (n * (n - 1)) if n > 1 and x_cf.shape[1] else 0.0


def instability(x: Tensor, x_near: Tensor, x_cf: Tensor, x_near_cf: Tensor) -> float:
    """How much the answers for similar rows differ: mean |x_cf - x_near_cf| / (1 + |x - x_near|). Lower is better.

    `x_near` is the nearest row that the model puts in the same class as x.
    """
    return _mean((x_cf - x_near_cf).norm(dim=1) / (1 + (x - x_near).norm(dim=1)))


def js(space: Space, x_cf: Tensor, target_rows: Tensor) -> float:
    """How far the categories are from those of the target class: Jensen-Shannon divergence in bits, the mean over
    categorical features. Lower is better."""
    blocks = zip(space.blocks(space.split(x_cf)[1]), space.blocks(space.split(target_rows)[1]), strict=True)
    each = [jensen_shannon(p.double().mean(dim=0).numpy(), q.double().mean(dim=0).numpy()) for p, q in blocks]
    return float(np.mean(each)) if each else 0.0


def jensen_shannon(p: Floats, q: Floats) -> float:
    """JS(p || q) in bits: the mean KL of p and q from their mixture; 0 for equal, 1 for disjoint."""
    mixture = (p + q) / 2

    def kl(a: Floats) -> float:
        at = a > 0
        return float((a[at] * np.log2(a[at] / mixture[at])).sum())

    return (kl(p) + kl(q)) / 2


def im1(x_cf: Tensor, of_target: Autoencoder, of_origin: Autoencoder) -> Tensor:
    """(n,) |x - AE_t(x)|^2 / |x - AE_o(x)|^2: whether the target class's autoencoder explains the row better than the
    original class's (Van Looveren & Klaise 2021). Below 1 is better; the ratio has a heavy tail."""
    return _squared(x_cf - of_target(x_cf)) / (_squared(x_cf - of_origin(x_cf)) + EPSILON)


def im2(x_cf: Tensor, of_target: Autoencoder, of_all: Autoencoder) -> Tensor:
    """(n,) |AE_t(x) - AE(x)|^2 / |x|_1: how far the target class's autoencoder and that of all the data disagree on the
    row. Lower is better."""
    return _squared(of_target(x_cf) - of_all(x_cf)) / (x_cf.abs().sum(dim=1) + EPSILON)


def validity(valid: NDArray[np.bool_]) -> float:
    """The share of counterfactuals that the model puts in the target class. Higher is better."""
    return float(valid.mean()) if len(valid) else 0.0


def sparsity(raw: Floats, raw_cf: Floats) -> float:
    """How many features changed, on average. Lower is better."""
    return float((~same(raw, raw_cf)).sum(axis=1).mean()) if len(raw) else 0.0


def overlap(changed: NDArray[np.bool_], others: NDArray[np.bool_]) -> Floats:
    """(...) the Jaccard index of two sets of features (..., features): shared over all; 1 for two empty sets."""
    union = (changed | others).sum(axis=-1)
    return np.where(union > 0, (changed & others).sum(axis=-1) / np.maximum(union, 1), 1.0)


def option_spread(raw: Floats, raw_cf: Floats) -> float:
    """How different a row's options are: 1 minus the overlap of the features that two of them change, averaged
    over pairs and rows; `raw_cf` is (rows, options, features). Higher is better."""
    changed, options = ~same(raw_cf, raw[:, None]), raw_cf.shape[1]
    alike = [overlap(changed[:, apart:], changed[:, :-apart]).sum() for apart in range(1, options)]
    return 1 - float(sum(alike)) / (len(raw) * options * (options - 1) / 2) if len(raw) and alike else 0.0


def realism(x_cf: Tensor, target_rows: Tensor) -> float:
    """The mean distance from a counterfactual to the nearest real row of the target class. Lower is better."""
    return _mean(nearest_rows(x_cf, target_rows)[0])


def gower(raw: Floats, raw_cf: Floats, numeric: Flags, rows: Floats) -> float:
    """How much changed, with all features on one scale: the mean over rows and features of Gower's distance. A number
    counts min(1, |x - x_cf| / (q95 - q5)); a change of a category, or from or to missing, counts 1. Lower is better.

    q5 and q95 are quantiles of the training `rows`; where they coincide, the smallest and the largest value are
    used. `numeric` may also be (n, features): whether a cell and its change are numbers.
    """
    if not len(raw):
        return 0.0
    changed, span = ~same(raw, raw_cf), spans(rows)
    share = np.minimum(np.abs(raw_cf - raw), span) / span
    graded = numeric & ~np.isnan(raw) & ~np.isnan(raw_cf)
    return float(np.where(graded & changed, share, changed).mean())


def spans(rows: Floats) -> Floats:
    """(features,) the distance between the 5 % and 95 % quantiles; if it is 0, the range; if that is 0, EPSILON."""
    out = np.full(rows.shape[1], EPSILON)
    for i, column in enumerate(rows.T):
        values = column[~np.isnan(column)]
        if len(values):
            low, high = np.quantile(values, [0.05, 0.95])
            out[i] = (high - low) or np.ptp(values) or EPSILON
    return out


def held_out_distance(x_cf: Tensor, held: Tensor) -> float:
    """How far a counterfactual is from real rows not used in training: the mean distance to its 5 nearest held-out
    rows of the target class. Lower is better."""
    return _mean(nearest_rows(x_cf, held, NEAREST_ROWS)[0].mean(dim=1))


def coherence(raw_cf: Floats, held: Floats, numeric: Flags) -> float:
    """Whether features depend on each other as in real rows: the mean over pairs of features of |A_cf - A_real|, where
    A is their association among the counterfactuals, or among held-out rows of the target class. Lower is better."""
    pairs = np.triu_indices(len(numeric), k=1)
    gap = np.abs(associations(raw_cf, numeric) - associations(held, numeric))[pairs]
    return float(gap.mean()) if len(gap) else 0.0


def associations(raw: Floats, numeric: Flags) -> Floats:
    """(features, features) Pearson's correlation of two numbers, Cramer's V of two categories, the correlation ratio
    eta of a number and a category; 0 where one is constant. A missing category counts as a category; rows with
    a missing number are left out of the pair."""
    out = np.eye(len(numeric))
    for i in range(len(numeric)):
        for j in range(i):
            a, b = (i, j) if numeric[i] or not numeric[j] else (j, i)  # in a mixed pair, the number first
            some = ~(numeric[[a, b]] & np.isnan(raw[:, [a, b]])).any(axis=1)
            association = pearson if numeric[b] else eta if numeric[a] else cramers_v
            out[i, j] = out[j, i] = association(raw[some, a], raw[some, b])
    return out


def pearson(a: Floats, b: Floats) -> float:
    """cov(a, b) / (sd(a) sd(b)), from -1 to 1."""
    if _is_constant(a) or _is_constant(b):
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def cramers_v(a: Floats, b: Floats) -> float:
    """sqrt(chi^2 / (n min(r - 1, c - 1))) of the table of counts (r, c), from 0 to 1."""
    if _is_constant(a) or _is_constant(b):
        return 0.0
    (_, row), (_, column) = (np.unique(each, return_inverse=True) for each in (a, b))
    counts = np.zeros((row.max() + 1, column.max() + 1))
    np.add.at(counts, (row, column), 1.0)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / len(a)
    chi2 = (np.square(counts - expected) / expected).sum()
    return float(np.sqrt(chi2 / (len(a) * (min(counts.shape) - 1))))


def eta(number: Floats, category: Floats) -> float:
    """sqrt(sum over categories of n_k (mean_k - mean)^2 / sum of (x - mean)^2), from 0 to 1."""
    if _is_constant(number) or _is_constant(category):
        return 0.0
    which = np.unique(category, return_inverse=True)[1]
    away = number - number.mean()
    counts, totals = np.bincount(which), np.bincount(which, weights=away)
    return float(np.sqrt((np.square(totals) / counts).sum() / np.square(away).sum()))


def two_sample(x_cf: Tensor, held: Tensor, seed: int = 0) -> float:
    """How well a boosted classifier tells counterfactuals from held-out rows of the target class: its mean AUC over 5
    folds, with equal numbers of both (drawn by the seed). 0.5 is best: they cannot be told apart."""
    require_extra("two_sample", "paper", "sklearn")
    from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-untyped]
    from sklearn.model_selection import StratifiedKFold, cross_val_score  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # comes with scikit-learn

    draw, size = np.random.default_rng(seed), min(len(x_cf), len(held))
    sides = [side.double().numpy()[np.sort(draw.permutation(len(side))[:size])] for side in (x_cf, held)]
    x, y = np.concatenate(sides), np.repeat([1, 0], size)
    folds = StratifiedKFold(TWO_SAMPLE_FOLDS, shuffle=True, random_state=seed)
    settings = {"max_iter": 50, "min_samples_leaf": 5, "early_stopping": False}
    classifier = HistGradientBoostingClassifier(**settings, random_state=seed)
    with threadpool_limits(1, user_api="openmp"):  # with so few rows, one thread is fastest
        return float(cross_val_score(classifier, x, y, scoring="roc_auc", cv=folds).mean())


def lof_outliers(x_cf: Tensor, target_rows: Tensor, seed: int = 0) -> float:
    """The share of counterfactuals that are outliers of the target class: their local outlier factor (Breunig et al.
    2000) by 20 neighbours among at most 2,000 training rows of the class is above 1.5. Lower is better; isolated real
    rows are outliers, too."""
    require_extra("lof_outliers", "paper", "sklearn")
    from sklearn.neighbors import LocalOutlierFactor  # type: ignore[import-untyped]

    rows = _sample(target_rows, seed)
    judge = LocalOutlierFactor(n_neighbors=min(DENSITY_NEIGHBOURS, len(rows) - 1), novelty=True).fit(rows.numpy())
    return float((-judge.score_samples(x_cf.double().numpy()) > LARGEST_FACTOR).mean())


def low_density(x_cf: Tensor, target_rows: Tensor, held: Tensor, seed: int = 0) -> float:
    """The share of counterfactuals in regions of low density: the distance to their 20th nearest training row of the
    target class (of at most 2,000) is larger than for 95 % of the held-out rows of the class. Lower is better; new real
    rows have about 0.05."""
    rows = _sample(target_rows, seed)
    real, own = (nearest_rows(each.double(), rows, DENSITY_NEIGHBOURS)[0][:, -1] for each in (held, x_cf))
    return _mean((own > real.quantile(DENSITY_SHARE)).double())


def copies(raw_cf: Floats, raw_rows: Floats) -> float:
    """The share of counterfactuals that are identical to a training row. Lower is better, for privacy."""
    known = {row.tobytes() for row in np.nan_to_num(raw_rows, nan=-np.inf) + 0.0}
    return float(np.mean([row.tobytes() in known for row in np.nan_to_num(raw_cf, nan=-np.inf) + 0.0]))


def nearest_rows(points: Tensor, rows: Tensor, k: int = 1) -> tuple[Tensor, Tensor]:
    """(n, k) distances and positions of the k nearest rows."""
    k = min(k, len(rows))
    parts = torch.split(points, 256)
    nearest = [torch.cdist(part, rows, compute_mode=EXACT_DISTANCES).topk(k, largest=False) for part in parts]
    return torch.cat([d for d, _ in nearest]), torch.cat([i for _, i in nearest])


def _sample(rows: Tensor, seed: int) -> Tensor:
    """At most 2,000 of the rows, drawn by the seed, in their original order."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(rows))[:MOST_DENSITY_ROWS])
    return rows.double()[torch.from_numpy(chosen)]


def _is_constant(values: Floats) -> bool:
    """Whether no two values differ; missing counts as a value."""
    return len(values) == 0 or bool(same(values, values[:1]).all())


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(dim=1)


def _mean(values: Tensor) -> float:
    return values.double().mean().item() if len(values) else 0.0
