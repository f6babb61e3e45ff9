"""The variational autoencoder and the searches in its latent space: REVISE, CLUE, C-CHVAE."""

from dataclasses import replace
from math import log
from types import SimpleNamespace

import lending
import pytest
import torch
import toys
from asking import class_goals, run_method
from test_wachter import CATEGORIES, NUMBERS, toy
from torch.distributions import Categorical, Independent, Normal, OneHotCategorical, kl_divergence

from tdce._core.noise import Noise
from tdce.methods.baselines.cchvae import CCHVAE, shell
from tdce.methods.baselines.latent import Clue, Revise, entropy
from tdce.methods.baselines.vae import VAE, kl_from_normal, mlp

ENCODER = toys.encoder("ab", c=3)
SPACE = ENCODER.space
# the table itself as latent space
AS_IS = SimpleNamespace(encode=lambda x: (x, torch.zeros_like(x)), decode=lambda z, x: z)


@pytest.fixture(scope="module")
def rows():
    """b is close to a, and c says where a is."""
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(800, 1, generator=generator)
    c = torch.bucketize(a.squeeze(1), torch.tensor([-0.5, 0.5]))
    b = a + 0.1 * torch.randn(800, 1, generator=generator)
    return torch.cat([a, b, torch.eye(3)[c]], dim=1)


@pytest.fixture(scope="module")
def task(rows):
    return replace(toy(ENCODER, [3.0, 0.0, 0.0, 0.0, 0.0], -1.0), x=rows)


@pytest.fixture(scope="module")
def vae(task):
    return VAE.of(task, latent=2, hidden=32)


@pytest.fixture(scope="module")
def conditional(task):
    return VAE.of(task, latent=2, hidden=32, given=SPACE.mask(["a"]))


def test_kl_is_that_of_torch():
    mu, log_var = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    q, p = Normal(mu, (log_var / 2).exp()), Normal(0.0, 1.0)
    torch.testing.assert_close(kl_from_normal(mu, log_var), kl_divergence(q, p).sum(dim=1))


def test_log_likelihood_is_that_of_torch(vae, rows):
    z = vae.encode(rows)[0]
    mean, weights = SPACE.split(vae.decode(z, rows))
    num, cat = SPACE.split(rows)
    scale = vae.log_scale.exp().clamp_min(0.05)
    expected = Independent(Normal(mean, scale), 1).log_prob(num) + OneHotCategorical(weights).log_prob(cat)
    torch.testing.assert_close(vae.log_likelihood(rows, z), expected, atol=1e-4, rtol=1e-4)


def test_a_row_is_found_again_in_its_code(vae, rows):
    mean, weights = SPACE.split(vae.decode(vae.encode(rows)[0], rows))
    num, cat = SPACE.split(rows)
    assert (mean - num).square().mean() < 0.05  # of a variance of one
    assert (weights.argmax(dim=1) == cat.argmax(dim=1)).float().mean() > 0.9


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr("tdce.methods.baselines.vae.STEPS", 10)


def test_training_is_seeded(task, few_steps):
    few = replace(task, x=task.x[:40])
    one, two, other = (
        VAE.of(replace(few, seed=seed, memo={}), latent=2, hidden=8).decode(torch.zeros(1, 2), task.x[:1])
        for seed in (3, 3, 4)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_methods_that_ask_for_the_same_one_share_it(task, few_steps):
    few = replace(task, x=task.x[:40], memo={})
    vae = VAE.of(few, latent=2, hidden=8)
    assert VAE.of(few, latent=2, hidden=8) is vae
    assert VAE.of(few, latent=3, hidden=8) is not vae
    assert VAE.of(replace(few, x=task.x[:40].clone()), latent=2, hidden=8) is not vae  # other rows


@pytest.mark.parametrize("encoder", [CATEGORIES, NUMBERS], ids=["categories", "numbers"])
def test_tables_of_one_kind_and_of_few_rows_are_learned(encoder, few_steps):
    width = encoder.space.width
    x = torch.eye(width)[:4]
    vae = VAE.of(replace(toy(encoder, [0.0] * width, 0.0), x=x), latent=2, hidden=8)
    assert torch.isfinite(vae.decode(vae.encode(x)[0], x)).all()


def test_the_condition_is_kept_and_heeded(conditional, rows):
    given = rows[:64].clone()
    given[:, 0] = torch.linspace(-1.5, 1.5, 64)
    decoded = conditional.decode(torch.zeros(64, 2), given)
    assert torch.equal(decoded[:, 0], given[:, 0])
    assert (decoded[:, 1] - given[:, 0]).abs().mean() < 0.2  # b is close to a
    assert decoded[0, 2:].argmax() == 0
    assert decoded[-1, 2:].argmax() == 2


def test_the_condition_is_not_part_of_the_likelihood(conditional, rows):
    z, bias = torch.zeros(len(rows), 2), conditional.decoder[-1].bias
    before, own = conditional.log_likelihood(rows, z), bias.clone()
    try:
        bias[0] += 5.0  # what the decoder says of a, which is given
        assert torch.equal(conditional.log_likelihood(rows, z), before)
    finally:
        bias.copy_(own)


def test_both_hidden_layers_bend():
    network = mlp(1, 8, 1, torch.Generator().manual_seed(0))
    assert [type(part) for part in network[1::2]] == [torch.nn.SiLU] * 2
    assert [part.weight.shape for part in network[::2]] == [(8, 1), (8, 8), (1, 8)]


def test_entropy_is_that_of_torch():
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(entropy(logits), Categorical(logits=logits).entropy())


def test_the_losses_by_hand():
    """Two equal logits: an entropy of log 2. The goal's loss is 3 and weighs 5, the distance is 4."""
    given = torch.zeros(1, 2), torch.tensor([3.0]), torch.tensor([4.0]), torch.tensor([5.0])
    assert Revise(proximity=0.5).loss(*given).item() == 5 * 3 + 0.5 * 4
    assert Clue(proximity=0.5, pull=2.0).loss(*given).item() == pytest.approx(log(2) + 0.5 * 4 + 2 * 5 * 3)


def test_revise_finds_the_nearest_flip_where_the_table_is_the_latent_space():
    # L1: along a the border 4 a + b = 4 is nearest
    task, x = toy(NUMBERS, [4.0, 1.0], -4.0), torch.zeros(1, 2)
    revise = Revise(proximity=1.0, growth=1.2, task_=task, vae_=AS_IS)
    x_cf = run_method(revise, x, class_goals(1, x))
    assert x_cf[0].tolist() == pytest.approx([1.0, 0.0], abs=0.1)


def test_clue_with_a_pull_comes_to_the_target():
    task, x = toy(NUMBERS, [1.0, 0.0], 0.0), torch.tensor([[-0.1, 0.0]])
    x_cf = run_method(Clue(task_=task, vae_=AS_IS), x, class_goals(1, x))
    assert x_cf[0, 0] > 0


def test_clue_as_published_seeks_certainty_not_the_target():
    # the row is unsure but refused: surer means farther on the refused side
    task, x = toy(NUMBERS, [1.0, 0.0], 0.0), torch.tensor([[-0.1, 0.0]])
    clue = Clue(pull=0.0, proximity=0.01, task_=task, vae_=AS_IS)
    x_cf = run_method(clue, x, class_goals(1, x))
    assert x_cf[0, 0] < -1


def test_the_shell_is_uniform_in_volume():
    x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    points = shell(Noise(x, 0), 40, 3, 1.0, 2.0)
    r = points.norm(dim=2).flatten()
    assert r.min() >= 1 - 1e-5
    assert r.max() <= 2 + 1e-5
    inner = (r < 4.5 ** (1 / 3)).float().mean()  # half of the volume lies within r^3 = (1 + 8) / 2
    assert inner.item() == pytest.approx(0.5, abs=0.03)
    assert (points / points.norm(dim=2, keepdim=True)).mean(dim=(0, 1)).abs().max() < 0.03


def test_the_answer_comes_from_the_first_ring_that_holds_one():
    # the border a = 1.2 is first reached in the third ring, from 1.0 to 1.5; far more points than needed to hit it
    task, x = toy(NUMBERS, [1.0, 0.0], -1.2), torch.stack([torch.zeros(64), torch.linspace(3, 4, 64)], dim=1)
    method = CCHVAE(candidates=256, rings=3, width=0.5, latent=2, task_=task, vae_=AS_IS)
    x_cf = run_method(method, x, class_goals(1, x))
    assert (x_cf[:, 0] > 1.2).all()
    assert ((x_cf - x).norm(dim=1) <= 1.5 + 1e-5).all()


def test_what_cannot_change_is_the_condition_of_the_rings(task, few_steps):
    frozen = SPACE.mask(["a"])
    fitted = CCHVAE(latent=2, hidden=8).fit(replace(task, x=task.x[:40], mutable=~frozen))
    assert torch.equal(fitted.vae_.given, frozen)


@pytest.mark.parametrize("method", [Revise(latent=2), Clue(latent=2), CCHVAE(latent=2)])
def test_a_flip_stays_true_to_the_data(task, vae, method):
    # only a decides, but b and c go with it in the data: a > 1/3 needs b near it and c not the first
    x = torch.tensor([[-1.0, -1.0, 1, 0, 0], [-0.8, -0.9, 1, 0, 0]])
    x_cf = run_method(replace(method, task_=task, vae_=vae), x, class_goals(1, x))
    assert (x_cf[:, 0] > 1 / 3).all()
    assert ((x_cf[:, 1] - x_cf[:, 0]).abs() < 0.6).all()
    assert (x_cf[:, 2] == 0).all()


def test_the_autoencoder_is_trained_once_for_all_blocks_of_rows(monkeypatch):
    explainer, trained = lending.explainer(), []
    explainer.method, real = "cchvae", VAE._train.__func__
    monkeypatch.setattr(VAE, "_train", classmethod(lambda cls, *given: trained.append(cls) or real(cls, *given)))
    rows = lending.refused(explainer, 4)
    for block in (rows[:2], rows[2:]):
        explainer.explain(block)
    assert trained == [VAE]
