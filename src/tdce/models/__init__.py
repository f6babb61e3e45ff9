"""What is explained, and what is wanted of it: adapters for users' models, our own classifier, goals and targets, the
oracle (the only caller of the model), and ensembles of retrained models.
"""

from tdce._core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
