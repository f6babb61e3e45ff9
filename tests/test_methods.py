"""The contract of every method in the registry, on a task whose answer is known."""

import copy
import math
from dataclasses import replace

import lending
import pytest
import torch

import tdce
from tdce.methods import METHODS, Method
from tdce.noise import Noise


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def scene(explainer):
    fitted = explainer.fitted_
    x = fitted.encoder.encode(lending.refused(explainer, 64)).float()
    assert len(x) == 64
    task = fitted.task()
    return task, x, torch.full((len(x),), fitted.classes.index("yes"))


@pytest.fixture(scope="module", params=sorted(METHODS))
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def fitted(name, scene) -> Method:
    return METHODS[name]().fit(scene[0])


def test_rows_come_back_whole_finite_and_one_hot(scene, fitted):
    task, x, target = scene
    x_cf = fitted.generate(x, target, Noise(x, (0, 0)))
    assert x_cf.shape == x.shape
    assert torch.isfinite(x_cf).all()
    _, cat = task.space.split(x_cf)
    assert torch.equal(cat, task.space.one_hot(cat))


def test_the_seed_decides(scene, fitted, name):
    task, x, target = scene
    one, two = (made.generate(x, target, Noise(x, (7, 0))) for made in (fitted, METHODS[name]().fit(task)))
    assert torch.equal(one, two)


def test_arguments_are_not_edited(scene, fitted):
    task, x, target = scene
    before = x.clone(), target.clone(), task.mutable.clone(), task.x.clone()
    fitted.generate(x, target, Noise(x, (0, 0)))
    assert all(torch.equal(a, b) for a, b in zip(before, (x, target, task.mutable, task.x), strict=True))


def test_immutable_columns_are_kept(scene, name):
    task, x, target = scene
    frozen = task.space.mask(["age", "housing"])
    x_cf = METHODS[name]().fit(replace(task, mutable=~frozen)).generate(x, target, Noise(x, (0, 0)))
    assert torch.equal(x_cf[:, frozen], x[:, frozen])


def test_a_row_does_not_depend_on_its_neighbours(scene, fitted):
    _, x, target = scene
    turned = fitted.generate(x.flip(0), target, Noise(x.flip(0), (0, 0))).flip(0)
    assert torch.equal(fitted.generate(x, target, Noise(x, (0, 0))), turned)


def test_an_easy_task_is_moved_towards_the_target(scene, fitted):
    task, x, target = scene
    x_cf = fitted.generate(x, target, Noise(x, (0, 0)))
    classifier = getattr(fitted, "classifier_", task.classifier)  # CounterNet explains its own
    flipped = (classifier(x_cf).argmax(dim=1) == target).float().mean().item()
    assert flipped > 0.4  # none of the rows was in the target class


@pytest.mark.parametrize("threshold", [None, 0.8])
def test_the_margin_is_in_log_odds_and_its_sign_is_the_verdict(scene, threshold):
    """The second route: by probabilities, log(p / (1 - p)) less that of the threshold (of one half for two classes)."""
    task, x, target = scene
    task = replace(task, threshold=threshold)
    rows = torch.cat([x, task.x[:64]])
    accepted, margin = task.judged(rows, target.repeat(2))
    p = task.classifier(rows).double().softmax(dim=1)[:, target[0]]
    bar = threshold or 0.5
    expected = (p / (1 - p)).log() - math.log(bar / (1 - bar))
    torch.testing.assert_close(margin.double(), expected, rtol=1e-3, atol=1e-3)
    assert torch.equal(accepted, margin >= 0)
    assert 0 < accepted.float().mean() < 1


@pytest.mark.parametrize("method", ["tdce", "wachter", "revise", "clue", "cchvae", "face"])
def test_a_threshold_is_searched_for_and_not_only_judged_by(explainer, method):
    asking = copy.copy(explainer)
    asking.method = method
    people = lending.refused(explainer, 64)
    at_default = asking.explain(people).counts()["valid"]
    frame = asking.explain(people, threshold=0.9).to_frame()
    valid = frame["status"] == "valid"
    assert (frame.loc[valid, "score_after"] >= 0.9).all()
    assert valid.sum() >= 0.9 * at_default > 50
