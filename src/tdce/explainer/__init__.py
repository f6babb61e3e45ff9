"""What a user holds: `Explainer`, fitted to a table, its `Answer`, the evaluation of answers, and artefacts on disk."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
