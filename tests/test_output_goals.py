"""Goals about numbers, own decisions and several outputs, the targets that mean them, and a budget: all by hand."""

import math
from math import inf, log

import numpy as np
import pandas as pd
import pytest
import torch

from tdce import InputError
from tdce.models.ensemble import Ensemble
from tdce.models.goal_wording import TargetPart, describe_goal, progress_key, score_kind, target_parts
from tdce.models.goals import STANDOFF, AtLeast, Between, Class, Goals, Not
from tdce.models.oracle import Oracle
from tdce.models.output_goals import AllGoals, Change, ModelDecides, Range
from tdce.models.outputs import Output
from tdce.models.targets import (
    check_favourable,
    class_number,
    resolve_goal,
    resolve_goals,
    target_from_json,
    target_to_json,
)

RATE = Output("rate", spread=2.0, edges=(4.0, 6.0, 8.0))
GRADE = Output("grade", classes=("no", "yes"))
OWN = Output("grade", classes=("no", "yes"), decides=True, border=0.3)
THREE = Output("grade", classes=("a", "b", "c"), decides=True)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.double)[:, None]


# a number


def test_a_range_is_met_from_end_to_end_and_measured_in_spreads():
    goal, p = Range(5, 7, RATE), column(3, 5, 6, 7, 8)
    assert goal.met(p).tolist() == [False, True, True, True, False]
    assert goal.raw_margin(p).tolist() == goal.logit_margin(p).tolist() == [-1.0, 0.0, 0.5, 0.0, -0.5]
    assert goal.loss(p).tolist() == [1.0, 0.0, 0.0, 0.0, 0.5]
    assert goal.chance(p).tolist() == pytest.approx([math.exp(-1), 1, 1, 1, math.exp(-0.5)])
    assert goal.display_score(p).tolist() == [3, 5, 6, 7, 8]
    assert goal.target_class(p).tolist() == [1, 1, 1, 2, 2]  # the group of the nearest number that will do
    assert (goal.of, goal.with_class_number(int)) == (0, goal)


@pytest.mark.parametrize(
    ("goal", "met", "margin"),
    [
        (Range(low=5, output=RATE), [False, True, True], [-0.5, 0.0, 1.0]),
        (Range(high=5, output=RATE), [True, True, False], [0.5, 0.0, -1.0]),
    ],
)
def test_a_range_may_be_open(goal, met, margin):
    p = column(4, 5, 7)
    assert goal.met(p).tolist() == met
    assert goal.raw_margin(p).tolist() == margin


def test_the_family_of_a_range_is_the_quarter_beyond_it():
    up, down = Range(5, 7, RATE, up=True).family, Range(5, 7, RATE, up=False).family
    assert (up.low, up.high) == (8.0, None)
    assert (down.low, down.high) == (None, 4.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Range(), r"Range\(\) allows every number; give low, high or both"),
        (lambda: Range(3, 2), "low is 3 and high 2; low must be at most high"),
        (lambda: Range(low="a"), "low is 'a'"),
        (lambda: Range(high=math.nan), "high is nan"),
        (lambda: Change(), "Change needs either an amount"),
        (lambda: Change(1, 0.5), "Change needs either an amount"),
        (lambda: Change(0), "by is 0; give how much"),
        (lambda: Change(share=0.0), "share is 0; give how much"),
    ],
)
def test_a_goal_about_a_number_that_makes_no_sense_is_named(make, words):
    with pytest.raises(InputError, match=words):
        make()
    assert Range(2, 2).met(column(2, 2.1)).tolist() == [True, False]


def test_a_change_is_a_range_from_where_the_row_is():
    assert Change(500).range(100) == Range(low=600)
    assert Change(-500).range(100) == Range(high=-400)
    assert Change(share=0.1).range(200) == Range(low=220)
    assert Change(share=0.1).range(-200) == Range(low=-180)  # upwards, though the number is negative
    assert Change(share=-0.1).range(-200) == Range(high=-220)


# a class, by the model's own decision


def test_the_models_own_decision_counts_whatever_its_probabilities():
    p = torch.tensor([[0.6, 0.4, 0.0, 1.0], [0.6, 0.4, 1.0, 0.0]], dtype=torch.double)  # chances, then its choice
    for goal, met in ((Class(1), [True, False]), (Not(0), [True, False]), (Class(0), [False, True])):
        own = ModelDecides(goal, OWN)
        assert own.met(p).tolist() == met
        assert ((own.raw_margin(p) >= 0) == own.met(p)).all()
    assert ModelDecides(Not(1), OWN).met(p).tolist() == [False, True]


def test_its_margin_is_taken_from_where_its_choice_changes():
    p = torch.tensor([[0.6, 0.4, 0.0, 1.0], [0.8, 0.2, 1.0, 0.0]], dtype=torch.double)
    border = log(0.3 / 0.7)
    beyond = [log(0.4 / 0.6) - border, log(0.2 / 0.8) - border]
    for goal, sign in ((Class(1), 1), (Not(0), 1), (Class(0), -1), (Not(1), -1)):
        own = ModelDecides(goal, OWN)
        expected = [sign * each for each in beyond]
        assert own.logit_margin(p[:, :2].log()).tolist() == pytest.approx(expected)
        assert own.raw_margin(p).tolist() == pytest.approx(expected)
    near = torch.tensor([[0.75, 0.25, 0.0, 1.0], [0.65, 0.35, 1.0, 0.0]], dtype=torch.double)  # it decides otherwise
    assert ModelDecides(Class(1), OWN).raw_margin(near).tolist() == [0.0, -STANDOFF]


def test_of_three_classes_no_border_is_known():
    p = torch.tensor([[0.2, 0.5, 0.3, 0.0, 1.0, 0.0]], dtype=torch.double)
    own = ModelDecides(Class(1), THREE)
    assert own.logit_margin(p[:, :3].log()).item() == pytest.approx(Class(1).logit_margin(p[:, :3].log()).item())


def test_the_rest_of_it_is_that_of_the_class_by_its_probabilities_alone():
    p = torch.tensor([[0.6, 0.4, 0.0, 1.0], [0.9, 0.1, 1.0, 0.0]], dtype=torch.double)
    for goal in (Class(1), Not(1)):
        own = ModelDecides(goal, OWN)
        for name in ("chance", "display_score", "target_class"):
            assert torch.equal(getattr(own, name)(p), getattr(goal, name)(p[:, :2]))
        assert torch.equal(own.loss(p.log()), goal.loss(p[:, :2].log()))
        assert (own.of, own.family) == (1, own)
    assert ModelDecides(Class("yes"), OWN).with_class_number(("no", "yes").index) == ModelDecides(Class(1), OWN)


# several at once


@pytest.mark.parametrize("first", [GRADE, OWN, THREE, RATE, Output(classes=("a", "b", "c"))], ids=str)
def test_an_outputs_group_is_the_same_whatever_follows_it(first):
    draw = torch.Generator().manual_seed(0)
    score = 10 * torch.rand(50, first.columns, generator=draw, dtype=torch.double)
    for behind in (GRADE, OWN, THREE, RATE):
        more = torch.rand(50, behind.columns, generator=draw, dtype=torch.double)
        assert torch.equal(first.group(torch.cat([score, more], dim=1)), first.group(score))
    assert len(first.group(score).unique()) == first.groups


def test_several_goals_are_met_together_and_the_worst_one_counts():
    both = AllGoals(((Class(1), 0, 2), (Range(high=8, output=RATE), 2, 3)), GRADE)
    p = torch.tensor([[0.2, 0.8, 6], [0.2, 0.8, 9], [0.7, 0.3, 6], [0.7, 0.3, 10]], dtype=torch.double)
    assert both.met(p).tolist() == [True, False, False, False]
    worst = [min(log(4), 1), -0.5, log(3 / 7), min(log(3 / 7), -1)]
    assert both.raw_margin(p).tolist() == pytest.approx(worst)
    assert both.logit_margin(torch.cat([p[:, :2].log(), p[:, 2:]], dim=1)).tolist() == pytest.approx(worst)
    assert both.chance(p).tolist() == pytest.approx([0.8, 0.8 * math.exp(-0.5), 0.3, 0.3 * math.exp(-1)])
    logits = torch.cat([p[:, :2].log(), p[:, 2:]], dim=1)
    assert both.loss(logits).tolist() == pytest.approx([-log(0.8), -log(0.8) + 0.5, -log(0.3), -log(0.3) + 1])
    assert both.display_score(p).tolist() == pytest.approx([0.8, 0.8, 0.3, 0.3])
    assert both.target_class(p).tolist() == [1, 1, 1, 1]
    assert both.of == 1
    assert both.with_class_number(int) is both
    assert both.family.parts[0] == (Class(1).family, 0, 2)
    assert both.family.parts[1] == (Range(low=8, output=RATE), 2, 3)


def test_where_no_goal_is_about_the_first_output_its_class_stays():
    later = AllGoals(((Range(high=8, output=RATE), 2, 3),), GRADE)
    p = torch.tensor([[0.2, 0.8, 9], [0.7, 0.3, 9]], dtype=torch.double)
    assert later.target_class(p).tolist() == [1, 0]
    assert later.display_score(p).tolist() == [9, 9]


# without the digits that depend on the machine


@pytest.mark.parametrize(
    "goal",
    [Class(1), AtLeast(1, 0.7), Not(1), Between(1, 0.4, 0.6), ModelDecides(Class(1), OWN), ModelDecides(Not(1), OWN),
     AllGoals(((AtLeast(1, 0.7), 0, 2),), OWN)],
    ids=str,
)  # fmt: skip
def test_the_shown_margin_of_classes_is_that_of_six_decimals(goal):
    p = torch.rand(500, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    p = torch.cat([p, 0.5 + torch.arange(-30, 30) / 1e7, torch.tensor([0.0, 1.0])])  # around the border of a class
    score = torch.stack([1 - p, p, (p < 0.3).double(), (p >= 0.3).double()], dim=1)
    score = score if isinstance(goal, ModelDecides | AllGoals) else score[:, :2]
    goals = Goals.all(goal, len(score))
    assert torch.equal(goals.shown_margin(score), goals.margin((score * 1e6).round() / 1e6))


@pytest.mark.parametrize("scale", [1.0, 2.0**-30, 1e-9, 1e9])
def test_the_shown_margin_of_a_number_has_six_decimals_of_its_spread(scale):
    """Ends of 5 and 7, a spread of 2: 5.6666666 is a third of a spread beyond the lower end."""
    goal = Range(5 * scale, 7 * scale, Output(spread=2 * scale))
    p = scale * column(5.6666666, 6, 4.9999999, 3)
    expected = [0.333333, 0.5, -1e-6, -1.0]  # what is not met is never shown as met
    assert Goals.all(goal, 4).shown_margin(p).tolist() == pytest.approx(expected, abs=1e-12)
    both = AllGoals(((Class(1), 0, 2), (goal, 2, 3)), GRADE)
    score = torch.cat([torch.tensor([[0.2, 0.8]] * 3 + [[0.9, 0.1]]).double(), p], dim=1)
    assert both.shown_margin(score).tolist() == pytest.approx([*expected[:3], -log(9)], abs=1e-9)


@pytest.mark.parametrize(
    ("spread", "expected"), [(100.0, 123.456789), (1.0, 123.456789), (0.5, 123.4567891), (2e-9, 123.456789123456789)]
)
def test_the_prediction_that_a_change_starts_from_is_rounded_by_its_spread(spread, expected):
    assert Output(spread=spread).rounded(123.456789123456789) == expected
    assert Output(spread=2e-9).rounded(1.23456789123e-9) == 1.234568e-9


# in words


def test_every_goal_has_words_and_parts():
    own, both = ModelDecides(Not(0), OWN), ((Class(1), 0, 2), (Range(high=8), 2, 3))
    labels = ("no", "yes", "rate")
    for goal, text, parts, key, kind in (
        (Class(1), "yes", [("class", "yes")], "raises_probability", "probability"),
        (AtLeast(1, 0.8), "yes", [("class", "yes")], "raises_probability", "probability"),
        (own, "anything but no", [("not", "no")], "raises_probability", "probability"),
        (Between(1, 0.5, 0.75), "yes at 50 % to 75 %", [("between", "yes", 0.5, 0.75)], "nears_probability",
         "probability"),
        (AllGoals(both, GRADE), "yes and rate at most 8", [("class", "yes"), ("at_most", "rate", None, 8)], "nears_all",
         "probability"),
        (AllGoals(both[1:], GRADE), "rate at most 8", [("at_most", "rate", None, 8)], "nears_all", "prediction"),
    ):  # fmt: skip
        assert describe_goal(goal, labels) == text
        assert target_parts(goal, labels) == tuple(TargetPart(*part) for part in parts)
        assert (progress_key(goal), score_kind(goal)) == (key, kind)
    for goal, text, part in (
        (Range(low=1000), "at least 1,000", ("at_least", None, 1000, None)),
        (Range(high=8.5), "at most 8.5", ("at_most", None, None, 8.5)),
        (Range(620, 680), "620 to 680", ("range", None, 620, 680)),
    ):
        assert describe_goal(goal, ("",)) == text
        assert describe_goal(goal, ("rate",)) == f"rate {text}"
        assert target_parts(goal, ("",)) == (TargetPart(*part),)
        assert target_parts(goal, ("rate",)) == (TargetPart(part[0], "rate", *part[2:]),)
        assert (progress_key(goal), score_kind(goal)) == ("nears_prediction", "prediction")


@pytest.mark.parametrize("words", [lambda goal: describe_goal(goal, ()), lambda goal: target_parts(goal, ()),
                                   progress_key, score_kind])  # fmt: skip
def test_a_goal_without_words_is_named(words):
    with pytest.raises(TypeError, match=r"goal_wording\.py has no words for object; add a case"):
        words(object())


# targets


def resolved(target: object, outputs: tuple[Output, ...], scores: torch.Tensor, **more: object) -> list[object]:
    given = {"threshold": None, "favourable": None} | more
    goals = resolve_goals(target, given["threshold"], given["favourable"], outputs, len(scores), lambda: scores)
    return [goals.goal(i) for i in range(len(goals))]


def test_without_a_target_the_favourable_class_or_the_other_one_is_wanted():
    p = torch.tensor([[0.2, 0.8], [0.7, 0.3]], dtype=torch.double)
    assert resolved(None, (GRADE,), p) == [Class(0), Class(1)]
    assert resolved(None, (GRADE,), p, favourable="yes") == [Class(1)] * 2
    assert resolved("no", (GRADE,), p, favourable="yes") == [Class(0)] * 2
    assert resolved(None, (GRADE,), p, threshold=0.6) == [AtLeast(0, 0.6), AtLeast(1, 0.6)]
    many = Output("grade", classes=("a", "b", "c"))
    with pytest.raises(InputError, match="there are 3 classes and no favourable one: name a target, one of a, b, c"):
        resolved(None, (many,), torch.eye(3))
    with pytest.raises(InputError, match=r"there is no favourable value: name a target, such as Range\(low=620\)"):
        resolved(None, (RATE,), column(1, 2))
    with pytest.raises(
        InputError, match=r"no favourable value: name a target, such as \{'grade': 'yes', 'rate': Range\(high"
    ):
        resolved(None, (GRADE, RATE), torch.zeros(1, 3))


@pytest.mark.parametrize("made", [list, tuple, np.array, pd.Series, pd.Index])
def test_each_row_may_have_a_target_of_its_own(made):
    p = torch.zeros(2, 2)
    assert resolved(made(["yes", "no"]), (GRADE,), p) == [Class(1), Class(0)]
    assert resolved(made(["yes"]), (GRADE,), p[:1]) == [Class(1)]
    with pytest.raises(InputError, match="target has 2 goals for 3 rows; give one, or one per row"):
        resolved(made(["yes", "no"]), (GRADE,), torch.zeros(3, 2))
    for outputs in ((GRADE,), (RATE,), (GRADE, RATE)):
        assert resolved(made([]), outputs, torch.zeros(0, 3)) == []


def test_a_change_begins_at_each_rows_own_prediction():
    p = column(4.0, 9.0, 4.0)
    assert [(g.low, g.high, g.up) for g in resolved(Change(1), (RATE,), p)] == [
        (5, None, True), (10, None, True), (5, None, True),
    ]  # fmt: skip
    assert [(g.high, g.up) for g in resolved(Change(share=-0.5), (RATE,), p)] == [(2, False), (4.5, False), (2, False)]
    band = resolved(Range(5, 7), (RATE,), p)
    assert [(g.up, g.output) for g in band] == [(True, RATE), (False, RATE), (True, RATE)]
    each = resolved([Change(1), Range(high=3), Change(-1)], (RATE,), p)
    assert [(g.low, g.high) for g in each] == [(5, None), (None, 3), (None, 3)]


def test_a_range_has_to_be_reached_from_below_or_from_above():
    p = column(4, 5, 6, 9)
    for target, up in (
        (Range(5, 7), [True, False, False, False]),
        (Range(low=5), [True] * 4),
        (Range(high=5), [False] * 4),
    ):
        assert [goal.up for goal in resolved(target, (RATE,), p)] == up
        assert [goal.up for goal in resolved([target] * 4, (RATE,), p)] == up


def test_a_change_begins_at_the_sixth_decimal():
    """So that another machine's last bits do not matter."""
    goals = resolved(Change(1), (RATE,), column(4.0000004, 4.000001))
    assert [goal.low for goal in goals] == [5.0, 5.000001]


def test_of_two_numbers_each_row_has_its_own_pair():
    limit, p = Output("limit"), torch.tensor([[1.0, 8], [2, 8], [1, 9], [2, 9], [1, 8]], dtype=torch.double)
    goals = resolved({"rate": Change(1), "limit": Change(-1)}, (RATE, limit), p)
    assert [(goal.parts[0][0].low, goal.parts[1][0].high) for goal in goals] == [(2, 7), (3, 7), (2, 8), (3, 8), (2, 7)]
    mixed = resolved([{"rate": Change(1)}, {"limit": Change(-1)}], (RATE, limit), p[:2])
    assert (mixed[0].parts[0][0].low, mixed[1].parts[0][0].high) == (2, 7)
    p = torch.tensor([[0.2, 0.8, 4.0]] * 2, dtype=torch.double)
    mixed = resolved([{"grade": "yes"}, {"rate": Change(1)}], (GRADE, RATE), p)
    assert mixed[1].parts[0][0].low == 5


def test_of_several_outputs_each_target_looks_at_its_own_prediction():
    """The number stands behind two probabilities."""
    p = torch.tensor([[0.2, 0.8, 4.0], [0.2, 0.8, 9.0], [0.9, 0.1, 4.0]], dtype=torch.double)
    for target in ({"grade": "yes", "rate": Change(1)}, {"rate": Change(1), "grade": "yes"}):
        goals = resolved(target, (GRADE, RATE), p)
        assert [goal.parts[0] for goal in goals] == [(Class(1), 0, 2)] * 3
        assert [(goal.parts[1][0].low, goal.parts[1][1:]) for goal in goals] == [(5, (2, 3)), (10, (2, 3)), (5, (2, 3))]
        assert {goal.first for goal in goals} == {GRADE}
    text = resolved("grade=yes, rate=at most 8", (GRADE, RATE), p)
    assert text == resolved({"grade": "yes", "rate": Range(high=8)}, (GRADE, RATE), p)
    kept = resolved({"grade": "yes", "rate": Range(high=8)}, (GRADE, RATE), p, threshold=0.7)
    assert kept[0].parts[0][0] == AtLeast(1, 0.7)
    with pytest.raises(InputError, match=r"the model has no output 'amount'; it has: grade, rate"):
        resolved({"amount": 1}, (GRADE, RATE), p)
    for wrong in ("yes", 5):
        with pytest.raises(InputError, match=r"several outputs: name a target for some of them, such as \{'grade'"):
            resolved(wrong, (GRADE, RATE), p)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("at least 620", Range(low=620)), (">= 6.5", Range(low=6.5)), ("at most 8", Range(high=8)),
        ("<=-8", Range(high=-8)), ("620 to 680", Range(620, 680)), ("between 1 and 2", Range(1, 2)),
        ("from 1 .. 2", Range(1, 2)), (" 1..2 ", Range(1, 2)), ("+500", Change(500)), ("-10 %", Change(share=-0.1)),
        ("-10", Change(-10)),
    ],
)  # fmt: skip
def test_text_about_a_number_is_a_goal(text, goal):
    wanted = goal.range(200.0) if isinstance(goal, Change) else goal
    found = resolve_goal(text, (RATE,), now=torch.tensor([200.0]))
    assert (found.low, found.high) == (wanted.low, wanted.high)


@pytest.mark.parametrize("text", ["620", "at least", "10 %", "more", "at least 620 %", ""])
def test_other_text_about_a_number_is_named(text):
    with pytest.raises(InputError, match=r"is not a valid goal for a predicted number; write 'at least 620'"):
        resolve_goal(text, (RATE,))


def test_text_about_a_class_is_the_class_and_not_means_any_other():
    odd = Output("grade", classes=("yes", "not sure"))
    assert resolve_goal("not yes", (GRADE,)) == Not(1)
    assert resolve_goal("not  yes ", (GRADE,)) == Not(1)
    assert resolve_goal("not sure", (odd,)) == Class(1)
    with pytest.raises(InputError, match="target ' yes' is not a value of the label"):
        resolve_goal(" yes", (GRADE,))
    assert resolve_goal("yes", (OWN,)) == ModelDecides(Class(1), OWN)
    assert resolve_goal("not yes", (OWN,)) == ModelDecides(Not(1), OWN)
    assert resolve_goal(AtLeast("yes", 0.8), (OWN,)) == AllGoals(((AtLeast(1, 0.8), 0, 2),), OWN)
    assert resolve_goal(Between("yes", 0.2, 0.8), (OWN,)) == AllGoals(((Between(1, 0.2, 0.8), 0, 2),), OWN)


@pytest.mark.parametrize(
    ("target", "output", "threshold", "words"),
    [
        (Range(1, 2), GRADE, None, "goes with a predicted number, but the model has classes: no, yes"),
        (Change(1), GRADE, None, "goes with a predicted number"),
        (Not("yes"), GRADE, 0.7, "threshold 0.7 goes with a class, not with"),
        (Range(1, 2), RATE, 0.7, "threshold 0.7 goes with a class, but the model predicts a number"),
        (5, RATE, None, "target 5 is not a valid goal for a predicted number; give Range"),
        (Class("yes"), RATE, None, "is not a valid goal for a predicted number"),
    ],
)
def test_a_target_of_another_kind_of_output_is_named(target, output, threshold, words):
    with pytest.raises(InputError, match=words):
        resolve_goal(target, (output,), threshold)


def test_a_class_is_found_by_its_type_first_then_by_its_value_then_by_its_text():
    assert [class_number(value, (0, "1", 1), "target") for value in (1, "1", 1.0, "0", True)] == [2, 1, 2, 0, 2]
    assert class_number(np.int64(1), (0, 1), "target") == 1
    assert [class_number(value, (True, 1, 1.0), "target") for value in (1.0, 1, True, "1")] == [2, 1, 0, 1]
    for wrong in ("2", 2, None, (1,), b"1"):
        with pytest.raises(InputError, match=r"target .* is not a value of the label; .*known: 0, 1"):
            class_number(wrong, (0, 1), "target")


def test_what_is_favourable_is_a_class_or_a_range():
    assert check_favourable(None, (GRADE,)) is None
    assert check_favourable("yes", (GRADE,)) == "yes"
    assert check_favourable("1", (Output(classes=(0, 1)),)) == 1
    assert check_favourable("at least 5", (RATE,)) == Range(low=5)
    both = {"grade": "yes", "rate": Range(high=8)}
    assert check_favourable(both, (GRADE, RATE)) == both
    assert check_favourable({"rate": "at most 8"}, (GRADE, RATE)) == {"rate": Range(high=8)}
    for wrong, output in ((Change(1), RATE), (Not("yes"), GRADE), (Range(1, 2), GRADE), (5, RATE), ("not yes", GRADE)):
        with pytest.raises(InputError, match="it must be a class, or a Range for a predicted number"):
            check_favourable(wrong, (output,))


def test_targets_survive_json_and_what_is_none_is_named():
    for target in (
        None, "yes", 1, Class("yes"), AtLeast("yes", 0.8), Not("yes"), Between("yes", 0.1, 0.2), Range(1, 2),
        Range(high=8), Change(5), Change(share=-0.1), {"grade": Not("yes"), "rate": "at most 8"},
    ):  # fmt: skip
        assert target_from_json(target_to_json(target)) == target
    assert target_to_json(["yes", Range(low=1)]) == ["yes", {"range": {"low": 1, "high": None}}]
    for wrong in ({}, {"range": {}}, {"range": {"low": 1}}, {"range": 1}, {"other": {}},
                  {"class": {"of": 1}, "not": {}}, {"outputs": 1}, {"outputs": {}, "class": {"of": 1}}):  # fmt: skip
        with pytest.raises(InputError, match="is not a valid goal; known: outputs, class"):
            target_from_json(wrong)


# a budget


class Asked:
    """A model that says yes with the logistic of the first feature, and remembers what it was asked."""

    outputs = (GRADE,)

    def __init__(self) -> None:
        self.rows: list[float] = []

    def score(self, raw: np.ndarray) -> np.ndarray:
        self.rows += raw[:, 0].tolist()
        p = 1 / (1 + np.exp(-raw[:, 0]))
        return np.stack([1 - p, p], axis=1)


def test_a_budget_is_spent_by_distinct_rows_and_what_is_reserved_is_left():
    oracle = Oracle(Asked(), budget=10)
    assert (oracle.remaining, Oracle(Asked()).remaining) == (10, inf)
    oracle.score(column(1, 2, 2).numpy())
    assert (oracle.remaining, oracle.usage.calls, oracle.usage.rows) == (8, 1, 2)
    oracle.reserve(5)
    assert oracle.remaining == 3
    oracle.reserve(9)
    assert oracle.remaining == 0
    oracle.reserve(0)
    oracle.score(column(1).numpy())
    assert (oracle.remaining, oracle.usage.calls, oracle.usage.rows) == (7, 2, 3)


def test_beyond_the_budget_the_latest_turns_are_refused_unasked():
    model = Asked()
    oracle, goals = Oracle(model, budget=3), Goals.all(Class(1), 5)
    raw, turn = column(1, 2, 3, 4, 2).numpy(), np.array([2, 1, 0, 1, 1])
    decision = oracle(raw, goals, turn)
    assert sorted(model.rows) == [2, 3, 4]  # turn 0, then the two of turn 1
    assert decision.met.tolist() == [False, True, True, True, True]
    assert decision.margin.tolist() == pytest.approx([-inf, 2, 3, 4, 2])
    assert decision.score[0].tolist() == [0, 0]
    assert (oracle.exhausted, oracle.remaining) == (True, 0)
    assert not oracle(raw, goals, turn).met.any()  # and nothing is asked any more
    assert len(model.rows) == 3


def test_a_budget_that_suffices_is_not_exhausted():
    oracle, goals = Oracle(Asked(), budget=2), Goals.all(Class(1), 3)
    copies = column(1, 1, 2).numpy()
    assert oracle(copies, goals, np.zeros(3, dtype=np.int64)).met.all()
    assert not oracle.exhausted
    free = Oracle(Asked(), budget=1)
    assert free(column(1, 2, 3).numpy(), goals).met.all()  # what has no turn is asked in any case
    assert (free.exhausted, free.remaining) == (False, 0)


def test_what_is_remembered_costs_the_same_whether_it_is_known_or_not():
    oracle = Oracle(Asked(), budget=10)
    measure = lambda: oracle.score(column(1, 2, 3).numpy()).shape[0]  # noqa: E731
    assert oracle.charge("pool", 4, measure) == 3
    assert oracle.remaining == 6
    assert oracle.charge("pool", 4, measure) == 3  # paid already
    assert oracle.remaining == 6
    assert oracle.charge("other", 2, lambda: 5) == 5
    assert oracle.remaining == 4


class Shifted(Asked):
    """The same model, stricter by 2."""

    def score(self, raw: np.ndarray) -> np.ndarray:
        return super().score(raw - 2)


def test_with_an_ensemble_the_smaller_margin_counts_where_the_model_says_yes():
    strict = Shifted()
    oracle = Oracle(Asked(), ensemble=Ensemble((strict,)))
    raw, goals = column(-1, 1, 2.5, 5).numpy(), Goals.all(Class(1), 4)
    decision = oracle(raw, goals)
    assert decision.met.tolist() == [False, False, True, True]
    assert decision.margin.tolist() == pytest.approx([-1, -1, 0.5, 3])
    assert decision.score[:, 1].tolist() == pytest.approx([1 / (1 + math.exp(-x)) for x in (-1, 1, 2.5, 5)])  # its own
    assert strict.rows == [-1, 0.5, 3]  # not asked where the model says no
    assert oracle.without_ensemble()(raw, goals).met.tolist() == [False, True, True, True]
    assert not oracle(raw[:1], goals.take(torch.tensor([0]))).met.any()
    kinder = Oracle(Shifted(), ensemble=Ensemble((Asked(),)))
    assert kinder(raw, goals).margin.tolist() == pytest.approx([-3, -1, 0.5, 3])


def test_the_model_alone_shares_the_count_of_queries():
    oracle = Oracle(Asked(), budget=10)
    alone = oracle.without_ensemble()
    alone.score(column(1, 2).numpy())
    assert (oracle.usage.calls, oracle.usage.rows, alone.budget) == (1, 2, 10)
    assert oracle.predict(column(1, -1).numpy()).tolist() == [1, 0]


def test_goals_of_which_some_are_nobodys_are_measured_all_the_same():
    p = torch.tensor([[0.2, 0.8], [0.7, 0.3]], dtype=torch.double)
    goals = Goals((Class(0), Class(1), Not(1)), torch.tensor([1, 0]))  # nobody has the last one
    assert goals.met(p).tolist() == [True, True]
    assert goals.display_score(p).tolist() == [0.8, 0.7]
