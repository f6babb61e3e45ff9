"""The judge: exactly the returned rows, each different one once, all in one call, counted."""

from dataclasses import replace

import lending
import numpy as np
import pandas as pd
import pytest
import torch
import toys
from asking import class_goals, feasible_set

import tdce
from tdce.methods import driver
from tdce.methods.driver import Block, drive, explain
from tdce.methods.protocol import Dialogue, Request
from tdce.methods.question import Question
from tdce.methods.registry import METHODS
from tdce.models.adapters import adapt
from tdce.models.frames import FrameBuilder
from tdce.models.goals import AtLeast, Class, Goals
from tdce.models.model import AdaptedModel
from tdce.models.oracle import Oracle
from tdce.models.outputs import Output
from tdce.models.readers import OutputReader
from tdce.schema.feasible import FeasibleSet


class Sums:
    """A model that remembers what it was asked: yes with the logistic of the row's sum, missing as 0."""

    outputs = (Output(classes=("no", "yes")),)

    def __init__(self) -> None:
        self.asked: list[np.ndarray] = []

    def score(self, raw):
        self.asked.append(raw)
        p = 1 / (1 + np.exp(-np.nan_to_num(raw).sum(axis=1)))
        return np.stack([1 - p, p], axis=1)


def test_each_different_row_is_asked_about_once_and_every_row_is_answered():
    model = Sums()
    oracle = Oracle(model)
    raw = np.array([[1.0, 2.0], [0.0, -3.0], [1.0, 2.0], [np.nan, 1.0], [-0.0, -3.0], [-np.nan, 1.0]])
    decision = oracle(raw, Goals.all(Class(1), 6))
    assert decision.met.tolist() == [True, False, True, True, False, True]
    np.testing.assert_allclose(decision.score[:, 1], 1 / (1 + np.exp([-3, 3, -3, -1, 3, -1])))
    assert (oracle.usage.calls, oracle.usage.rows) == (1, 3)
    assert len(model.asked) == 1
    assert model.asked[0].shape == (3, 2)


def test_each_row_has_its_own_goal_and_nothing_is_no_trouble():
    oracle = Oracle(Sums())
    goals = Goals.of([Class(0), AtLeast(1, 0.9), AtLeast(1, 0.99)])
    assert oracle(np.full((3, 1), 3.0), goals).met.tolist() == [False, True, False]
    nothing = oracle(np.zeros((0, 2)), Goals.all(Class(1), 0))
    assert nothing.met.shape == (0,)


@pytest.mark.parametrize(("n", "random", "budget", "queried"), [
    (1, False, 6, 6), (1, False, 8, 8), (1, False, 9, 9), (1, False, None, 9),
    (3, False, 12, 12), (3, False, 17, 17), (3, False, 21, 21), (3, False, None, 21),
    (2, True, 33, 18), (2, True, None, 33),  # five draws; for each of them two options are reserved
])  # fmt: skip
def test_a_budget_is_reserved_for_what_is_returned_and_noted_where_it_was_too_small(n, random, budget, queried):
    """Three rows, and a method that asks once about each answer, which the model refuses: 3 + 3 + 3 with one option."""
    x = torch.tensor([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    task = toys.task(toys.encoder("ab"), toys.above(4), x)
    task = replace(task, oracle=Oracle(task.oracle.model, budget))
    method = toys.Jump((3, 2, 1) if random else (3, 2, 1)[:n], random)
    found = explain(method.fit(task), feasible_set(task, x), class_goals(1, x), Question(n=n))
    assert task.oracle.usage.rows == queried
    assert found.raw[:, :, 0].tolist() == [[1, 2] if random else [3, 2, 1][:n]] * 3
    said = [note.values for row in found.notes for notes in row for note in notes if note.key == "budget"]
    assert said == ([{"rows": budget}] * 3 * n if task.oracle.exhausted else [])
    assert task.oracle.exhausted == (budget not in (None, 9, 21))


def test_final_answers_are_decided_whatever_else_is_asked_in_their_round():
    x = torch.tensor([[0.0, 1.0], [9.0, 2.0]])
    task, goals = toys.task(toys.encoder("ab"), toys.above(4), x), class_goals(1, x[:1])
    blocks = [Block(feasible_set(task, each), goals) for each in x.split(1)]

    def asking(each: torch.Tensor, last: bool) -> Dialogue[bool]:
        reply = yield Request(each[None], torch.arange(1), last=last)
        return bool(reply.met[0, 0])

    searches = [asking(each, last) for each, last in zip(x.split(1), (False, True), strict=True)]
    assert drive(searches, blocks, Oracle(task.oracle.model, budget=0)) == [False, True]


def test_only_rows_of_which_nothing_may_change_are_infeasible():
    """Numbers go from -16 to 16, and may not grow."""
    x = torch.tensor([[-16.0, 1.0], [0.0, 1.0], [5.0, 1.0]])
    task = toys.task(toys.encoder("ab"), toys.above(4), x)
    feasible = FeasibleSet.of(task.encoder, task.encoder.decode(x), ["b"], ["a <= was(a)"])
    found = explain(toys.Jump((5, -3)).fit(task), feasible, class_goals(1, x), Question(n=2))
    assert found.status[:, 0].tolist() == ["infeasible", "best_effort", "already"]
    assert found.raw.tolist() == x[:, None].repeat(1, 2, 1).tolist()
    keys = [[note.key for note in notes] for notes in found.notes[:, 0]]
    assert [[key for key in each if key.startswith("options_")] for each in keys] == [[], ["options_alike"], []]
    assert keys[2] == []


def test_each_row_of_a_block_has_its_own_goal_and_bounds():
    """In whichever order a method asks about some of them; on the grid only, what is immutable is kept."""
    x, at = torch.tensor([[0.0, 1.0], [8.0, 2.0], [9.0, 3.0]]), torch.tensor([0, 2, 1])
    task, goals = toys.task(toys.encoder("ab"), toys.above(4), x), Goals.of([Class(1), Class(0), Class(0)])
    found = explain(toys.Jump((3, 6, 5)).fit(task), feasible_set(task, x), goals, Question(n=3))
    yes, no = "valid", "best_effort"
    assert found.status.tolist() == [[no, yes, yes], [yes, no, no], [yes, no, no]]
    feasible = FeasibleSet.of(task.encoder, task.encoder.decode(x), ["b"], ["a <= was(a)"])
    for rows in (at, at[1:]):
        proposed = torch.full((len(rows), 1, 2), 8.6)
        kept, free = (Block(feasible, goals).snap(Request(proposed, rows, only)) for only in (False, True))
        own = feasible.own[rows.numpy()]
        assert (kept[:, 0, 1] == own[:, 1]).all()
        assert (free[:, 0, 1] == own[:, 1]).all()
        np.testing.assert_allclose(kept[:, 0, 0], np.minimum(own[:, 0], 8.6), atol=1e-5)
        np.testing.assert_allclose(free[:, 0, 0], 8.6, atol=1e-5)


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


def test_the_counts_are_those_of_the_model_itself(explainer, monkeypatch):
    asked, people = [], lending.refused(explainer, 50)
    kind = type(explainer.fitted.model)
    real = kind.score
    explainer.population()  # which is counted once, for reports, and is no question about anybody
    monkeypatch.setattr(kind, "score", lambda self, raw: asked.append(raw) or real(self, raw))
    answer = explainer.explain(people, n=2)
    assert answer.model_calls == len(asked)
    assert answer.model_rows == sum(len(np.unique(np.nan_to_num(raw), axis=0)) for raw in asked)


def test_many_rows_cost_no_more_calls_than_a_few(explainer, monkeypatch):
    """Blocks of rows are searched together: three of them need about as many calls as one."""
    monkeypatch.setattr(driver, "QUERY_ROWS", 128)
    people = lending.refused(explainer, 300)
    few, many = explainer.explain(people.head(100)), explainer.explain(people)
    assert len(people) == 300
    assert many.model_calls <= few.model_calls + 6
    pd.testing.assert_frame_equal(many.to_frame().head(100), few.to_frame(), check_exact=True)


def test_the_default_method_asks_in_few_large_rounds(explainer):
    """However many rows: decisions on the rows, on parts of exemplars, on six halvings of all numbers and twice six of
    one at a time, on some reverted features."""
    few, many = (explainer.explain(lending.refused(explainer, rows)) for rows in (40, 400))
    assert few.model_calls <= many.model_calls <= 40


@pytest.mark.parametrize("method", ["search", "cchvae", "face", "nice"])
def test_a_model_of_frames_gets_the_users_dtypes_and_needs_no_gradient(explainer, method):
    """A rule in plain pandas on the raw columns: it decides alone, and what is called valid is valid by it."""
    fitted, seen = explainer.fitted, []
    like = lending.table(60).drop(columns="decision")
    like = like.astype({"income": "int32", "housing": "category", "age": "Int64"})

    def rule(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame.dtypes.to_dict())
        yes = (frame["income"] - frame["debt"] > 1500).to_numpy(dtype=float)
        return np.stack([1 - yes, yes], axis=1)

    task, features = fitted.task(), fitted.encoder.schema.features
    reader = OutputReader(Output(classes=fitted.classes), "probabilities", fitted.classes)
    oracle = Oracle(AdaptedModel((adapt(rule),), (reader,), FrameBuilder.of(features, like)))
    ready = METHODS[method]().fit(replace(task, oracle=oracle, guide=None, memo={}))
    people = lending.refused(explainer, 40)
    people = people[people["income"] - people["debt"] <= 1500]
    feasible = FeasibleSet.of(fitted.encoder, people)
    found = explain(ready, feasible, Goals.all(Class(fitted.classes.index("yes")), len(people)), Question())
    valid = found.status[:, 0] == "valid"
    assert valid.mean() > 0.9
    returned = fitted.encoder.write(found.raw[:, 0], people)
    assert (rule(returned)[valid, 1] == 1).all()
    assert all(str(dtypes["housing"]) == "category" and str(dtypes["age"]) == "Int64" for dtypes in seen[:-1])


@pytest.mark.parametrize("method", ["guided", "guided_literal", "wachter", "revise", "clue"])
def test_a_method_that_needs_gradients_says_so_where_there_are_none(explainer, method):
    task = explainer.fitted.task()
    blind = replace(task, guide=None)
    with pytest.raises(tdce.InputError, match="needs a model with gradients"):
        METHODS[method]().fit(blind)


def test_the_oracle_and_predict_proba_say_the_same(explainer):
    people = lending.refused(explainer, 70)
    raw = explainer.fitted.encoder.read(people)
    p = Oracle(explainer.fitted.model).score(raw)
    assert np.array_equal(explainer.predict_proba(people).to_numpy(), np.round(p.numpy(), 6))
    assert torch.equal(Oracle(explainer.fitted.model).score(raw[[5]])[0], p[5])
