"""Wrong arguments of every public function: each is named in an `InputError`, and no argument is ever modified.

The functions are those of docs/api.md, found by their signatures: a new one is covered by itself, or fails for want of
good arguments in `GOOD`.
"""

import copy
import inspect
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import lending
import numpy as np
import pandas as pd
import pytest
from fits import SHORT, kept

import tdce
from tdce.diffusion import SamplingPlan
from tdce.methods import METHODS

RETURNED = {  # nobody makes one by hand
    "Answer", "Dataset", "Findings", "Population", "Ensemble", "Method", "Status", "Segments", "Burden", "Studio",
    "Drift",
}  # fmt: skip
ERRORS = {"InputError", "NotFittedError"}
ARRAYS = (
    "Tensor",
    "Floats",
    "Arrays",
    "FeasibleSet",
    "Goals",
    "Output",
    "Callable",
    "pd.Series",
    "Set[",
    "Task",
    "Query",
)
"""Types of arguments that tdce computes: functions that need one are called by tdce, and no user types them."""

COMPUTED = {"Numeric.for_dtype", "Categorical.for_dtype", "Findings.add", "Findings.summary"}  # the same
STARTS = {"Explainer.studio"}  # a server: test_notebook.py


def nested(depth: int) -> list[Any]:
    """A list in a list in a list …"""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def nested_mapping(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"income": value}
    return value


WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "[]": list,
    "{}": dict,
    "empty text": str,
    "x": lambda: "x",
    "0": lambda: 0,
    "-1": lambda: -1,
    "inf": lambda: 1e400,
    "nan": lambda: math.nan,
    "a number of many digits": lambda: 10**5000,
    "True": lambda: True,
    "object": object,
    "bytes": lambda: b"",
    "missing file": lambda: Path("no such file.tdce"),
    "over-long path": lambda: "x" * 5000,
    "over-long Path": lambda: Path("/".join(["x" * 300] * 20)),
    "text with a null": lambda: "x\0y",
    "half a surrogate pair": lambda: "\ud800",
    "lists": lambda: [["income"], ["debt"]],
    "list of mixed": lambda: [None, 1, "income", []],
    "mapping of lists": lambda: {"income": [1]},
    "mapping of None": lambda: {"income": None},
    "mapping of nothing known": lambda: {None: 1},
    "set": lambda: {"income"},
    "class": lambda: dict,
    "empty frame": lambda: lending.table(3).head(0),
    "frame without rows and columns": pd.DataFrame,
    "frame without columns": lambda: pd.DataFrame(index=range(3)),
    "frame with duplicate columns": lambda: lending.table(3).set_axis(["income"] * 5, axis=1),
    "frame with one column twice": lambda: pd.concat([lending.table(3), lending.table(3)[["income"]]], axis=1),
    "frame of lists": lambda: lending.table(3).assign(housing=[[1], [2], [3]]),
    "frame with levels of names": lambda: pd.concat([lending.table(3)], axis=1, keys=["a"]),
    "frame with a name that is no text": lambda: lending.table(3).rename(columns={"age": (1, 2)}),
    "nested": lambda: nested(5000),
    "nested mapping": lambda: nested_mapping(5000),
    "generator": lambda: (each for each in ["income", 1]),
    "array of rank 0": lambda: np.array(1.0),
    "array of rank 3": lambda: np.zeros((2, 2, 2)),
    "series": lambda: lending.table(3)["income"],
    "function": lambda: lambda *_: None,
    "module": lambda: math,
    "complex": lambda: 1j,
    "Range": lambda: tdce.Range(1, 2),
    "unhashable goal": lambda: tdce.Not(of=[]),
}


class Call(NamedTuple):
    """A public function, and how to call it on a fresh receiver."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[inspect.Parameter, ...]


def public_calls() -> Iterator[Call]:
    """What docs/api.md lists: functions, constructors, methods, and the methods of the registry with their settings."""
    for name in sorted(tdce.__all__):
        found = getattr(tdce, name)
        if inspect.isfunction(found):
            yield Call(name, found, _parameters(found))
        if not inspect.isclass(found) or found is Any or name in ERRORS:
            continue
        if name not in RETURNED:
            yield Call(name, found, _parameters(found))
        for member, value in vars(found).items():
            if member.startswith("_") or isinstance(value, property) or not _is_callable(value):
                continue
            if isinstance(value, classmethod):
                yield Call(f"{name}.{member}", getattr(found, member), _parameters(getattr(found, member)))
            else:
                yield Call(f"{name}.{member}", partial(_on_copy, name, member), _parameters(value)[1:])
    for name, method in METHODS.items():
        yield Call(f"methods.{name}", method, _parameters(method))


def _is_callable(value: Any) -> bool:
    return isinstance(value, classmethod | staticmethod) or inspect.isfunction(value)


def _parameters(function: Any) -> tuple[inspect.Parameter, ...]:
    return tuple(each for each in inspect.signature(function).parameters.values() if not each.name.endswith("_"))


def _on_copy(name: str, member: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a copy, for `fit` and `set_params` change what they are called on."""
    return getattr(copy.copy(things()[name]), member)(*args, **kwargs)


def for_users(call: Call) -> bool:
    return call.name not in COMPUTED | STARTS and not any(
        _computed(each) for each in call.parameters if each.default is inspect.Parameter.empty
    )


def _computed(parameter: inspect.Parameter) -> bool:
    return any(kind in str(parameter.annotation) for kind in ARRAYS)


CALLS = [call for call in public_calls() if for_users(call) and call.parameters]
KEYWORDS = {  # names for **settings
    "Schema.change": [
        "kind",
        "no_such",
        *(each.name for each in fields(tdce.Numeric)),
        "categories",
        "allowed",
        "order",
    ],
    "Schema.with_rules": ["costs", "laws", "features", "no_such"],
    "Explainer.set_params": ["hidden", "no_such"],
    "Explainer.segments": ["immutable", "safety", "closeness", "n", "no_such"],
    "Explainer.trade_off": ["immutable", "safety", "seed", "n", "no_such"],
}


NEEDED = {("Change", "by"): 5.0, ("Range", "low"): 1.0, ("Explainer.fit", "label"): "decision"}  # despite a default


@cache
def things() -> dict[str, Any]:
    """One good object of each class, and good values of arguments."""
    plans = replace(
        SHORT,
        classifier=replace(SHORT.classifier, steps=2),
        autoencoder=replace(SHORT.autoencoder, steps=2),
        sampling=SamplingPlan(32, 32, 2),
    )
    table = lending.table(60)

    def fitted() -> tdce.Explainer:
        tiny = tdce.Explainer(hidden=4, steps=2, plans=plans, progress="silent")
        return tiny.fit(table, label="decision", favourable="yes")

    explainer = kept("public", fitted)
    explainer.plans = plans
    rows = table.drop(columns="decision").head(3)
    answer = explainer.explain(rows)
    data = tdce.load("german")
    schema = explainer.schema.with_rules("debt <= 2 * income")
    return {
        "Explainer": explainer, "Answer": answer, "Schema": schema, "Dataset": data,
        "Question": tdce.Question(), "Numeric": schema["income"], "Categorical": schema["housing"],
        "Population": explainer.population(), "Ensemble": explainer.retrain(table, models=1),
        "Segments": explainer.segments(answer), "Burden": answer.burden("housing"), "Drift": explainer.monitor(table),
        "Findings": tdce.Findings(), "Change": tdce.Change(5), "Range": tdce.Range(1, 2), "rows": rows, "table": table,
    }  # fmt: skip


def good(call: str, name: str, folder: Path) -> Any:
    """A good value of an argument that has no default."""
    found = things()
    values: dict[str, Callable[[], Any]] = {
        "rows": lambda: found["rows"],
        "model": lambda: lambda frame: frame["income"] / frame["income"].max(),
        "table": lambda: found["table"],
        "frame": lambda: found["table"],
        "question": lambda: found["Question"],
        "answer": lambda: found["Answer"],
        "path": lambda: folder / "out.tdce",
        "folder": lambda: folder / "letters",
        "words": lambda: {"income": {"label": "pay"}},
        "outcomes": lambda: {"yes": "granted"},
        "now": lambda: 1.0,
        "text": lambda: found["Schema"].to_json(),
        "values": lambda: found["Question"].to_json(),
        "costs": lambda: {"income": 2.0},
        "address": lambda: "http://localhost:1/score",
        "causes": lambda: {"debt": ["income"]},
        "names": lambda: ["income"],
        "rules": lambda: ["income >= 1000"],
        "of": lambda: "yes",
        "p": lambda: 0.8,
        "low": lambda: 0.2,
        "high": lambda: 0.8,
        "features": lambda: found["Schema"].features,
        "explainer": lambda: None,
        "name": lambda: "income",
        "categories": lambda: ("a", "b"),
        "problems": lambda: (),
        "has_public_key": lambda: False,
        "by": lambda: "housing",
        "row": lambda: found["rows"].head(1),
        "feature": lambda: "income",
        "dtype": lambda: np.dtype("float64"),
        ("load", "name"): lambda: "german",
        ("Dataset.part", "name"): lambda: "test",
        ("Question.check_budget", "rows"): lambda: 3,
        ("Explainer.load", "path"): lambda: _saved(folder),
        ("verify", "path"): lambda: _evidence(folder),
    }  # type: ignore[dict-item]
    if (call, name) in NEEDED:
        return NEEDED[call, name]
    if (call, name) not in values and name not in values:
        pytest.fail(f"{call} has a new argument {name!r}: give a good value for it here")
    return values.get((call, name), values.get(name))()


def _saved(folder: Path) -> Path:
    path = folder / "saved.tdce"
    if not path.exists():
        things()["Explainer"].save(path)
    return path


def _evidence(folder: Path) -> Path:
    path = folder / "evidence.jsonl"
    if not path.exists():
        things()["Answer"].to_evidence(path)
    return path


def arguments(call: Call, folder: Path, changed: inspect.Parameter | None = None, value: Any = None, keyword: str = ""):
    """Positional and keyword arguments: good ones, and the value in one place."""
    args, kwargs = [], {}
    for each in call.parameters:
        at = changed is not None and each.name == changed.name
        if each.kind is each.VAR_POSITIONAL:
            args.extend([value] if at else [])
        elif each.kind is each.VAR_KEYWORD:
            kwargs.update({keyword: value} if at else {})
        elif at or each.default is each.empty or (call.name, each.name) in NEEDED:
            kwargs[each.name] = value if at else good(call.name, each.name, folder)
    if args:  # what stands before them cannot be given by name
        first = [kwargs.pop(each.name) for each in call.parameters
                 if each.name in kwargs and each.kind is each.POSITIONAL_OR_KEYWORD]  # fmt: skip
        args = [*first, *args]
    return args, kwargs


def places() -> Iterator[Any]:
    for call in CALLS:
        for parameter in call.parameters:
            if _computed(parameter):
                continue
            for keyword in KEYWORDS[call.name] if parameter.kind is parameter.VAR_KEYWORD else [""]:
                yield pytest.param(call, parameter, keyword, id=f"{call.name}-{keyword or parameter.name}")


def run(call: Call, args: list[Any], kwargs: dict[str, Any]) -> None:
    made = call.function(*args, **kwargs)
    if call.name == "Explainer":  # the constructor stores, fit checks
        settings = {"hidden": 4, "steps": 2, "progress": "silent", "plans": things()["Explainer"].plans} | kwargs
        call.function(**settings).fit(things()["table"], label="decision", favourable="yes")
    if inspect.isgenerator(made):
        list(made)


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_good_arguments_work(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    run(call, *arguments(call, tmp_path))


@pytest.mark.parametrize(("call", "parameter", "keyword"), list(places()))
def test_wrong_arguments_are_refused_in_words(
    call: Call, parameter: inspect.Parameter, keyword: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    failures = []
    for what, make in WRONG.items():
        value = make()
        args, kwargs = arguments(call, tmp_path, parameter, value, keyword)
        before = snapshot([args, kwargs])
        try:
            run(call, args, kwargs)
        except tdce.InputError as error:
            if not str(error) or len(str(error)) > 2000:
                failures.append(f"{what}: a message of {len(str(error))} characters")
        except Exception as error:
            failures.append(f"{what}: {type(error).__name__}: {str(error)[:200]}")
        if snapshot([args, kwargs]) != before:
            failures.append(f"{what}: an argument was modified")
    assert not failures, "\n".join(failures)


def snapshot(value: Any, depth: int = 0) -> Any:
    """What can be compared later: contents of frames, arrays, lists and mappings."""
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_csv(), str(getattr(value, "dtypes", "")), str(value.index)
    if isinstance(value, np.ndarray):
        return value.tobytes(), value.shape, value.dtype.str
    if depth < 20 and isinstance(value, dict):
        return [(repr(key), snapshot(each, depth + 1)) for key, each in value.items()]
    if depth < 20 and isinstance(value, list | tuple | set):
        return type(value).__name__, [snapshot(each, depth + 1) for each in value]
    return id(value)


def test_a_schema_with_a_column_that_the_table_lacks_is_refused_by_its_name():
    table = things()["table"]
    schema = tdce.Schema.infer(table.assign(incomes=table["income"] + table["age"] ** 2), "decision")
    with pytest.raises(tdce.InputError, match=r"^column 'incomes' is not in the table; it has: income, debt"):
        tdce.Explainer(hidden=4, steps=2).fit(table, label="decision", schema=schema)


LAW = {"law": "follows", "column": "debt", "sources": ["income"], "terms": [1]}


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"laws": [LAW | {"sources": 5}]}, "the law about 'debt': sources 5 must be a list"),
        ({"laws": [LAW | {"terms": "1"}]}, "the law about 'debt': terms '1' must be a list"),
        ({"laws": [LAW | {"sources": [["income"]]}]}, "names ['income'], which is not the name of a feature"),
        ({"costs": [{"name": ["debt"], "cost": 1}]}, "a cost in the schema has the name ['debt']"),
        ({"laws": "[[" * 40_000}, "nested too deeply"),
        ({"rules": "9" * 5000}, "not valid JSON"),
    ],
    ids=["sources", "terms", "names", "cost", "nested", "digits"],
)
def test_an_edited_schema_is_refused_by_what_is_wrong(part, message):
    content = json.loads(things()["Schema"].to_json()) | part
    text = json.dumps(content)
    for raw in ("[[" * 40_000, "9" * 5000):  # not as text
        text = text.replace(f'"{raw}"', raw)
    with pytest.raises(tdce.InputError, match=re.escape(message)):
        tdce.Schema.from_json(text)
