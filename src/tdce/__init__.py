"""Counterfactual explanations for tables: what would have to be different for a yes."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tdce.answer import Answer
    from tdce.data import Dataset, load
    from tdce.errors import InputError
    from tdce.evaluation import evaluate
    from tdce.explainer import Explainer
    from tdce.goal import AtLeast, Between, Not
    from tdce.outputs import Change, Range
    from tdce.schema import Categorical, Numeric, Schema
    from tdce.verification import verify

    __version__: str

__all__ = [
    "Answer",
    "AtLeast",
    "Between",
    "Categorical",
    "Change",
    "Dataset",
    "Explainer",
    "InputError",
    "Not",
    "Numeric",
    "Range",
    "Schema",
    "evaluate",
    "load",
    "verify",
]

_HOMES = {
    "Answer": "answer",
    "AtLeast": "goal",
    "Between": "goal",
    "Categorical": "schema",
    "Change": "outputs",
    "Dataset": "data",
    "Explainer": "explainer",
    "InputError": "errors",
    "Not": "goal",
    "Numeric": "schema",
    "Range": "outputs",
    "Schema": "schema",
    "evaluate": "evaluation",
    "load": "data",
    "verify": "verification",
}


def __getattr__(name: str) -> Any:
    """A public name or a module, imported when it is first used: `import tdce` waits for neither torch nor pandas."""
    if name == "__version__":
        return version("tdce")
    module = f"tdce.{_HOMES.get(name, name)}"
    try:
        home = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise AttributeError(f"module 'tdce' has no attribute {name!r}") from None
    found = globals()[name] = getattr(home, name) if name in _HOMES else home
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
