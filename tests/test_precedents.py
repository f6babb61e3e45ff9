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
from tdce.methods import PRECEDENT_POSITIONS, DiffusionSearch, explain
from tdce.methods.candidates import Candidates
from tdce.methods.objective import Objective
from tdce.methods.precedents import Precedents
from tdce.models.goals import AtLeast, Class, Goals
from tdce.serving.columns import with_schema

ENCODER = toys.encoder("ab", c=3)
X = torch.tensor([[0.0, 0, 1, 0, 0], [4.0, 0, 1, 0, 0], [9.0, 9, 0, 0, 1]])
X_CF = torch.tensor([[2.0, 0, 1, 0, 0], [4.0, 3, 0, 1, 0], [9.0, 9, 1, 0, 0]])  # a; b and c; c


KNOWN = Precedents(Class(1), X, X_CF[:, None], torch.tensor([[1.0], [2.0], [3.0]]))


def applied(rows: list[list[float]], free: list[bool], count: int) -> list[list[list[float]]]:
    return KNOWN.apply(ENCODER.space, torch.tensor(rows), torch.tensor(free), [count])[0].tolist()


def test_a_row_takes_over_just_what_was_changed_for_the_nearest_precedents():
    row = [0.5, 1, 0, 0, 1]
    first, second = [2.0, 1, 0, 0, 1], [0.5, 3, 0, 1, 0]
    assert applied([row], [True] * 3, 2) == [[first, second]]
    assert applied([row], [True] * 3, 1) == [[first]]
    assert len(applied([row], [True] * 3, 15)[0]) == 3  # there are no more


def test_of_each_position_as_many_as_are_asked_for_with_the_energy_that_they_added():
    """The second position has answers of its own: of two of the first, none of the third, and of one of the second."""
    several = Precedents(Class(1), X, torch.stack([X_CF, X_CF.flip(0), X], dim=1), torch.arange(9.0).view(3, 3))
    x_cf, energy = several.apply(ENCODER.space, X[:1], torch.ones(3, dtype=torch.bool), (2, 1, 0))
    assert x_cf[0].tolist() == [X_CF[0].tolist(), [0.0, 3, 0, 1, 0], X_CF[2].tolist()]
    assert energy.tolist() == [[0, 3, 1]]


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
    found = Candidates(task, query, Objective(task, query, Noise(x, 0), torch.ones(1, dtype=torch.long)))
    energy = run_dialogue(DiffusionSearch().fit(task).precedents(query, found, (15,)), task, x, goals)
    assert len(energy) == len(found.at)
    return found.x.tolist()


def test_the_search_tries_them_for_every_goal_of_the_same_class():
    known = KNOWN
    assert tried(Class(1), known) == [X_CF[0].tolist(), [0.0, 3, 0, 1, 0]]  # without the one that the model refuses
    assert len(tried(AtLeast(1, 0.6), known)) == 2
    assert tried(Class(1), known._replace(goal=Class(0))) == []
    assert tried(Class(1), None) == []
    assert tried(Class(1), Precedents(Class(1), X[:0], KNOWN.x_cf[:0], KNOWN.energy[:0])) == []


@pytest.fixture
def explainer() -> tdce.Explainer:
    return lending.explainer()


def test_fit_answers_refused_synthetic_rows_as_explain_does(explainer, monkeypatch):
    """The second route: the public `explain`, on the same rows, without what only positions above the default need."""
    monkeypatch.setattr(DiffusionSearch, "combined", 0)
    fitted = replace(explainer.fitted, precedents=None, memo={}, report=explainer.fitted.report | {"seconds": 0.0})
    found = add_precedents(fitted, 16, 0, Progress("silent")).precedents
    rows, answers, energy = found
    assert len(rows)
    explainer.fitted_ = fitted
    frame = fitted.encoder.decode(fitted.encoder.embed(fitted.synthetic[rows]))
    asked = explainer.trade_off(frame, closeness=PRECEDENT_POSITIONS).values()
    for i, answer in enumerate(asked):
        assert (answer.explanation.status[:, 0] == "valid").all()
        np.testing.assert_array_equal(answer.explanation.raw[:, 0], answers[:, i])
    assert (energy[:, 0] <= energy[:, 2] + 1e-4).all()  # towards closeness 0 answers are more plausible
    explainer.fitted_ = replace(fitted, precedents=found, memo={})
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
    refused = fitted.precedents.rows[:4]
    assert len(answer_rows(fitted, refused, 0, Progress("silent")).rows) == 4
    schema = fitted.encoder.schema.freeze(*fitted.encoder.schema.names)
    stuck = replace(with_schema(explainer, schema).fitted, precedents=None, report=fitted.report | {"seconds": 0.0})
    assert len(answer_rows(stuck, refused, 0, Progress("silent")).rows) == 0
    assert len(add_precedents(stuck, 4, 0, Progress("silent")).precedents[0]) == 0


def test_answers_beyond_what_was_learned_are_kept_as_its_ends(explainer, tmp_path, monkeypatch):
    """A range of the user's may go further than the table."""
    fitted = replace(explainer.fitted, precedents=None, report=explainer.fitted.report | {"seconds": 0.0})

    def beyond(*given, **named):
        found = explain(*given, **named)
        found.raw[:, :, 0] = 1e6
        return found

    monkeypatch.setattr("tdce.explainer.precedents.explain", beyond)
    explainer.fitted_ = add_precedents(fitted, 8, 0, Progress("silent"))
    assert (explainer.fitted.precedents.answers[:, :, 0] == fitted.encoder.columns[0].scale.raw[-1]).all()
    explainer.save(tmp_path / "a.tdce")


def test_they_are_saved_and_checked(explainer, tmp_path):
    path = tmp_path / "a.tdce"
    explainer.save(path)
    loaded = tdce.Explainer.load(path, progress="silent")
    for mine, theirs in zip(explainer.fitted.precedents, loaded.fitted.precedents, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    known = explainer.fitted.precedents
    for wrong in (len(explainer.fitted.synthetic), -1):
        explainer.fitted_ = replace(explainer.fitted, precedents=known._replace(rows=np.full_like(known.rows, wrong)))
        with pytest.raises(InputError, match="precedents answer synthetic rows that it does not have"):
            explainer.save(path)
    wrong = known._replace(answers=np.full_like(known.answers, 1e9))
    explainer.fitted_ = replace(explainer.fitted, precedents=wrong)
    with pytest.raises(InputError, match="its precedents have a value of"):
        explainer.save(path)
    wrong = known._replace(energy=torch.full_like(known.energy, torch.nan))
    explainer.fitted_ = replace(explainer.fitted, precedents=wrong)
    with pytest.raises(InputError, match=r"'precedents\.energy' has a value that is not a number"):
        explainer.save(path)
    explainer.fitted_ = replace(explainer.fitted, precedents=None)
    assert len(artefact.fingerprint(explainer._saved())) == 64
