"""The methods by name; a new method needs one file and one line here."""

from collections.abc import Callable

from tdce.methods.algorithm1 import GuidedLiteral
from tdce.methods.baselines.cchvae import CCHVAE
from tdce.methods.baselines.counternet import CounterNet
from tdce.methods.baselines.face import FACE
from tdce.methods.baselines.latent import Clue, Revise
from tdce.methods.baselines.nice import NICE
from tdce.methods.baselines.wachter import Wachter
from tdce.methods.guided import GuidedSearch
from tdce.methods.protocol import Method
from tdce.methods.search import DiffusionSearch

METHODS: dict[str, Callable[..., Method]] = {
    "search": DiffusionSearch,
    "guided": GuidedSearch,
    "guided_literal": GuidedLiteral,
    "wachter": Wachter,
    "cchvae": CCHVAE,
    "revise": Revise,
    "clue": Clue,
    "face": FACE,
    "counternet": CounterNet,
    "nice": NICE,
}


def method_name(method: Method) -> str | None:
    """The name under which a method is registered; None if it is not."""
    return next((name for name, kind in METHODS.items() if type(method) is kind), None)
