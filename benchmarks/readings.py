"""Algorithm 1 under several readings of what it leaves open.

    TDCE_DATA=... python benchmarks/readings.py [--data lcd,gmc,adult,law] [--rows 120] [--cache results/fitted]
    python benchmarks/readings.py --docs           writes the table of docs/paper.md from the results

Up to 120 validation rows that the classifier refuses, nothing immutable, one walk each, nothing refined, seed 0. Writes
results/readings.csv, a line at a time: a stopped run resumes.
"""

import argparse
from pathlib import Path

import pandas as pd
import torch
from docs_tables import put

from tdce.datasets import write_whole
from tdce.methods import GUIDED, GUIDED_LITERAL, Guided, GuidedLiteral
from tdce_reproduction.benchmark.cell import Bench, Cell
from tdce_reproduction.benchmark.contests import TITLES
from tdce_reproduction.benchmark.settings import PAPER_DATA
from tdce_reproduction.benchmark.summary import paper_figures

EQUATIONS = {
    "start": 0.5, "guidance": 1.0, "cat_guidance": 1.0, "proximity": 1.0, "tau": None, "cat_scale": "lambda",
    "cat_gradient": "denoised", "noise_length": 1e-3,
}  # fmt: skip
READINGS = {
    "the equations: distance term, lambda 1, Sigma a variance, start 0.5": Guided(**EQUATIONS, sigma="variance"),
    "… Sigma a deviation": Guided(**EQUATIONS, sigma="deviation"),
    "… and the norm of pi": Guided(**EQUATIONS | {"cat_scale": "norm_pi"}, sigma="deviation"),
    "… the norm of log pi instead": Guided(**EQUATIONS | {"cat_scale": "norm"}, sigma="deviation"),
    "… and g_cat through the denoiser": Guided(
        **EQUATIONS | {"cat_scale": "norm", "cat_gradient": "through"}, sigma="deviation"
    ),
    "the loop in 50 strides, g_cat at the denoised row, the argmax in Bayes' rule": GuidedLiteral(
        steps=50, cat_gradient="denoised", soft_posterior=False
    ),
    "the loop to the letter (`guided_literal`)": GUIDED_LITERAL,
    "chosen on validation rows (`guided`)": GUIDED,
}
METRICS = ("validity", "l2", "l2_per_feature", "diversity", "instability", "js", "im1", "im2")


def measure_all(path: Path, data: list[str], rows: int, cache: Path) -> None:
    known = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {(line["data"], line["settings"]) for line in known}
    for name in data:
        bench = Bench(name, 0, rows, cache, part="validation")
        for title, method in READINGS.items():
            if (name, repr(method)) not in done:
                found = bench.measure(Cell(name, "guided", "no", 0), method).metrics
                figures = {metric: round(found.get(metric, float("nan")), 5) for metric in METRICS}
                known.append({"data": name, "reading": title, "rows": len(bench.queries)} | figures)
                known[-1]["settings"] = repr(method)
                write_whole(path, pd.DataFrame(known).to_csv(index=False).encode())
                print(name, title, figures, flush=True)


def markdown(table: pd.DataFrame) -> str:
    """A line per data set and reading, after the paper's own figures; readings with other settings are left out."""
    heads, known = ["data", "reading", *METRICS], paper_figures()
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    measured = {(line["data"], line["settings"]): line for line in table.to_dict("records")}
    for data in dict.fromkeys(table["data"]):
        figures = (known.get((data, "no", metric, "guided")) for metric in METRICS)
        lines.append(f"| {TITLES[data]} | the paper | {' | '.join('' if v is None else f'{v:.2f}' for v in figures)} |")
        for title, method in READINGS.items():
            line = measured[data, repr(method)]
            lines.append(f"| {TITLES[data]} | {title} | {' | '.join(f'{line[metric]:.3f}' for metric in METRICS)} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, readings=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(PAPER_DATA))
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        write_docs(asked.out / "readings.csv", Path("docs/paper.md"))
        return
    torch.set_num_threads(1)
    measure_all(asked.out / "readings.csv", asked.data.split(","), asked.rows, asked.cache)


if __name__ == "__main__":
    main()
