"""What is wanted: each goal by a second route, and that its parts agree with each other."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

import tdce
from tdce._core.errors import InputError
from tdce.models.goal_wording import describe_goal
from tdce.models.goals import STANDOFF, AtLeast, Between, Class, Goals, Not

GOALS = [Class(1), AtLeast(1, 0.7), AtLeast(2, 0.2), Not(0), Not(2), Between(1, 0.2, 0.4), Between(0, 0.0, 0.5)]


def some_scores(rows: int = 2000) -> torch.Tensor:
    draw = torch.Generator().manual_seed(0)
    return (2 * torch.randn(rows, 3, generator=draw, dtype=torch.double)).softmax(dim=1)


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_the_margin_is_at_least_zero_if_and_only_if_the_goal_is_met(goal):
    p, goals = some_scores(), Goals.all(goal, 2000)
    met = goals.met(p)
    assert torch.equal(goals.margin(p) >= 0, met)
    assert 0 < met.float().mean() < 1


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_met_by_plain_words(goal):
    """The second route: one row after another."""
    for row, met in zip(some_scores(300).tolist(), goal.met(some_scores(300)).tolist(), strict=True):
        own, rival = row[goal.of], max(p for i, p in enumerate(row) if i != goal.of)
        if isinstance(goal, AtLeast):
            assert met == (own > goal.p)
        elif isinstance(goal, Between):
            assert met == (goal.low < own < goal.high)
        else:
            assert met == (own < rival if isinstance(goal, Not) else own > rival)


def test_the_margin_of_two_classes_is_the_difference_in_log_odds():
    p = torch.tensor([[0.4, 0.6], [0.9, 0.1]], dtype=torch.double)
    expected = logit([0.6, 0.1])
    assert Goals.all(Class(1), 2).margin(p).tolist() == pytest.approx(expected)
    assert Goals.all(Not(0), 2).margin(p).tolist() == pytest.approx(expected)
    assert Goals.all(AtLeast(1, 0.55), 2).margin(p).tolist() == pytest.approx(expected - logit(0.55))
    assert Goals.all(Between(1, 0.05, 0.65), 2).margin(p).tolist() == pytest.approx(
        [logit(0.65) - logit(0.6), logit(0.1) - logit(0.05)]
    )


def test_so_near_to_the_border_nothing_is_met():
    p = torch.tensor([[0.5 - d, 0.5 + d] for d in (0.0, 0.9 * STANDOFF, 1.1 * STANDOFF)], dtype=torch.double)
    assert Class(1).met(p).tolist() == [False, False, True]
    assert AtLeast(1, 0.5).met(p).tolist() == [False, False, True]
    assert Not(0).met(p).tolist() == [False, False, True]
    assert Between(1, 0.5, 0.9).met(p).tolist() == [False, False, True]
    assert Between(0, 0.1, 0.5).met(p).tolist() == [False, False, True]
    assert (Goals.all(Class(1), 3).margin(p)[:2] < 0).all()


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_the_loss_is_minus_the_log_of_the_chance_and_leads_to_what_is_wanted(goal):
    """A descent along it from anywhere ends where the goal is met."""
    p = some_scores(200)
    torch.testing.assert_close(goal.loss(p.log()), -goal.chance(p).log())
    logits = (p.log() + 0.3).requires_grad_()  # logits need not be normalised
    torch.testing.assert_close(goal.loss(logits), goal.loss(p.log()))
    adam = torch.optim.Adam([logits], lr=0.05)
    for _ in range(400):
        adam.zero_grad()
        goal.loss(logits).sum().backward()
        adam.step()
    assert goal.met(logits.detach().softmax(dim=1)).all()


def test_the_chance_and_the_score_by_hand():
    p = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.double)
    assert Class(2).display_score(p).item() == pytest.approx(0.5)
    assert Not(2).display_score(p).item() == Not(2).chance(p).item() == pytest.approx(0.5)
    assert Not(0).display_score(p).item() == pytest.approx(0.8)
    band = Between(1, 0.4, 0.8)  # its inner half is 0.5 to 0.7
    assert (band.display_score(p).item(), band.chance(p).item()) == pytest.approx((0.3, 0.3 / 0.5))
    assert band.chance(torch.tensor([[0.1, 0.85, 0.05]])).item() == pytest.approx(0.15 / 0.3)
    assert band.chance(torch.tensor([[0.3, 0.6, 0.1]])).item() == pytest.approx(1.0)


def test_certain_answers_are_no_trouble():
    """A tree may say exactly 0 or 1; a band that ends there has them."""
    p = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.double)
    expected = {
        Between(1, 0.0, 0.5): [True, False], Between(1, 0.5, 1.0): [False, True], Between(1, 0.2, 0.8): [False, False],
        Class(1): [False, True], Not(1): [True, False], AtLeast(1, 0.9): [False, True],
    }  # fmt: skip
    for goal, met in expected.items():
        goals = Goals.all(goal, 2)
        assert goals.met(p).tolist() == (goals.margin(p) >= 0).tolist() == met
        assert ((goals.chance(p) >= 0) & (goals.chance(p) <= 1)).all()  # so it is no NaN


def test_a_guide_goes_to_the_middle_of_a_band_and_to_its_end_where_that_is_all_or_nothing():
    """A quarter of the band from either end there is nothing left to do; at 0 and 1 the end will do."""
    p = torch.tensor([[x, 1 - x] for x in (0.01, 0.2, 0.25, 0.31, 0.39, 0.5, 0.99)], dtype=torch.double)

    def done(low: float, high: float) -> list[bool]:
        return (Between(0, low, high).chance(p) == 1).tolist()

    assert done(0.2, 0.6) == [False, False, False, True, True, True, False]  # from 0.3 to 0.5
    assert done(0.0, 0.4) == [True, True, True, False, False, False, False]  # from 0 to 0.3
    assert done(0.25, 1.0) == [False, False, False, False, False, True, True]  # from 0.4375 to 1


def test_the_class_that_leads_there():
    p = torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], dtype=torch.double)
    assert Not(2).target_class(p).tolist() == [1, 0]
    assert AtLeast(1, 0.9).target_class(p).tolist() == [1, 1]


def test_every_row_is_measured_by_its_own_goal():
    p = some_scores(len(GOALS))
    goals = Goals.of(GOALS)
    for name in ("met", "margin", "shown_margin", "chance", "display_score", "loss", "logit_margin", "target_class"):
        of = getattr(goals, name)(p)
        alone = [getattr(Goals.all(goal, 1), name)(p[[i]]) for i, goal in enumerate(GOALS)]
        torch.testing.assert_close(of, torch.cat(alone).to(of.dtype))
    some = goals.take(torch.tensor([3, 0]))
    assert (some.goal(0), some.goal(1), len(some)) == (GOALS[3], GOALS[0], 2)
    assert [goal for goal, _ in some.groups()] == [GOALS[0], GOALS[3]]


def test_the_slope_of_the_gap_is_that_of_its_differences():
    logits = some_scores(50).log().requires_grad_()
    for goal in GOALS:
        (slope,) = torch.autograd.grad(goal.logit_margin(logits).sum(), logits)
        for k in range(3):
            step = torch.zeros(3, dtype=torch.double).index_fill(0, torch.tensor(k), 1e-6)
            with torch.no_grad():
                expected = (goal.logit_margin(logits + step) - goal.logit_margin(logits - step)) / 2e-6
            torch.testing.assert_close(slope[:, k], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AtLeast("good", 1.0), "threshold is 1.0; it must be a number above 0 and at most 0.999998"),
        (lambda: AtLeast("good", "high"), "threshold is 'high'"),
        (lambda: Between("good", 0.7, 0.6), "low is 0.7 and high 0.6; low must be below high"),
        (lambda: Between("good", -0.1, 0.6), "low is -0.1; it must be a number from 0 to 1"),
        (lambda: Between("good", 0.1, math.nan), "high is nan"),
        (lambda: Between("good", 1.1, 1.2), "low is 1.1; it must be a number from 0 to 1"),
        (lambda: Between("good", 0.1, 1.5), "high is 1.5; it must be a number from 0 to 1"),
    ],
)
def test_a_goal_that_makes_no_sense_is_named(make, words):
    with pytest.raises(InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("goal", "text"),
    [
        (tdce.AtLeast("good", 0.8), "AtLeast('good', 0.8)"),
        (tdce.Not(2), "Not(2)"),
        (tdce.Between("good", 0.4, 0.6), "Between('good', 0.4, 0.6)"),
        (tdce.Range(1, 2), "Range(1, 2)"),
        (tdce.Range(high=8), "Range(high=8)"),
        (tdce.Range(low=-0.5), "Range(low=-0.5)"),
        (tdce.Range(np.float64(1.5), np.int64(2)), "Range(1.5, 2)"),
        (tdce.Change(500), "Change(500)"),
        (tdce.Change(share=-0.1), "Change(share=-0.1)"),
    ],
)
def test_a_goal_shows_itself_as_it_is_written(goal, text):
    assert repr(goal) == text
    assert eval(text, {type(goal).__name__: type(goal)}) == goal


def test_people_read_what_is_wanted():
    classes = ("bad", "good")
    assert describe_goal(Class(1), classes) == describe_goal(AtLeast(1, 0.8), classes) == "good"
    assert describe_goal(Not(0), classes) == "anything but bad"
    assert describe_goal(Between(1, 0.5, 0.625), classes) == "good at 50 % to 62.5 %"
    assert expit(0) == 0.5  # the second route's own check
    assert tdce.Not("bad").with_class_number(classes.index) == Not(0)
