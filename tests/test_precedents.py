"""Precedents: what the search answered to synthetic rows is tried for similar rows, and kept in the artefact."""

from dataclasses import replace

import lending
import numpy as np
import pytest
import torch
import toys
from asking import make_query, run_dialogue

import tdce
from tdce._core import InputError, Noise, Progress
from tdce.explainer import artefact
from tdce.explainer.precedents import add_precedents, answer_rows
from tdce.methods import DiffusionSearch
from tdce.methods.candidates import Candidates
from tdce.methods.objective import Objective
from tdce.methods.precedents import Precedents
from tdce.models.goals import AtLeast, Class, Goals
from tdce.serving.columns import with_schema

ENCODER = toys.encoder("ab", c=3)
X = torch.tensor([[0.0, 0, 1, 0, 0], [4.0, 0, 1, 0, 0], [9.0, 9, 0, 0, 1]])
X_CF = torch.tensor([[2.0, 0, 1, 0, 0], [4.0, 3, 0, 1, 0], [9.0, 9, 1, 0, 0]])  # a; b and c; c


def applied(rows: list[list[float]], free: list[bool], count: int) -> list[list[list[float]]]:
    known = Precedents(Class(1), X, X_CF)
    return known.apply(ENCODER.space, torch.tensor(rows), torch.tensor(free), count).tolist()


def test_a_row_takes_over_just_what_was_changed_for_the_nearest_precedents():
    row = [0.5, 1, 0, 0, 1]
    first, second = [2.0, 1, 0, 0, 1], [0.5, 3, 0, 1, 0]
    assert applied([row], [True] * 3, 2) == [[first, second]]
    assert applied([row], [True] * 3, 1) == [[first]]
    assert len(applied([row], [True] * 3, 15)[0]) == 3  # there are no more


def test_immutable_features_and_followers_are_not_taken_over():
    row = [4.5, 1, 0, 0, 1]
    assert applied([row], [True, False, True], 1) == [[[4.5, 1, 0, 1, 0]]]
    assert applied([row], [True, True, False], 1) == [[[4.5, 3, 0, 0, 1]]]


def tried(goal, precedents: Precedents | None) -> list[list[float]]:
    """What the search tries by precedents for the row (0, 0, first)."""
    classify = lambda x: torch.stack([torch.zeros(len(x)), x[:, 0] + x[:, 1] - 0.5], dim=1)  # noqa: E731
    task = replace(toys.task(ENCODER, classify, X), precedents=precedents)
    x = X[:1]
    goals = Goals.all(goal, 1)
    query = make_query(task, x, goals)
    found = Candidates(task, query, Objective(task, query, Noise(x, 0), 1.0, torch.ones(1, dtype=torch.long)))
    run_dialogue(DiffusionSearch().fit(task).precedents(query, found), task, x, goals)
    return found.x.tolist()


def test_the_search_tries_them_for_every_goal_of_the_same_class():
    known = Precedents(Class(1), X, X_CF)
    assert tried(Class(1), known) == [X_CF[0].tolist(), [0.0, 3, 0, 1, 0]]  # without the one that the model refuses
    assert len(tried(AtLeast(1, 0.6), known)) == 2
    assert tried(Class(1), known._replace(goal=Class(0))) == []
    assert tried(Class(1), None) == []
    assert tried(Class(1), Precedents(Class(1), X[:0], X_CF[:0])) == []


@pytest.fixture
def explainer() -> tdce.Explainer:
    return lending.explainer()


def test_fit_answers_refused_synthetic_rows_as_explain_does(explainer):
    """The second route: the public `explain`, on the same rows."""
    fitted = replace(explainer.fitted, precedents=None, memo={}, report=explainer.fitted.report | {"seconds": 0.0})
    rows, answers = add_precedents(fitted, 16, 0, Progress("silent")).precedents
    assert len(rows)
    explainer.fitted_ = fitted
    asked = explainer.explain(fitted.encoder.decode(fitted.encoder.embed(fitted.synthetic[rows])))
    assert (asked.explanation.status[:, 0] == "valid").all()
    np.testing.assert_array_equal(asked.explanation.raw[:, 0], answers)
    explainer.fitted_ = replace(fitted, precedents=(rows, answers), memo={})
    known = explainer.fitted.known_precedents
    assert torch.equal(known.x, fitted.x_synthetic[rows])
    assert (explainer.fitted.predict(fitted.synthetic[rows]).labels) == ["no"] * len(rows)


def test_none_are_looked_for_if_nothing_is_favourable_or_none_are_wanted(explainer):
    fitted = replace(explainer.fitted, precedents=None, memo={})
    assert add_precedents(fitted, 0, 0, Progress("silent")).precedents is None
    assert add_precedents(replace(fitted, favourable=None), 16, 0, Progress("silent")).precedents is None
    assert replace(fitted, favourable=None).known_precedents is None


def test_rows_without_a_way_are_no_precedents(explainer):
    fitted = explainer.fitted
    refused = fitted.synthetic[fitted.precedents[0][:4]]
    assert answer_rows(fitted, DiffusionSearch(), refused, 0, Progress("silent"))[0].all()
    schema = fitted.encoder.schema.freeze(*fitted.encoder.schema.names)
    stuck = replace(with_schema(explainer, schema).fitted, precedents=None, report=fitted.report | {"seconds": 0.0})
    assert not answer_rows(stuck, DiffusionSearch(), refused, 0, Progress("silent"))[0].any()
    assert len(add_precedents(stuck, 4, 0, Progress("silent")).precedents[0]) == 0


def test_answers_beyond_what_was_learned_are_kept_as_its_ends(explainer, tmp_path, monkeypatch):
    """A range of the user's may go further than the table."""
    fitted = replace(explainer.fitted, precedents=None, report=explainer.fitted.report | {"seconds": 0.0})

    def beyond(fitted, method, rows, seed, progress):
        return np.ones(len(rows), dtype=bool), np.where(np.arange(rows.shape[1]) == 0, 1e6, rows)

    monkeypatch.setattr("tdce.explainer.precedents.answer_rows", beyond)
    explainer.fitted_ = add_precedents(fitted, 8, 0, Progress("silent"))
    assert (explainer.fitted.precedents[1][:, 0] == fitted.encoder.columns[0].scale.raw[-1]).all()
    explainer.save(tmp_path / "a.tdce")


def test_they_are_saved_and_checked(explainer, tmp_path):
    path = tmp_path / "a.tdce"
    explainer.save(path)
    loaded = tdce.Explainer.load(path, progress="silent")
    for mine, theirs in zip(explainer.fitted.precedents, loaded.fitted.precedents, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    rows, answers = explainer.fitted.precedents
    for wrong in (len(explainer.fitted.synthetic), -1):
        explainer.fitted_ = replace(explainer.fitted, precedents=(np.full_like(rows, wrong), answers))
        with pytest.raises(InputError, match="precedents answer synthetic rows that it does not have"):
            explainer.save(path)
    explainer.fitted_ = replace(explainer.fitted, precedents=(rows, np.full_like(answers, 1e9)))
    with pytest.raises(InputError, match="its precedents have a value of"):
        explainer.save(path)
    explainer.fitted_ = replace(explainer.fitted, precedents=None)
    assert len(artefact.fingerprint(explainer._saved())) == 64
