"""How near the answers are to the cheapest possible ones, which a solver finds and proves optimal.

    python benchmarks/optimum.py [--data german,adult] [--models forest,boosting,histogram] [--trees 10,30,100]
                                 [--rows 20] [--seconds 40] [--only optimum|ours] [--out results/optimum.csv]

For refused rows and ensembles of trees, CP-SAT (ortools) finds the row with the smallest cost (`methods/objective.py`)
among all rows that the schema allows and that the model accepts with the margin that the method asks for. The values of
a feature that no split of any tree separates are one choice, represented by the cheapest of them. A choice per feature
puts the row into one leaf of each tree, and the leaves' values must add up to a sufficient score. Leaf values are
rounded in favour of acceptance, so that the proven bound holds; the model itself then decides on the answer, and the
method's own code computes its cost. Laws, user rules and costs are left out. Results are written as they are computed;
those in the file are not computed again: remove the file after a change of the cost, and the method's answers in it
after a change of the method.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from ortools.sat.python import cp_model
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

import tdce
from tdce._core import Flags, Floats, Positions
from tdce.datasets import Dataset
from tdce.methods.candidates import MIN_MARGIN
from tdce.methods.objective import change_costs, feature_positions
from tdce.models import Class, Goals
from tdce.schema import Categorical, Encoder, FeasibleSet, Numeric, Schema

MODELS = {
    "forest": lambda trees: RandomForestClassifier(trees, max_depth=5, random_state=0),
    "boosting": lambda trees: GradientBoostingClassifier(n_estimators=trees, max_depth=3, random_state=0),
    "histogram": lambda trees: HistGradientBoostingClassifier(max_iter=trees, early_stopping=False, random_state=0),
}
POSITIONS = {"closeness 1": 1.0, "default": None}
COST_UNIT = 1e-6  # a solver's numbers are whole
SCORE_UNITS = (1e-7, 1e-9)  # the second, which takes longer, if the first was too coarse to decide
SAME = 1.001  # a ratio up to this is the optimum
COLUMNS = ["data", "model", "trees", "row", "what", "value"]


class Tree(NamedTuple):
    column: Positions  # (nodes,) of the model's matrix
    threshold: Floats  # (nodes,) up to it a value goes left
    left: Positions  # (nodes,) -1: a leaf
    right: Positions
    value: Floats  # (nodes,) what a leaf adds to the score


@dataclass(frozen=True)
class Ensemble:
    """A model of trees: it accepts where `base` and the leaves add up to at least `least`."""

    trees: tuple[Tree, ...]
    base: float
    least: float
    dtype: type  # in which it compares numbers with thresholds

    @classmethod
    def of(cls, model: Any, favourable: int) -> Ensemble:
        """Read off scikit-learn's trees, of two classes; a forest's score is a probability, others are log odds."""
        sign = 1.0 if favourable == 1 else -1.0
        if isinstance(model, RandomForestClassifier):
            share = 1 / len(model.estimators_)
            trees = [_tree(each.tree_, each.tree_.value[:, 0, favourable] * share) for each in model.estimators_]
            return cls(tuple(trees), 0.0, 1 / (1 + math.exp(-MIN_MARGIN)), np.float32)
        if isinstance(model, GradientBoostingClassifier):
            rate, prior = sign * model.learning_rate, model.init_.class_prior_
            trees = [_tree(each.tree_, each.tree_.value[:, 0, 0] * rate) for each in model.estimators_[:, 0]]
            return cls(tuple(trees), sign * math.log(prior[1] / prior[0]), MIN_MARGIN, np.float32)
        trees = [_histogram_tree(each[0].nodes, sign) for each in model._predictors]
        return cls(tuple(trees), sign * model._baseline_prediction.item(), MIN_MARGIN, np.float64)

    def score(self, matrix: Floats) -> Floats:
        """(n,) of rows of the model's matrix."""
        total = np.full(len(matrix), self.base)
        for tree in self.trees:
            at = np.zeros(len(matrix), dtype=np.int64)
            while (tree.left[at] >= 0).any():
                own = matrix[np.arange(len(at)), tree.column[at]].astype(self.dtype)
                down = np.where(own <= tree.threshold[at], tree.left[at], tree.right[at])
                at = np.where(tree.left[at] >= 0, down, at)
            total += tree.value[at]
        return total

    def thresholds(self, column: int) -> Floats:
        """All at which any tree splits this column."""
        return np.unique(np.concatenate([t.threshold[(t.left >= 0) & (t.column == column)] for t in self.trees]))


def _tree(tree: Any, value: Floats) -> Tree:
    column, left = tree.feature.astype(np.int64), tree.children_left.astype(np.int64)
    return Tree(column, tree.threshold, left, tree.children_right.astype(np.int64), value)


def _histogram_tree(nodes: Any, sign: float) -> Tree:
    leaf = nodes["is_leaf"].astype(bool)
    left = np.where(leaf, -1, nodes["left"].astype(np.int64))
    column, right = nodes["feature_idx"].astype(np.int64), nodes["right"].astype(np.int64)
    return Tree(column, nodes["num_threshold"], left, right, sign * nodes["value"])


class Choice(NamedTuple):
    """The possible values of one feature of one row; the cheapest of each group that the model does not separate."""

    raw: Floats  # (choices,)
    cost: Floats  # (choices,)
    matrix: Floats  # (choices, columns) in the model's matrix


class Found(NamedTuple):
    raw: Floats | None  # (features,) the best row
    bound: float  # no row is cheaper
    proven: bool
    seconds: float


@dataclass(frozen=True)
class Setting:
    """A model of a table, and its encoder."""

    encoder: Encoder
    pipeline: Pipeline
    favourable: int  # the number of its class in the model

    @property
    def ensemble(self) -> Ensemble:
        return Ensemble.of(self.pipeline[-1], self.favourable)

    def columns(self) -> list[range]:
        """Where each feature is in the model's matrix: numbers first, then a block per category column."""
        out, numbers = {}, [f.name for f in self.encoder.schema if f.kind == "numeric"]
        end = len(numbers)
        for f in self.encoder.schema:
            if isinstance(f, Categorical):
                out[f.name] = range(end, end + len(f.categories))
                end += len(f.categories)
        return [out.get(f.name) or range(numbers.index(f.name), numbers.index(f.name) + 1) for f in self.encoder.schema]

    def accepts(self, raw: Floats, like: pd.DataFrame) -> Flags:
        """(n,) whether the model itself says yes, with the method's margin."""
        p = torch.from_numpy(self.pipeline.predict_proba(self.encoder.write(raw, like)))
        goals = Goals.all(Class(self.favourable), len(raw))
        return (goals.met(p) & (goals.margin(p) >= MIN_MARGIN)).numpy()

    def cost(self, own: Floats, raw: Floats) -> Floats:
        """(n, features) by the method's own code."""
        space, x, x_cf = self.encoder.space, *(self.encoder.embed(each).float() for each in (own, raw))
        return (
            change_costs(
                space.moved(x, x_cf), feature_positions(self.encoder, x), feature_positions(self.encoder, x_cf)
            )
            .double()
            .numpy()
        )

    def choices(self, feasible: FeasibleSet) -> list[Choice]:
        """The choices of the one row of a feasible set."""
        ensemble, out = self.ensemble, []
        for i, (learned, columns) in enumerate(zip(feasible.columns, self.columns(), strict=True)):
            own = feasible.own[:, i]
            values = own if feasible.frozen[i] else np.concatenate([own, _proposed(learned, own[0])])
            rows = np.repeat(feasible.own, len(values), axis=0)
            rows[:, i] = values
            cost = self.cost(feasible.own.repeat(len(values), axis=0), rows)[:, i]
            matrix = _in_matrix(learned.column, values)
            cells = [
                np.searchsorted(ensemble.thresholds(c), m.astype(ensemble.dtype))
                for c, m in zip(columns, matrix.T, strict=True)
            ]
            order = np.lexsort((np.arange(len(values)), cost))
            _, first = np.unique(np.stack(cells, axis=1)[order], axis=0, return_index=True)
            kept = order[np.sort(first)]
            out.append(Choice(values[kept], cost[kept], matrix[kept]))
        return out

    def cheapest(self, feasible: FeasibleSet, like: pd.DataFrame, seconds: float) -> Found:
        """The best row for the one row of a feasible set. If the model itself refuses it, by less than the rounding,
        only the bound is proven."""
        choices = self.choices(feasible)
        for unit in SCORE_UNITS:
            found = solve(choices, self.columns(), self.ensemble, seconds, unit)
            if found.raw is None or self.accepts(found.raw[None], like).all():
                return found
        return found._replace(raw=None, proven=False)


def _proposed(learned: Any, own: float) -> Floats:
    """All values that may be proposed for a row with this one."""
    column = learned.column
    values = np.arange(len(column.categories), dtype=np.float64) if isinstance(column, Categorical) else _grid(column)
    return values[learned.allowed_values(np.full(len(values), own)).allows(values)]


def _grid(column: Numeric) -> Floats:
    if column.levels is not None:
        return np.array(sorted(column.levels))
    assert column.step is not None, f"{column.name!r} has no grid: its values cannot be listed"
    return np.unique(column.round(np.arange(column.low, column.high + column.step, column.step)))


def _in_matrix(column: Any, values: Floats) -> Floats:
    """(n,) -> (n, columns): a number as it is, a category as a flag for each; missing has none."""
    if not isinstance(column, Categorical):
        return values[:, None]
    return (values[:, None] == np.arange(len(column.categories))).astype(np.float64)


def solve(
    choices: Sequence[Choice], columns: Sequence[range], ensemble: Ensemble, seconds: float, unit: float
) -> Found:
    """One choice per feature at the least cost, with which the ensemble accepts."""
    model = cp_model.CpModel()
    picked = [[model.new_bool_var(f"x{i}_{k}") for k in range(len(c.raw))] for i, c in enumerate(choices)]
    for each in picked:
        model.add_exactly_one(each)
    feature = {column: i for i, own in enumerate(columns) for column in own}
    sides: dict[tuple[int, bytes], Any] = {}

    def side(i: int, goes_left: Flags) -> Any:
        """Whether the choice of a feature is one of these."""
        key = i, goes_left.tobytes()
        if key not in sides:
            inside = [x for x, yes in zip(picked[i], goes_left, strict=True) if yes]
            outside = [x for x, yes in zip(picked[i], goes_left, strict=True) if not yes]
            if len(inside) == 1:
                sides[key] = inside[0]
            elif len(outside) == 1:
                sides[key] = outside[0].negated()
            else:
                sides[key] = model.new_bool_var("")
                model.add_bool_or([*inside, sides[key].negated()])
                model.add_bool_or([*outside, sides[key]])
                for some, literal in ((inside, sides[key]), (outside, sides[key].negated())):
                    for x in some:
                        model.add_implication(x, literal)
        return sides[key]

    def leaves(tree: Tree, node: int, reach: dict[int, Flags]) -> list[tuple[Any, float]]:
        """The leaves below a node that can be reached, as variables, and their values."""
        if tree.left[node] < 0:
            return [(model.new_bool_var(""), float(tree.value[node]))]
        column = int(tree.column[node])
        i = feature[column]
        goes_left = choices[i].matrix[:, column - columns[i].start].astype(ensemble.dtype) <= tree.threshold[node]
        before = reach.get(i, np.ones(len(goes_left), dtype=bool))
        parts = [
            leaves(tree, int(child), {**reach, i: before & goes}) if (before & goes).any() else []
            for child, goes in ((tree.left[node], goes_left), (tree.right[node], ~goes_left))
        ]
        if all(parts):
            literal = side(i, goes_left)
            model.add_at_most_one([literal.negated(), *(x for x, _ in parts[0])])
            model.add_at_most_one([literal, *(x for x, _ in parts[1])])
        return parts[0] + parts[1]

    score = 0
    for tree in ensemble.trees:
        reached = leaves(tree, 0, {})
        model.add_exactly_one([x for x, _ in reached])
        lowest = min(value for _, value in reached)
        score += math.ceil(lowest / unit)
        score += sum(math.ceil((value - lowest) / unit) * x for x, value in reached if value > lowest)
    model.add(score >= math.floor((ensemble.least - ensemble.base) / unit))
    model.minimize(
        sum(
            round(c / COST_UNIT) * x
            for each, xs in zip(choices, picked, strict=True)
            for c, x in zip(each.cost, xs, strict=True)
        )
    )
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    status = solver.solve(model)
    bound, proven = solver.best_objective_bound * COST_UNIT, status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Found(None, math.inf if proven else bound, proven, solver.wall_time)
    raw = [each.raw[[solver.value(x) for x in xs].index(1)] for each, xs in zip(choices, picked, strict=True)]
    return Found(np.array(raw), bound, proven, solver.wall_time)


@dataclass(frozen=True)
class Case:
    """One table and one model of it."""

    data: Dataset
    setting: Setting

    @classmethod
    def of(cls, name: str, model: str, trees: int) -> Case:
        data = tdce.load(name)
        data = replace(data, schema=Schema(data.schema.features))
        train = data.part("train")
        pipeline = pipeline_of(data.schema, MODELS[model](trees)).fit(train[list(data.schema.names)], train[data.label])
        favourable = list(pipeline.classes_).index(data.favourable)
        return cls(data, Setting(Encoder.fit(train, data.schema), pipeline, favourable))

    def refused(self, count: int) -> pd.DataFrame:
        frame = pd.concat([self.data.part("validation"), self.data.part("test")])[list(self.data.schema.names)]
        return frame[self.setting.pipeline.predict(frame) != self.data.favourable].head(count)

    def optima(self, count: int, seconds: float, known: set[int]) -> Iterator[tuple[int, dict[str, float]]]:
        """Of each refused row that is not known yet: the cost of the best row, the bound, and whether it is proven."""
        rows = self.refused(count)
        feasible = FeasibleSet.of(self.setting.encoder, rows)
        for i in (i for i in range(len(rows)) if i not in known):
            one, own = feasible.take(np.array([i])), feasible.own[[i]]
            found, cost = self.setting.cheapest(one, rows.iloc[[i]], seconds), math.inf
            if found.raw is not None:
                raw = found.raw[None]
                assert one.contains(raw).all(), f"row {i}: the solver's answer is not feasible"
                cost = float(self.setting.cost(own, raw).sum())
                wrong = found.proven and abs(cost - found.bound) > 1e-4
                assert not wrong, f"row {i}: it costs {cost}, the solver says {found.bound}"
            yield i, {"optimum": cost, "bound": found.bound, "proven": float(found.proven), "seconds": found.seconds}

    def ours(self, count: int) -> Iterator[tuple[str, Floats]]:
        """The costs of the method's answers; infinite where none is valid."""
        rows, train = self.refused(count), self.data.part("train")
        explainer = tdce.Explainer(model=self.setting.pipeline, progress="silent")
        explainer.fit(train, label=self.data.label, favourable=self.data.favourable, schema=self.data.schema)
        own = self.setting.encoder.read(rows)
        for name, closeness in POSITIONS.items():
            frame = explainer.explain(rows, closeness=closeness).to_frame()
            raw = self.setting.encoder.read(frame)
            cost = self.setting.cost(own, raw).sum(axis=1)
            yield name, np.where(frame["status"] == "valid", cost, np.inf)


def pipeline_of(schema: Schema, model: Any) -> Pipeline:
    """Numbers as they are, then one flag per category, in the schema's order."""
    numbers = [f.name for f in schema if not isinstance(f, Categorical)]
    words = [f for f in schema if isinstance(f, Categorical)]
    flags = OneHotEncoder(categories=[list(f.categories) for f in words], handle_unknown="ignore", sparse_output=False)
    parts = ColumnTransformer([("numbers", "passthrough", numbers), ("flags", flags, [f.name for f in words])])
    return make_pipeline(parts, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="german,adult")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--trees", default="10,30,100")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--only", choices=["optimum", "ours"])
    parser.add_argument("--out", type=Path, default=Path("results/optimum.csv"))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = pd.read_csv(asked.out) if asked.out.exists() else pd.DataFrame(columns=COLUMNS)
    for data, model, trees in product(asked.data.split(","), asked.models.split(","), map(int, asked.trees.split(","))):
        here = rows[(rows["data"] == data) & (rows["model"] == model) & (rows["trees"] == trees)]
        case = Case.of(data, model, trees)
        for row, values in measured(case, asked, here):
            new = [(data, model, trees, row, what, value) for what, value in values.items()]
            rows = pd.concat([rows, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True)
            rows.to_csv(asked.out, index=False)
    print(markdown(rows))


def measured(case: Case, asked: argparse.Namespace, here: pd.DataFrame) -> Iterator[tuple[int, dict[str, float]]]:
    """What is not known yet of one table and model, row by row."""
    if asked.only != "ours":
        yield from case.optima(asked.rows, asked.seconds, set(here.loc[here["what"] == "bound", "row"]))
    if asked.only != "optimum" and not set(POSITIONS) <= set(here["what"]):
        for name, cost in case.ours(asked.rows):
            yield from ((i, {name: value}) for i, value in enumerate(cost.tolist()))


def markdown(rows: pd.DataFrame) -> str:
    """The ratio of the method's cost to the optimum, where it is proven; elsewhere to the bound."""
    head = ["data", "model", "trees", "rows", "proven", "seconds"]
    for name in POSITIONS:
        head += [f"{name}: median", "95 %", "optimal", "unproven, to the bound"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for (data, model, trees), part in rows.groupby(["data", "model", "trees"], sort=False):
        wide = part.pivot_table(index="row", columns="what", values="value", aggfunc="last")
        proven = wide["proven"] == 1
        cells = [data, model, trees, len(wide), f"{proven.mean():.2f}", f"{wide['seconds'].median():.1f}"]
        for name in POSITIONS:
            cells += ratios(wide, proven, name) if name in wide else [""] * 4
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def ratios(wide: pd.DataFrame, proven: pd.Series[bool], name: str) -> list[str]:
    ratio = (wide[name] / wide["optimum"])[proven & np.isfinite(wide["optimum"])]
    rest = (wide[name] / wide["bound"])[~proven]
    return [
        f"{ratio.median():.3f}", f"{ratio.quantile(0.95):.3f}", f"{(ratio <= SAME).mean():.2f}",
        f"{rest.median():.3f}" if len(rest) else "",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
