"""Columns that follow others: found where they do, computed anew in every answer, and nowhere else."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fits import kept
from lawful import TABLES, conditional_range, instalment, lawless, months, price_list, ratio

import tdce
from tdce import InputError
from tdce.schema import Encoder, FeasibleSet, Schema
from tdce.schema.constraints.laws import Equivalent, Follows, Order, Within

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TABLES)
def test_the_laws_of_a_table_are_found_and_nothing_else(name, seed):
    table = TABLES[name](seed)
    laws = Schema.infer(table.frame, "label").laws
    assert {frozenset(law.columns) for law in laws} == set(table.laws)
    assert all(law.hard for law in laws)


@pytest.mark.parametrize("seed", range(20))
def test_shuffled_columns_and_related_ones_follow_nothing(seed):
    rng = np.random.default_rng(seed)
    for frame in (make(seed, 500).frame for make in (price_list, months, ratio, instalment)):
        shuffled = pd.DataFrame({name: rng.permutation(frame[name].to_numpy()) for name in frame})
        assert Schema.infer(shuffled, "label").laws == ()
    assert Schema.infer(lawless(seed, 500).frame, "label").laws == ()


@pytest.mark.parametrize(("make", "text"), [
    (months, "total_paid = about months x price"),
    (ratio, "utilisation = used / limit"),
    (conditional_range, "if tariff is premium, then premium is at least 70"),
    (instalment, "instalment follows amount, term, rate"),
    (price_list, "price follows internet, backup, streaming, support, lines"),
])  # fmt: skip
def test_they_are_said_as_a_person_would(make, text):
    assert text in [str(law) for law in Schema.infer(make().frame, "label").laws]


def test_a_product_by_a_second_route():
    """The factor and its strength, by regression of logarithms instead of medians and covariances."""
    frame = months(3).frame
    law = next(law for law in Schema.infer(frame, "label").laws if isinstance(law, Follows))
    logs = np.log(frame[["months", "price", "total_paid"]].to_numpy(float))
    slopes, residual = np.linalg.lstsq(np.column_stack([logs[:, :2], np.ones(len(logs))]), logs[:, 2], rcond=None)[:2]
    np.testing.assert_allclose(slopes, [1, 1, 0], atol=0.03)
    assert law.strength == pytest.approx(1 - residual[0] / len(logs) / logs[:, 2].var(), abs=0.002)
    assert law.terms == (1.0, 1.0)
    assert law.constant == 1.0


def test_a_law_states_its_rows_its_exceptions_and_its_strength():
    assert (
        "Total_paid = about months x price (2,000 rows; explains 99.8 %)"
        in Schema.infer(months().frame, "label").sentences()
    )


def test_a_price_list_is_the_one_it_was_made_from():
    law = next(law for law in Schema.infer(price_list().frame, "label").laws if isinstance(law, Follows))
    terms = {name: dict(term) for name, term in zip(law.sources, law.terms, strict=True)}
    assert terms["internet"]["fibre"] - terms["internet"]["dsl"] == pytest.approx(25, abs=0.2)
    assert terms["support"]["yes"] - terms["support"]["no"] == pytest.approx(15, abs=0.2)
    assert terms["lines"]["several"] - terms["lines"]["one"] == pytest.approx(5, abs=0.2)


def test_a_curve_is_found_to_within_its_steps():
    rng = np.random.default_rng(0)
    score = rng.normal(600, 80, 3_000).round()
    decile = np.ceil(10 * pd.Series(score).rank(pct=True))
    frame = pd.DataFrame({"score": score, "decile": decile, "other": rng.normal(size=3_000)})
    (law,) = Schema.infer(frame).laws
    assert (law.follower, law.followed) == ("decile", ("score",))
    typical = law.bind(Schema.infer(frame).features).typical(frame.to_numpy(float))
    assert np.abs(typical - frame["decile"]).max() <= 1


def test_powers_are_whole_numbers_where_they_are_nearly():
    rng = np.random.default_rng(0)
    height, weight = rng.normal(172, 10, 2_000).round(), rng.normal(75, 12, 2_000).clip(40).round(1)
    frame = pd.DataFrame({"height": height, "weight": weight, "bmi": (weight / (height / 100) ** 2).round(1)})
    frame["pulse"] = rng.integers(50, 100, 2_000)
    (law,) = Schema.infer(frame).laws
    assert (law.follower, dict(zip(law.sources, law.terms, strict=True))) == ("bmi", {"weight": 1.0, "height": -2.0})
    assert law.constant == pytest.approx(1e4, rel=1e-3)


def test_curves_of_a_number_and_of_categories_add_up():
    rng = np.random.default_rng(0)
    grade, school = rng.normal(size=2_000).round(2), rng.choice(["x", "y", "z"], 2_000)
    decile = (5 + 2.2 * np.tanh(grade) + 1.5 * (school == "y") - 2 * (school == "z")).round(1)
    frame = pd.DataFrame({"grade": grade, "school": school, "decile": decile, "age": rng.integers(20, 50, 2_000)})
    schema = Schema.infer(frame)
    (law,) = schema.laws
    assert (law.follower, set(law.followed)) == ("decile", {"grade", "school"})
    raw = np.stack([column.read(frame[column.name]) for column in schema], axis=1)
    typical = law.bind(schema.features).typical(raw)
    assert np.quantile(np.abs(typical - frame["decile"]), 0.99) <= 0.1


def test_a_gap_is_tied_to_a_value():
    """As in a telephone company's table: nothing was paid where the months are 0."""
    frame = months().frame
    frame.loc[frame.index[:12], "months"] = 0
    frame.loc[frame.index[:12], "total_paid"] = np.nan
    laws = Schema.infer(frame, "label").laws
    assert "months is 0 exactly where total_paid is missing" in [str(law) for law in laws]
    assert any(isinstance(law, Follows) for law in laws)


def test_many_equivalences_are_one_law():
    laws = [law for law in Schema.infer(price_list().frame, "label").laws if isinstance(law, Equivalent)]
    assert [len(law.states) for law in laws] == [4]


def test_rounding_does_not_hide_an_order():
    rng = np.random.default_rng(0)
    high = rng.uniform(0, 100, 3_000).round(1)
    low = np.minimum(high, (high * rng.beta(3, 1, 3_000))).round(2) + np.where(rng.random(3_000) < 0.2, 0.04, 0)
    low = np.where(rng.random(3_000) < 0.3, high + 0.04, low).round(2)
    laws = Schema.infer(pd.DataFrame({"low": low, "high": high})).laws
    assert [str(law) for law in laws if isinstance(law, Order)] == ["low is at most high (to within 0.1)"]


def test_what_merely_never_occurs_together_is_no_law():
    rng = np.random.default_rng(0)
    job = rng.choice(["clerk", "nurse", "driver", "cook"], 20_000)
    degree = rng.choice(["none", "bachelor", "master"], 20_000)
    degree = np.where((job == "cook") & (degree == "master"), "none", degree)
    assert Schema.infer(pd.DataFrame({"job": job, "degree": degree})).laws == ()


def test_no_law_about_states_names_a_protected_attribute():
    rng = np.random.default_rng(0)
    sex = rng.choice(["female", "male"], 3_000)
    title = np.where(sex == "female", "Ms", "Mr")
    assert Schema.infer(pd.DataFrame({"sex": sex, "title": title, "x": rng.normal(size=3_000)})).laws == ()


def test_the_user_can_turn_an_equation_round():
    schema = Schema.infer(ratio().frame, "label")
    assert schema.followers == {"utilisation": ("used", "limit")}
    turned = schema.change("used", follows=["limit", "utilisation"])
    assert turned.followers == {"used": ("utilisation", "limit")}
    assert str(turned.laws[0]) == "used = utilisation x limit"
    assert Schema.from_json(turned.to_json()) == turned
    assert turned.change("utilisation", follows=("used", "limit")).laws[0].terms == (1.0, -1.0)
    assert schema.change("utilisation", follows=[]).followers == {}
    with pytest.raises(InputError, match="'limit' cannot follow income: no law binds just these columns"):
        schema.change("limit", follows=["income"])
    with pytest.raises(InputError, match="cannot follow itself"):
        schema.change("limit", follows=["limit", "used"])
    services = Schema.infer(price_list().frame, "label")
    with pytest.raises(InputError, match="cannot be solved for 'internet'"):
        services.change("internet", follows=["price", "backup", "streaming", "support", "lines"])


def test_a_circle_of_followers_is_named():
    schema = Schema.infer(pd.DataFrame({"a": [1, 2, 3], "b": [1, 5, 2], "c": [2, 2, 9]}))
    with pytest.raises(InputError, match="'a' follows itself, through"):
        replace(schema, laws=(Follows("a", ("b",), (1.0,)), Follows("b", ("c",), (1.0,)), Follows("c", ("a",), (2.0,))))


def test_a_chain_of_followers_is_computed_to_its_end():
    rng = np.random.default_rng(0)
    a = rng.integers(1, 50, 300)
    frame = pd.DataFrame({"a": a, "b": a + 2, "c": 3 * (a + 2)})
    laws = (Follows("c", ("b",), (3.0,)), Follows("b", ("a",), (1.0,), 2.0))
    encoder = Encoder.fit(frame, Schema(Schema.infer(frame).features, laws))
    proposed = frame.assign(a=frame["a"].to_numpy()[::-1])
    raw = FeasibleSet.of(encoder, frame).snap(encoder.encode(proposed))
    np.testing.assert_array_equal(raw[:, 0], proposed["a"])
    np.testing.assert_array_equal(raw[:, 1:], np.column_stack([raw[:, 0] + 2, 3 * raw[:, 0] + 6]))
    np.testing.assert_array_equal(encoder.laws.follow(proposed.to_numpy(float), frame.to_numpy(float)), raw)


def test_narrow_floats_follow_too():
    frame = ratio(rows=400).frame.drop(columns="label").astype({"utilisation": "float32"})
    encoder = Encoder.fit(frame)
    rows = frame.head(50)
    proposed = rows.assign(used=frame["used"].to_numpy()[50:100])
    feasible = FeasibleSet.of(encoder, rows)
    raw = feasible.snap(encoder.encode(proposed))
    assert feasible.contains(raw).all()
    moved = (raw[:, 1] != rows["used"]).to_numpy()
    assert moved.mean() > 0.5
    written = encoder.write(raw, rows)
    assert written.dtypes.equals(rows.dtypes)
    assert np.abs(written["utilisation"] - written["used"] / written["limit"]).max() < 0.0011


@pytest.fixture(scope="module")
def explainer():
    made = tdce.Explainer(hidden=32, steps=150, progress="silent")
    return kept("equations", lambda: made.fit(ratio(rows=600).frame, label="label", favourable="yes"))


def test_answers_contradict_nothing_and_consequences_are_no_changes(explainer):
    table = ratio(rows=600)
    rows = table.frame[table.frame["label"] == "no"].drop(columns="label").head(60)
    answer = explainer.explain(rows, n=2, rules=["at most 1 change"])
    frame = answer.to_frame()
    assert not table.contradictions(frame).any()
    changes = answer.changes()
    decided = changes[changes["feature"] != "utilisation"].groupby(["row", "option"]).size()
    followed = changes[changes["feature"] == "utilisation"]
    assert decided.max() == 1
    assert len(followed)
    assert all(key in decided.index for key in zip(followed["row"], followed["option"], strict=True))
    first = followed.iloc[0]
    line = frame[(frame["row"] == first["row"]) & (frame["option"] == first["option"])].index[0]
    assert "What follows: utilisation" in answer.sentences()[list(frame.index).index(line)]
    assert not answer.reasons()["feature"].isin(["utilisation"]).any()


def test_a_row_that_contradicts_a_law_is_not_plausible(explainer):
    table = ratio(rows=600)
    rows = table.frame.drop(columns="label").head(20)
    broken = rows.assign(utilisation=(rows["utilisation"] + 0.4).clip(upper=1.3).round(3))
    assert (explainer.plausibility(broken) == 0).all()
    assert (explainer.plausibility(rows) > 0).mean() > 0.5
    notes = explainer.explain(broken).to_frame()["note"]
    assert notes.str.contains("contradict the table, in which 'utilisation = used / limit'").all()


def test_every_law_survives_json(explainer):
    for make in TABLES.values():
        schema = Schema.infer(make(rows=600).frame, "label")
        assert Schema.from_json(json.dumps(json.loads(schema.to_json()))) == schema
    assert isinstance(tdce.Schema, type)
    assert any(isinstance(law, Follows) for law in explainer.schema.laws)
    assert Within({"column": "a", "values": ["x"]}, "b", low=1).entry()["high"] is None


def test_a_coarser_grid_does_not_bend_a_sum():
    """With a rule on the total, a change is made whole, in part, or not at all; the sum stays exact."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(20, 900, (300, 2)), columns=["rent", "heating"])
    frame["housing"] = frame["rent"] + frame["heating"]
    encoder = Encoder.fit(
        frame, Schema(Schema.infer(frame).features, (Follows("housing", ("rent", "heating"), (1, 1)),))
    )
    feasible = FeasibleSet.of(encoder, frame, rules=["housing in steps of 5"])
    raw = feasible.snap(encoder.encode(frame.assign(rent=frame["rent"].to_numpy()[::-1])))
    np.testing.assert_array_equal(raw[:, 2], raw[:, 0] + raw[:, 1])
    moved = raw[:, 0] != frame["rent"]
    assert moved.any()
    assert (raw[moved, 2] % 5 == 0).all()
