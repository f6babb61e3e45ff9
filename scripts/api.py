"""Write docs/api.md: the public names of tdce and the methods with their settings, from signatures, docstrings and the
comments beside fields.

    python scripts/api.py
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import tdce
from tdce.methods.registry import METHODS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
NAMES = (
    "Explainer", "Answer", "Segments", "Burden", "Studio", "Question", "Status", "AtLeast", "Not", "Between", "Range",
    "Change", "Endpoint", "OneByOne", "Ensemble", "Schema", "Numeric", "Categorical", "load", "Dataset", "verify",
    "Findings", "Drift", "Population", "Method", "TrainingPlans", "InputError", "NotFittedError",
)  # fmt: skip
TYPES = ("Target", "Favourable", "ModelLike", "AnyFrame", "AnySeries")  # of arguments
RETURNED = (  # nobody makes one by hand
    "Answer", "Segments", "Burden", "Studio", "Dataset", "Findings", "Drift", "Population", "Ensemble", "Method",
    "Status",
)  # fmt: skip
WIDTH = 100  # a longer signature has one line per argument


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    parts = [
        "# API",
        "Made from the code by `scripts/api.py`. Names that are not here may change at any time.",
        *(part for name in NAMES for part in _named(name)),
        "## Types of arguments",
        "\n".join(f"- `tdce.{name}`: `{_union(name)}`" for name in TYPES),
        "## Methods",
        "`Explainer(method=NAME)` has the settings below; `Explainer(method=CLASS(setting=…))`, with the class from "
        "`tdce.methods`, has others. [baselines.md](baselines.md) and [method.md](method.md) say what they do.",
        *(part for name, method in METHODS.items() for part in _method(name, method)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _named(name: str) -> Iterator[str]:
    found = getattr(tdce, name)
    yield f"## `tdce.{name}`"
    if name not in RETURNED and not is_dataclass(found) and not issubclass_of_error(found):
        yield _signature(name, found)
    yield _text(found)
    if inspect.isclass(found) and is_dataclass(found):
        yield _fields(found, "field")
    for member, value in vars(found).items() if inspect.isclass(found) else ():
        if not member.startswith("_") and isinstance(value, property | classmethod | Callable):
            yield f"### `{name}.{member}`"
            yield (
                _property(member, value) if isinstance(value, property) else _signature(member, getattr(found, member))
            )
            yield _text(value)


def issubclass_of_error(found: object) -> bool:
    return inspect.isclass(found) and issubclass(found, Exception)


def _union(name: str) -> str:
    """What an alias stands for, without the modules of its parts."""
    return re.sub(r"\b(?:[a-z_]+\.)+", "", str(getattr(tdce, name)))


def _method(name: str, method: Any) -> Iterator[str]:
    yield f"### `{name}`: `{method.__name__}`"
    yield _text(method)
    yield _fields(method, "setting")


def _signature(name: str, function: Callable[..., Any]) -> str:
    found = inspect.signature(function)
    own = [p.replace(annotation=_Plain(p.annotation)) for p in found.parameters.values() if p.name != "self"]
    arguments = [str(p) for p in own]
    named = [i for i, p in enumerate(own) if p.kind is p.KEYWORD_ONLY]
    if named:
        arguments.insert(named[0], "*")
    end = f") -> {found.return_annotation}" if found.return_annotation not in ("None", found.empty) else ")"
    line = f"{name}({', '.join(arguments)}{end}"
    if len(line) > WIDTH:
        line = "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), end])
    return f"```python\n{line}\n```"


def _property(name: str, found: property) -> str:
    return f"```python\n{name}: {inspect.signature(found.fget).return_annotation}\n```" if found.fget else ""


class _Plain:
    """An annotation that shows itself without quotes."""

    def __init__(self, text: object) -> None:
        self.text = text

    def __repr__(self) -> str:
        return str(self.text)


def _text(found: object) -> str:
    """The docstring in Markdown: sections of numpydoc become bold words and lists, examples blocks of code."""
    text = inspect.getdoc(found) or ""
    text = re.sub(r"^([A-Z][a-z]+)\n-{3,}\n", r"**\1**\n\n", text, flags=re.MULTILINE)
    blocks = text.split("\n\n")
    return "\n\n".join(f"```python\n{each}\n```" if each.startswith(">>>") else _listed(each) for each in blocks)


def _listed(block: str) -> str:
    """`name : type` with an indented text below becomes an item of a list."""
    if not re.match(r"\S[^\n]*\n    \S", block):
        return block
    items = re.split(r"\n(?=\S)", block)
    return "\n".join(f"- `{first}`: {' '.join(rest.split())}" for first, _, rest in (i.partition("\n") for i in items))


def _fields(found: type, what: str) -> str:
    """The fields of a dataclass, those of its parents first: name, default, and the comment beside it."""
    rows: dict[str, str] = {}
    for cls in reversed(found.__mro__):
        if is_dataclass(cls):
            source = textwrap.dedent(inspect.getsource(cls))
            rows |= _rows(source)
    if not rows:
        return ""
    return "\n".join([f"| {what} | default | meaning |", "|---|---|---|", *rows.values()])


def _rows(source: str) -> Iterator[tuple[str, str]]:
    (cls,), lines = ast.parse(source).body, source.splitlines()
    assert isinstance(cls, ast.ClassDef)
    for field in cls.body:
        if not isinstance(field, ast.AnnAssign) or "ClassVar" in ast.unparse(field.annotation):
            continue
        name, default = ast.unparse(field.target), "" if field.value is None else ast.unparse(field.value)
        if name.endswith("_"):  # learned
            continue
        comment = re.search(
            r"(?:  # type: ignore\S*)?  # (.*?)(  PAPER\[.*)?$", lines[field.lineno - 1][field.end_col_offset :]
        )
        meaning = comment[1].replace("|", "\\|") if comment else ""
        yield (
            name,
            f"| `{name}` | {f'`{default}`' if default and not default.startswith('field(') else ''} | {meaning} |",
        )


if __name__ == "__main__":
    main()
