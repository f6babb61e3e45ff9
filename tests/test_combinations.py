"""Combinations of a few changes by hand, and the answers at closeness 1 beside all rows that a model could be asked."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
import toys
from asking import class_goals, make_query, run_dialogue
from sklearn.ensemble import RandomForestClassifier
from user_models import learned

from tdce import AtLeast
from tdce._core import Noise
from tdce.methods import DiffusionSearch
from tdce.methods.candidates import MIN_MARGIN, Candidates
from tdce.methods.combinations import MOST_FEATURES, _best_places, _values, combine
from tdce.methods.objective import Objective, measure_distance
from tdce.methods.protocol import Query, Task
from tdce.models.goals import Class, Goals

LEVELS = 10


def searched(odds, encoder, own: list[float], start: list[float]) -> tuple[Task, Query, Candidates]:
    """A row whose best candidate so far is `start`, by a model with these log odds."""
    some = 4 * torch.rand(64, len(own), generator=torch.Generator().manual_seed(0))
    some[:, encoder.space.num :] = torch.tensor(own)[encoder.space.num :]
    synthetic = torch.cat([torch.tensor([own, start]), some])
    model = lambda x: torch.stack([torch.zeros(len(x)), odds(x)], dim=1)  # noqa: E731
    task = replace(toys.task(encoder, model, synthetic), synthetic=synthetic)
    x = torch.tensor([own])
    query = make_query(task, x, class_goals(1, x))
    near = Candidates(task, query, Objective(task, query, Noise(x, 0), torch.ones(1, dtype=torch.long)))
    near.lacking = torch.zeros(1)
    near.add(torch.tensor([start]), torch.tensor([0]), torch.ones(1, dtype=torch.double))
    return task, query, near


def combined(*case, most: int = 3) -> Candidates:
    """The candidate so far, and what combinations add."""
    task, query, near = searched(*case)
    return near.union(run_dialogue(combine(task, query, near, most), task, query.x, query.goals))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_as_many_changes_are_combined_as_are_needed_and_no_more_than_are_asked_for(most):
    """Each of three categories adds 1, and so many of them suffice."""
    encoder, own, start = toys.encoder("a", b=2, c=2, d=2), [0.0, 1, 0, 1, 0, 1, 0], [16.0, 0, 1, 0, 1, 0, 1]

    def odds(x):
        return x[:, 2] + x[:, 4] + x[:, 6] - most + 0.5

    near = combined(odds, encoder, own, start, most=most)
    moved = encoder.space.moved(near.x, torch.tensor([own]).expand(len(near.x), -1)).sum(dim=1).tolist()
    assert moved[0] == 4
    assert len(moved) > 1
    assert set(moved[1:]) == {most}
    assert most == 1 or len(combined(odds, encoder, own, start, most=most - 1).x) == 1


def test_what_costs_more_than_the_best_so_far_is_not_asked_about():
    case = (lambda x: x.sum(dim=1) - 1), toys.encoder("ab"), [0.0, 0.0], [1.5, 0.0]
    task, query, near = searched(*case)
    request = next(combine(task, query, near, 1))
    cost = near.objective.cost(request.x[:, 0], request.at)
    assert len(cost) > 2
    assert cost.max() < near.cost[0] + 0.001  # numbers are rounded after they were chosen
    assert combined(*case).cost.min() < near.cost[0]


def test_the_same_row_with_other_goals_beside_it_gets_what_it_gets_alone():
    encoder, own = toys.encoder("ab"), [0.0, 0.0]
    task, _, _ = searched(lambda x: x.sum(dim=1) - 1, encoder, own, [8.0, 0.0])
    goals = (AtLeast(1, 0.6), AtLeast(1, 0.9))

    def found(which: list[int]) -> list[set[tuple[float, ...]]]:
        x, asked = torch.tensor([own] * len(which)), Goals(goals, torch.tensor(which))
        query = make_query(task, x, asked)
        near = Candidates(task, query, Objective(task, query, Noise(x, 0), torch.ones(len(x), dtype=torch.long)))
        near.lacking = torch.zeros(len(x))
        near.add(torch.tensor([[8.0, 0.0]]).repeat(len(x), 1), torch.arange(len(x)), torch.ones(len(x)).double())
        more = run_dialogue(combine(task, query, near, 3), task, x, asked)
        return [{tuple(row) for row in more.x[more.at == i].tolist()} for i in range(len(x))]

    low, high = found([0])[0], found([1])[0]
    assert low != high
    assert low
    assert high
    assert found([0, 1, 0, 1]) == [low, high, low, high]


def test_of_a_number_one_place_in_ten_is_tried_and_the_top_of_each_window():
    effect = torch.linspace(0, 1, 31)
    assert _best_places(effect).nonzero().squeeze(1).tolist() == [0, 10, 20, 30]
    effect[[3, 4, 26]] = torch.tensor([2.0, 3.0, 0.5])  # a window, and a hole
    assert _best_places(effect).nonzero().squeeze(1).tolist() == [0, 4, 10, 20, 30]
    assert _best_places(effect[:5]).nonzero().squeeze(1).tolist() == [0, 4]
    assert _best_places(effect[:1]).tolist() == [True]
    assert len(_best_places(effect[:0])) == 0


def test_a_narrow_window_of_one_number_is_found(monkeypatch):
    """In the middle of the range, two values wide, where no precedent and no exemplar leads."""
    frame = pd.DataFrame({"a": np.arange(1000) % 500, "b": np.arange(1000) // 2})
    frame["decision"] = np.where(frame["b"] >= 60, "yes", "no")

    def accepts(rows: pd.DataFrame) -> np.ndarray:
        yes = np.where((rows["b"] >= 60) | rows["a"].between(254, 255), 0.9, 0.1)
        return np.column_stack([1 - yes, yes])

    explainer, person = learned(accepts, frame), pd.DataFrame({"a": [230], "b": [2]})

    def answer() -> list[int]:
        return explainer.explain(person, closeness=1, safety=0).to_frame().loc[0, ["a", "b"]].tolist()

    assert answer() == [254, 2]
    monkeypatch.setattr(DiffusionSearch, "combined", 0)
    assert answer() == [230, 60]


def test_of_a_wide_table_the_features_with_the_largest_effects_are_combined():
    encoder = toys.encoder("", **{f"c{i}": 2 for i in range(40)})
    model = lambda x: torch.stack([torch.zeros(len(x)), 4 * x[:, -11::2].sum(dim=1) - 6], dim=1)  # noqa: E731
    half = torch.randint(0, 2, (256, 40), generator=torch.Generator().manual_seed(0))
    synthetic = torch.stack([1.0 - half, half], dim=2).flatten(1)
    task = replace(toys.task(encoder, model, synthetic), synthetic=synthetic)
    feature, values = _values(task, Class(1))
    assert len(feature.unique()) == MOST_FEATURES
    assert set(range(34, 40)) <= set(feature.tolist())
    assert len(values) == 2 * MOST_FEATURES


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Four numbers and a category, which decide together and not monotonically."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, LEVELS, 1_500) for name in "pqrs"})
    frame["t"] = rng.choice(list("xyz"), 1_500)
    score = np.sin(frame["p"]) + frame["q"] * (frame["t"] == "y") / 4 + np.abs(frame["r"] - 4) / 2 - frame["s"] / 5
    score += rng.normal(size=len(frame))
    frame["decision"] = np.where(score > score.quantile(0.8), "yes", "no")
    return frame


def test_at_closeness_one_hardly_anybody_pays_a_tenth_more_than_the_cheapest_of_all_rows(table, monkeypatch):
    """All rows that the model accepts are known; without combinations several people pay more, and nobody less."""
    names = list("pqrst")
    codes = lambda frame: frame[names].assign(t=frame["t"].map({"x": 0, "y": 1, "z": 2})).to_numpy(float)  # noqa: E731
    forest = RandomForestClassifier(10, max_depth=9, random_state=0).fit(codes(table), table["decision"])
    explainer = learned(lambda frame: forest.predict_proba(codes(frame)), table)
    every = pd.DataFrame(product(*[range(LEVELS)] * 4, "xyz"), columns=names)
    yes = forest.predict_proba(codes(every))[:, 1].clip(1e-9, 1 - 1e-9)
    encoder, task = explainer.fitted.encoder, explainer.fitted.task()
    accepted = encoder.read(every[np.log(yes / (1 - yes)) >= MIN_MARGIN])[:, None]
    refused = table[forest.predict(codes(table)) == "no"].drop(columns="decision").head(100)
    own = encoder.embed(encoder.read(refused)).float()
    best = [measure_distance(task, each.expand(len(accepted), -1), accepted, {}).min() for each in own]

    def paid() -> np.ndarray:
        return explainer.explain(refused, closeness=1, safety=0).explanation.distance[:, 0] / np.array(best)

    ratio = paid()
    assert ratio.min() >= 1 - 1e-5
    assert (ratio > 1.10).mean() <= 0.03
    alone = explainer.explain(refused.iloc[[7]], closeness=1, safety=0).explanation.raw
    assert (alone[0] == explainer.explain(refused, closeness=1, safety=0).explanation.raw[7]).all()
    monkeypatch.setattr(DiffusionSearch, "combined", 0)
    without = paid()
    assert (without >= ratio - 1e-6).all()
    assert (without > 1.10).mean() > 0.05


def test_above_the_default_nobody_gets_what_is_further_than_the_default_answer():
    """Of three candidates the third, which the default position did not know of, is the best, and further away."""
    x = torch.tensor([[0.0]])
    task = toys.task(toys.encoder("a"), lambda x: torch.zeros(len(x), 2), x)
    near = Candidates(task, make_query(task, x, class_goals(1, x)), Objective)  # only its sum is needed
    near.x, near.at, near.line = torch.tensor([[3.0], [4.0], [5.0]]), torch.zeros(3, dtype=torch.long), torch.arange(3)
    near.shortfall, near._changes = torch.zeros(3), torch.ones(3)
    near._cost, near._energy = torch.tensor([3.0, 4.0, 5.0]), torch.tensor([30.0, 40.0, 1.0])
    assert near.answer(0.9).tolist() == [[5.0]]
    assert near.answer(0.9, torch.tensor([0])).tolist() == [[3.0]]
    assert near.answer(0.9, torch.tensor([-1])).tolist() == [[5.0]]  # there is no default answer
