"""How near are the answers to the cheapest possible ones, which OCEAN finds and proves optimal?

    python benchmarks/optimum.py [--data german,...] [--models forest,boosting] [--people 100] [--seconds 60]
                                 [--envs results/envs] [--python python3.12] [--cache results/fitted/optimum]
                                 [--out results/optimum.csv]
    python benchmarks/optimum.py --docs          writes the table of docs/models.md from the results

OCEAN (package oceanpy, by others) finds optimal counterfactuals of tree ensembles by constraint programming. It gets
the same model, the same refused rows of the half of the table that the model has not seen, and for each feature the
allowed values with their costs: once by our cost (`methods/objective.py`), once by its own, the distance of scaled
numbers plus 1 for each changed category. Both must pass the decision by the same margin. Laws and rules are left out,
because OCEAN knows none; our answers are those at closeness 1 without a wanted safety. OCEAN's proofs are cached:
remove them after a change of the tables, the models or the cost. Our answers are computed each time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from docs_tables import put
from environments import FOLDER, make_environment
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import tdce
from tdce._core import Floats
from tdce.methods.candidates import MIN_MARGIN
from tdce.methods.objective import change_costs, feature_positions
from tdce.schema import Categorical, Encoder, FeasibleSet, Numeric, Schema

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from lawful import TABLES

WORKER = Path(__file__).parent / "workers" / "prove_optimum.py"
REQUIREMENTS = ("oceanpy==2.0.7", "scikit-learn==1.9.1", "xgboost==3.4.1", "numpy==2.5.4", "pandas==3.1.1")
FOREST = {"n_estimators": 50, "max_depth": 5, "random_state": 0}
BOOSTING = {"n_estimators": 50, "max_depth": 3, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}


def boosting() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(**BOOSTING)


MODELS = {"forest": lambda: RandomForestClassifier(**FOREST), "boosting": boosting}
DATA = ("german", "conditional range", "price list")
DEARER = 1.10
ROUNDING = 1e-6  # of log odds: XGBoost adds in single precision
COLUMNS = ["data", "model", "person", "proven", "seconds", "optimum", "ours", "optimum_theirs", "ours_theirs"]


@dataclass(frozen=True)
class Case:
    """One table and one model of it."""

    name: str
    model: str
    count: int

    @cached_property
    def table(self) -> tuple[pd.DataFrame, pd.DataFrame, str, Any]:
        """The half that is learned, the other half, the label and its favourable value."""
        if self.name in TABLES:
            frame, label, favourable = TABLES[self.name](0).frame, "label", "yes"
        else:
            data = tdce.load(self.name)
            frame, label, favourable = data.frame, data.label, data.favourable
        frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))].reset_index(drop=True)
        return frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :], label, favourable

    @cached_property
    def schema(self) -> Schema:
        """Numbers first, as in the model's matrix; no laws."""
        train, _, label, _ = self.table
        features = Schema.infer(train, label, roles=False).features
        return Schema(tuple(sorted(features, key=lambda f: isinstance(f, Categorical))))

    @cached_property
    def encoder(self) -> Encoder:
        return Encoder.fit(self.table[0], self.schema)

    @cached_property
    def pipeline(self) -> Pipeline:
        """Numbers as they are, then one flag per category, in the schema's order; the labels are 0 and 1."""
        train, _, label, favourable = self.table
        words = [f for f in self.schema if isinstance(f, Categorical)]
        numbers = [f.name for f in self.schema if not isinstance(f, Categorical)]
        flags = OneHotEncoder(
            categories=[list(f.categories) for f in words], handle_unknown="ignore", sparse_output=False
        )
        parts = ColumnTransformer([("numbers", "passthrough", numbers), ("flags", flags, [f.name for f in words])])
        rows = train[list(self.schema.names)]
        return make_pipeline(parts, MODELS[self.model]()).fit(rows, (train[label] == favourable).astype(int))

    @cached_property
    def refused(self) -> pd.DataFrame:
        rows = self.table[1][list(self.schema.names)]
        return rows[self.pipeline.predict(rows) == 0].head(self.count)

    def matrix(self, rows: pd.DataFrame) -> Floats:
        return np.asarray(self.pipeline[:-1].transform(rows[list(self.schema.names)]), dtype=float)

    def costs(self, own: Floats, raw: Floats) -> dict[str, Floats]:
        """(n, features) by our code and by OCEAN's definition."""
        x, x_cf = (self.encoder.embed(each).float() for each in (own, raw))
        places = (feature_positions(self.encoder, each) for each in (x, x_cf))
        span = [f.high - f.low if isinstance(f, Numeric) else 1.0 for f in self.schema]
        numeric = np.array([isinstance(f, Numeric) for f in self.schema])
        theirs = np.where(numeric, np.abs(raw - own) / span, raw != own)
        return {"ours": change_costs(self.encoder.space.moved(x, x_cf), *places).double().numpy(), "theirs": theirs}

    def write_task(self, folder: Path) -> None:
        """What OCEAN is asked: the model, the people, and what each value of a feature costs."""
        train, _, label, favourable = self.table
        feasible, arrays = FeasibleSet.of(self.encoder, self.refused), {}
        for person, i in product(range(len(self.refused)), range(len(self.schema.names))):
            one = feasible.take(np.array([person]))
            values = allowed_values(one, i)
            rows = np.repeat(one.own, len(values), axis=0)
            rows[:, i] = values
            arrays[f"values {person} {i}"] = values
            for cost, each in self.costs(one.own.repeat(len(values), axis=0), rows).items():
                arrays[f"{cost} {person} {i}"] = each[:, i]
        every = pd.concat(self.table[:2])
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(
            folder / "task.npz", matrix=self.matrix(train), label=(train[label] == favourable).astype(int),
            every=self.matrix(every), people=self.matrix(self.refused), **arrays,
        )  # fmt: skip
        if self.model == "boosting":
            self.pipeline[-1].save_model(folder / "model.json")
        codes = [len(f.categories) if isinstance(f, Categorical) else 0 for f in self.schema]
        features = [
            {"name": name, "codes": [f"{k:03d}" for k in range(count)]}
            for name, count in zip(self.schema.names, codes, strict=True)
        ]
        task = {
            "features": features, "favourable": 1, "settings": FOREST, "people": len(self.refused),
            "margin": MIN_MARGIN if self.model == "boosting" else FOREST["n_estimators"] * np.tanh(MIN_MARGIN / 2),
        }  # fmt: skip
        (folder / "task.json").write_text(json.dumps(task))  # the last: whoever finds it finds all

    def prove(self, folder: Path, python: Path, seconds: float) -> list[dict[str, Any]]:
        """OCEAN's proofs, those that are known and those that are not."""
        task = folder / "task.json"
        if not task.exists() or json.loads(task.read_text())["people"] < len(self.refused):
            self.write_task(folder)
        subprocess.run([python, WORKER, folder, str(seconds), str(len(self.refused))], check=True)
        every = pd.concat(self.table[:2])[list(self.schema.names)]
        assert (np.load(folder / "verdicts.npy") == self.pipeline.predict(every)).all(), "the two models differ"
        return [json.loads(line) for line in (folder / "proofs.jsonl").read_text().splitlines()]

    def answers(self) -> Floats:
        """(people, features) ours, missing where none is valid."""
        train, _, label, favourable = self.table
        explainer = tdce.Explainer(model=Judged(self.pipeline, favourable), progress="silent")
        explainer.fit(train, label=label, favourable=favourable, schema=self.schema)
        frame = explainer.explain(self.refused, closeness=1, safety=0).to_frame()
        raw = self.encoder.read(frame)
        raw[(frame["status"] != "valid").to_numpy()] = np.nan
        return raw

    def compare(self, proofs: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """A line per person: OCEAN's optima and what our answer costs, by either cost; infinite where there is none."""
        own, ours = self.encoder.read(self.refused), self.answers()
        paid = {name: each.sum(axis=1) for name, each in self.costs(own, ours).items()}
        there = ~np.isnan(ours).any(axis=1)
        by_person: dict[int, dict[str, dict[str, Any]]] = {}
        for proof in proofs:
            by_person.setdefault(proof["person"], {})[proof["cost"]] = proof
        lines = []
        for i in range(len(own)):
            found = by_person[i]
            best = {name: self.optimum(own[[i]], proof) for name, proof in found.items()}
            proven = all(proof["status"] in ("OPTIMAL", "INFEASIBLE") for proof in found.values())
            took = sum(proof["seconds"] for proof in found.values())
            ours_, theirs_ = (paid[name][i] if there[i] else np.inf for name in ("ours", "theirs"))
            lines.append((self.name, self.model, i, proven, took, best["ours"], ours_, best["theirs"], theirs_))
        return lines

    def optimum(self, own: Floats, proof: dict[str, Any]) -> float:
        """What OCEAN's answer costs, by our own code; the model itself must accept it."""
        if "answer" not in proof:
            return np.inf
        raw = np.array([proof["answer"]])
        cost = float(self.costs(own, raw)[proof["cost"]].sum())
        assert abs(cost - proof["paid"]) < 1e-4, f"it costs {cost}, OCEAN says {proof['paid']}"
        refusal, favour = self.pipeline.predict_proba(self.encoder.write(raw, self.refused.head(1)))[0]
        return cost if np.log(favour / refusal) >= MIN_MARGIN - ROUNDING else np.inf


class Judged:
    """The model with the table's own labels."""

    def __init__(self, pipeline: Pipeline, favourable: Any) -> None:
        self.pipeline, self.classes_ = pipeline, np.array(["another", str(favourable)])

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        return np.asarray(self.pipeline.predict_proba(frame), dtype=float)


def allowed_values(feasible: FeasibleSet, i: int) -> Floats:
    """All values of a feature that the schema allows the one row of a feasible set, its own among them."""
    own, learned = feasible.own[:, i], feasible.columns[i]
    if feasible.frozen[i]:
        return own
    column = learned.column
    if isinstance(column, Categorical):
        values = np.arange(len(column.categories), dtype=float)
    elif column.levels is not None:
        values = np.array(sorted(column.levels))
    else:
        values = np.unique(column.round(np.arange(column.low, column.high + column.step, column.step)))
    return np.union1d(own, values[learned.allowed_values(np.full(len(values), own[0])).allows(values)])


def markdown(rows: pd.DataFrame) -> str:
    measures = [f"{what}, {by}" for by in ("our cost", "its cost") for what in ("median", "90 %", "worst", "dearer")]
    head = ["table", "model", "people", "proven", "seconds", "no answer", *measures]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for (data, model), part in [
        *rows.groupby(["data", "model"], sort=False),
        *([(("all", ""), rows)] if len(rows) else []),
    ]:
        solvable = part[np.isfinite(part["optimum"])]
        missed = int((~np.isfinite(solvable["ours"])).sum())
        cells = [data, model, len(part), f"{part['proven'].mean():.0%}", f"{part['seconds'].median():.1f}", missed]
        for suffix in ("", "_theirs"):
            best = np.minimum(solvable[f"optimum{suffix}"], solvable[f"ours{suffix}"])
            ratio = (solvable[f"ours{suffix}"] / best)[np.isfinite(solvable["ours"])]
            cells += [f"{value:.2f}" for value in (ratio.median(), ratio.quantile(0.9), ratio.max())]
            cells.append(f"{(ratio > DEARER).mean():.1%}")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def write_docs(results: Path, page: Path) -> None:
    put(page, optimum=markdown(pd.read_csv(results)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--envs", type=Path, default=FOLDER)
    parser.add_argument("--python", default="python3.12", help="a Python 3.12 or later, for OCEAN")
    parser.add_argument("--cache", type=Path, default=Path("results/fitted/optimum"))
    parser.add_argument("--out", type=Path, default=Path("results/optimum.csv"))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    if asked.docs:
        return write_docs(asked.out, Path("docs/models.md"))
    torch.set_num_threads(1)
    python = make_environment(asked.envs / "oceanpy", REQUIREMENTS, python=asked.python)
    lines: list[tuple[Any, ...]] = []
    for data, model in product(asked.data.split(","), asked.models.split(",")):
        case = Case(data, model, asked.people)
        proofs = case.prove(asked.cache / f"{data}, {model}", python, asked.seconds)
        lines += case.compare(proofs)
        rows = pd.DataFrame(lines, columns=COLUMNS).round(6)
        rows.to_csv(asked.out, index=False)
    print(markdown(rows))


if __name__ == "__main__":
    main()
