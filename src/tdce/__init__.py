"""Counterfactual explanations for tables: what would have to be different for a yes."""

from tdce.answer import Answer
from tdce.data import Dataset, load
from tdce.errors import InputError
from tdce.evaluation import evaluate
from tdce.explainer import Explainer
from tdce.goal import AtLeast, Between, Not
from tdce.schema import Categorical, Numeric, Schema

__all__ = [
    "Answer",
    "AtLeast",
    "Between",
    "Categorical",
    "Dataset",
    "Explainer",
    "InputError",
    "Not",
    "Numeric",
    "Schema",
    "evaluate",
    "load",
]
