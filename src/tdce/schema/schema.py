"""The schema of a table: its columns, and the laws, rules, costs and words that go with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from tdce._core import (
    AnyFrame,
    Floats,
    InputError,
    Name,
    as_pandas,
    check_flag,
    check_mapping,
    check_names,
    check_number,
    check_table,
    check_texts,
    closest,
    html_card,
    is_integer,
    is_name,
    listing,
    show,
    suggest,
)
from tdce.schema.columns import change_column, column_from_entry, infer_column
from tdce.schema.columns.base import Column
from tdce.schema.columns.categorical import Categorical
from tdce.schema.columns.numeric import Numeric
from tdce.schema.columns.wording import NO_WORDING, Forms, Phrase, check_outcomes, json_key
from tdce.schema.constraints.causes import check_causes, learn_causes
from tdce.schema.constraints.chosen import Chosen
from tdce.schema.constraints.discovery import discover_laws
from tdce.schema.constraints.laws import Law, law_from_entry
from tdce.schema.constraints.rules import narrow_columns, parse_rule
from tdce.schema.identifiers import find_pass_through
from tdce.schema.roles import Role, propose_role

__all__ = ["Categorical", "Column", "Numeric", "Schema"]


@dataclass(frozen=True)
class Schema:
    """The features of a table, in column order, with the laws, rules, costs, words and causes that apply to them."""

    features: tuple[Column, ...]
    laws: tuple[Law, ...] = ()  # discovered in the table
    rules: tuple[str, ...] = ()  # written by the user
    costs: Mapping[Name, float] = field(default_factory=dict, hash=False)  # of changing a feature; 1 if not given
    outcomes: Mapping[str, Phrase | Forms] = field(default_factory=dict, hash=False)  # words for the model's decisions
    causes: Mapping[Name, tuple[Name, ...]] = field(default_factory=dict, hash=False)  # of features, by the user

    def __post_init__(self) -> None:
        for name, kind in {"features": Column, "laws": Law}.items():
            object.__setattr__(self, name, _several(name, getattr(self, name), kind))
        if not self.features:
            raise InputError("there is no feature column; the table needs at least one besides the label")
        _check_unique(self.names)
        for law in self.laws:
            law.bind(self.features)  # an error if it does not fit
        _check_acyclic(self.followers)
        object.__setattr__(self, "rules", check_texts("rules", self.rules))
        object.__setattr__(self, "costs", self.check_costs(self.costs))
        object.__setattr__(self, "outcomes", check_outcomes(self.outcomes))
        object.__setattr__(self, "causes", check_causes(self.causes, self.names))
        self.check_rules(())

    @classmethod
    def infer(
        cls,
        frame: AnyFrame,
        label: Name | None = None,
        *,
        learn: Iterable[Name] = (),
        categorical: Iterable[Name] = (),
        roles: bool = True,
    ) -> Self:
        """Infer kinds, grids, ranges, categories, laws and roles from a table.

        The label, row numbers, ids, dates and free text are left out. `learn` names such columns to include anyway;
        `categorical` names columns whose numbers are codes. Features that nobody can change (age, sex, past delays) get
        a role that rules out changes; with `roles=False`, every column is actionable.
        """
        frame = as_pandas(frame)
        check_table(frame)
        _check_unique(frame.columns)
        if len(frame) == 0:
            raise InputError("the table has no rows")
        if label is not None and (not is_name(label) or label not in frame.columns):
            known = f"{suggest(label, frame.columns)}the table has: {listing(frame.columns)}"
            raise InputError(f"there is no label column {show(label)}; {known}")
        codes = _check_columns("categorical", categorical, frame, label)
        left_out = find_pass_through(frame, label, {*_check_columns("learn", learn, frame, label), *codes})
        names = [name for name in frame.columns if name not in left_out and (label is None or name != label)]
        schema = cls(tuple(infer_column(frame[name], name in codes) for name in names))
        raw = np.stack([column.drop_off_grid(column.read(frame[column.name])) for column in schema], axis=1)
        schema = replace(schema, laws=tuple(discover_laws(schema.features, raw)))
        return schema.with_proposed_roles() if check_flag("roles", roles) else schema

    def __iter__(self) -> Iterator[Column]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Name) -> Column:
        for feature in self.features if is_name(name) else ():
            if feature.name == name:
                return feature
        raise InputError(f"there is no feature {show(name)}; {suggest(name, self.names)}known: {listing(self.names)}")

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(f.name for f in self.features)

    @property
    def followers(self) -> dict[Name, tuple[Name, ...]]:
        """The features that follow others by a law, each with the features it follows."""
        following = (law for law in self.laws if law.on and law.hard)
        return {law.follower: law.followed for law in following if law.follower is not None}

    @property
    def immutable(self) -> tuple[Name, ...]:
        return tuple(f.name for f in self.features if f.immutable)

    @property
    def roles(self) -> dict[Name, Role]:
        """The role of each feature: whether and how it may change."""
        following = self.followers
        return {f.name: "follows" if f.name in following else f.role for f in self.features}

    def with_proposed_roles(self) -> Self:
        """Return a copy with a role for each column that clearly nobody can change (`propose_role`). Followers stay
        as they are: they change with what they follow."""
        following = self.followers
        proposals = ((f, *(("actionable", True) if f.name in following else propose_role(f))) for f in self.features)
        features = (change_column(f, {"role": r}) if sure and r != "actionable" else f for f, r, sure in proposals)
        return replace(self, features=tuple(features))

    def change(self, name: Name, **settings: Any) -> Self:
        """Return a copy with new settings for one feature: `schema.change("age", direction="increase")`.

        `schema.change("SEX", kind="categorical")` treats its numbers as codes; laws that need numbers are dropped.
        `schema.change("price", follows=["paid", "months"])` solves the law that binds these columns for the price, so
        that the price follows. `follows=[]` switches off the laws by which it follows.
        `schema.change("age", role="actionable")` lets it change freely. With `immutable=False` instead, a feature that
        passes with time or is history can only increase.
        """
        if "follows" in settings:
            schema = self._turn(name, check_names("follows", settings.pop("follows")))
            return schema.change(name, **settings) if settings else schema
        new = change_column(self[name], settings)
        features = tuple(new if f.name == name else f for f in self.features)
        laws = self.laws if new.kind == self[name].kind else tuple(law for law in self.laws if _fits(law, features))
        return replace(self, features=features, laws=laws)

    def _turn(self, name: Name, sources: tuple[Name, ...]) -> Self:
        """A copy in which a feature follows `sources` by an existing law; without sources, it follows no law."""
        self[name]
        if not sources:
            return replace(
                self, laws=tuple(replace(law, on=False) if law.follower == name else law for law in self.laws)
            )
        if name in sources:
            raise InputError(f"{name!r} cannot follow itself; name the other columns")
        bound = [law for law in self.laws if law.follower is not None and set(law.columns) == {name, *sources}]
        if not bound:
            known = [str(law) for law in self.laws if law.follower is not None and name in law.columns]
            raise InputError(f"{name!r} cannot follow {listing(sources)}: no law binds just these columns; "
                             f"{f'laws with it: {listing(known)}' if known else 'no law is about it'}")  # fmt: skip
        turned = {id(law): replace(law if law.follower == name else law.turned(name), on=True) for law in bound[:1]}
        laws = (turned.get(id(law), replace(law, on=False) if law.follower == name else law) for law in self.laws)
        return replace(self, laws=tuple(laws))

    def freeze(self, *names: Name) -> Self:
        """Return a copy in which these features are immutable."""
        schema = self
        for name in names:
            schema = schema.change(name, immutable=True)
        return schema

    def open(self, *names: Name) -> Self:
        """Return a copy in which these features are actionable."""
        schema = self
        for name in names:
            schema = schema.change(name, role="actionable")
        return schema

    def without_words(self) -> Self:
        """Return a copy without any wording."""
        return replace(
            self,
            outcomes={},
            features=tuple(replace(f, words=NO_WORDING) if f.words != NO_WORDING else f for f in self.features),
        )

    def without_laws(self, *numbers: int) -> Self:
        """Return a copy with these laws switched off, given by position in `laws`; without arguments, all laws."""
        for number in numbers:
            if not is_integer(number) or not 0 <= number < len(self.laws):
                raise InputError(f"there is no law {show(number)}; the schema has {len(self.laws)}, counted from 0")
        off = numbers or range(len(self.laws))
        laws = (replace(law, on=False) if i in off else law for i, law in enumerate(self.laws))
        return replace(self, laws=tuple(laws))

    def with_rules(self, *rules: str, **settings: Any) -> Self:
        """Return a copy with additional rules: `schema.with_rules("loan <= 5 * income", "at most 3 changes")`."""
        known = [each.name for each in fields(self) if each.name != "rules"]
        for name in settings:
            if name not in known:
                raise InputError(f"a schema has no {show(name)}; {suggest(name, known)}known: {listing(known)}")
        return replace(self, rules=(*self.rules, *check_texts("rules", rules)), **settings)

    def with_causes(self, causes: Any) -> Self:
        """Return a copy with the causes of some features: `{"income": ["education", "hours"]}`, or a networkx graph.
        `Explainer.fit` learns from the table how each effect depends on its causes."""
        causes = check_causes(causes, self.names)
        kept = tuple(law for law in self.laws if not (isinstance(law, Chosen) or getattr(law, "cause", False)))
        return replace(self, causes=causes, laws=kept)

    def learn_causes(self, raw: Floats) -> Self:
        """Return a copy with a law for each feature with stated causes, learned from raw rows (n, features)."""
        stated = {law.follower for law in self.laws if isinstance(law, Chosen) or getattr(law, "cause", False)}
        if stated == set(self.causes):
            return self
        return replace(self, laws=learn_causes(self.laws, self.causes, self.features, raw))

    def with_outcomes(self, outcomes: Mapping[str, Phrase | Forms]) -> Self:
        """Return a copy with words for the model's decisions: `{"good": {"en": "Approved", "de": "Bewilligt"}}`."""
        return replace(self, outcomes=outcomes)

    def check_table(self, frame: pd.DataFrame) -> None:
        """Raise an error for the first feature that the table lacks or has twice."""
        check_table(frame)
        for name in self.names:
            if name not in frame.columns:
                similar = closest(name, [each for each in frame.columns if each not in self.names])
                hint = "" if similar is None else f"if {show(similar)} is meant, rename it; "
                known = listing(frame.columns)
                raise InputError(
                    f"column {show(name)} is not in the table; {hint}it has: {known}",
                    "no_column", column=str(name), known=known,
                )  # fmt: skip
            if isinstance(frame[name], pd.DataFrame):
                raise InputError(
                    f"column {show(name)} appears twice; rename or drop one of them", "column_twice", column=str(name)
                )

    def check_immutable(self, names: Iterable[Name], what: str = "immutable") -> None:
        """Raise an error for the first name that is not a feature."""
        for name in check_names("immutable", names):
            if name not in self.names:
                hint = suggest(name, self.names)
                raise InputError(f"{what}: there is no feature {show(name)}; {hint}known: {listing(self.names)}")

    def check_rules(self, rules: Iterable[str]) -> None:
        """Raise an error if these rules, together with the schema's own, cannot be parsed or contradict each other."""
        every = (*self.rules, *check_texts("rules", rules))
        narrow_columns([parse_rule(rule, self.features) for rule in every], self.features)

    def check_costs(self, costs: Any) -> dict[Name, float]:
        """Check the costs of changing features (known features, numbers from 0 to 1000) and return them as a dict."""
        for name in check_mapping("costs", costs, "features to numbers"):
            self[name]
        return {name: check_number(f"the cost of {show(name)}", cost, 0, 1000) for name, cost in costs.items()}

    def to_json(self) -> str:
        """Return the schema as JSON that a user can read and edit; `from_json` reads it back."""
        costs = [{"name": name, "cost": cost} for name, cost in self.costs.items()]
        laws, features = ([each.entry() for each in group] for group in (self.laws, self.features))
        parts: dict[str, list[Any]] = {"features": features, "laws": laws, "rules": list(self.rules), "costs": costs}
        parts["outcomes"] = [{"value": value, "words": words} for value, words in self.outcomes.items()]
        parts["causes"] = [{"name": name, "causes": list(causes)} for name, causes in self.causes.items()]
        text = [f'  "{name}": [\n    {_lines(entries)}\n  ]' for name, entries in parts.items() if entries]
        return "{\n" + ",\n".join(['  "tdce_schema": 1', *text]) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a schema from the output of `to_json`, possibly edited."""
        if not isinstance(text, str | bytes):
            raise InputError(f"the schema is {show(text)}, not JSON text; of a file give its text: path.read_text()")
        try:
            content = json.loads(text)
        except ValueError as error:  # also for numbers with more digits than Python reads, and bytes that are not UTF-8
            raise InputError(f"the schema is not valid JSON: {show(error, 200, str)}") from None
        except RecursionError:
            raise InputError("the schema is not valid JSON: it is nested too deeply") from None
        if not isinstance(content, dict) or content.get("tdce_schema") != 1:
            raise InputError('the schema must be a JSON object with "tdce_schema": 1 and "features"')
        parts: dict[str, Any] = {"features": content.get("features")}
        parts |= {name: content.get(name, []) for name in ("laws", "rules", "costs", "outcomes", "causes")}
        for name, entries in parts.items():
            if not isinstance(entries, list):
                raise InputError(f'the schema\'s "{name}" must be a list')
        if unknown := sorted(set(content) - {"tdce_schema", *parts}):
            hint = suggest(unknown[0], parts)
            raise InputError(f"the schema has an unknown part {show(unknown[0])}; {hint}known: {listing(parts)}")
        costs = dict(_parse_cost(entry) for entry in parts["costs"])
        laws = tuple(map(law_from_entry, parts["laws"]))
        outcomes = dict(_parse_outcome(entry) for entry in parts["outcomes"])
        causes = dict(_parse_causes(entry) for entry in parts["causes"])
        features = tuple(map(column_from_entry, parts["features"]))
        return cls(features, laws, tuple(parts["rules"]), costs, outcomes, causes)

    def describe(self) -> list[tuple[str, str, str, str]]:
        """Describe each feature in one line: column, kind, values, whether it may change."""
        missing = "; may be missing"
        return [(str(f.name), f.kind, f.describe() + missing * f.missing, self._may_change(f)) for f in self.features]

    def _may_change(self, column: Column) -> str:
        if not column.immutable and column.name in self.followers:
            return f"follows {listing(self.followers[column.name])}"
        role = f" ({column.role})" if column.role not in ("actionable", "immutable") else ""
        return {"increase": "only up", "decrease": "only down"}.get(column.may_change, column.may_change) + role

    def sentences(self) -> list[str]:
        """Describe each law and rule in one line."""
        return [*map(_sentence, self.laws), *(f"Rule: {rule}" for rule in self.rules)]

    def _repr_html_(self) -> str:
        """For notebooks: columns, laws and rules."""
        title = f"Schema of {len(self)} columns, {len(self.laws)} laws, {len(self.rules)} rules"
        columns = ("column", "kind", "values", "may change")
        lines = [*self.describe(), *(("", "", sentence, "") for sentence in self.sentences())]
        return html_card(title, (), columns, lines, "print(schema)", most=40)

    def __str__(self) -> str:
        lines = [("column", "kind", "values", "may change"), *self.describe()]
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        columns = ["  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[3]]) for line in lines]
        return "\n".join([*columns, *self.sentences()])


def _check_unique(names: Iterable[Name]) -> None:
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            raise InputError(f"column {show(name)} appears twice; rename or drop one of them")
        seen.add(name)


def _check_columns(what: str, columns: Iterable[Name], frame: pd.DataFrame, label: Name | None) -> tuple[Name, ...]:
    """Check that these are columns of the table other than the label."""
    names = check_names(what, columns)
    for name in names:
        if name not in frame.columns:
            known = f"{suggest(name, frame.columns)}known: {listing(frame.columns)}"
            raise InputError(f"{what} has {show(name)}, but there is no such column; {known}")
        if label is not None and name == label:
            raise InputError(f"{what} has {show(name)}, which is the label, not a feature; leave it out")
    return names


def _check_acyclic(followers: Mapping[Name, tuple[Name, ...]]) -> None:
    """Raise an error if features follow each other in a cycle."""
    for start in followers:
        chain = [start]
        left = list(followers[start])
        while left:
            name = left.pop()
            if name == start:
                raise InputError(f"{start!r} follows itself, through {listing(chain)}; switch off one of these laws")
            if name in followers and name not in chain:
                chain.append(name)
                left += followers[name]


def _several(what: str, given: Any, kind: type[Any]) -> tuple[Any, ...]:
    """A list of columns or of laws as a tuple."""
    if not isinstance(given, list | tuple):
        raise InputError(f"{what} is {show(given)}; it must be a list, as in a schema from Schema.infer")
    for each in given:
        if not isinstance(each, kind):
            raise InputError(f"{what} has {show(each)}, which is not a {kind.__name__}; take them from another schema")
    return tuple(given)


def _fits(law: Law, features: tuple[Column, ...]) -> bool:
    """Whether a law can be bound to columns of these kinds."""
    try:
        law.bind(features)
    except InputError:
        return False
    return True


def _parse_cost(entry: Any) -> tuple[Name, float]:
    if not isinstance(entry, dict) or set(entry) != {"name", "cost"}:
        raise InputError(f"a cost in the schema is {show(entry)}; it needs a name and a cost")
    if not is_name(entry["name"]):
        raise InputError(f"a cost in the schema has the name {show(entry['name'])}; it must be that of a feature")
    return entry["name"], entry["cost"]


def _parse_causes(entry: Any) -> tuple[Name, Any]:
    if not isinstance(entry, dict) or set(entry) != {"name", "causes"} or not isinstance(entry["name"], str | int):
        raise InputError(f"an entry of the schema's causes is {show(entry)}; it needs a name and causes")
    return entry["name"], entry["causes"]


def _parse_outcome(entry: Any) -> tuple[Any, Any]:
    if not isinstance(entry, dict) or set(entry) != {"value", "words"}:
        raise InputError(f"an outcome in the schema is {show(entry)}; it needs a value and words")
    return json_key(entry["value"]), entry["words"]


def _lines(entries: Iterable[Any]) -> str:
    return ",\n    ".join(json.dumps(entry, ensure_ascii=False) for entry in entries)


def _sentence(law: Law) -> str:
    text = str(law)
    exceptions = f", but for {law.exceptions:,}" if law.exceptions else ""
    strength = getattr(law, "strength", 1.0)
    explained = f"; explains {100 * strength:.1f} %" if strength < 0.9995 else ""
    off = "" if law.on else "; switched off"
    return f"{text[:1].upper()}{text[1:]} ({law.support:,} rows{exceptions}{explained}{off})"
