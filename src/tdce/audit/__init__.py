"""Evidence: a chained record of questions and answers, its keys and signatures, its verification and its replay."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
