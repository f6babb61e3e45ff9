"""The benefit and the cost of laws. Prints the tables of docs/rules.md.

    TDCE_DATA=... python benchmarks/laws.py [--data adult,gmc,lcd,german] [--rows 100] [--methods ...] [--cache ...]

Laws are discovered in the whole table. Each method answers the same refused test rows twice, with laws off and on
(nothing immutable, seed 0). Columns: contradictions per 100 answers (an answer that breaks a hard law by a change), the
same with soft laws, validity, features changed, distance to the 5 nearest held-out rows, and the time with laws on
divided by that with laws off (the faster of two runs each). `--shuffles N` instead prints in how many of N tables with
independently shuffled columns a law is discovered.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tdce import metrics
from tdce.explainer import Fitted
from tdce.methods import METHODS, Explanation, Question, Status, explain
from tdce.models import Class, Goals
from tdce.schema import ConstraintSet, FeasibleSet, Schema
from tdce_reproduction.benchmark.cell import Bench
from tdce_reproduction.benchmark.settings import tuned_method

TURNS = 2
HEAD = ("data", "method", "laws", "contradictions", "with soft ones", "validity", "features", "distance", "time")


def with_laws(fitted: Fitted, schema: Schema) -> Fitted:
    """The same networks with synthetic rows that satisfy the laws, as `fit` would have drawn them."""
    encoder = replace(fitted.encoder, full_schema=replace(fitted.encoder.schema, laws=schema.laws))
    synthetic = ConstraintSet.hard(schema.laws, schema.features).repair_synthetic(
        fitted.synthetic, lambda i, values: encoder.columns[i].knows(values)
    )
    return replace(fitted, encoder=encoder, synthetic=synthetic)


def asked(bench: Bench, fitted: Fitted, method: str) -> tuple[Explanation, float]:
    """The answers, and the seconds of the faster run."""
    task = replace(fitted.task(), energy_quantiles=torch.zeros(0))
    made = tuned_method(method, bench.name).fit(task)
    feasible = FeasibleSet.of(fitted.encoder, bench.queries)
    goal = Class(bench.data.favourable).with_class_number(fitted.classes.index)
    goals, question = Goals.all(goal, len(feasible.own)), Question()
    seconds = []
    for _ in range(TURNS):
        began = time.perf_counter()
        found = explain(made, feasible, goals, question)
        seconds.append(time.perf_counter() - began)
    return found, min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="adult,gmc,lcd,german")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--cache", type=Path, default=Path("results/fitted"))
    parser.add_argument("--shuffles", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.shuffles:
        return shuffled(arguments.data.split(","), arguments.shuffles)
    print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|")
    for name in arguments.data.split(","):
        bench = Bench(name, 0, arguments.rows, arguments.cache)
        schema, reference = bench.data.schema, bench.reference
        hard, soft = (make(schema.laws, schema.features) for make in (ConstraintSet.hard, ConstraintSet.soft))
        held = reference.whole(reference.held[reference.held_target])
        for method in arguments.methods.split(","):
            before = 0.0
            for laws, fitted in (("off", bench.fitted), ("on", with_laws(bench.fitted, schema))):
                found, seconds = asked(bench, fitted, method)
                raw, own = found.raw[:, 0], found.own
                broken, also = (each.broken(raw, own).any(axis=1) for each in (hard, soft))
                valid = found.status[:, 0] == Status.VALID
                figures = (100 * broken.mean(), 100 * (broken | also).mean(), valid.mean())
                near = metrics.held_out_distance(reference.whole(raw[valid]), held)
                ratio = "" if laws == "off" else f"{seconds / before:.2f}"
                print(
                    f"| {name} | {method} | {laws} | {figures[0]:.0f} | {figures[1]:.0f} | {figures[2]:.2f} | "
                    f"{metrics.sparsity(own[valid], raw[valid]):.2f} | {near:.2f} | {ratio} |",
                    flush=True,
                )
                before = seconds


def shuffled(names: list[str], times: int) -> None:
    print("| data | shuffled tables | with a law |\n|---|---|---|")
    for name in names:
        frame = Bench(name, 0, 1).data.frame
        found = 0
        for seed in range(times):
            rng = np.random.default_rng(seed)
            found += bool(Schema.infer(frame.apply(lambda column, rng=rng: rng.permutation(column.to_numpy()))).laws)
        print(f"| {name} | {times} | {found} |", flush=True)


if __name__ == "__main__":
    main()
