"""Do answers stay valid when the model is retrained, and what does `robust` cost?

    TDCE_DATA=... python benchmarks/robustness.py [--data german,adult] [--models own,boosted] [--seeds 3] [--rows 100]
                                                  [--methods ...] [--cache FOLDER] [--out results/robustness.csv]
    python benchmarks/robustness.py --docs          writes the table of docs/robustness.md from the results

Refused test rows, each data set's own schema, default settings. `own` is the classifier that `fit` trains, `boosted`
histogram gradient boosting with its own encoder. `held`: the share of valid answers that retrained models accept, each
trained on a bootstrap sample from another start; the mean over 10 models that no method has queried. `search, robust`:
`explain(..., robust=explainer.retrain(table, 10))`. Features changed, Gower's distance, the distance to held-out rows
and the plausibility show the price. Results are written as they are measured; those in the file are not measured
again. The printed table shows the whole file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import torch
from docs_tables import put
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import tdce
from tdce.explainer import MetricReference
from tdce.explainer.evaluation import UNSEEN_SEED
from tdce.schema import Categorical, FeasibleSet

COLUMNS = ["data", "model", "method", "seed", "metric", "value"]
OWN = ("search", "search, robust", "nice", "wachter", "cchvae", "revise", "clue", "face", "counternet")
ANY = ("search", "search, robust", "nice", "cchvae", "face")  # those that need no gradients
METRICS = {  # the title of each, and its decimals
    "validity": ("validity", 2), "held": ("held", 2), "sparsity": ("features", 2), "gower": ("Gower", 3),
    "held_out_distance": ("distance to held-out rows", 2), "plausibility": ("plausibility", 2),
    "seconds": ("seconds", 1),
}  # fmt: skip
MODELS = 10


class Case:
    """One table, a model of it, and the rows to explain."""

    def __init__(self, name: str, model: str, seed: int, rows: int, cache: Path) -> None:
        data = tdce.load(name, seed=seed)
        self.name, self.model, self.seed, self.data = name, model, seed, data
        self.table = data.part("train")
        decides = None if model == "own" else boosted(data, self.table, seed)
        path = cache / f"robust, {name}, {model}, {seed}.tdce"
        if path.exists():
            self.explainer = tdce.Explainer.load(path, progress="silent", model=decides)
        else:
            self.explainer = tdce.Explainer(model=decides, seed=seed, keep_rows=True, progress="silent")
            self.explainer.fit(self.table, label=data.label, favourable=data.favourable, schema=data.schema)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.explainer.save(path)
        unseen = data.part("test")
        refused = (self.explainer.predict(unseen) != data.favourable).to_numpy()
        self.queries = unseen[refused].head(rows)
        held = pd.concat([data.part("validation"), unseen]).drop(index=self.queries.index)
        fitted = self.explainer.fitted
        self.reference = MetricReference.fit(
            fitted.encoder, fitted.raw, (fitted.y == fitted.classes.index(data.favourable)).numpy(), seed,
            fitted.encoder.read(held), (held[data.label] == data.favourable).to_numpy(dtype=bool),
        )  # fmt: skip
        self.ensemble = self.explainer.retrain(self.table, models=MODELS)
        self.unseen = self.explainer.retrain(self.table, models=MODELS, seed=UNSEEN_SEED)

    def measured(self, method: str) -> dict[str, float]:
        explainer = self.explainer
        explainer.method = method.partition(",")[0]
        began = time.process_time()
        answer = explainer.explain(self.queries, robust=self.ensemble if method.endswith("robust") else None)
        seconds = 100 * (time.process_time() - began) / len(self.queries)
        found = answer.explanation
        feasible = FeasibleSet.of(explainer.fitted.encoder, self.queries)
        values = self.reference.measure(feasible, found, feasible.own, found)
        valid = torch.from_numpy(found.status[:, 0] == "valid")
        accepting = self.unseen.votes(found.raw[valid.numpy(), 0], answer.goals.take(valid))
        held = float(accepting.double().mean()) / MODELS if valid.any() else float("nan")
        return values | {"held": held, "seconds": seconds}


def boosted(data: tdce.data.Dataset, table: pd.DataFrame, seed: int) -> object:
    words = [f.name for f in data.schema if isinstance(f, Categorical)]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encode = make_column_transformer((codes, words), remainder="passthrough")
    model = HistGradientBoostingClassifier(categorical_features=range(len(words)), random_state=seed)
    return make_pipeline(encode, model).fit(table[list(data.schema.names)], table[data.label])


def cases(asked: argparse.Namespace, rows: pd.DataFrame) -> Iterator[tuple[str, str, str, int, dict[str, float]]]:
    for seed in range(asked.seeds):
        for data in asked.data.split(","):
            for model in asked.models.split(","):
                methods = asked.methods.split(";") if asked.methods else OWN if model == "own" else ANY
                same = (rows["data"] == data) & (rows["model"] == model) & (rows["seed"] == seed)
                left = [method for method in methods if method not in set(rows.loc[same, "method"])]
                case = Case(data, model, seed, asked.rows, asked.cache) if left else None
                for method in left:
                    assert case is not None
                    yield data, model, method, seed, case.measured(method)


def markdown(rows: pd.DataFrame) -> str:
    names = " | ".join(name for name, _ in METRICS.values())
    lines = [f"| data | model | method | seeds | {names} |", "|---" * (4 + len(METRICS)) + "|"]
    order = {"data": ("german", "adult"), "model": ("own", "boosted"), "method": OWN}
    ranked = rows.sort_values(list(order), key=lambda column: column.map(order[column.name].index))
    for (data, model, method), part in ranked.groupby(list(order), sort=False):
        values = part.groupby("metric")["value"]
        mean, deviation, seeds = values.mean(), values.std(), part["seed"].nunique()
        cells = [
            f"{mean[m]:.{digits}f}" + (f" ± {deviation[m]:.{digits}f}" if seeds > 1 else "")
            for m, (_, digits) in METRICS.items()
        ]
        lines.append(f"| {data} | {model} | {method} | {seeds} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, robustness=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult")
    parser.add_argument("--models", default="own,boosted")
    parser.add_argument("--methods", default="", help="with ; between them")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results/robustness.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out, Path("docs/robustness.md"))
        return
    torch.set_num_threads(1)
    rows = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    for data, model, method, seed, values in cases(asked, rows):
        new = [(data, model, method, seed, metric, values[metric]) for metric in METRICS if metric in values]
        rows = pd.concat([rows, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True)
        rows.to_csv(asked.out, index=False)
    print(markdown(rows))


if __name__ == "__main__":
    main()
