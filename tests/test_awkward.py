"""Awkward tables from end to end: a line for every row and option, in the table's own columns, dtypes and index."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import tdce
from tdce.answer import Answer
from tdce.errors import InputError
from tdce.schema import Schema

SIZE = 40  # rows of a table: too few to learn anything, enough to go wrong
OPTIONS = 2
ADDED = ["row", "option", "status", "score_before", "score_after", "note"]


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


def ask(explainer: tdce.Explainer, rows: pd.DataFrame, target: Any, immutable: list[Any], **options: Any) -> Asked:
    before = rows.copy(deep=True)
    answer = explainer.explain(rows, target=target, n=OPTIONS, immutable=immutable, **options)
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
    gone = np.arange(SIZE) % 5 == 1
    amount = rng.integers(0, 90, SIZE)
    frame = pd.DataFrame({
        "": pd.Series(rng.integers(0, 99, SIZE) / 10, dtype="float32"),
        0: pd.Series(amount).astype("Int64").mask(gone),
        "a b": pd.Series(rng.choice(["ü", "v,", 'w"'], SIZE), dtype=object).mask(gone, None),
        "ü,;": pd.Series(rng.choice(["x", "y"], SIZE), dtype="string[pyarrow]"),
        'say "hi"': pd.Series(rng.random(SIZE) < 0.5, dtype="boolean").mask(gone),
        "two\nlines": pd.Series([Decimal(int(v)).scaleb(-2) for v in rng.integers(0, 999, SIZE)], dtype=object),
        "arrow": pd.Series(rng.integers(0, 99, SIZE) / 4, dtype="double[pyarrow]").mask(gone),
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
    return ask(fitted(frame, "grade"), rows, "A", [], threshold=0.5)


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
    explainer = fitted(frame, "y", favourable="yes")
    rows = frame.drop(columns="y")
    return explainer, rows[(explainer.predict(rows) == "no").to_numpy()].head(4)


def features(asked: Asked) -> list[Any]:
    return list(asked.explainer.schema.names)


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
    pd.testing.assert_frame_equal(frame[others], asked.rows[others].loc[:, :].iloc[np.repeat(np.arange(len(asked.rows)), OPTIONS)])


def test_the_rows_asked_about_are_not_modified(asked: Asked) -> None:
    asked.answer.to_frame().iloc[0, 0] = None
    pd.testing.assert_frame_equal(asked.rows, asked.before, check_exact=True)


def test_immutable_features_come_back_bit_for_bit(asked: Asked) -> None:
    frame = asked.answer.to_frame()
    for name in asked.immutable:
        own = asked.rows[name].repeat(OPTIONS)
        pd.testing.assert_series_equal(frame[name], own, check_exact=True)
        assert [type(v) for v in frame[name]] == [type(v) for v in own]


def test_proposed_values_are_within_the_table(asked: Asked) -> None:
    encoder = asked.answer.encoder
    raw, own = encoder.read(asked.answer.to_frame()), encoder.read(asked.rows).repeat(OPTIONS, axis=0)
    for i, feature in enumerate(encoder.schema):
        changed = raw[~((raw[:, i] == own[:, i]) | (np.isnan(raw[:, i]) & np.isnan(own[:, i]))), i]
        assert not np.isnan(changed).any(), feature.name
        if isinstance(feature, tdce.schema.Numeric):
            assert (changed >= feature.low).all(), feature.name
            assert (changed <= feature.high).all(), feature.name
            np.testing.assert_array_equal(feature.round(changed), changed)


def test_the_verdict_is_the_models_on_exactly_the_values_returned(asked: Asked) -> None:
    frame, lines = asked.answer.to_frame(), added(asked)
    p = asked.explainer.predict_proba(frame)
    np.testing.assert_allclose(p[asked.target], lines["score_after"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        asked.explainer.predict_proba(asked.rows)[asked.target].repeat(OPTIONS), lines["score_before"], rtol=0, atol=1e-6
    )
    yes = p.to_numpy().argmax(axis=1) == list(p.columns).index(asked.target)
    assert (yes == lines["status"].isin(["valid", "already"])).all()


def test_a_row_that_is_already_there_is_returned_unchanged(asked: Asked) -> None:
    frame, status = asked.answer.to_frame(), added(asked)["status"].to_numpy()
    already = (asked.explainer.predict(asked.rows) == asked.target).to_numpy().repeat(OPTIONS)
    assert ((status == "already") == already).all()
    assert already.any()
    assert not already.all()
    own = asked.rows.iloc[np.repeat(np.arange(len(asked.rows)), OPTIONS)]
    pd.testing.assert_frame_equal(frame[asked.rows.columns][already], own[already], check_exact=True)


def test_changes_are_the_cells_that_differ(asked: Asked) -> None:
    frame, changes = asked.answer.to_frame(), asked.answer.changes()
    assert list(changes.columns) == ["row", "option", "feature", "before", "after"]
    expected = []
    for at in range(len(frame)):
        for name in features(asked):
            before, after = asked.rows[name].iloc[at // OPTIONS], frame[name].iloc[at]
            if not (before is after or (pd.isna(before) and pd.isna(after)) or (pd.notna(before) and before == after)):
                expected.append((asked.rows.index[at // OPTIONS], at % OPTIONS, name, before, after))
    assert [tuple(None if v is pd.NA or v is None else v for v in line) for line in changes.itertuples(index=False)] == [
        tuple(None if v is pd.NA or v is None else v for v in line) for line in expected
    ]
    assert len(expected) > 0


def test_there_is_a_sentence_for_every_line(asked: Asked) -> None:
    assert len(asked.answer.sentences()) == len(asked.answer)
    assert all(asked.answer.sentences())


def test_the_same_question_has_the_same_answer(asked: Asked) -> None:
    if asked.target == "A":
        pytest.skip("asked with a threshold")
    again = asked.explainer.explain(asked.rows.iloc[::-1], target=asked.target, n=OPTIONS, immutable=asked.immutable)
    frame = again.to_frame()
    turned = np.arange(len(frame)).reshape(-1, OPTIONS)[::-1].reshape(-1)
    pd.testing.assert_frame_equal(frame.iloc[turned], asked.answer.to_frame(), check_exact=True)
