"""The HTTP API: the answers of Python, to the bit; its limits; who may ask; and files."""

import asyncio
import json
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import lending
import numpy as np
import pandas as pd
import pytest
import studio
import torch
from fits import kept

import tdce
from tdce import InputError
from tdce.datasets.files import Dialect, read_table
from tdce.methods import Question
from tdce.serving.json_rows import json_to_frame
from tdce.serving.middleware import RateLimiter
from tdce.serving.queue import ExplainQueue
from tdce.serving.server import bind_socket
from tdce.serving.settings import ServerLimits, ServerSettings

TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture(scope="module")
def explainer() -> tdce.Explainer:
    return lending.explainer()


@pytest.fixture(scope="module")
def client(explainer):
    with studio.connect(explainer) as client:
        yield client


@pytest.fixture(scope="module")
def artefact(explainer, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("studio") / "lending.tdce"
    explainer.save(path)
    return path


@pytest.fixture(scope="module")
def address(artefact):
    with studio.start_server(artefact) as (address, _):
        yield address


def same_as_python(lines: list[dict], answer: tdce.Answer) -> None:
    """Every value of every line, with ==."""
    frame = answer.to_frame()
    assert len(lines) == len(frame)
    names = list(answer.features)
    for line, (_, row) in zip(lines, frame.iterrows(), strict=True):
        assert line["values"] == {name: row[name] for name in names}
        for name in ("option", "status", "score_before", "score_after", "plausibility", "safety", "note"):
            assert line[name] == row[name]
    changes = [(c["feature"], c["before"], c["after"]) for line in lines for c in line["changes"]]
    assert changes == [tuple(c) for c in answer.changes()[["feature", "before", "after"]].itertuples(index=False)]


# the answers


QUESTIONS = [
    {},
    {"n": 3, "seed": 5, "immutable": ["age"]},
    {"closeness": 0.1, "costs": {"debt": 3}, "rules": ["at most 2 changes", "income <= was(income) + 1500"]},
    {"threshold": 0.8, "target": "yes"},
    {"max_model_rows": 200},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_an_answer_is_pythons_to_the_bit(client, explainer, question):
    rows = studio.people(explainer, 3)
    found = client.post("/explain", json={"rows": rows, **question})
    assert found.status_code == 200, found.text
    same_as_python(found.json()["lines"], explainer.explain(json_to_frame(rows, explainer.fitted.encoder), **question))


def test_an_answer_is_that_of_the_command_line_to_the_bit(client, explainer, artefact, tmp_path):
    from typer.testing import CliRunner

    from tdce.cli import app

    rows, out = tmp_path / "rows.csv", tmp_path / "out.jsonl"
    lending.refused(explainer, 4).to_csv(rows, index=False)
    assert CliRunner().invoke(app, ["explain", str(artefact), str(rows), "-n", "2", "--out", str(out)]).exit_code == 0
    told = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    lines = client.post("/explain", json={"rows": studio.people(explainer, 4), "n": 2}).json()["lines"]
    flat = [{**line["values"], **{k: line[k] for k in told[0] if k in line}} for line in lines]
    assert flat == told


def test_requests_that_wait_together_get_the_answers_that_each_gets_alone(explainer):
    """Some are alike and answered in one call, one asks something else, one is wrong."""
    rows, encoder = lending.refused(explainer, 40).head(6), explainer.fitted.encoder
    rows = json.loads(rows.to_json(orient="records"))
    assert len(rows) == 6
    frames = [json_to_frame([row], encoder) for row in rows]
    questions = [{"n": 1}, {"n": 1}, {"n": 2}, {"n": 1}, {"n": 1}, {"n": 1, "rules": ["income >"]}]
    calls = list[tuple[int, int]]()
    queue = ExplainQueue(explainer, 100, lambda requests, rows: calls.append((requests, rows)))
    try:
        held = threading.Event()
        queue.run(held.wait)  # so that all of them wait
        results = [queue.explain(frame, Question(**each)) for frame, each in zip(frames, questions, strict=True)]
        held.set()
        for frame, question, result in zip(frames[:5], questions, results, strict=False):
            alone, found = explainer.explain(frame, **question), result.result(60)
            pd.testing.assert_frame_equal(found.to_frame(), alone.to_frame(), check_exact=True)
            assert found.changes().equals(alone.changes())
        with pytest.raises(InputError, match="income >"):
            results[5].result(60)
    finally:
        queue.close()
    assert sorted(calls) == [(1, 1), (1, 1), (4, 4)]


def test_no_request_is_lost_while_others_are_taken(explainer):
    """Many threads send requests of two kinds while they are taken from the queue; every one is answered."""
    rows = json_to_frame(studio.people(explainer, 1), explainer.fitted.encoder)
    answer = explainer.explain(rows)
    quick = lending.explainer()
    quick.ask = lambda frame, question, ensemble=None: replace(  # type: ignore[method-assign]
        answer, rows=frame, written=pd.concat([answer.written] * len(frame)),
        explanation=answer.explanation.take(np.zeros(len(frame), dtype=np.int64)),
        target=answer.target.repeat(len(frame)), wanted=answer.wanted.repeat(len(frame)),
        goals=answer.goals.take(torch.zeros(len(frame), dtype=torch.long)),
    )  # fmt: skip
    queue = ExplainQueue(quick, 100_000)
    try:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda i: queue.explain(rows, Question(seed=i % 2)), range(2000)))
        assert all(len(result.result(60)) == 1 for result in results)
    finally:
        queue.close()


def test_one_wrong_row_spoils_no_other_request(explainer):
    encoder = explainer.fitted.encoder
    good, bad = (json_to_frame([row], encoder) for row in studio.people(explainer, 2))
    bad["housing"] = ["boat"]
    queue = ExplainQueue(explainer, 100)
    try:
        held = threading.Event()
        queue.run(held.wait)
        first, second = queue.explain(good, Question()), queue.explain(bad, Question())
        held.set()
        assert first.result(60).lines == explainer.explain(good).lines
        with pytest.raises(InputError, match="'housing' has category 'boat' in row 0, not seen in fit"):
            second.result(60)
    finally:
        queue.close()


def test_what_is_dropped_before_its_turn_is_never_computed(explainer):
    calls = list[tuple[int, int]]()
    queue = ExplainQueue(explainer, 100, lambda requests, rows: calls.append((requests, rows)))
    try:
        held = threading.Event()
        queue.run(held.wait)
        dropped = queue.explain(json_to_frame(studio.people(explainer, 1), explainer.fitted.encoder), Question())
        assert dropped.cancel()
        held.set()
        queue.run(lambda: None).result(60)
    finally:
        queue.close()
    assert calls == []


def test_rows_of_json_have_the_dtypes_of_a_file(explainer, tmp_path):
    rows = studio.people(explainer, 5)
    path = tmp_path / "rows.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    pd.testing.assert_frame_equal(
        json_to_frame(rows, explainer.fitted.encoder), read_table(path, explainer.schema), check_exact=True
    )


def test_other_columns_are_carried_and_order_does_not_matter(client, explainer):
    (row,) = studio.people(explainer, 1)
    plain = client.post("/explain", json={"rows": [row]}).json()["lines"][0]
    turned = {"id": "A-17", **dict(reversed(row.items())), "memo": None}
    found = client.post("/explain", json={"rows": [turned]}).json()["lines"][0]
    assert found["values"] == plain["values"] | {"id": "A-17", "memo": None}


def test_predictions_are_pythons(client, explainer):
    rows = studio.people(explainer, 4)
    frame = json_to_frame(rows, explainer.fitted.encoder)
    found = client.post("/predict", json={"rows": rows}).json()["decisions"]
    assert [each["prediction"] for each in found] == explainer.predict(frame).tolist()
    assert [each["probabilities"] for each in found] == explainer.predict_proba(frame).to_dict(orient="records")


def test_what_is_known_of_the_table_is_told(client, explainer):
    schema = client.get("/schema").json()
    assert schema["features"] == json.loads(explainer.schema.to_json())["features"]
    assert (schema["label"], schema["favourable"]) == ("decision", "yes")
    assert client.get("/laws").json() == {"laws": [], "rules": []}
    assert client.get("/report").json()["rows"] == 1200
    assert client.get("/health").json()["status"] == "ok"
    assert "tdce_rows_explained_total" in client.get("/metrics").text


def test_people_are_synthetic_unless_rows_are_given(client, explainer):
    found = client.get("/people", params={"count": 3, "met": False}).json()
    assert found["source"] == "synthetic"
    assert len(found["people"]) == 3
    for person in found["people"]:
        (said,) = client.post("/predict", json={"rows": [person["values"]]}).json()["decisions"]
        assert (person["prediction"], person["met"]) == (said["prediction"], said["prediction"] == "yes")
        assert person["score"] == said["probabilities"]["yes"]
        assert client.get(f"/people/{person['number']}").json() == person
    with studio.connect(explainer, rows=lending.table(7)) as other:
        given = other.get("/people").json()
    assert (given["source"], given["total"]) == ("rows", 7)
    assert given["people"][0]["values"]["income"] == int(lending.table(7)["income"][0])


# "why not this?" and the walk


def test_an_answer_checked_by_hand_has_the_score_of_the_answer(client, explainer):
    rows = studio.people(explainer, 3)
    for line in client.post("/explain", json={"rows": rows, "n": 2}).json()["lines"]:
        found = client.post("/check", json={"row": rows[line["row"]], "values": line["values"]}).json()
        assert {k: found[k] for k in ("score_before", "score_after", "plausibility", "distance")} == {
            k: line[k] for k in ("score_before", "score_after", "plausibility", "distance")
        }
        assert found["met"] == (line["status"] == "valid")
        assert (found["broken"], found["not_allowed"]) == ([], [])
        assert found["changed"] == [change["feature"] for change in line["changes"]]


def test_what_a_change_by_hand_breaks_is_named(client, explainer):
    (row,) = studio.people(explainer, 1)
    rules = ["at most 1 change", "debt >= was(debt)"]
    values = row | {"income": row["income"] + 500, "debt": 0.0, "age": row["age"] + 1}
    found = client.post("/check", json={"row": row, "values": values, "rules": rules, "immutable": ["age"]}).json()
    assert found["broken"] == rules
    assert found["not_allowed"][-1] == "age may not change"
    assert found["changed"] == ["income", "debt", "age"]


def test_a_walk_ends_where_it_says_and_keeps_what_may_not_change(client, explainer):
    (row,) = studio.people(explainer, 1)
    found = client.post("/walk", json={"row": row, "immutable": ["age"], "seed": 3}).json()
    times = [frame["t"] for frame in found["frames"]]
    assert times == sorted(times, reverse=True)
    assert (times[0], times[-1]) == (500, 0)
    assert {frame["values"]["age"] for frame in [*found["frames"], found["returned"]]} == {row["age"]}
    checked = client.post("/check", json={"row": row, "values": found["returned"]["values"]}).json()
    assert checked["score_after"] == found["returned"]["score"]
    assert checked["met"] == found["met"]
    again = client.post("/walk", json={"row": row, "immutable": ["age"], "seed": 3}).json()
    assert again == found


def test_a_model_without_gradients_walks_too(explainer):
    frame = lending.table(300)
    given = tdce.Explainer(
        hidden=16, steps=20, progress="silent", model=lambda rows: np.where(rows["income"] > 3000, "yes", "no")
    ).fit(frame, label="decision", favourable="yes")
    with studio.connect(given) as client:
        row = {"income": 2000, "debt": 10.0, "housing": "rent", "age": 30}
        found = client.post("/walk", json={"row": row}).json()
    assert "has no gradient" in found["algorithm"]
    assert len(found["frames"]) == 41


def test_what_must_not_be_named_is_in_no_json_for_people(explainer):
    """`debt` is barred for everybody, `housing` for the applicant."""
    fitted = explainer.fitted
    known = explainer.schema.change("debt", words={"named": False, "label": "the secret sum"})
    known = known.change("housing", words={"seen_by": "analyst"})
    barred = lending.explainer()
    columns = tuple(replace(learned, column=known[learned.column.name]) for learned in fitted.encoder.columns)
    barred.fitted_ = replace(fitted, encoder=replace(fitted.encoder, columns=columns, full_schema=known))
    rows, rules = (
        studio.people(explainer, 6),
        ["debt <= 5000", "if housing == 'own' then debt <= 4000", "at most 2 changes"],
    )
    with studio.connect(barred) as client:
        for audience, hidden in (("analyst", ["debt", "secret"]), ("applicant", ["debt", "secret", "housing"])):
            asked = {"rows": rows, "n": 2, "rules": rules, "audience": audience, "immutable": ["age"]}
            found = client.post("/explain", json=asked)
            assert found.status_code == 200
            assert sum(line["unnamed"] for line in found.json()["lines"]) > 0
            assert not any(word in found.text for word in hidden)
            other = {"row": rows[0], "values": rows[0] | {"debt": 90_000.0, "housing": "own"}, "rules": rules}
            checked = client.post("/check", json=other | {"audience": audience})
            assert "a rule that is not named here" in checked.text
            assert not any(word in checked.text for word in hidden)
        program = client.post("/explain", json={"rows": rows, "n": 2}).json()["lines"]
    assert all("debt" in line["values"] for line in program)
    assert not any("debt" in line["sentence"] + line["letter"] + str(line["reasons"]) for line in program)


# wrong input


@pytest.mark.parametrize(
    ("change", "question"),
    [
        ({"housing": "boat"}, {}),
        ({"income": "much"}, {}),
        ({"income": float("inf")}, {}),
        ({}, {"n": 0}),
        ({}, {"n": "3"}),
        ({}, {"closeness": 2}),
        ({}, {"safety": 1}),
        ({}, {"target": "maybe"}),
        ({}, {"immutable": "age"}),
        ({}, {"immutable": ["aeg"]}),
        ({}, {"rules": ["income > 5 *"]}),
        ({}, {"rules": ["income > 9000", "income < 1000"]}),
        ({}, {"costs": {"debt": -1}}),
        ({}, {"costs": [3]}),
        ({}, {"seed": -1}),
        ({}, {"threshold": 1}),
        ({}, {"max_model_rows": 1}),
        ({}, {"target": ["yes", "yes"]}),
    ],
    ids=str,
)
def test_wrong_input_is_answered_with_the_words_of_python(client, explainer, change, question):
    row = studio.people(explainer, 1)[0] | change
    with pytest.raises(InputError) as wrong:
        explainer.explain(pd.DataFrame([row]), **question)
    body = json.dumps({"rows": [row], **question})
    found = client.post("/explain", content=body, headers={"content-type": "application/json"})
    assert (found.status_code, found.json()["detail"]) == (422, str(wrong.value))
    assert (found.json().get("case", ""), found.json().get("facts", {})) == (wrong.value.case, wrong.value.facts)


def test_a_column_that_is_missing_is_named(client, explainer):
    first, second = studio.people(explainer, 2)
    del second["debt"]
    for path, body in (("/explain", {"rows": [first, second]}), ("/predict", {"rows": [second]})):
        found = client.post(path, json=body)
        assert found.status_code == 422
        assert found.json()["detail"] == "column 'debt' is not in the table; it has: income, housing, age"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "the body is not valid JSON"),
        (b"[]", "the body is"),
        (b'{"rows": 3}', "rows is 3; it must be a list of objects"),
        (b'{"rows": [3]}', "rows has 3; each row must be an object"),
        (b'{"rows": [], "n_options": 2}', "there is no argument 'n_options'"),
        (b"{}", "rows is missing"),
        (b'{"rows": [{"income": [1], "debt": 1, "housing": "own", "age": 1}]}', "'income' holds [1]; a cell must be"),
        (b"\xff", "the body is not valid"),
    ],
)
def test_a_body_that_is_no_question_is_named(client, body, words):
    found = client.post("/explain", content=body, headers={"content-type": "application/json"})
    assert found.status_code == 422
    assert found.json()["detail"].startswith(words)


def test_no_rows_are_no_lines(client):
    assert client.post("/explain", json={"rows": []}).json() == {"lines": []}
    assert client.post("/predict", json={"rows": []}).json() == {"decisions": []}


# limits


def test_a_body_that_is_too_large_is_refused_before_it_is_read(explainer):
    with studio.connect(explainer, ServerSettings(limits=ServerLimits(body_bytes=1000))) as client:
        said = client.post("/explain", json={"rows": [{"memo": "x" * 2000}]})
        streamed = client.post("/explain", content=iter([b"x" * 400] * 5), headers={"content-type": "application/json"})
    for found in (said, streamed):
        assert found.status_code == 413
        assert found.json()["detail"] == "the body is larger than 1,000 bytes; send fewer rows, or a file to /jobs"


def test_more_lines_than_a_request_may_have_are_refused(explainer):
    with studio.connect(explainer, ServerSettings(limits=ServerLimits(rows=5))) as client:
        found = client.post("/explain", json={"rows": studio.people(explainer, 3), "n": 2})
    assert (found.status_code, found.json()["detail"]) == (
        413,
        "3 rows with n=2 are more than 5 lines; send a file to /jobs",
    )


def test_a_client_that_asks_too_fast_is_told_when_to_come_again():
    rates = RateLimiter(rate=2, burst=3)
    assert [rates.wait("a", now=0) for _ in range(4)] == [0, 0, 0, 0.5]
    assert rates.wait("b", now=0) == 0
    assert rates.wait("a", now=0.5) == 0


def test_a_refusal_says_when_to_come_again(explainer):
    with studio.connect(explainer, ServerSettings(limits=ServerLimits(rate=0.1, burst=2))) as client:
        codes = [client.get("/health") for _ in range(3)]
    assert [found.status_code for found in codes] == [200, 200, 429]
    assert codes[2].headers["retry-after"] == "10"


def held(client) -> threading.Event:
    """The thread that explains is busy until this is set."""
    begun, event = threading.Event(), threading.Event()
    client.app.app.state.queue.run(lambda: (begun.set(), event.wait()))
    assert begun.wait(30)
    return event


def test_a_full_queue_and_a_slow_answer_are_refused(explainer):
    (row,) = studio.people(explainer, 1)
    with studio.connect(explainer, ServerSettings(limits=ServerLimits(answer_seconds=0.3, queued_rows=1))) as client:
        free = held(client)
        with ThreadPoolExecutor(1) as pool:
            slow = pool.submit(client.post, "/explain", json={"rows": [row]})
            while client.app.app.state.queue.waiting == 0:
                time.sleep(0.01)
            full = client.post("/explain", json={"rows": [row]})
            assert (full.status_code, full.json()["case"]) == (503, "queue_full")
            assert full.headers["retry-after"] == str(full.json()["facts"]["seconds"])
            assert slow.result(30).status_code == 503
            assert slow.result(30).json()["detail"].startswith("there was no answer within 0.3 seconds")
        free.set()


# who may ask


def test_every_answer_has_the_headers_of_a_careful_server(client):
    for found in (client.get("/"), client.get("/health"), client.get("/nowhere"), client.post("/explain", json={})):
        assert found.headers["content-security-policy"].startswith("default-src 'self'; base-uri 'none'")
        assert "unsafe" not in found.headers["content-security-policy"]
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert "frame-ancestors 'none'" in found.headers["content-security-policy"]
    assert client.get("/people").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("127.0.0.1:8484", 200), ("localhost:8484", 200), ("[::1]:8484", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("evil@127.0.0.1", 421), ("", 421), ("[::1", 421),
    ],
)  # fmt: skip
def test_a_foreign_name_that_leads_here_is_refused(client, host, status):
    assert client.get("/people", headers={"host": host}).status_code == status


@pytest.mark.parametrize("hosts", [["127.0.0.1", "evil.example"], ["evil.example", "127.0.0.1"], ["127.0.0.1"] * 2, []])
def test_a_request_with_two_host_headers_or_none_is_refused(client, hosts):
    """By the middleware, also where the server before it lets them pass."""
    headers = [(b"host", host.encode()) for host in hosts]
    scope = {
        "type": "http", "method": "GET", "path": "/people", "headers": headers, "query_string": b"",
        "client": ("127.0.0.1", 1),
    }  # fmt: skip
    sent = list[dict]()

    async def ask() -> None:
        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await client.app(scope, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "HERE"}, 200),
        ({"origin": "HERE", "sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "https://127.0.0.1"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
    ids=str,
)
def test_another_site_can_neither_ask_nor_read(client, headers, status):
    here = str(client.base_url).rstrip("/")
    headers = {name: value.replace("HERE", here) for name, value in headers.items()}
    assert client.post("/predict", json={"rows": []}, headers=headers).status_code == status
    assert client.get("/people", headers=headers).status_code == status


def test_a_form_of_another_site_is_no_question(client):
    found = client.post("/predict", content='{"rows": []}', headers={"content-type": "text/plain"})
    assert (found.status_code, found.json()["detail"]) == (415, "the body must be JSON: Content-Type: application/json")


def test_a_link_from_another_site_opens_the_page_but_no_data(client):
    there = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=there).status_code == 200
    assert client.get("/people", headers=there).status_code == 403


def test_with_a_token_only_those_who_hold_it_are_answered(explainer):
    with studio.connect(explainer, ServerSettings(token=TOKEN)) as client:
        assert client.get("/people").status_code == 401
        for wrong in ("Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN[:-1]}"):
            assert client.get("/people", headers={"authorization": wrong}).status_code == 401
        assert client.get("/people").headers["www-authenticate"] == "Bearer"
        assert client.get("/people", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get("/").status_code == client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": "0.0.0.0"}, "give a token"),
        ({"host": "0.0.0.0", "token": TOKEN}, "give --tls-cert and --tls-key, or --insecure"),
        ({"host": "192.168.1.5", "insecure": True}, "give a token"),
        ({"token": "short"}, "at least 16"),
        ({"certificate": Path("c.pem")}, "go together"),
        ({"certificate": Path("c.pem"), "key": Path("k.pem")}, "there is no file c.pem"),
        ({"port": 70000}, "--port is 70000"),
    ],
)
def test_a_server_that_others_can_reach_needs_a_token_and_tls(settings, words):
    with pytest.raises(InputError, match=words):
        ServerSettings(**settings)


def test_a_server_beyond_this_machine_knows_only_its_own_names():
    settings = ServerSettings(host="192.0.2.1", names=("tdce.example",), token=TOKEN, insecure=True)
    assert [settings.accepts_host(name) for name in ("192.0.2.1", "TDCE.example", "localhost", "other.example")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_nothing_of_anybody_is_logged_unless_asked_for(explainer, caplog):
    (row,) = studio.people(explainer, 1)
    secret = row | {"memo": "secret-memo"}
    caplog.set_level(logging.INFO, "tdce.serving")
    with studio.connect(explainer) as client:
        client.post("/predict", json={"rows": [secret]})
        client.post("/explain?who=secret-memo", json={"rows": [secret | {"housing": "secret-memo"}]})
    assert "POST /predict 200" in caplog.text
    assert "POST /explain 422" in caplog.text
    assert "secret-memo" not in caplog.text
    with studio.connect(explainer, ServerSettings(log_values=True)) as client:
        client.post("/predict", json={"rows": [secret]})
    assert "secret-memo" in caplog.text


# files


def finished(client, job: str, wanted: str = "done") -> dict:
    for _ in range(600):
        told = client.get(f"/jobs/{job}").json()
        if told["state"] in ("done", "failed"):
            break
        time.sleep(0.1)
    assert told["state"] == wanted, told
    return told


def sent(client, content: bytes, kind: str = "text/csv", **question):
    made = client.post("/jobs", json=question)
    assert made.status_code == 201, made.text
    name = made.json()["id"]
    return name, client.put(f"/jobs/{name}/rows", content=content, headers={"content-type": kind})


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_file_is_explained_as_the_command_line_does_it(client, explainer, tmp_path, ending, monkeypatch):
    monkeypatch.setattr("tdce.serving.jobs.JOB_BLOCK_ROWS", 4)
    path, out = tmp_path / f"rows{ending}", tmp_path / "out.csv"
    from tdce.datasets.files import write_table

    write_table(path, lending.table(10, 3).assign(memo="ü,1"))
    kind = {".csv": "text/csv", ".csv.gz": "application/gzip", ".parquet": "application/vnd.apache.parquet"}[ending]
    name, taken = sent(client, path.read_bytes(), kind, n=2, immutable=["age"])
    assert taken.status_code == 202
    told = finished(client, name)
    assert (told["rows"], told["done"], sum(told["counts"].values())) == (10, 10, 20)
    answer = explainer.explain(read_table(path, explainer.schema), n=2, immutable=["age"])
    write_table(out, answer.to_frame(), Dialect(excel_safe=True))
    found = client.get(f"/jobs/{name}/answer.csv")
    assert found.content == out.read_bytes()
    assert "attachment" in found.headers["content-disposition"]
    assert len(client.get(f"/jobs/{name}/answer.jsonl").text.splitlines()) == 20
    assert "<html" in client.get(f"/jobs/{name}/report.html").text
    assert client.delete(f"/jobs/{name}").status_code == 204
    assert client.get(f"/jobs/{name}/answer.csv").status_code == 404


def test_a_job_can_be_stopped_between_blocks(explainer, monkeypatch):
    monkeypatch.setattr("tdce.serving.jobs.JOB_BLOCK_ROWS", 2)
    with studio.connect(explainer) as client:
        jobs, state = client.app.app.state.jobs, client.app.app.state
        free = held(client)
        name, _ = sent(client, lending.table(40, 3).to_csv(index=False).encode())
        folder = jobs[name].folder
        assert client.get(f"/jobs/{name}").json()["state"] in ("queued", "running")
        assert client.get(f"/jobs/{name}/answer.csv").status_code == 409
        assert client.delete(f"/jobs/{name}").status_code == 204
        free.set()
        assert client.get(f"/jobs/{name}").status_code == 404
        state.queue.run(lambda: None).result(60)
        assert not folder.exists()
        everything = jobs.folder
        assert everything.stat().st_mode & 0o777 == 0o700
    assert not everything.exists()


def test_what_is_wrong_with_a_file_is_named(client):
    good = lending.table(3).to_csv(index=False).encode()
    for content, kind, status, words in (
        (b"income,debt\n1,2\n", "text/csv", 422, "column 'housing' is not in the table; it has: income, debt"),
        (b"", "text/csv", 422, "rows.csv cannot be read as csv"),
        (
            good.replace(b",rent", b",boat").replace(b",own", b",boat").replace(b",with parents", b",boat"),
            "text/csv",
            422,
            "'housing' has category 'boat'",
        ),
        (good, "application/zip", 415, "the content type 'application/zip' is not known"),
        (b"nonsense", "application/gzip", 422, "rows.csv.gz cannot be read as csv.gz"),
        (b"nonsense", "application/vnd.apache.parquet", 422, "rows.parquet cannot be read as parquet"),
    ):
        name, taken = sent(client, content, kind)
        assert (taken.status_code, taken.json()["detail"].startswith(words)) == (status, True), taken.text
        assert client.delete(f"/jobs/{name}").status_code == 204
    assert client.post("/jobs", json={"rules": ["income >"]}).status_code == 422
    assert client.post("/jobs", json={"max_model_rows": 5}).status_code == 422
    assert client.get("/jobs/guess").status_code == 404


def test_files_and_jobs_have_bounds(explainer):
    import gzip

    limits = ServerLimits(file_bytes=3000, file_rows=5, jobs=2)
    with studio.connect(explainer, ServerSettings(limits=limits)) as client:
        many, large = lending.table(6).to_csv(index=False).encode(), b"x" * 4000
        bomb = gzip.compress(b"income,debt,housing,age\n" + b"1" * 100_000)
        assert len(bomb) < 3000
        name, found = sent(client, many)
        assert (found.status_code, found.json()["detail"]) == (
            413, "the file has 6 rows; at most 5 are accepted",
        )  # fmt: skip
        for content, kind in ((large, "text/csv"), (iter([large[:1000]] * 4), "text/csv"), (bomb, "application/gzip")):
            found = client.put(f"/jobs/{name}/rows", content=content, headers={"content-type": kind})
            assert found.status_code == 413, kind
        assert client.post("/jobs", json={}).status_code == 201
        assert client.post("/jobs", json={}).status_code == 503


def test_a_job_is_kept_for_a_while_only(explainer):
    with studio.connect(explainer, ServerSettings(limits=ServerLimits(job_seconds=0.2))) as client:
        name = client.post("/jobs", json={}).json()["id"]
        for _ in range(100):
            if client.get(f"/jobs/{name}").status_code == 404:
                break
            time.sleep(0.05)
        assert client.get(f"/jobs/{name}").status_code == 404


# a real server


def test_the_command_serves_on_this_machine_only_and_says_where(address, explainer):
    assert urlsplit(address).hostname == "127.0.0.1"
    rows = studio.people(explainer, 2)
    found = httpx.post(f"{address}explain", json={"rows": rows}).json()["lines"]
    same_as_python(found, explainer.explain(json_to_frame(rows, explainer.fitted.encoder)))
    assert "server" not in httpx.get(address).headers


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0", "--no-token"], "give a token, --token or TDCE_TOKEN"),
        (["--host", "0.0.0.0"], "give --tls-cert and --tls-key, or --insecure"),
        (["--no-token", "--token", TOKEN], "--no-token and a token"),
        (["--id", "name"], "give them too: --rows FILE"),
        (["--host", "0.0.0.0", "--token", TOKEN], "give --tls-cert and --tls-key, or --insecure"),
        (["--host", "203.0.113.7", "--token", TOKEN, "--insecure"], "the server cannot listen on 203.0.113.7"),
    ],
)
def test_the_command_refuses_what_is_not_safe(artefact, words, said):
    from typer.testing import CliRunner

    from tdce.cli import app

    done = CliRunner().invoke(app, ["serve", str(artefact), *words])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


def test_a_port_that_is_taken_is_named(artefact, address):
    from typer.testing import CliRunner

    from tdce.cli import app

    done = CliRunner().invoke(app, ["serve", str(artefact), "--port", str(urlsplit(address).port)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception).endswith("name another one with --port")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_with_a_certificate_it_speaks_tls(artefact, tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=studio"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(words, check=True, capture_output=True)
    with studio.start_server(artefact, "--tls-cert", str(cert), "--tls-key", str(key)) as (address, _):
        assert address.startswith("https://127.0.0.1:")
        found = httpx.get(f"{address}health", verify=ssl.create_default_context(cafile=str(cert)), trust_env=False)
        assert found.json()["status"] == "ok"


def test_a_client_that_hangs_up_half_way_and_one_that_never_ends_harm_nobody(artefact, explainer):
    body = json.dumps({"rows": studio.people(explainer, 1)}).encode()
    with studio.start_server(artefact) as (address, process):
        place = urlsplit(address).hostname, urlsplit(address).port
        head = "POST /explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        for content in (body[:20], body):  # in the middle of the body, and before the answer
            with socket.create_connection(place) as line:
                line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + content)
        assert _endless(place, f"{head}Transfer-Encoding: chunked\r\n\r\n") == b"HTTP/1.1 413"
        assert httpx.post(f"{address}explain", content=body, headers={"content-type": "application/json"}).is_success
        assert process.poll() is None


def _endless(place: tuple, head: str) -> bytes:
    """How the server answers to a body without an end."""
    with socket.create_connection(place) as line:
        line.settimeout(10)
        with suppress(ConnectionError):  # when it has heard enough
            line.sendall(head.encode())
            for _ in range(200):
                line.sendall(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
                time.sleep(0.002)
        return line.recv(12)


def test_a_body_that_never_arrives_is_given_up(explainer):
    import anyio

    from tdce.serving.app import make_app

    app = make_app(explainer, ServerSettings(limits=replace(ServerLimits(), body_seconds=0.2)))
    sent = list[dict]()

    async def run() -> None:
        async def receive():
            await anyio.sleep(10)

        async def send(message):
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {
            "type": "http", "method": "POST", "path": "/explain", "headers": headers, "query_string": b"",
            "client": ("127.0.0.1", 1),
        }  # fmt: skip
        await app(scope, receive, send)

    anyio.run(run)
    assert sent[0]["status"] == 408


def test_headers_that_never_end_are_given_up(explainer):
    slow = replace(ServerLimits(), header_seconds=0.4)
    with studio.connect(explainer, ServerSettings(limits=slow)) as client:
        host, port = client.base_url.host, client.base_url.port
        with socket.create_connection((host, port), timeout=20) as line:
            line.sendall(f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert line.recv(12) == b"HTTP/1.1 200"  # in time, so the connection stays
            while b'"status":"ok"' not in line.recv(4096):
                pass
            line.sendall(b"GET /health HTTP/1.1\r\n")
            with suppress(OSError):  # until the server has hung up
                for _ in range(200):
                    line.sendall(b"x: y\r\n")
                    time.sleep(0.05)
                pytest.fail("bytes that come in one by one won time")
        with socket.create_connection((host, port), timeout=20) as line:
            assert line.recv(1) == b""  # nothing was sent at all
        (row,) = studio.people(explainer, 1)
        assert client.post("/predict", json={"rows": [row]}).status_code == 200


def test_the_parts_of_an_answer_go_out_at_once():
    with bind_socket(ServerSettings(port=0)) as place:  # asyncio sets TCP_NODELAY only where the protocol is named
        assert place.proto == socket.IPPROTO_TCP


def pool(address: str, explainer: tdce.Explainer, clients: int) -> list[float]:
    """This many clients at once, each with a connection of its own; the seconds of each. Every answer is checked."""
    rows = studio.people(explainer, 20)
    alone = explainer.explain(json_to_frame(rows, explainer.fitted.encoder)).to_frame()["score_after"].tolist()

    async def everyone() -> list[float]:
        limits = httpx.Limits(max_connections=clients, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=300, limits=limits, trust_env=False) as client:

            async def ask(i: int) -> float:
                began = time.monotonic()
                found = await client.post(f"{address}explain", json={"rows": [rows[i % len(rows)]]})
                assert found.status_code == 200, found.text
                assert found.json()["lines"][0]["score_after"] == alone[i % len(rows)]
                return time.monotonic() - began

            return await asyncio.gather(*(ask(i) for i in range(clients)))

    return asyncio.run(everyone())


def test_fifty_clients_at_once_are_all_answered(address, explainer):
    assert len(pool(address, explainer, 50)) == 50


@pytest.mark.slow
def test_a_thousand_clients_at_once_are_all_answered(address, explainer):
    seconds = pool(address, explainer, 1000)
    assert len(seconds) == 1000
    print(f"p50 {np.quantile(seconds, 0.5):.2f} s, p99 {np.quantile(seconds, 0.99):.2f} s")


def test_a_person_with_many_changes_has_four_reasons():
    data = tdce.load("german")
    explainer = kept("german in short", lambda: german(data))
    refused = data.frame[(explainer.predict(data.frame) != data.favourable).to_numpy()].drop(columns=data.label)
    with studio.connect(explainer) as client:
        body = {"rows": json.loads(refused.head(20).to_json(orient="records")), "closeness": 0}
        lines = client.post("/explain", json=body).json()["lines"]
    assert max(len(line["changes"]) for line in lines) > 4
    assert {len(line["reasons"]) for line in lines if len(line["changes"]) > 4} == {4}


def german(data: tdce.datasets.Dataset) -> tdce.Explainer:
    made = tdce.Explainer(hidden=32, steps=60, progress="silent")
    return made.fit(data.frame, label=data.label, favourable=data.favourable, schema=data.schema)
