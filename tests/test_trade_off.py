"""Positions of the trade-off that are asked together never contradict each other."""

import numpy as np
import pytest
import torch
import toys
from asking import class_goals, make_query
from fits import SMALL, kept

import tdce
from tdce import InputError
from tdce._core import same
from tdce.methods.candidates import Candidates
from tdce.methods.objective import Objective

POSITIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.fixture(scope="module")
def asked():
    data = tdce.load("german")
    explainer = kept("trade-off", lambda: tdce.Explainer(**SMALL, progress="silent").fit(
        data.frame, label=data.label, favourable=data.favourable, schema=data.schema
    ))  # fmt: skip
    return explainer, data.frame[explainer.predict(data.frame) == "bad"]


def test_towards_closeness_one_no_distance_rises_for_anybody(asked):
    explainer, refused = asked
    answers = explainer.trade_off(refused, closeness=POSITIONS)
    far = np.stack([answers[each].explanation.distance[:, 0] for each in POSITIONS])
    assert len(refused) > 200
    assert (np.diff(far, axis=0) <= 1e-6).all()
    assert far[0].mean() > 1.5 * far[-1].mean()  # and it does fall


def test_asked_one_at_a_time_hardly_any_distance_rises(asked):
    """At most 1 % of the people, by more than 1 %; and most get the answer of all positions together."""
    explainer, refused = asked
    some = refused.head(120)
    alone = [explainer.explain(some, closeness=each).explanation for each in POSITIONS]
    far = np.stack([each.distance[:, 0] for each in alone])
    assert (far[1:] > 1.01 * np.minimum.accumulate(far, axis=0)[:-1]).any(axis=0).mean() <= 0.01
    for one, answer in zip(alone, explainer.trade_off(some, closeness=POSITIONS).values(), strict=True):
        assert same(one.raw, answer.explanation.raw).all(axis=(1, 2)).mean() > 0.75
        assert (answer.explanation.status == "valid").all()


def test_what_it_does_not_take_is_named(asked):
    explainer, refused = asked
    for wrong, message in (
        ({"n": 2}, "does not take n"),
        ({"closeness": []}, "closeness is"),
        ({"closeness": [0.5, 2]}, "closeness"),
        ({"closeness": "near"}, "closeness"),
    ):
        with pytest.raises(InputError, match=message):
            explainer.trade_off(refused.head(1), **wrong)


def test_no_option_contains_another_that_is_as_good(asked):
    """By brute force over all pairs: one with all changes of another, and more, is nearer or more typical."""
    explainer, refused = asked
    found = explainer.explain(refused.head(60), n=4, safety=0).explanation
    changed = (found.raw != found.own[:, None]) & ~(np.isnan(found.raw) & np.isnan(found.own[:, None]))
    for r in range(len(found.raw)):
        for i in range(1, 4):
            for j in range(i):
                less, more = changed[r, j], changed[r, i]
                if (more & less).sum() == less.sum() < more.sum() and (found.raw[r, i] == found.raw[r, j])[less].all():
                    assert (
                        found.distance[r, i] < found.distance[r, j]
                        or found.plausibility[r, i] > found.plausibility[r, j]
                    )


def test_below_the_default_nobody_gets_what_is_nearer_than_the_default_answer():
    """Of three candidates the third, which the default position did not know of, is the best and the nearest."""
    x = torch.tensor([[0.0]])
    task = toys.task(toys.encoder("a"), lambda x: torch.zeros(len(x), 2), x)
    near = Candidates(task, make_query(task, x, class_goals(1, x)), Objective)  # only its sum is needed
    near.x, near.at, near.line = torch.tensor([[3.0], [4.0], [1.0]]), torch.zeros(3, dtype=torch.long), torch.arange(3)
    near.shortfall, near._changes = torch.zeros(3), torch.ones(3)
    near._cost, near._energy = torch.tensor([3.0, 4.0, 1.0]), torch.tensor([3.0, 1.0, 0.0])
    default = torch.tensor([0])
    assert near.answer(0.5).tolist() == [[1.0]]
    assert near.answer(0.5, default).tolist() == [[3.0]]
    assert near.answer(0.5, torch.tensor([-1])).tolist() == [[1.0]]  # there is no default answer
