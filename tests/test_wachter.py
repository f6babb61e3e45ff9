"""Wachter's search, and the judge that the searching methods share."""

import pytest
import torch
from tdce.methods.search import Closest, l1

from tdce.methods.interface import Task
from tdce.methods.wachter import Wachter, inverse_mad
from tdce.noise import Noise
from tdce.space import Space


def toy(space, weights, bias, mutable=None):
    """A task whose classifier says 1 where weights . x + bias > 0; nothing is learned and numbers have no grid."""
    w = torch.tensor(weights)

    def classifier(x):
        z = x @ w + bias
        return torch.stack([torch.zeros_like(z), z], dim=1)

    def settle(x):
        num, cat = space.split(x)
        return space.join(num, space.one_hot(cat))

    mutable = torch.ones(space.width, dtype=torch.bool) if mutable is None else torch.tensor(mutable)
    x = torch.randn(1001, space.width, generator=torch.Generator().manual_seed(0))
    return Task(space, classifier, None, mutable, x, torch.zeros(1001, dtype=torch.long), settle)


def run(method, task, x):
    x = torch.tensor(x)
    return method.fit(task).generate(x, torch.ones(len(x), dtype=torch.long), Noise(x, (0, 0)))


NUMBERS = Space(2, (), {"a": (0,), "b": (1,)})
CATEGORIES = Space(0, (3, 2), {"c": (0, 1, 2), "d": (3, 4)})


def test_the_inverse_median_absolute_deviation_by_hand():
    space = Space(3, (2,), {})
    x = torch.tensor([[0.0, 0, 7, 1, 0], [1, 0, 7, 1, 0], [2, 0, 7, 1, 0], [4, 0, 7, 1, 0], [10, 5, 7, 0, 1]])
    # median 2, deviations 2 1 0 2 8 -> 2;  0 0 0 0 5: the mean 1 instead;  constant: 1;  a changed category costs 1
    assert inverse_mad(x, space).tolist() == [0.5, 1, 1, 0.5, 0.5]


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


def test_only_the_category_that_helps_is_changed():
    # c = third is the only way to a yes; d does nothing
    task = toy(CATEGORIES, [0.0, 0.0, 4.0, 0.0, 0.0], -2.0)
    x_cf = run(Wachter(), task, [[1.0, 0, 0, 1, 0], [0, 1, 0, 0, 1]])
    assert x_cf.tolist() == [[0, 0, 1, 1, 0], [0, 0, 1, 0, 1]]


def test_rows_that_cannot_flip_come_back_settled():
    task = toy(Space(1, (2,), {"a": (0,), "c": (1, 2)}), [0.0, 0.0, 0.0], -1.0)
    x_cf = run(Wachter(steps=20), task, [[0.0, 1, 0]])
    assert torch.isfinite(x_cf).all()
    assert x_cf[0, 1:].sort().values.tolist() == [0, 1]


def test_the_closest_flip_is_kept_and_until_there_is_one_the_latest():
    task = toy(NUMBERS, [1.0, 0.0], -1.0, [True, False])
    closest = Closest(task, torch.zeros(2, 2), torch.tensor([1, 1]), l1)
    assert not closest.offer(torch.tensor([[[0.2, 9.0]], [[0.3, 9.0]]])).any()
    assert closest.x_cf[:, 0].tolist() == pytest.approx([0.2, 0.3])
    flips = closest.offer(torch.tensor([[[3.0, 9.0], [2.0, 9.0], [0.1, 9.0]], [[0.4, 9.0], [0.6, 9.0], [0.5, 9.0]]]))
    assert flips.tolist() == [[True, True, False], [False, False, False]]
    assert closest.found.tolist() == [True, False]
    closest.offer(torch.tensor([[[2.5, 9.0]], [[5.0, 9.0]]]))
    assert closest.x_cf.tolist() == [[2.0, 0.0], [5.0, 0.0]]  # 2.5 flips but is farther; the second column stays
