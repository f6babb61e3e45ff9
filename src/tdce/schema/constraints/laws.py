"""The kinds of laws that are discovered in tables, each a plain value with the table's own names and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tdce._core import InputError, listing, show, suggest
from tdce.schema.constraints.base import Constraint, Law
from tdce.schema.constraints.chosen import Chosen
from tdce.schema.constraints.determines import Determines
from tdce.schema.constraints.follows import Follows
from tdce.schema.constraints.order import Order
from tdce.schema.constraints.states import Equivalent, Given, State
from tdce.schema.constraints.within import Within

__all__ = ["Chosen", "Constraint", "Determines", "Equivalent", "Follows", "Given", "Law", "Order", "State", "Within"]

LAW_KINDS: tuple[type[Law], ...] = (Order, Follows, Determines, Given, Equivalent, Within, Chosen)


def law_from_entry(entry: Any) -> Law:
    """A law from its entry in a schema's JSON."""
    if not isinstance(entry, Mapping):
        raise InputError(f"a law in the schema is {show(entry)}; it must be an object")
    settings = dict(entry)
    kind_name = settings.pop("law", None)
    for kind in LAW_KINDS:
        if kind_name == kind.kind:
            return kind.from_settings(settings)
    known = [kind.kind for kind in LAW_KINDS]
    hint = suggest(kind_name, known)
    raise InputError(f"law {show(kind_name)} is not known; {hint}it must be one of {listing(known)}")
