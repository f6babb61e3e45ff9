"""Speed: processor time of `search`, an earlier version, `nice`, and the packages of NICE and DiCE; quality of answers.

    TDCE_DATA=... python benchmarks/speed.py --before TREE [--cache FOLDER] [--before-cache FOLDER]
                                             [--packages FOLDER] [--data german,...] [--models own,boosted]
                                             [--seeds 3] [--rows 1,100,1000]
    python benchmarks/speed.py --docs          writes the tables of docs/speed.md from the results

TREE is a checkout of the earlier version; the caches hold the fits of benchmarks/safety.py, of either version. Both
versions answer the same refused rows (repeated, where more are needed) in separate processes, with one thread, in
turns; the shortest of the turns counts. The packages run in environments of their own and explain one row after
another, so they are asked once, for those of up to 100 rows that they accept; the model's time is part of theirs.
`objective` is the mean objective of the answers with noise that no search saw; `search` and `before` are evaluated by
the same code. `products`: the matrix products that one `explain` needs, computed again and nothing else. `parts`: where
the time goes, by a profile. Results are written case by case; those in the file are not measured again.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pickle
import pstats
import subprocess
import sys
import tempfile
import time
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from packages import Question, answer
from safety import Case
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tdce._core import Noise, same
from tdce.methods import Explanation
from tdce.methods.objective import Objective, PricedRows, feature_costs
from tdce.methods.question import DEFAULT_SAFETY
from tdce.schema import FeasibleSet, Numeric

COLUMNS = ["table", "data", "model", "seed", "rows", "what", "value"]
DATA = "german,adult,lcd,gmc,law"
TURNS = 3
NOISES = 3
PEOPLE = 100  # at most
PACKAGES = {"NICE's package": "nice, sparsity", "DiCE's package": "dice, random"}
PARTS = {
    "best exemplars": ("exemplars.py", "best"),
    "energy": ("objective.py", "energy"),
    "plausibility": ("driver.py", "_plausibility"),
    "grid and feasible set": ("feasible.py", "snap"),
    "decisions": ("oracle.py", "score"),
    "second opinion": ("second_opinion.py", "safety"),
}  # by title: the file and the function
FACTORS = 8  # pairs of matrices of each shape
QUALITY = {"objective": 3, "features": 2, "gower": 3, "held_out_distance": 2, "plausibility": 2, "safety": 3}
Shape = tuple[int, int, int, torch.dtype]


class Worker:
    """A process that answers with one version."""

    def __init__(self, tree: Path, data: str, model: str, seed: int, cache: Path) -> None:
        script = Path(__file__).parent / "workers" / "time_answers.py"
        words = [sys.executable, script, tree, data, model, seed, cache]
        self.process = subprocess.Popen(
            list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )  # fmt: skip

    def ask(self, command: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(command, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip()


class Products(TorchDispatchMode):
    """Records the shape of every matrix product, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[Shape] = []
        self.factors: dict[Shape, list[tuple[Tensor, Tensor]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            a, b = args[-2:]
            self.shapes.append((a.shape[0], a.shape[1], b.shape[1], a.dtype))
        return func(*args, **(kwargs or {}))

    def replay(self) -> float:
        """Processor seconds of the same products in the same order and nothing else. Each shape has several pairs of
        factors, used in turn: in a network, too, each layer has weights of its own."""
        if not self.factors:
            for n, k, m, dtype in set(self.shapes):
                pairs = [(torch.randn(n, k, dtype=dtype), torch.randn(k, m, dtype=dtype)) for _ in range(FACTORS)]
                self.factors[n, k, m, dtype] = pairs
        began = time.process_time()
        for i, shape in enumerate(self.shapes):
            torch.mm(*self.factors[shape][i % FACTORS])
        return time.process_time() - began


def times(workers: dict[str, Worker], rows: list[int]) -> list[tuple[int, str, float]]:
    """Processor seconds per 100 rows of each version, and of `nice`."""
    found = []
    for n in rows:
        each: dict[str, list[float]] = {"search": [], "before": [], "nice": []}
        for _ in range(1 + TURNS):
            for name, seconds in each.items():
                method = "nice" if name == "nice" else "search"
                worker = workers["before" if name == "before" else "search"]
                seconds.append(float(worker.ask(f"time {method} {n}")))
        found += [(n, name, 100 * min(seconds[1:]) / n) for name, seconds in each.items()]  # the first prepares
    return found


def package_times(case: Case, cache: Path) -> list[tuple[int, str, float]]:
    """Processor seconds of the packages per 100 rows, for the rows that they accept: with no missing value and no
    category that the training rows lack."""
    fitted = case.explainer.fitted
    feasible = FeasibleSet.of(fitted.encoder, case.queries)
    task, favourable = fitted.task(feasible.immutable), fitted.classes.index(case.data.favourable)
    schema, complete = fitted.encoder.schema, np.isfinite(fitted.raw).all(axis=1)
    train, label = fitted.raw[complete], fitted.y.numpy()[complete]
    numeric, immutable = np.array([[isinstance(f, Numeric), f.immutable] for f in schema]).T
    known = [np.isin(own, seen) | n for own, seen, n in zip(feasible.own.T, train.T, numeric, strict=True)]
    people = feasible.own[np.isfinite(feasible.own).all(axis=1) & np.all(known, axis=0)]
    asked, found = Question(train, label, people, numeric, immutable, favourable), [(PEOPLE, "accepted", len(people))]
    for name, title in PACKAGES.items():
        spent = answer(title, asked, 1, lambda raw: task.oracle.score(raw).numpy()[:, : len(fitted.classes)], cache)
        found.append((PEOPLE, name, 100 * spent.answering.seconds / len(people)))
    return found


def quality(case: Case, workers: dict[str, Worker]) -> list[tuple[int, str, float]]:
    """Of the answers of either version."""
    feasible, fitted = FeasibleSet.of(case.explainer.fitted.encoder, case.queries), case.explainer.fitted
    task, goals = fitted.task(feasible.immutable), fitted.resolve_goals(None, None, feasible.own)
    x, rows = feasible.x, torch.arange(len(feasible.x))
    priced = PricedRows(x, feature_costs(task.encoder, task.encoder.schema.costs))
    y, found = goals.target_class(task.oracle.score(feasible.own)), []
    for name, worker in workers.items():
        with tempfile.NamedTemporaryFile() as file:
            worker.ask(f"answer {file.name}")
            raw, status, safety, plausibility = pickle.loads(Path(file.name).read_bytes())
        x_cf, valid = task.encoder.embed(raw).float(), status == "valid"
        lacking = torch.from_numpy(np.nan_to_num(DEFAULT_SAFETY - safety).clip(0)).float()
        total = []
        for i in range(NOISES):
            judge = Objective(task, priced, Noise(x, 1_000 + i, 0), y)
            total.append(judge.total(judge.cost(x_cf, rows), judge.energy(x_cf, rows), 0.75, lacking)[valid].mean())
        none = np.full(status.shape, np.nan)
        explanation = Explanation(
            feasible.own, raw[:, None], status[:, None], none, none[:, None], plausibility[:, None],
            np.full((len(raw), 1), None),
        )  # fmt: skip
        values = case.reference.measure(feasible, explanation, feasible.own, explanation)
        values |= {
            "objective": float(torch.stack(total).mean()), "features": float((~same(raw, feasible.own)).sum(1).mean()),
            "plausibility": float(plausibility[valid].mean()), "safety": float(safety[valid].mean()),
        }  # fmt: skip
        found += [(len(raw), f"{name} {metric}", values[metric]) for metric in QUALITY]
        found.append((len(raw), f"{name} validity", float(valid.mean())))
    return found


def inside(case: Case, rows: int) -> list[tuple[int, str, float]]:
    """Products and parts of one `explain` by the classifier that `fit` trains."""
    frame, explain = pd.concat([case.queries] * (-(-rows // len(case.queries)))).head(rows), case.explainer.explain
    explain(frame)
    began = time.process_time()
    explain(frame)
    seconds = time.process_time() - began
    with Products() as products:
        explain(frame)
    bare = min(products.replay() for _ in range(TURNS))
    profile = cProfile.Profile()
    profile.runcall(explain, frame)
    stats: Any = pstats.Stats(profile)
    found = [(rows, "seconds per 100", 100 * seconds / rows), (rows, "products per 100", 100 * bare / rows)]
    for part, (file, function) in PARTS.items():
        spent = [v[3] for (path, _, name), v in stats.stats.items() if path.endswith(file) and name == function]
        found.append((rows, part, sum(spent) / stats.total_tt))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="a checkout of the earlier version")
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--before-cache", type=Path, default=Path("results/fitted-before"))
    parser.add_argument("--packages", type=Path, default=Path("results/fitted/peers"))
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--models", default="own,boosted")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", default="1,100,1000")
    parser.add_argument("--out", type=Path, default=Path("results/speed.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out, Path("docs/speed.md"))
        return
    torch.set_num_threads(1)
    tree, sizes = Path(__file__).parents[1], [int(n) for n in asked.rows.split(",")]
    rows = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    for seed in range(asked.seeds):
        for data in asked.data.split(","):
            for model in asked.models.split(","):
                if ((rows["data"] == data) & (rows["model"] == model) & (rows["seed"] == seed)).any():
                    continue
                case = Case(data, model, seed, PEOPLE, asked.cache)
                workers = {"search": Worker(tree, data, model, seed, asked.cache)}
                workers["before"] = Worker(asked.before, data, model, seed, asked.before_cache)
                tables = {"quality": quality(case, workers)}
                if seed == 0:
                    tables["times"] = times(workers, sizes) + package_times(case, asked.packages)
                    tables |= {"inside": inside(case, sizes[-1])} if model == "own" else {}
                new = [(table, data, model, seed, *each) for table, found in tables.items() for each in found]
                rows = pd.concat([rows, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True)
                rows.to_csv(asked.out, index=False)
                for worker in workers.values():
                    worker.process.terminate()
    print(times_table(rows), quality_table(rows), inside_table(rows), sep="\n\n")


def times_table(rows: pd.DataFrame) -> str:
    part = rows[rows["table"] == "times"]
    wide = part.pivot_table(index=["data", "model", "rows"], columns="what", values="value", sort=False)
    names = ["before", "search", "times as fast", "nice", *PACKAGES]
    wide["times as fast"] = wide["before"] / wide["search"]
    lines = ["| data | model | rows | " + " | ".join(names) + " |", "|---" * (3 + len(names)) + "|"]
    for (data, model, n), each in wide.iterrows():
        digits = {name: 1 if name == "times as fast" else 3 for name in names}
        cells = ["" if isnan(each.get(name, nan)) else f"{each[name]:.{d}f}" for name, d in digits.items()]
        lines.append(f"| {data} | {model} | {n:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def quality_table(rows: pd.DataFrame) -> str:
    """Mean and standard deviation over seeds."""
    part = rows[rows["table"] == "quality"]
    lines = ["| data | model | version | seeds | " + " | ".join(QUALITY) + " |", "|---" * (4 + len(QUALITY)) + "|"]
    for (data, model), each in part.groupby(["data", "model"], sort=False):
        for version in ("before", "search"):
            values = each[each["what"].str.startswith(f"{version} ")].groupby("what")["value"]
            mean, deviation, seeds = values.mean(), values.std(), each["seed"].nunique()
            pairs = [(mean[f"{version} {m}"], deviation[f"{version} {m}"], d) for m, d in QUALITY.items()]
            cells = [f"{value:.{d}f}" + (f" ± {spread:.{d}f}" if seeds > 1 else "") for value, spread, d in pairs]
            lines.append(f"| {data} | {model} | {version} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def inside_table(rows: pd.DataFrame) -> str:
    part = rows[rows["table"] == "inside"]
    wide = part.pivot_table(index=["data", "rows"], columns="what", values="value", sort=False)
    names = ["seconds per 100", "products per 100", *PARTS]
    lines = ["| data | rows | " + " | ".join(names) + " |", "|---" * (2 + len(names)) + "|"]
    for (data, n), each in wide.iterrows():
        cells = [f"{each[name]:.3f}" for name in names[:2]] + [f"{each[name]:.0%}" for name in names[2:]]
        lines.append(f"| {data} | {n:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    rows = pd.read_csv(results)
    put(page, times=times_table(rows), quality=quality_table(rows), inside=inside_table(rows))


if __name__ == "__main__":
    main()
