"""A question by itself, and what was found for it: plain values that are checked, written, taken apart and joined."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import tdce
from tdce import InputError, Question
from tdce.methods.explanation import Explanation
from tdce.methods.registry import METHODS
from tdce.methods.selection import choose_options, count_distinct, draws_for
from tdce.models.ensemble import Retraining
from tdce.models.outputs import Output
from tdce.schema.encoder import Encoder

OUTPUTS = (Output(classes=("no", "yes")),)
SCHEMA = tdce.Schema.infer(pd.DataFrame({"age": [20, 30, 40, 50], "income": [1.5, 2.5, 3.5, 4.5]}))


def test_a_question_that_says_nothing_asks_for_one_answer():
    assert Question().to_json() == {
        "target": None, "n": 1, "immutable": [], "rules": [], "costs": [], "seed": 0, "closeness": None,
        "threshold": None, "safety": None, "max_model_rows": None, "robust": None,
    }  # fmt: skip
    assert Question(costs=None) == Question()


@pytest.mark.parametrize(
    ("name", "accepted", "refused"),
    [
        ("n", [1, 100, np.int64(3)], [0, 101, 1.5, "2", True, None]),
        ("seed", [0, 2**64 - 1], [-1, 2**64, 0.5, None]),
        ("closeness", [None, 0, 1, 0.5], [-0.1, 1.1, math.nan, "a"]),
        ("threshold", [None, 0.001, 0.999998], [0, 1, 0.999999, math.nan]),
        ("safety", [None, 0, 0.5, 0.99], [-0.01, 0.991, 1, math.nan, "a"]),
        ("max_model_rows", [None, 1, 10**6], [0, -1, 1.5, 10**6 + 1]),
        ("immutable", [(), ["age"], ("age", 7)], ["age", [["age"]], 5]),
        ("rules", [(), ["age >= 1"]], ["age >= 1", [5], 5]),
        ("costs", [{}, {"age": 0}, {"age": 1000, 7: 0.5}], [{"age": -1}, {"age": 1001}, {"age": "a"}, ["age"], 5]),
    ],
)
def test_each_setting_has_its_bounds(name, accepted, refused):
    for value in accepted:
        Question(**{name: value})
    for value in refused:
        with pytest.raises(InputError, match="age" if isinstance(value, dict) else name):
            Question(**{name: value})


def test_a_budget_does_not_go_with_robust():
    retraining = Retraining(3, 1, None)
    Question(robust=retraining)
    Question(max_model_rows=5)
    with pytest.raises(InputError, match="max_model_rows does not go with robust"):
        Question(robust=retraining, max_model_rows=5)


def test_a_question_survives_json():
    for question in (
        Question(),
        Question("yes", 3, ("age", 7), ("age >= 1",), {"age": 2.0, 7: 0.5}, 5, 0.25, 0.75, 0.8, 100),
        Question(tdce.AtLeast("yes", 0.8), robust=Retraining(3, 1, "0" * 64)),
        Question(["yes", tdce.Not("no"), {"grade": tdce.Change(5)}]),
    ):
        assert Question.from_json(json.loads(json.dumps(question.to_json()))) == question
    assert Question(["yes", "no"]).target == ("yes", "no")
    assert Question.from_json({"n": 2}) == Question(n=2)
    with pytest.raises(
        InputError, match=r"a question has no 'imutable'; did you mean 'immutable'\? known: closeness, "
    ):
        Question.from_json({"imutable": []})


def test_a_budget_must_suffice_for_each_row_and_each_answer():
    Question(n=3, max_model_rows=50).check_budget(10)
    Question().check_budget(10**9)
    with pytest.raises(InputError, match="max_model_rows is 49, but 10 rows with n=3 need at least 50"):
        Question(n=3, max_model_rows=49).check_budget(10)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question(immutable=("agee",)), "agee"),
        (Question(rules=("agee >= 1",)), "agee"),
        (Question(costs={"agee": 1}), "agee"),
        (Question(target="maybe"), "maybe"),
        (Question(target=("yes", "maybe")), "maybe"),
        (Question(target=tdce.Range(1, 2)), "goes with a predicted number"),
    ],
)
def test_what_does_not_fit_the_table_or_the_model_is_named_before_any_work(question, words):
    with pytest.raises(InputError, match=words):
        question.check(SCHEMA, OUTPUTS, None, METHODS["search"]())
    Question("yes", 2, ("age",), ("income <= 3",), {"age": 2}).check(SCHEMA, OUTPUTS, "yes", METHODS["search"]())


def test_a_method_without_a_tradeoff_takes_no_closeness():
    with pytest.raises(InputError, match="NICE has no closeness to set; leave it out"):
        Question(closeness=0.5).check(SCHEMA, OUTPUTS, None, METHODS["nice"]())
    Question(closeness=0.5).check(SCHEMA, OUTPUTS, None, METHODS["search"]())
    Question().check(SCHEMA, OUTPUTS, None, METHODS["nice"]())


# what was found


def found(rows: int, start: int = 0, loss: bool = True) -> Explanation:
    """Two options and three features, each value another one."""
    numbers = 100.0 * start + np.arange(rows * 6).reshape(rows, 2, 3)
    notes = np.empty((rows, 2), dtype=object)
    notes[:] = [[(start, i, j) for j in range(2)] for i in range(rows)]
    return Explanation(
        numbers[:, 0], numbers, np.full((rows, 2), f"status{start}"), numbers[:, 0, 0], numbers[:, :, 1],
        numbers[:, :, 2], notes, numbers + 0.5 if loss else None, numbers[:, :, 0] / 100,
        numbers[:, :, 1] / 10,
    )  # fmt: skip


def same(one: Explanation, other: Explanation) -> bool:
    return all(
        (a is None and b is None) or np.array_equal(a, b)
        for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )


@pytest.mark.parametrize("loss", [True, False])
def test_some_rows_are_taken_and_put_back_and_nothing_else_changes(loss):
    whole, at = found(4, loss=loss), np.array([2, 0])
    part = whole.take(at)
    assert part.raw[:, 0, 0].tolist() == [12.0, 0.0]
    assert part.notes[0, 1] == (0, 2, 1)
    assert (part.loss is None) != loss
    assert same(whole.put(at, part), whole)
    before, other = found(4, loss=loss), found(2, start=1, loss=loss)
    mixed = whole.put(at, other)
    assert same(mixed.take(at), other)
    assert same(mixed.take(np.array([1, 3])), whole.take(np.array([1, 3])))
    assert same(whole, before)  # it is a copy that has changed


# which options are returned


def test_of_several_options_more_are_drawn_than_are_returned():
    assert [draws_for(n) for n in (1, 2, 3, 100)] == [1, 5, 7, 201]


def test_options_are_different_if_any_feature_is():
    a, b, c = [1.0, math.nan], [1.0, 2.0], [0.0, 2.0]
    raw = np.array([[a, a, a], [a, b, b], [b, b, a], [b, a, b], [c, b, a], [a, c, a]])
    assert count_distinct(raw).tolist() == [1, 2, 2, 2, 3, 2]


def test_the_nearest_is_the_one_nearest_to_the_row():
    column = [-1.5, 0.0, 1.5, 4.0]
    encoder = Encoder.fit(pd.DataFrame({"a": column, "b": column}))
    own, raw = np.array([[4.0, 4.0]]), np.array([[[-1.5, 4.0], [4.0, 1.5], [4.0, -1.5]]])
    valid = np.ones((1, 3), dtype=bool)
    assert choose_options(encoder, own, raw, valid, 1).tolist() == [[1]]
    assert choose_options(encoder, own, raw, valid, 2).tolist() == [[1, 0]]  # about the other feature


def test_each_row_chooses_for_itself():
    """Two rows with the same draws in another order, and with other ones valid."""
    column = [-1.5, 0.0, 1.5, 4.0]
    encoder = Encoder.fit(pd.DataFrame({"a": column, "b": column, "c": column}))
    draws = np.array([[1.5, 0, 0], [4.0, 0, 0], [0, 5.0, 0], [0, 0, 0.5]])
    raw = np.stack([draws, draws[::-1]])
    valid = np.array([[True, True, True, False], [True, False, True, False]])  # of the second: c and a with 4
    assert choose_options(encoder, np.zeros((2, 3)), raw, valid, 2).tolist() == [[0, 2], [0, 2]]
    assert choose_options(encoder, np.zeros((2, 3)), raw, valid, 3).tolist() == [
        [0, 1, 2],
        [0, 2, 1],
    ]  # b, which no other one changes


@pytest.mark.parametrize("depth", [2, 300, 50_000])
def test_a_nested_target_is_refused_however_deep_it_is(depth):
    listed, outputs = [], {"class": {"of": "yes"}}
    for _ in range(depth):
        listed, outputs = [listed], {"outputs": {"score": outputs}}
    with pytest.raises(tdce.InputError, match="a list where one target is needed"):
        tdce.Question.from_json({"target": listed})
    with pytest.raises(tdce.InputError, match="is not a valid goal"):
        tdce.Question.from_json({"target": outputs})
