"""Each metric on a handful of rows worked by hand."""

import numpy as np
import pytest
import torch

from tdce import metrics
from tdce.space import Space


def t(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def test_l2_is_the_mean_squared_distance():
    assert metrics.l2(t([0, 0], [1, 1]), t([3, 4], [1, 3])) == pytest.approx((25 + 4) / 2)


def test_diversity_is_half_the_mean_pairwise_distance():
    assert metrics.diversity(t([0, 0], [3, 0], [0, 4])) == pytest.approx(12 / 6)  # 3, 4, 5 apart
    assert metrics.diversity(t([1, 2])) == 0


def test_instability_divides_the_answers_distance_by_one_plus_the_questions():
    # answers 5 apart for questions 1 apart: 5 / 2; answers 0 apart: 0
    found = metrics.instability(t([0.0], [7.0]), t([1.0], [9.0]), t([10.0], [3.0]), t([15.0], [3.0]))
    assert found == pytest.approx((2.5 + 0) / 2)


def test_js_is_the_mean_over_categories_of_the_divergence_from_the_target_class():
    space = Space(1, (2, 2), {})
    rows = t([9, 1, 0, 1, 0], [9, 1, 0, 0, 1])  # first category all a; second half and half
    target = t([0, 0, 1, 1, 0], [0, 0, 1, 0, 1])  # first category all b; second half and half
    assert metrics.js(space, rows, target) == pytest.approx((1 + 0) / 2)
    assert metrics.js(Space(1, (), {}), t([1.0]), t([2.0])) == 0


def test_im1_is_the_ratio_of_two_reconstruction_errors():
    found = metrics.im1(t([3, 4], [1, 0]), lambda x: x - 1, lambda x: x - t([2, 0]))
    np.testing.assert_allclose(found, [2 / 4, 2 / 4], rtol=1e-5)  # |(1, 1)|^2 over |(2, 0)|^2


def test_im2_is_the_gap_of_two_reconstructions_over_the_rows_size():
    found = metrics.im2(t([3, -4]), lambda x: x + 1, lambda x: x - 1)
    np.testing.assert_allclose(found, [8 / 7], rtol=1e-5)  # |(2, 2)|^2 over 3 + 4


def test_validity_is_a_share():
    assert metrics.validity(np.array([True, True, False, True])) == 0.75


def test_sparsity_counts_changed_features_and_missing_equals_missing():
    raw = np.array([[1.0, np.nan, 3.0], [1.0, 2.0, np.nan]])
    changed = np.array([[1.0, np.nan, 4.0], [2.0, 2.0, 5.0]])
    assert metrics.sparsity(raw, changed) == (1 + 2) / 2


def test_realism_is_the_distance_to_the_nearest_target_row():
    assert metrics.realism(t([0, 0], [10, 0]), t([3, 4], [10, 1])) == pytest.approx((5 + 1) / 2)


def test_copies_are_rows_that_are_in_the_data_to_the_letter():
    rows = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert metrics.copies(np.array([[1.0, np.nan], [2.0, 4.0]]), rows) == 0.5
    assert metrics.copies(np.array([[-0.0, 1.0]]), np.array([[0.0, 1.0]])) == 1.0


def test_nearest_finds_what_a_loop_finds():
    points, rows = torch.randn(300, 3, dtype=torch.float64), torch.randn(50, 3, dtype=torch.float64)
    distance, index = metrics.nearest(points, rows, k=2)
    for i in (0, 255, 299):
        by_hand = [(float((points[i] - row).norm()), j) for j, row in enumerate(rows)]
        assert index[i].tolist() == [j for _, j in sorted(by_hand)[:2]]
        np.testing.assert_allclose(distance[i], [d for d, _ in sorted(by_hand)[:2]])
