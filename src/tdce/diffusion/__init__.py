"""The diffusion model of a table (Gaussian for numbers, multinomial for categories), the synthetic rows that it draws,
and the plausibility of a row under it.
"""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
