"""Every method towards every kind of goal: what is called valid meets it, and a method that searches gets there."""

import lending
import numpy as np
import pandas as pd
import pytest

import tdce
from tdce.methods.registry import METHODS
from tdce.models.goals import AtLeast, Between, Class, Goal, Not

BAND = Between("yes", 0.55, 0.85)
MEETS = {
    Class("yes"): lambda yes: yes > 0.5,
    Not("no"): lambda yes: yes > 0.5,  # there are two classes
    AtLeast("yes", 0.8): lambda yes: yes >= 0.8,
    BAND: lambda yes: (yes >= 0.55) & (yes <= 0.85),
}
ONE_PASS = ("guided_literal", "counternet")  # these never ask whether they have arrived
SOFT = ("revise", "clue")  # these walk with soft categories: a band is met on the way, and missed once they are hard
MOST = 0.9  # of the rows
STEPS = {"counternet": 100, "guided": 25, "guided_literal": 25}


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def people(explainer) -> pd.DataFrame:
    return lending.refused(explainer, 32)


def asked(explainer: tdce.Explainer, method: str, rows: pd.DataFrame, target: object, **more: object) -> pd.DataFrame:
    explainer.method = METHODS[method](**({"steps": STEPS[method]} if method in STEPS else {}))
    return explainer.explain(rows, target=target, **more).to_frame()


@pytest.fixture(scope="module", params=METHODS)
def answered(request, explainer, people) -> tuple[str, dict[Goal, pd.DataFrame]]:
    """A method, and its answers to everybody by goal, from one call in which every row has a goal of its own."""
    goals = [goal for goal in MEETS for _ in range(len(people))]
    frame = asked(explainer, request.param, pd.concat([people] * len(MEETS)), goals)
    size = len(people)
    return request.param, {goal: frame[i * size : (i + 1) * size] for i, goal in enumerate(MEETS)}


@pytest.mark.parametrize("goal", MEETS, ids=lambda goal: type(goal).__name__)
def test_what_is_called_valid_meets_the_goal_and_nothing_else_does(answered, explainer, goal):
    method, by_goal = answered
    frame = by_goal[goal]
    yes = frame["score_after"]
    if method != "counternet":  # that one explains a predictor of its own
        np.testing.assert_array_equal(yes, explainer.predict_proba(frame)["yes"])
        assert set(frame["status"]) <= {"valid", "best_effort"}
    np.testing.assert_array_equal(frame["status"].isin(["valid", "already"]), MEETS[goal](yes))
    if method not in ONE_PASS and (method not in SOFT or goal != BAND):
        assert (frame["status"] == "valid").mean() >= MOST


@pytest.mark.parametrize("method", SOFT)
def test_where_no_category_may_change_the_soft_ones_meet_a_band_too(explainer, people, method):
    frame = asked(explainer, method, people, BAND, immutable=["housing"])
    assert (frame["status"] == "valid").mean() >= MOST


def test_the_other_rows_goals_change_nothing(answered, explainer, people):
    method, by_goal = answered
    alone = asked(explainer, method, people, BAND)
    pd.testing.assert_frame_equal(alone, by_goal[BAND], check_exact=True)
