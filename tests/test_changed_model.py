"""A model that is no longer the one that was fitted is refused, with what it said then and what it says now."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
import user_models
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from user_models import learned, rows, rule, served, table

import tdce
from tdce import InputError, Range
from tdce.models import oracle
from tdce.models.adapters import adapt
from tdce.models.model import CHANGE_TOLERANCE, REFERENCE_ROWS
from tdce.models.readers import detect_reader

ASKED = rows(table())[rule(rows(table())) < 0.5].head(6)
CHANGED = r"has changed since fit: of the same row it said \[.*\] then and says \[.*\] now; fit again"


class Changing:
    """A function of data frames that somebody else may change."""

    def __init__(self, rule=rule):
        self.rule, self.asked = rule, []

    def __call__(self, frame):
        self.asked.append(len(frame))
        return self.rule(frame)


def other(frame):
    """Stricter by an income of 200."""
    return rule(frame.assign(income=frame["income"] - 200))


def refit(model):
    flipped = table()["decision"].map({"yes": "no", "no": "yes"})
    model.fit(rows(table()), flipped)


@pytest.mark.parametrize("asked_before", [False, True])
def test_an_estimator_that_is_trained_again_is_refused(asked_before):
    model = user_models.logistic()
    explainer = learned(model)
    if asked_before:
        explainer.explain(ASKED)
    refit(model)
    with pytest.raises(InputError, match=f"Pipeline {CHANGED}"):
        explainer.explain(ASKED)


def test_both_numbers_are_the_models_own():
    model = Changing()
    explainer = learned(model)
    model.rule = other
    with pytest.raises(InputError, match=CHANGED) as caught:
        explainer.explain(ASKED)
    then, now = (float(text) for text in re.findall(r"\[[\d.e-]+, ([\d.e-]+)\]", str(caught.value)))
    synthetic = explainer.fitted_.decides.frames(explainer.fitted_.decides.reference.raw)
    most = np.abs(rule(synthetic) - other(synthetic)).argmax()
    assert (then, now) == pytest.approx((rule(synthetic)[most], other(synthetic)[most]), abs=1e-6)


def test_a_torch_module_that_learns_on_is_refused():
    module = user_models.module()
    explainer = learned(module)
    explainer.explain(ASKED)
    with torch.no_grad():
        module[2].bias += torch.tensor([0.5, -0.5])
    with pytest.raises(InputError, match=CHANGED):
        explainer.explain(ASKED)


def test_a_model_behind_an_address_is_noticed_when_it_is_replaced(tmp_path):
    model = Changing()
    with served(model) as (address, _):
        learned(address).save(path := tmp_path / "a.tdce")
        explainer = tdce.Explainer.load(path, model=address, progress="silent")
        explainer.explain(ASKED)
        model.rule = other
        with pytest.raises(InputError, match=CHANGED):
            explainer.explain(ASKED)
        with pytest.raises(
            InputError, match=r"made for another model, or this one has changed: .* then and says .* now"
        ):
            tdce.Explainer.load(path, model=address)
        model.rule = rule
        assert (explainer.explain(ASKED).to_frame()["status"] == "valid").all()


def test_every_question_is_refused():
    model = Changing()
    explainer = learned(model)
    answer = explainer.explain(ASKED)
    model.rule = other
    for question in (
        lambda: explainer.predict(ASKED),
        lambda: explainer.predict_proba(ASKED),
        lambda: explainer.plausibility(ASKED),
        lambda: explainer.population(ASKED),
        lambda: explainer.evaluate(answer, rows(table())),
        lambda: explainer.explain(ASKED, max_model_rows=1000),
    ):
        with pytest.raises(InputError, match=CHANGED):
            question()


def test_a_change_during_a_long_question_is_noticed(monkeypatch):
    monkeypatch.setattr(oracle, "CHECK_ROWS", 100)
    model = Changing()
    explainer = learned(model)
    model.asked.clear()
    model.rule = lambda frame: (rule if sum(model.asked) < 400 else other)(frame)
    with pytest.raises(InputError, match=CHANGED):
        explainer.explain(ASKED)
    assert model.asked.count(REFERENCE_ROWS) > 1


def test_a_number_is_compared_in_its_own_unit():
    model = Changing(lambda frame: 1000 * frame["income"].to_numpy(dtype=float))
    explainer = learned(model, label=None, favourable=Range(low=3_000_000), frame=rows(table()))
    spread = explainer.fitted_.outputs[0].spread
    for shift, refused in ((CHANGE_TOLERANCE / 2, False), (CHANGE_TOLERANCE * 2, True)):
        model.rule = lambda frame, shift=shift: 1000 * frame["income"].to_numpy(dtype=float) + shift * spread
        if refused:
            with pytest.raises(InputError, match=CHANGED):
                explainer.predict(ASKED)
        else:
            explainer.predict(ASKED)


def test_float_noise_is_no_change_at_load_and_later(tmp_path):
    model = Changing()
    learned(model).save(path := tmp_path / "a.tdce")
    model.rule = lambda frame: rule(frame).astype(np.float32)
    tdce.Explainer.load(path, model=model, progress="silent").explain(ASKED)


def test_the_check_changes_no_answer_and_no_budget():
    model = Changing()
    explainer = learned(model)
    model.asked.clear()
    checked = explainer.explain(ASKED, max_model_rows=300)
    assert sum(model.asked) == checked.model_rows + REFERENCE_ROWS
    assert checked.model_rows <= 300
    unchecked = learned(model)
    object.__setattr__(unchecked.fitted_.decides, "reference", None)
    model.asked.clear()
    plain = unchecked.explain(ASKED, max_model_rows=300)
    assert sum(model.asked) == plain.model_rows == checked.model_rows
    assert plain.model_calls == checked.model_calls
    pd.testing.assert_frame_equal(plain.to_frame(), checked.to_frame(), check_exact=True)


def test_rows_from_the_lowest_score_to_the_highest_are_asked_about():
    explainer = learned(rule)
    scores, kept = explainer.fitted_.synthetic_scores.numpy(), explainer.fitted_.decides.reference.scores
    assert len(kept) == REFERENCE_ROWS
    assert (kept[0, 0], kept[-1, 0]) == (scores[:, 0].min(), scores[:, 0].max())
    assert (np.diff(kept[:, 0]) >= 0).all()


@pytest.fixture(scope="module")
def fitted():
    model = Changing()
    return model, learned(model)


@given(shift=st.floats(-3000, 3000), scale=st.floats(0.2, 5))
@settings(max_examples=60, deadline=None)
def test_a_model_is_refused_if_and_only_if_it_says_otherwise_of_some_of_the_rows(shift, scale, fitted):
    model, explainer = fitted
    adapted = explainer.fitted_.decides
    frame = adapted.frames(adapted.reference.raw)
    model.rule = lambda frame: (
        1 / (1 + np.exp(-scale * (np.log(rule(frame) / (1 - rule(frame) + 1e-300)) + shift / 1000)))
    )
    differs = np.abs(model.rule(frame) - rule(frame)).max()
    try:
        if differs > CHANGE_TOLERANCE * 1.001:
            with pytest.raises(InputError, match=CHANGED):
                explainer.predict(ASKED)
        elif differs < CHANGE_TOLERANCE * 0.999:
            explainer.predict(ASKED)
    finally:
        model.rule = rule


# what a model returns


def ragged(frame):
    return [[0.1, 0.9]] * (len(frame) - 1) + [[0.5]]


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        (lambda frame: None, "returns None; it must return a score for each of the"),
        (ragged, "returns 2 values for one row and 1 for another"),
        (lambda frame: csr_matrix(np.eye(len(frame))), r"shape \(\)"),
        (lambda frame: np.full(len(frame), 1j), "must return"),
        (lambda frame: [object()] * len(frame), "must return"),
        (lambda frame: [[0.5, 0.5]] * (len(frame) - 1) + [[5.0, -4.0]], r"not probabilities: \[5\.0, -4\.0\]"),
        (lambda frame: 1 / 0, "fails: ZeroDivisionError"),
    ],
    ids=["none", "ragged", "sparse", "complex", "objects", "no probabilities", "raises"],
)
@pytest.mark.parametrize("later", [False, True])
def test_what_a_model_must_not_return(returns, words, later):
    model = Changing(lambda frame: np.column_stack([1 - rule(frame), rule(frame)]) if later else returns(frame))
    if not later:
        with pytest.raises(InputError, match=words):
            learned(model)
        return
    explainer = learned(model)
    model.rule = returns
    with pytest.raises(InputError, match=words):
        explainer.explain(ASKED)


def test_predicted_classes_are_read_as_carefully_as_scores():
    """A model with a threshold of its own, whose predict fails, or says nothing, later."""
    from sklearn.model_selection import FixedThresholdClassifier

    model = FixedThresholdClassifier(user_models.logistic(), threshold=0.8, pos_label="yes")
    model.fit(rows(table()), table()["decision"])
    said = model.predict
    wrapped = type("Wrapped", (), {"classes_": model.classes_, "predict_proba": model.predict_proba, "predict": said})()
    wrapped.predict = lambda frame: switch[0](frame)
    switch = [said]
    explainer = learned(wrapped)
    for returns, words in (
        (lambda frame: None, "returns None"),
        (lambda frame: 1 / 0, "fails: ZeroDivisionError"),
        (lambda frame: [["yes", "no"]] * len(frame), "must return one value for each row"),
        (lambda frame: [{}] * len(frame), "not one of the classes: no, yes"),
    ):
        switch[0] = returns
        with pytest.raises(InputError, match=words):
            explainer.explain(ASKED)


def test_a_tensor_with_gradients_is_read():
    weight = torch.ones(1, requires_grad=True)
    model = lambda frame: torch.from_numpy(rule(frame)) * weight  # noqa: E731
    pd.testing.assert_frame_equal(
        learned(model).explain(ASKED).to_frame(), learned(rule).explain(ASKED).to_frame(), check_exact=True
    )


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=3),
    st.complex_numbers(), st.decimals(), st.datetimes(), st.just(pd.NA), st.just(pd.NaT), st.just(Decimal("sNaN")),
    st.just(10**400), st.builds(object), st.lists(st.floats(0, 1), max_size=3), st.just({"a": 1.0}),
    st.just(torch.ones(1, requires_grad=True)), st.just(np.float32(0.5)), st.just(np.array("x")),
)  # fmt: skip
FOUR = st.lists(CELLS, min_size=4, max_size=4) | CELLS.map(lambda cell: [cell] * 4)
SHAPES = [
    lambda cells: cells, tuple, np.array, pd.Series, pd.DataFrame, iter, set, str, dict.fromkeys, csr_matrix,
    torch.tensor, lambda cells: np.array(cells, dtype=object), lambda cells: [cells] * 4,
    lambda cells: np.ma.masked_all(4), lambda cells: np.array(cells)[:, None], lambda cells: cells[0],
    pd.Categorical, lambda cells: [[cell, 0.5] for cell in cells],
]  # fmt: skip
FIRST = {
    "probability": np.array([0.2, 0.4, 0.6, 0.8]),
    "probabilities": np.array([[0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.8, 0.2]]),
    "labels": ["no", "yes", "no", "yes"],
    "number": np.array([20.0, 40.0, 60.0, 80.0]),
}


@given(FOUR, st.sampled_from(SHAPES), st.booleans())
@example([np.array("x"), 0.5, torch.ones(1, requires_grad=True), 0.5], list, False)  # an array without a length
@settings(max_examples=400, deadline=None)
def test_whatever_a_model_returns_there_are_scores_or_one_error(cells, shape, later):
    try:
        returned = shape(cells)
    except Exception:  # these cells do not make such an object
        returned = cells
    frame = rows(table()).head(4)
    for starts in FIRST.values() if later else [returned]:
        replies = iter([starts, returned])
        problem, score = "", np.zeros((4, 1))
        try:
            model = adapt(lambda frame, replies=replies: next(replies))
            reader, score = detect_reader(model, "", frame, ("no", "yes"))
            if later:
                score = reader(model, frame)
        except InputError as error:
            problem = str(error)
        assert "\n" not in problem
        assert len(score) == 4
        assert np.isfinite(score).all()
