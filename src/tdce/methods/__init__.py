"""How counterfactuals are found: the protocol of a method, the default `search`, Algorithm 1 of the paper, the
baselines, and the driver that runs every method alike, decides and selects.
"""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
