"""Several options for one row: valid, different, nearest first, and about different features."""

import lending
import numpy as np
import pandas as pd
import pytest

import tdce
from tdce import metrics
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
    noted = frame.loc[frame["note"] != "", "row"].unique()
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
    frame = alike.explain(lending.refused(explainer, 10), n=3).to_frame()
    assert len(calls) == 1
    assert set(frame["note"]) == {"all 3 options are the same"}


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
