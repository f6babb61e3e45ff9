"""Each metric on a handful of rows worked by hand."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.feature_selection import f_classif
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from tdce import metrics
from tdce.schema.space import Space


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


NUMBER_THEN_WORD = np.array([True, False])
GAP = np.nan


def test_gower_is_the_mean_share_of_each_features_span():
    rows = np.stack([np.arange(101.0), np.arange(101.0) % 3], axis=1)  # the number: 5 % at 5, 95 % at 95
    assert metrics.spans(rows)[0] == pytest.approx(90)
    raw = np.array([[10.0, 0], [10, 1], [0, 2], [10, 0]])
    raw_cf = np.array(
        [[19.0, 0], [10, 2], [100, 0], [10, 0]]
    )  # a tenth; a word; more than the span and a word; nothing
    assert metrics.gower(raw, raw_cf, NUMBER_THEN_WORD, rows) == pytest.approx((0.1 + 1 + 2 + 0) / 8)


def test_gower_of_what_was_or_is_missing_is_one_and_missing_equals_missing():
    rows = np.stack([np.arange(101.0), np.zeros(101)], axis=1)
    raw = np.array([[GAP, 0.0], [7, GAP], [GAP, GAP]])
    raw_cf = np.array([[7.0, 0], [GAP, 1], [GAP, GAP]])
    assert metrics.gower(raw, raw_cf, NUMBER_THEN_WORD, rows) == pytest.approx((1 + 2 + 0) / 6)


def test_where_the_quantiles_coincide_gower_takes_the_whole_range():
    mostly = np.array([[0.0, 3.0, GAP]] * 99 + [[8.0, 3.0, GAP]])  # then a constant, then nothing at all
    assert metrics.spans(mostly).tolist() == [8, 1e-6, 1e-6]
    numbers = np.ones(3, dtype=bool)
    one, other = np.array([[0.0, 3.0, 1.0]]), np.array([[2.0, 3.5, 1.0]])
    assert metrics.gower(one, other, numbers, mostly) == pytest.approx((2 / 8 + 1 + 0) / 3)
    assert metrics.gower(one[:0], other[:0], numbers, mostly) == 0


def test_the_distance_to_held_out_rows_is_the_mean_over_the_five_nearest():
    held = t([1], [2], [3], [4], [5], [100])
    assert metrics.held_out_distance(t([0], [3]), held) == pytest.approx((3 + (2 + 1 + 0 + 1 + 2) / 5) / 2)
    assert metrics.held_out_distance(t([0]), t([1], [3])) == 2  # there are no more
    generator = torch.Generator().manual_seed(0)
    points, rows = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (30, 80))
    again = NearestNeighbors(n_neighbors=5).fit(rows.numpy()).kneighbors(points.numpy())[0].mean()
    assert metrics.held_out_distance(points, rows) == pytest.approx(again)


def test_associations_by_hand():
    up, down, flat = np.array([1.0, 2, 3]), np.array([5.0, 3, 1]), np.array([4.0, 4, 4])
    assert metrics.pearson(up, down) == pytest.approx(-1)
    assert metrics.pearson(up, flat) == 0
    a, b = np.array([0.0, 0, 1, 1]), np.array([2.0, 2, 5, 5])
    assert metrics.cramers_v(a, b) == pytest.approx(1)
    assert metrics.cramers_v(a, np.array([0.0, 1, 0, 1])) == 0
    assert metrics.cramers_v(a, np.zeros(4)) == 0
    # means 1 and 3 around 2: between 4 of a total of 4 + 4 * 1 / 4 = 5
    assert metrics.eta(np.array([0.5, 1.5, 2.5, 3.5]), a) == pytest.approx(np.sqrt(4 / 5))
    assert metrics.eta(np.full(4, 7.0), a) == 0


def test_associations_are_those_of_scipy_and_sklearn():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    k, m = rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    b, m = b + a, np.where(rng.random(200) < 0.5, k, m)
    assert metrics.pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    table = stats.contingency.crosstab(k, m).count
    assert metrics.cramers_v(k * 1.0, m * 1.0) == pytest.approx(stats.contingency.association(table, method="cramer"))
    (f,), _ = f_classif(a[:, None], k)  # F = eta^2 / (1 - eta^2) * (n - groups) / (groups - 1)
    assert metrics.eta(a, k * 1.0) == pytest.approx(np.sqrt(f / (f + (200 - 3) / (3 - 1))))


def test_the_matrix_knows_which_association_is_meant_and_what_to_do_with_gaps():
    raw = np.array([[1, 0, 2, 0], [2, 0, 4, GAP], [GAP, 1, 1, 0], [3, 1, 6, GAP], [4, 1, GAP, 0.0]])
    numeric = np.array([True, False, True, False])
    found = metrics.associations(raw, numeric)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1)
    assert found[0, 2] == pytest.approx(1)  # of the rows that have both: 1, 2, 3 and 2, 4, 6
    assert found[0, 1] == pytest.approx(metrics.eta(np.array([1.0, 2, 3, 4]), np.array([0.0, 0, 1, 1])))
    assert found[2, 3] == pytest.approx(metrics.eta(np.array([2.0, 4, 1, 6]), np.array([0.0, 1, 0, 1])))
    assert found[1, 3] == pytest.approx(metrics.cramers_v(raw[:, 1], np.array([0.0, 1, 0, 1, 0])))  # missing is one


def test_coherence_is_the_mean_gap_of_the_associations():
    numbers = np.ones(3, dtype=bool)
    real = np.array([[1.0, 1, 5], [2, 2, 5], [3, 3, 5]])  # correlations 1, 0, 0
    found = np.array([[1.0, 3, 1], [2, 2, 2], [3, 1, 3]])  # -1, 1, -1
    assert metrics.coherence(found, real, numbers) == pytest.approx((2 + 1 + 1) / 3)
    assert metrics.coherence(real, real, numbers) == 0
    assert metrics.coherence(real[:, :1], real[:, :1], numbers[:1]) == 0  # no pair


def test_two_samples_of_one_law_are_told_apart_by_chance_alone_and_others_for_sure():
    generator = torch.Generator().manual_seed(0)
    one, other = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (100, 140))
    same = metrics.two_sample(one, other)
    assert 0.35 < same < 0.65
    assert metrics.two_sample(one + 10, other) == 1
    assert metrics.two_sample(one[:20] + 10, other[:20]) == 1
    assert metrics.two_sample(one, other, seed=1) != same  # other folds, other rows of the larger side
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert metrics.two_sample(one, other) == same


def test_l2_per_feature_is_l2_over_the_number_of_features():
    x, x_cf = torch.zeros(2, 4), torch.tensor([[1.0, 1, 1, 1], [2, 0, 0, 0]])
    assert metrics.l2(x, x_cf) == 4
    assert metrics.l2_per_feature(x, x_cf) == 1 == ((x - x_cf) ** 2).mean()
    assert metrics.l2_per_feature(x[:, :0], x_cf[:, :0]) == 0


def test_outliers_and_low_densities_by_hand():
    """Rows on a line, 0.01 apart: 20 neighbours reach 0.1 to each side, and 0.2 from its end."""
    line = (torch.arange(200) / 100.0)[:, None].double()
    held = line + 0.004
    inside, beyond = torch.tensor([[0.5], [1.0], [1.503]]), torch.tensor([[1.0], [30.0]])
    assert metrics.low_density(inside, line, held) == 0
    assert metrics.low_density(beyond, line, held) == 0.5
    # the second route: all distances, sorted
    at = torch.tensor([[1.99 + gap] for gap in (-0.06, -0.03, 0.0, 0.03)])
    reach = torch.stack([(line[:, 0] - each).abs().sort().values[19] for each in at[:, 0]])
    limit = torch.stack([(line[:, 0] - each).abs().sort().values[19] for each in held[:, 0]]).quantile(0.95)
    assert metrics.low_density(at, line, held) == pytest.approx((reach > limit).double().mean().item())
    assert 0 < (reach > limit).sum() < 4
    assert metrics.lof_outliers(inside, line) == 0
    assert metrics.lof_outliers(beyond, line) == 0.5


def test_the_local_outlier_factor_is_that_of_its_definition():
    """By lists of neighbours: the mean density of a row's neighbours over its own, with reachability distances."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(60, 2, generator=generator, dtype=torch.float64)
    points = torch.cat([torch.randn(5, 2, generator=generator, dtype=torch.float64), torch.tensor([[9.0, 9.0]])])
    k = metrics.DENSITY_NEIGHBOURS
    apart = torch.cdist(rows, rows).fill_diagonal_(torch.inf)
    reach_of = apart.sort(dim=1).values[:, k - 1]

    def density(distances):
        near = distances.argsort()[:k]
        return 1 / torch.maximum(distances[near], reach_of[near]).mean(), near

    own = torch.stack([density(each)[0] for each in apart])
    factors = []
    for point in points:
        value, near = density((rows - point).norm(dim=1))
        factors.append((own[near].mean() / value).item())
    expected = np.mean(np.array(factors) > metrics.LARGEST_FACTOR)
    assert metrics.lof_outliers(points, rows) == pytest.approx(expected)
    assert factors[-1] > metrics.LARGEST_FACTOR > min(factors)
