"""Wachter's search, and the judge that the searching methods share."""

import math
from dataclasses import replace

import pytest
import torch
import toys
from asking import class_goals, feasible_set, make_query, run_dialogue, run_method

from tdce.methods.baselines.descent import Closest, descend, l1
from tdce.methods.baselines.wachter import Wachter, inverse_mad
from tdce.methods.driver import Block, drive
from tdce.schema.encoder import Encoder
from tdce.schema.space import Space


def toy(encoder, weights, bias, mutable=None):
    """A task whose model says 1 where weights . x + bias > 0."""
    w = torch.tensor(weights)

    def classify(x):
        z = x @ w + bias
        return torch.stack([torch.zeros_like(z), z], dim=1)

    x = torch.randn(1001, encoder.space.width, generator=torch.Generator().manual_seed(0))
    return toys.task(encoder, classify, x, mutable)


def run(method, task, x):
    x = torch.tensor(x)
    return run_method(method.fit(task), x, class_goals(1, x))


NUMBERS = toys.encoder("ab")
CATEGORIES = toys.encoder("", c=3, d=2)


def test_the_inverse_median_absolute_deviation_by_hand():
    space = Space(4, (2,), {})
    x = torch.tensor(
        [[0.0, 0, 0, 7, 1, 0], [1, 0, 0, 7, 1, 0], [2, 0, 0, 7, 1, 0], [4, 0, 0, 7, 1, 0], [10, 5, 1.25, 7, 0, 1]]
    )
    # median 2, deviations 2 1 0 2 8 -> 2;  0 0 0 0 5: the mean 1 instead;  0 0 0 0 1.25: the mean 1/4;  constant: 1;
    # a changed category costs 1
    assert inverse_mad(x, space).tolist() == [0.5, 1, 4, 1, 0.5, 0.5]


def test_the_l1_distance_by_hand():
    assert l1(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 2.0]])).tolist() == [2 + 4]


def test_losses_and_distances_by_hand():
    """A probability of 1/4 misses 1 by 3/4; (1, -2) and (3, 1) are 2 and 3 apart."""
    surprise = torch.tensor([0.25, 1.0]).log().neg()
    assert Wachter(loss="squared")._miss(surprise).tolist() == pytest.approx([9 / 16, 0])
    assert Wachter()._miss(surprise).tolist() == pytest.approx([math.log(4), 0])
    a, b = torch.tensor([[1.0, -2.0], [0.0, 0.0]]), torch.tensor([[3.0, 1.0], [0.0, 1.0]])
    assert Wachter(distance="l2")._distance(a, b).tolist() == [4 + 9, 1]
    assert Wachter(scale_=torch.tensor([0.5, 2.0]))._distance(a, b).tolist() == [1 + 6, 2]


def test_a_descent_takes_all_its_steps_at_a_falling_rate_and_weighs_the_goal_by_the_verdicts():
    """Down a slope Adam steps by its rate: 0.1, 0.08, 0.06, 0.04, 0.02. The first row is refused, the second never."""
    offered, weights = [], []

    class Verdicts:
        x_cf = torch.zeros(2, 1)

        def offer(self, candidates):
            offered.append(candidates[:, 0, 0].tolist())
            return torch.tensor([[False], [True]])
            yield

    def loss(x, weight):
        weights.append(weight.tolist())
        return -3 * x[:, 0]

    talk = descend(torch.zeros(2, 1), lambda at: at, loss, Verdicts(), steps=5, rate=0.1, every=2, growth=2.0)
    assert list(talk) == []
    assert [at for at, _ in offered] == pytest.approx([0.18, 0.28, 0.30])  # after 2, 4 and 5 steps
    assert all(one == other for one, other in offered)
    assert weights == [[1, 1]] * 2 + [[2, 0.5]] * 2 + [[4, 0.25]]


@pytest.mark.parametrize("loss", ["cross_entropy", "squared"])
def test_l2_ends_at_the_foot_of_the_perpendicular(loss):
    # 4 a + 3 b = 5 is one away from the origin, at (0.8, 0.6)
    x_cf = run(Wachter(distance="l2", loss=loss), toy(NUMBERS, [4.0, 3.0], -5.0), [[0.0, 0.0]])
    assert x_cf[0].tolist() == pytest.approx([0.8, 0.6], abs=0.05)


def test_l1_moves_the_one_number_that_pays_most():
    # along b the border 4 a + b = 4 is four times as far as along a, and both columns have much the same deviation
    x_cf = run(Wachter(), toy(NUMBERS, [4.0, 1.0], -4.0), [[0.0, 0.0]])
    assert x_cf[0].tolist() == pytest.approx([1.0, 0.0], abs=0.05)


def test_an_immutable_number_leaves_the_work_to_the_other():
    x_cf = run(Wachter(), toy(NUMBERS, [4.0, 1.0], -4.0, [False, True]), [[0.25, 0.0]])
    assert x_cf[0, 0] == 0.25
    assert x_cf[0, 1].item() == pytest.approx(3.0, abs=0.1)


def test_categories_start_mixed_with_the_uniform_law():
    """Of three values and of two: 0.7 of their own, and 0.3 spread over all."""
    seen, task = [], toy(CATEGORIES, [0.0, 0.0, 4.0, 0.0, 0.0], -2.0)
    watched = replace(task, guide=lambda x: seen.append(x.detach()) or task.guide(x))
    run(Wachter(soften=0.3, steps=1), watched, [[1.0, 0, 0, 0, 1]])
    assert seen[0][0].tolist() == pytest.approx([0.8, 0.1, 0.1, 0.15, 0.85])


def test_only_the_category_that_helps_is_changed():
    # c = third is the only way to a yes; d does nothing
    task = toy(CATEGORIES, [0.0, 0.0, 4.0, 0.0, 0.0], -2.0)
    x_cf = run(Wachter(), task, [[1.0, 0, 0, 1, 0], [0, 1, 0, 0, 1]])
    assert x_cf.tolist() == [[0, 0, 1, 1, 0], [0, 0, 1, 0, 1]]


def test_rows_that_cannot_flip_come_back_settled():
    task = toy(toys.encoder("a", c=2), [0.0, 0.0, 0.0], -1.0)
    x_cf = run(Wachter(steps=10, rate=1.0), task, [[0.0, 1, 0]])
    assert torch.isfinite(x_cf).all()
    assert x_cf[0, 1:].sort().values.tolist() == [0, 1]


def test_the_closest_flip_is_kept_and_until_there_is_one_the_latest():
    task = toy(NUMBERS, [1.0, 0.0], -1.0, [True, False])
    feasible = feasible_set(task, torch.zeros(2, 2))
    goals = class_goals(1, feasible.x)
    closest = Closest(make_query(task, feasible.x, goals), l1)

    def offer(candidates):
        (flips,) = drive([closest.offer(torch.tensor(candidates))], [Block(feasible, goals)], task.oracle)
        return flips

    assert not offer([[[0.2, 9.0]], [[0.3, 9.0]]]).any()
    assert closest.x_cf[:, 0].tolist() == pytest.approx([0.2, 0.3])
    flips = offer([[[3.0, 9.0], [2.0, 9.0], [0.1, 9.0]], [[0.4, 9.0], [0.6, 9.0], [0.5, 9.0]]])
    assert flips.tolist() == [[True, True, False], [False, False, False]]
    assert closest.solved.tolist() == [True, False]
    assert closest.x_cf[:, 0].tolist() == [2.0, 0.5]
    offer([[[2.5, 9.0]], [[5.0, 9.0]]])
    assert closest.x_cf.tolist() == [[2.0, 0.0], [5.0, 0.0]]  # 2.5 flips but is farther; the second column stays


def test_a_candidate_counts_where_its_row_may_not_go():
    """Only a higher a is accepted, and a may only fall: the papers know of no such rule, `explain` keeps it."""
    a, b = NUMBERS.columns
    task = toy(Encoder((replace(a, column=replace(a.column, direction="decrease")), b)), [1.0, 0.0], -1.0)
    x = torch.zeros(1, 2)
    closest = Closest(make_query(task, x, class_goals(1, x)), l1)
    assert run_dialogue(closest.offer(torch.tensor([[[2.0, 0.0]]])), task, x, class_goals(1, x)).all()
    assert closest.x_cf.tolist() == [[2.0, 0.0]]
