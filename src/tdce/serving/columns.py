"""Try other column settings, and laws switched off, on a few people, without changing the fitted explainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from tdce._core import InputError, Name, is_integer, listing, show
from tdce.explainer import Explainer
from tdce.methods import Question
from tdce.models import Usage
from tdce.report import Speaker
from tdce.schema import SETTABLE, Column, Schema
from tdce.serving.descriptions import describe_column, describe_laws
from tdce.serving.json_rows import json_to_frame
from tdce.serving.lines import answer_to_json, make_speaker

EDITABLE = ("role", "immutable", "direction", "step", "cost", "follows")


def try_columns(
    explainer: Explainer,
    edits: Any,
    rows: list[dict[str, Any]],
    question: Question,
    audience: Any = "program",
    language: Any = "en",
    laws: Any = (),
) -> dict[str, Any]:
    """Answer rows under other settings of some columns and laws; also return the schema with these settings."""
    tried = with_schema(explainer, switch_laws(edit_schema(explainer.schema, edits), laws))
    tried.check(question)
    speaker = make_speaker(tried.schema, language, audience)  # what follows what depends on the new schema
    answer = tried.ask(json_to_frame(rows, tried.fitted.encoder), question)
    earlier = getattr(explainer, "usage_", Usage())  # these queries of the model count, too
    explainer.usage_ = Usage(earlier.calls + answer.model_calls, earlier.rows + answer.model_rows)
    shown = [column for column in tried.schema if audience == "program" or speaker.may_name(column.name)]
    return {
        "lines": answer_to_json(answer, tried.fitted.encoder, rows, speaker, audience),
        "columns": [_column_settings(tried.schema, column, shown, speaker) for column in shown],
        "laws": describe_laws(tried.schema, {column.name for column in shown}),
        "roles": list(SETTABLE),
        "edited_schema": tried.schema.to_json(),
    }


def edit_schema(schema: Schema, edits: Any) -> Schema:
    """Apply edits to the schema, in order: `{"name": "age", "role": "actionable", "cost": 2}`."""
    if not isinstance(edits, list | tuple):
        raise InputError(f"columns is {show(edits)}; it must be a list of objects, each with the name of a column")
    known, edited = {str(name): name for name in schema.names}, set[Name]()
    for edit in edits:
        if not isinstance(edit, Mapping) or not isinstance(edit.get("name"), str):
            raise InputError(f"columns has {show(edit)}; each entry must be an object with the name of a column")
        name = schema[known.get(edit["name"], edit["name"])].name
        if name in edited:
            raise InputError(f"columns names {name!r} twice; put its settings into one entry")
        edited.add(name)
        schema = _edit_column(schema, name, {key: value for key, value in edit.items() if key != "name"})
    return schema


def switch_laws(schema: Schema, switches: Any) -> Schema:
    """Switch some laws of the schema off or on: `{"number": 0, "on": False}`."""
    if not isinstance(switches, list | tuple):
        raise InputError(f"laws is {show(switches)}; it must be a list of objects, each with number and on")
    on = {i: law.on for i, law in enumerate(schema.laws)}
    switched = set[int]()
    for switch in switches:
        if not isinstance(switch, Mapping) or set(switch) != {"number", "on"}:
            raise InputError(f"laws has {show(switch)}; each entry must be an object with number and on")
        number = switch["number"]
        if not is_integer(number) or number not in on:
            raise InputError(f"there is no law {show(number)}; the schema has {len(on)}, counted from 0")
        if not isinstance(switch["on"], bool):
            raise InputError(f"law {number}: on is {show(switch['on'])}; it must be true or false")
        if number in switched:
            raise InputError(f"laws names law {number} twice; name it once")
        switched.add(number)
        on[number] = switch["on"]
    return replace(schema, laws=tuple(replace(law, on=on[i]) for i, law in enumerate(schema.laws)))


def _edit_column(schema: Schema, name: Name, settings: dict[str, Any]) -> Schema:
    for key in settings:
        if key not in EDITABLE:
            raise InputError(f"{name!r}: {show(key)} cannot be set here; known: {listing(EDITABLE)}")
    if "cost" in settings:
        cost = settings.pop("cost")
        others = {each: known for each, known in schema.costs.items() if each != name}
        schema = replace(schema, costs=others if cost is None else others | {name: cost})
    if "step" in settings and schema[name].kind == "numeric":
        settings["levels"] = None  # levels would override the step
    if isinstance(follows := settings.get("follows"), list):
        known_names = {str(each): each for each in schema.names}
        settings["follows"] = [known_names.get(each, each) if isinstance(each, str) else each for each in follows]
    return schema.change(name, **settings) if settings else schema


def with_schema(explainer: Explainer, schema: Schema) -> Explainer:
    """A copy of the explainer with the same networks and another schema."""
    fitted, view = explainer.fitted, copy(explainer)
    columns = tuple(replace(old, column=new) for old, new in zip(fitted.encoder.columns, schema, strict=True))
    encoder = replace(fitted.encoder, columns=columns, full_schema=schema)
    view.fitted_ = replace(fitted, encoder=encoder, memo={})
    return view


def _column_settings(schema: Schema, column: Column, shown: Sequence[Column], speaker: Speaker) -> dict[str, Any]:
    named = {each.name for each in shown}
    follows = schema.followers.get(column.name)
    return {
        "name": str(column.name),
        "described": describe_column(column, speaker),
        "role": column.role,
        "may_change": column.may_change,
        "direction": getattr(column, "direction", None),
        "step": getattr(column, "step", None),
        "cost": schema.costs.get(column.name, 1.0),
        "follows": None if follows is None or not named.issuperset(follows) else list(map(str, follows)),
        "may_follow": [list(map(str, group)) for group in may_follow(schema, column.name) if named.issuperset(group)],
    }


def may_follow(schema: Schema, name: Name) -> list[tuple[Name, ...]]:
    """The groups of columns that a column follows or could follow, by the laws that bind it to them."""
    groups = []
    for law in schema.laws:
        if law.follower is None or name not in law.columns:
            continue
        try:
            turned = law if law.follower == name else law.turned(name)
        except InputError:  # the law cannot be solved for it
            continue
        if law.hard and turned.followed not in groups:
            groups.append(turned.followed)
    return groups
