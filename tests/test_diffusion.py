"""The diffusion's formulas, each reached by a second route."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Generator, Tensor

from tdce._core.errors import InputError
from tdce._core.network import Backbone, TimeEmbedding
from tdce._core.noise import Noise
from tdce._core.progress import Progress
from tdce._core.training import Adam, TrainingPlan, _clip, train
from tdce.diffusion import gaussian, multinomial
from tdce.diffusion.model import CATEGORY_WEIGHT, ROWS_PER_TIME, TabularDiffusion
from tdce.diffusion.schedule import Schedule
from tdce.schema.space import Space

SCHEDULE = Schedule.cosine(1000)
TWO_BLOCKS = Space(2, (3, 2), {"a": (0,), "b": (1,), "c": (2, 3, 4), "d": (5, 6)})


def uniforms(*sizes: int) -> tuple[Space, Tensor]:
    space = Space(0, sizes, {})
    return space, space.uniform


def draws(n: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(n, width, generator=Generator().manual_seed(seed), dtype=torch.float64)


# ---- schedule


def test_cosine_schedule_follows_its_formula_until_the_clip():
    level = [math.cos((t / 1000 + 0.008) / 1.008 * math.pi / 2) ** 2 for t in range(1001)]
    for t in (1, 10, 500, 900):
        assert SCHEDULE.alpha_bar[t] == pytest.approx(level[t] / level[0], rel=1e-9)
    assert all(b < a for a, b in zip(SCHEDULE.alpha_bar, SCHEDULE.alpha_bar[1:], strict=False))
    assert SCHEDULE.alpha(1000) == pytest.approx(0.001)  # beta is clipped at 0.999


def test_a_walk_goes_from_the_start_to_the_clean_row():
    assert SCHEDULE.walk(0.5, 5) == [(500, 400), (400, 300), (300, 200), (200, 100), (100, 0)]
    assert SCHEDULE.walk(1.0, None)[0] == (1000, 999)
    assert len(SCHEDULE.walk(1.0, None)) == 1000
    assert SCHEDULE.walk(0.003, 50) == [(3, 2), (2, 1), (1, 0)]  # no more strides than times
    assert SCHEDULE.walk(0.0, 50) == []
    assert SCHEDULE.walk(0.5, 1) == [(500, 0)]
    assert SCHEDULE.walk() == SCHEDULE.walk(1.0, None)


def test_what_is_left_of_one_time_at_another():
    assert SCHEDULE.alpha(300, 100) == SCHEDULE.alpha_bar[300] / SCHEDULE.alpha_bar[100]
    assert SCHEDULE.alpha(300) == SCHEDULE.alpha(300, 299)


@pytest.mark.parametrize(("start", "steps", "word"), [(1.2, 10, "start"), (-0.1, 10, "start"), (0.5, 0, "steps")])
def test_a_wrong_walk_is_named(start, steps, word):
    with pytest.raises(InputError, match=word):
        SCHEDULE.walk(start, steps)


# ---- numbers


def test_moments_of_the_noised_numbers():
    a = SCHEDULE.alpha_bar[300]
    x = torch.full((200_000, 1), 2.0, dtype=torch.float64)
    x_t = gaussian.add_noise(x, a, draws(200_000, 1))
    assert x_t.mean().item() == pytest.approx(math.sqrt(a) * 2, abs=0.01)
    assert x_t.var().item() == pytest.approx(1 - a, abs=0.01)


def test_the_noise_and_the_clean_row_are_both_found_again():
    x, eps = torch.tensor([[3.0, -1.0]]), torch.tensor([[0.5, 2.0]])
    x_t = gaussian.add_noise(x, 0.64, eps)  # 0.8 x + 0.6 eps
    torch.testing.assert_close(x_t, torch.tensor([[2.7, 0.4]]))
    torch.testing.assert_close(gaussian.implied_noise(x_t, x, 0.64), eps)
    torch.testing.assert_close(gaussian.remove_noise(x_t, 0.64, eps), x)


def test_t_single_gaussian_steps_are_one_jump():
    """Mean and variance carried through x_t = sqrt(alpha_t) x_{t-1} + sqrt(beta_t) eps, against the closed form."""
    mean, var = 1.5, 0.0
    for t in range(1, 701):
        alpha = SCHEDULE.alpha(t)
        mean, var = math.sqrt(alpha) * mean, alpha * var + (1 - alpha)
    a = SCHEDULE.alpha_bar[700]
    assert mean == pytest.approx(math.sqrt(a) * 1.5, rel=1e-10)
    assert var == pytest.approx(1 - a, rel=1e-10)


def test_gaussian_posterior_by_bayes_on_a_grid():
    """q(x_s | x_t, x_0) is proportional to q(x_t | x_s) q(x_s | x_0): mean and variance by summing a fine grid."""
    x_0, x_t = 0.7, -0.4
    for t, s in [(500, 499), (500, 200), (900, 899), (2, 1)]:
        a_t, a_s = SCHEDULE.alpha_bar[t], SCHEDULE.alpha_bar[s]
        alpha = a_t / a_s
        x_s = np.linspace(-12, 12, 400_001)
        log_weight = stats.norm.logpdf(x_t, np.sqrt(alpha) * x_s, np.sqrt(1 - alpha))
        log_weight = log_weight + stats.norm.logpdf(x_s, np.sqrt(a_s) * x_0, np.sqrt(1 - a_s))
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mean = (weight * x_s).sum()
        mu, var = gaussian.posterior(torch.tensor(x_t), torch.tensor(x_0), a_t, a_s)
        assert mu.item() == pytest.approx(mean, abs=1e-5)
        assert var == pytest.approx((weight * (x_s - mean) ** 2).sum(), rel=1e-3)


def test_the_posterior_mean_is_the_papers_mu():
    """mu = (x_t - beta / sqrt(1 - a_t) eps) / sqrt(1 - beta), for single steps and for strides."""
    x_t, eps = draws(50, 3, 1), draws(50, 3, 2)
    for t, s in [(1, 0), (300, 299), (800, 640)]:
        a_t, a_s = SCHEDULE.alpha_bar[t], SCHEDULE.alpha_bar[s]
        beta = 1 - a_t / a_s
        paper = (x_t - beta / math.sqrt(1 - a_t) * eps) / math.sqrt(1 - beta)
        mu, _ = gaussian.posterior(x_t, gaussian.remove_noise(x_t, a_t, eps), a_t, a_s)
        torch.testing.assert_close(mu, paper)


# ---- categories


def test_t_single_multinomial_steps_are_one_jump():
    """The product of the transition matrices, against a_t x_0 + (1 - a_t) / K."""
    k, chain = 4, np.eye(4)
    for t in range(1, 401):
        alpha = SCHEDULE.alpha(t)
        chain = chain @ (alpha * np.eye(k) + (1 - alpha) / k)
    jump = multinomial.marginal(torch.eye(k, dtype=torch.float64), SCHEDULE.alpha_bar[400], torch.full((k,), 0.25))
    np.testing.assert_allclose(chain, jump.numpy(), rtol=1e-6)


def test_multinomial_posterior_by_enumerating_bayes():
    space, u = uniforms(3)
    for (t, s), i, j in product([(600, 599), (600, 100), (1, 0)], range(3), range(3)):
        a_t, a_s = SCHEDULE.alpha_bar[t], SCHEDULE.alpha_bar[s]
        alpha = a_t / a_s
        joint = []
        for k in range(3):  # q(x_t = i | x_s = k) q(x_s = k | x_0 = j)
            joint.append((alpha * (i == k) + (1 - alpha) / 3) * (a_s * (j == k) + (1 - a_s) / 3))
        eye = torch.eye(3, dtype=torch.float64)
        log_pi = multinomial.posterior(eye[i : i + 1], eye[j : j + 1], a_t, a_s, u, space)
        np.testing.assert_allclose(log_pi.exp().numpy()[0], np.array(joint) / sum(joint), rtol=1e-5, atol=1e-12)


def test_blocks_are_treated_apart():
    space, u = uniforms(3, 2)
    both = torch.tensor([[0.2, 0.5, 0.3, 0.9, 0.1]])
    x_0 = torch.tensor([[1.0, 0.0, 0.0, 0.0, 1.0]])
    joined = multinomial.posterior(both, x_0, 0.3, 0.6, u, space)
    for part, block in [(slice(0, 3), 3), (slice(3, 5), 2)]:
        one, u_one = uniforms(block)
        alone = multinomial.posterior(both[:, part], x_0[:, part], 0.3, 0.6, u_one, one)
        torch.testing.assert_close(joined[:, part], alone)


def test_gumbel_argmax_follows_the_probabilities():
    space, _ = uniforms(3)
    pi = torch.tensor([0.2, 0.3, 0.5])
    noise = Noise(torch.arange(60_000.0)[:, None], 0)
    for tau in (0.1, 1.0, 5.0):
        soft = multinomial.gumbel_softmax(pi.log(), noise.gumbel(3), tau, space)
        share = space.one_hot(soft).mean(dim=0)
        np.testing.assert_allclose(share, pi, atol=0.03)


def test_relaxed_draws_have_the_gumbel_softmax_density():
    """K = 2: the density of the first weight (Jang et al. 2017) integrates to one and to the empirical law."""
    pi, tau = np.array([0.3, 0.7]), 0.8

    def density(x: float) -> float:
        y = np.array([x, 1 - x])
        return math.gamma(2) * tau * (pi / y**tau).sum() ** -2 * (pi / y ** (tau + 1)).prod()

    assert integrate.quad(density, 0, 1)[0] == pytest.approx(1, abs=1e-6)
    space, _ = uniforms(2)
    gumbel = -torch.log(-torch.log(torch.rand(100_000, 2, generator=Generator().manual_seed(0), dtype=torch.float64)))
    first = multinomial.gumbel_softmax(torch.tensor(pi).log(), gumbel, tau, space)[:, 0].numpy()
    for x in (0.1, 0.4, 0.8):
        assert (first < x).mean() == pytest.approx(integrate.quad(density, 0, x)[0], abs=0.006)


def test_a_cold_draw_is_one_hot_and_a_hot_one_is_flat():
    space, _ = uniforms(3)
    log_pi, gumbel = torch.tensor([[0.2, 0.3, 0.5]]).log(), torch.tensor([[0.3, 1.0, -0.2]])
    assert multinomial.gumbel_softmax(log_pi, gumbel, 1e-3, space).max().item() == pytest.approx(1)
    np.testing.assert_allclose(multinomial.gumbel_softmax(log_pi, gumbel, 1e4, space), 1 / 3, atol=1e-3)


def test_kl_of_two_coins_by_hand():
    p, q = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    by_hand = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)
    assert multinomial.divergence(p.log(), q.log()).item() == pytest.approx(by_hand)


# ---- noise


def test_noise_is_standard_normal_over_rows_and_over_seeds():
    rows = torch.randn(20_000, 3, generator=Generator().manual_seed(1))
    over_rows = Noise(rows, 0).normal(1).numpy().ravel()
    assert stats.kstest(over_rows, "norm").statistic < 0.03
    over_seeds = np.array([Noise(rows[:1], seed).normal(1).item() for seed in range(1500)])
    assert stats.kstest(over_seeds, "norm").pvalue > 0.01


def test_gumbel_noise_has_the_gumbel_law():
    gumbel = Noise(torch.randn(20_000, 2, generator=Generator().manual_seed(1)), 3).gumbel(1).numpy().ravel()
    assert stats.kstest(gumbel, "gumbel_r").statistic < 0.03


def test_noise_of_near_rows_is_shared_only_within_the_length():
    x = torch.tensor([[0.0], [0.5], [40.0]])
    smooth = Noise(x, 0, length=2.0).normal(4000)
    assert torch.corrcoef(smooth)[0, 1] == pytest.approx(math.exp(-(0.5**2) / (2 * 2**2)), abs=0.05)
    assert abs(torch.corrcoef(smooth)[0, 2]) < 0.1
    assert abs(torch.corrcoef(Noise(x, 0).normal(4000))[0, 1]) < 0.2


def test_noise_depends_on_row_seed_and_option_alone():
    x = torch.randn(300, 4, generator=Generator().manual_seed(0))
    order = torch.randperm(300, generator=Generator().manual_seed(1))
    assert torch.equal(Noise(x, 5).normal(3)[order], Noise(x[order], 5).normal(3))
    assert not torch.equal(Noise(x, 5).normal(3), Noise(x, 6).normal(3))
    assert not torch.equal(Noise(x, 5).normal(3), Noise(x, 5, 1).normal(3))


@pytest.mark.parametrize("distance", [0.0, 1.0, 2.0, 4.0])
def test_the_correlation_of_the_field_falls_with_distance_as_a_gaussian(distance):
    """Over draws, two rows so far apart: exp(-d^2 / (2 length^2)), and variance one at both."""
    x = torch.zeros(2, 3)
    x[1, 1] = distance
    draws = torch.cat([Noise(x, seed, length=2.0).normal(500) for seed in range(20)], dim=1)
    assert torch.corrcoef(draws)[0, 1] == pytest.approx(math.exp(-(distance**2) / 8), abs=0.06)
    torch.testing.assert_close(draws.var(dim=1), torch.ones(2), atol=0.05, rtol=0)


def test_smooth_noise_is_still_normal_and_gumbel_over_seeds():
    x = torch.randn(1, 4, generator=Generator().manual_seed(2))
    normal = np.array([Noise(x, seed, length=2.0).normal(1).item() for seed in range(1500)])
    assert stats.kstest(normal, "norm").pvalue > 0.01
    gumbel = np.array([Noise(x, seed, 1, length=2.0).gumbel(1).item() for seed in range(1500)])
    assert stats.kstest(gumbel, "gumbel_r").pvalue > 0.01


def test_gumbel_noise_is_the_normal_noise_through_both_distribution_functions():
    x = torch.randn(500, 3, generator=Generator().manual_seed(2))
    expected = stats.gumbel_r.ppf(stats.norm.cdf(Noise(x, 0).normal(4).double().numpy()))
    np.testing.assert_allclose(Noise(x, 0).gumbel(4).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_the_stream_is_read_in_order_whatever_the_sizes():
    """The second route: one long read of Philox's raw words."""
    words = np.random.Philox(key=np.array([7, 2], dtype=np.uint64)).random_raw(128 + 256 * 4)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    cosine = np.sqrt(1 / 128) * stats.norm.ppf(uniform[128 + 256 * 3 :])[:128].sum()  # at the origin, sines are zero
    fresh = Noise(torch.zeros(1, 1), 7, 2)
    fresh.normal(3)
    assert fresh.normal(1).item() == pytest.approx(cosine, rel=1e-5)


def test_the_stream_of_noise_never_changes():
    """Pinned: an explanation of today is computed again from the same numbers years from now."""
    first = Noise(torch.zeros(1, 1), 0).normal(2)
    np.testing.assert_allclose(first.numpy()[0], [0.6449897, 0.2811982], atol=1e-6)


# ---- network and training


def test_one_time_for_all_rows_equals_the_same_time_for_each():
    network = Backbone(5, 4, 32, 4, Generator().manual_seed(0), timed=True)
    x = torch.randn(6, 5, generator=Generator().manual_seed(1))
    torch.testing.assert_close(network(x, torch.tensor([7])), network(x, torch.full((6,), 7)))
    mixed = network(x, torch.tensor([7, 9]))  # rows 0 to 2 at time 7, rows 3 to 5 at time 9
    torch.testing.assert_close(mixed[:3], network(x[:3], torch.tensor([7])))
    torch.testing.assert_close(mixed[3:], network(x[3:], torch.tensor([9])))


def test_the_time_embedding_of_a_step_is_computed_once(monkeypatch):
    model, seen = TabularDiffusion(TWO_BLOCKS, hidden=16), []
    forward = TimeEmbedding.forward
    monkeypatch.setattr(TimeEmbedding, "forward", lambda self, t: seen.append(len(t)) or forward(self, t))
    model.denoise(torch.zeros(64, TWO_BLOCKS.width), 10)
    assert seen == [1]


def test_networks_are_seeded_and_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    one, two = (TabularDiffusion(TWO_BLOCKS, hidden=16, seed=4) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


class Ignorant(torch.nn.Module):
    """A network that says nothing: no noise, all categories alike. It remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.asked = torch.nn.Parameter(torch.zeros(())), []

    def forward(self, x_t: Tensor, t: Tensor) -> Tensor:
        self.asked.append((x_t, t))
        return torch.zeros_like(x_t) + self.weight


def ignorant(space: Space, times: int) -> TabularDiffusion:
    model = TabularDiffusion(space, hidden=8, blocks=1, times=times)
    model.network = Ignorant()
    return model


def one_hot_rows(space: Space, n: int) -> Tensor:
    """Numbers all 0, categories all the first."""
    x = torch.zeros(n, space.width)
    x[:, space.num + torch.tensor([0, *space.sizes[:-1]]).cumsum(0)] = 1.0
    return x


def test_the_temperature_is_cool_at_the_clean_row_and_warm_in_the_noise():
    model = TabularDiffusion(TWO_BLOCKS, hidden=8, blocks=1, times=1000, tau=(0.5, 0.2))
    assert [model.temperature(t) for t in (0, 500, 1000)] == pytest.approx([0.2, 0.35, 0.5])
    assert [model.temperature(t, (0.9, 0.1)) for t in (0, 250, 1000)] == pytest.approx([0.1, 0.3, 0.9])


@pytest.mark.parametrize("times", [20, 100])
def test_the_loss_of_a_network_that_knows_nothing_is_the_variance_and_the_entropy(times):
    """The noise has variance 1. The bound of the categories is a sum over T times, and is tight for a model that takes
    all categories to be alike: the mean over blocks of log K, whatever T."""
    model, x = ignorant(TWO_BLOCKS, times), one_hot_rows(TWO_BLOCKS, 100_000)
    expected = 1 + CATEGORY_WEIGHT * (math.log(3) + math.log(2)) / 2
    assert model.loss(x, Generator().manual_seed(0)).item() == pytest.approx(expected, abs=0.01)
    numbers, categories = Space(2, (), {}), Space(0, (3,), {})
    alone = ignorant(numbers, times).loss(torch.zeros(50_000, 2), Generator().manual_seed(0)).item()
    assert alone == pytest.approx(1, abs=0.02)
    alone = ignorant(categories, times).loss(one_hot_rows(categories, 100_000), Generator().manual_seed(0)).item()
    assert alone / CATEGORY_WEIGHT == pytest.approx(math.log(3), abs=0.04)


def test_training_rows_are_noised_and_relaxed_as_the_walk_meets_them():
    """At every time: of a coin, tau times the logit less log((1 + a) / (1 - a)) follows the logistic law, and the
    number is N(0, 1 - a) around sqrt(a) times itself."""
    space, times = Space(1, (2,), {}), 10
    model, x = ignorant(space, times), one_hot_rows(space, 200_000)
    x[:, 0] = 3.0
    model.loss(x, Generator().manual_seed(0))
    ((x_t, t),) = model.network.asked
    at = t.repeat_interleave(ROWS_PER_TIME)
    assert set(t.tolist()) == set(range(1, times + 1))
    for now in range(1, times + 1):
        a, (number, first, second) = model.schedule.alpha_bar[now], x_t[at == now].double().T
        assert number.mean().item() == pytest.approx(3 * math.sqrt(a), abs=0.03)
        assert number.std().item() == pytest.approx(math.sqrt(1 - a), abs=0.03)
        sure = (first > 0) & (second > 0)  # a float32 softmax ends at 1e-45
        rest = model.temperature(now) * (first / second)[sure].log() - math.log((1 + a) / (1 - a))
        assert rest.median().item() == pytest.approx(0, abs=0.08)
        assert (rest.quantile(0.75) - rest.quantile(0.25)).item() == pytest.approx(2 * math.log(3), abs=0.1)


def test_a_transition_takes_the_argmax_of_relaxed_categories_or_the_soft_ones_as_they_are():
    space = Space(1, (2,), {})
    model = TabularDiffusion(space, hidden=8, blocks=1)
    x_t, x_0 = torch.tensor([[0.5, 0.6, 0.4]]), torch.tensor([[1.0, 0.3, 0.7]])
    a_t, a_s = model.schedule.alpha_bar[500], model.schedule.alpha_bar[200]
    alpha = a_t / a_s
    for soft, first in ((None, 1.0), (False, 1.0), (True, 0.6)):
        found = model.transition(x_t, x_0, 500, 200, **({} if soft is None else {"soft": soft}))
        weights = [
            (alpha * now + (1 - alpha) / 2) * (a_s * clean + (1 - a_s) / 2)
            for now, clean in ((first, 0.3), (1 - first, 0.7))
        ]
        assert found.log_pi[0].exp().tolist() == pytest.approx([w / sum(weights) for w in weights], rel=1e-4)
        mu, var = gaussian.posterior(x_t[:, :1], x_0[:, :1], a_t, a_s)
        assert torch.equal(found.mu, mu)
        assert found.var == var


def test_every_stratum_of_the_times_has_its_rows_and_an_odd_row_its_place():
    """80 rows are ten times eight: all ten times appear once; nine rows are made up to sixteen for two times."""
    space = Space(1, (), {})
    model = ignorant(space, 10)
    model.loss(torch.zeros(80, 1), Generator().manual_seed(0))
    model.loss(torch.zeros(9, 1), Generator().manual_seed(0))
    (many, times), (few, two) = model.network.asked
    assert len(many) == 80
    assert times.sort().values.tolist() == list(range(1, 11))
    assert times.tolist() != sorted(times.tolist())  # in random order
    assert (len(few), len(two)) == (16, 2)


def test_all_chance_of_the_training_comes_from_the_seed():
    x = torch.cat([draws(40, 2).float(), one_hot_rows(TWO_BLOCKS, 40)[:, 2:]], dim=1)
    learned = []
    for _ in range(2):
        model = TabularDiffusion(TWO_BLOCKS, hidden=8, blocks=1, seed=3)
        history = model.fit(x[8:], x[:8], TrainingPlan(steps=4, batch=16, check_every=2), 5, Progress("silent"))
        learned.append((history, model.loss(x, Generator().manual_seed(1)).item(), model.network(x, torch.tensor([3]))))
        torch.rand(3)  # the global generator goes on
    (one, first, out), (two, second, other) = learned
    assert one == two
    assert first == second
    assert torch.equal(out, other)


def test_training_is_checked_on_held_out_rows_that_are_told_their_classes():
    """Eight rows 256 times make 2,048, from the noise of the seed."""
    x, y = torch.cat([draws(40, 2).float(), one_hot_rows(TWO_BLOCKS, 40)[:, 2:]], dim=1), torch.arange(40) % 2
    model = TabularDiffusion(TWO_BLOCKS, hidden=8, blocks=1, classes=2)
    history = model.fit(x[8:], x[:8], TrainingPlan(steps=4, batch=16), 5, Progress("silent"), (y[8:], y[:8]))
    told, untold = (model.loss(x[:8].repeat(256, 1), Generator().manual_seed(5), y) for y in (y[:8].repeat(256), None))
    assert history.best_loss == told.item() != untold.item()


def test_the_settings_are_those_it_was_made_with():
    model = TabularDiffusion(Space(1, (), {}))
    assert model.settings == {"hidden": 256, "blocks": 4, "times": 1000, "classes": 0, "tau": [0.5, 0.2]}
    made = TabularDiffusion(Space(1, (), {}), **model.settings, seed=0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), made.parameters(), strict=True))


def test_what_is_denoised_is_the_clean_row_of_the_networks_noise_within_the_datas_range():
    """A network that says no noise: x_0 = x_t / sqrt(a), cut at the range; categories that are all alike."""
    model = ignorant(TWO_BLOCKS, 1000)
    model.low, model.high = torch.tensor([-1.0, -9.0]), torch.tensor([1.0, 9.0])
    found = model.denoise(torch.tensor([[3.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0]]), 300)
    expected = [1.0, 3.0 / math.sqrt(SCHEDULE.alpha_bar[300]), *[1 / 3] * 3, *[1 / 2] * 2]
    np.testing.assert_allclose(found[0].detach(), expected, rtol=1e-5)


def test_a_noised_row_follows_the_forward_law_and_time_zero_is_the_row():
    space, n = Space(1, (2,), {}), 20_000
    model = TabularDiffusion(space, hidden=8, blocks=1)
    x = torch.cat([torch.linspace(0, 1e-3, n)[:, None] + 2.0, torch.tensor([[1.0, 0.0]]).expand(n, -1)], dim=1)
    rows = Noise(torch.arange(float(n))[:, None], 0, 0)
    assert torch.equal(model.add_noise(x, 0, rows), x)
    assert not torch.equal(model.add_noise(x, 1, rows), x)
    x_t, a = model.add_noise(x, 400, rows), model.schedule.alpha_bar[400]
    assert x_t[:, 0].mean().item() == pytest.approx(2 * math.sqrt(a), abs=0.03)
    assert x_t[:, 0].std().item() == pytest.approx(math.sqrt(1 - a), abs=0.08)
    assert (x_t[:, 1] > x_t[:, 2]).double().mean().item() == pytest.approx((1 + a) / 2, abs=0.02)
    hot = model.add_noise(x, 400, Noise(torch.arange(float(n))[:, None], 0, 0), tau=(1e4, 1e4))
    np.testing.assert_allclose(hot[:, 1:], 0.5, atol=1e-2)


def test_training_that_diverges_stops_with_a_reason():
    model = TabularDiffusion(TWO_BLOCKS, hidden=8)
    x = torch.zeros(16, TWO_BLOCKS.width)
    x[:, 0] = torch.inf
    with pytest.raises(FloatingPointError, match=r"diffusion model: the loss is .* at step 1"):
        model.fit(x, x, TrainingPlan(steps=5, batch=8), 0, Progress("silent"))


def test_training_stops_early_and_keeps_the_best_weights():
    """A held-out loss that is best at its second check: those averaged weights come back, and training ends."""
    module = torch.nn.Linear(1, 1, bias=False)
    checks = iter([3.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    kept = []

    def held_out(averaged: torch.nn.Module) -> Tensor:
        assert not averaged.weight.requires_grad  # or its products would be those of training
        kept.append(averaged.weight.clone())
        return torch.tensor(next(checks))

    x = torch.linspace(-1, 1, 32)[:, None]
    history = train(
        module, lambda m, i, _: (m(x[i]) - 3 * x[i]).square().mean(), held_out, 32,
        TrainingPlan(steps=100, batch=8, check_every=5, patience=3), 0, Progress("silent"), "a line",
    )  # fmt: skip
    assert (history.best_step, history.best_loss) == (10, 1.0)
    assert history.checks[-1][0] == 25
    assert torch.equal(module.weight, kept[1])


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip", [1.0, math.inf])
def test_a_step_of_training_is_that_of_torch_to_the_bit(decay, clip):
    """With gradients whose norm is now above 1 and now below, and a rate that falls."""
    start, slopes = (draws(30, 12, seed).float() for seed in (0, 1))
    ours, theirs = ((start[:5].clone(), start[5, :7].clone()) for _ in range(2))
    torchs = torch.optim.AdamW(theirs, betas=(0.9, 0.99), weight_decay=decay)
    adam = Adam(ours, betas=(0.9, 0.99), decay=decay)
    for step, rate in enumerate((0.1, 0.05, 0.03, 0.0)):
        size = (1.0, 0.01)[step % 2]
        gradients = size * slopes[5 * step :][:5], size * slopes[20 + step, :7]
        adam.step(_clip(gradients, clip), rate)
        for weight, gradient in zip(theirs, gradients, strict=True):
            weight.grad = gradient.clone()
        assert (torch.nn.utils.clip_grad_norm_(theirs, clip) > 1) == (size == 1)
        torchs.param_groups[0]["lr"] = rate
        torchs.step()
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert not torch.equal(ours[0], start[:5])


@pytest.fixture(scope="module")
def simple_table() -> tuple[TabularDiffusion, Tensor]:
    """Two numbers and a category that go together: c = 0 has numbers near -1, c = 1 near +1; d is a fair coin."""
    generator = Generator().manual_seed(0)
    c = (torch.rand(3000, generator=generator) < 0.7).long()
    centre = torch.where(c == 0, -1.0, 1.0)[:, None]
    num = centre + 0.3 * torch.randn(3000, 2, generator=generator)
    d = (torch.rand(3000, generator=generator) < 0.5).long()
    hot = torch.nn.functional.one_hot
    x = torch.cat([num, hot(c, 3).float(), hot(d, 2).float()], dim=1)
    model = TabularDiffusion(TWO_BLOCKS, hidden=64, blocks=2)
    model.fit(x[:2500], x[2500:], TrainingPlan(steps=500, batch=256), 0, Progress("silent"))
    return model, x


def test_samples_look_like_the_table(simple_table):
    model, _x = simple_table
    sample = model.sample(Noise(torch.arange(2000.0)[:, None], 0), steps=50)
    _, cat = TWO_BLOCKS.split(sample)
    assert cat[:, :3].mean(dim=0).numpy() == pytest.approx([0.3, 0.7, 0.0], abs=0.06)
    assert cat[:, 3].mean().item() == pytest.approx(0.5, abs=0.06)
    for category, centre in [(0, -1.0), (1, 1.0)]:
        inside = sample[cat[:, category] == 1, :2]
        np.testing.assert_allclose(inside.mean(dim=0), centre, atol=0.12)
        np.testing.assert_allclose(inside.std(dim=0), 0.3, atol=0.12)


def test_training_lowers_the_loss(simple_table):
    model, x = simple_table
    untrained = TabularDiffusion(TWO_BLOCKS, hidden=64, blocks=2)
    now, then = (m.loss(x[:1000], Generator().manual_seed(9)).item() for m in (model, untrained))
    assert now < 0.7 * then


@pytest.mark.parametrize("space", [Space(2, (), {}), Space(0, (3,), {}), Space(1, (1,), {})])
def test_tables_of_one_kind_can_be_trained_and_sampled(space):
    x = torch.zeros(20, space.width)
    x[:, space.num : space.num + 1] = 1.0
    model = TabularDiffusion(space, hidden=8, blocks=2)
    model.fit(x, x, TrainingPlan(steps=3, batch=7), 0, Progress("silent"))
    sample = model.sample(Noise(torch.arange(5.0)[:, None], 0), steps=4)
    assert sample.shape == (5, space.width)
    assert torch.isfinite(sample).all()
