"""Where the guidance enters: Algorithm 1's lines 6 and 7 by hand, and what each option is told of those before it."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from tdce._core.noise import Noise
from tdce.diffusion import gaussian
from tdce.diffusion.model import TabularDiffusion
from tdce.methods.algorithm1 import Gradients, Guided
from tdce.models.goals import Class, Goals
from tdce.schema.space import Space

# ---- Algorithm 1


def second_step(monkeypatch, gradients: Gradients, guidance: float, **reading: object) -> tuple[Tensor, Tensor]:
    """The noisy rows at the first step, t = 800, and at the second, t = 400, with these gradients at every step."""
    space = Space(2, (2,), {"a": (0,), "b": (1,), "c": (2, 3)})
    task = SimpleNamespace(
        space=space,
        diffusion=TabularDiffusion(space, hidden=8, blocks=1),
        mutable=torch.ones(space.width, dtype=torch.bool),
        require_guide=lambda who: None,
    )
    monkeypatch.setattr(Guided, "gradients", lambda *_: gradients)
    method = Guided(**{"steps": 2, "guidance": guidance, "tau": None} | reading).fit(task)
    x = torch.tensor([[1.0, -2.0, 1.0, 0.0], [3.0, 0.5, 0.0, 1.0]])
    seen = {t: x_t for t, x_t, _ in method.walk(x, Goals.all(Class(1), 2), Noise(x, 0), start=0.8)}
    return seen[800], seen[400]


X_0 = torch.tensor([[0.5, 0.5, 0.7, 0.3], [-1.0, 2.0, 0.2, 0.8]])  # the denoised rows


@pytest.mark.parametrize("sigma", ["variance", "deviation"])
def test_line_6_moves_the_numbers_by_sigma_times_the_norm_of_mu_along_the_gradient(monkeypatch, sigma):
    g_num = torch.tensor([[0.6, 0.8], [1.0, 0.0]])
    still, guided = (
        second_step(monkeypatch, Gradients(X_0, g, torch.zeros(2, 2)), 1.0, sigma=sigma)
        for g in (torch.zeros(2, 2), g_num)
    )
    a_t, a_s = alpha_bars()
    mu, var = gaussian.posterior(still[0][:, :2], X_0[:, :2], a_t, a_s)
    norm = (mu[:, 0] ** 2 + mu[:, 1] ** 2).sqrt()
    assert not torch.allclose(norm, torch.ones(2), atol=0.1)  # or it could be left out unnoticed
    assert abs(var - var**0.5) > 0.1
    by = {"variance": var, "deviation": var**0.5}[sigma]
    torch.testing.assert_close((guided[1] - still[1])[:, :2], by * norm[:, None] * g_num, rtol=1e-3, atol=1e-5)
    assert torch.equal(guided[1][:, 2:], still[1][:, 2:])


@pytest.mark.parametrize("cat_guidance", [1.0, 0.5])
@pytest.mark.parametrize("cat_scale", ["lambda", "norm", "norm_pi"])
def test_line_7_adds_the_scaled_gradient_to_the_log_probabilities(monkeypatch, cat_scale, cat_guidance):
    """By lambda, and by the norm of what it is added to: the posterior's log probabilities, or its probabilities."""
    g_cat = torch.tensor([[0.1, -0.2], [-0.3, 0.1]])
    still, guided = (
        second_step(
            monkeypatch, Gradients(X_0, torch.zeros(2, 2), g), 1.5, cat_scale=cat_scale, cat_guidance=cat_guidance
        )
        for g in (torch.zeros(2, 2), g_cat)
    )
    pi = by_bayes(still[0])
    by = {"lambda": 1.0, "norm": (pi.log() ** 2).sum(dim=1).sqrt(), "norm_pi": (pi**2).sum(dim=1).sqrt()}[cat_scale]
    tau = 0.2 + 0.3 * 400 / 1000
    moved = [(each[1][:, 2] / each[1][:, 3]).log() for each in (still, guided)]
    expected = 1.5 * cat_guidance * by * (g_cat[:, 0] - g_cat[:, 1]) / tau
    torch.testing.assert_close(moved[1] - moved[0], expected, rtol=1e-2, atol=1e-3)
    assert torch.equal(guided[1][:, :2], still[1][:, :2])


def test_without_noise_lines_6_and_7_are_all_there_is(monkeypatch):
    """The second row from the first by the printed lines alone: mu + |mu| Sigma g, softmax(log pi + |log pi| g)."""
    g_num, g_cat = torch.tensor([[0.6, 0.8], [1.0, 0.0]]), torch.tensor([[0.1, -0.2], [-0.3, 0.1]])
    first, second = second_step(
        monkeypatch, Gradients(X_0, g_num, g_cat), 1.0, sigma="variance", cat_scale="norm", loop_noise=False
    )
    mu, var = gaussian.posterior(first[:, :2], X_0[:, :2], *alpha_bars())
    num = mu + var * (mu**2).sum(dim=1, keepdim=True).sqrt() * g_num
    log_pi = by_bayes(first).log()
    weight = (log_pi + (log_pi**2).sum(dim=1, keepdim=True).sqrt() * g_cat).exp()
    torch.testing.assert_close(second, torch.cat([num, weight / weight.sum(dim=1, keepdim=True)], dim=1))


def test_a_temperature_of_its_own_holds_from_line_1_on(monkeypatch):
    """Warm 2 and cool 1 for 0.5 and 0.2: the same log odds, divided by 1.8 and 1.4 for 0.44 and 0.32."""
    unguided = Gradients(X_0, torch.zeros(2, 2), torch.zeros(2, 2))
    usual, warm = (second_step(monkeypatch, unguided, 1.0, **tau) for tau in ({}, {"tau": (2.0, 1.0)}))
    for one, two, tau, own_tau in zip(usual, warm, (0.44, 0.32), (1.8, 1.4), strict=True):
        odds, own_odds = ((x_t[:, 2] / x_t[:, 3]).log() for x_t in (one, two))
        torch.testing.assert_close(tau * odds, own_tau * own_odds, rtol=1e-3, atol=1e-3)


def alpha_bars() -> tuple[float, float]:
    """At the first time, 800, and at the second, 400."""
    alpha_bar = TabularDiffusion(Space(1, (), {}), 8, 1).schedule.alpha_bar
    return alpha_bar[800], alpha_bar[400]


def by_bayes(x_t: Tensor) -> Tensor:
    """(n, 2) the posterior of the two categories by enumeration: q(x_s = k | x_0) q(x_t | x_s = k), normalised."""
    a_t, a_s = alpha_bars()
    stay, seen = a_t / a_s, x_t[:, 2:].argmax(dim=1)
    joint = torch.stack(
        [
            (a_s * X_0[:, 2 + k] + (1 - a_s) / 2) * torch.where(seen == k, stay + (1 - stay) / 2, (1 - stay) / 2)
            for k in (0, 1)
        ],
        dim=1,
    )
    return joint / joint.sum(dim=1, keepdim=True)
