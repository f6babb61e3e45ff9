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
    found = metrics.instability(t([2.0], [7.0]), t([3.0], [9.0]), t([10.0], [3.0]), t([15.0], [3.0]))
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
    raw = np.array([[1.0, np.nan, 3.0, 7.0], [1.0, 2.0, np.nan, 7.0]])
    changed = np.array([[1.0, np.nan, 4.0, 7.0], [2.0, 2.0, 5.0, 7.0]])
    assert metrics.sparsity(raw, changed) == (1 + 2) / 2


def test_realism_is_the_distance_to_the_nearest_target_row():
    assert metrics.realism(t([0, 0], [10, 0]), t([3, 4], [10, 1])) == pytest.approx((5 + 1) / 2)


def test_copies_are_rows_that_are_in_the_data_to_the_letter():
    rows = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert metrics.copies(np.array([[1.0, np.nan], [2.0, 4.0]]), rows) == 0.5
    for one, other in ((-0.0, 0.0), (0.0, -0.0)):  # which are equal, but not in their bytes
        assert metrics.copies(np.array([[one, 1.0]]), np.array([[other, 1.0]])) == 1.0


def test_nearest_finds_what_a_loop_finds():
    """For every point, on both sides of the 256 that are worked at a time."""
    generator = torch.Generator().manual_seed(0)
    points, rows = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (300, 50))
    distance, index = metrics.nearest_rows(points, rows, k=2)
    assert distance.shape == index.shape == (300, 2)
    for i in range(300):
        by_hand = sorted((float((points[i] - row).norm()), j) for j, row in enumerate(rows))[:2]
        assert index[i].tolist() == [j for _, j in by_hand]
        np.testing.assert_allclose(distance[i], [d for d, _ in by_hand])


def test_nearest_gives_no_more_than_there_are_and_one_if_not_told():
    points, rows = t([0, 0]), t([3, 4], [0, 1])
    distance, index = metrics.nearest_rows(points, rows, k=5)
    assert distance.tolist() == [[1, 5]]
    assert index.tolist() == [[1, 0]]
    assert metrics.nearest_rows(points, rows)[1].tolist() == [[1]]


def test_no_rows_measure_zero():
    none = torch.zeros(0, 2, dtype=torch.float64)
    assert metrics.l2(none, none) == 0
    assert metrics.instability(none, none, none, none) == 0
    assert metrics.validity(np.zeros(0, dtype=bool)) == 0
    assert metrics.sparsity(np.zeros((0, 2)), np.zeros((0, 2))) == 0
    assert metrics.option_spread(np.zeros((0, 2)), np.zeros((0, 3, 2))) == 0
    assert metrics.diversity(torch.zeros(3, 0)) == 0  # no numbers
    assert metrics.diversity(t([0, 0], [3, 4])) == 5 / 2


def test_the_errors_of_im1_and_im2_have_a_floor_of_a_millionth():
    perfect = metrics.im1(t([1, 0]), lambda x: x - 1, lambda x: x)
    np.testing.assert_allclose(perfect, [2 / 1e-6])
    nothing = metrics.im2(t([0, 0]), lambda x: x + 1, lambda x: x - 1)
    np.testing.assert_allclose(nothing, [8 / 1e-6])


def test_overlap_is_what_two_sets_share_over_all():
    one = np.array([[True, True, False], [False, False, False], [True, False, False], [True, False, False]])
    other = np.array([[False, True, True], [False, False, False], [False, True, True], [False, False, False]])
    assert metrics.overlap(one, other).tolist() == [1 / 3, 1, 0, 0]


def test_the_spread_of_options_is_one_less_their_overlap_over_all_pairs():
    raw = np.zeros((2, 3))
    first = [[1, 1, 0], [0, 1, 1], [1, 1, 0]]  # overlaps 1/3, 1/3, 1
    second = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]  # none
    assert metrics.option_spread(raw, np.array([first, second], dtype=float)) == pytest.approx(1 - (5 / 3) / 6)
    assert metrics.option_spread(raw, np.ones((2, 1, 3))) == 0  # nothing to compare


def test_jensen_shannon_of_equal_disjoint_and_half_shared_laws():
    half = np.array([0.5, 0.5])
    assert metrics.jensen_shannon(half, half) == 0
    assert metrics.jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    # mixture (3/4, 1/4): log2(4/3), and half of log2(2/3) and log2(2)
    by_hand = (np.log2(4 / 3) + 0.5 * np.log2(2 / 3) + 0.5 * np.log2(2)) / 2
    assert metrics.jensen_shannon(np.array([1.0, 0.0]), half) == pytest.approx(by_hand)
    assert metrics.jensen_shannon(half, np.array([1.0, 0.0])) == pytest.approx(by_hand)
