"""The questions of `tdce schema --ask`: ask for the role of each column on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from tdce._core import InputError
from tdce.cli.shared import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tdce.schema import Column, Schema

LETTERS = {"a": "actionable", "i": "immutable", "t": "passes with time", "h": "history", "d": "identifier"}
DIRECTIONS = {"any": "any", "up": "increase", "down": "decrease"}
STOP = ("q", "quit")


def check_terminal() -> None:
    """Raise an error if standard input is not a terminal."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(
            "--ask asks on a terminal, and standard input is not one; write the schema with --out FILE and edit it, "
            "or name columns in `tdce fit`: --immutable a,b --actionable c"
        )


def ask_roles(schema: Schema, hints: Iterable[str] = ()) -> Schema:
    """Ask for roles, directions and costs, column by column, and return the schema with them."""
    letters = ", ".join(f"{letter} {role}" for letter, role in LETTERS.items())
    say(f"Enter keeps what is in brackets. Roles: {letters}. q stops, and nothing is written.", stderr=True)
    described, sentences = schema.describe(), list(hints)
    for number, (column, (name, kind, values, _)) in enumerate(zip(schema, described, strict=True), 1):
        say(f"\n{number} of {len(schema)}  {name} ({kind}): {values}", stderr=True)
        for sentence in sentences:
            if sentence.startswith(f"{column.name!r} "):
                say(f"  {sentence.partition('; to ')[0]}", stderr=True)
        if schema.roles[column.name] == "follows":
            say(f"  follows {', '.join(map(str, schema.followers[column.name]))}", stderr=True)
        else:
            schema = _ask_column(schema, column)
    return schema


def _ask_column(schema: Schema, column: Column) -> Schema:
    role = _choose("role", column.role, LETTERS)
    if role != column.role:
        schema = schema.change(column.name, role=role)
    if role != "actionable":
        return schema
    if column.kind == "numeric":
        direction = _choose("direction (any, up, down)", schema[column.name].direction, DIRECTIONS)  # type: ignore[attr-defined]
        schema = schema.change(column.name, direction=direction)
    cost = _ask_cost(schema.costs.get(column.name, 1.0))
    costs = {**schema.costs, column.name: cost}
    return schema.with_rules(costs=costs) if cost != schema.costs.get(column.name, 1.0) else schema


def _choose(what: str, default: str, choices: Mapping[str, str]) -> str:
    """Ask for one of `choices`, by key or by value."""
    keys = {value: key for key, value in choices.items()}
    shown = keys[default] if what != "role" else default
    while True:
        text = _read(f"  {what} [{shown}]: ").lower()
        if not text:
            return default
        if text in choices or text in keys:
            return choices.get(text, text)
        say(f"  {text!r} must be one of {', '.join(choices)}; Enter keeps {shown}, q stops", stderr=True)


def _ask_cost(default: float) -> float:
    from tdce._core import check_number  # slow to import: it needs numpy

    while True:
        text = _read(f"  cost of a change [{default:g}]: ")
        try:
            return check_number("the cost", float(text), 0, 1000) if text else default
        except ValueError:
            say(f"  {text!r} must be a number from 0 to 1000; Enter keeps {default:g}, q stops", stderr=True)


def _read(prompt: str) -> str:
    """Read a line from the terminal; q and the end of the input stop the command."""

    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line or line.strip().lower() in STOP:
        print("\nstopped; nothing is written" if not line else "stopped; nothing is written", file=sys.stderr)
        raise typer.Exit(1)
    return line.strip()
