"""FACE on graphs whose paths are known by hand, and against one Dijkstra for each query on the whole matrix."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import toys
from asking import class_goals, run_method
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist

from tdce.methods.baselines.face import FACE, Part
from tdce.methods.protocol import Task
from tdce.models.goals import Class, Goals


def plane(x, classify, mutable=(True, True)) -> Task:
    """Two numbers per row."""
    x = torch.as_tensor(x, dtype=torch.float32)
    logits = classify(x)
    return toys.task(toys.encoder("ab"), classify, x, mutable, logits.argmax(dim=1), range(logits.shape[1]))


def right_of(limit):
    """Class 1 to the right, surer the farther: p = 1 / (1 + exp(-4 (a - limit)))."""
    return lambda x: torch.stack([torch.zeros(len(x)), 4 * (x[:, 0] - limit)], dim=1)


def generate(method, task, x):
    x = torch.as_tensor(x, dtype=torch.float32)
    return run_method(method.fit(task), x, class_goals(1, x))


def test_a_dense_bridge_beats_a_shorter_jump_over_nothing():
    bridge = [[0.25 * i, 1.0] for i in range(-3, 13)]  # up and along, to (3, 1)
    ladder = [[0.0, 0.25], [0.0, 0.5], [0.0, 0.75]]
    island = [[2.8, -0.2]]  # nearer to the query than (3, 1) is, but nothing lies between
    task = plane([[0, 0], *ladder, *bridge, *island], right_of(2.6))
    x_cf = generate(FACE(epsilon=3.0), task, [[0, 0]])
    assert x_cf.tolist() == [[2.75, 1.0]]  # the first of the bridge with p = 1 / (1 + exp(-0.6)) = 0.65 >= 0.6
    near = torch.cdist(torch.zeros(1, 2), torch.tensor([[2.75, 1.0], [2.8, -0.2]]))[0]
    assert near[1] < near[0]


def test_the_answer_is_confident():
    line = [[0.5 * i, 0.0] for i in range(9)]
    task = plane(line, right_of(1.9))  # p = 0.60 at 2.0, 0.92 at 2.5
    assert generate(FACE(k=2, confidence=0.55), task, [[0, 0]]).tolist() == [[2.0, 0.0]]
    assert generate(FACE(k=2, confidence=0.9), task, [[0, 0]]).tolist() == [[2.5, 0.0]]


def test_immutable_values_select_the_rows():
    rows = [[a, b] for a in range(5) for b in (0.0, 1.0)] + [[1.5, 2.0]]
    task = replace(plane(rows, right_of(2.5)), mutable=torch.tensor([True, False]))
    x_cf = generate(FACE(), task, [[0.2, 7.0], [0.2, 0.0], [0.2, 1.0], [0.2, 2.0]])
    # no confident row has b = 2, no row at all has b = 7: these two queries come back
    np.testing.assert_allclose(x_cf, [[0.2, 7], [3, 0], [3, 1], [0.2, 2]])
    x = torch.tensor([[0.2, -0.0]])  # is b = 0 too
    assert FACE().fit(task).nearest_ends(x, class_goals(1, x)).tolist() == [[3, 0]]


def test_without_a_path_the_row_comes_back():
    task = plane([[0, 0], [1, 0], [10, 0], [11, 0]], right_of(5))
    assert generate(FACE(epsilon=1.5), task, [[0.4, 0]]).tolist() == [[pytest.approx(0.4), 0]]
    assert generate(FACE(epsilon=1.5), task, [[9.9, 0]]).tolist() == [[10, 0]]
    assert generate(FACE(epsilon=1.5), task, [[5, 0]]).tolist() == [[5, 0]]  # nobody within reach
    assert generate(FACE(k=2), task, [[0.4, 0]]).tolist() == [[10, 0]]  # 1 and 10 are neighbours of each other


@pytest.mark.parametrize(("epsilon", "end"), [(0.5, 0.25), (0.8, 2.0), (3.0, 2.0)])
def test_neighbours_are_those_within_epsilon(epsilon, end):
    """The query is at 0.25, the rows at 0, 0.75, 1.25 and 2: the last gap is 0.75."""
    task = plane([[0, 0], [0.75, 0], [1.25, 0], [2, 0]], right_of(1.7))
    assert generate(FACE(epsilon=epsilon), task, [[0.25, 0]]).tolist() == [[end, 0]]
    far = plane([[0, 0], [2, 0], [4, 0]], right_of(3))
    assert generate(FACE(epsilon=epsilon), far, [[0, 0]]).tolist() == [[4 if epsilon > 2 else 0, 0]]


def test_where_nothing_may_change_the_row_comes_back():
    task = plane([[0, 0], [1, 0]], right_of(0.5), mutable=(False, False))
    assert generate(FACE(), task, [[0, 0]]).tolist() == [[0, 0]]


def test_one_sure_row_is_enough_and_without_any_the_row_comes_back():
    assert generate(FACE(), plane([[0, 0], [1, 0]], right_of(0.5)), [[0.25, 0]]).tolist() == [[1, 0]]
    assert generate(FACE(), plane([[0, 0], [1, 0]], right_of(5)), [[0.25, 0]]).tolist() == [[0.25, 0]]


def test_twins_are_joined():
    task = plane([[0, 0]] * 3 + [[1, 0]] * 3, right_of(0.5))
    assert generate(FACE(k=3), task, [[0, 0]]).tolist() == [[1, 0]]


def test_a_weight_is_distance_times_log_of_one_plus_one_over_density():
    part = Part.of(np.zeros((100, 2)), np.arange(100), k=10, epsilon=None, features=2)
    density = 10 / (100 * np.pi) / 0.5**2  # k / (N eta_2 d^2), eta_2 = pi
    assert part.weight(np.array([0.5]))[0] == pytest.approx(0.5 * np.log(1 + 1 / density))
    part = Part.of(np.zeros((100, 2)), np.arange(100), k=10, epsilon=2.0, features=2)
    assert part.weight(np.array([1.0]))[0] == pytest.approx(np.log(1 + 1 / 4))  # (epsilon / d)^2 = 4
    assert (part.weight(np.array([0.0, 1e-200])) > 0).all()
    part = Part.of(np.zeros((100, 3)), np.arange(100), k=10, epsilon=None, features=3)
    density = 10 / (100 * 4 / 3 * np.pi) / 0.5**3  # a ball of radius 1 has the volume 4 pi / 3
    assert part.weight(np.array([0.5]))[0] == pytest.approx(0.5 * np.log(1 + 1 / density))


@pytest.mark.parametrize("method", [FACE(k=4), FACE(k=7, confidence=0.8), FACE(epsilon=0.6)])
def test_the_same_answers_as_one_dijkstra_for_each_query(method):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 2)).astype(np.float32).astype(float)
    queries = rng.normal(size=(40, 2)).astype(np.float32).astype(float)
    task = plane(rows, right_of(0.8))
    k, n = method.k, len(rows)
    r = method.epsilon**2 if method.epsilon else k / (n * np.pi)

    def edges(d):
        weight = d * np.log1p(d**2 / r)
        near = d <= method.epsilon if method.epsilon else d.argsort(axis=1).argsort(axis=1) < k
        return np.where(near, weight, 0)  # 0: no edge

    among = cdist(rows, rows)
    np.fill_diagonal(among, 1e9)
    inner = edges(among)
    p = task.guide(task.x).softmax(dim=1)[:, 1].numpy()
    expected = queries.copy()
    for i, query in enumerate(queries):
        whole = np.zeros((n + 1, n + 1))
        whole[:n, :n] = np.maximum(inner, inner.T)
        whole[n, :n] = edges(cdist([query], rows))[0]
        cost = np.where(p >= method.confidence, dijkstra(whole, indices=n)[:n], np.inf)
        if np.isfinite(cost.min()):
            expected[i] = rows[cost.argmin()]
    assert (expected != queries).any(axis=1).mean() > 0.5
    np.testing.assert_array_equal(generate(method, task, queries).numpy(), expected.astype(np.float32))


def test_the_cap_on_rows_is_seeded():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    task = plane(rows, right_of(0.5))
    one, two, other = (FACE(rows=50).fit(replace(task, seed=s)).graph_.nodes for s in (0, 0, 1))
    assert len(one) == 50
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_each_of_three_classes_is_reached():
    centres = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    rows = torch.cat([c + 0.3 * torch.randn(40, 2, generator=torch.Generator().manual_seed(0)) for c in centres])
    task = plane(rows, lambda x: -4 * torch.cdist(x, centres))
    x_cf = run_method(FACE().fit(task), rows[:2], Goals.of([Class(1), Class(2)]))
    assert task.guide(x_cf).argmax(dim=1).tolist() == [1, 2]
