"""The words of the studio: every one from the catalogues, in the language that somebody reads."""

import re
from importlib.resources import files

import lending
import numpy as np
import pytest
import studio

import tdce
from tdce.metrics import MEANING
from tdce.report.language.catalogue import languages, load_catalogue
from tdce.report.language.speaker import Speaker
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.serving.descriptions import default_person, describe_column
from tdce.serving.i18n import page_words, parse_accept_language

STUDIO = files("tdce.serving")
SCRIPTS = {path.name: path.read_text("utf-8") for path in STUDIO.joinpath("static").iterdir() if path.suffix == ".js"}
SAME = {  # in both languages
    "studio_name", "studio_person", "studio_page_person", "studio_person_number", "studio_target_example",
    "studio_position", "report_status", "report_row", "report_worth_person",
}  # fmt: skip
OURS = ("studio_", "report_", "metric_", "good_")


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def client(explainer):
    with studio.connect(explainer) as client:
        yield client


def used(key: str) -> bool:
    """Whether a page, or what answers it, says this message."""
    python = "".join(path.read_text("utf-8") for path in STUDIO.iterdir() if path.suffix in (".py", ".html"))
    name = key.removeprefix("studio_")
    scripts = "".join(SCRIPTS.values())
    made = [prefix for prefix in re.findall(r"\bt\(`(\w+_)\$\{", scripts) if name.startswith(prefix)]
    return f'"{name}"' in scripts or re.search(f"['\"]{key}['\"]", python) is not None or bool(made)


def asked_for() -> set[str]:
    """The keys in the scripts, also of a choice: t(some ? "a" : "b")."""
    calls = re.findall(r"\b(?:t|rich)\(([^`{]*?\"\w+\"[^`{]*?)[,)]", "".join(SCRIPTS.values()))
    return {key for call in calls for key in re.findall(r'(?<!== )"(\w+)"', call)}


@pytest.mark.parametrize("language", languages())
def test_every_message_that_a_script_says_is_in_every_catalogue(language):
    known, found = page_words(language)["messages"], asked_for()
    assert len(found) > 100
    assert found - known.keys() == set()


def test_no_message_of_the_studio_is_for_nobody():
    assert [key for key in load_catalogue("en").messages if key.startswith("studio_") and not used(key)] == []


def test_german_is_german():
    english, german = load_catalogue("en").messages, load_catalogue("de").messages
    alike = {key for key in english if key.startswith(OURS) and english[key] == german[key]}
    places = {key for key in alike if not re.sub(r"\{\w+\}|\W", "", str(english[key]))}  # no word in it
    assert alike - places == SAME


def test_scripts_have_no_words_of_their_own():
    rule = "at most 2 changes"  # in the language of rules, which is English
    for name, text in SCRIPTS.items():
        code = re.sub(r"//.*|FONT = .*|\bclass: .*?[,}]", "", text)
        assert set(re.findall(r'"([A-Z]?[a-z’]+(?: [a-z0-9’]+)+[.?]?)"', code)) <= {rule}, name


def test_metrics_mean_the_same_in_the_catalogue():
    messages = load_catalogue("en").messages
    assert {name: messages[f"metric_{name}"] for name in MEANING} == {name: said for name, (_, said) in MEANING.items()}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("de-CH, fr;q=0.7, en;q=0.8", ["de-CH", "en", "fr"]),
        ("en;q=0, de", ["de"]),
        ("*;q=0.1,  de ;q=x", ["*"]),
        ("", []),
    ],
)
def test_the_dearest_language_comes_first(header, found):
    assert parse_accept_language(header) == found


@pytest.mark.parametrize(
    ("path", "headers", "language"),
    [
        ("/", {}, "en"),
        ("/", {"accept-language": "fr, de-AT;q=0.5, en;q=0.4"}, "de"),
        ("/", {"accept-language": "de", "cookie": "tdce-language=en"}, "en"),
        ("/?lang=de", {"accept-language": "en", "cookie": "tdce-language=en"}, "de"),
        ("/?lang=xx", {"accept-language": "de"}, "de"),
        ("/?lang=%22%3E%3Cscript%3E", {}, "en"),
    ],
)
def test_the_page_is_in_the_language_that_is_read(client, path, headers, language):
    found = client.get(path, headers=headers)
    assert f'<html lang="{language}">' in found.text
    assert load_catalogue(language).text("studio_skip") in found.text
    assert found.headers["content-language"] == language
    assert "set-cookie" not in found.headers  # only who chooses one is given one


def test_words_need_no_token_and_an_unknown_language_is_named(client):
    found = client.get("/words", params={"language": "de"}).json()
    assert (found["locale"], found["languages"]) == ("de-DE", {"de": "Deutsch", "en": "English"})
    assert found["messages"]["rows_done"]["one"] == "{count} Zeile ist erklärt"
    assert client.get("/words", params={"language": "xx"}).status_code == 422
    assert client.get("/schema", params={"language": "xx"}).status_code == 422


def test_answers_are_in_the_language_that_is_asked_for(client, explainer):
    (row,) = studio.people(explainer, 1)
    asked = {"row": row, "values": row | {"age": row["age"] + 1}, "immutable": ["age"]}
    for audience in ("program", "analyst"):
        said = client.post("/check", json=asked | {"language": "de", "audience": audience}).json()["not_allowed"]
        assert said == ["age darf sich nicht ändern"]
    walk = client.post("/walk", json={"row": row, "language": "de"}).json()["algorithm"]
    assert walk.startswith("Algorithmus 1: ")
    job = client.post("/jobs", json={"language": "de"}).json()["id"]
    head, cells = ",".join(row), ",".join(map(str, row.values()))
    client.put(f"/jobs/{job}/rows", content=f"{head}\n{cells}\n", headers={"content-type": "text/csv"})
    while (state := client.get(f"/jobs/{job}").json()["state"]) in ("queued", "running"):
        pass
    assert state == "done"
    assert '<html lang="de">' in client.get(f"/jobs/{job}/report.html").text
    client.delete(f"/jobs/{job}")
    assert client.post("/jobs", json={"language": "xx"}).status_code == 422


def test_columns_are_described_in_both_languages():
    schema = tdce.load("german").schema
    assert schema is not None
    for language, age, home in (
        ("en", "19 to 75, whole numbers", "3 categories: rent-free · owned · rented"),
        ("de", "19 bis 75, ganze Zahlen", "3 Kategorien: mietfrei · Eigentum · gemietet"),
    ):
        speaker = Speaker.of(schema, language, "analyst")
        assert describe_column(schema["age"], speaker) == age
        assert describe_column(schema["housing"], speaker) == home


def test_somebody_usual_has_the_median_and_the_most_common():
    columns = [Numeric("age", 18, 99, 1), Categorical("home", ("own", "rent")), Numeric("rate", 0, 1, missing=True)]
    people = np.array([[20.0, 1, np.nan], [31.0, 1, np.nan], [90.0, 0, np.nan], [32.0, 0, np.nan], [30.0, 1, np.nan]])
    assert default_person(people, columns) == {"age": 31, "home": "rent", "rate": None}
