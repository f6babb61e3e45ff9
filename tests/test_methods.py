"""The contract of every method in the registry, on a task whose answer is known."""

import copy
from dataclasses import replace

import lending
import pytest
import torch
from asking import class_goals, meets_goals, run_method

import tdce
from tdce.methods.protocol import Method, task_of
from tdce.methods.registry import METHODS

STEPS = {"counternet": 150, "guided": 25, "guided_literal": 25, "wachter": 100, "revise": 75, "clue": 75}


def quick(name: str) -> Method:
    """With as many steps as an easy task needs."""
    return METHODS[name](**({"steps": STEPS[name]} if name in STEPS else {}))


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def scene(explainer):
    fitted = explainer.fitted_
    x = fitted.encoder.encode(lending.refused(explainer, 64)).float()
    assert len(x) == 64
    task = fitted.task()
    return task, x, class_goals(fitted.classes.index("yes"), x)


@pytest.fixture(scope="module", params=sorted(METHODS))
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def fitted(name, scene) -> Method:
    return quick(name).fit(scene[0])


def answers(fitted: Method, scene) -> tuple[torch.Tensor, ...]:
    """What it proposes, and copies of all that it was given, made before."""
    task, x, goals = scene
    before = x.clone(), goals.which.clone(), task.mutable.clone(), task.x.clone()
    return run_method(fitted, x, goals), *before


@pytest.fixture(scope="module")
def answered(fitted, scene) -> tuple[torch.Tensor, ...]:
    return answers(fitted, scene)


def test_rows_come_back_whole_finite_and_one_hot(scene, answered):
    task, x, _ = scene
    x_cf = answered[0]
    assert x_cf.shape == x.shape
    assert torch.isfinite(x_cf).all()
    _, cat = task.space.split(x_cf)
    assert torch.equal(cat, task.space.one_hot(cat))


def test_the_seed_decides(scene, fitted, name):
    task, x, goals = scene
    one, two = (run_method(made, x, goals, seed=7) for made in (fitted, quick(name).fit(task)))
    assert torch.equal(one, two)


def test_arguments_are_not_edited(scene, answered):
    task, x, goals = scene
    _, *before = answered
    assert all(torch.equal(a, b) for a, b in zip(before, (x, goals.which, task.mutable, task.x), strict=True))


def test_immutable_columns_are_kept(scene, name):
    task, x, goals = scene
    frozen = task.space.mask(["age", "housing"])
    x_cf = run_method(quick(name).fit(replace(task, mutable=~frozen)), x, goals)
    assert torch.equal(x_cf[:, frozen], x[:, frozen])


def test_a_row_does_not_depend_on_its_neighbours(scene, fitted, answered):
    _, x, goals = scene
    assert torch.equal(run_method(fitted, x.flip(0), goals).flip(0), answered[0])


def test_an_easy_task_is_moved_towards_the_target(scene, fitted, answered):
    _, _, goals = scene
    assert meets_goals(task_of(fitted), answered[0], goals).float().mean() > 0.4  # by its own judge; none was


def test_what_it_says_of_itself_is_true(explainer, fitted, name):
    """A method without a dial refuses one; one that is not random gives the same answer every time."""
    people = lending.refused(explainer, 20)
    asking = copy.copy(explainer)
    asking.method = quick(name)
    if not fitted.has_tradeoff:
        with pytest.raises(tdce.InputError, match="has no closeness to set"):
            asking.explain(people, closeness=0.5)
    else:
        assert len(asking.explain(people, closeness=0.5)) == 20
    found = asking.explain(people, n=2).explanation.raw
    several = fitted.random or name in ("search", "guided")  # these two have several at once
    assert several == bool((found[:, :1] != found[:, 1:]).any())


def test_what_is_kept_is_kept_for_its_model_and_rows(scene):
    task, _, _ = scene
    task = replace(task, memo={})
    made = [task.memoise("key", object), task.memoise("key", object)]
    assert made[0] is made[1]
    others = [replace(task, x=task.x.clone()), replace(task, guide=None), explainer_task(task)]
    assert all(other.memoise("key", object) is not made[0] for other in others)
    assert task.memoise("key", object) is made[0]


def explainer_task(task):
    """The same with a judge of another model."""
    return replace(task, oracle=tdce.models.Oracle(copy.copy(task.oracle.model)))


@pytest.mark.parametrize("method", ["search", "wachter", "revise", "clue", "cchvae", "face", "nice"])
def test_a_threshold_is_searched_for_and_not_only_judged_by(explainer, method):
    asking = copy.copy(explainer)
    asking.method = method
    people = lending.refused(explainer, 64)
    at_default = asking.explain(people).counts()["valid"]
    frame = asking.explain(people, threshold=0.9).to_frame()
    valid = frame["status"] == "valid"
    assert (frame.loc[valid, "score_after"] >= 0.9).all()
    assert valid.sum() >= 0.9 * at_default > 50
