"""Whatever is sent to the HTTP API, no request is answered with a server error, and every answer is as documented."""

import lending
import pytest
import schemathesis
import studio
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from tdce.serving.settings import ServerLimits, ServerSettings

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
SETTINGS = settings(
    max_examples=15, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck), database=None,
)  # fmt: skip
OPERATIONS = [
    "GET /health", "GET /words", "GET /metrics", "GET /schema", "GET /laws", "GET /report", "GET /people",
    "GET /people/{number}",
    "POST /predict", "POST /explain", "POST /check", "POST /curves", "POST /columns", "POST /walk", "POST /jobs",
    "PUT /jobs/{id}/rows", "GET /jobs/{id}", "DELETE /jobs/{id}", "GET /jobs/{id}/{name}",
]  # fmt: skip


@pytest.fixture(scope="module")
def client():
    with studio.connect(
        lending.explainer(), ServerSettings(limits=ServerLimits(rate=1e6, burst=1e6, jobs=10_000))
    ) as client:
        yield client


@pytest.fixture(scope="module")
def schema(client):
    return schemathesis.openapi.from_dict(client.get("/openapi.json").json())


def test_every_operation_is_tried(schema):
    assert sorted(found.ok().label for found in schema.get_all_operations()) == sorted(OPERATIONS)


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
@pytest.mark.parametrize("label", OPERATIONS)
def test_no_request_makes_the_server_fail(client, schema, label, mode):
    method, path = label.split()
    if (
        mode == "NEGATIVE"
        and label.startswith("GET")
        and "{" not in label
        and path not in ("/people", "/schema", "/words")
    ):
        pytest.skip("there is nothing to get wrong")

    @SETTINGS
    @given(case=schema[path][method].as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
    def run(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=str(client.base_url), checks=CHECKS, timeout=60)

    run()


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [{"income": "\\ud800", "debt": 1, "housing": "own", "age": 30}]}',
        b'{"rows": [{"income": 1, "debt": 1, "housing": "own", "age": 30, "\\ud800": "\\udfff"}]}',
        b'{"rows": [{"income": 1e999, "debt": NaN, "housing": "own", "age": 30, "x": -Infinity}]}',
        b'{"rows": [{"income": 1' + b"0" * 5000 + b', "debt": 1, "housing": "own", "age": 30}]}',
        b'{"rows": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"rows": [{"income": true, "debt": {}, "housing": null, "age": []}], "rules": ["' + b"(" * 9000 + b'"]}',
        b'{"rows": [{"income": 1, "debt": 1, "housing": "own", "age": 30}], "rules": ["' + b"(" * 9000 + b'"]}',
        b'{"rows": [{"income": 1, "debt": 1, "housing": "own", "age": 30}], "language": "\\u0000"}',
        b'{"rows": [{"income": 1, "debt": 1, "housing": "own", "age": 30}], "target": {"a": {"b": []}}}',
        b'{"rows": [{"income": 1, "debt": 1, "housing": "own", "age": 30}], "costs": {"\\ud800": 1}}',
    ],
    ids=range(10),
)
def test_a_hostile_body_is_answered(client, body):
    for path in ("/explain", "/predict", "/check", "/columns", "/walk"):
        found = client.post(path, content=body, headers={"content-type": "application/json"})
        assert found.status_code in (200, 413, 422), (path, found.text)
        found.json()
