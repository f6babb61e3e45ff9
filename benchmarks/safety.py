"""Are answers still accepted by independently retrained models that no answer has seen?

    TDCE_DATA=... python benchmarks/safety.py [--data german,...] [--models own,boosted] [--seeds 3] [--rows 100]
                                              [--ask ...] [--cache FOLDER] [--out results/safety.csv]
    TDCE_DATA=... python benchmarks/safety.py --times   how much longer it takes: results/safety_times.csv
    python benchmarks/safety.py --docs          writes the tables of docs/safety.md from the results

Each table is cut into a half that is learned, another half, and unseen rows, of which the refused ones are explained.
The judges are models trained independently of the explainer: three on the *other* half, with an encoding, an early
stopping and a seed of their own (`held_other`), and three on bootstrap samples of the learned half, through the whole
of `fit` (`held_again`). `held` is the mean of both: the share of valid answers that a judge accepts. `own` is the
classifier that `fit` trains, `boosted` histogram gradient boosting. The settings: the default; `safety 0`, no wanted
safety; a constant margin (`p 0.7`: a probability of at least 0.7); `robust`, ten retrained models that must agree.

`forecast` is the mean of the column `safety`, to be compared with `held`; `safe` the share of answers that reach a
forecast of 0.9, and `held_safe` the share of these that is held. Not everybody can reach it: roles leave some people
little to change. results/calibration.csv has forecasts and held shares of all valid answers, by bins of the forecast.

A high threshold leaves the hard rows without an answer, so `held`, features and Gower are compared on the rows that
every setting answers (`common` is their share); validity, plausibility and the distance are of all rows. Results are
written case by case; those in the file are not measured again. The printed table shows the whole file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

import tdce
from tdce._core import TrainingPlan, same
from tdce.diffusion import SamplingPlan
from tdce.explainer import MetricReference
from tdce.explainer.plans import TrainingPlans
from tdce.methods import Explanation
from tdce.schema import Categorical, FeasibleSet

FILES = ("safety", "calibration", "safety_times")  # of results/, from which the tables of docs/safety.md are made
COLUMNS = ["data", "model", "asked", "seed", "metric", "value"]
LEARNED_ROWS = 4_000
JUDGES = 3  # of either kind
JUDGE_SEED = 1_000
ROBUST_MODELS = 10
TURNS = 3
ASKED = ("default", "safety 0", "safety 0.7", "safety 0.8", "p 0.6", "p 0.7", "p 0.8", "robust")
WANTED = ("safety 0", "safety 0.7", "safety 0.8", "default")  # from a bare yes to the default
MARGINS = ("p 0.6", "p 0.7", "p 0.8")
KNEE = 3  # times as much as the step before costs
METRICS = {  # the title of each, and its decimals
    "validity": ("validity", 2), "common": ("common", 2), "held_other": ("held, other half", 2),
    "held_again": ("held, bootstraps", 2), "held": ("held", 2), "forecast": ("forecast", 2),
    "safe": ("safe", 2), "held_safe": ("held where safe", 2),
    "sparsity": ("features", 2), "gower": ("Gower", 3), "held_out_distance": ("distance to held-out rows", 2),
    "plausibility": ("plausibility", 2),
}  # fmt: skip
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)  # of the forecast
CALIBRATION = ["data", "model", "seed", "bin", "answers", "forecast", "held"]
FITTED_SEEDS = (0, 1)  # whose verdicts the forecast was fitted to
SAFE = 0.895
QUICK = TrainingPlans(diffusion=TrainingPlan(steps=1), sampling=SamplingPlan(rows=64, batch=64, steps=1))
Judge = Callable[[pd.DataFrame], np.ndarray]


class Case:
    """One table, a model of half of it, judges, and the rows to explain."""

    def __init__(self, name: str, model: str, seed: int, rows: int, cache: Path) -> None:
        data = tdce.load(name, seed=seed)
        self.data, self.model = data, model
        frame = data.frame.sample(frac=1, random_state=seed)
        half = min(int(0.4 * len(frame)), LEARNED_ROWS)
        learned, other, unseen = frame[:half], frame[half : 2 * half], frame[2 * half :]
        self.learned = learned
        decides = None if model == "own" else boosted(data, learned, seed)
        path = cache / f"safety, {name}, {model}, {seed}.tdce"
        if path.exists():
            self.explainer = tdce.Explainer.load(path, progress="silent", model=decides)
        else:
            self.explainer = tdce.Explainer(model=decides, seed=seed, keep_rows=True, progress="silent")
            self.explainer.fit(learned, label=data.label, favourable=data.favourable, schema=data.schema)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.explainer.save(path)
        refused = (self.explainer.predict(unseen) != data.favourable).to_numpy()
        self.queries = unseen[refused].head(rows)
        held = unseen.drop(index=self.queries.index).head(4_000)
        fitted = self.explainer.fitted
        self.reference = MetricReference.fit(
            fitted.encoder, fitted.raw, (fitted.y == fitted.classes.index(data.favourable)).numpy(), seed,
            fitted.encoder.read(held), (held[data.label] == data.favourable).to_numpy(dtype=bool),
        )  # fmt: skip
        self.other, self.seed = other, seed

    @cached_property
    def judges(self) -> dict[str, list[Judge]]:
        """Models of the other half, and of bootstrap samples of the learned one."""
        rng, half, first = np.random.default_rng(JUDGE_SEED + self.seed), len(self.learned), JUDGE_SEED + self.seed
        samples = [self.learned.iloc[rng.integers(0, half, half)].reset_index(drop=True) for _ in range(JUDGES)]
        return {
            "held_other": [self.judge(self.other, first + i) for i in range(JUDGES)],
            "held_again": [self.judge(sample, first + i) for i, sample in enumerate(samples)],
        }

    def time_ratio(self) -> float:
        """Processor time of the default over that without a wanted safety, in turns, the shortest of each."""
        times: dict[float | None, list[float]] = {None: [], 0.0: []}
        for _ in range(1 + TURNS):
            for safety, seconds in times.items():
                began = time.process_time()
                self.explainer.explain(self.queries, safety=safety)
                seconds.append(time.process_time() - began)
        return min(times[None][1:]) / min(times[0.0][1:])  # the first of each prepares what later ones share

    def judge(self, table: pd.DataFrame, seed: int) -> Judge:
        """Whether a model that was trained on this table, independently, accepts each row."""
        data = self.data
        if self.model == "boosted":
            model = boosted(data, table, seed)
            return lambda rows: model.predict(rows[list(data.schema.names)]) == data.favourable
        judge = tdce.Explainer(seed=seed, progress="silent", plans=QUICK, steps=1)
        judge.fit(table, label=data.label, favourable=data.favourable, schema=data.schema)
        return lambda rows: (judge.predict(rows) == data.favourable).to_numpy()

    def ask(self, ways: list[str]) -> dict[str, dict[str, float]]:
        """The figures of each way to ask."""
        found, out = {}, {}
        for asked in ways:
            found[asked] = self.explainer.explain(self.queries, **self.options(asked)).explanation
        common = np.all([each.status[:, 0] == "valid" for each in found.values()], axis=0)
        self.calibrate([each for asked, each in found.items() if asked == "default" or asked.startswith("safety")])
        for asked, explanation in found.items():
            out[asked] = self.rate(explanation) | self.rate_common(explanation, common)
        return out

    def calibrate(self, found: list[Explanation]) -> None:
        """Sort all valid answers by their forecast, and count what the judges accept of them."""
        forecast = np.concatenate([each.safety[each.status[:, 0] == "valid", 0] for each in found])
        held = np.concatenate([self.acceptance(each)[each.status[:, 0] == "valid"] for each in found])
        which = np.searchsorted(BINS[1:-1], forecast, side="right")
        self.calibration = [
            (BINS[i], int((which == i).sum()), float(forecast[which == i].mean()), float(held[which == i].mean()))
            for i in np.unique(which)
        ]

    def acceptance(self, found: Explanation) -> np.ndarray:
        """(rows,) the share of judges that accept each answer, those of either kind counting as much."""
        encoder = self.explainer.fitted.encoder
        rows = encoder.write(found.raw[:, 0], self.queries, encoder.read(self.queries))
        kinds = [np.mean([judge(rows) for judge in judges], axis=0) for judges in self.judges.values()]
        return np.mean(kinds, axis=0)

    def rate(self, found: Explanation) -> dict[str, float]:
        """Of all rows."""
        feasible = FeasibleSet.of(self.explainer.fitted.encoder, self.queries)
        values = self.reference.measure(feasible, found, feasible.own, found)
        return {name: values[name] for name in ("validity", "held_out_distance", "plausibility")}

    def rate_common(self, found: Explanation, common: np.ndarray) -> dict[str, float]:
        """Of the rows that all ways to ask answer."""
        encoder, schema = self.explainer.fitted.encoder, self.explainer.schema
        own, raw = encoder.read(self.queries), found.raw[:, 0]
        rows = encoder.write(raw, self.queries, own)[common]
        values = {"common": float(common.mean())}
        for kind, judges in self.judges.items():
            values[kind] = float(np.mean([judge(rows).mean() for judge in judges])) if common.any() else float("nan")
        changed = ~same(raw, own)[common]
        safe = found.safety[common, 0] >= SAFE
        held = self.acceptance(found)[common]
        low, high = np.nanquantile(self.explainer.fitted.raw, [0.05, 0.95], axis=0)
        far = np.nan_to_num(np.abs(raw - own)[common] / np.maximum(high - low, 1e-9), nan=1.0).clip(max=1.0)
        number = np.array([column.numbers > 0 for column in schema])
        decided = np.array([name not in schema.followers for name in schema.names])
        return values | {
            "held": (values["held_other"] + values["held_again"]) / 2,
            "forecast": float(found.safety[common, 0].mean()),
            "safe": float(safe.mean()),
            "held_safe": float(held[safe].mean()) if safe.any() else float("nan"),
            "sparsity": float(changed[:, decided].sum(axis=1).mean()),
            "gower": float(np.where(changed, np.where(number, far, 1.0), 0.0).mean()),
        }

    def options(self, asked: str) -> dict[str, Any]:
        kind, _, number = asked.partition(" ")
        if kind == "p":
            return {"target": tdce.AtLeast(self.data.favourable, float(number)), "safety": 0}
        if kind == "safety":
            return {"safety": float(number)}
        if kind == "robust":
            return {"robust": self.explainer.retrain(self.learned, models=ROBUST_MODELS), "safety": 0}
        return {}


def as_floats(numbers: pd.DataFrame) -> pd.DataFrame:
    return numbers.astype(float)


def boosted(data: tdce.data.Dataset, table: pd.DataFrame, seed: int) -> Any:
    words = [f.name for f in data.schema if isinstance(f, Categorical)]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encode = make_column_transformer((codes, words), remainder=FunctionTransformer(as_floats))
    model = HistGradientBoostingClassifier(categorical_features=range(len(words)), random_state=seed)
    return make_pipeline(encode, model).fit(table[list(data.schema.names)], table[data.label])


def markdown(rows: pd.DataFrame) -> str:
    lines = [
        f"| data | model | asked | seeds | {' | '.join(name for name, _ in METRICS.values())} |",
        "|---" * (4 + len(METRICS)) + "|",
    ]
    for (data, model, asked), part in rows.groupby(["data", "model", "asked"], sort=False):
        mean = part.groupby("metric")["value"].mean()
        cells = [f"{mean[m]:.{digits}f}" if m in mean.dropna() else "" for m, (_, digits) in METRICS.items()]
        lines.append(f"| {data} | {model} | {asked} | {part['seed'].nunique()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def calibration_markdown(rows: pd.DataFrame) -> str:
    """The forecasts beside what was held: with seeds that they were fitted to, and with others."""
    lines = ["| forecast | " + " | ".join(f"{name}: answers | forecast | held" for name in ("fitted", "new")) + " |"]
    lines.append("|---" * 7 + "|")
    for low, part in rows.groupby("bin"):
        cells = []
        for fitted in (True, False):
            some = part[part["seed"].isin(FITTED_SEEDS) == fitted]
            means = (np.average(some[name], weights=some["answers"]) for name in ("forecast", "held"))
            cells += [str(some["answers"].sum()), *(f"{mean:.2f}" for mean in means)] if len(some) else ["0", "", ""]
        lines.append(f"| {low:g} to {BINS[BINS.index(low) + 1]:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def means(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Of each line (data and model): a row for each way of asking, a column for each metric."""
    lines = rows.groupby(["data", "model"], sort=False)
    return {
        f"{data} | {model}": part.pivot_table(index="asked", columns="metric", values="value")
        for (data, model), part in lines
    }


def at_held(ways: pd.DataFrame, held: float, metric: str) -> float:
    """What these ways of asking cost for as much `held`, on the line between two of them or its continuation."""
    ways = ways.sort_values("held")
    high = int(np.clip(np.searchsorted(ways["held"], held), 1, len(ways) - 1))
    (h0, c0), (h1, c1) = ways.iloc[[high - 1, high]][["held", metric]].to_numpy()
    return float(c0 + (held - h0) / max(h1 - h0, 1e-9) * (c1 - c0))


def equal_markdown(rows: pd.DataFrame) -> str:
    """The default beside a constant margin that holds as much, and `robust` beside a wanted safety that does."""
    head = ["data", "model", "held", "Gower", "by a constant margin", "features", "by a constant margin"]
    head += ["held by `robust`", "Gower", "by safety", "features", "by safety"]
    lines, found = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"], {}
    for line, mean in means(rows).items():
        found[line] = []
        for asked, others in (("default", MARGINS), ("robust", WANTED)):
            ours = mean.loc[asked]
            found[line].append(ours["held"])
            for metric in ("gower", "sparsity"):
                found[line] += [ours[metric], at_held(mean.loc[[*others]], ours["held"], metric)]
    found["all | "] = np.mean([*found.values()], axis=0).tolist()
    for line, figures in found.items():
        cells = (f"{figure:.{digits}f}" for figure, digits in zip(figures, (2, 3, 3, 2, 2) * 2, strict=True))
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(lines)


def prices(mean: pd.DataFrame) -> list[float]:
    """What a tenth of `held` costs in Gower distance, from each wanted safety to the next."""
    steps = mean.loc[[*WANTED], ["held", "gower"]].diff().iloc[1:]
    return (0.1 * steps["gower"] / steps["held"].clip(lower=1e-9)).tolist()


def before_knee(price: list[float]) -> str:
    """The last wanted safety before a step whose price is a multiple of that of the step before."""
    for i in range(1, len(price)):
        if price[i] > KNEE * price[i - 1]:
            return WANTED[i]
    return WANTED[-1]


def price_markdown(rows: pd.DataFrame) -> str:
    """The price of every step on every line, and of the lines together, by which the default is chosen."""
    head = [
        "data",
        "model",
        *(f"to {asked}" for asked in WANTED[1:]),
        "before the knee",
        "Gower, times that of any yes",
    ]
    lines, each = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"], means(rows)
    for line, mean in (each | {"all | ": sum(each.values()) / len(each)}).items():
        gower = mean["gower"]
        cells = [*(f"{price:.3f}" for price in prices(mean)), before_knee(prices(mean))]
        lines.append(f"| {line} | {' | '.join(cells)} | {gower['default'] / gower['safety 0']:.2f} |")
    return "\n".join(lines)


def times_markdown(times: pd.DataFrame) -> str:
    lines = ["| data | own model | boosting |", "|---|---|---|"]
    for data, part in times.groupby("data", sort=False):
        ratio = part.set_index("model")["ratio"]
        lines.append(f"| {data} | {ratio['own']:.2f} | {ratio['boosted']:.2f} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    rows, bins, times = (pd.read_csv(results.with_name(f"{name}.csv")) for name in FILES)
    made = {"safety": markdown(rows), "equal": equal_markdown(rows), "price": price_markdown(rows)}
    put(page, **made, calibration=calibration_markdown(bins), times=times_markdown(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult,lcd,law,gmc")
    parser.add_argument("--models", default="own,boosted")
    parser.add_argument("--ask", default=",".join(ASKED))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results/safety.csv"))
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    if given.docs:
        write_docs(given.out, Path("docs/safety.md"))
        return
    torch.set_num_threads(1)
    if given.times:
        cases = [(data, model) for data in given.data.split(",") for model in given.models.split(",")]
        times = [(*each, Case(*each, 0, given.rows, given.cache).time_ratio()) for each in cases]
        frame = pd.DataFrame(times, columns=["data", "model", "ratio"]).round(3)
        frame.to_csv(given.out.with_name("safety_times.csv"), index=False)
        print(frame.to_string(index=False))
        return
    rows = pd.read_csv(given.out) if given.out.exists() else pd.DataFrame(columns=COLUMNS)
    bins_file = given.out.with_name("calibration.csv")
    bins = pd.read_csv(bins_file) if bins_file.exists() else pd.DataFrame(columns=CALIBRATION)
    for seed in range(given.seeds):
        for data in given.data.split(","):
            for model in given.models.split(","):
                if ((rows["data"] == data) & (rows["model"] == model) & (rows["seed"] == seed)).any():
                    continue
                case = Case(data, model, seed, given.rows, given.cache)
                for asked, values in case.ask(given.ask.split(",")).items():
                    new = [(data, model, asked, seed, metric, values[metric]) for metric in METRICS]
                    rows = pd.concat([rows, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True)
                    shown = (f"{name} {values[m]:.{digits}f}" for m, (name, digits) in METRICS.items())
                    print(data, model, asked, seed, *shown, sep=" | ", flush=True)
                new_bins = pd.DataFrame([(data, model, seed, *each) for each in case.calibration], columns=CALIBRATION)
                bins = pd.concat([bins, new_bins], ignore_index=True)
                bins.to_csv(bins_file, index=False)
                rows.to_csv(given.out, index=False)
    print(markdown(rows))


if __name__ == "__main__":
    main()
