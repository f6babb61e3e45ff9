"""Several options for one row: valid, different, nearest first, and about different features."""

import lending
import numpy as np
import pandas as pd
import pytest
import torch
import toys
from asking import class_goals, feasible_set

import tdce
from tdce import metrics
from tdce.methods.driver import explain
from tdce.methods.explanation import Explanation
from tdce.methods.question import Question
from tdce.methods.registry import METHODS
from tdce.methods.selection import choose_options, count_distinct
from tdce.schema.encoder import Encoder


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def answer(explainer) -> tdce.Answer:
    return explainer.explain(lending.refused(explainer, 80), n=3)


def test_all_are_valid_and_nearly_all_rows_have_as_many_as_asked(answer):
    frame = answer.to_frame()
    assert (frame["status"] == "valid").all()
    features = list(answer.features)
    different = frame.groupby("row")[features].apply(lambda rows: len(rows.drop_duplicates()))
    assert (different == 3).mean() > 0.9
    noted = frame.loc[frame["note"].str.contains("option"), "row"].unique()
    assert set(noted) == set(different.index[different < 3])


def test_they_are_about_different_features(answer, explainer):
    spread = metrics.option_spread(answer.explanation.own, answer.explanation.raw)
    assert spread > 0.2
    assert explainer.evaluate(answer)["option_spread"] == pytest.approx(spread)
    assert "option_spread" not in explainer.evaluate(explainer.explain(answer.rows.head(5)))


def test_a_method_that_draws_nothing_works_once_and_says_that_its_options_are_alike(explainer, monkeypatch):
    calls = []
    kind = METHODS["wachter"]
    real = kind.search
    monkeypatch.setattr(kind, "search", lambda *a: calls.append(1) or real(*a))
    alike = tdce.Explainer("wachter", progress="silent")
    alike.fitted_ = explainer.fitted_
    answer = alike.explain(lending.refused(explainer, 10), n=3)
    assert len(calls) == 1
    assert {notes[0].key for notes in answer.explanation.notes.flat} == {"options_alike"}
    assert {note.split("; ")[0] for note in answer.to_frame()["note"]} == {"all 3 options are the same"}


def test_choosing_by_hand():
    """One row 0, 0, 0 and five draws; the nearest valid one, then the one about another feature."""
    column = [-1.5, 0.0, 1.5, 4.0]
    encoder = Encoder.fit(pd.DataFrame({"a": column, "b": column, "c": column}))
    own = np.zeros((1, 3))
    raw = np.array([[[1.5, 0, 0], [1.5, 0, 0], [4.0, 0, 0], [0, 5.0, 0], [0, 0, 0.5]]])
    valid = np.array([[True, True, True, True, False]])
    assert choose_options(encoder, own, raw, valid, 1).tolist() == [[0]]
    assert choose_options(encoder, own, raw, valid, 2).tolist() == [[0, 3]]  # not its twin, not the same feature again
    assert choose_options(encoder, own, raw, valid, 3).tolist() == [[0, 2, 3]]  # ordered by distance
    assert choose_options(encoder, own, raw, valid, 5)[0, -1] == 4  # what is not valid comes last
    assert count_distinct(raw).tolist() == [4]


def test_overlap_and_spread_by_hand():
    first, second = np.array([True, True, False]), np.array([False, True, True])
    assert metrics.overlap(first, second) == pytest.approx(1 / 3)
    assert metrics.overlap(first & False, second & False) == 1
    own = np.zeros((1, 3))
    raw = np.array([[[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]]])  # overlaps 1/3, 1, 1/3
    assert metrics.option_spread(own, raw) == pytest.approx(1 - (1 / 3 + 1 + 1 / 3) / 3)


FROM_FOUR = toys.above(4)


def jumped(*to: float, n: int = 1, random: bool = False, classify: toys.Classify = FROM_FOUR) -> Explanation:
    """What is found for one row, 0 and 1, of which the first number must be at least 4."""
    x = torch.tensor([[0.0, 1.0]])
    task = toys.task(toys.encoder("ab"), classify, x)
    return explain(toys.Jump(to, random).fit(task), feasible_set(task, x), class_goals(1, x), Question(n=n))


def keys(found: Explanation) -> list[list[str]]:
    return [[note.key for note in notes] for notes in found.notes[0]]


def test_of_several_draws_the_nearest_are_returned_and_of_a_single_one_all_by_turns():
    drawn = jumped(10, 5, 3, 7, 9, n=2, random=True)
    assert drawn.raw[0, :, 0].tolist() == [5, 7]
    assert drawn.loss is None  # which was not asked for
    listed = jumped(10, 5, 3, n=3)
    assert listed.raw[0, :, 0].tolist() == [10, 5, 3]
    assert listed.status[0].tolist() == ["valid", "valid", "best_effort"]
    assert jumped(10, 5, 3, n=2).raw[0, :, 0].tolist() == [10, 5]
    assert np.isnan(listed.plausibility).all()  # of which nothing is known here
    np.testing.assert_allclose(listed.score_after, 1 / (1 + np.exp(-np.array([[6.5, 1.5, -0.5]]))), atol=1e-6)
    np.testing.assert_allclose(listed.score_before, 1 / (1 + np.exp(3.5)), atol=1e-6)


def test_fewer_different_options_than_were_asked_for_are_noted():
    assert keys(jumped(5, n=1)) == [[]]
    assert keys(jumped(5, 6, n=2)) == [[], []]
    assert keys(jumped(5, n=2)) == [["options_alike"]] * 2
    few = jumped(5, 6, 5, n=3)
    assert keys(few) == [["options_few"]] * 3
    assert few.notes[0, 2][0].values == {"options": 3, "different": 2}


def test_what_is_no_nearer_to_the_goal_than_the_row_is_not_proposed():
    found = jumped(3, -3, 5, n=3)
    assert found.raw[0, :, 0].tolist() == [3, 0, 5]
    assert found.status[0].tolist() == ["best_effort", "best_effort", "valid"]
    assert found.score_after[0, 1] == found.score_before[0] < found.score_after[0, 0]
    assert keys(found) == [["only_raises_probability"], ["nothing_raises_probability"], []]
    before, after = found.score_before[0], found.score_after[0, 0]
    assert [note.values for note in found.notes[0, 0]] == [{"before": before, "after": after}]
    assert [note.values for note in found.notes[0, 1]] == [{"before": before}]
    stairs = jumped(3, 5, n=2, classify=lambda x: FROM_FOUR(x).sign())
    assert stairs.raw[0, :, 0].tolist() == [0, 5]  # 3 is as far from a yes as 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_method_that_returns_no_number_is_stopped(wrong):
    with pytest.raises(FloatingPointError, match="Jump returned a value that is not a number"):
        jumped(5, wrong, n=2)
