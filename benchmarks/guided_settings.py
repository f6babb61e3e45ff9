"""Search the settings of Algorithm 1 on validation rows: one for all of the paper's data sets, and one for each.

    TDCE_DATA=... python benchmarks/guided_settings.py [--rows 120] [--cache results/fitted]
    python benchmarks/guided_settings.py --docs          writes the tables of docs/paper.md from the results

Up to 120 refused validation rows of each data set, nothing immutable, one walk each, nothing refined. The rule: the
lowest penalty wins, the mean over the data sets of

    (0.95 - validity) / 0.05 + log2(js / 2 js_paper) + log2(im2 / 2 im2_paper) + log2(diversity_paper / 2 diversity)

each taken as 0 where it is negative, plus a tenth of log2(instability / instability_paper) + log2(l2_per_feature /
l2_paper), whatever its sign. First some readings of g_cat are tried with two strengths of guidance, then every setting
in turn from the best so far, once with a lambda of 1 and once with others, with seed 0; a setting is dropped as soon as
the data sets measured so far rule it out. The best few are measured with three seeds. The guidance of the one with the
best mean is varied once more, and the best mean is chosen. For each data set the choice is among all settings measured
on it, and variations of the guidance of the best. Writes results/guided_settings.csv, a line at a time: a stopped run
resumes, and later runs add to the file.
"""

import argparse
from collections.abc import Iterable
from functools import cache
from itertools import product
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from docs_tables import put

from tdce.datasets import write_whole
from tdce.methods import INDEPENDENT, SHARED, Guided
from tdce_reproduction.benchmark.cell import Bench, Cell
from tdce_reproduction.benchmark.contests import TITLES
from tdce_reproduction.benchmark.settings import PAPER_DATA
from tdce_reproduction.benchmark.summary import paper_figures

METRICS = ("validity", "js", "im2", "diversity", "instability", "l2_per_feature", "im1", "l2")
HARDEST_FIRST = ("law", "gmc", "adult", "lcd")
SHOWN = ("validity", "js", "im2", "diversity", "instability", "l2_per_feature", "l2", "im1")
LINES = 20  # of the longer table
SEEDS, FINALISTS, OWN_FINALISTS = 3, 4, 2
LEAST_PENALTY = -0.2  # that a data set may add


class Setting(NamedTuple):
    """What is searched; the other settings are those of `Guided`. The defaults are where the search begins."""

    cat_gradient: str = "denoised"
    cat_scale: str = "norm"
    guidance: float = 1.0
    cat_guidance: float = 1.0
    start: float = 0.5
    tau: float | None = None  # at all times; None: as in training, 0.5 to 0.2
    proximity: float = 1.0
    sigma: str = "deviation"
    noise_length: float = INDEPENDENT

    def method(self, **others: Any) -> Guided:
        tau = None if self.tau is None else (self.tau, self.tau)
        return Guided(**(self._asdict() | {"tau": tau} | others))


CHOICES: dict[str, tuple[Any, ...]] = {
    "guidance": (1.0, 1.05, 1.1, 1.15, 1.2, 1.35, 2.0),
    "cat_guidance": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0),
    "start": (0.3, 0.4, 0.5, 0.6, 0.7, 1.0),
    "tau": (None, 0.1, 0.3, 1.0, 5.0),
    "noise_length": (INDEPENDENT, 2.0, SHARED),
    "proximity": (0.0, 0.5, 1.0),
    "sigma": ("deviation", "variance"),
    "cat_scale": ("lambda", "norm_pi", "norm"),
    "cat_gradient": ("through", "denoised", "noisy"),
}
OWN_CHOICES = ("guidance",)  # of a data set's own search, after all that was measured on it before
READINGS = [Setting(*each) for each in product(("through", "denoised"), CHOICES["cat_scale"], (1.15, 1.35))]


class Measurements:
    """What was measured so far, on disk."""

    def __init__(self, path: Path, rows: int, cache_folder: Path) -> None:
        self.path, self.rows, self.cache_folder = path, rows, cache_folder
        self.known: dict[tuple[Setting, str, int], dict[str, float]] = read(path)
        self.bench = cache(self._bench)

    def _bench(self, data: str, seed: int) -> Bench:
        """Without held-out rows: their metrics have no part in the rule."""
        bench = Bench(data, seed, self.rows, self.cache_folder, part="validation")
        vars(bench)["held_out"] = bench.held_out.head(0)
        return bench

    def of(self, setting: Setting, data: str, seed: int) -> dict[str, float]:
        key = setting, data, seed
        if key not in self.known:
            found = self.bench(data, seed).measure(Cell(data, "guided", "no", seed), setting.method()).metrics
            self.known[key] = {metric: round(found.get(metric, float("nan")), 5) for metric in (*METRICS, "rows")}
            lines = [each[0]._asdict() | dict(zip(("data", "seed"), each[1:], strict=True)) for each in self.known]
            table = pd.concat([pd.DataFrame(lines), pd.DataFrame(self.known.values())], axis=1)
            write_whole(self.path, table.to_csv(index=False).encode())
        return self.known[key]

    def penalty(self, setting: Setting, data: Iterable[str], seeds: int = 1) -> float:
        each = [penalty(self.of(setting, name, seed), name) for seed in range(seeds) for name in data]
        return sum(each) / len(each)

    def best(self, settings: Iterable[Setting], data: tuple[str, ...]) -> Setting:
        """With seed 0."""
        best, least = None, float("inf")
        for setting in settings:
            total = 0.0
            for i, name in enumerate(data):
                total += penalty(self.of(setting, name, 0), name)
                if total + LEAST_PENALTY * (len(data) - i - 1) >= least:
                    break
            else:
                best, least = setting, total
            print(*data[: i + 1], setting, f"{total:.3f}", flush=True)
        assert best is not None
        return best

    def descend(self, setting: Setting, data: tuple[str, ...], names: Iterable[str]) -> None:
        """The best value of each of these settings in turn."""
        for name in names:
            others = (setting._replace(**{name: v}) for v in CHOICES[name] if v != getattr(setting, name))
            setting = self.best([setting, *others], data)
            print("so far", *data, setting, flush=True)

    def finish(self, data: tuple[str, ...], finalists: int) -> Setting:
        """Measure those that are best with the first seed with all of them, and choose."""
        settings = {setting for setting, _, _ in self.known}
        whole = [each for each in settings if all((each, name, 0) in self.known for name in data)]
        whole.sort(key=lambda setting: (self.penalty(setting, data), str(setting)))
        for setting in whole[:finalists]:
            self.penalty(setting, data, SEEDS)
        return self.choose(data)

    def choose(self, data: tuple[str, ...]) -> Setting:
        """The best mean of those that were measured with all seeds."""
        cells = [(name, seed) for name in data for seed in range(SEEDS)]
        ready = {each for each, _, _ in self.known if all((each, *cell) in self.known for cell in cells)}
        return min(ready, key=lambda setting: (self.penalty(setting, data, SEEDS), str(setting)))


def penalty(found: dict[str, float], data: str) -> float:
    """By the rule; lower is better. A setting without a valid answer is worse than any other."""
    if not found["validity"]:
        return 1e3
    paper = {metric: paper_figures_of(data)[metric] for metric in ("js", "im2", "diversity", "instability", "l2")}
    goals = (
        (0.95 - found["validity"]) / 0.05,
        log2(max(found["js"], 1e-6) / (2 * paper["js"])),
        log2(found["im2"] / (2 * paper["im2"])),
        log2(paper["diversity"] / (2 * max(found["diversity"], 1e-6))),
    )
    beside = (found["instability"], paper["instability"]), (found["l2_per_feature"], paper["l2"])
    return sum(max(0.0, goal) for goal in goals) + 0.1 * sum(log2(max(own, 1e-6) / theirs) for own, theirs in beside)


@cache
def paper_figures_of(data: str) -> dict[str, float]:
    """The paper's figures of its own method, without a mask."""
    return {
        metric: v for (d, masked, metric, m), v in paper_figures().items() if (d, masked, m) == (data, "no", "guided")
    }


def read(path: Path) -> dict[tuple[Setting, str, int], dict[str, float]]:
    if not path.exists():
        return {}
    table = pd.read_csv(path)
    out = {}
    for line in table.to_dict("records"):
        values = {str(name): None if value != value else value for name, value in line.items()}
        setting = Setting(**{name: values[name] for name in Setting._fields})
        out[setting, str(values["data"]), int(line["seed"])] = {m: float(line[m]) for m in (*METRICS, "rows")}
    return out


def chosen(measured: Measurements) -> dict[str, Setting]:
    """The setting for all data sets, and that of each."""
    return {"all": measured.choose(PAPER_DATA)} | {data: measured.choose((data,)) for data in PAPER_DATA}


def chosen_table(measured: Measurements) -> str:
    """The chosen settings beside the paper's figures: means over the seeds."""
    lines = [f"| data | setting | {' | '.join(SHOWN)} |", "|---" * (2 + len(SHOWN)) + "|"]
    settings, met = chosen(measured), dict[str, int]()
    for data in PAPER_DATA:
        paper = paper_figures_of(data) | {"l2_per_feature": paper_figures_of(data)["l2"]}
        lines.append(f"| {TITLES[data]} | the paper | {' | '.join(f'{paper[metric]:.2f}' for metric in SHOWN)} |")
        for name, setting in (("`guided`", settings["all"]), ("`guided_tuned`", settings[data])):
            found = [measured.of(setting, data, seed) for seed in range(SEEDS)]
            means = [sum(each[metric] for each in found) / SEEDS for metric in SHOWN]
            digits = [3 if metric in ("js", "im2", "validity") else 2 for metric in SHOWN]
            cells = (f"{mean:.{d}f}" for mean, d in zip(means, digits, strict=True))
            lines.append(f"| {TITLES[data]} | {name}: {describe(setting)} | {' | '.join(cells)} |")
            met[name] = met.get(name, 0) + goals_met(dict(zip(SHOWN, means, strict=True)), data)
    (one, count), (each, own) = met.items()
    return "\n".join([*lines, "", f"{one} meets {count} of the {4 * len(PAPER_DATA)} goals, {each} {own}."])


def goals_met(found: dict[str, float], data: str) -> int:
    """How many of the four goals of a data set."""
    paper = paper_figures_of(data)
    near = found["js"] <= 2 * paper["js"], found["im2"] <= 2 * paper["im2"]
    return sum((found["validity"] >= 0.95, *near, found["diversity"] >= paper["diversity"] / 2))


def search_table(measured: Measurements) -> str:
    """The settings that were measured on all data sets with seed 0, the best first."""
    whole = {s for s, _, _ in measured.known if all((s, data, 0) in measured.known for data in PAPER_DATA)}
    heads = [f"{TITLES[data]}: validity / js / im2 / diversity / instability / l2_per_feature" for data in PAPER_DATA]
    lines = [f"| setting | penalty | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for setting in sorted(whole, key=lambda setting: (measured.penalty(setting, PAPER_DATA), str(setting)))[:LINES]:
        found = [measured.of(setting, data, 0) for data in PAPER_DATA]
        cells = (" / ".join(f"{each[metric]:.2f}" for metric in METRICS[:6]) for each in found)
        lines.append(f"| {describe(setting)} | {measured.penalty(setting, PAPER_DATA):.2f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def describe(setting: Setting) -> str:
    tau = "as in training" if setting.tau is None else f"{setting.tau:g}"
    noise = {INDEPENDENT: "independent", SHARED: "shared"}.get(
        setting.noise_length, f"of length {setting.noise_length:g}"
    )
    return (
        f"g_cat {setting.cat_gradient}, {setting.cat_scale}, guidance {setting.guidance:g}, lambda "
        f"{setting.cat_guidance:g}, start {setting.start:g}, τ {tau}, noise {noise}, proximity {setting.proximity:g}, "
        f"{setting.sigma}"
    )


def write_docs(results: Path, page: Path) -> None:
    measured = Measurements(results, 0, Path())
    put(page, guided_chosen=chosen_table(measured), guided_settings=search_table(measured))


def search(measured: Measurements) -> None:
    reading = measured.best(READINGS, HARDEST_FIRST)
    for names in ([name for name in CHOICES if name != "cat_guidance"], CHOICES):
        measured.descend(reading, HARDEST_FIRST, names)
    measured.descend(measured.finish(HARDEST_FIRST, FINALISTS), HARDEST_FIRST, ["guidance"])
    setting = measured.finish(HARDEST_FIRST, FINALISTS)
    print("for all data sets:", setting, flush=True)
    for data in PAPER_DATA:
        measured.descend(measured.finish((data,), OWN_FINALISTS), (data,), OWN_CHOICES)
        print(f"for {data}:", measured.finish((data,), OWN_FINALISTS), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out / "guided_settings.csv", Path("docs/paper.md"))
        return
    torch.set_num_threads(1)
    search(Measurements(asked.out / "guided_settings.csv", asked.rows, asked.cache))


if __name__ == "__main__":
    main()
