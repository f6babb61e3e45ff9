"""The search along the features by hand: far moves, narrow bands, small sets; and goals that have two ends."""

from dataclasses import replace
from itertools import combinations, product
from math import inf, log

import numpy as np
import pandas as pd
import pytest
import torch
import toys
from asking import class_goals, make_query, run_dialogue
from torch import Tensor
from user_models import learned

from tdce import AtLeast, Between, Not, Range
from tdce._core import Noise
from tdce.methods.candidates import MIN_MARGIN, Candidates
from tdce.methods.coordinates import (
    BISECTIONS,
    MAX_POINTS,
    _all_values,
    _pairs,
    bracket,
    complete,
    enumerate_rows,
    exchange,
    single_changes,
    try_ends,
)
from tdce.methods.objective import Objective
from tdce.methods.search import MAX_CHANGES_COMBINED, group_reverts, single_reverts
from tdce.models.goals import Class, Goals
from tdce.models.model import Classify
from tdce.models.output_goals import AllGoals, ModelDecides
from tdce.models.outputs import Output
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.encoder import Encoder

RATE = Output("rate", spread=2.0, edges=(4.0, 6.0, 8.0))


def two_classes(odds) -> Classify:
    """A model of encoded rows whose log odds of the second class are this function."""
    return lambda x: torch.stack([torch.zeros(len(x)), odds(x)], dim=1)


def run(step, task, x: Tensor, goals: Goals | None = None) -> Candidates:
    """The candidates that a step of the search adds for all of these rows."""
    goals = class_goals(1, x) if goals is None else goals
    query = make_query(task, x, goals)
    candidates = Candidates(task, query, None)
    run_dialogue(step(task, query, candidates), task, x, goals)
    return candidates


def run_complete(task, x: Tensor, goals: Goals | None = None) -> Candidates:
    return run(lambda task, query, found: complete(task, query, torch.arange(len(x)), found), task, x, goals)


# The ends of numbers


def test_a_number_goes_to_its_ends_and_as_far_back_as_the_decision_holds():
    """From 5 on the model says yes; the second number is worth nothing, and the third is too weak."""
    task = toys.task(toys.encoder("abc"), two_classes(lambda x: x[:, 0] + x[:, 2] / 32 - 5), torch.zeros(1, 3))
    x = torch.tensor([[1.0, 2.0, 0.0], [-7.0, 0.0, 0.0]])
    found = run(lambda *given: try_ends(*given, torch.tensor([0, 1, 2])), task, x)
    assert set(found.at.tolist()) == {0, 1}
    assert torch.equal(found.x[:, 1:], x[found.at][:, 1:])
    assert (found.x[:, 0] >= 5 + MIN_MARGIN).all()
    nearest = torch.stack([found.x[found.at == i, 0].min() for i in (0, 1)])
    step = (16 - x[:, 0]) / 2**BISECTIONS  # of the last bisection
    assert (nearest <= 5 + MIN_MARGIN + step).all()


def test_ends_that_the_row_is_at_already_are_not_tried():
    task = toys.task(toys.encoder("a"), two_classes(lambda x: x[:, 0] - 99), torch.zeros(1, 1))
    x = torch.tensor([[16.0], [-16.0], [0.0]])
    query = make_query(task, x, class_goals(1, x))
    request = next(try_ends(task, query, Candidates(task, query, None), torch.tensor([0])))
    assert list(zip(request.at.tolist(), request.x.flatten().tolist(), strict=True)) == [
        (0, -16.0), (1, 16.0), (2, -16.0), (2, 16.0),
    ]  # fmt: skip


# One change for another


def exchanged(odds, start: list[float], mutable: list[bool] | None = None) -> list[list[float]]:
    """What a candidate for the row (0, first of four, first of two) is exchanged for, by this model."""
    encoder = toys.encoder("a", b=4, c=2)
    synthetic = torch.tensor([[2.0, 0, 0, 0, 1, 0, 1], [1.0, 0, 1, 0, 0, 1, 0], [0.0, 1, 0, 0, 0, 1, 0]])
    task = replace(toys.task(encoder, two_classes(odds), synthetic, mutable), synthetic=synthetic)
    x = torch.tensor([[0.0, 1, 0, 0, 0, 1, 0]])
    goals = class_goals(1, x)
    query = make_query(task, x, goals)
    best = Candidates(task, query, Objective(task, query, Noise(x, 0), torch.ones(1, dtype=torch.long)))
    best.add(torch.tensor([start]), torch.tensor([0]), torch.ones(1, dtype=torch.double))
    found = run_dialogue(exchange(task, query, best), task, x, goals)
    cost = best.objective.cost
    assert (cost(found.x, found.at) < cost(best.x, best.at)).all()
    return found.x.tolist()


def test_a_change_is_exchanged_for_a_nearer_value_of_the_same_number():
    found = exchanged(lambda x: x[:, 0] - 0.75, [2.0, 1, 0, 0, 0, 1, 0])
    assert {tuple(row[1:]) for row in found} == {(1, 0, 0, 0, 1, 0)}
    assert 1 <= min(row[0] for row in found) < 1.05  # synthetic rows with a yes have 1 and 2


def test_a_change_is_exchanged_for_a_cheaper_one_of_another_feature():
    """The third value of b suffices, and so does a from 0.75 on, which is a smaller change."""
    found = exchanged(lambda x: x[:, 0] - 0.75 + 9 * x[:, 3], [0.0, 0, 0, 1, 0, 1, 0])
    assert any(row[0] >= 0.75 and row[1:] == [1, 0, 0, 0, 1, 0] for row in found)


def test_what_is_immutable_or_refused_or_dearer_is_no_exchange():
    only_b = [False, True, True, True, True, False, False]
    assert exchanged(lambda x: x[:, 0] - 0.75 + 9 * x[:, 3], [0.0, 0, 0, 1, 0, 1, 0], only_b) == []
    assert exchanged(lambda x: 9 * x[:, 3] - 1, [0.0, 0, 0, 1, 0, 1, 0]) == []
    assert exchanged(lambda x: 9 * x[:, 3] + 9 * x[:, 6] - 1, [0.0, 0, 0, 1, 0, 1, 0]) == []


# Rows that no exemplar helps


def test_single_changes_are_places_of_the_range_and_every_category():
    task = toys.task(toys.encoder("ab", c=3), two_classes(lambda x: x[:, 0]), torch.zeros(1, 5))
    x = torch.tensor([[1.0, 2.0, 0.0, 1.0, 0.0]])
    query = make_query(task, x, class_goals(1, x))
    trials, feature = single_changes(task, query, x, torch.tensor([0]))
    numbers = [-16.0, -8.0, 0.0, 8.0, 16.0]
    expected = [[v, 2, 0, 1, 0] for v in numbers] + [[1, v, 0, 1, 0] for v in numbers]
    expected += [[1, 2, *row] for row in torch.eye(3).tolist()]
    assert trials[0].tolist() == expected
    assert feature.tolist() == [0] * 5 + [1] * 5 + [2] * 3


def test_only_what_is_free_changes():
    task = toys.task(toys.encoder("ab", c=3), two_classes(lambda x: x[:, 0]), torch.zeros(1, 5), [0, 1, 0, 0, 0])
    x = torch.tensor([[1.0, 2.0, 0.0, 1.0, 0.0]])
    query = make_query(task, x, class_goals(1, x))
    _, feature = single_changes(task, query, x, torch.tensor([0]))
    assert feature.tolist() == [1] * 5
    stuck = toys.task(toys.encoder("a"), two_classes(lambda x: x[:, 0] - 5), torch.zeros(1, 1), [0])
    assert len(run_complete(stuck, torch.zeros(1, 1)).at) == 0


def test_a_far_move_of_one_number_is_found_where_all_others_are_worthless():
    """A steep logistic model: nine numbers do next to nothing, the last one must nearly reach the end of its range."""
    steep = two_classes(lambda x: 20 * (x[:, 9] - 15.5) + 0.001 * x[:, :9].sum(dim=1))
    task, x = toys.task(toys.encoder("abcdefghij"), steep, torch.zeros(1, 10)), torch.zeros(3, 10)
    x[1, 9], x[2] = -16.0, 3.0
    found = run_complete(task, x)
    assert not found.unsolved().any()
    assert (found.x[:, 9] >= 15.5).all()


def test_several_changes_are_found_one_after_another():
    """Four numbers and a category are needed together, and two thirds of each number's range."""
    needed = two_classes(lambda x: x[:, :4].sum(dim=1) + 8 * x[:, 5] - 8 * x[:, 4] - 50)
    task = toys.task(toys.encoder("abde", c=3), needed, torch.zeros(1, 7))
    x = torch.zeros(70, 7)  # more than are worked on at a time
    x[:, 6] = 1.0
    found = run_complete(task, x)
    assert not found.unsolved().any()
    alone = run_complete(task, x[:1])
    assert torch.equal(found.x[found.at == 69], alone.x)


@pytest.mark.parametrize("centre", [-9.0, -3.3, 0.1, 7.77, 9.5])
def test_a_narrow_band_of_probability_is_reached_from_either_side(centre):
    """As narrow as a hundredth of what a single number does to the log odds. The other number is of no use."""
    task = toys.task(toys.encoder("ab"), two_classes(lambda x: x[:, 0]), torch.zeros(1, 2))
    low, high = (1 / (1 + np.exp(-each)) for each in (centre - 0.16, centre + 0.16))
    x = torch.tensor([[16.0, 0.0], [-16.0, 0.0]])
    found = run_complete(task, x, Goals.all(Between(1, float(low), float(high)), 2))
    assert not found.unsolved().any()
    assert ((found.x[:, 0] - centre).abs() < 0.16).all()


def test_pairs_of_changes_whose_effects_add_up_lead_into_a_band():
    """Categories alone: 5.4 to 5.6 is wanted, and of all combinations only 3.2 of b and 2.3 of c add up to that."""
    worth = torch.zeros(24)
    worth[[1, 2, 3, 5, 6, 7, 9, 10, 11]] = torch.tensor([1.0, 2.0, 9.0, 3.2, 7.0, 8.0, 2.3, 11.0, 12.0])
    encoder = toys.encoder("", **dict.fromkeys("abcdefg", 4))
    task = toys.task(encoder, two_classes(lambda x: x[:, :24] @ worth - 5), torch.zeros(1, 28))
    x = torch.eye(4)[:1].repeat(3, 7)
    low, high = (1 / (1 + np.exp(-each)) for each in (0.4, 0.6))
    goals = Goals.all(Between(1, float(low), float(high)), 3)
    found = run(lambda task, query, found: bracket(task, query, torch.arange(3), found), task, x, goals)
    assert not found.unsolved().any()
    assert any(row[5] and row[9] for row in found.x.tolist())
    tried = run(lambda task, query, found: bracket(task, query, torch.tensor([1]), found), task, x, goals)
    assert torch.equal(found.x[found.at == 1], tried.x)


def test_the_pairs_are_those_whose_sum_is_nearest_to_the_middle():
    """By hand: offsets of three single changes from the middle, of a row that is 4 below it."""
    task = toys.task(toys.encoder("ab"), two_classes(lambda x: x[:, 0]), torch.zeros(1, 2))
    x = torch.tensor([[[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]])
    offsets = torch.tensor([[-3.0, -1.5, -2.4]])  # worth 1, 2.5 and 1.6: together with the last, 2.6 and 4.1
    pairs = _pairs(task, x, torch.tensor([0, 0, 1]), torch.tensor([-4.0]), offsets)
    assert pairs.tolist() == [[[2.0, 3.0], [1.0, 3.0]]]


def test_a_band_of_a_hundredth_of_the_range_of_a_linear_model_is_reached():
    """All predictions of the table: 0 to 100 or so. Every row to a band of width 1, wherever it is."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(50, 15, 400).round(2), "b": rng.uniform(0, 30, 400).round(2), "c": rng.choice(["x", "y"], 400)}
    )

    def linear(frame):
        return (frame["a"] + 0.5 * frame["b"] + 3 * (frame["c"] == "y")).to_numpy(dtype=float)

    explainer, asked = learned(linear, frame, label=None, favourable=Range(low=60)), frame.head(12)
    for low in (20.0, 47.3, 88.0):
        found = explainer.explain(asked, target=Range(low, low + 1.0)).to_frame()
        assert set(found["status"]) <= {"valid", "already"}
        assert ((linear(found) >= low) & (linear(found) <= low + 1.0)).all()


# Sets that are small enough to try all of them


def small_set(accepts, frozen: tuple[str, ...] = ()) -> tuple:
    """A whole number from 0 to 5, a level and a category: 72 rows, and one of them as it is."""
    frame = pd.DataFrame({"n": [0, 1, 2, 5], "level": [0.0, 1.5, 4.0, 1.5], "c": ["x", "y", "z", "x"]})
    encoder = Encoder(
        (
            Numeric("n", 0, 5, step=1).fit(frame["n"].to_numpy(float)),
            Numeric("level", 0, 4, levels=(0.0, 1.5, 2.0, 4.0)).fit(frame["level"].to_numpy(float)),
            Categorical("c", ("x", "y", "z")).fit(np.array([0.0, 1, 2, 0])),
        )
    )
    x = encoder.embed(np.array([[1.0, 1.5, 0.0]])).float()

    def classify(x: Tensor) -> Tensor:
        yes = torch.tensor([accepts(*row) for row in encoder.unembed(x).tolist()])
        return torch.stack([~yes, yes], dim=1).float() * 4

    mutable = [bool(m) for m in ~encoder.space.mask(frozen)]
    return toys.task(encoder, classify, x, mutable), x


def test_all_feasible_rows_of_a_tiny_set_are_tried():
    tried = set()
    task, x = small_set(lambda *row: bool(tried.add(row)) or row == (4.0, 2.0, 2.0))
    query = make_query(task, x, class_goals(1, x))
    tried.clear()
    found = run(lambda task, query, found: enumerate_rows(task, query, torch.tensor([0]), found), task, x)
    everything = set(product(range(6), (0.0, 1.5, 2.0, 4.0), range(3)))
    assert tried == everything
    assert task.encoder.unembed(found.x).tolist() == [[4.0, 2.0, 2.0]]
    assert [len(values) for values in _all_values(task, query, torch.tensor([0]))] == [3]


def test_what_cannot_change_is_not_tried_in_other_values():
    tried = set()
    task, x = small_set(lambda *row: bool(tried.add(row)), frozen=("level",))
    run(lambda task, query, found: enumerate_rows(task, query, torch.tensor([0]), found), task, x)
    assert tried == set(product(range(6), (1.5,), range(3)))


def test_the_only_accepted_row_is_found_by_the_search_along_the_features():
    """Nothing leads there: the model is as sure of its no everywhere else."""
    for only in ((4.0, 2.0, 2.0), (0.0, 4.0, 1.0), (5.0, 1.5, 2.0)):
        task, x = small_set(lambda *row, only=only: row == only)
        assert task.encoder.unembed(run_complete(task, x).x).tolist() == [list(only)]


def test_a_number_without_a_grid_or_too_many_rows_are_not_enumerated():
    plain = toys.task(toys.encoder("a"), two_classes(lambda x: x[:, 0] - 99), torch.zeros(1, 1))
    x = torch.zeros(1, 1)
    assert _all_values(plain, make_query(plain, x, class_goals(1, x)), torch.tensor([0])) == [None]
    for sizes, points in (((16, 16, 16), MAX_POINTS), ((16, 16, 17), None)):
        encoder = toys.encoder("", **{f"c{i}": size for i, size in enumerate(sizes)})
        x = torch.cat([torch.eye(size)[:1] for size in sizes], dim=1)
        task = toys.task(encoder, two_classes(lambda x: -x[:, 0] - 1), x)
        (values,) = _all_values(task, make_query(task, x, class_goals(1, x)), torch.tensor([0]))
        assert (None if values is None else int(np.prod([len(each) for each in values]))) == points


# Changes that are reverted together


@pytest.mark.parametrize("count", range(1, MAX_CHANGES_COMBINED + 3))
def test_every_subset_of_changes_is_reverted_or_every_two_or_three_of_many(count):
    changed = torch.zeros(3, 14, dtype=torch.bool)
    places = [0, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13][:count]
    changed[1, places] = True
    changed[2, :2] = True  # only single ones
    which, reverted = group_reverts(changed)
    sizes = range(2, count) if count <= MAX_CHANGES_COMBINED else (2, 3)
    expected = [set(some) for size in sizes for some in combinations(places, size)] if count > 2 else []
    found = [set(row.nonzero().flatten().tolist()) for row in reverted]
    assert which.tolist() == [1] * len(expected)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    one, alone = single_reverts(changed)
    singles = [(1, (place,)) for place in places] if count > 1 else []
    singles += [(2, (0,)), (2, (1,))]
    assert [(i, tuple(row.nonzero().flatten().tolist())) for i, row in zip(one.tolist(), alone, strict=True)] == singles


def test_groups_of_several_candidates_keep_to_their_own_features():
    changed = torch.tensor([[1, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]]).bool()
    which, reverted = group_reverts(changed)
    assert (reverted <= changed[which]).all()
    assert which.bincount().tolist() == [3, 3, 10]  # 3 pairs of three; 6 pairs and 4 triples of four


# Goals with two ends


def test_the_width_of_a_goal_by_hand():
    assert Between(1, 0.4, 0.6).width == pytest.approx(2 * log(0.6 / 0.4))
    assert Between(1, 0.2, 0.5).width == pytest.approx(log(4))
    assert Range(5, 7, RATE).width == 1.0  # in spreads
    for unbounded in (
        Class(1), Not(1), AtLeast(1, 0.8), Between(1, 0.0, 0.6), Between(1, 0.4, 1.0), Range(5, output=RATE),
        Range(high=5, output=RATE), ModelDecides(Class(1), Output(classes=("no", "yes"), decides=True)),
    ):  # fmt: skip
        assert unbounded.width == inf
    both = AllGoals(((Class(1), 0, 2), (Range(5, 7, RATE), 2, 3)), Output(classes=("no", "yes")))
    assert both.width == 1.0
    assert Goals.of([Class(1), Range(5, 7, RATE), Class(1)]).width.tolist() == [inf, 1.0, inf]


def test_overshot_is_beyond_the_upper_end_by_hand():
    p = torch.tensor([[0.5, 0.5], [0.39, 0.61], [0.4, 0.6], [0.7, 0.3]], dtype=torch.double)
    assert Between(1, 0.4, 0.6).overshot(p).tolist() == [False, True, False, False]
    assert not Class(1).overshot(p).any()
    assert not AtLeast(1, 0.2).overshot(p).any()
    number = torch.tensor([[4.0], [5.0], [7.0], [7.5]], dtype=torch.double)
    assert Range(5, 7, RATE).overshot(number).tolist() == [False, False, False, True]
    assert not Range(5, output=RATE).overshot(number).any()
    assert Range(high=5, output=RATE).overshot(number).tolist() == [False, False, True, True]
    both = AllGoals(((Between(1, 0.1, 0.9), 0, 2), (Range(5, 7, RATE), 2, 3)), Output(classes=("no", "yes")))
    assert both.overshot(torch.cat([p, number], dim=1)).tolist() == [False, False, False, True]  # of the narrower band
    goals = Goals.of([Class(1), Between(1, 0.4, 0.6), Between(1, 0.4, 0.6), Class(1)])
    assert goals.overshot(p).tolist() == [False, True, False, False]


def test_a_candidate_in_a_narrow_band_needs_a_tenth_of_its_width_as_margin():
    x = torch.zeros(3, 1)
    goals = Goals.of([Class(1), Between(1, 0.499, 0.501), Between(1, 0.2, 0.8)])
    task = toys.task(toys.encoder("a"), two_classes(lambda x: x[:, 0] - 9), x)
    width = 2 * log(0.501 / 0.499)
    found = Candidates(task, make_query(task, x, goals), None).min_margin.tolist()
    assert found == pytest.approx([MIN_MARGIN, 0.1 * width, MIN_MARGIN])


def test_small_sets_of_several_rows_are_tried_whole_and_larger_ones_are_left():
    """Of the first row four others are feasible (b has three values, c two), of the second one, more than asked for."""
    encoder = toys.encoder("", b=3, c=2)
    task = toys.task(encoder, two_classes(lambda x: 9 * x[:, 2] + 9 * x[:, 4] - 5), torch.zeros(1, 5))
    x = torch.tensor([[1.0, 0, 0, 1, 0], [0.0, 1, 0, 1, 0]])
    for most, rows in ((6, [0, 0, 0, 0, 1, 1, 1, 1]), (5, [])):
        found = run(
            lambda task, query, found, most=most: enumerate_rows(task, query, torch.arange(2), found, most), task, x
        )
        assert sorted(found.at.tolist()) == rows
        assert len({(int(at), *row) for at, row in zip(found.at, found.x.tolist(), strict=True)}) == len(rows)


def test_the_default_search_finds_the_cheapest_of_a_small_set():
    """The model accepts the category z and, of this person alone, one odd value of a: nothing leads there."""

    def accepts(frame: pd.DataFrame) -> np.ndarray:
        yes = (frame["b"] == "z") | ((frame["a"] == 33) & (frame["w"] == 0.5))
        return np.column_stack([np.where(yes, 0.1, 0.9), np.where(yes, 0.9, 0.1)])

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 100, 600), "b": rng.choice(list("xyz"), 600), "w": rng.normal(size=600)})
    frame["decision"] = np.where(frame["b"] == "z", "yes", "no")
    row = pd.DataFrame({"a": [29], "b": ["y"], "w": [0.5]})
    explainer = learned(accepts, frame)
    answer = explainer.explain(row, closeness=1, safety=0, immutable=["w"]).to_frame()
    assert (answer.loc[0, "a"], answer.loc[0, "b"]) == (33, "y")
