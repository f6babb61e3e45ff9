"""The theorem: how far the Gumbel-softmax distribution is from the one that replaces it in the guided reverse step, and
how far the resulting category is from that of exact guidance.

Both distributions are on the simplex of K shares. `pi` (K,) are positive probabilities, `tau` is the temperature.
Points are given as logarithms of their shares, `log_x` (n, K), because most shares are too small for a float at a low
temperature. docs/theory.md states and proves all results; `gamma` is Euler's constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy import euler_gamma
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter
from scipy.special import digamma, expit, gammaln, logsumexp

from tdce._core import Floats, InputError, uniforms

INTEGRAL_END = 60.0  # in place of infinity: the rest of an integral over e^-u is below e^-60


class Estimate(NamedTuple):
    """A Monte Carlo estimate."""

    value: float
    error: float  # one standard error


class DivergenceBounds(NamedTuple):
    """A lower and an upper bound, on the divergence or on a term of it."""

    lower: float
    upper: float


# The two distributions


def log_density(log_x: Floats, pi: Floats, tau: float) -> Floats:
    """(n,) log p_GS(x), eqn:gumbel_softmax: Gamma(K) tau^(K-1) (sum_j pi_j x_j^-tau)^-K prod_i pi_i x_i^(-tau-1)."""
    pi, tau = _checked(pi, tau)
    k, log_pi = len(pi), np.log(pi)
    total = _logsumexp(log_pi - tau * log_x)[:, 0]
    each = (log_pi - (tau + 1) * log_x).sum(axis=1)
    return np.asarray(gammaln(k) + (k - 1) * math.log(tau) - k * total + each)


def log_approximation(log_x: Floats, pi: Floats) -> Floats:
    """(n,) log p(x), eqn:approx_gs: sum_i x_i log pi_i - log Z."""
    pi, _ = _checked(pi)
    return np.asarray(np.exp(log_x) @ np.log(pi) - log_normaliser(pi))


def log_normaliser(pi: Floats) -> float:
    """log Z of eqn:approx_gs. Z is the integral of prod pi_i^x_i over the simplex, the divided difference of exp at the
    points log pi.

    Relative to the smallest point, Z / min(pi) = sum_m h_m / (m + K - 1)!, where h_m are the complete homogeneous
    polynomials of the points: no term is negative, so nothing cancels, however close together the points are.
    """
    pi, _ = _checked(pi)
    low = float(np.log(pi.min()))
    points = np.log(pi) - low
    reach = float(points.max())
    m = np.arange(math.ceil(math.e**2 * reach) + 40)  # later terms sum to less than e^-40 of the total
    h = np.zeros(len(m))  # h_m of the points divided by their range, which a float can hold
    h[0] = 1.0
    for point in points / (reach or 1.0):
        h = lfilter([1.0], [1.0, -point], h)  # h_m(.., p) = h_m(..) + p h_{m-1}(.., p)
    with np.errstate(divide="ignore"):  # equal points: only h_0 is not zero
        terms = np.log(h) + m * math.log(reach or 1.0) - gammaln(m + len(pi))
    return low + float(logsumexp(terms))


def draws(pi: Floats, tau: float, count: int, seed: int = 0) -> Floats:
    """(count, K) log x of Gumbel-softmax vectors, eqn:re-param: y - logsumexp(y), y = (g + log pi) / tau."""
    y = _perturbed(pi, count, seed) / _checked(pi, tau)[1]
    return np.asarray(y - _logsumexp(y))


# Their divergence


def divergence(pi: Floats, tau: float, count: int = 200_000, seed: int = 0) -> Estimate:
    """KL(p_GS || p) of Thm:thm_kl; by the identity only E[K (logsumexp(y) - max y) - x . log pi] needs Monte Carlo."""
    pi, tau = _checked(pi, tau)
    y = _perturbed(pi, count, seed) / tau
    y = y - y.max(axis=1, keepdims=True)
    whole = _logsumexp(y)
    sampled = len(pi) * whole[:, 0] - np.exp(y - whole) @ np.log(pi)
    value = _closed_form(pi, tau) + len(pi) * euler_gamma / tau + float(sampled.mean())
    return Estimate(value, float(sampled.std(ddof=1)) / math.sqrt(count))


def _closed_form(pi: Floats, tau: float) -> float:
    """The terms of the identity other than K L - E[x . log pi]."""
    k, logs = len(pi), float(np.log(pi).sum())
    return float(
        gammaln(k) + (k - 1) * math.log(tau) - k * digamma(k)
        - (1 + 1 / tau) * (k * euler_gamma + logs) + logs + log_normaliser(pi)
    )  # fmt: skip


# Bounds on it


def printed_bounds(k: int, tau: float, log_x_min: float) -> DivergenceBounds:
    """Thm:thm_kl as printed in the text, for points with shares of at least x_min; its upper bound is false.

    Under p_GS no x_min > 0 holds for every draw: the infimum is 0, for which the theorem says nothing.
    """
    log_x_min = float(log_x_min)
    log_max = _log1m(log_x_min)  # log(1 - x_min)
    common = (k - 1) * math.log(tau) + float(gammaln(k))
    return DivergenceBounds(
        k * (tau + 1) * log_x_min + common + (k - 1) * log_x_min - k * float(gammaln(k)),
        -k * (tau + 1) * log_max + common + (k - 1) * log_max + k * (log_max - float(gammaln(k))),
    )


def supplement_bounds(k: int, tau: float, log_x_min: float) -> DivergenceBounds:
    """The supplement's theorem: the same except for -K (tau + 1) log x_min in the upper bound; false for large K."""
    lower, upper = printed_bounds(k, tau, log_x_min)
    return DivergenceBounds(lower, upper + k * (tau + 1) * (_log1m(log_x_min) - log_x_min))


def corrected_bounds(pi: Floats, tau: float, log_x_min: float) -> DivergenceBounds:
    """The paper's argument, corrected; like the paper's, it is for points whose shares are all at least x_min."""
    pi, tau = _checked(pi, tau)
    k, low, high = len(pi), float(np.log(pi.min())), float(np.log(pi.max()))
    common, log_x_min = (k - 1) * math.log(tau), float(log_x_min)
    return DivergenceBounds(
        common + k * tau * log_x_min + k * low + (tau + 1) * k * math.log(k),
        common - k * (tau + 1) * log_x_min + k * high,
    )


def free_bounds(pi: Floats, tau: float) -> DivergenceBounds:
    """Without x_min: from gamma / tau <= L <= gamma / tau + log K and min log pi <= E[x . log pi] <= max log pi."""
    pi, tau = _checked(pi, tau)
    low = euler_gamma / tau
    mean = DivergenceBounds(math.log(pi.min()), math.log(pi.max()))
    return _bounds(pi, tau, DivergenceBounds(low, low + math.log(len(pi))), mean)


def tight_bounds(pi: Floats, tau: float) -> DivergenceBounds:
    """The same with our best bounds on both terms; lower and upper bound meet as tau goes to 0 and to infinity."""
    lower, upper = _bounds(pi, tau, mean_logsumexp_bounds(pi, tau), mean_log_bounds(pi, tau))
    return DivergenceBounds(max(lower, 0.0), upper)  # a KL is never negative


def mean_logsumexp_bounds(pi: Floats, tau: float) -> DivergenceBounds:
    """Bounds on L = E logsumexp(y), y = (g + log pi) / tau: the better of two arguments on either side.

    The largest g_i + log pi_i is a standard Gumbel, and the others add `other_weights` to its weight on average:
    log(1 + s) is above its chord from 0 to K - 1 and, by Jensen, its mean is below its value at the mean of s. Jensen
    for the whole sum: L is at least the logsumexp of the means, and s L at most log E sum exp(s y) for 0 < s <= 1,
    s < tau.
    """
    pi, tau = _checked(pi, tau)
    k, log_pi, peak, rest = len(pi), np.log(pi), euler_gamma / tau, other_weights(pi, tau)

    def moment(u: float) -> float:  # u = s / tau
        return float(gammaln(1 - u) + logsumexp(u * log_pi)) / (u * tau)

    end = min(1.0, 1 / tau)
    best = minimize_scalar(moment, bounds=(1e-4 * end, (1 - 1e-9) * end), method="bounded")
    return DivergenceBounds(
        peak + max(rest / (k - 1) * math.log(k), float(logsumexp(log_pi / tau))),
        min(peak + math.log1p(rest), float(best.fun)),
    )


def mean_log_bounds(pi: Floats, tau: float) -> DivergenceBounds:
    """Bounds on E[x . log pi], which falls from sum pi log pi to the plain mean of log pi as tau grows: these two
    limits, or how far it can be from the first at a low and from the second at a high temperature."""
    pi, tau = _checked(pi, tau)
    k, log_pi, rest = len(pi), np.log(pi), other_weights(pi, tau)
    hard, flat, reach = float(pi @ log_pi), float(log_pi.mean()), float(np.ptp(log_pi))
    harmonic = float((1 / np.arange(1, k + 1)).sum())
    spread = reach + euler_gamma + math.log(k * harmonic)  # at least E[max - min of g + log pi]
    return DivergenceBounds(max(flat, hard - reach * rest / (1 + rest)), min(hard, flat + reach * spread / (4 * tau)))


def other_weights(pi: Floats, tau: float) -> float:
    """E sum exp(y_i - max y) over all i but the largest: each i loses with probability 1 - pi_i."""
    return float((1 - _checked(pi)[0]) @ missing_mass(pi, tau))


def missing_mass(pi: Floats, tau: float) -> Floats:
    """(K,) E[exp(y_i - max y) | i is not the largest], whichever other one is: the integral over u > 0 of
    e^-u F_i(tau u), with F_i(w) = pi_i (e^w - 1) / (1 + pi_i (e^w - 1))."""
    pi, tau = _checked(pi, tau)
    mass = np.empty(len(pi))
    for i, log_pi in enumerate(np.log(pi)):

        def integrand(u: float, log_pi: float = log_pi) -> float:
            return math.exp(-u) * float(expit(log_pi + tau * u + math.log(-math.expm1(-tau * u))))

        ends = np.unique(np.clip([0.0, 1.0, -log_pi / tau, INTEGRAL_END], 0.0, INTEGRAL_END))  # F_i is steep at the 3rd
        mass[i] = sum(quad(integrand, a, b, epsrel=1e-9)[0] for a, b in pairwise(ends))
    return mass


def _bounds(pi: Floats, tau: float, whole: DivergenceBounds, mean: DivergenceBounds) -> DivergenceBounds:
    """The bounds that follow from the identity and bounds on L (`whole`) and on E[x . log pi] (`mean`)."""
    k, closed = len(pi), _closed_form(pi, tau)
    return DivergenceBounds(closed + k * whole.lower - mean.upper, closed + k * whole.upper - mean.lower)


# The resulting category


def tilt(pi: Floats, g: Floats) -> Floats:
    """(K,) nu_i = pi_i exp(g_i) / sum: pi under exact guidance, and the distribution of the argmax of GS(nu) at any
    temperature."""
    pi, _ = _checked(pi)
    nu = pi * np.exp(_slope(pi, g) - np.max(g))
    return np.asarray(nu / nu.sum())


def guided_argmax(pi: Floats, g: Floats, tau: float, count: int = 200_000, seed: int = 0) -> Floats:
    """(K,) the distribution of the argmax of x with the density p_GS(x) exp(g . x) / Z, by Monte Carlo.

    It is nu_k m_k / sum, m_k = E[exp(g . x - g_k) | k is the largest]; given that, V_i = V + E_i / pi_i with standard
    exponential V and E_i, and x_i is proportional to V_i^(-1 / tau).
    """
    share = tilt(pi, g) * np.stack([m.mean() for m in _excess(pi, g, tau, count, seed)])
    return np.asarray(share / share.sum())


def tilt_distance(pi: Floats, g: Floats, tau: float, count: int = 200_000, seed: int = 0) -> Estimate:
    """The total variation distance between `guided_argmax` and `tilt`, by Monte Carlo."""
    nu, m = tilt(pi, g), np.stack(list(_excess(pi, g, tau, count, seed)))  # (K, count)
    mean = float(nu @ m.mean(axis=1))
    ahead = m.mean(axis=1) > mean
    value = float(nu[ahead] @ (m.mean(axis=1)[ahead] / mean - 1))
    part = nu[ahead] @ m[ahead] - float(nu[ahead] @ m[ahead].mean(axis=1)) / mean * (nu @ m)  # delta method, a ratio
    return Estimate(value, float(part.std()) / mean / math.sqrt(count))


def tilt_bound(pi: Floats, g: Floats, tau: float) -> float:
    """An upper bound on that distance: the larger of sum nu_k (exp(a_k) - 1) d_k and sum nu_k (1 - exp(-b_k d_k)), with
    a_k = max g - g_k, b_k = g_k - min g and d_k >= E[1 - x_k | k is the largest]."""
    nu, each = tilt(pi, g), missing_mass(pi, tau)
    g = _slope(pi, g)
    rest = each.sum() - each
    d = rest / (1 + rest)
    return float(max(nu @ (np.expm1(g.max() - g) * d), nu @ -np.expm1(-(g - g.min()) * d)))


def tilt_rate(pi: Floats, g: Floats) -> float:
    """The limit of that distance divided by tau as tau goes to 0: half of sum nu_k |c_k - sum nu_j c_j| with
    c_k = sum_i pi_i phi(g_i - g_k), phi(a) = integral from 0 to 1/2 of (e^(a w) - 1) / (w (1 - w)) dw."""
    nu, g = tilt(pi, g), _slope(pi, g)

    def phi(a: float) -> float:
        return float(quad(lambda w: math.expm1(a * w) / (w * (1 - w)) if w else a, 0.0, 0.5)[0])

    c = np.array([sum(p * phi(other - own) for p, other in zip(pi, g, strict=True)) for own in g])
    return float(nu @ np.abs(c - nu @ c)) / 2


def _excess(pi: Floats, g: Floats, tau: float, count: int, seed: int) -> Iterator[Floats]:
    """For each k, (count,) draws of exp(g . x - g_k) given that k is the largest; the same V and E for all."""
    pi, tau = _checked(pi, tau)
    g = _slope(pi, g)
    exponential = -np.log(uniforms((seed, 1), 0, count * (len(pi) + 1)).reshape(count, len(pi) + 1))
    first, later = exponential[:, :1], exponential[:, 1:] / pi
    for k in range(len(pi)):
        log_v = np.log(first + np.where(np.arange(len(pi)) == k, 0.0, later))
        y = (np.log(first) - log_v) / tau  # y_i - max y
        yield np.asarray(np.exp(np.exp(y - _logsumexp(y)) @ (g - g[k])))


def _slope(pi: Floats, g: Any) -> Floats:
    slope: Floats = np.asarray(g, dtype=np.float64)
    if slope.shape != np.shape(pi) or not np.all(np.isfinite(slope)):
        raise InputError(f"g must be {len(pi)} finite numbers, one for each of pi, not {slope.tolist()}")
    return slope


# The gradient


class Moments(NamedTuple):
    """The moments of each partial derivative dY_i / dz_j, Y = softmax((z + g) / tau), z = log pi."""

    mean: Floats  # (K, K)
    variance: Floats
    square: Floats  # E[(dY_i / dz_j)^2]


def gradient_moments(pi: Floats, tau: float, count: int = 200_000, seed: int = 0) -> Moments:
    """The moments by Monte Carlo, from dY_i / dz_j = Y_i (delta_ij - Y_j) / tau."""
    y = np.exp(draws(pi, tau, count, seed))
    k = y.shape[1]
    mean, square = np.empty((k, k)), np.empty((k, k))
    for i in range(k):  # a loop over classes, not over draws
        slope = y[:, i, None] * (np.eye(k)[i] - y) / tau
        mean[i], square[i] = slope.mean(axis=0), np.square(slope).mean(axis=0)
    return Moments(mean, square - mean**2, square)


def gradient_limit(tau: float) -> float:
    """The paper's bound on the variance of every partial derivative: 1 / (16 tau^2)."""
    return 1 / (16 * tau**2)


def gradient_limits(k: int, tau: float) -> Floats:
    """(K, K) our bounds on it: 1 / (64 tau^2), or 1 / (6 e tau) on and 1 / (24 tau) off the diagonal, if smaller."""
    low = np.where(np.eye(k, dtype=bool), 1 / (6 * math.e * tau), 1 / (24 * tau))
    return np.asarray(np.minimum(gradient_limit(tau) / 4, low))


def _perturbed(pi: Floats, count: int, seed: int) -> Floats:
    """(count, K) g + log pi, the g independent standard Gumbel."""
    pi, _ = _checked(pi)
    uniform = uniforms((seed, 0), 0, count * len(pi)).reshape(count, len(pi))
    return np.asarray(np.log(pi) - np.log(-np.log(uniform)))


def _logsumexp(y: Floats) -> Floats:
    """(n, 1) of each row of finite numbers; scipy's function also takes infinite ones, but is several times slower."""
    top = y.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(y - top).sum(axis=1, keepdims=True)))


def _log1m(log_x: float) -> float:
    """log(1 - x)"""
    return math.log1p(-math.exp(log_x))


def _checked(pi: Any, tau: float = 1.0) -> tuple[Floats, float]:
    pi = np.asarray(pi, dtype=np.float64)
    if pi.ndim != 1 or len(pi) < 2 or not np.all(np.isfinite(pi)) or abs(pi.sum() - 1) > 1e-9:
        raise InputError(f"pi must be two or more probabilities that sum to 1, not {pi.tolist()}")
    if (pi <= 0).any():
        raise InputError(f"pi[{int((pi <= 0).argmax())}] is {pi.min():g}; all probabilities must be positive")
    if not (tau > 0 and math.isfinite(tau)):
        raise InputError(f"tau {tau} must be a positive number")
    return pi, float(tau)
