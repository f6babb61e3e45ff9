"""Laws: exactly those of a table are discovered, and every answer keeps them."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tdce import InputError
from tdce._core.values import Floats
from tdce.schema.columns.categorical import Categorical
from tdce.schema.constraints import discovery
from tdce.schema.constraints.base import FollowerConstraint
from tdce.schema.constraints.laws import (
    LAW_KINDS,
    Chosen,
    Determines,
    Equivalent,
    Follows,
    Given,
    Law,
    Order,
    State,
    Within,
    law_from_entry,
)
from tdce.schema.constraints.repair import ConstraintSet
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

MONTHS = {"jan": 31, "feb": 28, "mar": 31, "apr": 30}


def table(rows: int = 6_000, seed: int = 0) -> pd.DataFrame:
    """A table that has one law of each kind, beside columns that have none."""
    rng = np.random.default_rng(seed)
    called = rng.random(rows) < 0.3
    trades = rng.integers(0, 30, rows)
    month = rng.choice(list(MONTHS), rows)
    rent, heating = rng.integers(200, 900, rows), rng.integers(20, 90, rows)
    town = rng.choice(["Bonn", "Köln", "Trier", "Mainz"], rows)
    return pd.DataFrame({
        "trades": trades,
        "satisfactory": rng.binomial(trades, 0.8),
        "days_since_call": np.where(called, rng.integers(1, 400, rows), -1),
        "outcome": np.where(called, rng.choice(["success", "failure"], rows), "never called"),
        "month": month,
        "day": [rng.integers(1, MONTHS[m] + 1) for m in month],
        "rent": rent,
        "heating": heating,
        "housing": rent + heating,
        "yearly": 12 * (rent + heating),
        "town": town,
        "state": pd.Series(town).map({"Bonn": "NRW", "Köln": "NRW", "Trier": "RP", "Mainz": "RP"}),
        "income": rng.lognormal(8, 0.5, rows).round(2),
        "savings": rng.lognormal(7, 1.0, rows).round(2),
        "colour": rng.choice(["red", "green", "blue"], rows),
    })  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.infer(table())


def test_every_law_of_a_table_is_found_and_nothing_else(schema):
    assert [str(law) for law in schema.laws] == [
        "yearly = 12 x housing",
        "housing = rent + heating",
        "town determines state",
        "satisfactory is at most trades",
        "days_since_call is -1 exactly where outcome is never called",
        "if month is feb, then day is none of 29, 30, 31",
        "if month is apr, then day is not 31",
    ]
    assert all(law.hard and law.on for law in schema.laws)


@pytest.mark.parametrize("seed", range(5))
def test_in_shuffled_columns_there_is_no_law(seed):
    """Each column keeps its values, so only what is between columns is gone."""
    rng, frame = np.random.default_rng(seed), table(2_000, seed)
    assert Schema.infer(frame.apply(lambda column: rng.permutation(column.to_numpy()))).laws == ()


def test_numbers_that_go_up_together_are_no_law():
    rng = np.random.default_rng(0)
    year_1 = rng.integers(1, 11, 5_000)
    year_3 = (year_1 + rng.normal(0, 1.5, 5_000)).round().clip(1, 10).astype(int)
    income = rng.lognormal(10, 0.4, 5_000).round()
    age = (20 + income / 2000 + rng.normal(0, 3, 5_000)).round()
    frame = pd.DataFrame({"year_1": year_1, "year_3": year_3, "income": income, "age": age})
    assert Schema.infer(frame).laws == ()


def test_a_few_exceptions_make_a_law_soft():
    frame = table()
    frame.loc[:4, "satisfactory"] = frame.loc[:4, "trades"] + 1
    law = next(law for law in Schema.infer(frame).laws if isinstance(law, Order))
    assert (law.low, law.high, law.exceptions, law.hard) == ("satisfactory", "trades", 5, False)
    frame.loc[:400, "satisfactory"] = frame.loc[:400, "trades"] + 1
    assert not any(isinstance(law, Order) for law in Schema.infer(frame).laws)


def test_exceptions_must_also_be_few_beside_those_of_chance():
    """2 % of 10,000 rows by chance are 200: a twentieth of them may be exceptions, though 0.5 % of the rows are 50."""
    assert discovery._is_significant(10, 0.02, 10_000, 1)
    assert not discovery._is_significant(11, 0.02, 10_000, 1)


def test_a_total_of_three_parts_is_found():
    rng = np.random.default_rng(0)
    parts = pd.DataFrame(rng.integers(1, 1_000, (500, 3)), columns=["rent", "heating", "water"])
    laws = Schema.infer(parts.assign(total=parts.sum(axis=1))).laws
    assert [sorted(law.columns) for law in laws if isinstance(law, Follows)] == [["heating", "rent", "total", "water"]]


def test_a_sum_with_factors_is_found():
    rng = np.random.default_rng(0)
    parts = pd.DataFrame(rng.integers(1, 1_000, (500, 3)), columns=["rent", "heating", "water"])
    total = parts["rent"] + 2 * parts["heating"] + 3 * parts["water"]
    laws = [str(law) for law in Schema.infer(parts.assign(total=total)).laws]
    assert laws == ["total = rent + 2 x heating + 3 x water"]


def test_numbers_that_are_nearly_always_equal_are_not_ordered_both_ways():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 30, 6_000)
    b = a.copy()
    b[:5] += 1
    b[5:10] -= 1
    orders = [law for law in Schema.infer(pd.DataFrame({"a": a, "b": b})).laws if isinstance(law, Order)]
    assert orders == []


def test_a_state_without_but_is_of_these_values():
    assert State.of({"column": "month", "values": ["feb"]}) == State("month", ("feb",), but=False)


def test_missing_is_a_state():
    frame = table()
    frame["phone"] = np.where(frame["outcome"] == "never called", None, frame["outcome"])
    said = [str(law) for law in Schema.infer(frame).laws]
    together = "days_since_call is -1 exactly where outcome is never called and phone is missing"
    assert {"outcome determines phone", together} <= set(said)


def test_a_wide_table_takes_no_longer_by_looking_at_fewer_rows(monkeypatch):
    frame = table(4_000)
    everything = Schema.infer(frame).laws
    monkeypatch.setattr(discovery, "MAX_WORK", 4_000 * frame.shape[1] ** 2 // 4)  # half the rows
    assert set(map(str, Schema.infer(frame).laws)) <= set(map(str, everything))
    assert str(Schema.infer(frame).laws[0]) == "yearly = 12 x housing"


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"a": [1, 2]}),
    pd.DataFrame({"a": [1.0] * 50, "b": ["x"] * 50}),
    pd.DataFrame({"a": [1.0, None] * 3, "b": [None, 2.0] * 3}),
    pd.DataFrame({"a": [f"v{i}" for i in range(200)] * 2, "b": range(400)}),
])  # fmt: skip
def test_awkward_tables_have_no_laws(frame):
    assert Schema.infer(frame).laws == ()


def test_they_survive_json_and_can_be_switched_off(schema):
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert "Satisfactory is at most trades (6,000 rows)" in str(schema)
    off = schema.without_laws(3)
    assert [law.on for law in off.laws] == [True, True, True, False, True, True, True]
    assert "Satisfactory is at most trades (6,000 rows; switched off)" in str(off)
    assert Schema.from_json(off.to_json()) == off
    assert not any(law.on for law in schema.without_laws().laws)
    with pytest.raises(InputError, match="there is no law 7; the schema has 7, counted from 0"):
        schema.without_laws(7)


@pytest.mark.parametrize(("entry", "words"), [
    (3, "a law in the schema is 3"),
    ({"law": "karma"}, "'karma' is not known; it must be one of"),
    ({"law": "order", "low": "rent"}, "needs the setting 'high'"),
    ({"law": "order", "low": "rent", "high": "heating", "colour": 1}, "no setting 'colour'"),
    ({"law": "order", "low": "rent", "high": "heating", "support": 1, "exceptions": 2}, "the first at most the second"),
    ({"law": "order", "low": "rent", "high": "heating", "on": 1}, "on is 1"),
    ({"law": "order", "low": "rent", "high": "town"}, "compares 'town' as a number"),
    ({"law": "order", "low": "rent", "high": "toun"}, "refers to 'toun'"),
    ({"law": "follows", "column": "rent", "sources": ["heating"], "terms": [0]}, "number other than 0"),
    ({"law": "follows", "column": "rent", "sources": ["heating"], "terms": []}, "one term for each"),
    ({"law": "follows", "column": "rent", "sources": "heating", "terms": [1]}, "must be a list"),
    ({"law": "follows", "column": "rent", "sources": ["rent"], "terms": [1]}, "cannot follow itself"),
    ({"law": "follows", "column": "town", "sources": ["rent"], "terms": [1]}, "compares 'town' as a number"),
    ({"law": "follows", "column": "rent", "sources": ["town"], "terms": [[["Ulm", 1]]]}, "category 'Ulm'"),
    ({"law": "follows", "column": "rent", "sources": ["heating"], "terms": [1], "product": True}, "must not be 0"),
    ({"law": "follows", "column": "rent", "sources": ["heating"], "terms": [1], "band": "x"}, "band 'x' must be"),
    ({"law": "within", "when": {"column": "town", "values": ["Bonn"]}, "column": "rent"}, "needs low or high"),
    ({"law": "equivalent", "states": [{"column": "town", "values": ["Bonn"]}]}, "two of them or more"),
    ({"law": "determines", "column": "town", "other": "state", "values": [1]}, "a list of pairs"),
    ({"law": "given", "when": {"column": "town", "values": ["Ulm"]}, "then": {"column": "state", "values": ["RP"]}},
     "'town' has category 'Ulm'"),
    ({"law": "given", "when": {"column": "town"}, "then": {"column": "town", "values": ["x"]}}, "needs 'column'"),
    ({"law": "given", "when": {"column": "town", "values": []}, "then": {"column": "town", "values": [1]}}, "words"),
])  # fmt: skip
def test_a_law_that_makes_no_sense_is_named(schema, entry, words):
    text = json.loads(schema.to_json()) | {"laws": [entry]}
    with pytest.raises(InputError, match=words):
        Schema.from_json(json.dumps(text))


# --- repair ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Numbers from a lowest to a highest one, in steps that may differ by column; some columns are frozen."""

    own: Floats
    low: float = -1000
    high: float = 1000
    steps: tuple[float, ...] = (1,) * 10
    frozen: tuple[int, ...] = ()

    def take(self, at: np.ndarray) -> "Grid":
        return replace(self, own=self.own[at])

    def allows(self, column: int, values: Floats, rows: np.ndarray) -> np.ndarray:
        inside = (values >= self.low) & (values <= self.high) & (values % self.steps[column] == 0)
        return inside & (column not in self.frozen)

    def towards_own(self, column: int, values: Floats, rows: np.ndarray) -> Floats:
        """Looked up in the list of all that there is."""
        grid = np.arange(self.low, self.high + 1) if self.low <= self.high else np.zeros(0)
        grid = grid[self.allows(column, grid, rows)]
        return np.array([nearest(grid, *ends) for ends in zip(values, self.own[rows, column], strict=True)])


def nearest(grid: Floats, start: float, own: float) -> float:
    between = grid[(grid >= min(start, own)) & (grid <= max(start, own))]
    return float(between[np.abs(between - start).argmin()]) if len(between) else own


def kept(law: Law, own: list[object], proposed: list[object], **room: object) -> list[object]:
    """One row of the columns that the law speaks of, in its order: what becomes of a proposal."""
    frame = pd.DataFrame([own, proposed], columns=list(law.columns))
    words = ("x", "y", "X", "Y", "success", "failure")
    features = [replace(f, categories=words) if isinstance(f, Categorical) else f for f in Schema.infer(frame).features]
    raw = np.stack([f.read(frame[f.name]) for f in features], axis=1)
    laws = ConstraintSet.hard([law], features)
    out = laws.repair(raw[1:], raw[:1], Grid(raw[:1], **room))
    assert not laws.broken(out, raw[:1]).any()
    return [f.cells(out[:, i])[0] for i, f in enumerate(features)]


ORDER = Order("a", "b")
SUM = Follows("total", ("a", "b"), (1, 1))
YEARLY = Follows("yearly", ("monthly",), (12,))
PAID = Follows("paid", ("months", "price"), (1, 1), 1, True)
USED = Follows("share", ("used", "limit"), (1, -1), 100, True)
RENT = Follows("rent", ("town", "rooms"), ((("x", 100), ("y", 300)), 50))
TOWN = Determines("town", "state", (("x", "X"), ("y", "Y")))
CALL = Given(State("outcome", ("success",)), State("days", (-1,), but=True), usual=90, otherwise="failure")


@pytest.mark.parametrize(("law", "own", "proposed", "answer"), [
    (ORDER, [1, 5], [7, 5], [5, 5]),  # a goes as far as b
    (ORDER, [4, 5], [4, 2], [4, 4]),  # b goes as far as a
    (ORDER, [1, 5], [7, 6], [6, 6]),  # both changed
    (ORDER, [6, 5], [6, 5], [6, 5]),  # the person's own contradiction may stay
    (ORDER, [6, 5], [7, 5], [5, 5]),  # and never gets worse
    (SUM, [5, 2, 3], [5, 4, 3], [7, 4, 3]),  # the total follows
    (SUM, [5, 2, 3], [9, 2, 3], [5, 2, 3]),  # and is never changed alone
    (SUM, [5, 2, 3], [9, 4, 3], [7, 4, 3]),
    (SUM, [6, 2, 3], [6, 4, 3], [8, 4, 3]),  # who has one more than the sum keeps it
    (PAID, [60, 3, 20], [60, 12, 20], [240, 12, 20]),
    (PAID, [66, 3, 20], [66, 12, 20], [264, 12, 20]),  # who paid a tenth more goes on to
    (PAID, [0, 0, 20], [0, 12, 20], [240, 12, 20]),  # nothing to keep
    (USED, [50, 5, 10], [50, 5, 20], [25, 5, 20]),
    (USED, [50, 5, 10], [90, 5, 10], [50, 5, 10]),
    (RENT, [250, "x", 3], [250, "y", 3], [450, "y", 3]),
    (RENT, [270, "x", 3], [270, "y", 2], [420, "y", 2]),  # 20 more than others
    (TOWN, ["x", "X"], ["y", "X"], ["y", "Y"]),
    (TOWN, ["x", "X"], ["x", "Y"], ["y", "Y"]),
    (CALL, ["failure", -1], ["success", -1], ["success", 90]),  # nobody succeeds who was never called
    (CALL, ["success", 30], ["success", -1], ["failure", -1]),
])  # fmt: skip
def test_what_is_tied_to_a_change_follows_it(law, own, proposed, answer):
    assert kept(law, own, proposed) == answer


@pytest.mark.parametrize(("law", "own", "proposed"), [
    (SUM, [5, 2, 3], [5, 4, 3]),
    (TOWN, ["x", "X"], ["y", "X"]),
    (CALL, ["failure", -1], ["success", -1]),
])  # fmt: skip
def test_a_change_that_nothing_may_follow_is_reverted(law, own, proposed):
    assert kept(law, own, proposed, low=1, high=0) == own


@pytest.mark.parametrize(("law", "own", "proposed", "room", "answer"), [
    (ORDER, [0, 7], [20, 7], {"steps": (5, 1)}, [5, 7]),  # 7 is not on the grid of a
    (ORDER, [6, 20], [6, 0], {"steps": (1, 5)}, [6, 10]),
    (ORDER, [6, 7], [20, 7], {"steps": (5, 1)}, [6, 7]),  # nothing between 6 and 7
    (SUM, [5, 2, 3], [5, 40, 3], {"low": 0, "high": 20}, [20, 17, 3]),  # the total goes as far as it may
    (SUM, [5, 2, 3], [5, 40, 3], {"frozen": (0,)}, [5, 2, 3]),  # the total may not follow
    (PAID, [60, 3, 20], [60, 72, 20], {"high": 500}, [500, 25, 20]),
    (YEARLY, [24, 2], [24, 9], {"high": 70}, [60, 5]),
])  # fmt: skip
def test_a_change_that_nothing_may_follow_whole_moves_back_as_far_as_it_must(law, own, proposed, room, answer):
    assert kept(law, own, proposed, **room) == answer


def test_a_sum_of_cents_follows_to_the_cent():
    """In floats 0.1 + 0.2 is not 0.3, nor are many others what they are to the cent."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 999, (300, 2)) / 100, columns=["rent", "heating"])
    frame["housing"] = (frame["rent"] + frame["heating"]).round(2)
    encoder = Encoder.fit(
        frame, Schema(Schema.infer(frame).features, (Follows("housing", ("rent", "heating"), (1, 1)),))
    )
    proposed = frame.assign(rent=frame["rent"].to_numpy()[::-1])
    raw = FeasibleSet.of(encoder, frame).snap(encoder.encode(proposed))
    np.testing.assert_array_equal(raw[:, 2], (raw[:, 0] + raw[:, 1]).round(2))
    fits = (proposed["rent"] + frame["heating"]).between(frame["housing"].min(), frame["housing"].max()).to_numpy()
    np.testing.assert_array_equal(raw[fits, 0], proposed["rent"][fits])
    assert fits.mean() > 0.9


def test_a_constraint_has_a_follower_if_its_law_has_one():
    features = Schema.infer(pd.DataFrame({"a": range(5), "b": range(5), "c": list("xyxyx")})).features
    x, one = State("c", ("x",)), State("a", (1,))
    laws = [
        Order("a", "b"), Follows("b", ("a",), (2,)), Determines("c", "a", (("x", 1), ("y", 2))), Given(x, one, 1, "y"),
        Equivalent((x, one), ("y", 2)), Within(x, "a", 1, 3), Chosen("c", ("a",), ("x", "y"), ((1, 0),), (0, 0)),
    ]  # fmt: skip
    assert {type(law) for law in laws} == set(LAW_KINDS)
    for law in laws:
        bound = law.bind(features)
        assert isinstance(bound, FollowerConstraint) == (law.follower is not None)
        if isinstance(bound, FollowerConstraint):
            assert features[bound.follower].name == law.follower


VALUES = st.integers(0, 4)
STATES = st.builds(
    lambda c, v, but: State(c, tuple(sorted(v)), but),
    st.sampled_from("abcd"),
    st.sets(VALUES, min_size=1),
    st.booleans(),
)
LAWS = st.one_of(
    st.builds(Order, st.sampled_from("abcd"), st.sampled_from("abcd")),
    st.builds(lambda names: Follows(names[0], tuple(names[1:]), (1,) * len(names[1:])),
              st.lists(st.sampled_from("abcd"), min_size=2, max_size=3, unique=True)),
    st.builds(lambda a, b, m: Determines(a, b, tuple(m.items())), st.sampled_from("abcd"), st.sampled_from("abcd"),
              st.dictionaries(VALUES, VALUES, min_size=1)),
    st.builds(Given, STATES, STATES, VALUES, VALUES),
)  # fmt: skip


@settings(max_examples=30)
@given(st.lists(LAWS, min_size=1, max_size=5), st.integers(0, 999))
def test_whatever_the_laws_no_change_breaks_one(laws, seed):
    """Any laws, contradictory ones too: every law is kept, or its columns are as they were; what may not change does
    not."""
    rng = np.random.default_rng(seed)
    features = Schema.infer(pd.DataFrame({name: range(5) for name in "abcd"})).features
    own, raw = rng.integers(0, 5, (2, 30, 4)).astype(float)
    frozen = rng.random(4) < 0.3
    raw, room = np.where(frozen, own, raw), Grid(own, 0, 4, frozen=tuple(np.flatnonzero(frozen)))
    constraints = ConstraintSet.hard(laws, features)
    out = constraints.repair(raw, own, room)
    for law in laws:  # by hand, not by `broken`
        at = ["abcd".index(name) for name in law.columns]
        as_was = (out[:, at] == own[:, at]).all(axis=1)
        assert (
            as_was
            | [
                holds(law, *(dict(zip("abcd", row, strict=True)) for row in both))
                for both in zip(out, own, strict=True)
            ]
        ).all()
    assert (out[:, frozen] == own[:, frozen]).all()
    assert ((out >= 0) & (out <= 4)).all()
    again = constraints.repair(out, own, room)
    np.testing.assert_array_equal(again, out)


def holds(law: Law, row: dict[str, float], own: dict[str, float]) -> bool:
    if isinstance(law, Order):
        return row[law.low] <= row[law.high]
    if isinstance(law, Follows):  # with the row's own residual
        return row[law.column] - own[law.column] == sum(row[name] - own[name] for name in law.sources)
    if isinstance(law, Determines):
        return dict(law.values).get(row[law.column], row[law.other]) == row[law.other]
    assert isinstance(law, Given)
    when, then = ((row[s.column] in s.values) != s.but for s in (law.when, law.then))
    return not when or then


def test_synthetic_rows_keep_them_or_are_left_out(schema):
    frame = table(500, seed=1)
    raw = np.stack([f.read(frame[f.name]) for f in schema.features], axis=1)
    laws = ConstraintSet.hard(schema.laws, schema.features)
    drawn = np.random.default_rng(0).permuted(raw, axis=0)  # every column by itself
    lawful = laws.repair_synthetic(drawn, lambda column, values: np.isin(values, raw[:, column]))
    nobody = np.full_like(lawful, np.inf)
    assert laws.broken(drawn, np.full_like(drawn, np.inf)).any(axis=1).mean() > 0.9
    assert not laws.broken(lawful, nobody).any()
    assert len(lawful) > 20
    np.testing.assert_array_equal(laws.repair_synthetic(raw, lambda column, values: values == values), raw)


def test_an_entry_restores_its_law(schema):
    for law in schema.laws:
        assert law_from_entry(json.loads(json.dumps(law.entry()))) == law


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), [1], {"a": 1}])
@pytest.mark.parametrize("name", ["usual", "otherwise"])
def test_what_a_law_says_is_usual_is_a_value(name, wrong):
    """NaN equals nothing, not even the same law after a round trip through JSON."""
    with pytest.raises(InputError, match=f"a law's {name} .* must be a word, a number or null"):
        replace(CALL, **{name: wrong})
