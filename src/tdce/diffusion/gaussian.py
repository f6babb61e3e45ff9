"""Gaussian diffusion of the numbers (Ho et al. 2020); `a` is short for alpha_bar, s < t are two times.  PAPER[1]

The paper prints these formulas without labels, in its paragraph "Continuous diffusions".
"""

from __future__ import annotations

from torch import Tensor

Level = float | Tensor  # a number, or one per row: (n, 1)


def add_noise(x_0: Tensor, a_t: Level, noise: Tensor) -> Tensor:
    """A draw from the marginal q(x_t | x_0) = N(sqrt(a_t) x_0, (1 - a_t) I)."""
    return a_t**0.5 * x_0 + (1 - a_t) ** 0.5 * noise


def remove_noise(x_t: Tensor, a_t: Level, noise: Tensor) -> Tensor:
    """The x_0 that this noise turns into x_t: the inverse of `add_noise`."""
    return (x_t - (1 - a_t) ** 0.5 * noise) / a_t**0.5


def implied_noise(x_t: Tensor, x_0: Tensor, a_t: Level) -> Tensor:
    """The noise that turns x_0 into x_t: `add_noise` solved for the noise."""
    return (x_t - a_t**0.5 * x_0) / (1 - a_t) ** 0.5


def posterior(x_t: Tensor, x_0: Tensor, a_t: float, a_s: float) -> tuple[Tensor, float]:
    """Mean and variance of q(x_s | x_t, x_0); with x_0 = remove_noise(x_t, a_t, noise) the mean is the paper's mu."""
    alpha = a_t / a_s
    beta = 1 - alpha
    mu = (a_s**0.5 * beta * x_0 + alpha**0.5 * (1 - a_s) * x_t) / (1 - a_t)
    var = beta * (1 - a_s) / (1 - a_t)
    return mu, var
