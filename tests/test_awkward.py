"""Awkward tables from end to end: a line for every row and option, in the table's own columns, dtypes and index."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from asking import class_goals, make_query

import tdce
from tdce._core.errors import InputError
from tdce._core.noise import Noise
from tdce.explainer.answer import Answer
from tdce.methods.objective import Objective
from tdce.methods.search import DiffusionSearch
from tdce.schema.columns.numeric import Numeric
from tdce.schema.schema import Schema

SIZE = 40  # rows of a table: too few to learn anything, enough to go wrong
OPTIONS = 2
ADDED = ["row", "option", "status", "score_before", "score_after", "plausibility", "safety", "note"]


class Asked(NamedTuple):
    """A table that was fitted, rows that were asked about, and the answer."""

    explainer: tdce.Explainer
    rows: pd.DataFrame
    before: pd.DataFrame  # a deep copy of the rows, made before the question
    target: Any
    immutable: list[Any]
    answer: Answer


def fitted(frame: pd.DataFrame, label: Any, favourable: Any = None, schema: Schema | None = None) -> tdce.Explainer:
    explainer = tdce.Explainer(hidden=16, steps=20, progress="silent")
    return explainer.fit(frame, label=label, favourable=favourable, schema=schema)


def ask(explainer: tdce.Explainer, rows: pd.DataFrame, target: Any, immutable: list[Any]) -> Asked:
    before = rows.copy(deep=True)
    answer = explainer.explain(rows, target=target, n=OPTIONS, immutable=immutable)
    return Asked(explainer, rows, before, target, immutable, answer)


def numbers() -> Asked:
    """Only numbers; the label is 0 or 1; the index has one label again and again."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "debt": rng.integers(0, 50, SIZE).astype("int8"),
        "rate": (rng.integers(0, 900, SIZE) / 100).astype("float32"),
        "ratio": rng.normal(size=SIZE),
        "constant": 7,
        "big": rng.integers(2**60, 2**61, SIZE),
    })  # fmt: skip
    frame["y"] = (frame["debt"] < 25).astype(int)
    rows = frame.drop(columns="y").head(8)
    rows.index = pd.Index(["same"] * 8)
    return ask(fitted(frame, "y", favourable=1), rows, 1, ["big"])


def words() -> Asked:
    """Only categories, one of them with 200; the label is a flag; the index has two levels."""
    rng = np.random.default_rng(1)
    cities = [f"city {i}" for i in range(200)]
    frame = pd.DataFrame({
        "city": rng.choice(cities, SIZE),
        "own": rng.random(SIZE) < 0.5,
        "size": pd.Categorical(rng.choice(["s", "l"], SIZE), categories=["s", "m", "l"], ordered=True),
        "constant": "always",
    })  # fmt: skip
    frame["y"] = frame["own"]
    schema = Schema.infer(frame, "y").change("city", categories=cities)
    rows = frame.drop(columns="y").head(8)
    rows.index = pd.MultiIndex.from_arrays([np.arange(8) % 2, list("abcdabcd")], names=["half", None])
    return ask(fitted(frame, "y", favourable=True, schema=schema), rows, True, ["constant"])


def strange() -> Asked:
    """Strange names and dtypes, missing cells, columns that are called like those of the answer, extra columns."""
    rng = np.random.default_rng(2)
    missing = np.arange(SIZE) % 5 == 1
    amount = rng.integers(0, 90, SIZE)
    frame = pd.DataFrame({
        "": pd.Series(rng.integers(0, 99, SIZE) / 10, dtype="float32"),
        0: pd.Series(amount).astype("Int64").mask(missing),
        "a b": pd.Series(rng.choice(["ü", "v,", 'w"'], SIZE), dtype=object).mask(missing, None),
        "ü,;": pd.Series(rng.choice(["x", "y"], SIZE), dtype="string[pyarrow]"),
        'say "hi"': pd.Series(rng.random(SIZE) < 0.5, dtype="boolean").mask(missing),
        "two\nlines": pd.Series([Decimal(int(v)).scaleb(-2) for v in rng.integers(0, 999, SIZE)], dtype=object),
        "arrow": pd.Series(rng.integers(0, 99, SIZE) / 4, dtype="double[pyarrow]").mask(missing),
        "flag": pd.Series(rng.random(SIZE) < 0.5, dtype="bool[pyarrow]"),
        "row": rng.integers(0, 9, SIZE).astype("uint8"),
        "status": pd.Categorical(rng.choice([30, 4], SIZE)),
        "option": rng.choice([0, 1], SIZE).astype("float64"),
    })  # fmt: skip
    frame["y"] = np.where(amount > 45, "yes", "no")
    rows = frame.drop(columns="y").iloc[10:18]
    rows.insert(3, "when", pd.date_range("2024-01-01", periods=8).to_numpy())
    rows["nested"] = [[i] for i in range(8)]
    return ask(fitted(frame, "y", favourable="yes"), rows, "yes", ["a b", "two\nlines"])


def three() -> Asked:
    """Three classes of a category dtype, none of them favourable; the rows come in other dtypes than the table."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.integers(0, 99, SIZE) / 10, "b": rng.choice([True, False, "unknown"], SIZE)})
    frame["b"] = frame["b"].map({"True": True, "False": False}).astype(object).fillna("unknown")
    frame["grade"] = pd.cut(frame["a"], [-1, 3, 7, 11], labels=["C", "B", "A"])
    rows = pd.DataFrame({"a": pd.array([1, 5, 9, None], dtype="Int64"), "b": [True, False, True, True]})
    return ask(fitted(frame, "grade"), rows, "A", [])


CASES: dict[str, Callable[[], Asked]] = {"numbers": numbers, "words": words, "strange": strange, "three": three}


@pytest.fixture(scope="module", params=list(CASES))
def asked(request: pytest.FixtureRequest) -> Asked:
    return CASES[request.param]()


@pytest.fixture(scope="module")
def plain() -> tuple[tdce.Explainer, pd.DataFrame]:
    """An explainer and rows that it refuses, for questions of all sorts."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"age": rng.integers(18, 80, SIZE), "housing": rng.choice(["own", "rent"], SIZE)})
    frame["y"] = np.where(frame["age"] > 45, "yes", "no")
    explainer = fitted(frame, "y", favourable="yes", schema=Schema.infer(frame, "y", roles=False))
    rows = frame.drop(columns="y")
    return explainer, rows[(explainer.predict(rows) == "no").to_numpy()].head(4)


def features(asked: Asked) -> list[Any]:
    return list(asked.explainer.schema.names)


def repeated(asked: Asked) -> pd.DataFrame:
    """The rows, once for each option."""
    return asked.before.iloc[np.repeat(np.arange(len(asked.before)), OPTIONS)]


def added(asked: Asked) -> pd.DataFrame:
    """The columns of the answer under their plain names."""
    return asked.answer.to_frame().iloc[:, -len(ADDED) :].set_axis(ADDED, axis=1)


# Promises


def test_there_is_a_line_for_every_row_and_option(asked: Asked) -> None:
    lines = added(asked)
    assert len(asked.answer) == len(lines) == len(asked.rows) * OPTIONS
    assert lines["option"].tolist() == list(range(OPTIONS)) * len(asked.rows)
    assert lines["row"].tolist() == [label for label in asked.rows.index for _ in range(OPTIONS)]
    assert set(lines["status"]) <= {"valid", "best_effort", "already", "infeasible"}
    assert sum(asked.answer.counts().values()) == len(lines)


def test_columns_order_dtypes_and_index_are_the_rows_own(asked: Asked) -> None:
    frame = asked.answer.to_frame()
    names = list(asked.rows.columns)
    assert list(frame.columns)[: len(names)] == names
    assert list(frame.columns)[len(names) :] == [f"tdce_{n}" if n in names else n for n in ADDED]
    assert frame.index.equals(asked.rows.index.repeat(OPTIONS))
    assert frame.index.names == asked.rows.index.names
    assert frame[names].dtypes.equals(asked.rows.dtypes)
    others = [n for n in names if n not in features(asked)]
    pd.testing.assert_frame_equal(frame[others], repeated(asked)[others], check_exact=True)


def test_the_rows_asked_about_are_not_modified(asked: Asked) -> None:
    pd.testing.assert_frame_equal(asked.rows, asked.before, check_exact=True)


def test_immutable_features_come_back_bit_for_bit(asked: Asked) -> None:
    frame = asked.answer.to_frame()
    for name in asked.immutable:
        own = repeated(asked)[name]
        pd.testing.assert_series_equal(frame[name], own, check_exact=True)
        assert [type(v) for v in frame[name]] == [type(v) for v in own]


def test_proposed_values_are_within_the_table(asked: Asked) -> None:
    encoder = asked.explainer.fitted.encoder
    raw, own = encoder.read(asked.answer.to_frame()), encoder.read(repeated(asked))
    for i, feature in enumerate(encoder.schema):
        changed = raw[~((raw[:, i] == own[:, i]) | (np.isnan(raw[:, i]) & np.isnan(own[:, i]))), i]
        assert not np.isnan(changed).any(), feature.name
        if isinstance(feature, Numeric):
            assert (changed >= feature.low).all(), feature.name
            assert (changed <= feature.high).all(), feature.name
            np.testing.assert_array_equal(feature.round(changed), changed)


def test_the_verdict_is_the_models_on_exactly_the_values_returned(asked: Asked) -> None:
    frame, lines = asked.answer.to_frame(), added(asked)
    p = asked.explainer.predict_proba(frame)
    np.testing.assert_allclose(p[asked.target], lines["score_after"], rtol=0, atol=1e-6)
    before = asked.explainer.predict_proba(repeated(asked))
    np.testing.assert_allclose(before[asked.target], lines["score_before"], rtol=0, atol=1e-6)
    yes = p.to_numpy().argmax(axis=1) == list(p.columns).index(asked.target)
    assert (yes == lines["status"].isin(["valid", "already"])).all()


def test_a_row_that_is_already_there_is_returned_unchanged(asked: Asked) -> None:
    frame, status = asked.answer.to_frame(), added(asked)["status"].to_numpy()
    already = (asked.explainer.predict(asked.rows) == asked.target).to_numpy().repeat(OPTIONS)
    assert ((status == "already") == already).all()
    assert already.any()
    assert not already.all()
    own = repeated(asked)[already]
    pd.testing.assert_frame_equal(frame[own.columns][already], own, check_exact=True)


def test_changes_are_the_cells_that_differ(asked: Asked) -> None:
    frame, own, changes = asked.answer.to_frame(), repeated(asked), asked.answer.changes()
    assert list(changes.columns) == ["row", "option", "feature", "before", "after"]
    expected = []
    for at in range(len(frame)):
        for name in features(asked):
            before, after = own[name].iloc[at], frame[name].iloc[at]
            if repr(before) != repr(after):  # repr: missing is not equal to missing
                expected.append((own.index[at], at % OPTIONS, name, repr(before), repr(after)))
    shown = changes.assign(before=changes["before"].map(repr), after=changes["after"].map(repr))
    assert list(shown.itertuples(index=False, name=None)) == expected
    assert len(expected) > 0


def test_a_typical_answer_is_an_answer_too(asked: Asked) -> None:
    """With every part of the typical row in use, on tables of numbers or of categories alone, with three classes."""
    made = tdce.Explainer(DiffusionSearch(closeness=0.0, exemplars=5, beam=2), progress="silent")
    made.fitted_ = asked.explainer.fitted_
    answer = made.explain(asked.rows, target=asked.target, immutable=asked.immutable)
    assert set(answer.to_frame().iloc[:, -len(ADDED) :].set_axis(ADDED, axis=1)["status"]) <= {"valid", "already"}
    pd.testing.assert_frame_equal(asked.rows, asked.before)
    for name in asked.immutable:
        assert answer.to_frame()[name].tolist() == asked.before[name].tolist()


def test_along_the_dial_cost_falls_and_energy_rises(asked: Asked) -> None:
    """On tables of numbers or of categories alone, with strange values, with three classes; up to what the search may
    miss, which looks at some candidates only."""
    explainer, fitted = asked.explainer, asked.explainer.fitted
    task, y = fitted.task(asked.immutable), fitted.classes.index(asked.target)
    x = fitted.encoder.encode(asked.rows).float()
    objective = Objective(task, make_query(task, x, class_goals(y, x)), Noise(x, 0), torch.full((len(x),), y))
    found = []
    for closeness in (0.0, 0.25, 0.5, 0.75, 1.0):
        answer = explainer.explain(
            asked.rows, target=asked.target, immutable=asked.immutable, closeness=closeness, safety=0
        )
        x_cf = fitted.encoder.embed(answer.explanation.raw[:, 0]).float()
        everyone = torch.arange(len(x))
        found.append((objective.cost(x_cf, everyone).sum().item(), objective.energy(x_cf, everyone).sum().item()))
    cost, energy = np.array(found).T
    assert (np.diff(cost) <= 0.02 * cost[0]).all()
    assert (np.diff(energy) >= -0.02 * energy[0]).all()
    assert cost[0] > cost[-1]
    assert energy[0] < energy[-1]


def test_there_is_a_sentence_for_every_line(asked: Asked) -> None:
    assert len(asked.answer.sentences()) == len(asked.answer)
    assert all(asked.answer.sentences())


# Nothing to change, nothing to ask


def test_everything_immutable_is_infeasible_with_a_note(plain: tuple[tdce.Explainer, pd.DataFrame]) -> None:
    explainer, rows = plain
    frame = explainer.explain(rows, immutable=["age", "housing"]).to_frame()
    assert frame["status"].tolist() == ["infeasible"] * len(rows)
    assert frame["note"].str.startswith("every feature is immutable").all()  # some values lie outside, too
    assert (frame["score_before"] == frame["score_after"]).all()
    pd.testing.assert_frame_equal(frame[list(rows.columns)], rows, check_exact=True)


def test_a_table_of_constants_is_infeasible_with_a_note() -> None:
    frame = pd.DataFrame({"a": 3, "b": "u", "c": True, "y": ["no", "no", "no", "yes"] * 5})
    explainer = fitted(frame, "y", favourable="yes")
    found = explainer.explain(frame.head(3), n=OPTIONS).to_frame()
    assert set(found["status"]) == {"infeasible"}
    assert set(found["note"]) == {"no other allowed value for a, b, c"}
    assert found["y"].tolist() == ["no"] * 6  # the label is a column like any other here


def test_numbers_alone_and_a_model_that_accepts_nobody_make_a_best_effort() -> None:
    table = pd.DataFrame({"a": [1, 2, 3, 4] * 9, "y": ["no"] * 35 + ["yes"]})
    explainer = tdce.Explainer(hidden=8, steps=1, progress="silent").fit(table, label="y", favourable="yes")
    assert set(explainer.predict(table)) == {"no"}
    assert explainer.explain(table.head(2)).counts() == {"best_effort": 2}


def test_no_rows_have_an_empty_answer(plain: tuple[tdce.Explainer, pd.DataFrame]) -> None:
    explainer, rows = plain
    answer = explainer.explain(rows.head(0), n=OPTIONS)
    frame = answer.to_frame()
    assert (len(answer), answer.counts(), answer.sentences(), answer.lines) == (0, {}, [], [])
    assert list(frame.columns) == [*rows.columns, *ADDED]
    assert frame[rows.columns].dtypes.equals(rows.dtypes)
    assert answer.changes().empty


def test_a_missing_cell_where_fit_saw_none_is_answered(plain: tuple[tdce.Explainer, pd.DataFrame]) -> None:
    explainer, _ = plain
    rows = pd.DataFrame({"age": [None, 20.0], "housing": ["own", None]})
    frame = explainer.explain(rows, n=OPTIONS, immutable=["housing"]).to_frame()
    assert frame["housing"].isna().tolist() == [False, False, True, True]
    assert frame["status"].isin(["valid", "best_effort", "already"]).all()


def test_a_threshold_is_the_verdict(plain: tuple[tdce.Explainer, pd.DataFrame]) -> None:
    explainer, rows = plain
    for threshold in (0.01, 0.99):
        frame = explainer.explain(rows, n=OPTIONS, threshold=threshold).to_frame()
        yes = frame["status"].isin(["valid", "already"])
        assert (yes == (frame["score_after"] >= threshold)).all()


def test_without_a_favourable_class_the_other_of_two_is_the_target() -> None:
    frame = pd.DataFrame({"a": range(SIZE), "y": [i % 2 for i in range(SIZE)]})
    explainer = fitted(frame, "y")
    answer = explainer.explain(frame.head(4))
    assert answer.target.tolist() == [1 - v for v in explainer.predict(frame.head(4))]
    assert "already" not in answer.counts()


# Wrong questions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"immutable": ["Age"]}, ["immutable", "'Age'", "age, housing"]),
        ({"immutable": "age"}, ["immutable must be a list", "immutable=['age']"]),
        ({"target": "maybe"}, ["target 'maybe'", "no, yes"]),
        ({"n": 0}, ["n is 0", "from 1 to 100"]),
        ({"n": -1}, ["n is -1"]),
        ({"n": 1.5}, ["n is 1.5", "whole number"]),
        ({"n": "2"}, ["n is '2'", "whole number"]),
        ({"seed": None}, ["seed is None"]),
        ({"seed": 1.5}, ["seed is 1.5", "whole number"]),
        ({"threshold": "0.5"}, ["threshold is '0.5'"]),
        ({"immutable": 5}, ["immutable must be a list"]),
        ({"seed": -1}, ["seed is -1"]),
        ({"seed": 2**64}, ["seed is 18446744073709551616"]),
        ({"threshold": 0}, ["threshold is 0", "above 0 and at most 0.999998"]),
        ({"threshold": 1.5}, ["threshold is 1.5"]),
        ({"threshold": float("nan")}, ["threshold is nan"]),
        ({"closeness": 2}, ["closeness is 2", "from 0 to 1"]),
    ],
)
def test_a_wrong_question_is_named(
    plain: tuple[tdce.Explainer, pd.DataFrame], options: dict[str, Any], words: list[str]
) -> None:
    explainer, rows = plain
    with pytest.raises(InputError) as error:
        explainer.explain(rows, **options)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"age": 30, "housing": "own"}], ["rows must be a data frame, not list"]),
        (pd.Series({"age": 30, "housing": "own"}), ["rows must be a data frame, not Series"]),
        (pd.DataFrame({"age": [30]}), ["column 'housing'", "it has: age"]),
        (pd.DataFrame({"age": [30], "housing": ["boat"]}, index=["Jo"]), ["'housing'", "'boat'", "'Jo'", "own, rent"]),
        (pd.DataFrame({"age": ["old"], "housing": ["own"]}), ["'age'", "'old'", "numbers"]),
        (pd.DataFrame({"age": [np.inf], "housing": ["own"]}), ["'age'", "infinite"]),
    ],
)
def test_wrong_rows_are_named(plain: tuple[tdce.Explainer, pd.DataFrame], rows: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        plain[0].explain(rows)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_three_classes_need_a_target() -> None:
    frame = pd.DataFrame({"a": range(12), "y": list("abc") * 4})
    with pytest.raises(InputError, match="3 classes and no favourable one: name a target, one of a, b, c"):
        fitted(frame, "y").explain(frame)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"label": "Y"}, ["no label column 'Y'", "a, y"]),
        ({"y": ["u"] * 4}, {}, ["'y' has only the value u"]),
        ({"y": ["u", "v", None, "u"]}, {}, ["'y' is missing in 1 rows", "row 2"]),
        ({}, {"favourable": "w"}, ["favourable 'w'", "u, v"]),
        ({}, {"immutable": ["b"]}, ["no feature 'b'"]),
        ({}, {"immutable": "a"}, ["immutable must be a list"]),
        ({"a": None}, {}, ["'a'", "every cell is missing"]),
        ({"a": pd.Timestamp("2024-01-01")}, {}, ["'a'", "Timestamp"]),
    ],
)
def test_a_table_that_cannot_be_fitted_is_named(
    change: dict[str, Any], options: dict[str, Any], words: list[str]
) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "y": ["u", "v", "u", "v"]}).assign(**change)
    with pytest.raises(InputError) as error:
        tdce.Explainer(progress="silent").fit(frame, **{"label": "y", **options})
    assert all(word in str(error.value) for word in words), str(error.value)
