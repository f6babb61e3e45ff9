"""All rows that each person of a task can reach, enumerated by reachml; run by reachable.py.

    python reach.py FOLDER

FOLDER has `task.json`: the features that may change, how many values each has, and the people, each by the places of
their values. `reached/N.npz` gets the reachable rows of person N; those that are there are not enumerated again.
"""

import json
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
from reachml import ActionSet
from reachml.constraints import OneHotEncoding
from reachml.reachable_set import EnumeratedReachableSet

STEPS = {"any": 0, "increase": 1, "decrease": -1}


def stand_in_for_cplex():
    """The path of one-hot features imports CPLEX's names, and does not use them with another solver."""
    module, exceptions = types.ModuleType("cplex"), types.ModuleType("cplex.exceptions")
    module.Cplex = module.SparsePair = exceptions.CplexError = type(None)
    module.exceptions = exceptions
    sys.modules |= {"cplex": module, "cplex.exceptions": exceptions}


def columns_of(feature):
    """A number has one column, a category a flag for each of its values."""
    return [f"{feature['name']}_{k}" for k in range(feature["size"])] if feature["category"] else [feature["name"]]


def flags_of(features, person):
    out = []
    for feature, place in zip(features, person, strict=True):
        out += [float(place == k) for k in range(feature["size"])] if feature["category"] else [float(place)]
    return out


def places_of(features, rows):
    """(n, columns) -> (n, features)"""
    out, at = [], 0
    for feature in features:
        block = rows[:, at : at + len(columns_of(feature))]
        out.append(block.argmax(axis=1) if feature["category"] else block[:, 0])
        at += block.shape[1]
    return np.stack(out, axis=1)


def actions_of(features):
    """What may be done, in reachml's words: it takes the ranges from the smallest and the largest places."""
    names = [name for feature in features for name in columns_of(feature)]
    corners = [[0 for _ in features], [feature["size"] - 1 for feature in features]]
    actions = ActionSet(pd.DataFrame([flags_of(features, each) for each in corners], columns=names))
    for feature in features:
        if feature["category"]:
            actions.constraints.add(OneHotEncoding(names=columns_of(feature)))
            for k in feature["never"]:  # one may leave it
                actions[f"{feature['name']}_{k}"].step_direction = -1
        else:
            actions[feature["name"]].step_direction = STEPS[feature["direction"]]
    return actions


def main():
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    features = task["features"]
    actions = actions_of(features)
    stand_in_for_cplex()
    (folder / "reached").mkdir(exist_ok=True)
    for i, person in enumerate(task["people"]):
        path = folder / "reached" / f"{i}.npz"
        if not path.exists():
            reached = EnumeratedReachableSet(actions, np.array(flags_of(features, person)), solver="scip")
            reached.generate()
            assert reached.complete
            rows = np.unique(places_of(features, np.rint(reached.X)), axis=0).astype(np.int32)
            with (folder / "partial").open("wb") as file:
                np.savez_compressed(file, rows=rows)
            (folder / "partial").rename(path)


if __name__ == "__main__":
    main()
