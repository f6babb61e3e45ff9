"""Text that a spreadsheet would run as a formula: escaped in the CSV of the studio and with --excel-safe."""

import csv
from pathlib import Path

import lending
import numpy as np
import pandas as pd
import pytest
import studio
from typer.testing import CliRunner

from tdce import InputError
from tdce.cli import app
from tdce.datasets.files import Dialect, encode_table, read_table
from tdce.datasets.spreadsheets import escape_formula, escape_formulas

FORMULAS = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "-", "=", "+49 30 1234"]
HARMLESS = ["-5", "+5", "-5.25", "-5,25", "-.5", "1e-3", "-1E+6", "a=b", "", "'=1", "x-y", " =1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_begins_like_a_formula_has_an_apostrophe_before_it(text):
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("cell", [*HARMLESS, -5, -5.25, None, True, np.float32(-1)])
def test_numbers_and_other_text_are_left_as_they_are(cell):
    assert escape_formula(cell) is cell


def test_a_frame_is_copied_and_its_numbers_keep_their_types():
    frame = pd.DataFrame(
        {"=name": ["=1", None], "n": [-5, 3], "f": pd.array([-0.5, None], "Float64"), "ok": [True, False],
         "kind": pd.Categorical(["@a", "b"])}
    )  # fmt: skip
    before = frame.copy()
    safe = escape_formulas(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert list(safe.columns) == ["'=name", "n", "f", "ok", "kind"]
    assert safe["'=name"].fillna("").tolist() == ["'=1", ""]
    assert safe["kind"].tolist() == ["'@a", "b"]
    assert safe.dtypes[["n", "f", "ok"]].tolist() == frame.dtypes[["n", "f", "ok"]].tolist()


@pytest.mark.parametrize("dialect", [Dialect(), Dialect(";", ","), Dialect("tab")])
def test_no_cell_of_a_safe_file_begins_like_a_formula_whatever_separator_a_spreadsheet_takes(dialect):
    frame = pd.DataFrame({"text": [*FORMULAS, "a;=1", "b,=1", 'c",=1', "d\t=1"], "n": -1.5})
    safe = Dialect(dialect.sep, dialect.decimal, excel_safe=True)
    content = encode_table(Path("a.csv"), frame, safe).decode()
    for sep in ",;\t":
        for line in csv.reader(content.splitlines(keepends=True), delimiter=sep):
            for cell in line:
                assert not cell.startswith(("=", "+", "@", "\t", "\r")), (sep, cell)
                assert not cell.startswith("-") or cell.startswith("-1"), (sep, cell)
    plain = encode_table(Path("a.csv"), frame, dialect).decode()
    assert "'=1+1" not in plain


@pytest.fixture(scope="module")
def explainer():
    return lending.explainer()


@pytest.fixture(scope="module")
def hostile_rows(explainer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame = lending.refused(explainer, 2).assign(memo=['=HYPERLINK("http://evil.example")', "-5"], change=[-5, 3])
    frame.to_csv(path, index=False)
    return path


def test_the_command_escapes_on_demand_and_only_csv(explainer, hostile_rows, tmp_path):
    artefact, out, plain = tmp_path / "a.tdce", tmp_path / "safe.csv", tmp_path / "plain.csv"
    explainer.save(artefact)
    run = CliRunner().invoke
    assert run(app, ["explain", str(artefact), str(hostile_rows), "--excel-safe", "--out", str(out)]).exit_code == 0
    assert run(app, ["explain", str(artefact), str(hostile_rows), "--out", str(plain)]).exit_code == 0
    safe, raw = read_table(out), read_table(plain)
    assert safe["memo"].tolist() == ["'" + raw["memo"][0], "-5"]
    assert raw["memo"].tolist() == ['=HYPERLINK("http://evil.example")', "-5"]
    pd.testing.assert_frame_equal(safe.drop(columns="memo"), raw.drop(columns="memo"), check_exact=True)
    assert safe["change"].tolist() == [-5, 3]
    refused = run(
        app, ["explain", str(artefact), str(hostile_rows), "--excel-safe", "--out", str(tmp_path / "a.jsonl")]
    )
    assert isinstance(refused.exception, InputError)
    assert "--excel-safe is about CSV" in str(refused.exception)


def test_the_studio_escapes_csv_and_nothing_else(explainer, hostile_rows):
    import json
    import time

    with studio.connect(explainer) as client:
        name = client.post("/jobs", json={}).json()["id"]
        kind = {"content-type": "text/csv"}
        assert client.put(f"/jobs/{name}/rows", content=hostile_rows.read_bytes(), headers=kind).status_code == 202
        while client.get(f"/jobs/{name}").json()["state"] != "done":
            time.sleep(0.02)
        table = list(csv.DictReader(client.get(f"/jobs/{name}/answer.csv").text.splitlines()))
        lines = [json.loads(line) for line in client.get(f"/jobs/{name}/answer.jsonl").text.splitlines()]
    assert table[0]["memo"] == '\'=HYPERLINK("http://evil.example")'
    assert table[1]["memo"] == "-5"
    assert [row["change"] for row in table] == ["-5", "3"]
    assert lines[0]["memo"] == '=HYPERLINK("http://evil.example")'
