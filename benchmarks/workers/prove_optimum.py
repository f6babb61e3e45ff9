"""The cheapest accepted row of each person of a task, proven by OCEAN (package oceanpy); run by optimum.py.

    python prove_optimum.py FOLDER SECONDS PEOPLE

FOLDER has `task.json` and `task.npz` (and `model.json`, if XGBoost's). OCEAN reads the trees, encodes the model and
solves; what a value of a feature costs is the task's. A line of `proofs.jsonl` is written for each person and cost.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from ocean import ConstraintProgrammingExplainer
from ocean.abc import Mapper
from ocean.feature import Feature
from ortools.sat.python import cp_model
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

COSTS = ("ours", "theirs")


def mapper_of(features, matrix):
    """The columns of the model's matrix as OCEAN knows them: a number has one, a category one for each of its codes."""
    columns, mapping = [], {}
    for feature in features:
        name, codes = feature["name"], feature["codes"]
        if codes:
            mapping[name] = Feature(Feature.Type.ONE_HOT_ENCODED, codes=codes)
        else:
            own = matrix[:, len(columns)]
            mapping[name] = Feature(Feature.Type.CONTINUOUS, levels=(own.min() - 0.5, own.max() + 0.5))
        columns += [(name, code) for code in codes or [""]]
    return Mapper(mapping, columns=pd.MultiIndex.from_tuples(columns))


def names_of(features):
    """The columns of the matrix by the names with which OCEAN finds them among XGBoost's."""
    return [f"{f['name']} {code}".strip() for f in features for code in f["codes"] or [""]]


class Priced(ConstraintProgrammingExplainer):
    """OCEAN's model with given costs: for each feature, the values that may be taken and what they cost."""

    def price(self, tables):
        """The tables of one person, {name: (values, costs)}; of the values between two thresholds, the cheapest."""
        self.cheapest = {}  # of each feature: the place of a choice -> its value and cost
        for name, feature in self.mapper.items():
            values, costs = tables[name]
            places = values.astype(int) if feature.is_one_hot_encoded else self.interval(feature, values)
            order = np.lexsort((values, costs))
            found, first = np.unique(places[order], return_index=True)
            self.cheapest[name] = {
                int(p): (float(values[i]), round(float(costs[i]) * self._obj_scale))
                for p, i in zip(found, order[first], strict=True)
            }

    @staticmethod
    def interval(feature, values):
        """Between which two thresholds a number lies: the model compares single-precision numbers."""
        return np.searchsorted(feature.levels[1:-1], values.astype(np.float32).astype(np.float64), side="left")

    def _add_objective(self, x, norm):
        total = 0
        for name, feature in self.mapper.items():
            choices = self.cheapest[name]
            if feature.is_one_hot_encoded:
                for place, code in enumerate(feature.codes):
                    if place in choices:
                        total += choices[place][1] * feature.xget(code)
                    else:
                        self.add_garbage(self.Add(feature.xget(code) == 0))
                continue
            most = max(cost for _, cost in choices.values())
            costs = [choices[p][1] if p in choices else most + 1 for p in range(len(feature.levels) - 1)]
            paid = feature.objvarget()
            paid.Proto().domain[:] = []
            paid.Proto().domain.extend(cp_model.Domain(0, most).FlattenedIntervals())  # others are not allowed
            self.add_garbage(self.AddElement(feature.xget(), costs, paid))
            total += paid
        return total

    def answer(self):
        """The values of the last solution."""
        out = []
        for name, feature in self.mapper.items():
            if feature.is_one_hot_encoded:
                place = [self.solver.Value(feature.xget(code)) for code in feature.codes].index(1)
            else:
                place = self.solver.Value(feature.xget())
            out.append(self.cheapest[name][int(place)][0])
        return out


def main():
    folder, seconds, people = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    task, arrays = json.loads((folder / "task.json").read_text()), np.load(folder / "task.npz")
    if (folder / "model.json").exists():
        model = XGBClassifier()
        model.load_model(folder / "model.json")
        model.get_booster().feature_names = names_of(task["features"])
    else:
        model = RandomForestClassifier(**task["settings"]).fit(arrays["matrix"], arrays["label"])
    np.save(folder / "verdicts.npy", model.predict(arrays["every"]))
    margin = round(task["margin"] * Priced.DEFAULT_SCORE_SCALE)  # of the sums of the trees' values
    explainer = Priced(model, mapper=mapper_of(task["features"], arrays["matrix"]), epsilon=margin)
    proofs = folder / "proofs.jsonl"
    known = [json.loads(line) for line in proofs.read_text().splitlines()] if proofs.exists() else []
    known = {(proof["person"], proof["cost"]) for proof in known}
    warnings.simplefilter("ignore")  # it says by warnings that there is no answer
    for person, x in enumerate(arrays["people"][:people]):
        for cost in (each for each in COSTS if (person, each) not in known):
            explainer.price({
                f["name"]: (arrays[f"values {person} {i}"], arrays[f"{cost} {person} {i}"])
                for i, f in enumerate(task["features"])
            })  # fmt: skip
            began = time.process_time()
            found = explainer.explain(x, y=task["favourable"], norm=1, max_time=seconds, num_workers=1, clean_up=False)
            proof = {"person": person, "cost": cost, "status": explainer.get_solving_status()}
            if found is not None:
                bound = explainer.solver.BestObjectiveBound() / explainer._obj_scale
                proof |= {"answer": explainer.answer(), "paid": explainer.get_objective_value(), "bound": bound}
                explainer.cleanup()
            proof["seconds"] = round(time.process_time() - began, 3)
            with proofs.open("a") as file:
                file.write(json.dumps(proof) + "\n")


if __name__ == "__main__":
    main()
