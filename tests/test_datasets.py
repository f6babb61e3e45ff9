"""The tables: what is in the package, what the presets make of them, what is said when one is missing."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tdce._core.errors import InputError
from tdce.datasets.loading import CatalogueEntry, Dataset, Splits, catalogue, load
from tdce.datasets.tables import PUBLISHED_TABLES
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric

READ_AS_MISSING = {"", "na", "n/a", "nan", "null", "none", "<na>", "#n/a", "-nan"}


def needs_folder(*names: str) -> pytest.MarkDecorator:
    """Skip where a table outside the package is not at hand."""
    folder = os.environ.get("TDCE_DATA", "")
    missing = [name for name in names if not (Path(folder) / PUBLISHED_TABLES[name].file).is_file()]
    reason = f"needs {', '.join(PUBLISHED_TABLES[n].file for n in missing)} in the folder that TDCE_DATA names"
    return pytest.mark.skipif(not folder or bool(missing), reason=reason)


def preset(name: str, kind: str, *expected: object) -> object:
    """A case of a table; those outside the package are skipped where they are not at hand."""
    marks = [] if PUBLISHED_TABLES[name].inside else [needs_folder(name)]
    return pytest.param(name, kind, *expected, marks=marks, id=f"{name}-{kind}")


EVERY_PRESET = [preset(name, kind) for name, table in PUBLISHED_TABLES.items() for kind in table.presets]


@pytest.mark.parametrize(
    ("name", "kind", "numeric", "categorical"),
    [
        preset("adult", "full", 6, 8),
        preset("adult", "paper", 9, 2),
        preset("german", "full", 7, 13),
        preset("gmc", "full", 9, 1),
        preset("gmc", "paper", 9, 1),
        preset("law", "full", 8, 3),
        preset("law", "paper", 8, 3),
        preset("law", "paper_size", 8, 3),
        preset("lcd", "full", 5, 1),
        preset("lcd", "paper", 5, 1),
    ],
)
def test_features_are_as_many_as_announced(name: str, kind: str, numeric: int, categorical: int) -> None:
    features = load(name, kind).schema.features
    assert sum(isinstance(f, Numeric) for f in features) == numeric
    assert sum(isinstance(f, Categorical) for f in features) == categorical


@pytest.mark.parametrize(
    ("name", "kind", "sizes"),
    [
        preset("adult", "full", (46_842, 1_000, 1_000)),
        preset("adult", "paper", (46_842, 1_000, 1_000)),
        preset("german", "full", (800, 100, 100)),
        preset("gmc", "full", (58_000, 1_000, 1_000)),
        preset("gmc", "paper", (4_702, 1_000, 1_000)),
        preset("law", "full", (18_798, 1_000, 1_000)),
        preset("law", "paper", (2_586, 1_000, 1_000)),
        preset("law", "paper_size", (5_502, 1_000, 1_000)),
        preset("lcd", "full", (11_495, 1_000, 1_000)),
        preset("lcd", "paper", (10_000, 1_000, 1_000)),
    ],
)
def test_split_sizes(name: str, kind: str, sizes: tuple[int, int, int]) -> None:
    data = load(name, kind)
    assert tuple(len(part) for part in data.splits) == sizes
    assert tuple(len(data.part(part)) for part in ("train", "validation", "test")) == sizes


@pytest.mark.parametrize(
    ("name", "kind", "classes"),
    [
        preset("adult", "full", {"<=50K": 37_155, ">50K": 11_687}),
        preset("adult", "paper", {"<=50K": 37_155, ">50K": 11_687}),
        preset("german", "full", {"good": 700, "bad": 300}),
        preset("gmc", "full", {"no": 55_981, "yes": 4_019}),
        preset("gmc", "paper", {"no": 3_351, "yes": 3_351}),
        preset("law", "full", {"passed": 18_505, "failed": 2_293}),
        preset("law", "paper", {"passed": 2_293, "failed": 2_293}),
        preset("law", "paper_size", {"passed": 5_209, "failed": 2_293}),
        preset("lcd", "full", {"paid": 10_778, "defaulted": 2_717}),
    ],
)
def test_class_counts(name: str, kind: str, classes: dict[str, int]) -> None:
    data = load(name, kind)
    assert data.frame[data.label].value_counts().to_dict() == classes
    assert data.favourable in classes


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET)
def test_splits_are_disjoint_and_cover_every_row(name: str, kind: str) -> None:
    data = load(name, kind)
    assert np.array_equal(np.sort(np.concatenate(data.splits)), np.arange(len(data.frame)))


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET)
def test_a_seed_changes_the_splits_and_nothing_else(name: str, kind: str) -> None:
    first, again, other = load(name, kind), load(name, kind, seed=0), load(name, kind, seed=1)
    pd.testing.assert_frame_equal(first.frame, other.frame)
    assert first.schema == other.schema
    assert all(np.array_equal(a, b) for a, b in zip(first.splits, again.splits, strict=True))
    assert not np.array_equal(first.splits.test, other.splits.test)


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET)
def test_frame_schema_and_mask_fit_together(name: str, kind: str) -> None:
    data = load(name, kind)
    assert list(data.frame.columns) == [*data.schema.names, data.label]
    assert data.frame.index.equals(pd.RangeIndex(len(data.frame)))
    assert data.mask in data.schema.names
    assert pd.api.types.is_string_dtype(data.frame[data.label])
    assert data.frame[data.label].notna().all()
    for feature in data.schema:
        assert feature.missing == data.frame[feature.name].isna().any(), feature.name


@pytest.mark.parametrize(("name", "kind"), EVERY_PRESET)
def test_whole_numbers_are_integers_even_beside_missing_cells(name: str, kind: str) -> None:
    frame = load(name, kind).frame
    for column in frame.select_dtypes("float64"):
        assert (frame[column].dropna() % 1 != 0).any(), column


def test_splits_stay_what_they_were() -> None:
    splits = load("german").splits  # a saved result refers to these rows: they must not move between versions
    assert splits.test[:5].tolist() == [891, 285, 996, 475, 119]
    assert isinstance(splits, Splits)
    assert splits.train.dtype == np.int64


def test_a_part_keeps_positions_as_its_index() -> None:
    data = load("german")
    assert data.part("test").index.tolist() == data.splits.test.tolist()
    with pytest.raises(InputError, match="no part 'dev'; known: train, validation, test"):
        data.part("dev")  # type: ignore[arg-type]


def test_packaged_files_are_the_recorded_ones() -> None:
    here = {entry.name: entry for entry in catalogue()}
    for name in ("adult", "german"):  # `present` says that the sha256 is right
        assert here[name].present
        assert here[name].where == "inside the package"
        assert here[name].rows == len(load(name).frame)


def test_no_code_is_left_in_german() -> None:
    frame = load("german").frame
    assert frame.notna().all().all()
    columns = [frame[name] for name in frame if pd.api.types.is_string_dtype(frame[name])]
    words = [str(word) for column in columns for word in column.unique()]
    assert len(words) == 54 + 2  # the codes that occur, and the two labels
    assert not [word for word in words if re.search(r"A\d", word)]
    assert not [word for word in words if word.lower() in READ_AS_MISSING]


def test_first_german_row_says_what_was_published() -> None:
    # A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1
    assert load("german").frame.iloc[0].to_list() == [
        "below 0 DM", 6, "critical or credits elsewhere", "radio or television", 1169,
        "unknown or no savings", "7 years or more", 4, "male single", "nobody", 4, "real estate",
        67, "no plan", "own", 2, "skilled or official", 1, "yes", "yes", "good",
    ]  # fmt: skip


def test_german_survives_a_careless_reader(tmp_path: Path) -> None:
    frame = load("german").frame
    frame.to_csv(tmp_path / "german.csv", index=False)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "german.csv"), frame)


def test_adult_has_no_question_marks_and_no_full_stops() -> None:
    frame = load("adult").frame
    assert frame.isna().sum().pipe(lambda n: n[n > 0]).to_dict() == {
        "workclass": 2_799, "occupation": 2_809, "native_country": 857,
    }  # fmt: skip
    assert not frame.isin(["?"]).any().any()
    assert set(frame["income"]) == {"<=50K", ">50K"}


def test_adult_flags_are_numbers_and_missing_where_the_country_is() -> None:
    full, paper = load("adult"), load("adult", "paper")
    for name in ("married_flag", "white_flag", "male_flag", "us_native_flag"):
        feature = paper.schema[name]
        assert isinstance(feature, Numeric)
        assert (feature.low, feature.high, feature.step) == (0, 1, 1)
    assert paper.frame["us_native_flag"].isna().equals(full.frame["native_country"].isna())
    assert paper.frame["us_native_flag"].dtype == "Int64"
    assert paper.frame["male_flag"].sum() == (full.frame["sex"] == "Male").sum()


def test_what_nobody_can_change_is_frozen() -> None:
    assert load("adult").schema.immutable == (
        "age", "final_weight", "marital_status", "relationship", "race", "sex", "capital_gain", "capital_loss",
        "native_country",
    )  # fmt: skip
    assert load("adult", "paper").schema.immutable == (
        "age", "capital_gain", "capital_loss", "married_flag", "white_flag", "male_flag", "us_native_flag"
    )  # fmt: skip
    assert load("german").schema.immutable == (
        "credit_history", "employment", "personal_status", "residence_years", "age", "existing_credits",
        "people_supported", "foreign_worker",
    )  # fmt: skip


@needs_folder("gmc", "law", "lcd")
@pytest.mark.parametrize("preset", ["full", "paper"])
def test_what_happened_is_history(preset: str) -> None:
    def roles(name: str) -> dict[str, str]:
        return {str(name): role for name, role in load(name, preset).schema.roles.items() if role != "actionable"}

    late = ("times_30_59_days_late", "times_90_days_late", "times_60_89_days_late")
    assert roles("gmc") == {"age": "passes with time", "dependents": "immutable", **dict.fromkeys(late, "history")}
    studies = dict.fromkeys(("decile_year1", "lsat", "undergrad_gpa", "year1_gpa_z"), "history")
    assert roles("law") == {**studies, **dict.fromkeys(("family_income", "sex", "race"), "immutable")}
    assert roles("lcd") == {"interest_rate": "immutable"}


@needs_folder("adult")
def test_adult_equals_an_independent_copy() -> None:
    copy = pd.read_csv(Path(os.environ["TDCE_DATA"]) / "adult.csv.gz", keep_default_na=False, na_values=[""])
    frame = load("adult").frame
    pd.testing.assert_frame_equal(frame, copy[list(frame.columns)])
    flags = [c for c in copy.columns if c.endswith("_flag")]
    paper = load("adult", "paper").frame[flags]
    pd.testing.assert_frame_equal(paper, copy[flags].astype({"us_native_flag": "Int64"}))


@needs_folder("lcd")
def test_lcd_placeholders_are_missing_and_decimals_stay_exact() -> None:
    data = load("lcd")
    assert data.frame["debt_to_income"].isna().sum() == 4 + 2
    assert data.frame["debt_to_income"].between(0, 998).sum() == 13_495 - 6
    rate = data.schema["interest_rate"]
    assert isinstance(rate, Numeric)
    assert rate.step == 0.01


@needs_folder("lcd")
def test_lcd_paper_has_the_last_fico_score_of_every_loan() -> None:
    data = load("lcd", "paper")
    assert "fico_score" not in data.frame
    assert data.frame["last_fico_score"].dtype == "int64"
    assert (data.frame["last_fico_score"] == 0).any()  # below 500
    assert "leaks" in data.notes
    assert data.mask == "loan_term"


@needs_folder("gmc")
def test_gmc_leaves_the_raw_number_of_dependents_out() -> None:
    full, paper = load("gmc").frame, load("gmc", "paper").frame
    assert "number_of_dependents" not in full
    assert set(full["dependents"].dropna()) == {"none", "one", "two", "three or more"}
    assert full["monthly_income"].dtype == "Int64"
    assert full["monthly_income"].isna().sum() == 11_856
    assert paper.notna().all().all()


def test_notes_name_sizes_and_deviations() -> None:
    notes = load("adult", "paper").notes
    assert "9 numeric and 2 categorical" in notes
    assert "46,842" in notes
    assert "47,842" in notes


def test_each_load_gives_a_frame_of_its_own() -> None:
    frame = load("german").frame
    frame.loc[0, "age"] = 0
    assert load("german").frame.loc[0, "age"] == 67


def test_a_dataset_shows_itself_in_one_line() -> None:
    assert repr(load("german")) == (
        "Dataset(name='german', preset='full', label='credit_risk', favourable='good', mask='age')"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("boston",), "no data set 'boston'; known: adult, german, gmc, law, lcd"),
        (("adult", "small"), "'adult' has no preset 'small'; known: full, paper"),
        (("german", "paper"), "'german' has no preset 'paper'.*use preset 'full'"),
        (("german", "full", -1), "seed is -1; it must be a whole number"),
        (("german", "full", 0.5), "seed is 0.5; it must be a whole number"),
    ],
)
def test_a_wrong_argument_is_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gmc", "law", "lcd"])
def test_a_missing_file_says_what_it_is_and_where_to_put_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PUBLISHED_TABLES[name]
    monkeypatch.delenv("TDCE_DATA", raising=False)
    with pytest.raises(InputError, match="TDCE_DATA is not set") as unset:
        load(name)
    monkeypatch.setenv("TDCE_DATA", str(tmp_path))
    with pytest.raises(InputError, match="there is no file") as absent:
        load(name)
    for error in (str(unset.value), str(absent.value)):
        assert table.what in error
        assert table.source in error
        assert "\n" not in error
        assert "Put it in the folder that the environment variable TDCE_DATA names" in error


def test_another_file_under_the_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "law.csv.gz").write_bytes(b"not law")
    monkeypatch.setenv("TDCE_DATA", str(tmp_path))
    found = "1618a90e"
    with pytest.raises(InputError, match=f"sha256 is {found}[0-9a-f]*, expected {PUBLISHED_TABLES['law'].sha256}"):
        load("law")
    entry = next(e for e in catalogue() if e.name == "law")
    assert not entry.present
    assert entry.where.startswith("not the expected file")


@needs_folder("law")
def test_a_tampered_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(shutil.copy(Path(os.environ["TDCE_DATA"]) / "law.csv.gz", tmp_path))
    monkeypatch.setenv("TDCE_DATA", str(tmp_path))
    assert isinstance(load("law"), Dataset)
    copy.chmod(0o644)
    content = bytearray(copy.read_bytes())
    content[1_000] ^= 1
    copy.write_bytes(content)
    with pytest.raises(InputError, match="not the expected file"):
        load("law")


def test_catalogue_tells_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TDCE_DATA", raising=False)
    entries = catalogue()
    assert [(e.name, e.present) for e in entries] == [
        ("adult", True), ("german", True), ("gmc", False), ("law", False), ("lcd", False),
    ]  # fmt: skip
    for entry in entries:
        assert isinstance(entry, CatalogueEntry)
        assert all([entry.title, entry.columns, entry.source, entry.licence])
    assert entries[-1].where == "missing: set TDCE_DATA to the folder that holds lcd.csv.gz"


@needs_folder("gmc", "law", "lcd")
def test_catalogue_finds_the_folder() -> None:
    entries = [e for e in catalogue() if not PUBLISHED_TABLES[e.name].inside]
    assert all(e.present and Path(e.where).name == PUBLISHED_TABLES[e.name].file for e in entries)
    assert [e.rows for e in entries] == [len(load(e.name).frame) for e in entries]
