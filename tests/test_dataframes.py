"""Data frames of any make: what goes in comes out as the same kind, with its dtypes, and says the same as in pandas."""

import datetime as dt
import pickle
from decimal import Decimal

import lending
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fits import small
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tdce
from tdce import InputError
from tdce._core import convert_frame, open_frame

HOUSING = ["rent", "own", "with parents", "hotel"]


@pytest.fixture(scope="module")
def explainer():
    return lending.explainer()


@pytest.fixture(scope="module")
def people(explainer):
    return lending.refused(explainer, 8).reset_index(drop=True)


@pytest.fixture(scope="module")
def expected(explainer, people):
    return explainer.explain(people, n=2)


def odd(people: pd.DataFrame) -> pl.DataFrame:
    """The same people in polars' own types, beside columns that nobody learns."""
    return pl.from_pandas(people).with_columns(
        pl.col("income").cast(pl.Int16),
        pl.Series("debt", [Decimal(f"{each:.2f}") for each in people["debt"]], dtype=pl.Decimal(12, 2)),
        pl.col("housing").cast(pl.Enum(HOUSING)),
        pl.lit(dt.date(2020, 2, 29)).alias("since"),
        pl.Series("flag", [True, None] * 4),
        pl.Series("share", [0.5, None, float("nan"), 1.0] * 2),
        pl.Series("lists", [[1], None, [2, 3], []] * 2),
        pl.Series("when", [dt.datetime(1500, 1, 1, 12)] * 8),
        pl.Series("name", ["ä", None, "", "b"] * 2, dtype=pl.Categorical),
    )


def alike(one: pl.DataFrame, other: pd.DataFrame) -> None:
    """The same values, as plain Python has them."""
    for name in other.columns:
        cells = [float(cell) if isinstance(cell, Decimal) else cell for cell in one[name].to_list()]
        assert cells == [None if pd.isna(cell) else cell for cell in other[name].tolist()], name


def test_polars_comes_out_as_polars_with_its_dtypes_and_the_same_answer(explainer, people, expected):
    rows = odd(people)
    before = rows.clone()
    answer = explainer.explain(rows, n=2)
    out = answer.to_frame()
    assert isinstance(out, pl.DataFrame)
    assert {name: out.schema[name] for name in rows.columns} == dict(rows.schema)
    alike(out.select(expected.to_frame().columns), expected.to_frame())
    assert set(answer.changes()["feature"]) >= {"income", "debt"}  # Int16 and Decimal were changed
    assert out["row"].to_list() == [row for row in range(8) for _ in range(2)]
    assert rows.equals(before)
    untouched = [pl.col(name) for name in rows.columns[4:]]
    assert out[::2].select(untouched).equals(rows.select(untouched), null_equal=True)
    missing = out[::2]["share"]
    assert (missing.is_null().to_list(), missing.is_nan().to_list()[2]) == (rows["share"].is_null().to_list(), True)


def test_a_changed_category_keeps_its_dtype(explainer, people):
    rows = odd(people)[1:2]
    answer = explainer.explain(rows, immutable=["income", "debt", "age"], max_model_rows=5000)
    assert "housing" in answer.changes()["feature"].to_list()
    assert answer.to_frame().schema["housing"] == pl.Enum(HOUSING)
    narrow = rows.with_columns(pl.lit("rent").cast(pl.Enum(["rent"])).alias("housing"))
    found = explainer.explain(narrow, immutable=["income", "debt", "age"], max_model_rows=5000)
    assert found.to_frame()["housing"].to_list() == answer.to_frame()["housing"].to_list()  # which this Enum lacks


def test_a_lazy_frame_comes_out_lazy(explainer, people, expected):
    answer = explainer.explain(pl.from_pandas(people).lazy(), n=2)
    assert isinstance(answer.to_frame(), pl.LazyFrame)
    assert isinstance(answer.changes(), pl.LazyFrame)
    assert isinstance(explainer.plausibility(pl.from_pandas(people).lazy()), pl.Series)  # there is no lazy column
    alike(answer.to_frame().collect(), expected.to_frame())


@pytest.mark.parametrize("native", [pd.DataFrame, pl.DataFrame, pl.LazyFrame], ids=lambda kind: kind.__module__)
def test_a_frame_of_narwhals_comes_out_as_one(native, explainer, people, expected):
    given = people if native is pd.DataFrame else pl.from_pandas(people)
    rows = nw.from_native(given.lazy() if native is pl.LazyFrame else given)
    answer = explainer.explain(rows, n=2)
    for out in (answer.to_frame(), answer.changes()):
        assert isinstance(out, type(rows))
        assert isinstance(out.to_native(), native)
    assert isinstance(explainer.plausibility(rows), nw.Series)
    assert answer.to_frame().lazy().collect()["income"].to_list() == expected.to_frame()["income"].to_list()


def test_arrow_comes_out_as_arrow_with_dictionaries(explainer, people, expected):
    rows = pa.table({
        "income": pa.array(people["income"], pa.int32()),
        "debt": pa.array(people["debt"], pa.float64()),
        "housing": pa.array(people["housing"], pa.string()).dictionary_encode(),
        "age": pa.chunked_array([people["age"][:3].tolist(), people["age"][3:].tolist()], pa.uint8()),
        "tag": pa.array([b"\x00", None] * 4, pa.binary()),
        "money": pa.array([Decimal("1.10"), None] * 4, pa.decimal128(9, 2)),
    })  # fmt: skip
    out = explainer.explain(rows, n=2).to_frame()
    assert isinstance(out, pa.Table)
    assert out.schema.types[:6] == rows.schema.types
    assert out.column("tag").to_pylist() == [tag for tag in rows["tag"].to_pylist() for _ in range(2)]
    alike(pl.from_arrow(out.select(expected.to_frame().columns.tolist())), expected.to_frame())
    housing = explainer.explain(rows[1:2], immutable=["income", "debt", "age"], max_model_rows=5000)
    assert "housing" in housing.changes()["feature"].to_pylist()
    assert housing.to_frame().schema.field("housing").type == rows.schema.field("housing").type


def test_segments_and_burdens_come_out_as_the_rows_kind_and_say_the_same(explainer):
    rows = lending.table(80, seed=5).drop(columns="decision")
    expected = explainer.segments(rows, actions=2, max_cost=0.3)
    given = pl.from_pandas(rows).with_columns(pl.col("housing").cast(pl.Enum(HOUSING)), pl.lit(b"x").alias("tag"))
    found = explainer.segments(given, actions=2, max_cost=0.3)
    assert found.left().schema == given.schema
    assert found.left().height == len(expected.left()) > 0
    alike(found.left(), expected.left())
    alike(found.to_frame(), expected.to_frame())
    assert found.to_frame()["number"].to_list() == expected.to_frame().index.tolist()
    alike(found.people(), expected.people())
    alike(found.steps().drop("value"), expected.steps().drop(columns="value"))
    assert found.steps()["value"].to_list() == [str(value) for value in expected.steps()["value"]]
    alike(found.burden("housing").to_frame(), expected.burden("housing").to_frame())
    answer = explainer.explain(given)
    assert isinstance(answer.burden("housing").to_frame(), pl.DataFrame)
    assert explainer.segments(answer, actions=2).left().schema == given.schema
    arrow = explainer.segments(given.to_arrow(), actions=2, max_cost=0.3)
    frames = (arrow.to_frame(), arrow.people(), arrow.steps(), arrow.left(), arrow.burden("housing").to_frame())
    assert {type(frame) for frame in frames} == {pa.Table}
    lazy = explainer.segments(given.lazy(), actions=2, max_cost=0.3)
    assert isinstance(lazy.left(), pl.LazyFrame)
    assert repr(lazy) == repr(expected)
    assert lazy._repr_html_() == expected._repr_html_()


def test_whole_numbers_and_flags_beside_missing_ones_stay_what_they_are():
    given = pl.DataFrame({"i": pl.Series([2**62 + 1, None], dtype=pl.Int64), "u": pl.Series([7, None], dtype=pl.UInt8),
                          "b": [True, None], "n": [None, None]})  # fmt: skip
    frame, kind = open_frame(given)
    assert list(map(str, frame.dtypes)) == ["Int64", "UInt8", "boolean", "null[pyarrow]"]
    assert frame["i"][0] == 2**62 + 1
    assert kind.frame(frame, frame, np.arange(2)).equals(given, null_equal=True)


def test_changes_and_reasons_are_of_the_same_kind(explainer, people, expected):
    answer = explainer.explain(pl.from_pandas(people), n=2)
    changes, reasons = answer.changes(), answer.reasons()
    assert dict(changes.schema) == {"row": pl.Int64, "option": pl.Int64, "feature": pl.String, "before": pl.String,
                                    "after": pl.String}  # fmt: skip
    assert changes["after"].to_list() == [str(cell) for cell in expected.changes()["after"]]
    assert reasons.to_pandas().equals(expected.reasons().astype({"feature": "str"}))
    none = explainer.explain(pl.from_pandas(people.head(0)))
    assert none.changes().shape == (0, 5)
    assert none.to_frame().shape == (0, 12)


def test_predictions_and_plausibility_are_of_the_same_kind(explainer, people):
    rows = pl.from_pandas(people)
    for call in (explainer.predict, explainer.plausibility):
        assert isinstance(call(rows), pl.Series)
        assert isinstance(call(rows.to_arrow()), pa.ChunkedArray)
        assert call(rows).to_list() == call(people).tolist() == call(rows.to_arrow()).to_pylist()
    assert explainer.predict_proba(rows).to_pandas().equals(explainer.predict_proba(people))
    assert explainer.population(rows) == explainer.population(people)
    near = explainer.trade_off(rows.head(2), closeness=[0.5, 1.0])
    assert isinstance(near[1.0].to_frame(), pl.DataFrame)


def test_an_answer_of_another_kind_is_a_plain_value(explainer, people):
    answer = explainer.explain(odd(people), n=2)
    again = pickle.loads(pickle.dumps(answer))
    assert again.to_frame().equals(answer.to_frame(), null_equal=True)
    assert answer.sentences() == explainer.explain(people, n=2).sentences()
    assert "<table" in answer._repr_html_()


def test_a_table_is_learned_alike_whatever_made_it(explainer):
    def learned(table):
        return tdce.Explainer(hidden=8, steps=5, progress="silent").fit(table, label="decision", favourable="yes")

    table = lending.table(200)
    first = learned(table)
    for other in (pl.from_pandas(table).lazy(), pa.Table.from_pandas(table)):
        assert learned(other).provenance.artefact == first.provenance.artefact
    assert tdce.Schema.infer(pl.from_pandas(table), "decision") == tdce.Schema.infer(table, "decision")
    answer = first.explain(pl.from_pandas(table.head(4)))
    assert first.evaluate(answer, pl.from_pandas(table)) == first.evaluate(first.explain(table.head(4)), table)


def test_an_array_with_names_is_a_table(explainer, people, expected):
    table = lending.table(200)
    given = table.to_numpy(dtype=object)
    learned = tdce.Explainer(hidden=8, steps=5, progress="silent").fit(
        given, label="decision", favourable="yes", columns=list(table.columns)
    )
    assert learned.schema.names == ("income", "debt", "housing", "age")
    out = explainer.explain(people.to_numpy(dtype=object), n=2).to_frame()  # features in the schema's order
    assert out.equals(expected.to_frame().astype({"housing": out["housing"].dtype}))
    with pytest.raises(InputError, match=r"an array of shape \(8, 2\), but there are 4 names of columns"):
        explainer.explain(people.to_numpy(dtype=object)[:, :2])
    with pytest.raises(InputError, match="must be a data frame, not ndarray"):
        tdce.Explainer(progress="silent").fit(given, label="decision")


@pytest.mark.parametrize("wrong", [[1, 2], "loans.csv", {"income": [1]}, pl.Series([1])], ids=repr)
def test_what_is_no_frame_is_named(explainer, wrong):
    with pytest.raises(InputError, match=f"rows must be a data frame, not {type(wrong).__name__}"):
        explainer.explain(wrong)


def test_a_column_that_is_missing_or_of_python_objects_is_named(explainer, people):
    with pytest.raises(InputError, match="column 'age' is not in the table"):
        explainer.explain(pl.from_pandas(people).drop("age"))
    with pytest.raises(InputError, match="'thing' holds Python objects; give the column a type of polars's own"):
        explainer.explain(pl.from_pandas(people).with_columns(pl.Series("thing", [object()] * 8, dtype=pl.Object)))
    table = pa.Table.from_pandas(people)
    with pytest.raises(InputError, match="column 'age' appears twice"):
        explainer.explain(table.append_column("age", table["age"]))


# ---- models


class WantsPolars:
    """Asks polars' own questions of a frame, and wants the dtypes it was trained on."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame):
        assert isinstance(frame, pl.DataFrame)
        assert frame.schema["housing"] == pl.Enum(HOUSING)
        assert frame.schema["age"] == pl.Int8
        good = frame.select(
            (pl.col("income") - pl.col("debt") + 400 * (pl.col("housing") == "own") - 1000) / 300
        ).to_series()
        p = 1 / (1 + np.exp(-good.to_numpy()))
        return np.column_stack([1 - p, p])


def own_types(table: pd.DataFrame) -> pl.DataFrame:
    return pl.from_pandas(table).with_columns(pl.col("housing").cast(pl.Enum(HOUSING)), pl.col("age").cast(pl.Int8))


def test_a_model_gets_the_kind_of_frame_that_fit_was_given(monkeypatch, tmp_path):
    small(monkeypatch)
    table = own_types(lending.table(150))
    explainer = tdce.Explainer(model=WantsPolars(), progress="silent")
    explainer.fit(table, label="decision", favourable="yes")
    rows = table.drop("decision").filter(explainer.predict(table) == "no").head(5)
    answer = explainer.explain(rows)
    assert answer.counts() == {"valid": 5}
    out = answer.to_frame()
    assert (WantsPolars().predict_proba(out)[:, 1] > 0.5).all()
    explainer.save(tmp_path / "polars.tdce")
    again = tdce.Explainer.load(tmp_path / "polars.tdce", model=WantsPolars())
    assert again.explain(rows).to_frame().equals(out)
    with pytest.raises(InputError, match="WantsPolars fails: AssertionError"):
        tdce.Explainer(model=WantsPolars(), progress="silent").fit(lending.table(60), label="decision")


def test_a_model_that_fails_with_polars_gets_pandas(monkeypatch):
    small(monkeypatch)

    def wants_pandas(frame):
        return frame["income"].clip(0, 5000).to_numpy() - frame.loc[:, "debt"].to_numpy()

    explainer = tdce.Explainer(model=wants_pandas, progress="silent")
    explainer.fit(pl.from_pandas(lending.table(200)).drop("decision"), favourable=tdce.Range(low=1000))
    assert explainer.fitted.decides.models[0].library == "pandas"

    def fails(frame):
        raise KeyError("income")

    with pytest.raises(InputError, match="the model fails fails: KeyError: 'income'; it gets polars data frames"):
        tdce.Explainer(model=fails, progress="silent").fit(pl.from_pandas(lending.table(60)), label="decision")


@pytest.mark.parametrize(("given", "output"), [("pandas", "polars"), ("polars", "pandas"), ("polars", "polars")])
def test_a_pipeline_with_set_output_is_explained(given, output, monkeypatch):
    small(monkeypatch)
    table = lending.table(150)
    frame = table if given == "pandas" else pl.from_pandas(table)
    rows = table.drop(columns="decision") if given == "pandas" else frame.drop("decision")
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["housing"]), (StandardScaler(), ["income", "debt", "age"])
    )
    model = make_pipeline(encode, LogisticRegression()).set_output(transform=output).fit(rows, table["decision"])
    explainer = tdce.Explainer(model=model, progress="silent").fit(frame, label="decision", favourable="yes")
    assert explainer.fitted.decides.models[0].library == given
    refused = (
        rows[model.predict(rows) == "no"][:4] if given == "pandas" else rows.filter(model.predict(rows) == "no")[:4]
    )
    answer = explainer.explain(refused)
    found = answer.to_frame()[list(rows.columns)]
    assert answer.counts() == {"valid": 4}
    assert (model.predict(found) == "yes").all()
    ensemble = explainer.retrain(frame, models=2)  # clones are trained on the same kind
    assert len(ensemble) == 2


def test_pandas_frames_are_converted_with_their_categories():
    frame = pd.DataFrame({"size": pd.Categorical(["s", "l"], ["s", "m", "l"], ordered=True),
                          "kind": pd.Categorical(["u", "v"]), "n": np.array([1, 2], dtype=np.int8)})  # fmt: skip
    assert dict(convert_frame(frame, "polars").schema) == {"size": pl.Enum(["s", "m", "l"]), "kind": pl.Categorical,
                                                           "n": pl.Int8}  # fmt: skip
    assert convert_frame(frame, "pandas") is frame
    assert pa.types.is_dictionary(convert_frame(frame, "pyarrow").schema.field("kind").type)
