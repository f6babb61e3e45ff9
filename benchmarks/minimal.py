"""Is any change of an answer needless? Tries every subset of the changes of every option.

    python benchmarks/minimal.py [--tables numbers,...] [--models own,...] [--seeds 3] [--questions 4] [--people 8]

Writes results/minimal.csv. Random tables (numbers, categories, both, wide ones, gaps, marks; those with laws once with
them and once without), four kinds of model, random questions: options, closeness, safety, immutable features, costs,
rules, targets and bands. All of this and the check are in tests/minimal.py. A set of changes is needless if the model
still accepts the row without it, by the method's margin, and each of them lowers the objective by less than 0.001. Also
counted: options that contain another one that is as good, and options that appear twice without a note.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fits import short_training
from lawful import TABLES as WITH_LAWS
from minimal import MODELS, TABLES, Judge, Verdict, fit, random_question

HEAD = ("table", "model", "tables", "questions", "options", "subsets", "most changes", "needless", "contained", "twice")


def measure(table: str, model: str, seeds: int, questions: int, people: int) -> list[object]:
    """A line of the result."""
    total, tables, asked = Verdict(), 0, 0
    for seed in range(seeds):
        for laws in (True, False) if table in WITH_LAWS else (True,):
            explainer, refused = fit(table, model, laws, seed)
            rng = np.random.default_rng([seed, laws, 1])
            tables += 1
            for _ in range(questions):
                question = random_question(list(explainer.schema.names), rng)
                total.add(Judge(explainer, explainer.explain(refused.head(people), **question)).judge())
                asked += 1
    for kind, faults in total.faults.items():
        print(table, model, kind, *faults, sep="\n    ")
    needless, contained, *twice = (len(total.faults.get(k, ())) for k in ("needless", "contained", "merged", "noted"))
    line = [table, model, tables, asked, total.lines, total.subsets, total.most_changes]
    return [*line, needless, contained, sum(twice)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("results/minimal.csv"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    short_training()
    lines = []
    for table in given.tables.split(","):
        for model in given.models.split(","):
            lines.append(measure(table, model, given.seeds, given.questions, given.people))
            print(*lines[-1], sep=" | ", flush=True)
            pd.DataFrame(lines, columns=HEAD).to_csv(given.out, index=False)
    everything = pd.DataFrame(lines, columns=HEAD).drop(columns=["table", "model", "most changes"]).sum()
    print(everything.to_string())


if __name__ == "__main__":
    main()
