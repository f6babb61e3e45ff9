"""Ablation of the default method: the quality of its answers without each of its parts, beside a simple baseline.

    python benchmarks/ablation.py [--data german,adult,…] [--seeds 3] [--rows 300] [--cache FOLDER] [--out FILE]

Refused test rows, nothing masked, default settings. Results are written as they are measured; those in the file are not
measured again. The method does not optimise the distance to held-out rows, the two-sample test or the coherence.
`random row`: the denoiser returns a random synthetic row whatever its input; its errors are larger, so more features
change. `random row, as few changes`: the closeness is raised until no more features change than with the real denoiser.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from tdce.diffusion import TabularDiffusion, gaussian
from tdce.methods import METHODS, DiffusionSearch, Method, Task
from tdce_reproduction.benchmark.cell import Bench

SHOWN = ("validity", "sparsity", "gower", "held_out_distance", "two_sample", "coherence", "im1_median")
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
    """Without trying single changes first."""

    def single(self, query, candidates, margin, ranks):  # type: ignore[no-untyped-def]
        return
        yield


class NoParts(DiffusionSearch):
    """Without parts of exemplars."""

    def parts(self, query, candidates, margin, ranks):  # type: ignore[no-untyped-def]
        return
        yield


class NoWhole(DiffusionSearch):
    """Without whole exemplars, except where nothing else succeeds."""

    def whole_exemplars(self, query, candidates, rows, ranks):  # type: ignore[no-untyped-def]
        if ranks.stop != self.exemplars:
            yield from super().whole_exemplars(query, candidates, rows, ranks)


def variants(task: Task) -> dict[str, tuple[Method, Task]]:
    task = replace(task, energy_quantiles=torch.zeros(0))  # no plausibility, which would need the real model
    random, no_class = (kind(task.diffusion, task.synthetic) for kind in (RandomDenoiser, NoClass))
    return {
        "full": (DiffusionSearch(), task),
        "energy weight 0": (DiffusionSearch(closeness=1.0), task),
        "random row": (DiffusionSearch(), replace(task, diffusion=random)),
        "random row, as few changes": (DiffusionSearch(), replace(task, diffusion=random)),
        "no class": (DiffusionSearch(), replace(task, diffusion=no_class)),
        "real rows": (DiffusionSearch(), replace(task, synthetic=task.x)),
        "no single changes": (NoSingle(), task),
        "no parts": (NoParts(), task),
        "no whole exemplars": (NoWhole(), task),
        "nice": (METHODS["nice"](), task),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult,lcd,gmc,law")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results/ablation.csv"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    for data in asked.data.split(","):
        for seed in range(asked.seeds):
            bench = Bench(data, seed, asked.rows, asked.cache)
            for name, (method, task) in variants(bench.task("no")).items():
                have = rows[(rows["data"] == data) & (rows["variant"] == name) & (rows["seed"] == seed)]
                if len(have):
                    continue
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
    """All metrics but the instability, which would need the answers of other rows."""
    explanation, feasible = bench.explanation(method, "no", bench.queries)
    return bench.reference.measure(feasible, explanation, feasible.own, explanation)


def markdown(rows: pd.DataFrame) -> str:
    """Mean and standard deviation over seeds."""
    lines = ["| data | variant | seeds | " + " | ".join(SHOWN) + " |", "|---" * (3 + len(SHOWN)) + "|"]
    for (data, variant), part in rows.groupby(["data", "variant"], sort=False):
        values = part.groupby("metric")["value"]
        seeds, mean, deviation = part["seed"].nunique(), values.mean(), values.std()
        cells = [f"{mean[m]:.3f}" + (f" ± {deviation[m]:.3f}" if seeds > 1 else "") for m in SHOWN]
        lines.append(f"| {data} | {variant} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def differences(rows: pd.DataFrame) -> str:
    """Each variant minus the full method, mean and standard deviation over seeds; this removes what differs between the
    seeds for all variants."""
    wide = rows.pivot(index=["data", "seed", "metric"], columns="variant", values="value")
    apart = wide.drop(columns="full").sub(wide["full"], axis=0).groupby(["data", "metric"], sort=False)
    mean, deviation = apart.mean(), apart.std()
    metrics = [m for m in SHOWN if m not in ("validity", "im1_median")]
    lines = ["| data | variant minus full | " + " | ".join(metrics) + " |", "|---" * (2 + len(metrics)) + "|"]
    for data in rows["data"].unique():
        for variant in (v for v in rows["variant"].unique() if v != "full"):
            cells = [f"{mean.loc[(data, m), variant]:+.3f} ± {deviation.loc[(data, m), variant]:.3f}" for m in metrics]
            lines.append(f"| {data} | {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
