"""The size of a report and the time to write it, for 5, 1,000 and 10,000 people of the German credit data.

    python benchmarks/report_size.py [german.tdce]   # fits one if none is given

At most 200 refused people are explained, with three options each. Larger reports repeat them with other amounts and
labels, because only the page is measured.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

import tdce
from tdce.explainer import Answer

EXPLAINED = 200
SIZES = (5, 1_000, 10_000)


def main() -> None:
    data = tdce.load("german")
    if len(sys.argv) > 1:
        explainer = tdce.Explainer.load(sys.argv[1])
    else:
        explainer = tdce.Explainer().fit(data.frame, label=data.label, favourable=data.favourable, schema=data.schema)
    refused = data.frame[explainer.predict(data.frame) != data.favourable].head(EXPLAINED)
    answer = explainer.explain(refused, n=3)
    print("| people | bytes | beyond a megabyte, per person | CPU seconds |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        repeat(answer, SIZES[0]).to_html(path)  # imports are not timed
        for size in SIZES:
            larger, began = repeat(answer, size), time.process_time()
            larger.to_html(path)
            seconds, weight = time.process_time() - began, path.stat().st_size
            print(f"| {size:,} | {weight:,} | {max(0, weight - (1 << 20)) / size:,.0f} | {seconds:.1f} |")


def repeat(answer: Answer, count: int) -> Answer:
    """An answer for this many people that repeats those of another; each round has other amounts, each person has a
    label of their own."""
    base, options = len(answer.rows), answer.options
    at = np.arange(count) % base
    lines = (at[:, None] * options + np.arange(options)).reshape(-1)
    explanation, round_of = answer.explanation.take(at), np.arange(count) // base
    labels = pd.Index([f"person {i:05}" for i in range(count)])
    rows, written = answer.rows.iloc[at].set_axis(labels), answer.written.iloc[lines].set_axis(labels.repeat(options))
    own, raw = explanation.own.copy(), explanation.raw.copy()
    for i, column in enumerate(answer.schema):
        if column.numbers and len(np.unique(answer.explanation.own[:, i])) > 20:
            shift = round_of * (getattr(column, "step", None) or 0.01)
            own[:, i] += shift
            raw[:, :, i] += shift[:, None]
            rows = rows.assign(**{str(column.name): own[:, i]})
            written = written.assign(**{str(column.name): raw[:, :, i].reshape(-1)})
    return replace(
        answer, rows=rows, written=written, explanation=replace(explanation, own=own, raw=raw),
        goals=answer.goals.take(torch.from_numpy(at)), target=answer.target[at], wanted=answer.wanted[at],
    )  # fmt: skip


if __name__ == "__main__":
    main()
