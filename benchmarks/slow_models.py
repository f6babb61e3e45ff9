"""Time of `fit` and `explain` for a model that learns in context, queried one row at a time under a query budget.

    python benchmarks/slow_models.py [--people 10] [--pause 0.02]
    python benchmarks/slow_models.py --docs          writes the table of docs/models.md from the results

A stand-in for TabPFN and TabICL, whose weights are not part of this project: it compares rows with 500 of the table, on
a scale set by all rows of a call, and every call adds a pause. german, up to ten refused people.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from docs_tables import put

import tdce
from tdce.diffusion import SamplingPlan

BUDGETS = (200, 500, 1000, 2000)
CONTEXT_ROWS = 500
HEAD = ("step", "people", "rows", "seconds", "valid")


class InContext:
    """A vote of the context's rows, by their nearness on the scale of the call."""

    classes_ = np.array(["bad", "good"])

    def __init__(self, table: pd.DataFrame, label: str, pause: float) -> None:
        self.numbers = table.drop(columns=label).select_dtypes("number").columns
        self.words = {name: sorted(table[name].unique()) for name in table.drop(columns=[label, *self.numbers])}
        self.x, self.y, self.pause = self.encode(table), (table[label] == "good").to_numpy(dtype=float), pause
        self.calls = 0

    def encode(self, frame: pd.DataFrame) -> Any:
        flags = [frame[name].to_numpy()[:, None] == np.array(known) for name, known in self.words.items()]
        return np.column_stack([frame[self.numbers].to_numpy(dtype=float), *flags]).astype(float)

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        time.sleep(self.pause)
        self.calls += 1
        both = np.concatenate([self.x, self.encode(frame)])
        both = (both - both.mean(axis=0)) / both.std(axis=0).clip(min=1e-9)
        context, rows = both[: len(self.x)], both[len(self.x) :]
        near = np.exp(-np.square(rows[:, None] - context[None]).sum(axis=2) / 40)
        p = ((near @ self.y + 1e-6) / (near.sum(axis=1) + 2e-6)).clip(0.001, 0.999)
        p = p**2 / (p**2 + 2.5 * (1 - p) ** 2)  # sharper, and cautious: three in ten are bad
        return np.column_stack([1 - p, p])


def measure(people: int, pause: float) -> list[tuple[object, ...]]:
    data = tdce.load("german")
    model = InContext(data.frame.head(CONTEXT_ROWS), data.label, pause)
    few = replace(tdce.TrainingPlans(), sampling=SamplingPlan(rows=256, batch=256), precedents=0)
    explainer = tdce.Explainer(model=tdce.OneByOne(model), plans=few, progress="silent")
    began = time.monotonic()
    explainer.fit(data.frame, label=data.label, favourable="good")
    lines: list[tuple[object, ...]] = [("fit", len(data.frame), model.calls, round(time.monotonic() - began), "")]
    refused = data.frame[explainer.predict(data.frame) == "bad"].head(people)
    for budget in BUDGETS:
        began = time.monotonic()
        answer = explainer.explain(refused, max_model_rows=budget)
        seconds = round(time.monotonic() - began)
        lines.append((budget, len(refused), answer.model_rows, seconds, answer.counts().get("valid", 0)))
        print(lines[-1], flush=True)
    return lines


def write_docs(results: Path, page: Path) -> None:
    lines = ["| step | rows queried | seconds | valid answers |", "|---" * 4 + "|"]
    for line in pd.read_csv(results).itertuples():
        fit = line.step == "fit"
        step = f"`fit` on {line.people:,} rows" if fit else f"`max_model_rows={line.step}`, {line.people} people"
        lines.append(f"| {step} | {line.rows:,} | {line.seconds:g} | {'' if fit else f'{int(line.valid)}'} |")
    put(page, slow="\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds that every call takes besides")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/slow_models.csv"))
    given = parser.parse_args()
    if given.docs:
        write_docs(given.out, Path("docs/models.md"))
        return
    torch.set_num_threads(1)
    pd.DataFrame(measure(given.people, given.pause), columns=HEAD).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
