"""Other settings of columns, and switched laws, over HTTP: what Python answers with such a schema, and nothing changed
on the server."""

import json
import threading
from dataclasses import replace

import lending
import pytest
import studio
from hypothesis import given, settings
from hypothesis import strategies as st

import tdce
from tdce import InputError
from tdce.schema import SETTABLE
from tdce.serving.columns import edit_schema, may_follow, switch_laws, with_schema
from tdce.serving.json_rows import json_to_frame
from tdce.serving.queue import ExplainQueue, QueueFullError

TURNED = [{"name": "price", "follows": ["total_paid", "months"]}]


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def client(explainer):
    with studio.connect(explainer) as client:
        yield client


@pytest.fixture(scope="module")
def months() -> tdce.Explainer:
    return studio.lawful_explainer()


@pytest.fixture(scope="module")
def bound(months):
    with studio.connect(months) as client:
        yield client


@pytest.fixture(scope="module")
def insured() -> tdce.Explainer:
    return studio.insured_explainer()


@pytest.fixture(scope="module")
def lawful(insured):
    with studio.connect(insured) as client:
        yield client


def refused(client, count: int = 5) -> list[dict]:
    return [person["values"] for person in client.get(f"/people?met=false&count={count}").json()["people"]]


def switches(*numbers: int, on: bool = False) -> list[dict]:
    return [{"number": number, "on": on} for number in numbers]


def tried(client, rows: list[dict], *edits: dict, **question) -> dict:
    found = client.post("/columns", json={"rows": rows, "columns": list(edits), **question})
    assert found.status_code == 200, found.text
    return found.json()


@pytest.mark.parametrize(
    ("edits", "question"),
    [
        ((), {}),
        (({"name": "income", "role": "immutable"},), {"immutable": ["income"]}),
        (({"name": "debt", "cost": 20}, {"name": "age", "cost": 0}), {"costs": {"debt": 20, "age": 0}}),
        (({"name": "income", "immutable": True}, {"name": "debt", "cost": None}), {"immutable": ["income"]}),
    ],
)
def test_settings_give_the_answers_of_the_question_that_asks_for_the_same(client, explainer, edits, question):
    rows = studio.people(explainer, 3)
    asked = client.post("/explain", json={"rows": rows, **question}).json()["lines"]
    assert tried(client, rows, *edits)["lines"] == asked


def test_directions_and_steps_hold_in_the_answers(client, explainer):
    rows = studio.people(explainer, 5)
    frozen = [{"name": name, "role": "history"} for name in ("housing", "age")]
    up = tried(client, rows, *frozen, {"name": "income", "step": 250}, {"name": "debt", "direction": "increase"})
    moved = [change for line in up["lines"] for change in line["changes"]]
    assert {change["feature"] for change in moved} == {"income"}
    assert all(change["after"] % 250 == 0 for change in moved)
    column = next(column for column in up["columns"] if column["name"] == "income")
    assert (column["step"], column["role"], column["may_change"]) == (250, "actionable", "yes")
    assert column["described"].endswith("steps of 250")


def test_a_law_is_turned_round_and_the_answer_says_what_follows(bound, months):
    rows = [person["values"] for person in bound.get("/people?met=false&count=5").json()["people"]]
    fitted, turned = tried(bound, rows, audience="analyst"), tried(bound, rows, *TURNED, audience="analyst")
    follows = [{column["name"]: column["follows"] for column in each["columns"]} for each in (fitted, turned)]
    assert (follows[0]["total_paid"], follows[0]["price"]) == (["months", "price"], None)
    assert (follows[1]["total_paid"], follows[1]["price"]) == (None, ["total_paid", "months"])
    said = " ".join(line["sentence"] for line in fitted["lines"])
    assert "price:" not in said
    assert "price were" not in " ".join(line["sentence"] for line in turned["lines"])  # it is never chosen
    schema = months.schema.change("price", follows=["total_paid", "months"])
    assert tdce.Schema.from_json(turned["edited_schema"]) == schema
    answer = with_schema(months, schema).explain(json_to_frame(rows, months.fitted.encoder))
    assert [line["sentence"] for line in turned["lines"]] == answer.sentences(audience="analyst")
    assert [line["sentence"] for line in turned["lines"]] != [line["sentence"] for line in fitted["lines"]]


def test_a_law_is_switched_off_and_back_on(months):
    off = edit_schema(months.schema, [{"name": "total_paid", "follows": []}])
    assert "total_paid" not in off.followers
    on = edit_schema(off, [{"name": "total_paid", "follows": ["price", "months"]}])
    assert on == months.schema
    assert may_follow(months.schema, "months") == [("total_paid", "price")]
    assert may_follow(months.schema, "rating") == []


def test_a_law_of_any_kind_is_listed_with_its_rows_exceptions_and_strength(lawful, insured):
    listed = tried(lawful, refused(lawful, 1))["laws"]
    assert listed == lawful.get("/laws").json()["laws"]
    schema = insured.schema
    assert {law.kind for law in schema.laws} == {"follows", "order", "equivalent", "within"}
    assert [(law["number"], law["words"], law["sentence"]) for law in listed] == [
        (i, str(law), schema.sentences()[i]) for i, law in enumerate(schema.laws)
    ]
    for shown, law in zip(listed, schema.laws, strict=True):
        assert (shown["support"], shown["exceptions"], shown["on"]) == (law.support, law.exceptions, True)
        assert (shown["hard"], shown["columns"], shown["follower"]) == (law.hard, list(law.columns), law.follower)
        assert shown["strength"] == getattr(law, "strength", None)
    assert [shown["hard"] for shown in listed if shown["exceptions"]] == [False]


def test_laws_switched_off_give_the_answers_of_a_schema_without_them(lawful, insured):
    rows, ranges = refused(lawful), [i for i, law in enumerate(insured.schema.laws) if law.kind == "within"]
    fitted, free = tried(lawful, rows), tried(lawful, rows, laws=switches(*ranges))
    schema = insured.schema.without_laws(*ranges)
    assert tdce.Schema.from_json(free["edited_schema"]) == schema
    assert [law["on"] for law in free["laws"]] == [law.on for law in schema.laws]
    answer = with_schema(insured, schema).explain(json_to_frame(rows, insured.fitted.encoder))
    assert [line["sentence"] for line in free["lines"]] == answer.sentences()
    assert free["lines"] != fitted["lines"]
    assert tried(lawful, rows, laws=switches(*ranges, on=True)) == fitted


def test_any_law_is_switched_off_and_on_by_itself(insured):
    for number in range(len(insured.schema.laws)):
        off = switch_laws(insured.schema, switches(number))
        assert off == insured.schema.without_laws(number)
        assert switch_laws(off, switches(number, on=True)) == insured.schema
    everything = range(len(insured.schema.laws))
    assert switch_laws(insured.schema, switches(*everything)) == insured.schema.without_laws()
    assert switch_laws(insured.schema, ()) == insured.schema


def test_a_switch_comes_after_what_a_column_follows(bound):
    (law,) = tried(bound, refused(bound, 1), *TURNED, laws=switches(0))["laws"]
    assert (law["on"], law["follower"], law["columns"]) == (False, "price", ["price", "total_paid", "months"])
    off = {"name": "total_paid", "follows": []}
    reply = tried(bound, refused(bound, 1), off, laws=switches(0, on=True))
    assert reply["laws"][0]["on"]
    assert {column["name"]: column["follows"] for column in reply["columns"]}["total_paid"] == ["months", "price"]


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        ("all", "laws is 'all'; it must be a list of objects, each with number and on"),
        ({"number": 0, "on": False}, "laws is {'number': 0, 'on': False}; it must be a list of objects"),
        ([0], "laws has 0; each entry must be an object with number and on"),
        ([{"number": 0}], "laws has {'number': 0}; each entry must be an object with number and on"),
        ([{"number": 0, "on": False, "off": True}], "each entry must be an object with number and on"),
        (switches(7), "there is no law 7; the schema has 7, counted from 0"),
        (switches(-1), "there is no law -1; the schema has 7, counted from 0"),
        ([{"number": "0", "on": False}], "there is no law '0'; the schema has 7, counted from 0"),
        ([{"number": True, "on": False}], "there is no law True"),
        ([{"number": [0], "on": False}], "there is no law [0]"),
        ([{"number": 1.5, "on": False}], "there is no law 1.5"),
        ([{"number": 2, "on": "no"}], "law 2: on is 'no'; it must be true or false"),
        ([{"number": 2, "on": 0}], "law 2: on is 0; it must be true or false"),
        ([{"number": 2, "on": None}], "law 2: on is None; it must be true or false"),
        (switches(2, 2), "laws names law 2 twice; name it once"),
        (None, "laws is None; it must be a list of objects"),
    ],
)
def test_a_wrong_switch_is_named(lawful, insured, laws, words):
    found = lawful.post("/columns", json={"rows": refused(lawful, 1), "laws": laws})
    assert found.status_code == 422
    with pytest.raises(InputError) as wrong:
        switch_laws(insured.schema, laws)
    assert found.json() == {"detail": str(wrong.value)}
    assert words in found.json()["detail"]


def test_laws_that_follow_each_other_in_a_circle_are_named(months):
    law = months.schema.laws[0]
    both = replace(months.schema, laws=(law, replace(law.turned("price"), on=False)))
    with pytest.raises(InputError, match=r"follows itself, through .*; switch off one of these laws"):
        switch_laws(both, switches(1, on=True))


def test_nothing_on_the_server_changes(bound, months):
    rows = [person["values"] for person in bound.get("/people?met=false&count=2").json()["people"]]
    body = {"rows": rows, "seed": 3}
    before, known = bound.post("/explain", json=body).json(), set(months.fitted.memo)
    schema, queried = bound.get("/schema").json(), bound.get("/report").json()["model_rows"]
    tried(bound, rows, *TURNED, {"name": "complaints", "role": "identifier"}, {"name": "rating", "cost": 7, "step": 2})
    tried(bound, rows, laws=switches(0))
    assert bound.get("/schema").json() == schema
    assert bound.post("/explain", json=body).json() == before
    assert set(months.fitted.memo) == known  # nor is anything kept for these settings
    assert bound.get("/report").json()["model_rows"] > queried  # but the queries are counted


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ("age", "columns is 'age'; it must be a list of objects, each with the name of a column"),
        ([3], "columns has 3; each entry must be an object with the name of a column"),
        ([{"role": "history"}], "each entry must be an object with the name of a column"),
        ([{"name": "agee"}], "there is no feature 'agee'; did you mean 'age'?"),
        ([{"name": "age", "role": "x"}], "'age': there is no role 'x'"),
        ([{"name": "age", "role": "follows"}], "comes from a law of the table and is not set"),
        ([{"name": "age", "low": 3}], "'age': 'low' cannot be set here; known: role, immutable, direction, step"),
        ([{"name": "age", "step": 0}], "'age': step 0 must be positive"),
        ([{"name": "age", "cost": -1}], "the cost of 'age'"),
        ([{"name": "age", "cost": "1"}], "the cost of 'age'"),
        ([{"name": "housing", "step": 2}], "'housing': unknown setting 'step'"),
        ([{"name": "age", "follows": ["debt"]}], "'age' cannot follow debt: no law binds just these columns"),
        ([{"name": "age", "follows": "debt"}], "follows"),
        ([{"name": "age"}, {"name": "age", "cost": 2}], "columns names 'age' twice"),
        ([{"name": "age", "role": "history", "immutable": "no"}], "'age'"),
    ],
)
def test_a_wrong_setting_is_named(client, explainer, edits, words):
    found = client.post("/columns", json={"rows": studio.people(explainer, 1), "columns": edits})
    assert found.status_code == 422
    with pytest.raises(InputError) as wrong:
        edit_schema(explainer.schema, edits)
    assert found.json() == {"detail": str(wrong.value)}
    assert words in found.json()["detail"]


def test_what_must_not_be_named_is_in_no_setting_for_people(months):
    silent = months.with_words({"price": {"named": False}})
    with studio.connect(silent) as client:
        rows = [person["values"] for person in client.get("/people?met=false&count=1").json()["people"]]
        seen, whole = tried(client, rows, audience="analyst"), tried(client, rows)
    assert "price" not in json.dumps([seen["columns"], seen["laws"], seen["lines"]])
    assert [law["follower"] for law in whole["laws"]] == ["total_paid"]
    assert {column["name"] for column in whole["columns"]} - {column["name"] for column in seen["columns"]} == {"price"}


def test_rows_that_settings_are_tried_on_count_in_the_queue(explainer):
    gate, queue = threading.Event(), ExplainQueue(explainer, 10)
    try:
        queue.run(gate.wait)
        while queue.waiting:
            pass
        queue.run(gate.wait, 6)
        assert queue.waiting == 6
        with pytest.raises(QueueFullError):
            queue.run(gate.wait, 5)
    finally:
        gate.set()
        queue.close()


names = st.sampled_from(["months", "price", "total_paid", "complaints", "contract", "rating", "nobody"])
anything = st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.lists(names, max_size=3)
edit = st.fixed_dictionaries(
    {"name": names},
    optional={
        "role": st.sampled_from(SETTABLE) | anything,
        "immutable": st.booleans() | anything,
        "direction": st.sampled_from(["any", "increase", "decrease"]) | anything,
        "step": st.floats(0.01, 100) | anything,
        "cost": st.floats(0, 1000) | anything,
        "follows": st.lists(names, max_size=2) | anything,
    },
)

switch = st.fixed_dictionaries(
    {"number": st.integers(-1, 1) | anything, "on": st.booleans() | anything}, optional={"more": anything}
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(edits=st.lists(edit, max_size=4), laws=st.lists(switch, max_size=2) | anything)
def test_any_settings_are_a_schema_that_can_be_fitted_or_are_named(months, edits, laws):
    try:
        schema = switch_laws(edit_schema(months.schema, edits), laws)
    except InputError:
        return
    assert tdce.Schema.from_json(schema.to_json()) == schema
    assert schema.names == months.schema.names
    assert with_schema(months, schema).schema == schema  # the encoder has every setting, too
    for column in schema:
        for group in may_follow(schema, column.name):
            assert set(group) | {column.name} in [set(law.columns) for law in schema.laws]
