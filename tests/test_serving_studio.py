"""What the pages of the studio ask for: people by id, curves, people in files, errors with their case, examples."""

import json
import os
import pty
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import lending
import numpy as np
import pandas as pd
import pytest
import studio

import tdce
from tdce import InputError
from tdce.report.language.catalogue import languages, load_catalogue
from tdce.report.language.formats import write_chance
from tdce.serving.i18n import page_words
from tdce.serving.people import People

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


def named_people() -> pd.DataFrame:
    frame = lending.table(30, 5).drop(columns="decision")
    return frame.assign(memo="same", applicant=[f"K-{90 - i}" for i in range(len(frame))])


@pytest.fixture(scope="module")
def client(explainer):
    with studio.connect(explainer, rows=named_people()) as client:
        yield client


# people


def people(client, **query) -> list[dict]:
    found = client.get("/people", params={"count": 200} | query)
    assert found.status_code == 200, found.text
    return found.json()["people"]


def test_people_are_named_by_the_first_column_that_tells_them_apart(client, explainer):
    assert [each["id"] for each in people(client)] == named_people()["applicant"].tolist()
    assert client.get("/people/3").json()["id"] == "K-87"
    assert People.of(explainer, named_people(), "memo").ids == ["same"] * 30
    assert People.of(explainer, lending.table(5)).ids == [None] * 5  # nothing but features and the label
    with pytest.raises(InputError, match="--id is 'nobody', which is no column of the rows; known: income, debt"):
        People.of(explainer, named_people(), "nobody")


def test_people_are_found_by_id_number_and_value(client):
    assert [each["number"] for each in people(client, search="k-87")] == [3]
    assert 16 in [each["number"] for each in people(client, search=" 17 ")]
    own = people(client, search="with par")
    assert own
    assert {each["values"]["housing"] for each in own} == {"with parents"}
    assert people(client, search="nobody at all") == []
    refused = people(client, search="own", met=False)
    assert all(each["values"]["housing"] == "own" and not each["met"] for each in refused)
    assert people(client, search="same") == []  # a column that the model does not see is no value of a person


def test_people_are_found_by_the_words_of_the_page(explainer):
    spoken = explainer.with_words(
        {"housing": {"values": {"own": {"en": "owned", "de": "Eigentum"}}}, "age": {"named": False}}
    )
    with studio.connect(spoken, rows=named_people()) as client:
        assert {each["values"]["housing"] for each in people(client, search="eigen", language="de")} == {"own"}
        assert people(client, search="eigen", language="en") == []
        ages = {str(each["values"]["age"]) for each in people(client)}
        assert any(not people(client, search=f"{age}.") for age in ages)  # what may not be named is not searched
        assert client.get("/people", params={"sort": "age"}).status_code == 422


@pytest.mark.parametrize("descending", [False, True])
def test_people_are_sorted(client, descending):
    def of(sort: str, key) -> None:
        found = [key(each) for each in people(client, sort=sort, descending=descending)]
        assert found == sorted(found, reverse=descending)

    of("", lambda each: each["number"])
    of("score", lambda each: each["score"])
    of("income", lambda each: each["values"]["income"])
    of("housing", lambda each: each["values"]["housing"])


def test_a_wrong_order_is_named(client):
    found = client.get("/people", params={"sort": "memo"})
    assert found.status_code == 422
    assert found.json()["detail"] == (
        "sort is 'memo'; it must be score or one of the columns: income, debt, housing, age"
    )


# curves


def test_every_point_of_a_curve_is_the_score_of_that_row(client, explainer):
    (row,) = studio.people(explainer, 1)
    curves = client.post("/curves", json={"values": row}).json()["curves"]
    assert [curve["name"] for curve in curves] == ["income", "debt", "housing", "age"]
    for curve in curves:
        rows = [row | {curve["name"]: value} for value in curve["values"]]
        decisions = client.post("/predict", json={"rows": rows}).json()["decisions"]
        assert curve["score"] == [each["probabilities"]["yes"] for each in decisions]
        assert curve["met"] == [each["prediction"] == "yes" for each in decisions]
        assert curve["values"][curve["own"]] == row[curve["name"]]
    numbers = curves[0]["values"]
    assert numbers == sorted(numbers)
    schema = explainer.schema["income"]
    assert (numbers[0], numbers[-1]) == (schema.low, schema.high)
    assert set(curves[2]["values"]) == {"own", "rent", "with parents"}


def test_a_curve_of_what_may_not_be_named_is_for_programs_only(explainer):
    silent = explainer.with_words({"age": {"named": False}})
    (row,) = studio.people(explainer, 1)
    with studio.connect(silent) as client:
        for audience, names in (("program", 4), ("analyst", 3)):
            found = client.post("/curves", json={"values": row, "audience": audience}).json()["curves"]
            assert len(found) == names


def test_curves_of_a_predicted_number_and_of_missing_values():
    frame = lending.table(300)
    frame.loc[::7, "debt"] = np.nan
    made = tdce.Explainer(hidden=16, steps=20, progress="silent", model=lambda rows: rows["income"].to_numpy() / 2)
    made.fit(frame.drop(columns="decision"), favourable=tdce.Range(low=1500))
    with studio.connect(made) as client:
        row = {"income": 2000, "debt": None, "housing": "rent", "age": 30}
        income, debt = client.post("/curves", json={"values": row}).json()["curves"][:2]
    assert income["score"] == [value / 2 for value in income["values"]]
    assert income["met"] == [value / 2 >= 1500 for value in income["values"]]
    assert debt["values"][debt["own"]] is None


# files count people


def test_a_job_counts_people_by_their_best_option(client, explainer):
    table = named_people()
    name = client.post("/jobs", json={"n": 3, "name": "people.csv"}).json()["id"]
    content = table.to_csv(index=False).encode()
    client.put(f"/jobs/{name}/rows", content=content, headers={"content-type": "text/csv"})
    while (job := client.get(f"/jobs/{name}").json())["state"] not in ("done", "failed"):
        time.sleep(0.02)
    lines = pd.DataFrame([json.loads(line) for line in client.get(f"/jobs/{name}/answer.jsonl").text.splitlines()])
    best = lines.groupby("row")["status"].agg(
        lambda each: next(s for s in ("already", "valid", "best_effort", "infeasible") if s in set(each))
    )
    assert job["people"] == best.value_counts().to_dict()
    assert (sum(job["people"].values()), sum(job["counts"].values())) == (30, 90)
    assert (job["name"], job["words"], job["case"]) == ("people.csv", "", "")
    assert 3500 <= job["seconds_left"] <= 3600


# errors


@pytest.mark.parametrize(
    ("content", "case", "facts"),
    [
        (b"income;debt;housing;age\n1;2;own;30\n", "file_separator", {"mark": ";"}),
        (b"income\tdebt\thousing\tage\n1\t2\town\t30\n", "file_separator", {"mark": "tab"}),
        (b"income,debt\n1,2\n", "no_column", {"column": "housing", "known": "income, debt"}),
        (b"income,debt,debt\n1,2,3\n", "column_twice", {"column": "debt"}),
        (b"income,debt,housing,age\n1,2,own\n", "file_cells", {"line": 2, "cells": 3, "header": 4}),
        (b"income,debt,housing,age\n", "file_empty", {}),
        (b"income,debt,housing,age\n1,2,\xff,3\n", "file_utf8", {}),
        (b"3120,1044.5,own,33\n2800,512.25,rent,41\n3050,99.5,own,29\n" * 5, "file_header", {}),
        (b"income,debt,housing,age\n1,2,own,30\n1,much,own,30\n", "no_number",
         {"column": "debt", "value": "'much'", "row": "1"}),
        (b"income,debt,housing,age\n1,2,boat,30\n", "no_category",
         {"column": "housing", "value": "'boat'", "row": "0", "known": "own, rent, with parents"}),
    ],
)  # fmt: skip
def test_an_error_about_a_file_has_a_case_that_every_language_has_words_for(client, content, case, facts):
    name = client.post("/jobs", json={}).json()["id"]
    found = client.put(f"/jobs/{name}/rows", content=content, headers={"content-type": "text/csv"}).json()
    assert (found["case"], found["facts"]) == (case, facts)
    assert client.delete(f"/jobs/{name}").status_code == 204
    for language in languages():
        message = page_words(language)["messages"][f"error_{case}"]
        places = set(re.findall(r"\{(\w+)\}", message))
        assert places <= facts.keys() | {"name", "menu"}
        assert "--" not in message


def test_every_case_of_the_code_has_words_and_every_word_a_case():
    source = Path(tdce.__file__).parent
    text = "".join(path.read_text("utf-8") for path in source.rglob("*.py"))
    cases = {key.removeprefix("error_") for key in page_words("en")["messages"] if key.startswith("error_")}
    assert {case for case in cases if f'"{case}"' not in text} == set()
    told = set(re.findall(r'case="(\w+)"', text)) | set(re.findall(r'\.fail\([^\n]*, "(\w+)"\)', text))
    assert told <= cases


def test_the_caret_of_a_rule_stands_under_its_character(client, explainer):
    found = client.post("/explain", json={"rows": studio.people(explainer, 1), "rules": ["income > 5 *"]}).json()
    assert (found["case"], found["facts"]) == ("rule", {"character": 13})
    _, rule, caret = found["detail"].split("\n")
    assert caret.index("^") - (len(rule) - len(rule.lstrip())) == found["facts"]["character"] - 1


# digits


@pytest.mark.parametrize(
    ("share", "border", "text"),
    [
        (0.4997, 0.5, "49.97 %"), (0.499999, 0.5, "49.9999 %"), (0.496, 0.5, "49.6 %"), (0.4949, 0.5, "49 %"),
        (0.5, 0.5, "50 %"), (0.5004, 0.5, "50 %"), (0.7996, 0.8, "79.96 %"), (0.0, 0.5, "0 %"), (0.35, 0.5, "35 %"),
    ],
)  # fmt: skip
def test_a_chance_has_enough_digits_to_be_on_its_side(share, border, text):
    assert write_chance(load_catalogue("en"), share, border) == text
    assert write_chance(load_catalogue("de"), share, border) == text.replace(".", ",")


# examples


def test_every_example_of_the_description_works(client):
    document = client.get("/openapi.json").json()
    made = None
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            url, query = path, {}
            for each in operation.get("parameters", []):
                if each["in"] == "path":
                    url = url.replace(f"{{{each['name']}}}", str(made if each["name"] == "id" else each["example"]))
                elif "example" in each:
                    query[each["name"]] = each["example"]
            contents = operation.get("requestBody", {}).get("content", {})
            assert method not in ("post", "put") or any("example" in each for each in contents.values()), path
            sent = next(((kind, each["example"]) for kind, each in contents.items() if "example" in each), None)
            if method == "delete":
                continue  # the last one
            if url.endswith("/answer.csv"):
                while client.get(f"/jobs/{made}").json()["state"] != "done":
                    time.sleep(0.02)
            body = {} if sent is None else {"json": sent[1]} if sent[0].endswith("json") else {"content": sent[1]}
            headers = {} if sent is None else {"content-type": sent[0]}
            found = client.request(method, url, params=query, headers=headers, **body)
            assert found.is_success, (method, path, found.text)
            made = found.json()["id"] if path == "/jobs" else made
            assert "description" in operation or "summary" in operation
    assert client.delete(f"/jobs/{made}").status_code == 204
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_the_person_of_the_examples_is_nobody(client):
    document = client.get("/openapi.json").json()
    body = document["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert "applicant" not in body["rows"][0]
    assert body["rows"][0] not in [each["values"] for each in people(client)]


# the command


@pytest.fixture(scope="module")
def artefact(explainer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("studio") / "lending.tdce"
    explainer.save(path)
    return path


def test_the_command_makes_a_token_and_opens_the_browser_with_it(artefact, tmp_path):
    """On a terminal with a screen; the browser is a script that copies what it is told to open."""
    opened, script = tmp_path / "opened.txt", tmp_path / "browser"
    script.write_text(
        f'#!/bin/sh\necho "$1" > {opened}.part\npath=$(echo "$1" | sed s,^file://,,)\n'
        f"stat -c %a $(dirname $path) >> {opened}.part\ncat $path >> {opened}.part\nmv {opened}.part {opened}\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    terminal, other = pty.openpty()
    env = {key: value for key, value in os.environ.items() if key != "TDCE_TOKEN"}
    env |= {"BROWSER": str(script), "DISPLAY": ":0", "COLUMNS": "200"}
    command = [sys.executable, "-m", "tdce", "serve", str(artefact), "--port", "0"]
    with subprocess.Popen(command, stdout=other, stderr=subprocess.DEVNULL, env=env) as process:
        try:
            said = b""
            while b"stops it" not in said:
                said += os.read(terminal, 4096)
            address, _, token = said.decode().split(" at ")[1].split()[0].partition("#token=")
            assert len(token) >= 32
            assert httpx.get(f"{address}people", trust_env=False).status_code == 401
            bearer = {"authorization": f"Bearer {token}"}
            assert httpx.get(f"{address}people", headers=bearer, trust_env=False).status_code == 200
            for _ in range(200):
                if opened.exists():
                    break
                time.sleep(0.05)
            url, mode, page = opened.read_text().split("\n", 2)
        finally:
            process.terminate()
    os.close(terminal)
    os.close(other)
    assert url.startswith("file://")
    assert token not in url  # which every user can read in the list of processes
    assert mode == "700"
    assert f"url={address}#token={token}" in page


def test_a_command_without_a_terminal_opens_nothing_and_a_token_can_be_named(artefact, tmp_path):
    script = tmp_path / "browser"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/opened\n")
    script.chmod(0o700)
    with studio.start_server(artefact, "--token", TOKEN, BROWSER=str(script), DISPLAY=":0") as (address, _):
        assert TOKEN not in address  # who named it knows it, and logs may be read by others
        assert httpx.get(f"{address}people", trust_env=False).status_code == 401
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"{address}people", headers=bearer, trust_env=False).status_code == 200
    assert not (tmp_path / "opened").exists()
