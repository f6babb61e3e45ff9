"""The methods by name; a new one is a file of its own and a line here."""

from collections.abc import Callable

from tdce.methods.base import Explanation, Method, Task, explain
from tdce.methods.tdce import TDCE, TDCEPaper

METHODS: dict[str, Callable[..., Method]] = {
    "tdce": TDCE,
    "tdce_paper": TDCEPaper,
}

__all__ = ["METHODS", "TDCE", "Explanation", "Method", "TDCEPaper", "Task", "explain"]
