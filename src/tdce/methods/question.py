"""The question that a user asks about rows: one object for all interfaces (Python, command line, studio, evidence)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import torch

from tdce._core import (
    LAST_SEED,
    InputError,
    Name,
    check_integer,
    check_mapping,
    check_names,
    check_number,
    check_optional,
    check_texts,
    check_type,
    is_name,
    show,
    suggest,
)
from tdce.methods.protocol import Method
from tdce.methods.selection import MOST_OPTIONS
from tdce.models import (
    STANDOFF,
    Output,
    Retraining,
    is_per_row,
    resolve_goal,
    resolve_goals,
    target_from_json,
    target_to_json,
)
from tdce.schema import Schema

DEFAULT_SAFETY = 0.9
"""The default: nine in ten retrained models should accept an answer."""

MAX_SAFETY = 0.99  # no forecast is more certain than this


@dataclass(frozen=True)
class Question:
    """A question about rows, as plain values: it can be pickled, compared and written as JSON.

    The constructor checks each value alone; `check` checks them against an explainer, once and before any work. `None`
    leaves a setting to its default: the favourable target, the method's closeness, the most probable class, a safety of
    0.9, no budget, no ensemble.
    """

    target: Any = None  # a class, a goal, one of these per output, or a tuple with one of these per row
    n: int = 1
    immutable: tuple[Name, ...] = ()
    rules: tuple[str, ...] = ()
    costs: Mapping[Name, float] = field(default_factory=dict)
    seed: int = 0
    closeness: float | None = None
    threshold: float | None = None
    safety: float | None = None  # wanted probability that a retrained model accepts an answer
    max_model_rows: int | None = None
    robust: Retraining | None = None  # how the ensemble that should accept the answers was trained

    def __post_init__(self) -> None:
        plain = {
            "target": tuple(self.target) if is_per_row(self.target) else self.target,
            "n": check_integer("n", self.n, 1, MOST_OPTIONS),
            "immutable": check_names("immutable", self.immutable),
            "rules": check_texts("rules", self.rules),
            "costs": _mapping({} if self.costs is None else self.costs),
            "seed": check_integer("seed", self.seed, 0, LAST_SEED),
            "closeness": check_optional("closeness", self.closeness, check_number, 0, 1),
            "threshold": check_optional("threshold", self.threshold, check_number, 0, 1 - 2 * STANDOFF, above=True),
            "safety": check_optional("safety", self.safety, check_number, 0, MAX_SAFETY),
            "max_model_rows": check_optional("max_model_rows", self.max_model_rows, check_integer, 1),
            "robust": check_optional(
                "robust", self.robust, check_type, Retraining, "give what `Ensemble.retraining` holds"
            ),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if self.robust is not None and self.max_model_rows is not None:
            raise InputError("max_model_rows does not go with robust, which queries several models; leave one out")

    def check(self, schema: Schema, outputs: tuple[Output, ...], favourable: Any, method: Method) -> None:
        """Raise an error unless the question is valid for this schema, a model with these outputs, and this method."""
        if self.closeness is not None and not method.has_tradeoff:
            raise InputError(f"{type(method).__name__} has no closeness to set; leave it out")
        if self.safety is not None and not method.has_tradeoff:
            raise InputError(f"{type(method).__name__} cannot be asked for safety, only rated by it; leave it out")
        schema.check_immutable(self.immutable)
        schema.check_rules(self.rules)
        schema.check_costs(self.costs)
        if isinstance(self.target, tuple):
            for each in self.target:
                resolve_goal(each, outputs, self.threshold)
        else:
            columns = sum(output.columns for output in outputs)
            resolve_goals(self.target, self.threshold, favourable, outputs, 0, lambda: torch.zeros(0, columns))

    def check_budget(self, rows: int) -> None:
        """Raise an error unless the query budget suffices for this many rows: each row itself, and each answer."""
        least = check_integer("rows", rows, 0, LAST_SEED) * (self.n + 2)
        if self.max_model_rows is not None and self.max_model_rows < least:
            raise InputError(f"max_model_rows is {self.max_model_rows:,}, but {rows:,} rows with n={self.n} need at "
                             f"least {least:,}: the model is queried for each row and for each answer")  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the question as values for JSON, which `from_json` reads."""
        robust = None if self.robust is None else asdict(self.robust)
        costs = [[name, cost] for name, cost in self.costs.items()]  # a name need not be text
        lists = {"immutable": list(self.immutable), "rules": list(self.rules), "costs": costs}
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, **lists, "target": target_to_json(self.target), "robust": robust}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Make a question from what `to_json` returned; missing entries get their defaults."""
        known = sorted(each.name for each in fields(cls))
        for name in check_mapping("the question", values, "names to values, as to_json returned it"):
            if name not in known:
                raise InputError(f"a question has no {show(name)}; {suggest(name, known)}known: {', '.join(known)}")
        given = dict(values)
        if "target" in given:
            target = given["target"]
            given["target"] = [*map(target_from_json, target)] if isinstance(target, list) else target_from_json(target)
        if "costs" in given:
            given["costs"] = dict(_pairs(given["costs"]))
        if given.get("robust") is not None:
            given["robust"] = Retraining.from_json(given["robust"])
        return cls(**given)


def _mapping(costs: Any) -> dict[Name, float]:
    given = check_mapping("costs", costs, "features to numbers")
    return {name: check_number(f"the cost of {show(name)}", cost, 0, 1000) for name, cost in given.items()}


def _pairs(costs: Any) -> list[tuple[Name, Any]]:
    """Costs as `to_json` writes them."""
    pairs = costs if isinstance(costs, list) else [costs]
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not is_name(pair[0]):
            raise InputError(f"costs has {show(pair)}; it must be a list of pairs of a feature and a number")
    return [(name, cost) for name, cost in pairs]
