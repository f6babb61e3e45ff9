"""The theorem: both laws, their divergence, and which of the bounds hold, each number by a second route."""

import math
from decimal import Decimal, localcontext
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy import euler_gamma
from scipy.integrate import quad
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import kstest, logistic

from tdce import InputError
from tdce_reproduction import theory

PI = np.array([0.2, 0.3, 0.5])
TAUS = (0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 5.0)
BETWEEN = (0.3, 0.8, 1.5)  # temperatures that say what their neighbours say
TEMPERATURES = [pytest.param(tau, marks=[pytest.mark.slow] if tau in BETWEEN else []) for tau in TAUS]


def laws(k: int) -> list[np.ndarray]:
    """Equal shares, random ones, and a steep slope."""
    slope = np.exp(-0.7 * np.arange(k))
    return [np.full(k, 1 / k), np.random.default_rng(k).dirichlet(np.ones(k)), slope / slope.sum()]


# The two laws


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.5])
def test_both_densities_of_two_shares_integrate_to_one(tau):
    pi = np.array([0.3, 0.7])

    def over_log_odds(log_p):  # x = 1 / (1 + e^-v), dx = x (1 - x) dv
        def integrand(v: float) -> float:
            log_x = -np.logaddexp(0.0, [[-v, v]])
            return math.exp(float(log_p(log_x)[0]) + float(log_x.sum()))

        return quad(integrand, -60 / min(tau, 1), 60 / min(tau, 1), limit=400)[0]

    assert over_log_odds(lambda log_x: theory.log_density(log_x, pi, tau)) == pytest.approx(1, abs=1e-7)
    assert over_log_odds(lambda log_x: theory.log_approximation(log_x, pi)) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("tau", [0.2, 0.5, 1.0, 2.0])
def test_both_densities_of_three_shares_integrate_to_one(tau):
    # a stick broken twice: x = (a, (1 - a) b, (1 - a)(1 - b)), a and b on a grid of log odds (trapezoid rule)
    odds = np.linspace(-40 / min(tau, 1), 40 / min(tau, 1), 801)
    log_a, log_1a = -np.logaddexp(0, -odds)[:, None], -np.logaddexp(0, odds)[:, None]
    log_b, log_1b = log_a.T, log_1a.T
    log_x = np.stack(np.broadcast_arrays(log_a, log_1a + log_b, log_1a + log_1b), axis=-1).reshape(-1, 3)
    log_area = np.broadcast_to(log_a + 2 * log_1a + log_b + log_1b, (801, 801)).ravel()
    for log_p in (theory.log_density(log_x, PI, tau), theory.log_approximation(log_x, PI)):
        assert np.exp(log_p + log_area).sum() * (odds[1] - odds[0]) ** 2 == pytest.approx(1, abs=1e-9)


def test_the_density_of_two_shares_is_that_of_a_logistic_variable_through_the_softmax():
    # g_1 - g_2 is logistic, so log(x_1 / x_2) = (g_1 - g_2 + log(pi_1 / pi_2)) / tau is too
    pi, tau = np.array([0.3, 0.7]), 0.4
    x = np.linspace(0.01, 0.99, 9)
    log_x = np.log(np.stack([x, 1 - x], axis=1))
    odds = logistic(loc=math.log(0.3 / 0.7) / tau, scale=1 / tau)
    assert np.exp(theory.log_density(log_x, pi, tau)) == pytest.approx(odds.pdf(np.log(x / (1 - x))) / (x * (1 - x)))
    drawn = theory.draws(pi, tau, 20_000)
    assert kstest(drawn[:, 0] - drawn[:, 1], odds.cdf).pvalue > 0.01


def test_a_draw_is_on_the_simplex_and_its_largest_share_follows_pi():
    log_x = theory.draws(PI, 0.5, 100_000)
    assert np.exp(log_x).sum(axis=1) == pytest.approx(1)
    assert np.bincount(log_x.argmax(axis=1)) / 100_000 == pytest.approx(PI, abs=0.006)
    assert (theory.draws(PI, 0.5, 10, seed=1) != log_x[:10]).all()


# The normaliser


def divided_difference(points: list[Decimal]) -> Decimal:
    """Of exp, by its recursive definition, in as many digits as it takes; the points must differ."""
    table = [p.exp() for p in points]
    for width in range(1, len(points)):
        table = [(b - a) / (points[i + width] - points[i]) for i, (a, b) in enumerate(pairwise(table))]
    return table[0]


@pytest.mark.parametrize("k", [2, 3, 10, 50])
@pytest.mark.parametrize("kind", ["apart", "close", "pairs", "steep"])
def test_the_normaliser_is_the_divided_difference_of_exp(k, kind):
    steps = np.arange(1, k + 1, dtype=float)
    if kind == "close":
        steps = 1 + 1e-9 * steps
    elif kind == "pairs":  # two and two nearly equal
        steps = np.floor(steps / 2) + 1e-7 * steps + 1
    elif kind == "steep":
        steps = np.exp(-1.3 * steps)
    pi = steps / steps.sum()
    with localcontext() as context:
        context.prec = 600
        exact = divided_difference([Decimal(float(p)).ln() for p in sorted(pi)])
        log_z = float(exact.ln())
    assert theory.log_normaliser(pi) == pytest.approx(log_z, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("k", [2, 7, 50])
def test_the_normaliser_of_equal_shares_is_the_volume_of_the_simplex_over_k(k):
    assert theory.log_normaliser(np.full(k, 1 / k)) == pytest.approx(-math.log(k) - gammaln(k), rel=1e-12)


def test_the_normaliser_is_the_mean_of_the_powers_over_the_simplex():
    pi = laws(6)[1]
    x = np.random.default_rng(0).dirichlet(np.ones(6), 400_000)
    values = np.exp(x @ np.log(pi))
    error = values.std() / math.sqrt(len(values))
    assert math.exp(theory.log_normaliser(pi) + gammaln(6)) == pytest.approx(values.mean(), abs=4 * error)


def test_the_normaliser_does_not_depend_on_the_order():
    pi = laws(20)[1]
    assert theory.log_normaliser(pi) == pytest.approx(theory.log_normaliser(pi[::-1].copy()), rel=1e-13)


# The divergence


def test_the_divergence_has_these_values():
    known = (26.0, 5.1, 1.8, 0.48, 0.26, 0.31, 0.59, 2.1)
    for tau, value in zip(TAUS, known, strict=True):
        assert theory.divergence(PI, tau).value == pytest.approx(value, abs=0.06 if value > 1 else 0.015)


@pytest.mark.parametrize("tau", TEMPERATURES)
@pytest.mark.parametrize("k", [3, 10])
def test_the_divergence_is_the_mean_log_ratio_of_the_densities(k, tau):
    pi = laws(k)[1]
    log_x = theory.draws(pi, tau, 100_000, seed=1)
    ratio = theory.log_density(log_x, pi, tau) - theory.log_approximation(log_x, pi)
    found = theory.divergence(pi, tau, seed=2)
    error = math.hypot(found.error, ratio.std() / math.sqrt(len(ratio)))
    assert abs(found.value - ratio.mean()) < 4 * error
    assert found.error < ratio.std() / math.sqrt(len(ratio)) * 1.5  # and takes no more draws, at a low tau far fewer


@pytest.mark.parametrize("tau", [0.2, 1.0, 3.0])
def test_the_divergence_of_two_shares_by_quadrature(tau):
    pi = np.array([0.2, 0.8])

    def integrand(v: float) -> float:
        log_x = -np.logaddexp(0.0, [[-v, v]])
        log_p = float(theory.log_density(log_x, pi, tau)[0])
        return math.exp(log_p + float(log_x.sum())) * (log_p - float(theory.log_approximation(log_x, pi)[0]))

    exact = quad(integrand, -60 / min(tau, 1), 60 / min(tau, 1), limit=400)[0]
    found = theory.divergence(pi, tau)
    assert abs(found.value - exact) < 4 * found.error


def test_the_standard_error_is_that_of_repeated_estimates():
    found = [theory.divergence(PI, 0.5, 500, seed) for seed in range(200)]
    assert np.std([f.value for f in found]) == pytest.approx(found[0].error, rel=0.2)


@pytest.mark.parametrize("k", [3, 5, 10])
def test_the_divergence_is_u_shaped_in_tau(k):
    for pi in laws(k):
        values = [theory.divergence(pi, tau, 50_000) for tau in (0.05, 0.1, 0.3, 0.6, 1.0, 1.5, 3.0, 6.0, 12.0)]
        lowest = min(range(len(values)), key=lambda i: values[i].value)
        assert 0 < lowest < len(values) - 1
        for i, (a, b) in enumerate(pairwise(values)):
            sure = 3 * math.hypot(a.error, b.error)
            assert (a.value - b.value if i < lowest else b.value - a.value) > -sure


# The paper's bounds, and the corrected ones


@pytest.mark.parametrize("tau", [0.1, 0.3, 0.5, 0.8, 1.0, 1.5])
def test_the_main_texts_upper_bound_is_negative_below_a_temperature_of_two(tau):
    log_x_min = theory.draws(PI, tau, 200_000).min()
    assert theory.printed_bounds(3, tau, log_x_min).upper < 0 < theory.divergence(PI, tau).value


def test_the_main_texts_upper_bound_at_a_half_by_hand():
    # x_min as good as 0: 2 log 0.5 + log 2 + 3 log(1 / 2)
    assert theory.printed_bounds(3, 0.5, -40.0).upper == pytest.approx(-4 * math.log(2))
    assert theory.printed_bounds(3, 0.5, -40.0).upper == pytest.approx(-2.77, abs=0.01)


def test_the_printed_bounds_as_the_paper_writes_them():
    k, tau, x = 4, 0.7, 0.05
    common = (k - 1) * math.log(tau) + math.log(math.factorial(k - 1))
    upper = -k * (tau + 1) * math.log(1 - x) + common + (k - 1) * math.log(1 - x)
    lower = k * (tau + 1) * math.log(x) + common + (k - 1) * math.log(x) + k * math.log(1 / math.factorial(k - 1))
    upper += k * math.log((1 - x) / math.factorial(k - 1))
    assert theory.printed_bounds(k, tau, math.log(x)) == pytest.approx((lower, upper))
    upper += k * (tau + 1) * (math.log(1 - x) - math.log(x))
    other = k * tau * math.log(x) + common + (k - 1) * math.log(x) + k * math.log(x / math.factorial(k - 1))
    assert theory.supplement_bounds(k, tau, math.log(x)) == pytest.approx((other, upper))


@pytest.mark.parametrize("tau", TEMPERATURES)
def test_the_supplements_bounds_hold_here_but_are_loose(tau):
    found = theory.supplement_bounds(3, tau, theory.draws(PI, tau, 200_000).min())
    value = theory.divergence(PI, tau).value
    assert found.lower < value < found.upper
    assert found.upper - found.lower > 100


@pytest.mark.parametrize(("k", "tau"), [(20, 1.0), (20, 5.0), (50, 0.3), (50, 1.0)])
def test_the_supplements_upper_bound_fails_with_many_classes(k, tau):
    pi = np.full(k, 1 / k)
    log_x_min = theory.draws(pi, tau, 50_000).min()
    assert theory.supplement_bounds(k, tau, log_x_min).upper < 0 < theory.divergence(pi, tau, 20_000).value


@pytest.mark.parametrize("tau", TEMPERATURES)
@pytest.mark.parametrize("k", [3, 5, 10])
def test_the_corrected_bounds_hold(k, tau):
    for pi in laws(k):
        found, log_x_min = theory.divergence(pi, tau, 20_000), theory.draws(pi, tau, 20_000).min()
        lower, upper = theory.corrected_bounds(pi, tau, log_x_min)
        assert lower - 4 * found.error < found.value < upper + 4 * found.error


def test_the_corrected_bounds_by_hand():
    lower, upper = theory.corrected_bounds(np.array([0.25, 0.75]), 2.0, math.log(0.1))
    assert lower == pytest.approx(math.log(2) + 4 * math.log(0.1) + 2 * math.log(0.25) + 6 * math.log(2))
    assert upper == pytest.approx(math.log(2) - 6 * math.log(0.1) + 2 * math.log(0.75))


# The bounds without x_min


def test_the_free_bounds_at_a_temperature_of_three_tenths():
    assert theory.free_bounds(PI, 0.3) == pytest.approx((4.32, 8.53), abs=0.01)


@pytest.mark.parametrize("tau", [0.02, *TEMPERATURES, 20.0])
@pytest.mark.parametrize("k", [2, 3, 5, 10, 50])
def test_the_bounds_without_x_min_hold_and_the_tight_ones_lie_within(k, tau):
    for pi in laws(k):
        found = theory.divergence(pi, tau, 20_000)
        free, tight = theory.free_bounds(pi, tau), theory.tight_bounds(pi, tau)
        assert tight.lower - 4 * found.error <= found.value <= tight.upper + 4 * found.error
        assert free.lower <= tight.lower + 1e-9 < tight.upper <= free.upper + 1e-9
        assert free.upper - free.lower == pytest.approx(k * math.log(k) + math.log(pi.max() / pi.min()))


def test_the_tight_bounds_meet_at_both_ends():
    gaps = {tau: np.subtract(*theory.tight_bounds(PI, tau)[::-1]) for tau in (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3)}
    assert gaps[1e-3] < gaps[0.01] < gaps[0.1] < gaps[1.0]
    assert gaps[1e3] < gaps[100.0] < gaps[10.0] < gaps[1.0]
    assert gaps[1e-3] < 0.005
    assert gaps[1e3] < 0.005


@pytest.mark.parametrize("tau", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("k", [2, 5])
def test_every_piece_of_the_bounds_by_drawing(k, tau):
    n = 200_000
    for pi in laws(k):
        g = -np.log(-np.log(np.random.default_rng(3).random((n, k))))
        y = (g + np.log(pi)) / tau
        whole, x = logsumexp(y, axis=1), np.exp(y - logsumexp(y, axis=1, keepdims=True))
        rest = np.exp(y - y.max(axis=1, keepdims=True)).sum(axis=1) - 1
        inner = x @ np.log(pi)

        def near(values: np.ndarray, expected: float) -> bool:
            return abs(values.mean() - expected) < 4 * values.std() / math.sqrt(n) + 1e-12

        assert near(np.log(np.exp(-g).sum(axis=1)), digamma(k))  # a Gamma(K) variable
        assert near(y.max(axis=1) * tau, euler_gamma)
        assert near(rest, theory.other_weights(pi, tau))
        lower, upper = theory.mean_logsumexp_bounds(pi, tau)
        assert lower - 4 * whole.std() / math.sqrt(n) < whole.mean() < upper + 4 * whole.std() / math.sqrt(n)
        lower, upper = theory.mean_log_bounds(pi, tau)
        slack = 4 * inner.std() / math.sqrt(n) + 1e-12
        assert lower - slack < inner.mean() < upper + slack


def test_what_the_largest_leaves_to_the_others_has_these_values():
    # two equal shares: at tau = 1 it is E[min / max of two exponentials] = 2 log 2 - 1, at tau = 2 pi / 2 - 1
    half = np.array([0.5, 0.5])
    assert theory.other_weights(half, 1.0) == pytest.approx(2 * math.log(2) - 1)
    assert theory.other_weights(half, 2.0) == pytest.approx(math.pi / 2 - 1)
    assert theory.other_weights(laws(50)[2], 1e4) == pytest.approx(49, rel=0.02)  # all the same in the end


def test_the_mean_log_share_falls_as_the_temperature_grows():
    y = np.log(PI) - np.log(-np.log(np.random.default_rng(0).random((100_000, 3))))
    x = [np.exp(y / tau - logsumexp(y / tau, axis=1, keepdims=True)) for tau in (0.05, *TAUS, 50.0)]
    means = [float((each @ np.log(PI)).mean()) for each in x]
    assert all(a > b for a, b in pairwise(means))
    assert means[0] == pytest.approx(PI @ np.log(PI), abs=0.01)
    assert means[-1] == pytest.approx(np.log(PI).mean(), abs=0.01)


# The gradient


def test_the_partial_derivatives_are_those_of_the_softmax():
    count, tau = 500, 0.6
    g = -np.log(-np.log(theory.uniforms((0, 0), 0, 3 * count).reshape(count, 3)))

    def softmax(z: torch.Tensor) -> torch.Tensor:
        return ((z + torch.from_numpy(g)) / tau).softmax(dim=1)

    slopes = torch.autograd.functional.jacobian(softmax, torch.from_numpy(np.log(PI)))  # (count, K, K)
    found = theory.gradient_moments(PI, tau, count)
    assert found.mean == pytest.approx(slopes.mean(dim=0).numpy())
    assert found.variance == pytest.approx(slopes.var(dim=0, unbiased=False).numpy())


@pytest.mark.parametrize("tau", [0.05, *TEMPERATURES])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_variance_is_below_the_papers_bound_and_below_a_quarter_of_it(k, tau):
    for pi in laws(k):
        found = theory.gradient_moments(pi, tau, 20_000)
        assert found.square.max() < theory.gradient_limit(tau)
        assert found.variance.max() <= theory.gradient_limit(tau) / 4


@cache
def at_a_low_temperature(tau):
    return theory.gradient_moments(PI, tau, 600_000)


def test_at_a_low_temperature_the_variance_grows_as_one_over_tau_not_its_square():
    for tau in (0.02, 0.01):
        found = at_a_low_temperature(tau)
        expected = PI * (1 - PI) / (6 * tau)
        assert np.diag(found.square) == pytest.approx(expected, rel=0.05)
        assert np.diag(found.mean) == pytest.approx(PI * (1 - PI), rel=0.05)  # the slope of pi itself


@pytest.mark.parametrize("tau", [0.02, 0.1, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_variance_is_below_bounds_that_grow_as_one_over_tau_only(k, tau):
    for pi in laws(k):
        found = theory.gradient_moments(pi, tau, 20_000)
        assert (found.variance <= theory.gradient_limits(k, tau)).all()


def test_the_bounds_on_the_variance_by_hand():
    bounds = theory.gradient_limits(3, 0.1)
    assert (
        bounds[0, 0] == bounds[2, 2] == pytest.approx(1 / (0.6 * math.e))
    )  # the density of a Gumbel is at most 1 / e,
    assert bounds[0, 1] == bounds[2, 0] == pytest.approx(1 / 2.4)  # that of a logistic variable 1 / 4
    assert theory.gradient_limits(3, 1.0) == pytest.approx(np.full((3, 3), 1 / 64))


def test_at_a_low_temperature_the_derivatives_off_the_diagonal_have_a_law_of_their_own():
    """-dY_i / dz_j has the mean pi_i pi_j and the second moment pi_i pi_j / (6 tau): a row's sum to the diagonal's."""
    off = ~np.eye(3, dtype=bool)
    product = np.outer(PI, PI)
    for tau in (0.02, 0.01):
        found = at_a_low_temperature(tau)
        assert -found.mean[off] == pytest.approx(product[off], rel=0.05)
        assert tau * found.square[off] == pytest.approx(product[off] / 6, rel=0.06)
        assert tau * found.variance[off] == pytest.approx(product[off] / 6 - tau * product[off] ** 2, rel=0.06)
    assert np.where(off, product, 0).sum(axis=1) == pytest.approx(PI * (1 - PI))


@pytest.mark.parametrize("tau", [0.05, 0.5, 2.0])
def test_the_derivatives_of_two_shares_by_quadrature(tau):
    # Y_1 = sigma(v / tau) with a logistic v about log(pi_1 / pi_2); on and off the diagonal they differ by the sign
    pi = np.array([0.3, 0.7])
    v = logistic(loc=math.log(0.3 / 0.7))

    def moment(m: int) -> float:
        def integrand(u: float) -> float:  # v = tau u
            return (math.exp(-abs(u)) / (1 + math.exp(-abs(u))) ** 2 / tau) ** m * float(v.pdf(tau * u)) * tau

        return quad(integrand, -60, 60, limit=200)[0]

    found = theory.gradient_moments(pi, tau, 400_000)
    assert found.mean[0, 0] == pytest.approx(moment(1), rel=0.03)
    assert found.mean[0, 1] == pytest.approx(-moment(1), rel=0.03)
    assert found.variance == pytest.approx(np.full((2, 2), moment(2) - moment(1) ** 2), rel=0.03)


# The category in the end

G = np.array([2.0, 0.0, -1.0])


def test_the_exact_tilt_by_hand():
    # 0.2 e^2, 0.3 and 0.5 / e sum to 1.9617
    assert theory.tilt(PI, G) == pytest.approx([1.47781 / 1.96175, 0.3 / 1.96175, 0.18394 / 1.96175], abs=1e-5)
    assert theory.tilt(PI, [0.0, 0.0, 0.0]) == pytest.approx(PI)
    assert theory.tilt(PI, G + 1000.0) == pytest.approx(theory.tilt(PI, G))


@pytest.mark.parametrize("tau", [0.05, 0.5, 5.0])
def test_the_step_of_the_algorithm_ends_with_the_exact_tilt_at_any_temperature(tau):
    nu, n = theory.tilt(PI, G), 200_000
    found = np.bincount(theory.draws(nu, tau, n).argmax(axis=1)) / n
    assert np.abs(found - nu).max() < 4 * math.sqrt(0.25 / n)


@pytest.mark.parametrize("tau", [0.02, 0.1, 0.5, 1.0, 5.0])
def test_the_guided_law_of_three_shares_by_weighting_draws(tau):
    log_x = theory.draws(PI, tau, 400_000, seed=5)
    weight = np.exp(np.exp(log_x) @ G)
    winner = np.eye(3)[log_x.argmax(axis=1)]
    share = (winner * weight[:, None]).mean(axis=0) / weight.mean()
    error = ((winner - share) * weight[:, None]).std(axis=0) / weight.mean() / math.sqrt(len(weight))
    found = theory.guided_argmax(PI, G, tau)
    assert (np.abs(found - share) < 5 * error + 1e-3).all()
    distance = theory.tilt_distance(PI, G, tau)
    assert distance.value == pytest.approx(np.abs(found - theory.tilt(PI, G)).sum() / 2)


@pytest.mark.parametrize("tau", [0.05, 0.5, 2.0, 10.0])
@pytest.mark.parametrize("g", [(1.0, 0.0), (-3.0, 2.0), (0.4, 0.5)])
def test_the_guided_law_of_two_shares_by_quadrature(tau, g):
    pi = np.array([0.3, 0.7])
    v = logistic(loc=math.log(0.3 / 0.7))  # the first wins if it is positive

    def mass(low: float, high: float) -> float:
        def integrand(u: float) -> float:
            x = 1 / (1 + math.exp(-u / tau)) if u > -700 * tau else 0.0
            return float(v.pdf(u)) * math.exp(g[0] * x + g[1] * (1 - x))

        middle = math.copysign(8 * tau, low + high)
        ends = sorted({low, high, *([middle] if low < middle < high else [])})
        return sum(quad(integrand, a, b, limit=400)[0] for a, b in pairwise(ends))

    first, second = mass(0.0, 40.0), mass(-40.0, 0.0)
    exact = abs(first / (first + second) - theory.tilt(pi, g)[0])
    found = theory.tilt_distance(pi, g, tau)
    assert abs(found.value - exact) < 4 * found.error + 1e-9
    assert theory.guided_argmax(pi, g, tau)[0] == pytest.approx(first / (first + second), abs=5 * found.error + 1e-9)


def test_the_guided_law_is_nearer_to_the_tilt_the_lower_the_temperature():
    known = {0.02: 0.005, 0.1: 0.026, 0.5: 0.148, 1.0: 0.270, 5.0: 0.495}
    found = {tau: theory.tilt_distance(PI, G, tau) for tau in known}
    for tau, value in known.items():
        assert found[tau].value == pytest.approx(value, abs=0.003)
    assert all(a.value < b.value for a, b in pairwise(found.values()))


@pytest.mark.parametrize(("k", "which"), [(2, (0, 1, 2)), (3, (0, 1, 2)), (10, (1,))])
def test_the_distance_to_the_tilt_is_below_its_bound_and_falls_at_its_rate(k, which):
    for i in which:
        pi = laws(k)[i]
        g = np.random.default_rng(10 * k + i).normal(size=k) * 1.5
        for tau in (0.01, 0.1, 0.5, 1.0, 5.0):
            found, bound = theory.tilt_distance(pi, g, tau, 20_000), theory.tilt_bound(pi, g, tau)
            assert found.value < bound + 4 * found.error
            if tau < 1:
                plain = math.expm1(np.ptp(g)) * (1 - theory.tilt(pi, g) @ pi) * tau / (1 - tau)
                assert bound <= plain + 1e-9
        low = theory.tilt_distance(pi, g, 0.005, 400_000 if k < 10 else 150_000)
        assert low.value / 0.005 == pytest.approx(theory.tilt_rate(pi, g), abs=4 * low.error / 0.005, rel=0.05)


def test_without_a_gradient_the_guided_law_is_pi_at_once():
    for tau in (0.1, 5.0):
        assert theory.tilt_distance(PI, np.ones(3), tau).value == pytest.approx(0, abs=1e-12)
        assert theory.tilt_bound(PI, np.ones(3), tau) == theory.tilt_rate(PI, np.ones(3)) == 0


def test_the_error_of_the_distance_is_that_of_repeated_estimates():
    found = [theory.tilt_distance(PI, G, 0.5, 500, seed) for seed in range(200)]
    assert np.std([f.value for f in found]) == pytest.approx(np.mean([f.error for f in found]), rel=0.15)


def test_a_share_below_any_x_min_has_a_chance():
    """Why bounds with x_min say nothing on the law itself: more draws have a smaller smallest share."""
    least = [theory.draws(PI, 0.5, n).min() for n in (100, 10_000, 1_000_000)]
    assert least[0] > least[1] + 2
    assert least[1] > least[2] + 2
    assert theory.corrected_bounds(PI, 0.5, -1e6).upper > 1e6 > -1e6 > theory.corrected_bounds(PI, 0.5, -1e6).lower


# Wrong input


@pytest.mark.parametrize(
    ("pi", "tau", "words"),
    [
        ([0.5, 0.0, 0.5], 1.0, r"pi\[1\] is 0"),
        ([0.5, 0.6], 1.0, "sum to 1"),
        ([1.0], 1.0, "two or more"),
        ([0.5, math.nan], 1.0, "sum to 1"),
        ([0.5, 0.5], 0.0, "tau 0.0 must be a positive number"),
        ([0.5, 0.5], math.inf, "tau inf"),
    ],
)
def test_a_wrong_input_is_named(pi, tau, words):
    with pytest.raises(InputError, match=words):
        theory.divergence(pi, tau)


@pytest.mark.parametrize("g", [[1.0, 2.0], [1.0, 2.0, math.inf]])
def test_a_wrong_gradient_is_named(g):
    with pytest.raises(InputError, match="g must be 3 finite numbers"):
        theory.tilt(PI, g)
