"""The diffusion model of a table (Gaussian for numbers, multinomial for categories), the synthetic rows that it draws, and
the plausibility that it gives to a row.
"""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
