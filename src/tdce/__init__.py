"""Counterfactual explanations for tables: what would have to be different for a yes."""

from tdce.answer import Answer
from tdce.data import Dataset, load
from tdce.errors import InputError
from tdce.explainer import Explainer
from tdce.schema import Categorical, Numeric, Schema

__all__ = ["Answer", "Categorical", "Dataset", "Explainer", "InputError", "Numeric", "Schema", "load"]
