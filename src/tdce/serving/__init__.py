"""The studio and the HTTP API: one explainer in memory, asked over HTTP by pages and by programs."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
