"""Answers for people: the HTML report, sentences and letters in several languages, histograms of the population."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
