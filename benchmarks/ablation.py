"""Ablation of the default method: the quality of its answers without each of its parts, beside a simple baseline.

    python benchmarks/ablation.py [--data german,adult,…] [--seeds 3] [--rows 150] [--cache FOLDER] [--out FILE]
    python benchmarks/ablation.py --docs          writes the tables of docs/method.md from the results

Refused test rows, nothing masked, default settings. Results are written as they are measured; those in the file are not
measured again. The method does not optimise the distance to held-out rows, the two-sample test or the coherence.
`excess` is the instability less that of the unchanged rows; `implausible` the share of answers with a plausibility
below 0.02; `cost` the distance that the method minimises.
`random row`: the denoiser returns a random synthetic row whatever its input; its errors are larger, so more features
change. `random row, as few changes`: the closeness is raised until no more features change than with the real denoiser.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import torch
from docs_tables import put
from torch import Tensor

from tdce import metrics
from tdce.diffusion import TabularDiffusion, gaussian
from tdce.methods import METHODS, DiffusionSearch, Method, Task
from tdce_reproduction.benchmark.cell import Bench

SHOWN = (
    "validity", "sparsity", "gower", "cost", "held_out_distance", "two_sample", "coherence", "plausibility",
    "implausible", "safety", "excess",
)  # fmt: skip
COMPARED = ("sparsity", "gower", "held_out_distance", "two_sample", "coherence", "implausible", "excess")
IMPLAUSIBLE = 0.02
COLUMNS = ["data", "variant", "seed", "metric", "value"]
CLOSER = (0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0)


@dataclass(frozen=True)
class RandomDenoiser:
    """In place of a diffusion model: its estimate of the clean row is a random synthetic row."""

    real: TabularDiffusion
    synthetic: Tensor

    def __getattr__(self, name: str):
        return getattr(self.real, name)

    def errors(self, x: Tensor, t: int, normal: Tensor, gumbel: Tensor, y: Tensor | None = None) -> Tensor:
        space, a = self.real.space, self.real.schedule.alpha_bar[t]
        which = (normal.abs().sum(dim=1) * 1e4 + gumbel.abs().sum(dim=1) * 1e4).long() % len(self.synthetic)
        (num, cat), (other, other_cat) = space.split(x), space.split(self.synthetic[which])
        eps = gaussian.implied_noise(gaussian.add_noise(num, a, normal), other, a)
        surprise = -(cat * (0.99 * other_cat + 0.01 * space.uniform).log())
        return space.sum_by_feature(space.join((eps - normal).square(), surprise))

    def errors_at(self, x, times, noise, y, rows):
        return [self.errors(x, t, *draw, y) for t, draw in zip(times, noise, strict=True)]


class NoClass(RandomDenoiser):
    """The diffusion model without its class condition."""

    def errors(self, x: Tensor, t: int, normal: Tensor, gumbel: Tensor, y: Tensor | None = None) -> Tensor:
        return self.real.errors(x, t, normal, gumbel)


class NoSingle(DiffusionSearch):
    """Without trying single changes."""

    def single(self, query, candidates, rows, ranks):  # type: ignore[no-untyped-def]
        return
        yield


class NoParts(DiffusionSearch):
    """Without parts of exemplars."""

    def parts(self, query, candidates, rows, ranks):  # type: ignore[no-untyped-def]
        return
        yield


class NoWhole(DiffusionSearch):
    """Without whole exemplars, except where nothing else succeeds."""

    def whole_exemplars(self, query, candidates, rows, ranks, closeness=0.75):  # type: ignore[no-untyped-def]
        if ranks.stop > self.exemplars:
            yield from super().whole_exemplars(query, candidates, rows, ranks, closeness)


def no_exchange(task, query, best):  # type: ignore[no-untyped-def]
    return best
    yield


PATCHES = {  # what is put in the place of a part
    "no exchange": {"tdce.methods.search.exchange": no_exchange},
    "energy alike": {"tdce.methods.objective.ATYPICAL_WEIGHT": 0.0},
    "no safety": {"tdce.methods.driver.DEFAULT_SAFETY": 0.0},
    "no ends of numbers": {"tdce.methods.search.MAX_SWEPT_NUMBERS": 0},
}


def variants(task: Task) -> dict[str, tuple[Method, Task]]:
    random, no_class = (kind(task.diffusion, task.synthetic) for kind in (RandomDenoiser, NoClass))
    alone, known = replace(task, precedents=None), task.precedents
    assert known is not None
    some = known._replace(**{each: getattr(known, each)[: len(known.x) // 4] for each in ("x", "x_cf", "energy")})
    unrated = replace(task, energy_quantiles=torch.zeros(0))  # no plausibility, which would need the real model
    return {
        "full": (DiffusionSearch(), task),
        "energy weight 0": (DiffusionSearch(closeness=1.0), task),
        "random row": (DiffusionSearch(), replace(unrated, diffusion=random)),
        "random row, as few changes": (DiffusionSearch(), replace(unrated, diffusion=random)),
        "no class": (DiffusionSearch(), replace(unrated, diffusion=no_class)),
        "energy alike": (DiffusionSearch(), task),
        "no safety": (DiffusionSearch(), task),
        "no precedents": (DiffusionSearch(), alone),
        "no precedents, no single changes": (NoSingle(), alone),
        "no precedents, no parts": (NoParts(), alone),
        "a quarter of the precedents": (DiffusionSearch(), replace(task, precedents=some)),
        "one line refined": (DiffusionSearch(beam=1), task),
        "no ends of numbers": (DiffusionSearch(), task),
        "no exchange": (DiffusionSearch(), task),
        "real rows": (DiffusionSearch(), replace(task, synthetic=task.x)),
        "no whole exemplars": (NoWhole(), task),
        "nice": (METHODS["nice"](), task),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult,lcd,gmc,law")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results/ablation.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out, Path("docs/method.md"))
        return
    torch.set_num_threads(1)
    rows = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    for data in asked.data.split(","):
        for seed in range(asked.seeds):
            bench = Bench(data, seed, asked.rows, asked.cache)
            for name, (method, task) in variants(bench.task("no")).items():
                have = rows[(rows["data"] == data) & (rows["variant"] == name) & (rows["seed"] == seed)]
                if len(have):
                    continue
                with ExitStack() as patched:
                    for what, other in PATCHES.get(name, {}).items():
                        patched.enter_context(patch(what, other))
                    values = measure(bench, method.fit(task))
                if name.endswith("as few changes"):
                    full = rows[(rows["data"] == data) & (rows["variant"] == "full") & (rows["seed"] == seed)]
                    features = full.loc[full["metric"] == "sparsity", "value"].item()
                    for closeness in CLOSER:
                        if values["sparsity"] > features:
                            values = measure(bench, DiffusionSearch(closeness=closeness).fit(task))
                new = [(data, name, seed, metric, values[metric]) for metric in SHOWN if metric in values]
                rows = pd.concat([rows, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True)
                rows.to_csv(asked.out, index=False)
    print(markdown(rows))
    print()
    print(differences(rows))


def measure(bench: Bench, method: Method) -> dict[str, float]:
    explanation, feasible = bench.explanation(method, "no", bench.queries)
    near, near_feasible = bench.explanation(method, "no", bench.neighbours)
    values = bench.reference.measure(feasible, explanation, near_feasible.own, near)
    valid = explanation.status[:, 0] == "valid"
    x, x_near = (bench.reference.standardised(each.own[valid]) for each in (feasible, near_feasible))
    rated = {"implausible": float((explanation.plausibility[valid, 0] < IMPLAUSIBLE).mean())}
    return (
        values
        | (rated if "plausibility" in values else {})
        | {
            "excess": values["instability"] - metrics.instability(x, x_near, x, x_near),
            "cost": float(explanation.distance[valid, 0].mean()),
            "safety": float(explanation.safety[valid, 0].mean()),
        }
    )


def markdown(rows: pd.DataFrame) -> str:
    """Mean and standard deviation over seeds."""
    lines = ["| data | variant | seeds | " + " | ".join(SHOWN) + " |", "|---" * (3 + len(SHOWN)) + "|"]
    for (data, variant), part in rows.groupby(["data", "variant"], sort=False):
        values = part.groupby("metric")["value"]
        seeds, mean, deviation = part["seed"].nunique(), values.mean(), values.std()
        cells = [f"{mean[m]:.3f}" + (f" ± {deviation[m]:.3f}" if seeds > 1 else "") if m in mean else "" for m in SHOWN]
        lines.append(f"| {data} | {variant} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def differences(rows: pd.DataFrame) -> str:
    """Each variant minus the full method, mean and standard deviation over seeds; this removes what differs between the
    seeds for all variants."""
    wide = rows.pivot(index=["data", "seed", "metric"], columns="variant", values="value")
    apart = wide.drop(columns="full").sub(wide["full"], axis=0).groupby(["data", "metric"], sort=False)
    means, deviations = (each.to_dict("index") for each in (apart.mean(), apart.std()))
    lines = ["| data | variant minus full | " + " | ".join(COMPARED) + " |", "|---" * (2 + len(COMPARED)) + "|"]
    for data in rows["data"].unique():
        for variant in (v for v in rows["variant"].unique() if v != "full"):
            pairs = [tuple(each.get((data, m), {}).get(variant) for each in (means, deviations)) for m in COMPARED]
            cells = [
                "" if a is None or isnan(a) else f"{a:+.3f}" if isnan(b) else f"{a:+.3f} ± {b:.3f}" for a, b in pairs
            ]
            lines.append(f"| {data} | {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    rows = pd.read_csv(results)
    whole = rows[rows["variant"].isin(("full", "no safety", "nice"))]
    put(page, ablation=markdown(whole), parts=differences(rows))


if __name__ == "__main__":
    main()
