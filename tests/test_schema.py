"""Schemas: what is inferred from a table, what a user may edit, and the errors when either is wrong."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tdce._core.errors import InputError
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

ODD_NAMES = ["", "a b", "ü,;", 0, -3, 'say "hi"', "it's", "two\nlines", "{curly} %s", " ", "nan", "name"]


def infer(values: Any, dtype: Any = None) -> Column:
    return Schema.infer(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))["x"]


def numeric(values: Any, dtype: Any = None) -> Numeric:
    feature = infer(values, dtype)
    assert isinstance(feature, Numeric)
    return feature


def categorical(values: Any, dtype: Any = None) -> Categorical:
    feature = infer(values, dtype)
    assert isinstance(feature, Categorical)
    return feature


def loan() -> Schema:
    """One feature of each sort."""
    return Schema(
        (
            Numeric("age", 18, 75, step=1, direction="increase"),
            Numeric("rate", 0.01, 9.99, step=0.01, missing=True),
            Numeric("capital", 0, 5178, step=1, levels=(0, 3103, 5178)),
            Categorical("housing", ("free", "own", "rent"), allowed=("own", "rent"), immutable=True),
            Categorical("phone", (False, True), missing=True),
        )
    )


def entry(**settings: Any) -> str:
    return json.dumps({"tdce_schema": 1, "features": [settings]})


# Inference


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([3, 1, 2], 1, 3, 1),
        ([7], 7, 7, 1),  # constant
        ([0], 0, 0, 1),
        ([-5, 2.0], -5, 2, 1),  # whole numbers as floats
        ([0.5, 2.0], 0.5, 2, 0.1),
        ([19.99, 5.0, 0.1], 0.1, 19.99, 0.01),
        ([0.001, 12], 0.001, 12, 0.001),
        ([1e-12, 2e-12], 1e-12, 2e-12, 1e-12),
        ([1 / 3, 2 / 3], 1 / 3, 2 / 3, None),  # no decimal grid
        ([2.0**60, 2.0**61], 2.0**60, 2.0**61, 1),
        ([0.5, 1e17], 0.5, 1e17, None),  # 0.5 is not on the grid of whole numbers
    ],
)
def test_the_step_is_the_coarsest_decimal_grid_that_holds_every_value(
    values: list[float], low: float, high: float, step: float | None
) -> None:
    assert numeric(values) == Numeric("x", low, high, step)


@pytest.mark.parametrize(
    ("distinct", "multiple", "step"),
    [(20, 5, 5), (19, 5, 1), (20, 25, 25), (30, 1, 1), (20, 0.25, 0.25), (20, 0.05, 0.05), (20, 1000, 1000)],
)
def test_a_multiple_needs_twenty_distinct_values(distinct: int, multiple: float, step: float) -> None:
    assert numeric(np.arange(distinct) * Decimal(str(multiple)), dtype=float).step == step


@pytest.mark.parametrize("dtype", ["float16", "float32", "Float32", "float[pyarrow]"])
def test_decimals_of_narrow_floats_are_those_that_they_show(dtype: str) -> None:
    feature = numeric([0.1, 0.25, 3.5], dtype)
    assert (feature.low, feature.high, feature.step) == (0.1, 3.5, 0.01)  # float32(0.1) is 0.100000001490116


def test_levels_are_the_values_of_a_well_filled_column_with_an_almost_empty_grid() -> None:
    many = [i * i for i in range(50)]
    assert numeric(many * 50).levels == tuple(many)
    assert numeric((many * 50)[:-1]).levels is None  # not 50 rows a level
    assert (
        numeric([i + (i > 25) for i in range(50)] * 50).levels is None
    )  # one number is missing: the grid is well used
    assert numeric([0.0, 0.3, 0.6] * 50).levels == (0, 0.3, 0.6)  # 3 of 7
    assert numeric([5] * 200).levels is None
    assert numeric([0.333333, 1 / 3, 9] * 50).levels is None  # no grid, no levels


def test_few_whole_numbers_are_proposed_only_as_they_were_seen() -> None:
    months_late = [-2, -1, 0, 2, 3, 4]  # nobody is one month late
    assert numeric(months_late * 20).levels == (-2, -1, 0, 2, 3, 4)
    assert numeric((months_late * 20)[:-1]).levels is None  # too few rows to say so
    assert numeric([1, 2, 3, 4] * 20).levels is None  # no gap
    assert numeric([0.5, 1.5, 3.5] * 20).levels is None


def test_a_grid_is_what_nearly_all_cells_obey() -> None:
    trades = [*range(1, 41)] * 20 + [0.19] * 8
    feature = numeric(trades)
    assert (feature.step, feature.odd, feature.low, feature.high) == (1, 8, 1, 40)
    assert feature.describe() == "1 to 40, whole numbers (8 cells are not)"
    assert numeric([*trades, 0.19, 0.21, 0.23]).step == 0.01  # more than one in a hundred, and than two values
    feasible = FeasibleSet.of(Encoder.fit(pd.DataFrame({"x": trades})), pd.DataFrame({"x": [0.19, 3.0]}))
    wanted = torch.tensor([[-0.2], [0.4]])
    assert (feasible.snap(wanted) % 1 == 0).all()
    assert feasible.snap(feasible.x).tolist() == [[0.19], [3.0]]


def test_marks_far_from_all_numbers_are_states_that_are_never_proposed() -> None:
    assert numeric([*range(1, 401)] * 3 + [-1] * 300).marks == (-1,)  # at the end, and very frequent
    assert numeric([*range(0, 401)] * 3 + [0] * 300).marks == ()  # none of something is a number
    days = [*range(30, 401)] * 3 + [999] * 300
    feature = numeric(days)
    assert (feature.marks, feature.high) == ((999,), 400)
    assert feature.describe() == "30 to 400, whole numbers; a state, not a number: 999"
    assert Schema.from_json(Schema((feature,)).to_json()) == Schema((feature,))
    assert numeric([*range(30, 401)] * 3 + [850] * 300).marks == ()  # a number like any other
    assert numeric([*range(30, 401)] * 30 + [999] * 3).marks == ()  # three slips
    encoder = Encoder.fit(pd.DataFrame({"x": days}))
    feasible = FeasibleSet.of(encoder, pd.DataFrame({"x": [999, 50, 50]}))
    proposed = encoder.embed(np.array([[200.0], [999.0], [400.0]])).float()
    assert feasible.snap(proposed).tolist() == [[200], [50], [400]]
    assert encoder.is_mark(encoder.embed(np.array([[999.0], [400.0]])).float())[:, 0].tolist() == [True, False]


@pytest.mark.parametrize(
    "word", ["unknown", "Unknown or no savings", "N/A", "not applicable", "none given", "?", "keine Angabe"]
)
def test_unknown_is_no_advice(word: str) -> None:
    feature = categorical(["own", "rent", word], "object")
    assert set(feature.allowed or ()) == {"own", "rent"}


@pytest.mark.parametrize("word", ["none", "no plan", "no", "other", "nobody", "unmarried", "na-trium", "free"])
def test_none_is_a_category_that_is_proposed(word: str) -> None:
    assert categorical(["own", "rent", word], "object").allowed is None


def test_categories_are_in_order_if_their_dtype_or_their_numbers_say_so() -> None:
    sizes = pd.Series(pd.Categorical(["s", "m", "l"], ["s", "m", "l"], ordered=True), name="x")
    assert infer(sizes).order == ("s", "m", "l")
    money = ["100 to 500 DM", "1000 DM or more", "500 to 1000 DM", "below 100 DM", "unknown or no savings"]
    feature = categorical(money, "object")
    assert feature.order == ("below 100 DM", "100 to 500 DM", "500 to 1000 DM", "1000 DM or more")
    assert feature.describe().startswith("5 categories: below 100 DM, 100 to 500 DM, 500 to 1000 DM, 1000 DM or more")
    assert [feature.ranks[feature.categories.index(c)] for c in feature.order] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert min(abs(feature.ranks[-1] - r) for r in feature.ranks[:-1]) >= 1, "without a place it is far from all"
    assert categorical(["36 months", "60 months"], "object").order == ()
    assert categorical(["red 1", "blue", "green", "black 2"], "object").order == ()
    assert Schema.from_json(Schema((feature,)).to_json()) == Schema((feature,))
    with pytest.raises(InputError, match="order must list each category at most once"):
        Schema((feature,)).change("x", order=("below 100 DM", "purple"))


@pytest.mark.parametrize(
    "dtype", ["int8", "int64", "uint8", "Int64", "float32", "float64", "object", "double[pyarrow]"]
)
def test_zero_and_one_are_two_categories(dtype: str) -> None:
    feature = categorical([1, 0, 1], dtype)
    assert feature.categories == (0, 1)
    assert all(type(c) is int for c in feature.categories)


@pytest.mark.parametrize("values", [[0, 0], [1, 1], [0, 2], [0, 1, 2], [-1, 1]])
def test_other_small_numbers_stay_numbers(values: list[int]) -> None:
    assert isinstance(infer(values), Numeric)


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]", "object", "category"])
def test_flags_are_categories(dtype: str) -> None:
    feature = categorical([True, False, True], dtype)
    assert feature.categories == (False, True)
    assert all(type(c) is bool for c in feature.categories)


@pytest.mark.parametrize("dtype", ["str", "object", "string", "string[pyarrow]", pd.ArrowDtype(pa.large_string())])
def test_words_are_categories_in_alphabetic_order(dtype: Any) -> None:
    feature = categorical(["rent", "own", None, "Zoo", "ärger", "own"], dtype)
    assert feature == Categorical("x", ("Zoo", "own", "rent", "ärger"), missing=True)
    assert all(type(c) is str for c in feature.categories)


def test_a_category_dtype_keeps_its_order_and_drops_what_never_occurs() -> None:
    values = pd.Categorical(["high", "low"], categories=["low", "middle", "high"], ordered=True)
    assert categorical(values).categories == ("low", "high")
    assert categorical(pd.Categorical([30, 4, 4], categories=[30, 7, 4])).categories == (30, 4)  # numbers, but named


def test_words_and_numbers_in_one_column_are_categories_numbers_first() -> None:
    assert categorical(["b", 10, 2, "a"], object).categories == (2, 10, "a", "b")


@pytest.mark.parametrize(
    ("values", "dtype", "step"),
    [
        ([1, 2, None], object, 1),
        ([1, 2.5, None], object, 0.1),
        ([np.int64(4), np.float32(2.5)], object, 0.1),
        ([Decimal("1.25"), None], object, 0.01),
        ([Decimal("1.25"), None], pd.ArrowDtype(pa.decimal128(9, 2)), 0.01),
        ([1, None, 3], "Int64", 1),
        ([1.5, None], "Float32", 0.1),
        ([1, None], "int16[pyarrow]", 1),
        ([1.5, None], "double[pyarrow]", 0.1),
        ([3, 200], "uint8", 1),
    ],
)
def test_numbers_are_found_in_any_dtype(values: list[Any], dtype: Any, step: float) -> None:
    feature = numeric(values, dtype)
    assert feature.step == step
    assert feature.missing == (None in values)


def test_the_label_is_left_out_and_the_order_kept() -> None:
    frame = pd.DataFrame({"z": [1, 2], "y": ["n", "j"], "a": ["u", "v"]})
    assert Schema.infer(frame, label="y").names == ("z", "a")


@pytest.mark.parametrize("name", [*ODD_NAMES, np.int64(5)])
def test_odd_column_names_survive_inference_json_and_lookup(name: Any) -> None:
    frame = pd.DataFrame([[1.5, "u"], [2.5, "v"]], columns=pd.Index([name, "other"], dtype=object))
    schema = Schema.infer(frame)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert type(again.names[0]) is type(schema.names[0])
    assert again.freeze(name).immutable == (name,)
    assert len(str(schema).splitlines()) == 3 + str(name).count("\n")


@pytest.mark.parametrize("name", [("a", "b"), 1.5, None, True, datetime.date(2024, 1, 1)])
def test_names_that_json_cannot_keep_are_refused(name: Any) -> None:
    frame = pd.DataFrame([[1, 2]], columns=pd.Index([name, "other"], dtype=object, tupleize_cols=False))
    with pytest.raises(InputError, match="must be text or a whole number; rename it"):
        Schema.infer(frame)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([None, None], ["'x'", "every cell is missing", "drop the column"]),
        (pd.Series([None, None], dtype="Int64"), ["'x'", "every cell is missing"]),
        ([1.0, np.inf], ["'x'", "infinite"]),
        ([1.0, -np.inf], ["'x'", "infinite"]),
        ([1.0, np.finfo(float).max], ["'x'", "infinite"]),  # a common mark of missing, and no real number
        (pd.to_datetime(["2024-01-01", "2024-01-02"]), ["'x'", "Timestamp", "2024-01-01", "convert it"]),
        ([datetime.date(2024, 1, 1)] * 2, ["'x'", "date", "2024-01-01"]),
        (pd.to_timedelta([1, 2], unit="D"), ["'x'", "Timedelta", "convert it"]),
        (pd.Series([datetime.date(2024, 1, 1)] * 2, dtype=pd.ArrowDtype(pa.date32())), ["'x'", "date"]),
        (pd.Categorical(pd.interval_range(0, 2)), ["'x'", "Interval"]),
        ([b"a", b"b"], ["'x'", "bytes"]),
        ([["a"], ["b"]], ["'x'", "nested"]),
        ([{"a": 1}, {}], ["'x'", "nested"]),
        ([("a",), ("b",)], ["'x'", "tuple"]),
        ([1j, 2j], ["'x'", "complex"]),
    ],
)
def test_a_column_that_cannot_be_used_is_named(column: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        Schema.infer(pd.DataFrame({"x": column}))
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_column_of_a_thousand_and_one_words_looks_like_an_identifier() -> None:
    words = [f"id{i}" for i in range(1001)]
    assert len(categorical(words[:1000]).categories) == 1000
    with pytest.raises(InputError, match="'x' has 1,001 distinct values in 1,001 rows and looks like an identifier"):
        infer(words)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' appears twice"),
        (pd.DataFrame({"a": []}), "the table has no rows"),
        (pd.DataFrame({"label": [1, 2]}), "there is no feature column"),
    ],
)
def test_a_table_that_cannot_be_used_is_named(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schema.infer(frame, label="label")


# What a person edits


def test_json_round_trip_is_exact() -> None:
    assert Schema.from_json(loan().to_json()) == loan()


VALUES = st.one_of(st.text(), st.booleans(), st.integers(), st.floats(-1e150, 1e150))


@given(
    low=st.floats(-1e100, 1e100),
    high=st.floats(-1e100, 1e100),
    step=st.none() | st.floats(1e-9, 1e9),
    levels=st.none() | st.lists(st.floats(-1e100, 1e100), min_size=1).map(tuple),
    direction=st.sampled_from(["any", "increase", "decrease"]),
    categories=st.lists(VALUES, min_size=1, unique=True).map(tuple),
    name=st.text() | st.integers(),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_json_keeps_every_bit_of_any_schema(
    low: Any, high: Any, step: Any, levels: Any, direction: Any, categories: Any, name: Any, flags: Any
) -> None:
    low, high = sorted([low, high])
    schema = Schema(
        (
            Numeric(name, low, high, step, levels, direction, *flags),
            Categorical(f"{name} too", categories, categories[1:], *flags),
        )
    )
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert [type(c) for c in again[f"{name} too"].categories] == [type(c) for c in categories]  # True is not 1


def test_an_edited_json_narrows_directs_and_freezes() -> None:
    content = json.loads(loan().to_json())
    age, rate, capital, housing, phone = content["features"]
    age.update(low=30, high=40, step=5, direction="decrease")  # a person writes 30, not 30.0
    rate["immutable"] = True
    capital["levels"] = [0, 5178]
    housing.update(allowed=["own"], immutable=False)
    phone["allowed"] = []
    edited = Schema.from_json(json.dumps(content))
    assert edited["age"] == Numeric("age", 30, 40, 5, direction="decrease")
    assert edited.immutable == ("rate",)
    assert edited["capital"].levels == (0, 5178)
    assert edited["housing"].proposable.tolist() == [False, True, False]
    assert edited["phone"].proposable.tolist() == [False, False]
    assert isinstance(edited["age"].step, float)  # whatever was written: the grid asks `step.is_integer()`


def test_unnamed_settings_have_defaults() -> None:
    schema = Schema.from_json(entry(name="x", kind="numeric", low=0, high=9))
    assert schema["x"] == Numeric("x", 0, 9)


NUMBER = {"name": "x", "kind": "numeric", "low": 0, "high": 9}
WORDS = {"name": "x", "kind": "categorical", "categories": ["a", "b"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["not valid JSON", "line 1"]),
        ("[]", ["tdce_schema"]),
        ('{"tdce_schema": 2, "features": []}', ["tdce_schema"]),
        ('{"tdce_schema": 1}', ["features", "list"]),
        ('{"tdce_schema": 1, "features": {}}', ["features", "list"]),
        ('{"tdce_schema": 1, "features": []}', ["no feature"]),
        ('{"tdce_schema": 1, "features": ["age"]}', ["needs a name", "age"]),
        (entry(kind="numeric"), ["needs a name"]),
        (entry(**{**NUMBER, "name": 1.5}), ["1.5", "text or a whole number"]),
        (entry(**{**NUMBER, "name": None}), ["None", "text or a whole number"]),
        (entry(**{**NUMBER, "name": True}), ["True", "text or a whole number"]),
        (entry(name="x"), ["'x'", "kind None", "numeric or categorical"]),
        (entry(name="x", kind="ordinal"), ["'x'", "ordinal", "numeric or categorical"]),
        (entry(name="x", kind=["numeric"]), ["'x'", "numeric or categorical"]),
        (entry(**NUMBER, colour="red"), ["'x'", "unknown setting 'colour'", "direction, high"]),
        (entry(**WORDS, direction="increase"), ["'x'", "unknown setting 'direction'", "allowed, categories"]),
        (entry(name="x", kind="numeric", low=0), ["'x'", "needs the setting 'high'"]),
        (entry(name="x", kind="categorical"), ["'x'", "needs the setting 'categories'"]),
        (entry(**{**NUMBER, "low": 10}), ["'x'", "low 10 must be at most high 9"]),
        (entry(**{**NUMBER, "low": "abc"}), ["'x'", "low 'abc' must be a number"]),
        (entry(**{**NUMBER, "low": None}), ["'x'", "low None must be a number"]),
        (entry(**{**NUMBER, "low": False}), ["'x'", "low False must be a number"]),
        (entry(**{**NUMBER, "high": [9]}), ["'x'", "high [9] must be a number"]),
        (entry(**{**NUMBER, "high": float("inf")}), ["'x'", "high inf must be a number"]),
        (entry(**{**NUMBER, "high": float("nan")}), ["'x'", "high nan must be a number"]),
        (entry(**{**NUMBER, "high": 10**400}), ["'x'", "high 1000", "must be a number"]),
        (entry(**NUMBER, step=0), ["'x'", "step 0 must be positive"]),
        (entry(**NUMBER, step=-1), ["'x'", "step -1 must be positive"]),
        (entry(**NUMBER, step=1e-320), ["'x'", "must be at least 1e-100"]),
        (entry(**NUMBER, step="1"), ["'x'", "step '1' must be a number"]),
        (entry(**NUMBER, direction="up"), ["'x'", "direction 'up'", "any, increase or decrease"]),
        (entry(**NUMBER, direction=["increase"]), ["'x'", "any, increase or decrease"]),
        (entry(**NUMBER, levels=[]), ["'x'", "levels must list at least one value"]),
        (entry(**NUMBER, levels=[1, "a"]), ["'x'", "levels 'a' must be a number"]),
        (entry(**NUMBER, levels=5), ["'x'", "levels 5 must be a list"]),
        (entry(**NUMBER, immutable="no"), ["'x'", "immutable 'no' must be true or false"]),
        (entry(**NUMBER, missing=0), ["'x'", "missing 0 must be true or false"]),
        (entry(**{**WORDS, "categories": "ab"}), ["'x'", "categories 'ab' must be a list"]),
        (entry(**{**WORDS, "categories": {"a": 1}}), ["'x'", "categories", "must be a list"]),
        (entry(**{**WORDS, "categories": [["a"]]}), ["'x'", "categories", "must be a list"]),
        (entry(**{**WORDS, "categories": ["a", None]}), ["'x'", "categories", "must be a list"]),
        (entry(**{**WORDS, "categories": []}), ["'x'", "at least one category"]),
        (entry(**{**WORDS, "categories": ["a", "a"]}), ["'x'", "listed twice"]),
        (entry(**WORDS, allowed=["boat"]), ["'x'", "allowed category 'boat' is not one of a, b"]),
        (entry(**WORDS, allowed="ab"), ["'x'", "allowed 'ab' must be a list"]),
        (json.dumps({"tdce_schema": 1, "features": [NUMBER, WORDS]}), ["column 'x' appears twice"]),
    ],
)
def test_a_wrong_schema_is_named(text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        Schema.from_json(text)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("Age", {"low": 1}, "there is no feature 'Age'; did you mean 'age'. known: age, rate"),
        ("age", {"colour": 1}, "unknown setting 'colour'"),
        ("age", {"low": "abc"}, "'age': low 'abc' must be a number"),
        ("age", {"low": 80}, "'age': low 80 must be at most high 75"),
        ("housing", {"direction": "increase"}, "unknown setting 'direction'"),
        ("housing", {"allowed": "own"}, "allowed 'own' must be a list"),
    ],
)
def test_a_wrong_change_is_named(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        loan().change(name, **settings)


def test_change_and_freeze_return_copies() -> None:
    schema = loan()
    changed = schema.change("age", low=20).freeze("rate", "age")
    assert (changed["age"].low, changed.immutable) == (20, ("age", "rate", "housing"))
    assert schema == loan()
    assert schema.change("housing", allowed=["own"]) == schema.change("housing", allowed=("own",))


@pytest.mark.parametrize("name", ["Age", ["age"], None, 0])
def test_freezing_an_unknown_name_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="there is no feature"):
        loan().freeze(name)


def test_str_has_a_line_per_feature() -> None:
    assert loan().describe() == [
        ("age", "numeric", "18 to 75, whole numbers", "only up"),
        ("rate", "numeric", "0.01 to 9.99, steps of 0.01; may be missing", "yes"),
        ("capital", "numeric", "0 to 5178, 3 levels", "yes"),
        ("housing", "categorical", "3 categories: free, own, rent; never proposed: free", "no"),
        ("phone", "categorical", "2 categories: False, True; may be missing", "yes"),
    ]


# The grid


@pytest.mark.parametrize(
    ("feature", "value", "nearest", "up", "down"),
    [
        (Numeric("x", 0, 9, step=1), 2.3, 2, 3, 2),
        (Numeric("x", 0, 9, step=1), 2.7, 3, 3, 2),
        (Numeric("x", 0, 9, step=1), -2.3, -2, -2, -3),
        (Numeric("x", 0, 9, step=1), 4, 4, 4, 4),
        (Numeric("x", 0, 9, step=5), 12, 10, 15, 10),
        (Numeric("x", 0, 9, step=0.1), 0.1 + 0.2, 0.3, 0.3, 0.3),  # 0.30000000000000004 is 0.3
        (Numeric("x", 0, 9, step=0.1), 0.7, 0.7, 0.7, 0.7),  # 0.7 * 10 is 7.000000000000001
        (Numeric("x", 0, 9, step=0.1), 0.34, 0.3, 0.4, 0.3),
        (Numeric("x", 0, 9, step=0.01), 1.005, 1.0, 1.01, 1.0),
        (Numeric("x", 0, 9, step=0.01), 8.41, 8.41, 8.41, 8.41),
        (Numeric("x", 0, 9, step=0.25), 0.6, 0.5, 0.75, 0.5),
        (Numeric("x", 0, 9, step=2.5), 6, 5, 7.5, 5),
        (Numeric("x", 0, 9, step=1e-7), 2.6e-7, 3e-7, 3e-7, 2e-7),
        (Numeric("x", 0, 9, step=1e20), 2.6e20, 3e20, 3e20, 2e20),
        (Numeric("x", 0, 9), 0.123456789, 0.123456789, 0.123456789, 0.123456789),
        (Numeric("x", 0, 9, levels=(10, 0, 4)), 3, 4, 4, 0),
        (Numeric("x", 0, 9, levels=(10, 0, 4)), 2, 0, 4, 0),  # half way: the lower one
        (Numeric("x", 0, 9, levels=(10, 0, 4)), 4, 4, 4, 4),
        (Numeric("x", 0, 9, levels=(10, 0, 4)), 11, 10, np.inf, 10),  # nothing above
        (Numeric("x", 0, 9, levels=(10, 0, 4)), -1, 0, 0, -np.inf),
    ],
)
def test_values_are_rounded_to_the_grid(feature: Numeric, value: float, nearest: float, up: float, down: float) -> None:
    at = np.array([value, np.nan])
    assert feature.round(at)[0] == nearest
    assert feature.round(at, "up")[0] == up
    assert feature.round(at, "down")[0] == down
    assert all(np.isnan(feature.round(at, towards)[1]) for towards in ("nearest", "up", "down"))


@given(st.integers(-(10**9), 10**9), st.integers(0, 6))
def test_a_decimal_number_is_its_own_nearest_grid_point(units: int, decimals: int) -> None:
    value = float(Decimal(units).scaleb(-decimals))
    feature = Numeric("x", 0, 1, step=float(Decimal(1).scaleb(-decimals)))
    noisy = np.array([value, np.nextafter(value, np.inf), np.nextafter(value, -np.inf)])
    for towards in ("nearest", "up", "down"):
        assert feature.round(noisy, towards).tolist() == [value] * 3
