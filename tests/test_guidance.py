"""Where the guidance enters: Algorithm 1's lines 6 and 7 by hand, and what each option is told of those before it."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from tdce.diffusion import gaussian
from tdce.diffusion.model import TabularDiffusion
from tdce.encoder import Encoder
from tdce.explaining import explain
from tdce.explanation import Question
from tdce.goal import Class, Goals
from tdce.judge import Judge
from tdce.limits import Limits
from tdce.methods import Query, Task, TDCEPaper
from tdce.methods.algorithm1 import Gradients
from tdce.methods.interface import Search
from tdce.models.model import OnEncoded
from tdce.noise import Noise
from tdce.space import Space

# ---- Algorithm 1


def second_step(monkeypatch, gradients: Gradients, guidance: float) -> tuple[Tensor, Tensor]:
    """The noisy rows at the first step, t = 800, and at the second, t = 400, with these gradients at every step."""
    space, seen = Space(2, (2,), {"a": (0,), "b": (1,), "c": (2, 3)}), {}
    task = SimpleNamespace(
        space=space,
        diffusion=TabularDiffusion(space, hidden=8, blocks=1),
        mutable=torch.ones(space.width, dtype=torch.bool),
        lead=lambda who: None,
    )
    monkeypatch.setattr(TDCEPaper, "gradients", lambda *_: gradients)
    method = TDCEPaper(steps=2, guidance=guidance, watch_=lambda t, x_t, x_0: seen.setdefault(t, x_t)).fit(task)
    x = torch.tensor([[1.0, -2.0, 1.0, 0.0], [3.0, 0.5, 0.0, 1.0]])
    method.walk(x, Goals.all(Class(1), 2), Noise(x, 0), start=0.8)
    return seen[800], seen[400]


X_0 = torch.tensor([[0.5, 0.5, 0.7, 0.3], [-1.0, 2.0, 0.2, 0.8]])  # the denoised rows


def test_line_6_moves_the_numbers_by_the_variance_times_the_norm_of_mu_along_the_gradient(monkeypatch):
    g_num = torch.tensor([[0.6, 0.8], [1.0, 0.0]])
    still, guided = (
        second_step(monkeypatch, Gradients(X_0, g, torch.zeros(2, 2)), 1.0) for g in (torch.zeros(2, 2), g_num)
    )
    a_t, a_s = (TabularDiffusion(Space(1, (), {}), 8, 1).schedule.alpha_bar[t] for t in (800, 400))
    mu, var = gaussian.posterior(still[0][:, :2], X_0[:, :2], a_t, a_s)
    norm = (mu[:, 0] ** 2 + mu[:, 1] ** 2).sqrt()
    assert not torch.allclose(norm, torch.ones(2), atol=0.1)  # or it could be left out unnoticed
    torch.testing.assert_close((guided[1] - still[1])[:, :2], var * norm[:, None] * g_num, rtol=1e-3, atol=1e-5)
    assert torch.equal(guided[1][:, 2:], still[1][:, 2:])


def test_line_7_adds_lambda_times_the_gradient_to_the_log_probabilities(monkeypatch):
    g_cat = torch.tensor([[0.1, -0.2], [-0.3, 0.1]])
    still, guided = (
        second_step(monkeypatch, Gradients(X_0, torch.zeros(2, 2), g), 1.5) for g in (torch.zeros(2, 2), g_cat)
    )
    tau = 0.2 + 0.3 * 400 / 1000
    moved = [(each[1][:, 2] / each[1][:, 3]).log() for each in (still, guided)]
    torch.testing.assert_close(moved[1] - moved[0], 1.5 * (g_cat[:, 0] - g_cat[:, 1]) / tau, rtol=1e-2, atol=1e-3)
    assert torch.equal(guided[1][:, :2], still[1][:, :2])


# ---- options


@dataclass(frozen=True)
class OneByOne:
    """Its first option raises the first feature, its second the second, and so on in turn; it notes what it is told."""

    edition: ClassVar[int] = 1
    random: ClassVar[bool] = True
    has_dial: ClassVar[bool] = False
    told: ClassVar[list[Query]]
    task_: Task | None = None

    def fit(self, task: Task) -> "OneByOne":
        return replace(self, task_=task)

    def search(self, query: Query, noise: Noise) -> Search:
        self.told.append(query)
        x_cf = query.x.clone()
        x_cf[:, query.option % 2] += 1.0
        return x_cf
        yield


@pytest.fixture
def told() -> list[Query]:
    """What the queries of two options say, for three people and a model that likes both numbers to be high."""
    frame = pd.DataFrame({"a": np.arange(11.0), "b": np.arange(11.0)})
    encoder = Encoder.fit(frame)
    OneByOne.told = []

    def classify(x: Tensor) -> Tensor:
        return torch.stack([torch.zeros(len(x)), x.sum(dim=1) - 2.0], dim=1)

    task = SimpleNamespace(judge=Judge(OnEncoded(classify, encoder.embed, (0, 1))))
    rows = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 2.0, 0.0]})
    method = OneByOne().fit(task)
    explain(method, Limits.of(encoder, rows), Question(Goals.all(Class(1), 3), options=2))
    return OneByOne.told


def test_an_option_is_told_what_those_before_it_changed(told):
    assert [query.option for query in told] == [0, 1, 2, 3, 4]  # five draws, to choose two from
    expected = [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)]
    for query, (a, b) in zip(told, expected, strict=True):
        assert query.changed[:3].tolist() == [[a, b]] * 3
