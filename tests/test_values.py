"""Values as people write them: grids beside noise and special values, blanks, slips, and tables without a header."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fits import SHORT, small
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import tdce
from tdce import InputError, Numeric, Schema
from tdce._core import as_numbers, plain, show
from tdce.cli import app
from tdce.datasets.files import Dialect, encode_table, read_table
from tdce.models.endpoint import _records
from tdce.schema.columns import infer_column
from tdce.schema.columns.grid import is_believable
from tdce.schema.encoder import Encoder
from tdce.schema.feasible import FeasibleSet
from tdce.schema.headers import find_headerless
from tdce.schema.profiling import profile_columns


def numeric(values: Any) -> Numeric:
    column = infer_column(pd.Series(values, name="x"))
    assert isinstance(column, Numeric)
    return column


# Grids


@given(
    st.integers(0, 5),
    st.sampled_from([1, 2, 5, 25]),
    st.lists(st.integers(-10_000, 10_000), min_size=30, max_size=60, unique=True),
    st.integers(0, 2**32 - 1),
)
def test_noise_changes_no_grid(decimals: int, multiple: int, units: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    exact = np.array([float(Decimal(multiple * unit).scaleb(-decimals)) for unit in units])
    clean = numeric(exact)
    noise = rng.choice([0, 1, -3, 40], len(exact)) * np.spacing(exact)
    noise[exact == 0] = np.spacing(np.abs(exact).max())
    for noisy in (exact + noise, (exact + 0.1) - 0.1, exact.astype(np.float32).astype(np.float64)):
        column = numeric(noisy)
        assert (column.step, column.low, column.high, column.levels) == (
            clean.step,
            clean.low,
            clean.high,
            clean.levels,
        )
        assert column.odd == 0
        frame = pd.DataFrame({"x": noisy})
        feasible = FeasibleSet.of(Encoder.fit(frame, Schema((column,))), frame)
        np.testing.assert_array_equal(feasible.snap(feasible.x)[:, 0], noisy)  # its own cell, to the bit
        assert not feasible.allows(0, exact[noisy != exact], np.flatnonzero(noisy != exact)).any()  # noise is no change
        answers = feasible.snap(feasible.x + 0.3)[:, 0]
        answers = answers[answers != noisy]
        places = max(0, -Decimal(str(column.step)).normalize().as_tuple().exponent)
        assert all(repr(float(f"{value:.{places}f}")) == repr(float(value)) for value in answers)


def test_a_value_of_arithmetic_is_a_decimal() -> None:
    column = numeric([1.7069999999999999, 0.1 + 0.2, 2.5, 9.118])
    assert (column.step, column.low, column.high) == (0.001, 0.3, 9.118)


@pytest.mark.parametrize(
    ("values", "special", "step"),
    [
        (range(60), [99.9], 1),  # one odd limit in a small table
        (range(12), [4.5], 1),
        (range(9), [4.5], 0.1),  # too few to be sure
        (range(60), [99.9, 0.5], 1),
        (range(60), [99.9, 0.7, 7.3], 0.1),
        ([*range(60)] * 10, [99.9] * 40, 1),
        ([*range(60)] * 10, [99.9] * 90, 0.1),  # too many to be special
        (range(0, 500_000, 1000), [500_001] * 25, 1000),  # a cap
        (range(0, 300, 5), [299], 5),
        ([0] * 995, [0.37, 0.12, 0.05], 0.01),  # 0 is on any grid
    ],
)
def test_a_few_special_values_do_not_make_the_grid_finer(values: Any, special: list[float], step: float) -> None:
    column = numeric([*values, *special])
    assert column.step == step
    assert column.odd == (0 if step < 1 else len(special))
    assert column.high in (*values, *special)
    frame = pd.DataFrame({"x": pd.Series([*values, *special], dtype=float)})
    feasible = FeasibleSet.of(Encoder.fit(frame), frame)
    assert feasible.snap(feasible.x).ravel().tolist() == frame["x"].tolist()


# Narrow floats


def test_no_float32_of_a_decimal_arrives_anywhere() -> None:
    narrow = pd.DataFrame({"x": pd.Series([0.1, 0.7, 2.3], dtype="float32")})
    coded = narrow["x"].astype("category")
    column = infer_column(coded)
    assert isinstance(column, tdce.Categorical)
    assert column.categories == (0.1, 0.7, 2.3)
    own = column.read(coded)
    assert Numeric("x", 0, 9, 0.1).read(coded).tolist() == [0.1, 0.7, 2.3]
    assert column.write(own[::-1], own, coded).astype("float32").tolist() == narrow["x"].tolist()[::-1]
    assert as_numbers(pd.Series([np.float32(0.1), 0.7], dtype=object)).tolist() == [0.1, 0.7]
    assert (plain(np.float32(0.1)), plain(np.float16(0.1)), show(np.float32(0.1))) == (0.1, 0.1, "0.1")
    assert encode_table(Path("t.csv"), narrow, Dialect(";", ",")) == b"x\n0,1\n0,7\n2,3\n"
    assert _records(narrow) == [{"x": 0.1}, {"x": 0.7}, {"x": 2.3}]


# A whole answer


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rate = rng.integers(5, 90, 300) / 10 + 0.1 - 0.1  # with noise
    rate[7] = 9.533e14
    debt = rng.integers(0, 40, 300).astype(object)
    debt[:5] = " "
    job = rng.choice(["clerk", "cook"], 300).astype(object)
    job[5:20] = "  "
    narrow = (rng.integers(0, 90, 300) / 10).astype("float32")
    frame = pd.DataFrame({"rate": rate, "debt": debt, "job": job, "narrow": narrow})
    return frame.assign(y=np.where((rate < 5) & (narrow < 6), "yes", "no"))


@pytest.fixture(scope="module")
def explainer(table: pd.DataFrame) -> tdce.Explainer:
    with pytest.MonkeyPatch.context() as patch:
        small(patch)
        return tdce.Explainer(plans=SHORT, progress="silent").fit(table, label="y", favourable="yes")


def test_an_answer_is_written_as_the_table_is(explainer: tdce.Explainer, table: pd.DataFrame) -> None:
    rows = table[table["y"] == "no"].drop(columns="y").head(12)
    assert 7 in rows.index
    answer = explainer.explain(rows)
    found = answer.to_frame()
    for name in ("rate", "narrow"):
        changed = found[name].to_numpy() != rows[name].to_numpy()
        assert changed.any()
        assert all(re.fullmatch(r"\d+\.\d", str(value)) for value in as_numbers(found[name][changed]))
    assert found["job"].tolist().count("  ") > 0
    texts = [*answer.sentences(), *(str(cell) for cell in answer.changes()["after"])]
    assert not any(re.search(r"\d\.\d{4}", text.split("e+")[0]) for text in texts)
    assert not any("“ " in text for text in texts)


def test_slips_are_named_and_neither_widen_the_range_nor_the_scale(
    explainer: tdce.Explainer, table: pd.DataFrame
) -> None:
    column = explainer.schema["rate"]
    assert isinstance(column, Numeric)
    assert 0.5 <= column.low < column.high <= 8.9
    assert column.step == 0.1
    assert [hint for hint in explainer.hints if "belief" in hint] == [
        f"'rate' is beyond belief in 1 row: 9.53e+14, beside a median of {np.median(table['rate']):,.15g}; such a "
        "value is never proposed: correct the cells, or leave them empty"
    ]
    fitted = Encoder.fit(table.drop(columns="y")).columns[0]
    assert fitted.arrays()["scale.{}.raw"].max() < 9  # type: ignore[index]
    kept = explainer.explain(table.drop(columns="y").iloc[[7]], immutable=["rate"]).to_frame()
    assert kept["rate"].tolist() == [9.533e14]


@pytest.mark.parametrize(
    ("slips", "named"),
    [
        ([100_369.0], True),
        ([-1e9, 100_369.0, 103.0e3], True),
        ([1e9] * 30, False),  # in many rows: a limit or a code
        ([3.0], False),
        ([], False),
    ],
)
def test_what_is_beyond_belief(slips: list[float], named: bool) -> None:
    density = np.random.default_rng(0).normal(0.995, 0.003, 800).round(5)
    values = np.r_[density, slips, np.nan]
    assert (~is_believable(values)).sum() == (len(slips) if named else 0)
    assert numeric(values).high == (density.max() if named else np.nanmax(values))


def test_long_tails_are_believed() -> None:
    rng = np.random.default_rng(0)
    for draw in (rng.lognormal(8, 2, 5000), rng.pareto(1.2, 5000), rng.standard_t(2, 5000), rng.exponential(1, 50)):
        assert is_believable(draw).all()
    assert is_believable(np.where(rng.random(5000) < 0.97, 0.0, rng.lognormal(8, 1, 5000))).all()


# Blanks


@pytest.mark.parametrize("dtype", [object, "str", "category", "string[pyarrow]"])
def test_spaces_are_missing(dtype: Any) -> None:
    words = pd.Series(["a", " ", "b", "", "a\t"], dtype=dtype, name="x")
    column = infer_column(words)
    assert column.missing
    assert column.describe().startswith("3 categories: a, a\t, b")
    own = column.read(words)
    assert np.isnan(own).tolist() == [False, True, False, True, False]
    pd.testing.assert_series_equal(column.write(own, own, words), words)
    changed = np.where(np.arange(5) == 0, own[2], own)
    assert column.write(changed, own, words).tolist()[1:] == words.tolist()[1:]
    blank = tdce.Categorical("x", (" ", "a", "b", "a\t", ""))  # somebody says that they are categories
    assert not np.isnan(blank.read(words)).any()


def test_spaces_among_numbers_and_in_a_label_are_missing(tmp_path: Path) -> None:
    column = numeric([1.5, " ", 2.5, 3])
    assert (column.missing, column.step) == (True, 0.1)
    (tmp_path / "t.csv").write_text("x,z\n1.5,a\n ,b\n2.5,a\n3,b\n")
    frame = read_table(tmp_path / "t.csv")
    assert infer_column(frame["x"]) == column
    with pytest.raises(InputError, match="the label 'y' is missing in 1 rows"):
        tdce.Explainer().fit(pd.DataFrame({"x": [1, 2, 3], "y": ["a", " ", "b"]}), label="y")


# Tables without a header

IRIS = "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n4.7,3.2,1.3,0.2,setosa\n" * 3 + "7.0,4.1,4.7,1.4,versi\n"
TITANIC = (
    "1,0,3,Braund,male,22,7.25\n2,1,1,Cumings,female,38,71.3\n3,0,3,Heikkinen,male,26,6.9\n4,1,1,Futrelle,female,22,5\n"
)


@pytest.mark.parametrize("text", [IRIS, TITANIC + TITANIC.replace("Br", "K")])
def test_a_table_without_a_header_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"no header: the names .* look like values of their columns; add a line"):
        read_table(path)
    assert isinstance(CliRunner().invoke(app, ["schema", str(path)]).exception, InputError)  # exit code 2
    width = text.split("\n")[0].count(",") + 1
    path.write_text(",".join(f"c{i}" for i in range(width)) + "\n" + text)
    assert len(read_table(path)) == text.count("\n")


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("2019,2020,2021", "2019,2020,2021"),  # years, or numbers from 0 on
        ("0,1,2", "0,1,2"),
        ("a,b,c", "1,2,3"),
        ("age,5.5,word", "3,5.5,word"),
        ("city,job", "Ulm,cook"),
        ("yes,job", "yes,cook"),
    ],
)
def test_names_are_no_data(tmp_path: Path, header: str, row: str) -> None:
    (tmp_path / "t.csv").write_text("\n".join([header, *[row] * 9, ""]))
    assert list(read_table(tmp_path / "t.csv").columns) == header.split(",")


def test_a_header_that_the_schema_knows_is_one(tmp_path: Path) -> None:
    schema = Schema((tdce.Categorical("A", ("A", "B")), tdce.Categorical("B", ("A", "B"))))
    (tmp_path / "t.csv").write_text("A,B\n" + "A,B\nB,A\n" * 5)
    assert len(read_table(tmp_path / "t.csv", schema)) == 10
    with pytest.raises(InputError, match="no header"):
        read_table(tmp_path / "t.csv")


def test_a_frame_without_a_header_is_a_hint(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(IRIS * 3)
    frame = pd.read_csv(tmp_path / "t.csv")
    (hint, *_) = profile_columns(frame, Schema.infer(frame))
    assert hint.startswith("the table seems to have no header: the names '5.1', '3.5', '1.4', '0.2', … (1 more) look")


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_no_named_table_of_numbers_is_taken_for_one_without_a_header(width: int, seed: int) -> None:
    cells = np.random.default_rng(seed).normal(50, 20, (30, width)).round(1).astype(str)
    assert find_headerless([f"x{i}" for i in range(width)], cells.T.tolist()) is None
    assert find_headerless(cells[0].tolist(), np.r_[cells, cells[:1]].T.tolist()) is not None
