"""Whatever is given, in a table, a file or an argument, is answered or named; never a strange exception."""

from __future__ import annotations

import datetime
import itertools
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from typer.testing import CliRunner

import tdce
from tdce import cli
from tdce._core.errors import InputError
from tdce._core.notes import Note
from tdce.datasets.files import Dialect, read_table, write_table
from tdce.explainer.autoencoder import Autoencoder
from tdce.explainer.evaluation import MetricReference
from tdce.methods.algorithm1 import Guided
from tdce.methods.guided import GuidedSearch
from tdce.methods.registry import METHODS
from tdce.methods.search import DiffusionSearch
from tdce.methods.selection import MOST_OPTIONS, choose_options, count_distinct
from tdce.metrics import option_spread, overlap
from tdce.models.targets import class_number
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.columns.scale import SCORE_MARGIN
from tdce.schema.encoder import Encoder
from tdce.schema.schema import Schema

SIZE = 60
RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, SIZE)
WORDS = RNG.choice(["own", "rent", "free"], SIZE).tolist()
ADDED = 8  # columns that an answer adds


class Small(tdce.Explainer):
    """Learns next to nothing, in a second."""

    def __init__(self, method: Any = "search", **settings: Any) -> None:
        super().__init__(method, **{"hidden": 8, "steps": 3, "progress": "silent", **settings})


def table() -> pd.DataFrame:
    frame = pd.DataFrame({"age": AGE, "rate": AGE / 4, "housing": WORDS})
    return frame.assign(y=np.where(AGE > 45, "yes", "no"))


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return Small().fit(table(), label="y", favourable="yes")


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr("tdce.models.classifier.train", refuse)


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as error:
        call()
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


def arrow(kind: Any) -> pd.ArrowDtype:
    return pd.ArrowDtype(kind)


def with_one(cell: Any, others: Any = AGE, dtype: Any = object) -> pd.Series[Any]:
    cells = list(others)
    cells[3] = cell
    return pd.Series(cells, dtype=dtype)


# ---- columns that work

WORKING = {
    "sparse floats": pd.Series(pd.arrays.SparseArray(AGE / 4)),
    "sparse with a fill value": pd.Series(pd.arrays.SparseArray(np.where(AGE < 50, 0, AGE), fill_value=0)),
    "sparse flags": pd.Series(pd.arrays.SparseArray(AGE > 50)),
    "sparse with missing cells": pd.Series(pd.arrays.SparseArray(np.where(AGE < 50, np.nan, AGE))),
    "long doubles": pd.Series(AGE.astype(np.longdouble) / 4),
    "decimals": pd.Series([Decimal(int(v)).scaleb(-1) for v in AGE], dtype=object),
    "decimals, one missing": with_one(Decimal("NaN"), [Decimal(int(v)) for v in AGE]),
    "decimals beside floats": with_one(Decimal("1.5"), AGE.astype(float)),
    "fractions": pd.Series([Fraction(int(v), 2) for v in AGE], dtype=object),
    "whole numbers of 31 digits": with_one(10**30, [int(v) for v in AGE]),
    "missing beside whole numbers": with_one(pd.NA, [int(v) for v in AGE]),
    "flags of numpy": pd.Series([np.bool_(v > 50) for v in AGE], dtype=object),
    "words and numbers": pd.Series(WORDS, dtype=object).mask(AGE % 2 == 0, pd.Series(AGE % 7)),
    "empty words": pd.Series(["" if w == "own" else w for w in WORDS], dtype=object),
    "categories with missing cells": pd.Series(pd.Categorical(WORDS)).mask(AGE > 60),
    "arrow text": pd.Series(WORDS, dtype=arrow(pa.large_string())),
    "arrow decimals": pd.Series([Decimal(int(v)) / 4 for v in AGE], dtype=arrow(pa.decimal128(10, 2))),
    "arrow dictionary": pd.Series(
        pd.array(pa.array(WORDS).dictionary_encode(), dtype=arrow(pa.dictionary(pa.int32(), pa.string())))
    ),
    "arrow half floats": pd.Series(AGE.astype("float16"), dtype=arrow(pa.float16())),
    "arrow flags": pd.Series(AGE > 50, dtype=arrow(pa.bool_())),
}  # fmt: skip


@pytest.fixture(scope="module")
def odd() -> tuple[tdce.Explainer, pd.DataFrame]:
    """Every kind of column that works, in one table."""
    frame = pd.DataFrame(WORKING)
    made = Small().fit(frame.assign(y=np.where(AGE > 45, "yes", "no")), label="y", favourable="yes")
    return made, frame


def test_odd_columns_are_learned_asked_about_and_given_back_in_their_own_dtype(odd):
    made, frame = odd
    before = frame.copy(deep=True)
    answer = made.explain(frame, n=2)
    found = answer.to_frame()
    assert found.iloc[:, :-ADDED].dtypes.equals(frame.dtypes)
    assert len(answer.changes()) > 0
    assert made.predict_proba(found).notna().all(axis=None)
    assert len(answer.sentences()) == len(found)
    for name in frame:  # not modified; what pandas compares as a whole would stumble on some of them
        assert list(map(repr, frame[name])) == list(map(repr, before[name]))


@pytest.mark.parametrize(
    "name", ["sparse floats", "sparse flags", "long doubles", "arrow decimals", "arrow dictionary"]
)
def test_an_odd_column_alone_is_changed_within_its_dtype(odd, name):
    made, frame = odd
    others = [other for other in frame if other != name]
    encoder = made.fitted_.encoder
    raw = encoder.read(frame)
    turned = raw[::-1].copy()
    written = encoder.write(turned, frame)
    assert written[name].dtype == frame[name].dtype
    np.testing.assert_array_equal(encoder.read(written)[:, list(frame).index(name)], turned[:, list(frame).index(name)])
    assert len(others) == len(WORKING) - 1


# ---- columns that are named

REFUSED = {
    "arrow list": (pd.Series([[1, 2]] * SIZE, dtype=arrow(pa.list_(pa.int64()))), ["nested values (list<"]),
    "arrow struct": (pd.Series([{"a": 1}] * SIZE, dtype=arrow(pa.struct([("a", pa.int64())]))), ["nested", "struct"]),
    "arrow map": (pd.Series([[("a", 1)]] * SIZE, dtype=arrow(pa.map_(pa.string(), pa.int64()))), ["nested", "map"]),
    "arrow dates": (pd.Series([datetime.date(2024, 1, 2)] * SIZE, dtype=arrow(pa.date32())), ["date (2024-01-02)"]),
    "arrow bytes": (pd.Series([b"a"] * SIZE, dtype=arrow(pa.binary())), ["bytes"]),
    "arrow nothing": (pd.Series([None] * SIZE, dtype=arrow(pa.null())), ["every cell is missing"]),
    "400 digits": (with_one(10**400), ["infinite or too large (1000", "row 3"]),
    "5,000 digits": (with_one(-(10**5000)), ["infinite or too large (<int>)", "row 3"]),
    "a signalling decimal": (with_one(Decimal("sNaN")), ["sNaN", "row 3", "leave the cell empty"]),
    "an infinite decimal": (with_one(Decimal("Infinity"), [Decimal(1)] * SIZE), ["infinite", "row 3"]),
    "a decimal beyond floats": (with_one(Decimal("1e5000"), [Decimal(1)] * SIZE), ["infinite", "row 3"]),
    "a long double beyond floats": (with_one(np.longdouble("1e4000"), AGE, np.longdouble), ["infinite", "row 3"]),
    "the largest float": (with_one(1.7e308), ["infinite or too large (1.7e+308)", "row 3"]),
    "complex": (pd.Series(AGE + 1j), ["complex"]),
    "one complex cell": (with_one(1 + 2j), ["complex"]),
    "periods": (pd.Series(pd.period_range("2020", periods=SIZE, freq="M")), ["Period"]),
    "intervals": (pd.Series(pd.cut(AGE, 4)), ["Interval"]),
    "timedeltas": (pd.Series(pd.to_timedelta(AGE, "D")), ["Timedelta"]),
    "frames": (pd.Series([pd.Series([1, 2])] * SIZE, dtype=object), ["nested"]),
    "half a character": (with_one("\ud800", WORDS), ["str"]),
    "an infinite category": (with_one(np.inf, WORDS), ["float (inf)"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_that_cannot_be_used_is_named_before_training(no_training, name):
    column, words = REFUSED[name]
    frame = pd.DataFrame({"x": column, "age": AGE, "y": np.where(AGE > 45, "yes", "no")})
    for call in (lambda: Schema.infer(frame, "y"), lambda: Small().fit(frame, label="y")):
        message = refusal(call)
        assert "'x'" in message
        assert all(word in message for word in words), message


@pytest.mark.parametrize(
    "name", ["arrow list", "400 digits", "a signalling decimal", "complex", "frames", "timedeltas"]
)
@pytest.mark.parametrize("feature", ["rate", "housing"])
def test_rows_with_such_a_column_are_named(explainer, name, feature):
    rows = table().drop(columns="y").assign(**{feature: REFUSED[name][0]})
    for ask in (explainer.explain, explainer.predict):
        assert f"'{feature}'" in refusal(lambda ask=ask: ask(rows))


@pytest.mark.parametrize(
    "name", ["arrow list", "5,000 digits", "a signalling decimal", "one complex cell", "frames", "intervals"]
)
def test_a_label_of_such_values_is_named(no_training, name):
    assert "'y'" in refusal(lambda: Small().fit(pd.DataFrame({"age": AGE, "y": REFUSED[name][0]}), label="y"))


@pytest.mark.parametrize(
    "dtype", [object, "float64", "Int64", "string", "boolean", "category", "datetime64[ns]", arrow(pa.null())]
)
def test_a_column_without_a_value_at_explain_time_is_answered(explainer, dtype):
    for feature in ("rate", "housing"):
        rows = table().drop(columns="y").assign(**{feature: pd.Series([None] * SIZE, dtype=dtype)})
        found = explainer.explain(rows).to_frame()
        assert len(found) == SIZE
        assert found["note"].str.contains(f"{feature} is missing, but never was").all()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (pd.MultiIndex.from_product([["a"], ["b", "c", "d", "y"]]), ["2 levels of names", "one name"]),
        (pd.Index([("a", 1), "b", "c", "y"], tupleize_cols=False), ["column name ('a', 1)", "rename it"]),
        ([None, "b", "c", "y"], ["column name", "rename it"]),
        ([1.5, "b", "c", "y"], ["column name 1.5"]),
        ([True, "b", "c", "y"], ["column name True"]),
        ([b"a", "b", "c", "y"], ["column name b'a'"]),
        (pd.Index(["\ud800", "b", "c", "y"], dtype=object), ["column name '\\ud800'"]),
        (["b", "b", "c", "y"], ["column 'b' appears twice"]),
    ],
)  # fmt: skip
def test_names_that_are_no_names_are_named(no_training, names, words):
    frame = table().set_axis(names, axis=1)
    message = refusal(lambda: Small().fit(frame, label=frame.columns[-1]))
    assert all(word in message for word in words), message


def test_columns_of_several_levels_are_named_when_asked(explainer):
    rows = table().set_axis(pd.MultiIndex.from_product([["a"], list("bcdy")]), axis=1)
    assert "2 levels of names" in refusal(lambda: explainer.explain(rows))


def test_a_frame_of_a_users_own_class_is_a_frame(explainer):
    class Frame(pd.DataFrame):
        @property
        def _constructor(self) -> type[pd.DataFrame]:
            return Frame

    rows = table().drop(columns="y").head(5)
    own = explainer.explain(Frame(rows)).to_frame()
    pd.testing.assert_frame_equal(pd.DataFrame(own), explainer.explain(rows).to_frame())


# ---- numbers that nobody had


def test_every_finite_number_is_answered_and_its_neighbours_are_not_disturbed(explainer):
    rows = table().drop(columns="y").head(6).astype({"rate": float})
    alone = explainer.explain(rows.iloc[[0]]).to_frame()
    rows.loc[1:, "rate"] = [1e30, 1e100, -1e149, 1.7e308, -1.7e308]
    answer = explainer.explain(rows)
    found = answer.to_frame()
    pd.testing.assert_frame_equal(found.iloc[[0]], alone, check_exact=True)
    assert np.isfinite(found[["score_before", "score_after"]]).all(axis=None)
    assert explainer.predict_proba(rows).notna().all(axis=None)
    assert "rate 1e+100 is far outside the range learned" in found.loc[2, "note"]
    kept = explainer.explain(rows, immutable=["rate"]).to_frame()
    assert kept["rate"].tolist() == rows["rate"].tolist()
    assert len(answer.sentences()) == 6


def test_numbers_far_out_are_encoded_at_one_place():
    scale = Encoder.fit(pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})).columns[0].scale
    low, high = scale.ends
    at = scale.embed(np.array([1.0, 4.0, high, 1e9, 1.7e308, low, -1.7e308, np.nan]))
    assert at[2:5] == pytest.approx(scale.score[-1] + SCORE_MARGIN)
    assert at[5:7] == pytest.approx(scale.score[0] - SCORE_MARGIN)
    assert at[:2].tolist() == scale.score[[0, -1]].tolist()
    assert np.isnan(at[7])


def test_a_number_far_out_is_measured_where_the_encoding_ends(explainer):
    encoder = explainer.fitted_.encoder
    raw = encoder.read(table())
    yardstick = MetricReference(encoder, raw, AGE > 45, *[Autoencoder(1, 1)] * 3)
    far = raw[:2].copy()
    far[:, 0] = [1.7e308, 1e9]
    one, other = yardstick.standardised(far)[:, 0].tolist()
    assert np.isfinite(one)
    assert one == other
    np.testing.assert_allclose(yardstick.standardised(raw).numpy().std(axis=0), 1.0)


def test_an_infinite_number_is_named(explainer):
    rows = table().drop(columns="y").assign(rate=with_one(np.inf, AGE, float))
    assert "'rate' is infinite or too large (inf) in row 3" in refusal(lambda: explainer.explain(rows))


def test_a_fine_grid_and_a_huge_number_meet():
    feature = Numeric("a", 0, 1, step=1e-12)
    assert feature.round(np.array([1.7e308, -1e300, 0.1])).tolist() == [1.7e308, -1e300, 0.1]
    assert Numeric("a", 0, 1, step=1e-30).round(np.array([0.1])).tolist() == pytest.approx([0.1])


# ---- notes


def test_a_note_says_what_was_never_learned(explainer):
    rows = pd.DataFrame({
        "age": [40.0, 100.0, np.nan], "rate": [5.0, 5.0, 900.0], "housing": ["own", "own", None],
    })  # fmt: skip
    notes = explainer.explain(rows).to_frame()["note"]
    assert "learned" not in notes[0]
    age, rate = (f"{low:g} to {high:g}" for low, high in (explainer.schema[name].bounds for name in ("age", "rate")))
    assert notes[1].endswith(f"age 100 is outside the range learned, {age}")
    assert notes[2].endswith(
        "age is missing, but never was in the training data; rate 900 is far outside the range learned, "
        f"{rate}; housing is missing, but never was in the training data"
    )


def test_a_category_that_nobody_had_is_noted():
    frame = table()
    schema = Schema.infer(frame, "y").change("housing", categories=["boat", "free", "own", "rent"])
    encoder = Encoder.fit(frame, schema)
    rows = frame.head(2).assign(housing=["boat", "own"])
    assert encoder.unfamiliar(encoder.read(rows)) == [
        [Note("never_seen", ("housing",), values={"value": "boat"})], [],
    ]  # fmt: skip


def test_a_best_effort_says_how_far_it_came_and_what_stood_in_the_way(explainer):
    rows = table().drop(columns="y")
    rows = rows[(explainer.predict(rows) == "no").to_numpy()]
    found = explainer.explain(rows, n=2, immutable=["age", "rate"]).to_frame()
    found = found[found["status"] == "best_effort"]
    moved = found["score_before"] < found["score_after"]
    assert moved.any()
    assert not moved.all()
    for before, after, note in found[["score_before", "score_after", "note"]].itertuples(index=False):
        if before == after:
            said = f"no change was found that raises the probability, {before:.3g}; "
        else:
            said = "no change was found that the model accepts, only one that raises the probability "
            said += f"from {before:.3g} to {after:.3g}; "
        assert note.startswith(f"{said}immutable: age, rate")


def test_equal_options_are_called_the_same(explainer):
    rows = table().drop(columns="y")
    rows = rows[(explainer.predict(rows) == "no").to_numpy()].head(5)
    alike = tdce.Explainer("wachter", progress="silent")
    alike.fitted_ = explainer.fitted_
    for n, said in ((3, "all 3 options are the same"), (1, "")):
        notes = alike.explain(rows, n=n).to_frame()["note"]
        assert all((said in note) if said else ("option" not in note) for note in notes)
    two = Schema((Categorical("housing", ("own", "rent", "free")),))
    made = Small().fit(table(), label="y", favourable="yes", schema=two)
    found = made.explain(table(), n=5, target="no" if (made.predict(table()) == "yes").all() else "yes").to_frame()
    several = found[found["status"].isin(["valid", "best_effort"])]
    for _, lines in several.groupby("row"):
        different = lines["housing"].nunique()
        said = "all 5 options are the same" if different == 1 else f"only {different} options differ"
        assert lines["note"].str.contains(said).all()


# ---- many options


def test_choosing_is_greedy_by_its_definition():
    """The second route: one draw after another, by the rule as it is written, for rows with twins and missing cells."""
    encoder = Encoder.fit(pd.DataFrame({name: [0.0, 1.0, 2.0, None] for name in "abcd"}))
    rng = np.random.default_rng(5)
    own, raw = np.zeros((40, 4)), rng.choice([0.0, 0.0, 1.0, 2.0, np.nan], (40, 9, 4))
    valid = rng.random((40, 9)) < 0.7
    x = encoder.embed(own).numpy()
    away = np.stack([np.square(encoder.embed(raw[:, j]).numpy() - x).sum(axis=1) for j in range(9)], axis=1)
    changed = ~(raw == own[:, None])

    def by_hand(r: int, options: int) -> list[int]:
        chosen: list[int] = []
        for _ in range(options):
            left = [j for j in range(9) if j not in chosen]

            def rank(j: int, chosen: tuple[int, ...]) -> tuple[Any, ...]:
                twin = any(np.array_equal(raw[r, j], raw[r, c], equal_nan=True) for c in chosen)
                alike = max((float(overlap(changed[r, j], changed[r, c])) for c in chosen), default=0.0)
                return not valid[r, j], twin, alike, away[r, j], j

            chosen.append(min(left, key=lambda j: rank(j, tuple(chosen))))
        return sorted(chosen, key=lambda j: (not valid[r, j], away[r, j]))

    for options in (1, 3, 9):
        assert choose_options(encoder, own, raw, valid, options).tolist() == [by_hand(r, options) for r in range(40)]
    assert count_distinct(raw).tolist() == [len({tuple(map(repr, option)) for option in row.tolist()}) for row in raw]


def test_memory_grows_with_the_options_and_not_with_their_square():
    encoder = Encoder.fit(pd.DataFrame({name: np.arange(9.0) for name in "abcdefgh"}))
    rng = np.random.default_rng(0)
    own, raw = np.zeros((20, 8)), rng.integers(0, 9, (20, 2 * MOST_OPTIONS + 1, 8)).astype(float)
    tracemalloc.start()
    choose_options(encoder, own, raw, np.ones(raw.shape[:2], dtype=bool), MOST_OPTIONS)
    count_distinct(raw)
    option_spread(own, raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * raw.nbytes  # all pairs would take forty times as much


# ---- arguments

NOT_NUMBERS = ["1", True, None, [[]], float("nan"), 10**400, -1, object()]
WRONG = {
    "hidden": [*NOT_NUMBERS, 0, 1.5, 10**9],
    "tau": [0.5, "ab", (0.5,), (0.5, "0.2"), (0.5, float("nan")), (0.5, 0), [[]], None],
    "steps": [*NOT_NUMBERS, 0, 1.5],
    "seed": [*NOT_NUMBERS, 2**64, 0.5],
    "keep_rows": [1, "yes", None, [[]]],
    "progress": ["loud", None, 1, ["bar"]],
    "method": ["tcde", "", None, DiffusionSearch, 5, object()],
}


def kind(value: Any) -> str:
    """For the name of a test, the same in every process."""
    return value if isinstance(value, str) else type(value).__name__


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]], ids=kind)
def test_a_wrong_setting_is_named_before_training(no_training, name, value):
    explainer = tdce.Explainer(**{name: value})  # which only stores
    message = refusal(lambda: explainer.fit(table(), label="y", favourable="yes"))
    assert message.startswith(f"{name} is ")
    assert "must be" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 101), ("n", True), ("n", np.nan), ("n", 10**400), ("n", None), ("seed", True), ("seed", "1"),
        ("closeness", "0.5"), ("closeness", np.nan), ("closeness", True), ("closeness", 10**400), ("closeness", [[]]),
        ("closeness", -0.1), ("safety", 1), ("safety", "0.5"), ("safety", np.nan),
        ("threshold", True), ("threshold", np.inf), ("threshold", 1), ("threshold", [0.5]),
        ("threshold", 0.9999999),
    ],
)  # fmt: skip
def test_a_wrong_question_is_named_at_once(explainer, name, value):
    rows = table().drop(columns="y").head(2)
    assert refusal(lambda: explainer.explain(rows, **{name: value})).startswith(f"{name} is ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": ["y"]}, "no label column ['y']"),
        ({"label": None}, "no label column None"),
        ({"favourable": ["yes"]}, "favourable ['yes'] is not a value"),
        ({"favourable": pd.NA}, "favourable <NA> is not a value"),
        ({"schema": "schema.json"}, "schema is 'schema.json'; it must be a Schema"),
        ({"immutable": b"age"}, "immutable must be a list"),
        ({"immutable": [["age"]]}, "immutable has ['age']"),
        ({"immutable": ["Age"]}, "there is no feature 'Age'"),
        ({"frame": "loans.csv"}, "must be a data frame, not str"),
    ],
)
def test_a_wrong_fit_is_named_before_training(no_training, options, words):
    assert words in refusal(lambda: Small().fit(**{"frame": table(), "label": "y", **options}))


def test_wrong_paths_and_targets_are_named(explainer, tmp_path):
    rows = table().drop(columns="y").head(2)
    for call in (explainer.save, tdce.Explainer.load, explainer.explain(rows).to_html):
        for path in (5, None, b"x", "a\0b"):
            assert refusal(lambda call=call, path=path: call(path)).startswith("path is ")
    assert refusal(lambda: tdce.Explainer.load(tmp_path / "x.tdce", progress="loud")).startswith("progress is 'loud'")
    for target in ([1, 1], [["yes"], ["yes"]], np.array(["maybe", "yes"]), pd.NA, 10**400):
        assert "is not a value of the label" in refusal(lambda target=target: explainer.explain(rows, target=target))
    for target in ([], ["yes"], pd.Series(["yes"] * 3)):
        words = refusal(lambda target=target: explainer.explain(rows, target=target))
        assert words == f"target has {len(target)} goals for 2 rows; give one, or one per row"
    assert len(explainer.explain(rows.head(0), target=[])) == 0
    words = refusal(lambda: explainer.explain(rows, target=tdce.Not("no"), threshold=0.7))
    assert words == "threshold 0.7 goes with a class, not with Not('no'); leave it out"


SETTINGS = [(name, field) for name, kind in METHODS.items() for field in fields(kind()) if not field.name.endswith("_")]


@pytest.mark.parametrize(("method", "field"), SETTINGS, ids=[f"{name} {field.name}" for name, field in SETTINGS])
def test_every_setting_of_a_method_is_checked(method, field):
    kind, usual = METHODS[method], field.default
    wrong: list[Any] = [[[]], {}, object(), "no such", b"1", float("nan"), 10**400, -(10**5000), [float("nan")]]
    if isinstance(usual, bool):
        wrong += [1, 0, "True", None]
    elif isinstance(usual, int | float):
        wrong += [True, "1", -1, -np.inf, np.array([1, 2])]
    elif isinstance(usual, tuple):
        wrong += [(), usual[0], ("1",), (True,), (*usual, -1)]
    if isinstance(usual, int):
        wrong += [0.5, np.float64(2.0)]
    for value in wrong:
        assert refusal(lambda value=value: kind(**{field.name: value})).startswith(f"{field.name} is ")
    assert kind(**{field.name: usual}) == kind()


@pytest.mark.parametrize("tau", [[0.5], [0.5, 0.4, 0.2]])
def test_a_setting_of_two_values_takes_no_more_and_no_fewer(tau):
    assert refusal(lambda: Guided(tau=tau)) == f"tau is {tau}; it must be a list of 2 values"


def test_numpys_scalars_are_settings_and_can_be_saved(explainer, tmp_path):
    made = tdce.Explainer(
        GuidedSearch(start=np.float32(0.5), steps=np.int64(4), tau=[np.float64(0.5), np.float32(0.25)]),
        hidden=np.int64(8), seed=np.uint8(3), progress="silent",
    )  # fmt: skip
    assert (type(made.method.start), type(made.method.steps), made.method.tau) == (float, int, (0.5, 0.25))
    made.fitted_ = explainer.fitted_
    made.save(tmp_path / "a.tdce")
    assert tdce.Explainer.load(tmp_path / "a.tdce").method == made.method


# ---- classes


@pytest.mark.parametrize(
    ("value", "classes", "at"),
    [
        ("1", (1, "1"), 1), (1, (1, "1"), 0), (1, ("1", "2"), None), ("2", (1, 2), 1), (1.0, (0, 1), 1),
        (True, (0, 1), 1), (True, (1, True), 1), (1, (True, 1), 1), (np.int64(1), (0, 1), 1),
        (np.bool_(True), (1, True), 1), ("True", (False, True), 1), ("1.5", (1.5, "1.5"), 1),
    ],
)  # fmt: skip
def test_the_same_kind_of_value_wins(value, classes, at):
    if at is None:
        refusal(lambda: class_number(value, classes, "target"))
    else:
        assert class_number(value, classes, "target") == at


def test_a_label_of_numbers_words_and_flags_keeps_them_apart():
    frame = table()
    frame["y"] = pd.Series([1 if a < 30 else "1" if a < 45 else True if a < 60 else 0.5 for a in AGE], dtype=object)
    made = Small().fit(frame, label="y", favourable="1")
    classes = made.fitted_.classes
    assert sorted(map(repr, classes)) == sorted(["0.5", "1", "True", "'1'"])
    assert made.fitted_.favourable == "1"
    rows = frame.drop(columns="y").head(4)
    for value in (1, "1", True, 0.5):
        target = made.explain(rows, target=value).target[0]
        assert (type(target), target) == (type(value), value)
    counts = np.bincount(made.fitted_.y.numpy(), minlength=4)
    assert (counts > 0).all()


# ---- one odd cell


def csv(folder: Path, cells: list[str], name: str = "balance") -> Path:
    path = folder / "t.csv"
    path.write_text(f"{name},y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells)), encoding="utf-8")
    return path


def test_the_one_cell_that_is_no_number_is_named(tmp_path, explainer):
    path = csv(tmp_path, [*map(str, range(10, 13)), "na", "", "many", "15"])
    schema = Schema((Numeric("balance", 0, 99, step=1.0),))
    frame = read_table(path, schema)
    assert "'many' in row 5" in refusal(lambda: Encoder.fit(frame, schema))
    assert frame["balance"].isna().tolist() == [False] * 3 + [True] * 2 + [False] * 2
    rows = table().drop(columns="y").astype({"rate": object})
    rows.loc[7, "rate"] = "12"
    assert "'12' in row 7" in refusal(lambda: explainer.explain(rows))


def test_one_word_among_hundreds_of_numbers_is_named_and_not_made_a_category(tmp_path, no_training):
    path = csv(tmp_path, [*map(str, range(100, 140)), "many", *map(str, range(140, 180))])
    frame = read_table(path)
    for call in (lambda: Schema.infer(frame, "y"), lambda: Small().fit(frame, label="y")):
        message = refusal(call)
        assert "'balance' holds numbers, but has 'many' in row 40" in message
        assert "categorical" in message
    assert isinstance(Schema.infer(frame.astype({"balance": "category"}), "y")["balance"], Categorical)
    given = Schema((Categorical("balance", tuple(sorted(set(frame["balance"])))),))
    assert Encoder.fit(frame, given).schema == given


@pytest.mark.parametrize(
    "cells",
    [
        [f"{i:03}" for i in range(60)],  # codes with zeros before them
        ["01067", *(str(80331 + i) for i in range(60))],  # one of the codes has one
        [*(str(250 + i) for i in range(60)), *(f"V{i}" for i in range(4))],  # two kinds of codes
        [*map(str, range(1, 11)), "J", "Q", "K", "A"] * 5,  # a few numbers among names
        [*(str(i) for i in range(30)), *(["unknown"] * 9)],  # a word that many have
        ["12345678901234567890", *map(str, range(50))],  # an identifier
    ],
)
def test_codes_stay_categories(tmp_path, cells):
    assert isinstance(Schema.infer(read_table(csv(tmp_path, cells)), "y")["balance"], Categorical)


def test_numbers_with_a_decimal_comma_are_no_words():
    frame = pd.DataFrame({"x": [f"{i},5" for i in range(30)]})
    message = refusal(lambda: Schema.infer(frame))
    assert "'x' holds numbers with a comma, such as '0,5'" in message
    assert "--decimal ," in message


# ---- files

GERMAN = "Alter;Rate;Ort;y\n30;1,5;Köln, Nord;0\n40;-2,25;Ulm;1\n50;;Ulm;0\n60;1.234,5;Ulm;1\n"


def test_semicolons_and_decimal_commas_are_read_and_written_alike(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(GERMAN.replace("1.234,5", "1e3"), encoding="utf-8")
    dialect = Dialect(";", ",")
    frame = read_table(path, dialect=dialect)
    assert frame["Rate"].tolist()[:2] == [1.5, -2.25]
    assert frame["Rate"].isna().tolist() == [False, False, True, False]
    assert frame["Alter"].dtype == "Int64"
    write_table(tmp_path / "out.csv", frame.assign(score=0.25), dialect)
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[:2] == [
        "Alter;Rate;Ort;y;score", "30;1,5;Köln, Nord;0;0,25",
    ]  # fmt: skip
    pd.testing.assert_frame_equal(read_table(tmp_path / "out.csv", dialect=dialect).drop(columns="score"), frame)


def test_a_point_between_thousands_is_named(tmp_path):
    (tmp_path / "t.csv").write_text(GERMAN, encoding="utf-8")
    schema = Schema((Numeric("Rate", -9, 9),))
    frame = read_table(tmp_path / "t.csv", schema, Dialect(";", ","))
    assert "'1.234,5' in row 3" in refusal(lambda: Encoder.fit(frame, schema))


@pytest.mark.parametrize(("text", "option"), [("a;b\n1;2\n", "';'"), ("a\tb\n1\t2\n", "tab"), ("a|b\n1|2\n", "'|'")])
def test_another_separator_is_named_with_the_option_to_say_so(tmp_path, text, option):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert f"use --sep {option}" in refusal(lambda: read_table(tmp_path / "t.csv"))
    dialect = Dialect(option.strip("'"))
    assert list(read_table(tmp_path / "t.csv", dialect=dialect)) == ["a", "b"]
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert "use --sep ','" in refusal(lambda: read_table(tmp_path / "t.csv", dialect=dialect))


@pytest.mark.parametrize(
    ("sep", "decimal", "word"),
    [
        ("", ".", "--sep is ''"), (";;", ".", "--sep is ';;'"), ('"', ".", "--sep is"), ("\n", ".", "--sep is '\\n'"),
        ("a", ".", "--sep is 'a'"), ("1", ".", "--sep is '1'"), (".", ".", "--sep is '.'"),
        (";", ";", "--decimal is ';'"), (";", "", "--decimal is ''"), (",", ",", "both a comma"),
    ],
)  # fmt: skip
def test_a_silly_dialect_is_named(sep, decimal, word):
    assert word in refusal(lambda: Dialect(sep, decimal))


def test_tab_is_a_word():
    assert Dialect("tab").sep == Dialect("\\t").sep == Dialect("\t").sep == "\t"


@pytest.mark.parametrize("cells", [[10**30, 1], ["a", 1], [1j, 2j], [object(), 1], [{"a": 1}, 2]])
def test_a_column_that_parquet_cannot_hold_is_named_and_csv_takes_it(tmp_path, cells):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    assert "a .csv file can hold any table" in refusal(lambda: write_table(tmp_path / "t.parquet", frame))
    assert not (tmp_path / "t.parquet").exists()
    write_table(tmp_path / "t.csv", frame)
    assert len((tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".jsonl", ".parquet"])
def test_half_a_character_in_a_table_is_named_when_it_is_written(tmp_path, ending):
    refusal(lambda: write_table(tmp_path / f"t{ending}", pd.DataFrame({"x": pd.Series(["\ud800"], dtype=object)})))
    assert list(tmp_path.iterdir()) == []


# ---- the command line


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., str]:
    """Run a command in a folder of its own, with a small explainer."""
    monkeypatch.setattr(tdce, "Explainer", Small)
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        done = CliRunner().invoke(cli.app, list(words))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_every_command_that_reads_a_table_takes_its_dialect(command, tmp_path):
    german = ("--sep", ";", "--decimal", ",")
    table().to_csv("t.csv", sep=";", decimal=",", index=False)
    assert "4.5 to 19.75, steps of 0.25" in command("schema", "t.csv", "--label", "y", *german)
    assert "use --sep ';'" in refusal(lambda: command("schema", "t.csv"))
    command("fit", "t.csv", "--label", "y", "--favourable", "yes", "--out", "m.tdce", *german)
    command("explain", "m.tdce", "t.csv", "--out", "out.csv", *german)
    out = pd.read_csv("out.csv", sep=";", decimal=",")
    assert out["rate"].between(4.5, 19.75).all()
    assert out["score_before"].between(0, 1).all()
    assert set(out["status"]) <= {"valid", "best_effort", "already"}
    bar = str(out["score_after"].median())
    measured = json.loads(command("evaluate", "m.tdce", "t.csv", "--threshold", bar, "--json", *german))
    strict = Small.load("m.tdce").explain(table(), threshold=float(bar)).to_frame()["status"]
    assert measured["validity"] == pytest.approx((strict[strict != "already"] == "valid").mean())
    assert not strict.equals(out["status"])
    assert "threshold is 2.0" in refusal(lambda: command("evaluate", "m.tdce", "t.csv", "--threshold", "2", *german))
    for name in ("fit", "explain", "evaluate", "schema"):
        words = {"fit": ["t.csv", "--label", "y", "--out", "a.tdce"], "schema": ["t.csv"]}
        rest = words.get(name, ["m.tdce", "t.csv", *(["--out", "a.csv"] if name == "explain" else [])])
        assert "--decimal is 'x'" in refusal(lambda name=name, rest=rest: command(name, *rest, "--decimal", "x"))


def test_cells_of_every_kind_beside_each_other_are_answered_or_named():
    """Every pair of odd cells in a column of numbers and in a column of words, through the reader."""
    cells: list[Any] = [
        1, -0.0, 10**30, 1e300, np.float32(0.1), Decimal("0.1"), Fraction(1, 3), True, np.bool_(False), "", "x", "1",
        None, pd.NA, pd.NaT, np.nan, 1j, b"x", (1,), [1], {1: 2}, np.datetime64("2024-01-01"), datetime.time(1),
        10**400, Decimal("sNaN"), Decimal("-Infinity"), object, np.array([1]), pd.Timestamp("2024-01-01"),
        pd.Period("2024"),
    ]  # fmt: skip
    encoder = Encoder.fit(pd.DataFrame({"a": [0.0, 1.5, 2.25], "b": ["x", "y", "1"]}))
    told = []

    def ask(call: Callable[[], Any]) -> None:
        try:
            told.append(call())
        except InputError as error:
            told.append(str(error))

    for pair in itertools.combinations_with_replacement(cells, 2):
        values = pd.Series([None, None], dtype=object)
        for i, cell in enumerate(pair):
            values.array[i] = cell
        ask(lambda values=values: encoder.encode(pd.DataFrame({"a": values, "b": "x"})))
        ask(lambda values=values: encoder.encode(pd.DataFrame({"a": 1.0, "b": values})))
        ask(lambda values=values: Schema.infer(pd.DataFrame({"a": values})))
    tensors = [answer for answer in told if isinstance(answer, torch.Tensor)]
    assert len(tensors) > 30
    assert all(torch.isfinite(x).all() for x in tensors)
    assert all("'a'" in answer or "'b'" in answer for answer in told if isinstance(answer, str))
