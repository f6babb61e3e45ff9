"""Mutants of schemas, questions and messages, as people edit them; for the tests and benchmarks/fuzz_inputs.py."""

import copy
import json
import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import mutants
import numpy as np

import tdce
from tdce.report.language.catalogue import FOLDER, Catalogue
from tdce.schema.constraints.laws import Chosen, Determines, Equivalent, Follows, Given, Order, Within

Use = Callable[[str], object]


def schema_json() -> str:
    """A schema with every kind of column, law, rule and wording."""
    rng = np.random.default_rng(0)
    part, rest = rng.integers(1, 50, 80), rng.integers(1, 50, 80)
    frame = mutants.table().assign(part=part, rest=rest, total=part + rest, called=rng.choice([-1, 5, 6, 7], 80))
    schema = tdce.Schema.infer(frame, "decision").change("income", direction="increase")
    schema = schema.change("income", words={"label": {"en": "pay", "de": "Lohn"}, "unit": "EUR", "format": "money"})
    schema = schema.change("housing", words={"values": {"own": "owned"}, "named": False}, order=["rent", "own"])
    laws = (
        Follows("total", ("part", "rest"), (1, ((1, 2.0), (50, 70.0))), support=80, exceptions=2),
        Order("part", "total", support=80), Within({"column": "housing", "values": ["own"]}, "income", 1, 99),
        Equivalent([{"column": "phone", "values": [1]}, {"column": "housing", "values": ["own"]}]),
        Chosen("housing", ("rest",), ("own", "rent"), ((0.1, 0.2),), (0.0, 1.0)),
        Determines("part", "phone", ((1, 0), (2, 1)), 70, 1),
        Given({"column": "housing", "values": ["rent"]}, {"column": "phone", "values": [0], "but": True}, 0, "own", 70),
    )  # fmt: skip
    schema = schema.with_rules("debt <= 2 * income", "at most 3 changes", laws=laws, costs={"debt": 2, "phone": 0.5})
    return schema.with_outcomes({"yes": {"en": "granted"}, "no": "refused"}).to_json()


def use_schema(text: str) -> object:
    """What reads and shows a schema."""
    schema = tdce.Schema.from_json(text)
    assert tdce.Schema.from_json(schema.to_json()) == schema
    return str(schema), repr(schema), schema.names, schema.without_words(), schema.without_laws()


def questions_json() -> list[str]:
    classes: list[Any] = ["yes", tdce.AtLeast("yes", 0.8), tdce.Not("no"), tdce.Between("yes", 0.4, 0.6)]
    goals = [*classes, tdce.Range(1, 2), tdce.Change(5)]
    questions = [tdce.Question(goal, 2, ["income"], ["debt <= 3"], {"debt": 2.0}, 3, 0.5, 0.6) for goal in goals]
    robust = tdce.Ensemble((None,)).retraining  # type: ignore[arg-type]
    questions += [tdce.Question(classes), tdce.Question({"score": goals[4]}, robust=robust, max_model_rows=None)]
    return [json.dumps(question.to_json()) for question in questions]


def use_question(explainer: tdce.Explainer, text: str) -> object:
    """Text that is no JSON is not the question's."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    question = tdce.Question.from_json(values)
    json.dumps(question.to_json())
    explainer.check(question)
    return repr(question)


def messages_toml() -> str:
    return FOLDER.joinpath("en.toml").read_text(encoding="utf-8")


def use_messages(text: str) -> object:
    catalogue = Catalogue.parse("en", text)
    for key in catalogue.messages:
        try:
            catalogue.text(key, count=2, label="pay", before="1", after="2", change="more", name="x", value=1)
        except tdce.InputError:  # has other placeholders
            continue
    return catalogue.locale


def edit_text(text: str, rng: random.Random) -> str:
    """Characters deleted, doubled, replaced or moved."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in "ab")
        end = min(end, at + rng.choice([1, 1, 3, 20, 400]))
        piece = rng.choice(["", "", text[at:end] * 2, rng.choice('{}[]",:=.0-9eE\\\n\0\ud800'), "null", "1e999", "'''"])
        text = text[:at] + piece + text[end:]
    return text


def edit_json(text: str, rng: random.Random) -> str:
    """Values replaced, removed, added or swapped at any place."""
    document = {"": json.loads(text)}
    for _ in range(rng.choice([1, 1, 2, 4])):
        places = mutants.places(document)
        holder, key = rng.choice(places)
        other, at = rng.choice(places)
        odd = copy.deepcopy(rng.choice(mutants.ODD_VALUES))
        match rng.choice(["replace", "replace", "copy", "swap", "remove", "add", "wrap"]):
            case "replace":
                holder[key] = odd
            case "copy":
                holder[key] = copy.deepcopy(other[at])
            case "swap":
                holder[key], other[at] = copy.deepcopy(other[at]), copy.deepcopy(holder[key])
            case "remove" if holder is not document:
                del holder[key]
            case "wrap":
                holder[key] = rng.choice([[holder[key]], {"x": holder[key]}, str(holder[key])])
            case _ if isinstance(holder, list):
                holder.insert(key, odd)
            case _:
                holder[rng.choice(["", "x", "name", "kind", "law", "on", "words"])] = odd
        document.setdefault("", None)
    written = json.dumps(document[""])
    for placeholder, raw in mutants.RAW.items():
        written = written.replace(json.dumps(placeholder), raw)
    return written


def fuzz(texts: list[str], use: Use, tries: int, seed: int, json_too: bool = True) -> tuple[Counter[str], list[str]]:
    """How many mutants were used, refused, or ended in another exception or a warning, and which."""
    rng, counts, failures = random.Random(seed), Counter[str](), []
    for _ in range(tries):
        edit = edit_json if json_too and rng.random() < 0.7 else edit_text
        mutant = edit(rng.choice(texts), rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                use(mutant)
                counts["used"] += 1
            except tdce.InputError as error:
                counts["refused"] += 1
                if len(str(error)) > 20_000:  # a name of 10,000 characters may be in it
                    failures.append(f"a message of {len(str(error))} characters: {str(error)[:100]}")
            except Exception as error:
                counts[type(error).__name__] += 1
                failures.append(f"{type(error).__name__}: {str(error)[:150]}: {mutant[:3000]}")
    return counts, failures


def explainer() -> tdce.Explainer:
    return mutants.explainer()


def kinds(fitted: tdce.Explainer) -> dict[str, tuple[list[str], Use, bool]]:
    """What is mutated, how it is used, and whether it is JSON."""
    return {
        "schema": ([schema_json()], use_schema, True),
        "question": (questions_json(), lambda text: use_question(fitted, text), True),
        "messages": ([messages_toml()], use_messages, False),
    }
