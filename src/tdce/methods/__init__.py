"""The methods by name; a new one is one file and one line here."""

from collections.abc import Callable

from tdce.methods.algorithm1 import AS_PRINTED, FAITHFUL, TDCEPaper, TDCEPrinted
from tdce.methods.cchvae import CCHVAE
from tdce.methods.counternet import CounterNet
from tdce.methods.face import FACE
from tdce.methods.interface import Method, Query, Search, Task
from tdce.methods.latent import Clue, Revise
from tdce.methods.nice import NICE
from tdce.methods.tdce import TDCE
from tdce.methods.wachter import Wachter

METHODS: dict[str, Callable[..., Method]] = {
    "tdce": TDCE,
    "tdce_paper": TDCEPaper,
    "tdce_printed": TDCEPrinted,
    "wachter": Wachter,
    "cchvae": CCHVAE,
    "revise": Revise,
    "clue": Clue,
    "face": FACE,
    "counternet": CounterNet,
    "nice": NICE,
}

__all__ = [
    "AS_PRINTED",
    "CCHVAE",
    "FACE",
    "FAITHFUL",
    "METHODS",
    "NICE",
    "TDCE",
    "Clue",
    "CounterNet",
    "Method",
    "Query",
    "Revise",
    "Search",
    "TDCEPaper",
    "TDCEPrinted",
    "Task",
    "Wachter",
]
