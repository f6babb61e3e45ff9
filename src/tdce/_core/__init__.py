"""Foundations that know nothing of counterfactuals: errors and argument checks, plain values of data frames, notes,
progress, threads and processes, deterministic matrix products, noise, networks and their training."""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
