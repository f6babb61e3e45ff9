"""Whatever a method proposes: immutable cells, ranges, directions, grids and category lists hold in every row."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tdce._core.errors import InputError
from tdce._core.notes import Note
from tdce._core.values import Floats, as_numbers
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.schema import Schema

ROWS = 12
HOUSING = ("free", "own", "rent")


def table() -> pd.DataFrame:
    """What was fitted: whole numbers, two decimals, no grid, levels, multiples of 2.5, and three sorts of words."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "income": rng.integers(-500, 70_000, 200),
        "rate": rng.integers(1, 999, 200) / 100,
        "ratio": rng.normal(size=200),
        "capital": rng.choice([0, 3103, 5178], 200),
        "weight": rng.integers(0, 40, 200) * 2.5,
        "word": rng.choice(["free", "own", "rent", "boat"], 200),
        "flag": rng.random(200) < 0.5,
        "phone": pd.Series([True, False, "unknown", "none"] * 50, dtype=object),
    })  # fmt: skip


TABLE = table()
SCHEMA = Schema.infer(TABLE)
DTYPES: dict[str, list[Any]] = {
    "income": ["int64", "int8", "uint16", "Int64", "float64", "float32", "object", "int32[pyarrow]"],
    "rate": ["float64", "float32", "Float32", "int64", "Int8", "object", "decimal", "float[pyarrow]"],
    "ratio": ["float64", "float32", "float16", "int64", "double[pyarrow]"],
    "capital": ["int64", "int8", "float32", "category"],
    "weight": ["float64", "int64", "uint8", "float32"],
    "word": ["str", "object", "category", "string", "string[pyarrow]"],
    "flag": ["bool", "boolean", "int8", "Float64", "object", "bool[pyarrow]"],
    "phone": ["object", "bool", "str", "category"],
}
NUMBERS = ["income", "rate", "ratio", "capital", "weight"]


@st.composite
def settings(draw: st.DrawFn, feature: Column) -> Column:
    """The feature as a user might have edited it."""
    immutable = draw(st.sampled_from([False, False, False, True]))
    missing = draw(st.booleans())
    if isinstance(feature, Categorical):
        allowed = draw(st.none() | st.lists(st.sampled_from(feature.categories), unique_by=repr).map(tuple))
        return Categorical(feature.name, feature.categories, allowed, immutable, missing)
    span = feature.high - feature.low
    shares = st.sampled_from([-0.5, 0, 0.111, 0.5, 0.52, 1, 1.5])
    low, high = sorted(round(feature.low + span * draw(shares), 4) for _ in "ab")
    direction = draw(st.sampled_from(["any", "increase", "decrease"]))
    seen = sorted(set(TABLE[feature.name].head(20).astype(float)))
    marks = draw(st.just(()) | st.lists(st.sampled_from(seen), max_size=2, unique=True).map(tuple))
    proposed = tuple(mark for mark in marks if draw(st.booleans()))
    return Numeric(
        feature.name, low, high, feature.step, feature.levels, direction, immutable, missing, marks, 0, proposed
    )


def rows(name: str, dtype: str, rng: np.random.Generator, wild: bool) -> pd.Series:
    """Cells that a column of this dtype can hold: the table's own, and if `wild` some beyond range and grid."""
    values = TABLE[name].iloc[rng.integers(0, len(TABLE), ROWS)].tolist()
    if name in NUMBERS:
        if wild:
            values = [v * 3 + 0.3 for v in values]
        if "int" in dtype.lower():
            bounds = np.iinfo(dtype.lower().removesuffix("[pyarrow]"))
            values = [int(np.clip(round(v), bounds.min, bounds.max)) for v in values]
    elif name == "phone" and dtype in ("bool", "str"):
        wanted = bool if dtype == "bool" else str
        values = [v if isinstance(v, wanted) else wanted(["unknown", True][dtype == "bool"]) for v in values]
    if dtype == "decimal":
        return pd.Series([Decimal(str(v)) for v in values], dtype=object)
    if wild and dtype not in ("int64", "int8", "uint8", "uint16", "bool"):
        values[0] = None
    return pd.Series(values, dtype=dtype)


class Case(NamedTuple):
    schema: Schema
    columns: dict[str, tuple[str, bool]]  # dtype, wild
    frozen: list[str]
    seed: int

    def made(self) -> tuple[Encoder, pd.DataFrame, FeasibleSet]:
        rng = np.random.default_rng(self.seed)
        frame = pd.DataFrame({name: rows(name, dtype, rng, wild) for name, (dtype, wild) in self.columns.items()})
        encoder = Encoder.fit(TABLE, self.schema)
        return encoder, frame, FeasibleSet.of(encoder, frame, self.frozen)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return Case(
        Schema(tuple(draw(settings(feature)) for feature in SCHEMA)),
        {name: (draw(st.sampled_from(dtypes)), draw(st.booleans())) for name, dtypes in DTYPES.items()},
        draw(st.lists(st.sampled_from(SCHEMA.names), max_size=3, unique=True)),
        draw(st.integers(0, 2**32)),
    )


def is_on_grid(feature: Numeric, value: float) -> bool:
    if feature.levels is not None:
        return value in feature.levels
    return feature.step is None or Decimal(str(value)) % Decimal(str(feature.step)) == 0


def broken_rule(feature: Column, dtype: Any, own: float, new: float) -> str | None:
    """The rule that a changed cell breaks, by a second route than the code under test."""
    if np.isnan(new):
        return "newly missing"
    if isinstance(feature, Categorical):
        value = feature.categories[int(new)]
        return None if feature.allowed is None or value in feature.allowed else f"{value} is not allowed"
    if new in feature.marks:
        return None if new in feature.proposed else "a mark"
    if not feature.low <= new <= feature.high:
        return "out of range"
    if not is_on_grid(feature, new):
        return "off the grid"
    own = np.nan if own in feature.marks else own  # nothing to compare with
    if new <= own if feature.direction == "increase" else new >= own and feature.direction == "decrease":
        return "wrong direction"
    if pd.api.types.is_integer_dtype(dtype):
        bounds = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        return None if new.is_integer() and bounds.min <= int(new) <= bounds.max else "does not fit whole numbers"
    if pd.api.types.is_float_dtype(dtype):
        return None if as_numbers(pd.Series([new]).astype(dtype))[0] == new else "does not fit the float"
    return None


def assert_rules(encoder: Encoder, frame: pd.DataFrame, frozen: list[str], raw: Floats, at: Any) -> None:
    own = encoder.read(frame)[at]
    for i, feature in enumerate(encoder.schema):
        dtype = frame[feature.name].dtype
        changed = ~((raw[:, i] == own[:, i]) | (np.isnan(raw[:, i]) & np.isnan(own[:, i])))
        if feature.immutable or feature.name in frozen:
            assert not changed.any(), feature.name
        for before, after in zip(own[changed, i], raw[changed, i], strict=True):
            rule = broken_rule(feature, dtype, before, after)
            assert rule is None, f"{feature} as {dtype}: {before} -> {after} is {rule}"


@given(cases())
def test_every_rule_holds_in_every_row_whatever_is_proposed(case: Case) -> None:
    encoder, frame, feasible = case.made()
    at = np.repeat(np.arange(ROWS), 2)
    wild = 5 * torch.randn(len(at), encoder.space.width, generator=torch.Generator().manual_seed(case.seed))
    feasible = feasible.take(at)
    raw = feasible.snap(wild)
    assert_rules(encoder, frame, case.frozen, raw, at)
    assert feasible.contains(raw).all()

    moved = ~np.equal(raw, feasible.own) & ~(np.isnan(raw) & np.isnan(feasible.own))
    assert not (moved & ~feasible.can_change()).any()  # what changed was free to change

    repeated = frame.iloc[at]
    written = encoder.write(raw, repeated)
    np.testing.assert_array_equal(encoder.read(written), raw)  # what is judged is what is returned
    for i, name in enumerate(encoder.schema.names):
        if not isinstance(frame[name].dtype, pd.CategoricalDtype):
            assert written[name].dtype == frame[name].dtype
        kept = ~moved[:, i]
        pd.testing.assert_series_equal(
            written[name][kept].astype(object), repeated[name][kept].astype(object), check_exact=True
        )


@given(cases())
def test_what_is_not_moved_is_not_changed(case: Case) -> None:
    encoder, frame, feasible = case.made()
    for x in (encoder.encode(frame), encoder.encode(frame).float()):
        np.testing.assert_array_equal(feasible.snap(x), feasible.own)


# By hand


def snap(feature: Column, own: Any, proposals: list[Any], dtype: Any = None) -> list[Any]:
    """What comes of proposing these values, in turn, to a row that has `own`."""
    if isinstance(feature, Numeric):
        fitted = pd.DataFrame({"x": [*np.linspace(feature.low, feature.high, 9), *([None] * feature.missing)]})
    else:
        fitted = pd.DataFrame({"x": pd.Series([*feature.categories, *([None] * feature.missing)], dtype=object)})
    encoder = Encoder.fit(fitted, Schema((feature,)))
    raw = np.array([[feature.categories.index(v) if isinstance(feature, Categorical) else v] for v in proposals], float)
    frame = pd.DataFrame({"x": pd.Series([own], dtype=dtype)})
    at = np.zeros(len(proposals), dtype=np.int64)
    snapped = FeasibleSet.of(encoder, frame).take(at).snap(encoder.embed(raw))
    return encoder.write(snapped, frame.iloc[at])["x"].tolist()


AGE = Numeric("x", 20, 60, step=1)


@pytest.mark.parametrize(
    ("feature", "own", "proposals", "expected"),
    [
        (AGE, 30, [30.4, 31.6, 99, -99], [30, 32, 60, 20]),
        (Numeric("x", 20, 60, step=5), 33, [33, 36, 41], [33, 33, 40]),  # own is off the grid; 35 is nothing new
        (Numeric("x", 21.5, 58.5, step=5), 33, [99, -99], [55, 25]),  # the outermost grid points in range
        (Numeric("x", 20, 60, step=1, direction="increase"), 30, [29, 25, 31], [30, 30, 31]),
        (Numeric("x", 20, 60, step=1, direction="decrease"), 30, [31, 45, 29], [30, 30, 29]),
        (Numeric("x", 20, 60, step=1, direction="increase"), 70, [30, 99, 65], [70, 70, 70]),  # above: stuck
        (Numeric("x", 20, 60, step=1, direction="decrease"), 70, [30, 99, 65], [30, 60, 60]),
        (Numeric("x", 20, 60, step=1), 70, [70, 71, 40], [70, 60, 40]),  # outside may stay, or come in
        (Numeric("x", 20, 60, step=1, immutable=True), 30, [40, 20], [30, 30]),
        (Numeric("x", 0, 9, step=0.1, direction="increase"), 0.1 + 0.2, [0.1, 0.5], [0.1 + 0.2, 0.5]),
        (Numeric("x", 0, 9, levels=(0, 4, 9)), 4, [1, 7, 8], [0, 9, 9]),
        (Numeric("x", 0, 9, levels=(0, 4, 9), direction="increase"), 20, [5, 1], [20, 20]),
        (Numeric("x", 1, 3, levels=(0, 4, 9)), 4, [0, 9], [4, 4]),  # no level in range
        (Numeric("x", 10, 20, levels=(0, 4, 9)), 4, [0, 9, 15], [4, 4, 4]),
        (Numeric("x", -20, -10, levels=(0, 4, 9)), 4, [0, 9, -15], [4, 4, 4]),
    ],
)
def test_numbers_by_hand(feature: Numeric, own: float, proposals: list[float], expected: list[float]) -> None:
    assert snap(feature, own, proposals) == expected


@pytest.mark.parametrize(
    ("feature", "dtype", "own", "proposals", "expected"),
    [
        (Numeric("x", 0, 9, step=0.01), "int64", 4, [5.61, 5.2, 99], [6, 5, 9]),
        (Numeric("x", 0.5, 8.5, step=0.01), "int64", 4, [-99, 99], [1, 8]),
        (Numeric("x", 0, 9), "Int64", 4, [5.61], [6]),
        (Numeric("x", 0, 30, step=2.5), "int64", 5, [7.4, 13, 99], [5, 15, 30]),  # whole ones: multiples of 5
        (Numeric("x", 0, 30, step=0.4), "int64", 4, [7.4, 13], [8, 12]),  # multiples of 2
        (Numeric("x", 0, 9, levels=(0.5, 4, 9)), "int64", 4, [0, 9], [4, 9]),
        (Numeric("x", 0, 9, levels=(0.5, 1.5)), "int64", 4, [0, 9], [4, 4]),  # no level is whole
        (Numeric("x", 0, 1000, step=1), "int8", 4, [500, -500], [127, 0]),
        (Numeric("x", -10, 1000, step=1), "uint8", 4, [500, -500], [255, 0]),
        (Numeric("x", 500, 1000, step=1), "int8", 4, [500, -500], [4, 4]),  # nothing in range fits
        (Numeric("x", 0, 2.0**63, step=1), "int64", 4, [2.0**64], [2**63 - 1024]),  # the largest float that fits
        (Numeric("x", 0, 1e6, step=0.01), "float16", 4, [1e6, 2.25], [4, 2.25]),  # would be infinite
    ],
)
def test_numbers_fit_the_dtype_of_the_row(
    feature: Numeric, dtype: str, own: float, proposals: list[float], expected: list[float]
) -> None:
    assert snap(feature, own, proposals, dtype) == expected


@pytest.mark.parametrize(
    ("allowed", "dtype", "own", "expected"),
    [
        (None, object, True, [True, False, "none", "unknown"]),
        (("none",), object, True, [True, True, "none", True]),
        ((), object, True, [True, True, True, True]),
        (None, "bool", True, [True, False, False, False]),  # a column of flags cannot say "none"
        (None, "string", "none", ["none", "none", "none", "unknown"]),  # nor a column of words True
        (None, "category", True, [True, False, "none", "unknown"]),
    ],
)
def test_categories_by_hand(allowed: Any, dtype: Any, own: Any, expected: list[Any]) -> None:
    feature = Categorical("x", (False, True, "none", "unknown"), allowed)
    # What is left of a proposal that is not allowed is a tie at weight 0, which goes to the first category.
    assert snap(feature, own, [True, False, "none", "unknown"], dtype) == expected


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int8"])
def test_a_category_that_the_column_cannot_hold_does_not_take_the_others_with_it(dtype: str) -> None:
    assert snap(Categorical("x", (1, 2, "none")), 1, [2, "none"], dtype) == [2, 1]


def test_a_part_has_the_feasible_set_of_its_rows() -> None:
    encoder = Encoder.fit(table())
    feasible = FeasibleSet.of(encoder, table().head(5))
    part = feasible.take(np.array([False, True, False, True, True]))
    np.testing.assert_array_equal(part.snap(part.x), part.own)
    assert torch.equal(part.x, encoder.embed(part.own).float())


def test_missing_may_be_filled_but_is_never_proposed() -> None:
    fitted = pd.DataFrame({"a": [1.0, 5.0, None], "b": ["u", "v", None]})
    encoder = Encoder.fit(fitted)
    rows = pd.DataFrame({"a": [5.0, None], "b": ["u", None]})
    missing = encoder.encode(fitted).flip(0)[[0, 0]]  # proposes missing twice
    present = encoder.encode(fitted)[[0, 0]]  # proposes 1 and u
    feasible = FeasibleSet.of(encoder, rows)
    np.testing.assert_array_equal(feasible.snap(missing + 0.01)[1], [np.nan, np.nan])
    assert not np.isnan(feasible.snap(missing)[0]).any()
    assert feasible.snap(present).tolist() == [[1, 0], [1, 0]]


def test_missing_stays_where_nothing_else_is_allowed() -> None:
    encoder = Encoder.fit(pd.DataFrame({"b": ["u", "v"]}), Schema((Categorical("b", ("u", "v"), allowed=()),)))
    feasible = FeasibleSet.of(encoder, pd.DataFrame({"b": [None]}))
    assert np.isnan(feasible.snap(torch.tensor([[1.0, 0.0]]))).all()
    assert not feasible.can_change().any()


def test_a_row_is_contained_if_each_value_is_its_own_or_may_be_proposed() -> None:
    schema = Schema((
        Numeric("age", 20, 60, step=1, direction="increase"),
        Categorical("housing", HOUSING, ("own",)),
        Numeric("job", 0, 9, immutable=True),
    ))  # fmt: skip
    encoder = Encoder.fit(pd.DataFrame({"age": [20, 60], "housing": ["own", "rent"], "job": [0, 9]}), schema)
    rows = pd.DataFrame({"age": [70] + [30] * 7, "housing": ["rent"] * 8, "job": [5] * 8})
    free, own, rent = range(3)
    raw = [
        [70, rent, 5], [30, own, 5], [31, rent, 5],  # as it was; to own; a year more
        [29, rent, 5], [61, rent, 5], [31.5, rent, 5],  # against direction, range and grid
        [30, free, 5], [30, rent, 6],  # not in the list; frozen
    ]  # fmt: skip
    assert FeasibleSet.of(encoder, rows).contains(np.array(raw, float)).tolist() == [True] * 3 + [False] * 5


# What is left to change


@pytest.mark.parametrize(
    ("feature", "own", "free"),
    [
        (AGE, 30, True),
        (Numeric("x", 20, 60, step=1, immutable=True), 30, False),
        (Numeric("x", 20, 60, step=1, direction="increase"), 59, True),
        (Numeric("x", 20, 60, step=1, direction="increase"), 60, False),
        (Numeric("x", 20, 60, step=1, direction="increase"), 61, False),  # own is beyond the range
        (Numeric("x", 20, 60, step=1, direction="decrease"), 61, True),
        (Numeric("x", 20, 60, step=1, direction="decrease"), 20, False),
        (Numeric("x", 20, 60, step=1, direction="increase"), None, True),
        (Numeric("x", 30, 30, step=1), 30, False),
        (Numeric("x", 30, 30, step=1), 31, True),
        (Numeric("x", 30.2, 30.8, step=1), 31, False),  # no grid point in range
        (Numeric("x", 0, 9, levels=(0, 4), direction="increase"), 4, False),
        (Numeric("x", 0, 9, levels=(0, 4), direction="increase"), 5, False),
        (Categorical("x", HOUSING), "own", True),
        (Categorical("x", HOUSING, immutable=True), "own", False),
        (Categorical("x", HOUSING, allowed=("own",)), "own", False),
        (Categorical("x", HOUSING, allowed=("own",)), "rent", True),
        (Categorical("x", HOUSING, allowed=("own",)), None, True),
        (Categorical("x", HOUSING, allowed=()), "rent", False),
        (Categorical("x", ("own",)), "own", False),
    ],
)
def test_a_feature_can_change_if_another_value_may_be_proposed(feature: Column, own: Any, free: bool) -> None:
    fitted = [feature.low, feature.high] if isinstance(feature, Numeric) else list(feature.categories)
    encoder = Encoder.fit(pd.DataFrame({"x": fitted}), Schema((feature,)))
    assert FeasibleSet.of(encoder, pd.DataFrame({"x": [own]})).can_change().tolist() == [[free]]


def test_a_note_says_why_nothing_can_change() -> None:
    frame = pd.DataFrame({"age": [20, 60], "housing": ["own", "rent"]})
    schema = Schema((Numeric("age", 20, 60, 1, direction="increase"), Categorical("housing", HOUSING, ("rent",))))
    encoder = Encoder.fit(frame, schema)
    assert FeasibleSet.of(encoder, frame, ["age", "housing"]).notes() == [Note("all_immutable")]
    said = [Note("stuck", ("housing",)), Note("immutable", ("age",))]
    assert FeasibleSet.of(encoder, frame, ["age"]).notes() == said
    assert FeasibleSet.of(encoder, frame).notes() == [Note("stuck", ("age", "housing"))]
    assert FeasibleSet.of(encoder, frame).can_change().tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("name", ["Age", 0, None])
def test_an_unknown_immutable_feature_is_named(name: Any) -> None:
    frame = pd.DataFrame({"age": [20, 60], "housing": ["own", "rent"]})
    with pytest.raises(InputError, match=r"immutable: there is no feature .*known: age, housing"):
        FeasibleSet.of(Encoder.fit(frame), frame, [name])


def test_immutable_of_the_schema_and_of_the_question_add_up() -> None:
    frame = pd.DataFrame({"age": [20, 60], "housing": ["own", "rent"], "job": ["a", "b"]})
    feasible = FeasibleSet.of(Encoder.fit(frame, Schema.infer(frame).freeze("job")), frame, ["age"])
    assert feasible.immutable == ("age", "job")


def test_of_all_rows_only_the_raw_values_are_held() -> None:
    feasible = FeasibleSet.of(Encoder.fit(TABLE, SCHEMA), TABLE)
    held = [v for v in vars(feasible).values() if isinstance(v, np.ndarray | torch.Tensor)]
    assert sum(v.nbytes for v in held) == len(TABLE) * len(SCHEMA) * 8


@given(cases())
def test_what_follows_from_some_rows_is_what_follows_from_all_of_them(case: Case) -> None:
    _, _, feasible = case.made()
    at = np.array([7, 2, 2, 11])
    assert torch.equal(feasible.take(at).x, feasible.x[at])
    np.testing.assert_array_equal(feasible.take(at).can_change(), feasible.can_change()[at])
    for some, all_of_them in zip(feasible.take(at).encoded_bounds(), feasible.encoded_bounds(), strict=True):
        assert torch.equal(some, all_of_them[at])


def test_the_same_encoder_tells_rows_of_other_dtypes_other_rules_and_other_immutable_features_apart() -> None:
    encoder = Encoder.fit(table())
    narrow, wide = table().astype({"weight": "int64"}), table()
    for _ in range(2):  # the second time what was found is known
        steps = [FeasibleSet.of(encoder, frame).columns[4].column.step for frame in (narrow, wide)]  # type: ignore[attr-defined]
        assert steps == [5.0, 2.5]
        assert [FeasibleSet.of(encoder, wide, names).immutable for names in ((), ("income",))] == [(), ("income",)]
        sets = [FeasibleSet.of(encoder, wide, (), rules) for rules in ((), ("income <= 900",))]
        assert [len(each.constraints.constraints) for each in sets] == [0, 1]
    other = Encoder.fit(table().assign(weight=np.arange(200.0) % 50))
    assert FeasibleSet.of(other, wide).columns[4].column.step == 1.0  # type: ignore[attr-defined]


def test_rows_whose_categories_are_in_another_order_are_not_taken_for_those_before(monkeypatch):
    """To pandas the two dtypes are equal; a kind of column may heed the order."""
    seen, for_dtype = [], Categorical.for_dtype

    def remember(self, dtype):
        seen.append(tuple(dtype.categories))
        return for_dtype(self, dtype)

    monkeypatch.setattr(Categorical, "for_dtype", remember)
    encoder = Encoder.fit(pd.DataFrame({"housing": ["own", "rent"] * 10}))
    for order in (["own", "rent"], ["rent", "own"], ["own", "rent"]):
        FeasibleSet.of(encoder, pd.DataFrame({"housing": pd.Categorical(["own"], order)}))
    assert seen == [("own", "rent"), ("rent", "own")]
