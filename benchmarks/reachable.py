"""Are there `valid` answers that a person cannot reach, or missed ones? Compares with reachml's enumeration.

    python benchmarks/reachable.py [--data german,months] [--models logistic,...] [--people 40] [--envs results/envs]
                                   [--python python3.12] [--cache results/fitted/reachable]
                                   [--out results/reachable.csv]
    python benchmarks/reachable.py --docs          writes the table of docs/method.md from the results

reachml (by others) enumerates with SCIP every row that a person can reach, given which features may change, their
ranges and directions. It knows no model: this process queries the model for all reachable rows. A person with no
accepted row is proven fixed; `explain` (closeness 1, no wanted safety) must not find a `valid` answer for them, and
should find one for everybody else. Laws are left out, because reachml gets none. The sets are cached; answers are
computed each time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from enumeration import MODELS, fit, load
from environments import FOLDER, make_environment

import tdce
from tdce._core import Floats
from tdce.methods.candidates import MIN_MARGIN
from tdce.models import Goals, Oracle
from tdce.schema import Categorical, Schema

WORKER = Path(__file__).parent / "workers" / "reach.py"
REQUIREMENTS = ("reachml==0.2.0a1", "scipy==1.18.1", "scikit-learn==1.9.1")
SIGNS = {"increase": ">=", "decrease": "<="}
HEAD = ("data", "model", "free", "people", "fixed", "false", "with_a_way", "missed", "boundary", "largest")


class Freedom(NamedTuple):
    """The features that may change, and the numbers that may only rise or fall."""

    features: tuple[str, ...]
    directions: dict[str, str]


FREEDOMS = {
    "german": (
        Freedom(("savings", "instalment_rate"), {"instalment_rate": "decrease"}),
        Freedom(("checking_account", "savings", "housing"), {}),
        Freedom(("duration_months", "instalment_rate"), {"duration_months": "decrease"}),
        Freedom(("duration_months", "checking_account", "savings", "employment"), {"duration_months": "decrease"}),
    ),
    "months": (
        Freedom(("contract", "rating"), {"rating": "increase"}),
        Freedom(("complaints", "rating"), {"complaints": "decrease", "rating": "increase"}),
        Freedom(("months", "contract"), {"months": "increase"}),
        Freedom(("months", "rating", "contract", "complaints"), {"complaints": "decrease"}),
    ),
}


@dataclass(frozen=True)
class Case:
    """One table, what may change in it, and the models of it."""

    data: str
    freedom: Freedom
    explainers: dict[str, tdce.Explainer]
    people: int

    @property
    def key(self) -> str:
        moves = (f"{name} {self.freedom.directions.get(name, '')}".strip() for name in self.freedom.features)
        return "+".join(moves)

    @cached_property
    def rows(self) -> pd.DataFrame:
        """In random order, those whose values the schema knows."""
        frame, label, _ = load(self.data)
        frame = frame.drop(columns=label).sample(frac=1, random_state=0)
        own = self.raw(frame)[:, self.places]
        known = [np.isin(each, values) for values, each in zip(self.values, own.T, strict=True)]
        return frame[np.all(known, axis=0)]

    @cached_property
    def refused(self) -> dict[str, pd.DataFrame]:
        """By each model."""
        favourable = load(self.data)[2]
        return {
            name: self.rows[(explainer.predict(self.rows) != favourable).to_numpy()].head(self.people)
            for name, explainer in self.explainers.items()
        }

    @cached_property
    def everybody(self) -> pd.DataFrame:
        """Whom any model refuses."""
        return self.rows.loc[sorted(set().union(*(each.index for each in self.refused.values())))]

    def raw(self, rows: pd.DataFrame) -> Floats:
        return next(iter(self.explainers.values())).fitted.encoder.read(rows)

    @cached_property
    def schema(self) -> Schema:
        return next(iter(self.explainers.values())).schema

    @cached_property
    def values(self) -> list[Floats]:
        """Of each feature that may change: the values that it can have, in their order."""
        out = []
        for name in self.freedom.features:
            column = self.schema[name]
            if isinstance(column, Categorical):
                out.append(np.arange(len(column.categories), dtype=float))
            elif column.levels:
                out.append(np.array(sorted(column.levels), dtype=float))
            else:
                out.append(np.unique(column.round(np.arange(column.low, column.high + column.step, column.step))))
        return out

    @property
    def places(self) -> list[int]:
        return [self.schema.names.index(name) for name in self.freedom.features]

    def task(self) -> dict[str, Any]:
        """What reachml is asked: values by their places in `values`."""
        features = []
        for name, values in zip(self.freedom.features, self.values, strict=True):
            column, direction = self.schema[name], self.freedom.directions.get(name, "any")
            category = isinstance(column, Categorical)
            never = (
                [k for k, each in enumerate(column.categories) if each not in (column.allowed or column.categories)]
                if category
                else []
            )
            features.append(
                {"name": name, "size": len(values), "category": category, "never": never, "direction": direction}
            )
        own = self.raw(self.everybody)[:, self.places]
        people = [np.searchsorted(values, each) for values, each in zip(self.values, own.T, strict=True)]
        return {"features": features, "people": np.stack(people, axis=1).tolist()}

    def enumerate(self, folder: Path, python: Path) -> None:
        """Let reachml write the reachable rows of everybody, unless it was asked the same before."""
        folder.mkdir(parents=True, exist_ok=True)
        task, path = json.dumps(self.task()), folder / "task.json"
        if path.exists() and path.read_text() != task:
            raise SystemExit(f"{folder} has the answers to another question: remove it")
        path.write_text(task)
        subprocess.run([python, WORKER, folder], check=True, stdout=subprocess.DEVNULL)  # it prints its variables

    def judge(self, model: str, folder: Path) -> list[Any]:
        """How many of one model's people are proven fixed, and what is said to them and to the others."""
        explainer, refused = self.explainers[model], self.refused[model]
        names = list(self.schema.names)
        fixed = [name for name in names if name not in self.freedom.features]
        rules = [f"{name} {SIGNS[direction]} was({name})" for name, direction in self.freedom.directions.items()]
        said = explainer.explain(refused, immutable=fixed, rules=rules, closeness=1, safety=0)
        order = {index: i for i, index in enumerate(self.everybody.index)}
        counts = dict.fromkeys(HEAD[3:], 0)
        for r, own in enumerate(self.raw(refused)):
            reached = np.load(folder / "reached" / f"{order[refused.index[r]]}.npz")["rows"]
            rows = np.tile(own, (len(reached), 1))
            rows[:, self.places] = np.stack([v[r] for v, r in zip(self.values, reached.T, strict=True)], axis=1)
            decision = Oracle(explainer.fitted.model).decide_alone(rows, Goals.all(said.goals.goal(r), len(rows)))
            way, clear = bool(decision.met.any()), bool((decision.met & (decision.margin >= MIN_MARGIN)).any())
            valid = said.explanation.status[r, 0] == "valid"
            counts["people"] += 1
            counts["fixed"] += not way
            counts["false"] += valid and not way
            counts["with_a_way"] += way
            counts["missed"] += way and not valid
            counts["boundary"] += way and not valid and not clear
            counts["largest"] = max(counts["largest"], len(reached))
        return [self.data, model, self.key, *counts.values()]


def fit_models(data: str, models: list[str]) -> dict[str, tdce.Explainer]:
    frame, label, favourable = load(data)
    schema = Schema(Schema.infer(frame, label, roles=False).features)
    return {model: fit(frame, label, favourable, model, schema) for model in models}


def markdown(rows: pd.DataFrame) -> str:
    lines = ["| table | model | people | proven fixed | of them valid | with a way | missed |", "|---" * 7 + "|"]
    for (data, model), part in [
        *rows.groupby(["data", "model"], sort=False),
        *([(("all", ""), rows)] if len(rows) else []),
    ]:
        cells = [part[name].sum() for name in ("people", "fixed", "false", "with_a_way", "missed")]
        lines.append(f"| {' | '.join(map(str, [data, model, *cells]))} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, reachable=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(FREEDOMS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--envs", type=Path, default=FOLDER)
    parser.add_argument("--python", default="python3.12", help="a Python 3.12, for reachml")
    parser.add_argument("--cache", type=Path, default=Path("results/fitted/reachable"))
    parser.add_argument("--out", type=Path, default=Path("results/reachable.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        return write_docs(asked.out, Path("docs/method.md"))
    torch.set_num_threads(1)
    python = make_environment(asked.envs / "reachml", REQUIREMENTS, python=asked.python)
    lines: list[list[Any]] = []
    for data in asked.data.split(","):
        explainers = fit_models(data, asked.models.split(","))
        for freedom in FREEDOMS[data]:
            case = Case(data, freedom, explainers, asked.people)
            folder = asked.cache / f"{data}, {case.key}, {asked.models}, {asked.people}"
            case.enumerate(folder, python)
            for model in explainers:
                lines.append(case.judge(model, folder))
                print(*lines[-1], sep=" | ", flush=True)
            pd.DataFrame(lines, columns=HEAD).to_csv(asked.out, index=False)
    print(markdown(pd.DataFrame(lines, columns=HEAD)))


if __name__ == "__main__":
    main()
