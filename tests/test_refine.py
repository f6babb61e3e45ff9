"""Other methods with the default method's way back."""

import copy
from dataclasses import replace

import lending
import pytest
import torch
from asking import class_goals, make_query, meets_goals, run_dialogue, run_method

import tdce
from tdce._core.noise import Noise
from tdce._core.values import same
from tdce.methods.algorithm1 import Guided
from tdce.methods.candidates import MIN_WORTH
from tdce.methods.objective import Objective
from tdce.methods.refine import Refined
from tdce.methods.registry import METHODS
from tdce.methods.search import DiffusionSearch

SHORT = {"counternet": {"steps": 150}, "guided": {"steps": 12}}


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


def answers(explainer, method, people):
    asking = copy.copy(explainer)
    asking.method = method
    return asking.explain(people, safety=0 if method.has_tradeoff else None).explanation


@pytest.mark.parametrize("name", ["wachter", "cchvae", "face", "counternet", "guided", "nice"])
def test_everything_is_valid_then_and_no_valid_answer_gets_worse(explainer, name):
    people = lending.refused(explainer, 80)
    method = METHODS[name](**SHORT.get(name, {}))
    plain, back = (answers(explainer, made, people) for made in (method, Refined(method)))
    assert set(back.status[:, 0]) <= {"valid", "already"}  # already: by the model that CounterNet brings
    if name == "counternet":
        return  # explains a model of its own
    task = explainer.fitted_.task()
    x = task.encoder.encode(people).float()
    objective = Objective(task, make_query(task, x, class_goals(1, x)), Noise(x, 0), torch.ones(80).long())
    total = []
    for found in (plain, back):
        x_cf = task.encoder.embed(found.raw[:, 0]).float()
        cost, energy = (measure(x_cf, torch.arange(80)) for measure in (objective.cost, objective.energy))
        total.append(objective.total(cost, energy, DiffusionSearch().closeness))
    clear = torch.from_numpy(plain.status[:, 0] == "valid") & torch.from_numpy(plain.score_after[:, 0] > 0.51)
    assert clear.any()
    assert (total[1] <= total[0] + MIN_WORTH)[clear].all()
    assert (~same(back.raw[:, 0], back.own)).sum() <= (~same(plain.raw[:, 0], plain.own)).sum() + 80


def test_the_dial_is_heeded(explainer):
    """As close as possible costs less than most likely, or as much where there is nothing to choose."""
    task = explainer.fitted_.task()
    x = task.encoder.encode(lending.refused(explainer, 8)).float()
    objective = Objective(task, make_query(task, x, class_goals(1, x)), Noise(x, 0), torch.ones(8).long())
    method = Refined(METHODS["nice"]()).fit(task)
    found = (run_method(method, x, class_goals(1, x), closeness=closeness) for closeness in (1.0, 0.0))
    close, likely = (objective.cost(x_cf, torch.arange(8)) for x_cf in found)
    assert (close <= likely + 1e-5).all()
    assert (close < likely - 1e-3).any()


def test_where_there_is_nobody_people_are_drawn(explainer):
    """For a method that gives the row back: Algorithm 1 without a step."""
    task = replace(explainer.fitted_.task(), memo={})
    lone = replace(task, synthetic=task.synthetic[:0])
    x = task.encoder.encode(lending.refused(explainer, 4)).float()
    goals = class_goals(1, x)
    search = Refined(Guided(start=0.0)).fit(lone).search(make_query(lone, x, goals), Noise(x, 0))
    assert meets_goals(lone, run_dialogue(search, lone, x, goals), goals).all()
