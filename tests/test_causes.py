"""Causes that the user states: tables made from known equations, where the true consequence is known."""

import numpy as np
import pandas as pd
import pytest
from fits import kept
from lawful import causal_chain

import tdce
from tdce import InputError
from tdce.schema import Schema
from tdce.schema.constraints.chosen import Chosen, most_probable
from tdce.schema.constraints.laws import Follows

CHAIN = {"income": ["education", "hours"], "savings": ["income"]}


def learned(frame: pd.DataFrame, causes: object) -> tuple[Schema, np.ndarray]:
    schema = Schema.infer(frame).with_causes(causes)
    raw = np.stack([column.read(frame[column.name]) for column in schema], axis=1)
    return schema.learn_causes(raw), raw


def after(schema: Schema, raw: np.ndarray, changed: np.ndarray) -> np.ndarray:
    from tdce.schema import ConstraintSet

    return ConstraintSet.hard(schema.laws, schema.features).follow(changed, raw)


def test_consequences_of_a_linear_chain_are_the_true_ones():
    """Two years of education more are 400 more of income and 320 more of savings, whatever a person's own residual."""
    frame = causal_chain().frame.drop(columns="label")
    schema, raw = learned(frame, CHAIN)
    changed = raw.copy()
    changed[:, 0] += 2
    out = after(schema, raw, changed)
    np.testing.assert_allclose(out[:, 2] - raw[:, 2], 400, atol=20)
    np.testing.assert_allclose(out[:, 3] - raw[:, 3], 320, atol=25)
    np.testing.assert_array_equal(out[:, [0, 1, 4]], changed[:, [0, 1, 4]])


def test_consequences_of_a_product_keep_the_ratio():
    rng = np.random.default_rng(0)
    hours, wage = rng.integers(5, 60, 3_000), rng.uniform(10, 60, 3_000).round(2)
    own = np.exp(rng.normal(0, 0.3, 3_000))
    frame = pd.DataFrame({"hours": hours, "wage": wage, "pay": (hours * wage * own).round(2)})
    schema, raw = learned(frame, {"pay": ["hours", "wage"]})
    changed = raw.copy()
    changed[:, 0] *= 2
    out = after(schema, raw, changed)
    np.testing.assert_allclose(np.median(out[:, 2] / raw[:, 2]), 2, atol=0.05)
    assert [law.product for law in schema.laws if isinstance(law, Follows)] == [True]


def test_a_curve_is_learned():
    rng = np.random.default_rng(0)
    dose = rng.uniform(0, 10, 4_000).round(2)
    frame = pd.DataFrame({"dose": dose, "effect": (10 * np.sqrt(dose) + rng.normal(0, 1, 4_000)).round(2)})
    schema, raw = learned(frame, {"effect": ["dose"]})
    changed = raw.copy()
    changed[:, 0] = 9.0
    gained = (after(schema, raw, changed) - raw)[raw[:, 0] < 1.5, 1]
    truth = (10 * np.sqrt(9) - 10 * np.sqrt(raw[:, 0]))[raw[:, 0] < 1.5]
    assert np.abs(gained - truth).mean() < 1.5


def test_a_category_is_chosen_with_the_same_noise():
    """By a second route: noise is drawn for everybody, and only those who have the category that they have count."""
    rng = np.random.default_rng(0)
    before, now = np.array([[0.0, 1.0, 0.5]]), np.array([[1.5, 1.0, 0.0]])
    noise = rng.gumbel(size=(200_000, 3))
    for observed in range(3):
        alike = (before + noise).argmax(axis=1) == observed
        truth = np.bincount((now + noise[alike]).argmax(axis=1), minlength=3).argmax()
        assert most_probable(before, np.array([observed]), now)[0] == truth
    assert most_probable(before, np.array([1]), before)[0] == 1  # nothing changed, nothing happens


def test_a_category_follows_its_causes():
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 60, 4_000)
    logits = np.column_stack([0 * hours, 0.2 * (hours - 20), 0.4 * (hours - 35)])
    job = np.array(["none", "part", "full"])[(logits + rng.gumbel(size=logits.shape)).argmax(axis=1)]
    schema, raw = learned(pd.DataFrame({"hours": hours, "job": job}), {"job": ["hours"]})
    assert [type(law) for law in schema.laws] == [Chosen]
    changed = raw.copy()
    changed[:, 0] = 60
    out = after(schema, raw, changed)
    names = schema["job"].cells(out[:, 1])
    assert np.mean([name == "full" for name in names]) > 0.9
    np.testing.assert_array_equal(after(schema, raw, raw), raw)
    assert Schema.from_json(schema.to_json()) == schema


def test_a_graph_is_read_as_a_mapping():
    class Graph:
        nodes = ("education", "income")

        def predecessors(self, name):
            return iter(["education"] if name == "income" else [])

    schema = Schema.infer(causal_chain().frame, "label")
    assert schema.with_causes(Graph()).causes == {"income": ("education",)}


@pytest.mark.parametrize(("causes", "words"), [
    ({"income": ["education"], "education": ["income"]}, "in a circle: income <- education <- income"),
    ({"income": ["income"]}, "in a circle: income <- income"),
    ({"income": ["educaton"]}, "no feature 'educaton'; did you mean 'education'"),
    ({"incom": ["education"]}, "no feature 'incom'"),
    ({"income": "education"}, "the causes of 'income'"),
    (["income"], "it must be a mapping"),
    (None, "it must be a mapping"),
])  # fmt: skip
def test_causes_that_make_no_sense_are_named(causes, words):
    with pytest.raises(InputError, match=words):
        Schema.infer(causal_chain().frame, "label").with_causes(causes)


def test_too_few_rows_are_named():
    frame = pd.DataFrame({"a": range(10), "b": range(0, 20, 2)})
    with pytest.raises(InputError, match="known together in 10 rows only"):
        learned(frame, {"b": ["a"]})


@pytest.fixture(scope="module")
def explainer():
    made = tdce.Explainer(hidden=32, steps=150, progress="silent")
    frame = causal_chain(rows=800).frame
    return kept("causes", lambda: made.fit(frame, label="label", favourable="yes", causes=CHAIN))


def test_answers_are_judged_after_their_consequences(explainer):
    table = causal_chain(rows=800)
    rows = table.frame[table.frame["label"] == "no"].drop(columns="label").head(40)
    answer = explainer.explain(rows)
    frame = answer.to_frame().set_index("row")
    raw = explainer.schema
    assert raw.followers == {"income": ("education", "hours"), "savings": ("income",)}
    earned = 200 * (frame["education"] - rows["education"]) + 60 * (frame["hours"] - rows["hours"])
    np.testing.assert_allclose(frame["income"] - rows["income"], earned, atol=0.1 * earned.abs().max() + 40)
    saved = 0.8 * (frame["income"] - rows["income"])
    np.testing.assert_allclose(frame["savings"] - rows["savings"], saved, atol=0.1 * saved.abs().max() + 40)
    valid = frame["status"] == "valid"
    assert valid.mean() > 0.8
    assert explainer.predict(answer.to_frame()[valid.to_numpy()]).eq("yes").all()
