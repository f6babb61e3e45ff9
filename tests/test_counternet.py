"""CounterNet: each loss moves its own block, the predictor learns, the generator flips it and keeps what must stay."""

from dataclasses import replace

import pytest
import torch
import toys
from asking import run_method
from torch import Generator
from torch.nn.functional import one_hot

from tdce.methods.baselines.counternet import CounterNet, Network, Predictor, losses
from tdce.models.goals import Class, Goals

ENCODER = toys.encoder("ab", c=3)
SPACE = ENCODER.space


def rows(n, seed=0):
    draw = Generator().manual_seed(seed)
    colour = torch.randint(3, (n,), generator=draw)
    return torch.cat([torch.randn(n, 2, generator=draw), one_hot(colour, 3).float()], dim=1)


def label(x):
    return (x[:, 0] + x[:, 2] - x[:, 3] > 0).long()  # the first number, helped by colour 0, hindered by colour 1


def task(n=1000, y=label, classes=2):
    x = rows(n)
    return toys.task(ENCODER, lambda x: torch.zeros(len(x), classes), x, y=y(x), classes=range(classes))


@pytest.fixture(scope="module")
def fitted():
    return CounterNet(steps=300).fit(task())


def generate(method, x, target):
    return run_method(method, x, Goals.of([Class(k) for k in target.tolist()]))


def own_model(method):
    """What it explains: encoded rows -> logits."""
    return method.task_.guide


def test_the_predictor_learns_an_easy_task(fitted):
    x = rows(500, seed=1)
    logits = own_model(fitted)(x)
    assert logits.shape == (500, 2)
    assert (logits.argmax(dim=1) == label(x)).float().mean() > 0.95


def test_counterfactuals_flip_its_own_predictor_and_stay_nearer_than_strangers(fitted):
    x = rows(500, seed=1)
    target = 1 - own_model(fitted)(x).argmax(dim=1)
    x_cf = generate(fitted, x, target)
    assert (own_model(fitted)(x_cf).argmax(dim=1) == target).float().mean() > 0.9
    assert torch.equal(x_cf[:, 2:], SPACE.one_hot(x_cf[:, 2:]))
    strangers = (x - x.roll(1, dims=0)).square().sum(dim=1).mean()
    assert (x - x_cf).square().sum(dim=1).mean() < strangers / 2
    assert (x[:, 1] - x_cf[:, 1]).abs().mean() < 0.3  # b has no say in the label


def network():
    draw = Generator().manual_seed(0)
    return Network(SPACE, Predictor(5, 3, (8, 4), (4,), draw), (8,), True, True, draw)


@pytest.mark.parametrize(("loss", "predictor"), [("prediction", True), ("validity", False), ("proximity", False)])
def test_each_loss_moves_its_own_block_alone(loss, predictor):
    net, x = network(), rows(64)
    value = getattr(losses(net, x, label(x), torch.ones(5, dtype=torch.bool), Generator().manual_seed(0)), loss)
    value.backward()
    moved = {name: p.grad is not None and bool(p.grad.any()) for name, p in net.named_parameters()}
    assert all(moves == (name.startswith("predictor.") == predictor) for name, moves in moved.items())


def test_the_generator_does_not_change_what_the_predictor_learns():
    start = task(300)
    one, two = (CounterNet(lambda_2=l2, lambda_3=l3, steps=20).fit(start) for l2, l3 in ((0.2, 0.1), (20.0, 0.0)))
    x = rows(100, seed=1)
    assert torch.equal(own_model(one)(x), own_model(two)(x))  # bit for bit
    assert not torch.equal(one.network_(x, label(x)), two.network_(x, label(x)))


def test_immutable_columns_are_kept_and_the_rest_still_flips():
    frozen = SPACE.mask(["b", "c"])
    method = CounterNet(steps=300).fit(replace(task(), mutable=~frozen))
    x = rows(200, seed=1)
    target = 1 - own_model(method)(x).argmax(dim=1)
    x_cf = generate(method, x, target)
    assert torch.equal(x_cf[:, frozen], x[:, frozen])
    assert (own_model(method)(x_cf).argmax(dim=1) == target).float().mean() > 0.9


def test_each_of_three_classes_can_be_the_target():
    method = CounterNet(steps=300).fit(task(y=lambda x: (x[:, 0] > -0.4).long() + (x[:, 0] > 0.4), classes=3))
    x = rows(200, seed=1)
    for shift in (1, 2):
        target = (own_model(method)(x).argmax(dim=1) + shift) % 3
        x_cf = generate(method, x, target)
        assert (own_model(method)(x_cf).argmax(dim=1) == target).float().mean() > 0.9


def test_a_table_of_few_rows_serves_for_training_and_for_stopping():
    x = rows(12)
    x_cf = generate(CounterNet(steps=3).fit(task(12)), x, 1 - label(x))
    assert torch.isfinite(x_cf).all()


@pytest.mark.parametrize("setting", [{"rate": 1e-2}, {"batch": 64}, {"lambda_1": 0.5}, {"lambda_2": 5.0}, {"steps": 4}])
def test_every_setting_of_the_training_makes_a_difference(setting):
    start, x = task(200), rows(8, seed=1)
    one, other = (CounterNet(**({"steps": 3} | changed)).fit(start).network_(x, label(x)) for changed in ({}, setting))
    assert not torch.equal(one, other)


def test_the_seed_decides_and_no_global_generator_is_touched():
    before = torch.get_rng_state()
    start, x = task(300), rows(64, seed=1)
    one, two, other = (
        generate(CounterNet(steps=50).fit(replace(start, seed=s)), x, 1 - label(x)) for s in (3, 3, 4)
    )  # fmt: skip
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)
