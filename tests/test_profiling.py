"""Findings about the columns of a table: each is reported, and nothing is reported on a plain table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import lending
import numpy as np
import pandas as pd
import pytest
from fits import SHORT, small
from typer.testing import CliRunner

import tdce
from tdce import Categorical, InputError, Numeric, Schema
from tdce.cli import app
from tdce.datasets.files import read_table
from tdce.diffusion import SamplingPlan
from tdce.schema.constraints.laws import Determines, Follows, Order
from tdce.schema.identifiers import find_pass_through, split_name
from tdce.schema.profiling import profile_columns

ROWS = 600


def said(frame: pd.DataFrame, label: str | None = "y", **settings: Any) -> list[str]:
    some = {name for names in settings.values() for name in names}
    schema, passed = Schema.infer(frame, label, **settings), find_pass_through(frame, label, some)
    return profile_columns(frame, schema, label, passed, proposed=schema.immutable)


def plain(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Nothing to say about it."""
    rng = np.random.default_rng(seed)
    income = rng.permutation(np.unique((rng.lognormal(8, 0.5, 2 * rows) * 100).astype(int))[:rows])  # all different
    frame = pd.DataFrame({
        "income": income,
        "rate": rng.normal(5, 1, rows).round(2),
        "rooms": rng.poisson(1, rows),
        "housing": rng.choice(["rent", "own", "free"], rows),
        "average_stage": rng.integers(1, 6, rows),
    })  # fmt: skip
    return frame.assign(y=np.where(frame["rate"] + rng.normal(0, 1, rows) > 5, "no", "yes"))


def full() -> pd.DataFrame:
    """With something of everything."""
    rng = np.random.default_rng(1)
    job, days = rng.integers(1, 6, ROWS), pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.permutation(ROWS), "D")
    bad = rng.random(ROWS) < np.array([0.1, 0.8, 0.2, 0.9, 0.1])[job - 1]
    city = rng.choice(["Ulm", "Bonn", "Jena"], ROWS)
    frame = pd.DataFrame({
        "customer": 1 + rng.permutation(ROWS),
        "account_id": rng.choice(10**6, ROWS, replace=False),
        "opened": 7 * np.arange(ROWS) + rng.integers(0, 5, ROWS),
        "iban": [f"DE{i:08}" for i in rng.permutation(ROWS)],
        "since": days.strftime("%d.%m.%Y"),
        "remark": [f"called on day {i} about {city}" for i, city in zip(rng.permutation(ROWS), city, strict=True)],
        "due": rng.choice(["2024-01-31", "2024-02-29", "2024-03-31"], ROWS),
        "reason": [f"reason number {i} of many" for i in rng.integers(0, 80, ROWS)],
        "currency": "EUR",
        "salary": rng.normal(3000, 500, ROWS).round(2),
        "city": city,
        "branch": pd.Series(city).map({"Ulm": 30, "Bonn": 10, "Jena": 20}),
        "reminders": np.where(bad, 3, 0) + rng.integers(0, 3, ROWS),
        "job": job,
        "Sex": rng.choice(["f", "m"], ROWS),
        "nativeCountry": rng.choice(["DE", "FR"], ROWS),
        "recoveries": rng.integers(0, 9, ROWS) * 10,
    })  # fmt: skip
    return frame.assign(pay=frame["salary"], y=np.where(bad, "bad", "good"))


def test_everything_is_found_and_nothing_else() -> None:
    assert said(full()) == [
        "'customer' is a row number: passed through, not learned; to learn it: learn=['customer'] or --learn customer",
        "'account_id' looks like an id: a different whole number in every row: passed through, not learned; "
        "to learn it: learn=['account_id'] or --learn account_id",
        "'opened' looks like an id: a whole number that increases from row to row: passed through, not learned; "
        "to learn it: learn=['opened'] or --learn opened",
        "'iban' looks like an id: 600 different values in 600 rows: passed through, not learned; "
        "to learn it: learn=['iban'] or --learn iban",
        f"'since' holds dates as text, such as {full()['since'][0]}: passed through, not learned; "
        "to learn them, turn them into numbers, e.g. days before today",
        "'remark' holds free text: passed through, not learned; "
        "to learn its 600 texts as categories: learn=['remark'] or --learn remark",
        "'due' holds dates as text, such as 2024-01-31, and is learned as categories; "
        "turn them into numbers, e.g. days before today",
        "'reason' holds free text and is learned as 80 categories; turn it into fewer, or drop the column",
        "'currency' is 'EUR' in every row and says nothing; drop the column",
        "'pay' says the same as 'salary', value by value; drop one of them",
        "'branch' says the same as 'city', value by value; drop one of them",
        "'reminders' alone predicts 'y' in 100.0 % of the rows (always the commonest class: "
        f"{100 * (full()['y'] == 'good').mean():.1f} %); if it is known only afterwards, drop the column",
        "'job' looks like a code: few whole numbers, with which 'y' neither rises nor falls; "
        "to learn it as categories: categorical=['job'] or --categorical job",
        "'Sex' is a protected attribute: not changed; to allow it: actionable=['Sex'] or --actionable Sex",
        "'nativeCountry' is a protected attribute: not changed; to allow it: actionable=['nativeCountry'] "
        "or --actionable nativeCountry",
        "'recoveries' looks like an outcome of the future; to keep answers from changing it: immutable=['recoveries'] "
        "or --immutable recoveries",
    ]


def test_a_finding_that_was_followed_is_not_reported_again() -> None:
    frame = full()[["customer", "job", "Sex", "salary", "y"]]
    schema = Schema.infer(frame, "y", learn=["customer"], categorical=["job"]).freeze("Sex")
    assert schema.names == ("customer", "job", "Sex", "salary")
    assert schema["job"] == Categorical("job", (1, 2, 3, 4, 5))
    assert profile_columns(frame, schema, "y") == []


@pytest.mark.parametrize("rows", [2, 10, 60, 600])
@pytest.mark.parametrize("label", ["y", None])
def test_nothing_is_reported_about_a_plain_table(rows: int, label: str | None) -> None:
    frame = plain(rows)
    assert said(frame, label) == []
    assert said(frame.sort_values("income"), label) == []


def test_shuffled_labels_are_no_leak_and_make_no_code() -> None:
    rng = np.random.default_rng(2)
    frame = full()[["reminders", "job", "salary", "city", "y"]].assign(ward=rng.integers(0, 250, ROWS).astype(str))
    schema = Schema.infer(frame, "y")
    for _ in range(20):
        assert profile_columns(frame.assign(y=rng.permutation(frame["y"])), schema, "y") == []
        assert profile_columns(frame.assign(y=rng.random(ROWS) < 0.06), schema, "y") == []


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (np.arange(10) * 3 + 21, "age_at_entry"),  # ten people of ten ages, sorted
        (np.sort(np.random.default_rng(0).lognormal(8, 1, 2000).round(2) * 100).astype(int), "income"),  # sorted by it
        (np.random.default_rng(0).choice(10**6, 400, replace=False), "amount_paid"),
        (np.unique(np.random.default_rng(0).lognormal(8, 1, 900).round(2) * 100).astype(int), "amount_paid"),
        (np.arange(2000) / 10, "customer_id"),  # not whole
        (np.arange(2000) // 2, "customer_id"),  # not different
        (pd.Series([*range(1, 2000), None], dtype="Int64"), "debt"),  # one is missing
    ],
)
def test_measurements_are_no_ids(values: Any, name: str) -> None:
    frame = pd.DataFrame({name: values, "z": np.arange(len(values)) % 7})
    assert find_pass_through(frame) == {}
    assert Schema.infer(frame).names == (name, "z")


@pytest.mark.parametrize(
    "values", [range(5, 25), reversed(range(20)), [float(i) for i in range(20)], pd.array(range(20), dtype="Int64")]
)
def test_consecutive_numbers_are_row_numbers_from_twenty_rows_on(values: Any) -> None:
    frame = pd.DataFrame({"x": pd.Series(list(values)), "z": np.arange(20) % 7})
    assert Schema.infer(frame).names == ("z",)
    assert Schema.infer(frame.head(19)).names == ("x", "z")


@pytest.mark.parametrize(
    "name", ["id", "ID", "Unnamed: 0", "customerId", "loan_id", "id_kunde", "Kundennummer", "USERID"]
)
def test_different_whole_numbers_are_an_id_by_their_name(name: str) -> None:
    values = np.random.default_rng(0).choice(10**6, 12, replace=False)
    frame = pd.DataFrame({name: values, "z": np.arange(12) % 5})
    assert Schema.infer(frame).names == ("z",)
    assert Schema.infer(frame, learn=[name]).names == (name, "z")


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).choice(10**6, 600, replace=False),
        np.random.default_rng(0).permutation(600) * 7 + 3,
        np.r_[0:300, 5000:5300:1, 90_000:90_100],  # three series
        np.cumsum(np.random.default_rng(0).lognormal(3, 2, 1200).astype(int) + 1)[::-1],
    ],
)
def test_whole_numbers_that_never_repeat_are_an_id_whatever_their_steps(values: Any) -> None:
    frame = pd.DataFrame({"account": values, "z": np.arange(len(values)) % 7})
    assert Schema.infer(frame).names == ("z",)
    assert Schema.infer(frame, learn=["account"]).names == ("account", "z")
    assert Schema.infer(frame.assign(account=frame["account"] / 10)).names == ("account", "z")  # decimals are no id
    assert Schema.infer(frame.assign(account=frame["account"].where(frame.index > 0, 90_001))).names[-1] == "z"


def test_texts_that_are_no_categories() -> None:
    z = np.arange(1200) % 7
    code = pd.DataFrame({"code": [f"k{i % 1100}" for i in range(1200)], "z": z})
    assert list(find_pass_through(code).values()) == [
        "'code' has 1,100 different values: passed through, not learned; to learn it, group its values"
    ]
    with pytest.raises(InputError, match="'code' has 1,100 distinct values in 1,200 rows and looks like an identifier"):
        Schema.infer(code, learn=["code"])
    long = pd.DataFrame({"iban": [f"{10**18 + i}" for i in range(1200)], "z": z})  # too long for a number
    assert list(find_pass_through(long)) == ["iban"]
    with pytest.raises(InputError, match="'income' has 1,200 distinct values"):  # numbers that were read as text
        Schema.infer(pd.DataFrame({"income": [f"{i}.5" for i in range(1200)], "z": z}))
    assert find_pass_through(code.head(40)) == {}  # a few texts are categories
    assert find_pass_through(code.head(400).astype({"code": "category"})) == {}  # and so is what is said to be


def test_a_table_with_nothing_else_is_learned_as_it_is() -> None:
    assert Schema.infer(pd.DataFrame({"x": range(50), "y": [0, 1] * 25}), "y").names == ("x",)


@pytest.mark.parametrize("setting", ["learn", "categorical"])
def test_columns_that_do_not_exist_and_the_label_are_named(setting: str) -> None:
    for name, message in {"age": f"{setting} has 'age', but there is no such column", "y": "is the label"}.items():
        with pytest.raises(InputError, match=message):
            Schema.infer(plain(), "y", **{setting: [name]})
        with pytest.raises(InputError, match=message):
            tdce.Explainer().fit(plain(), label="y", **{setting: [name]})
    with pytest.raises(InputError, match=f"{setting} goes with a schema that is read off the table"):
        tdce.Explainer().fit(plain(), label="y", schema=Schema.infer(plain(), "y"), **{setting: ["rate"]})
    with pytest.raises(InputError, match=f"{setting} must be a list of names"):
        tdce.Explainer().fit(plain(), label="y", **{setting: "rate"})


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ("average stage page image_race_time_page language", "image_race_time_page"),
        (
            "AGE ageGroup Alter Familienstand personal_status_sex",
            "AGE ageGroup Alter Familienstand personal_status_sex",
        ),
        ("AgeOfCar alter_fahrzeug message", ""),
        ("outcome charged_off_amount", "outcome charged_off_amount"),
        ("GeburtsDatum Geburtsjahr date_of_birth isMarried", "GeburtsDatum Geburtsjahr date_of_birth isMarried"),
    ],
)
def test_sensitive_columns_are_known_by_whole_words(columns: str, found: str) -> None:
    frame = pd.DataFrame({name: [1.5, 2.5, i + 3.0] for i, name in enumerate(columns.split())})
    hints = profile_columns(frame, Schema.infer(frame, roles=False))
    assert [hint.rpartition("--immutable ")[2] for hint in hints] == found.split()


def test_words_of_a_name() -> None:
    assert split_name("personal_status_sex") == ["personal", "status", "sex"]
    assert split_name("HTMLPageOf2Ages") == ["html", "page", "of", "ages"]
    assert split_name("Unnamed: 0") == ["unnamed"]
    assert split_name(0) == []


@pytest.mark.parametrize("share", [0.985, 1.0])
@pytest.mark.parametrize("words", [False, True])
def test_a_leak_is_right_in_99_of_100_rows(share: float, words: bool) -> None:
    y = np.arange(1000) % 10 == 0
    told = np.where(np.arange(1000) < 1000 * share, y, ~y)
    column = np.where(told, "late", "paid") if words else told * 100.0 + np.arange(1000) % 50
    frame = pd.DataFrame({"x": column, "y": y})
    assert len(said(frame)) == (share == 1)
    gaps = pd.DataFrame({"x": pd.Series(np.arange(1000.0) % 91 + 0.5).mask(~told), "y": y})  # a date of default, say
    assert len(said(gaps)) == (share == 1)


@pytest.mark.parametrize(
    ("rates", "code"), [([0.1, 0.5, 0.2], True), ([0.1, 0.2, 0.5], False), ([0.5, 0.5, 0.1], False)]
)
def test_a_code_is_what_has_no_ordered_effect(rates: list[float], code: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 900)
    frame = pd.DataFrame({"x": x, "y": rng.random(900) < np.array(rates)[x]})
    assert len(said(frame)) == code
    assert said(frame.rename(columns={"x": "number_of_x"})) == []  # a count is none, whatever its effect


# Numbers as categories


def test_numbers_become_categories_and_go_back() -> None:
    frame = pd.DataFrame({"a": [1, 2, 4, 7] * 60, "b": [0.5, 1.0, 2.5, 3.0] * 60, "c": [0, 3103, 5178, 9000] * 60})
    schema = Schema.infer(frame)
    assert schema["c"].levels == (0, 3103, 5178, 9000)
    for name, numbers in {"a": (1, 2, 4, 7), "c": (0, 3103, 5178, 9000)}.items():
        changed = schema.freeze(name).change(name, kind="categorical")
        assert changed[name] == Categorical(name, numbers, immutable=True)
        assert all(type(value) is int for value in changed[name].categories)
        assert changed.change(name, kind="numeric")[name] == schema.freeze(name)[name]
        assert Schema.from_json(changed.to_json()) == changed
    assert schema.change("b", kind="categorical", allowed=(0.5, 3))["b"].categories == (0.5, 1, 2.5, 3)
    assert Schema.infer(frame, categorical=["b"])["b"] == Categorical("b", (0.5, 1, 2.5, 3))
    assert schema.change("a", kind="numeric", high=5)["a"] == Numeric("a", 1, 5, step=1, levels=(1, 2, 4, 7))
    filled = Schema((Numeric("a", 1, 7, step=1),)).change("a", kind="categorical")
    assert filled["a"].categories == tuple(range(1, 8))


def test_laws_that_compare_codes_are_dropped_and_others_kept() -> None:
    rng = np.random.default_rng(0)
    low = rng.integers(0, 9, 900)
    schema = Schema.infer(pd.DataFrame({"low": low, "high": low + 30, "twice": 2 * low, "even": low % 2 == 0}))
    schema = replace(schema, laws=(*schema.laws, Order("low", "high", support=900)))
    assert {Order, Follows, Determines} <= set(map(type, schema.laws))
    changed = schema.change("low", kind="categorical")
    assert "low determines high" in {str(law) for law in changed.laws} & {str(law) for law in schema.laws}
    assert not any("low" in law.columns for law in changed.laws if isinstance(law, Order | Follows))


def test_a_change_of_kind_that_is_impossible_names_the_remedy() -> None:
    schema = Schema.infer(pd.DataFrame({"x": [0.25, 3000.0], "word": ["a", "b"], "any": [np.pi, np.e]}))
    for name in ("x", "any"):
        with pytest.raises(InputError, match=rf"Schema.infer\(frame, label, categorical=\['{name}'\]\)"):
            schema.change(name, kind="categorical")
    with pytest.raises(InputError, match="'word' cannot be numeric: it has the category 'a'"):
        schema.change("word", kind="numeric")
    with pytest.raises(InputError, match="kind 'code' must be numeric or categorical"):
        schema.change("x", kind="code")
    with pytest.raises(InputError, match="unknown setting 'low'"):
        schema.change("word", low=3)
    with pytest.raises(InputError, match="'x' has 1,001 distinct numbers, too many for categories"):
        Schema.infer(pd.DataFrame({"x": range(1001)}), categorical=["x"])


@pytest.mark.parametrize("dtype", ["float32", "float64", "Float32", "object"])
def test_decimal_codes_are_read_in_any_dtype(dtype: str) -> None:
    frame = pd.DataFrame({"x": pd.Series([0.1, 0.2, 3.0, 0.1], dtype=dtype)})
    column = Schema.infer(frame, categorical=["x"])["x"]
    assert column.categories == (0.1, 0.2, 3)
    assert column.read(frame["x"]).tolist() == [0, 1, 2, 0]


def test_words_that_look_like_numbers_with_slips_can_be_asked_for_as_categories() -> None:
    frame = pd.DataFrame({"zone": [*map(str, range(10, 40)), "x9"]})
    with pytest.raises(InputError, match="in pandas"):
        Schema.infer(frame)
    assert len(Schema.infer(frame, categorical=["zone"])["zone"].categories) == 31


def test_codes_are_read_from_a_file_and_an_odd_cell_is_named(tmp_path: Path) -> None:
    schema = Schema((Categorical("job", (1, 2, 3)),))
    path = tmp_path / "t.csv"
    path.write_text("job\n1\n3\n\n", encoding="utf-8")
    assert schema["job"].read(read_table(path, schema)["job"])[:2].tolist() == [0, 2]
    path.write_text("job\n1\nnone of them\n", encoding="utf-8")
    with pytest.raises(InputError, match="'job' has category 'none of them' in row 1, not seen in fit; known: 1, 2, 3"):
        schema["job"].read(read_table(path, schema)["job"])


# As a person meets them


def test_fit_keeps_hints_and_prints_them_only_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    frame = lending.table(200).assign(customer=range(200))
    plans = replace(SHORT, sampling=SamplingPlan(32, 1024, 2))
    explainer = tdce.Explainer(hidden=8, steps=2, plans=plans, progress="silent").fit(frame, label="decision")
    assert [line[:20] for line in explainer.hints] == ["'customer' is a row ", "'age' passes with ti"]
    assert capsys.readouterr().err == ""
    assert explainer.schema.names == ("income", "debt", "housing", "age")
    explainer.save(tmp_path / "a.tdce")
    assert tdce.Explainer.load(tmp_path / "a.tdce").hints == ()


def test_an_id_comes_back_and_codes_stay_codes_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = lending.table(400).assign(customer=9_000 + rng.permutation(400), job=rng.choice([1, 2, 4, 9], 400))
    frame["decision"] = np.where(frame["job"].isin([1, 4]), frame["decision"], "no")
    frame.to_csv("loans.csv", index=False)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    shown = run("schema", "loans.csv", "--label", "decision")
    assert "\nHints, each with the way out:\n     'customer' is a row number" in shown
    assert "--categorical job" in shown
    shown = run("schema", "loans.csv", "--label", "decision", "--learn", "customer", "--categorical", "job")
    assert "4 categories: 1, 2, 4, 9" in shown
    assert "--categorical job" not in shown
    assert "row number" not in shown
    assert "Hints, each" in run("schema", "loans.csv", "--out", "schema.json")

    out = run("fit", "loans.csv", "--label", "decision", "--favourable", "yes", "--categorical", "job",
              "--immutable", "age", "--out", "a.tdce")  # fmt: skip
    assert "Hint: 'customer' is a row number: passed through, not learned" in out
    assert "protected" not in out
    rows = frame.drop(columns="decision").head(40)
    rows.to_csv("rows.csv", index=False)
    run("explain", "a.tdce", "rows.csv", "-n", "2", "--out", "answers.csv")
    answers = pd.read_csv("answers.csv")
    assert answers["customer"].tolist() == rows["customer"].repeat(2).tolist()
    assert set(answers["job"]) <= {1, 2, 4, 9}
    assert (answers["job"].to_numpy() != rows["job"].repeat(2).to_numpy()).any()
    assert (answers["status"] == "valid").any()
