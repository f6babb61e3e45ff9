"""Frame to tensor and back: nothing is lost, nothing is modified, and what does not fit is an error."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from tdce._core.errors import InputError
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.columns.scale import Scale
from tdce.schema.encoder import Encoder
from tdce.schema.schema import Schema
from tdce.schema.space import Space

DECIMAL = pd.ArrowDtype(pa.decimal128(12, 2))
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint64", "Int64", "UInt8", "int64[pyarrow]"]
FLOATS = ["float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]"]
WORDS = ["str", "object", "string", "string[pyarrow]", "category", pd.ArrowDtype(pa.string())]
FLAGS = ["bool", "boolean", "bool[pyarrow]"]
OBJECTS = ["object numbers", "object decimals", "object mixture", "category of numbers", DECIMAL]
DTYPES = [*WHOLE, *FLOATS, *WORDS, *FLAGS, *OBJECTS]
NEVER_MISSING = {"int8", "int16", "int32", "int64", "uint8", "uint64", "bool"}
NAMES = ["a", "", "a b", "ü,;", 0, 7, 'say "hi"', "two\nlines", "row", "status", "index", "level_0"]


def pool(dtype: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Up to `size` different values that a column of this dtype may hold."""
    if dtype in FLAGS:
        return [True, False][:size]
    if dtype in WORDS:
        return [f"{'ä b'[i % 3]}{i}" for i in range(size)]
    if dtype in ("int8", "uint8", "UInt8"):
        return [int(v) for v in rng.choice(128, min(size, 100), replace=False)]
    whole = [int(v) for v in rng.integers(-30_000, 30_000, size)]
    if dtype in WHOLE or dtype == "category of numbers":
        return [abs(v) for v in whole] if str(dtype).startswith("u") else whole
    if dtype in ("object decimals", DECIMAL):
        return [Decimal(v).scaleb(-2) for v in whole]
    if dtype == "object numbers":
        return [v / 100 if i % 2 else v for i, v in enumerate(whole)]
    if dtype == "object mixture":
        return [f"w{i}" if i % 2 else i for i in range(size)]
    assert dtype in FLOATS
    return [v / 100 for v in whole]


def column(dtype: Any, size: int, cardinality: int, missing: bool, seed: int) -> pd.Series:
    rng = np.random.default_rng(seed)
    values = pool(dtype, cardinality, rng)
    cells = [values[0], *(values[i] for i in rng.integers(0, len(values), size - 1))]
    if missing and dtype not in NEVER_MISSING:
        cells = [
            cells[0],
            *(None if missing else v for v, missing in zip(cells[1:], rng.random(size - 1) < 0.2, strict=True)),
        ]
    name = str(dtype).split()[0] if isinstance(dtype, str) else dtype
    return pd.Series(cells, dtype=name)


def index(kind: str, size: int) -> pd.Index:
    kinds = {
        "range": pd.RangeIndex(size),
        "words": pd.Index([f"row {i}" for i in range(size)]),
        "same": pd.Index(["same"] * size),
        "pairs": pd.MultiIndex.from_arrays([[i % 2 for i in range(size)], ["x"] * size], names=["i", None]),
        "days": pd.date_range("2024-01-01", periods=size, name="day"),
        "numbers": pd.Index([i / 2 for i in range(size)]),
    }
    return kinds[kind]


FEATURES = st.lists(
    st.tuples(st.sampled_from(DTYPES), st.sampled_from([1, 2, 3, 30, 200]), st.booleans(), st.sampled_from(NAMES)),
    min_size=1, max_size=5, unique_by=lambda feature: feature[3],
)  # fmt: skip


@st.composite
def frames(draw: st.DrawFn) -> tuple[pd.DataFrame, list[Any]]:
    """A table and which of its columns are features; the others only pass through."""
    size = draw(st.sampled_from([1, 2, 7, 60]))
    seed = draw(st.integers(0, 2**32))
    columns: dict[Any, Any] = {"when": pd.Series(pd.date_range("2024-01-01", periods=size))}
    features = []
    for i, (dtype, cardinality, missing, name) in enumerate(draw(FEATURES)):
        columns[name] = column(dtype, size, cardinality, missing, seed + i)
        features.append(name)
    columns["nested"] = pd.Series([[i] for i in range(size)])
    frame = pd.DataFrame(columns)
    frame.index = index(draw(st.sampled_from(["range", "words", "same", "pairs", "days", "numbers"])), size)
    return frame[draw(st.permutations(list(frame.columns)))], features


def assert_identical(left: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(left, right, check_exact=True)
    for name in left.columns:
        assert [type(v) for v in left[name]] == [type(v) for v in right[name]], name  # 1 is not 1.0 is not True


@given(frames())
def test_decoding_an_encoded_frame_gives_the_very_same_frame(drawn: tuple[pd.DataFrame, list[Any]]) -> None:
    frame, features = drawn
    before = frame.copy(deep=True)
    encoder = Encoder.fit(frame, Schema.infer(frame[features]))
    x = encoder.encode(frame)
    assert_identical(encoder.decode(x, like=frame), frame)
    assert_identical(encoder.decode(x.float(), like=frame), frame)  # as networks see it
    assert_identical(frame, before)
    turned = frame.iloc[::-1]
    assert_identical(encoder.decode(x.flip(0), like=turned), turned)
    assert Schema.infer(before[features]) == encoder.schema


@given(frames())
def test_decoding_without_the_frame_gives_equal_values(drawn: tuple[pd.DataFrame, list[Any]]) -> None:
    frame, features = drawn
    encoder = Encoder.fit(frame[features])
    decoded = encoder.decode(encoder.encode(frame))
    assert list(decoded.columns) == features
    np.testing.assert_array_equal(encoder.read(decoded), encoder.read(frame))  # every column here has a grid


@given(frames())
def test_any_value_can_be_written_into_any_row(drawn: tuple[pd.DataFrame, list[Any]]) -> None:
    frame, features = drawn
    before = frame.copy(deep=True)
    encoder = Encoder.fit(frame, Schema.infer(frame[features]))
    raw = np.roll(encoder.read(frame), 1, axis=0)
    written = encoder.write(raw, frame)
    assert_identical(encoder.write(raw, frame, encoder.read(frame)), written)
    np.testing.assert_array_equal(encoder.read(written), raw)
    assert written.dtypes.equals(frame.dtypes)
    assert written.index.equals(frame.index)
    assert list(written.columns) == list(frame.columns)
    assert_identical(written[["when", "nested"]], frame[["when", "nested"]])
    assert_identical(frame, before)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 5, 9], "b": [0.1, 0.2, 0.7]}),
        pd.DataFrame({"a": ["u", "v", "u"], "b": [True, False, True]}),
        pd.DataFrame({"a": [4], "b": ["u"]}),
        pd.DataFrame({"a": [4, 4, 4], "b": ["u", "u", "u"], "c": [0.1, 0.1, 0.1]}),
        pd.DataFrame({"a": [1e20, 1e20], "b": [-7e15, -7e15]}),
        pd.DataFrame({"a": [f"category {i}" for i in range(200)]}),
    ],
    ids=["only numbers", "only categories", "one row", "constant", "huge constant", "200 categories"],
)
def test_plain_corner_cases_come_back(frame: pd.DataFrame) -> None:
    encoder = Encoder.fit(frame)
    x = encoder.encode(frame)
    assert x.shape == (len(frame), encoder.space.width)
    assert torch.isfinite(x).all()
    assert_identical(encoder.decode(x, like=frame), frame)
    pd.testing.assert_frame_equal(encoder.decode(x), frame, check_dtype=False, check_exact=True)


def test_whole_numbers_beyond_the_precision_of_floats_keep_their_last_digit() -> None:
    frame = pd.DataFrame({"a": [2**53 + 1, 2**63 - 1, 5]})
    encoder = Encoder.fit(frame)
    assert encoder.decode(encoder.encode(frame), like=frame)["a"].tolist() == [2**53 + 1, 2**63 - 1, 5]


def test_a_column_with_zero_minus_zero_and_two_kinds_of_missing_keeps_its_bits() -> None:
    frame = pd.DataFrame({"a": [0.0, -0.0, 3.0], "b": pd.Series(["u", None, float("nan")], dtype=object)})
    encoder = Encoder.fit(frame)
    again = encoder.decode(encoder.encode(frame), like=frame)
    assert [math.copysign(1, v) for v in again["a"]] == [1, -1, 1]
    assert again["b"].iloc[1] is None
    assert isinstance(again["b"].iloc[2], float)


def test_a_value_beyond_the_fitted_range_goes_on_with_the_overall_slope_and_comes_back() -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": [0, 10, 20]}))
    x = encoder.encode(pd.DataFrame({"a": [0, 20, 40, -20]})).squeeze(1)
    assert x[2] - x[1] == pytest.approx(x[1] - x[0])
    assert x[0] - x[3] == pytest.approx(x[1] - x[0])
    assert encoder.decode(x[:, None])["a"].tolist() == [0, 20, 40, -20]


def test_missing_where_fit_saw_none_counts_as_the_average_row_and_stays_missing() -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": [10.0, 20.0], "b": ["u", "v"], "c": ["x", "x"]}).loc[[0, 1, 1, 1]])
    rows = pd.DataFrame({"a": [None, 20.0], "b": [None, "v"], "c": ["x", None]})
    x = encoder.encode(rows)
    assert x[0].tolist() == [0.0, 0.25, 0.75, 1.0]  # the mean, the shares of u and v, x
    assert x[1, 1:].tolist() == [0.0, 1.0, 1.0]
    assert_identical(encoder.decode(x, like=rows), rows)


def test_missing_has_a_weight_of_its_own_where_fit_saw_it() -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": [1.0, 3.0, None], "b": ["u", None, "v"]}))
    x = encoder.encode(pd.DataFrame({"a": [3.0, None], "b": [None, "v"]}))
    assert x.tolist() == [[1, 1, 0, 0, 0, 1], [0, 0, 1, 0, 1, 0]]  # a; a present, a missing; b = u, v, missing


def test_new_values_go_into_the_dtype_of_the_column() -> None:
    frame = pd.DataFrame({
        "word": pd.Categorical(["u", "u"], categories=["z", "u"], ordered=True),
        "flag": pd.array([True, None], dtype="boolean"),
        "price": pd.Series([Decimal("1.10"), None], dtype=object),
        "count": pd.array([1, 2], dtype="int8"),
        "other": [[1], [2]],
    })  # fmt: skip
    fitted = pd.DataFrame({"word": ["u", "v"], "flag": [True, False], "price": [1.1, 2.75], "count": [1, 100]})
    encoder = Encoder.fit(fitted)
    target = encoder.encode(pd.DataFrame({"word": ["v"], "flag": [False], "price": [2.75], "count": [100]}))
    written = encoder.decode(target.expand(2, -1), like=frame)
    assert written["word"].tolist() == ["v", "v"]
    assert written["word"].cat.categories.tolist() == ["z", "u", "v"]  # its own first, in its own order
    assert written["word"].cat.ordered
    assert written["flag"].tolist() == [False, False]
    assert written["price"].map(repr).tolist() == ["Decimal('2.75')"] * 2
    assert written["count"].tolist() == [100, 100]
    assert written.dtypes.drop("word").equals(frame.dtypes.drop("word"))
    assert frame["word"].cat.categories.tolist() == ["z", "u"]


def test_a_missing_value_can_be_written_into_a_category_dtype() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["u", None])})
    encoder = Encoder.fit(frame)
    assert encoder.write(np.array([[np.nan], [0.0]]), frame)["a"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("fitted", "rows"),
    [
        ([1, 2, 5], pd.Categorical([5, None, 1])),  # numbers, read as a category dtype
        ([1, 2, 5], pd.Series([Decimal(5), None, 1.0], dtype=object)),
        ([1, 2, 5], pd.array([5, None, 1], dtype="int8[pyarrow]")),
        ([0, 1, 0], pd.array([True, None, False], dtype="boolean")),
        ([False, True, True], [1.0, None, 0.0]),
        (["u", "v", "u"], pd.Categorical(["v", None, "u"], categories=["never", "u", "v"])),
    ],
)
def test_rows_may_come_in_another_dtype_than_the_fitted_table(fitted: Any, rows: Any) -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": fitted}))
    frame = pd.DataFrame({"a": rows})
    raw = encoder.read(frame)
    assert np.isnan(raw[:, 0]).tolist() == [False, True, False]
    np.testing.assert_array_equal(encoder.read(encoder.write(raw[::-1], frame)), raw[::-1])


# Errors


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"a": [1]}, ["column 'b' is not in the table; it has: a"]),
        ({"a": [1, 2], "b": ["u", "boat"]}, ["'b'", "category 'boat'", "row 'second'", "known: u, v"]),
        ({"a": [1, 2], "b": ["u", 1]}, ["'b'", "category 1", "row 'second'", "known: u, v"]),
        ({"a": [1, 2], "b": [["u"], ["v"]]}, ["'b'", "nested", "u, v"]),
        ({"a": [1, "x"], "b": ["u", "v"]}, ["'a'", "numbers (1 to 9, whole numbers)", "'x'", "row 'second'"]),
        ({"a": ["1", "2"], "b": ["u", "v"]}, ["'a'", "numbers", "'1'", "row 'first'"]),
        ({"a": [True, False], "b": ["u", "v"]}, ["'a'", "numbers", "True", "row 'first'"]),
        ({"a": pd.Categorical(["x", "y"]), "b": ["u", "v"]}, ["'a'", "numbers", "'x'"]),
        ({"a": [b"x", None], "b": ["u", "v"]}, ["'a'", "numbers", "b'x'"]),
        ({"a": [[1], [2]], "b": ["u", "v"]}, ["'a'", "numbers", "[1]"]),
        ({"a": pd.to_datetime(["2024-01-01"] * 2), "b": ["u", "v"]}, ["'a'", "numbers", "2024-01-01"]),
        ({"a": [1.0, np.inf], "b": ["u", "v"]}, ["'a'", "infinite", "row 'second'"]),
        ({"a": [1j, 2j], "b": ["u", "v"]}, ["'a'", "complex"]),
    ],
)
def test_rows_that_do_not_fit_are_named(rows: dict[str, Any], words: list[str]) -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": [1, 5, 9], "b": ["u", "v", "u"]}))
    labels = ["first", "second"][: len(rows["a"])]
    frame = pd.DataFrame(rows)
    frame.index = pd.Index(labels)
    with pytest.raises(InputError) as error:
        encoder.encode(frame)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (pd.Index([5, 6]), "row 6,"),
        (pd.MultiIndex.from_arrays([np.array([1, 2]), ["x", "y"]]), "row (2, 'y'),"),
    ],
)
def test_a_row_is_named_as_people_write_it(labels: pd.Index, shown: str) -> None:
    encoder = Encoder.fit(pd.DataFrame({"b": ["u", "v"]}))
    with pytest.raises(InputError) as error:
        encoder.encode(pd.DataFrame({"b": ["u", "boat"]}, index=labels))
    assert shown in str(error.value)


def test_a_column_that_appears_twice_and_a_column_without_values_are_named() -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(InputError, match="column 'a' appears twice"):
        encoder.encode(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InputError, match="'a' has no value at all"):
        Encoder.fit(pd.DataFrame({"a": [None, None]}), encoder.schema)


# The scale


def test_scores_are_standardised_normal_scores_of_the_mid_ranks() -> None:
    scale = Scale.fit(np.array([10.0, 20.0, 20.0, 30.0]))  # mid-ranks 1/8, 1/2, 7/8: scores -z, 0, z
    np.testing.assert_allclose(scale.embed(np.array([10, 20, 30, 15])), [-(2**0.5), 0, 2**0.5, -(2**-0.5)])


def test_a_constant_column_is_at_zero() -> None:
    scale = Scale.fit(np.full(3, 4.0))
    np.testing.assert_allclose(scale.embed(np.array([4.0, 5.0, 2.0])), [0, 1, -2])


def test_a_big_column_has_a_bounded_number_of_knots() -> None:
    values = np.random.default_rng(0).lognormal(size=10_000)
    scale = Scale.fit(values)
    assert len(scale.raw) <= 130
    assert np.abs(scale.embed(values)).max() < 6  # the long tail is at a sane distance


@given(st.lists(st.floats(-1e12, 1e12) | st.sampled_from([0.0, 5e-324, 1.0, 1e150, -1e150]), min_size=1, max_size=300))
@example([0.0, 5e-324])
@example([1e150, -1e150])
def test_a_scale_is_monotone_standardised_and_invertible(values: list[float]) -> None:
    raw = np.array(values)
    scale = Scale.fit(raw)
    scores = scale.embed(raw)
    assert (np.diff(scale.embed(np.sort(raw))) >= 0).all()
    assert abs(scores.mean()) < 1e-6
    assert scores.std() == pytest.approx(1, abs=1e-6) or np.ptp(raw) < 1e-150
    np.testing.assert_allclose(scale.unembed(scores), raw, rtol=1e-9, atol=1e-9 * max(np.ptp(raw), 1))


# The space


def mixed() -> Space:
    return Space.of(
        Schema(
            (
                Numeric("a", 0, 1, missing=True),
                Categorical("b", ("u", "v", "w")),
                Numeric("c", 0, 1),
                Categorical("d", (False, True), missing=True),
            )
        )
    )


def test_numbers_come_first_then_a_block_each() -> None:
    space = mixed()
    assert (space.num, space.sizes, space.cat, space.width) == (2, (2, 3, 3), 8, 10)
    assert space.places == {"a": (0, 2, 3), "b": (4, 5, 6), "c": (1,), "d": (7, 8, 9)}
    assert space.mask(["a", "d"]).nonzero().squeeze(1).tolist() == [0, 2, 3, 7, 8, 9]
    assert not space.mask([]).any()
    assert space.uniform.tolist() == pytest.approx([1 / 2] * 2 + [1 / 3] * 6)


def test_split_and_join_are_inverse() -> None:
    space, x = mixed(), torch.arange(20.0).reshape(2, 10)
    num, cat = space.split(x)
    assert num.tolist() == [[0, 1], [10, 11]]
    assert [b.shape[1] for b in space.blocks(cat)] == [2, 3, 3]
    assert torch.equal(space.join(num, cat), x)


def test_each_block_is_normalised_by_itself() -> None:
    logits = torch.tensor([[0.0, math.log(3), 1, 1, 1, 5, 5 + math.log(2), 5]])
    p = [1 / 4, 3 / 4, 1 / 3, 1 / 3, 1 / 3, 1 / 4, 1 / 2, 1 / 4]  # e^0 : e^log 3 = 1 : 3, and so on
    space = mixed()
    assert space.softmax(logits)[0].tolist() == pytest.approx(p)
    assert space.log_softmax(logits)[0].tolist() == pytest.approx([math.log(v) for v in p])
    assert space.one_hot(logits).tolist() == [[0, 1, 1, 0, 0, 0, 1, 0]]  # a tie goes to the first


@pytest.mark.parametrize("function", ["softmax", "log_softmax", "one_hot"])
def test_a_space_without_categories_has_nothing_to_normalise(function: str) -> None:
    space = Space.of(Schema((Numeric("a", 0, 1),)))
    empty: Tensor = torch.zeros(3, 0)
    assert getattr(space, function)(empty).shape == (3, 0)
    assert space.blocks(empty) == ()
    assert space.uniform.shape == (0,)


def test_sameness_is_judged_in_the_precision_of_networks() -> None:
    encoder = Encoder.fit(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["u", "v", "u"]}))
    x = encoder.encode(pd.DataFrame({"a": [3.0, 3.0], "b": ["u", "v"]}))
    moved = x + torch.tensor([[1e-12, 0, 0], [1e-3, 0, 0.1]], dtype=torch.float64)
    assert encoder.same(moved, x).tolist() == [[True, True], [False, False]]
