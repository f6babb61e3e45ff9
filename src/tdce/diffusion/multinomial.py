"""Multinomial diffusion of the categories (Hoogeboom et al. 2021) and its Gumbel-softmax relaxation.

Each function takes rows of one or several blocks of weights side by side, one block per categorical feature; `u` is
1 / K for each weight, with the K of its block (`space.uniform`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from tdce.diffusion.gaussian import Level
from tdce.schema import Space

TINY = 1e-30  # in place of a probability of 0 in a logarithm


def marginal(x_0: Tensor, a_t: Level, u: Tensor) -> Tensor:
    """The probabilities of q(x_t | x_0) = Cat(a_t x_0 + (1 - a_t) / K)."""
    return a_t * x_0 + (1 - a_t) * u


def posterior(x_t: Tensor, x_0: Tensor, a_t: Level, a_s: Level, u: Tensor, space: Space) -> Tensor:
    """Log probabilities of q(x_s | x_t, x_0), s < t; x_t and x_0 may be soft.

    pi = [alpha x_t + (1 - alpha) / K] * [a_s x_0 + (1 - a_s) / K], alpha = a_t / a_s, each block normalised.
    """
    alpha = a_t / a_s
    pi = (alpha * x_t + (1 - alpha) * u) * (a_s * x_0 + (1 - a_s) * u)
    return space.log_softmax(torch.log(pi.clamp_min(TINY)))


def gumbel_softmax(log_pi: Tensor, gumbel: Tensor, tau: Level, space: Space) -> Tensor:
    """A draw from the Gumbel-softmax distribution, softmax((log pi + g) / tau): eqn:re-param. Its density is
    eqn:gumbel_softmax; it becomes one-hot as tau goes to 0."""
    return space.softmax((log_pi + gumbel) / tau)


def divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """(n,) KL(p || q), summed over the blocks: the term L_t of eq.elbo."""
    return (log_p.exp() * (log_p - log_q)).sum(dim=1)
