"""The description of the API (OpenAPI), with an example for each request that works with this explainer unchanged.

The person in the examples is a synthetic row: nobody's record.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from tdce.explainer import Explainer
from tdce.serving.people import People

FILE_TYPES = ("text/csv", "application/gzip", "application/vnd.apache.parquet")


def describe_api(api: FastAPI, explainer: Explainer) -> dict[str, Any]:
    """The OpenAPI document of the server."""
    document = get_openapi(
        title=api.title, version=api.version, description=api.description, routes=api.routes,
    )  # fmt: skip
    person = _refused_person(explainer)
    for path, body in _bodies(explainer, person).items():
        document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"] = body
    csv = pd.DataFrame([person]).to_csv(index=False)
    content: dict[str, Any] = {kind: {"schema": {"type": "string", "format": "binary"}} for kind in FILE_TYPES}
    content["text/csv"] = {"schema": {"type": "string"}, "example": csv}
    document["paths"]["/jobs/{id}/rows"]["put"]["requestBody"] = {"required": True, "content": content}
    for path, name, value in (
        ("/people/{number}", "number", 0),
        ("/people", "count", 2),
        ("/jobs/{id}/{name}", "name", "answer.csv"),
    ):
        for parameter in document["paths"][path]["get"]["parameters"]:
            if parameter["name"] == name:
                parameter["example"] = value
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document


def _refused_person(explainer: Explainer) -> dict[str, Any]:
    """A synthetic row, one that the model refuses if possible."""
    people = People.of(explainer, None)
    return people.values[people.met.index(False) if False in people.met else 0]


def _bodies(explainer: Explainer, person: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """An example body for each request with JSON, by path."""
    schema = explainer.schema
    free = next((str(column.name) for column in schema if column.may_change != "no"), None)
    classes = explainer.fitted.outputs[0].classes
    needs_target = explainer.fitted.favourable is None and (classes is None or len(classes) > 2)
    target = {} if not needs_target else {"target": str(classes[0]) if classes else "+1"}
    return {
        "/predict": {"rows": [person]},
        "/explain": {"rows": [person], "n": 2, "audience": "applicant", **target},
        "/check": {"row": person, "values": person, **target},
        "/curves": {"values": person, **target},
        "/columns": {"rows": [person], "columns": [] if free is None else [{"name": free, "cost": 2}], **target},
        "/walk": {"row": person, **target},
        "/jobs": {"n": 2, "name": "rows.csv", **target},
    }
